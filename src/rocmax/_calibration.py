"""Probabilities of the positive class, calibrated on the scores of held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression

from rocmax._support import Array, Bools

# Number of held-out rows of each class from which the probabilities follow the shares of positives among the rows.
ENOUGH_FOR_STEPS = 1000


def fit_calibration(scores: Array, positive: Bools, weight: Array | None = None) -> dict[str, Any]:
    r"""Return the function from scores to probabilities as plain values; it rises with the score.

    With few rows, it is a logistic function of the score, fitted to smoothed labels: positive rows count as
    :math:`(m + 1) / (m + 2)` positive and negative rows as :math:`1 / (n + 2)`, for :math:`m` positive and :math:`n`
    negative rows. With at least 1000 rows of each class, it is a centered isotonic regression: the log-odds are linear
    between the centers of the blocks of an isotonic regression, and have the slope of the logistic function beyond the
    first and the last one. Different scores thus have different probabilities, unless the slope is zero.

    References
    ----------
    J. Platt (2000). Probabilistic outputs for support vector machines. Advances in Large Margin Classifiers, 61-74.
    B. Zadrozny and C. Elkan (2002). Transforming classifier scores into accurate multiclass probability estimates. KDD.
    A. P. Oron and N. Flournoy (2017). Centered isotonic regression: point and interval estimation for dose-response
    studies. Statistics in Biopharmaceutical Research 9, 258-267.
    """
    weight = np.ones(scores.size) if weight is None else weight / weight.mean()
    slope, intercept = _logistic(scores, positive, weight)
    if min(_effective(weight[positive]), _effective(weight[~positive])) < ENOUGH_FOR_STEPS:
        return {"method": "sigmoid", "slope": slope, "intercept": intercept}
    centers, shares = _centered_isotonic(scores, positive, weight)
    return {"method": "isotonic", "scores": centers.tolist(), "probabilities": shares.tolist(), "slope": slope}


def calibrated(found: dict[str, Any], scores: Array) -> Array:
    """Return the probability of the positive class for scores, by the result of :func:`fit_calibration`."""
    if found["method"] == "sigmoid":
        return np.asarray(expit(found["slope"] * scores + found["intercept"]), dtype=np.float64)
    first, last = found["scores"][0], found["scores"][-1]
    inside = np.interp(scores, found["scores"], logit(found["probabilities"]))
    beyond = np.minimum(scores - first, 0.0) + np.maximum(scores - last, 0.0)
    return np.asarray(expit(inside + found["slope"] * beyond), dtype=np.float64)


def _logistic(scores: Array, positive: Bools, weight: Array) -> tuple[float, float]:
    """Return the slope, at least 0, and the intercept of a logistic regression on smoothed labels."""
    m, n = float(weight[positive].sum()), float(weight[~positive].sum())
    center, spread = float(np.average(scores, weights=weight)), float(np.std(scores)) or 1.0
    standard = ((scores - center) / spread)[:, np.newaxis]
    share = np.where(positive, (m + 1) / (m + 2), 1 / (n + 2))
    labels = np.repeat([1, 0], scores.size)
    counts = np.concatenate([weight * share, weight * (1 - share)])
    fitted = LogisticRegression(C=1e6).fit(np.concatenate([standard, standard]), labels, sample_weight=counts)
    slope = max(float(fitted.coef_[0, 0]), 0.0) / spread
    return slope, float(fitted.intercept_[0]) - slope * center


def _centered_isotonic(scores: Array, positive: Bools, weight: Array) -> tuple[Array, Array]:
    """Return the centers of the blocks of an isotonic regression and their shares of positives.

    A positive row of weight 1 below all scores and a negative one above them keep the shares above 0 and below 1.
    """
    values, place = np.unique(scores, return_inverse=True)
    mass = np.bincount(place, weight).astype(np.float64)
    hits = np.bincount(place, weight * positive).astype(np.float64)
    mass[[0, -1]] += 1.0
    hits[0] += 1.0
    shares = isotonic_regression(hits / mass, sample_weight=mass)
    starts = np.flatnonzero(np.append(True, np.diff(shares) > 0))
    sums = np.add.reduceat(mass, starts)
    return np.add.reduceat(mass * values, starts) / sums, np.add.reduceat(hits, starts) / sums


def _effective(weight: Array) -> float:
    """Return the number of rows of equal weight that say as much as the weighted ones."""
    return float(weight.sum() ** 2 / np.square(weight).sum())
