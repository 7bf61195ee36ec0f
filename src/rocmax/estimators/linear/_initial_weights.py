"""Linear classifiers used as starting points: logistic regression and the SVM with squared hinge loss.

scikit-learn's estimators give the same weights, but emit convergence warnings, which are irrelevant for a starting
point. Python can suppress a warning only for the whole process, including other threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from rocmax._typing import Array, Bools
from rocmax.operators import as_operator


def fit_start(kind: str, X: Any, positive: Bools, weight: Array | None, C: float, tol: float, max_iter: int) -> Array:
    """Return the weights of a linear classifier, fitted by L-BFGS from zero weights.

    Parameters
    ----------
    kind : {"logistic", "balanced", "svc"}
        The objective of ``LogisticRegression(C=C)``, ``LogisticRegression(C=C, class_weight="balanced")`` or
        ``LinearSVC(C=C, dual=False)``.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Standardized rows.
    positive : ndarray of bool
        Mask of the positive rows.
    weight : ndarray, default=None
        Sample weights.
    C : float
        Weight of the loss.
    tol : float
        Tolerance for stopping: largest absolute entry of the gradient of the mean loss plus penalty.
    max_iter : int
        Maximum number of iterations.
    """
    operator, side = as_operator(X), np.where(positive, 1.0, -1.0)
    weight = np.ones(positive.size) if weight is None else weight
    total = float(weight.sum())
    share = weight / total
    if kind == "balanced":
        share = share / (2.0 * np.where(positive, share[positive].sum(), share[~positive].sum()))
    # LinearSVC penalizes the intercept like the weight of a constant feature; LogisticRegression does not.
    ridge = np.full(operator.shape[1] + 1, 1.0 / (C * total))
    ridge[-1] *= kind == "svc"
    loss = _squared_hinge if kind == "svc" else _logistic

    def objective(v: Array) -> tuple[float, Array]:
        values, slopes = loss(side * (operator.matvec(v[:-1]) + v[-1]))
        coefficients = share * side * slopes
        gradient = np.append(operator.rmatvec(coefficients), coefficients.sum()) + ridge * v
        return float(share @ values + 0.5 * ridge @ v**2), gradient

    options = {"maxiter": max_iter, "maxls": 50, "gtol": tol, "ftol": 64 * np.finfo(np.float64).eps}
    start = np.zeros(operator.shape[1] + 1)
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x[:-1])


def _logistic(margin: Array) -> tuple[Array, Array]:
    return -log_expit(margin), -expit(-margin)


def _squared_hinge(margin: Array) -> tuple[Array, Array]:
    slack = np.maximum(1.0 - margin, 0.0)
    return slack**2, -2.0 * slack
