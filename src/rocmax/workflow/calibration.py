"""Probabilities of the positive class, calibrated on the scores of held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from rocmax._messages import Message, Parameter, ParameterError
from rocmax._typing import Array, Bools

# Number of held-out rows of each class from which the probabilities are a monotone step function of the scores.
ENOUGH_FOR_STEPS = 1000


def fit_calibration(scores: Array, positive: Bools) -> dict[str, Any]:
    r"""Return the function from scores to probabilities as plain values.

    With few rows, it is a logistic function of the score, fitted to smoothed labels: positive rows count as
    :math:`(m + 1) / (m + 2)` positive and negative rows as :math:`1 / (n + 2)`, for :math:`m` positive and :math:`n`
    negative rows. With at least 1000 rows of each class, it is an isotonic regression.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Scores of rows that were not used for training.
    positive : ndarray of bool of shape (n_rows,)
        Whether each row is positive.

    References
    ----------
    J. Platt (2000). Probabilistic outputs for support vector machines. Advances in Large Margin Classifiers, 61-74.
    B. Zadrozny and C. Elkan (2002). Transforming classifier scores into accurate multiclass probability estimates. KDD.
    """
    m, n = int(positive.sum()), int((~positive).sum())
    if min(m, n) >= ENOUGH_FOR_STEPS:
        steps = IsotonicRegression(y_min=1 / (m + n + 2), y_max=1 - 1 / (m + n + 2)).fit(scores, positive.astype(float))
        knots = {"scores": steps.X_thresholds_.tolist(), "probabilities": steps.y_thresholds_.tolist()}
        return {"method": "isotonic", **knots}
    center, spread = float(np.mean(scores)), float(np.std(scores)) or 1.0
    standard = ((scores - center) / spread)[:, np.newaxis]
    share = np.where(positive, (m + 1) / (m + 2), 1 / (n + 2))
    labels = np.repeat([1, 0], scores.size)
    fitted = LogisticRegression(C=1e6).fit(
        np.concatenate([standard, standard]), labels, sample_weight=np.concatenate([share, 1 - share])
    )
    slope = max(float(fitted.coef_[0, 0]), 0.0) / spread
    return {"method": "sigmoid", "slope": slope, "intercept": float(fitted.intercept_[0]) - slope * center}


def probabilities(facts: dict[str, Any], scores: Array) -> Array:
    """Return the calibrated probability of the positive class for scores of a model."""
    found = facts.get("calibration")
    if found is None:
        raise ParameterError(
            Message(Parameter("proba"), " requires a model with calibrated probabilities; fit this model again")
        )
    if found["method"] == "sigmoid":
        return np.asarray(expit(found["slope"] * scores + found["intercept"]), dtype=np.float64)
    return np.asarray(np.interp(scores, found["scores"], found["probabilities"]), dtype=np.float64)
