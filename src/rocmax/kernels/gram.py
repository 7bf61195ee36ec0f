"""Gram matrices of kernels, with the parameters of scikit-learn's ``SVC`` and a check of the required memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.metrics.pairwise import pairwise_kernels

from rocmax._typing import Array
from rocmax._validate import check_number

_NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")
# Number of rows of a Gram matrix that are computed at once.
_BLOCK = 256
# Parameters of each kernel.
_TAKES: dict[str, tuple[str, ...]] = {
    "linear": (),
    "poly": ("gamma", "degree", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}


class Kernel:
    """Kernel with its parameters.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
        Kernel; a callable takes two matrices of rows and returns the matrix of their kernel values.
    gamma : {"scale", "auto"} or float
        "scale" is ``1 / (n_features * variance of X)``, "auto" is ``1 / n_features``.
    degree : int
        Degree of "poly".
    coef0 : float
        Independent term of "poly" and "sigmoid".
    """

    def __init__(self, kernel: str | Callable[[Any, Any], Any], gamma: str | float, degree: int, coef0: float) -> None:
        if not callable(kernel) and kernel not in _NAMES:
            raise ValueError(f"kernel must be one of {', '.join(map(repr, _NAMES))} or a callable; got {kernel!r}")
        if gamma not in ("scale", "auto"):
            check_number("gamma", gamma, above=0.0)
        check_number("degree", degree, above=0, integer=True)
        if isinstance(coef0, bool) or not isinstance(coef0, int | float | np.integer | np.floating):
            raise ValueError(f"coef0 must be a number; got {coef0!r}")
        self.kernel = kernel
        self.parameters: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0}

    def settled(self, X: Any, weight: Array | None) -> Kernel:
        """Return the kernel with ``gamma`` replaced by its numerical value."""
        gamma = settled_gamma(self.parameters["gamma"], X, weight)
        return Kernel(self.kernel, gamma, self.parameters["degree"], self.parameters["coef0"])

    def between(self, X: Any, Y: Any) -> Array:
        """Return the kernel values between the rows of two matrices."""
        if callable(self.kernel):
            return np.asarray(self.kernel(X, Y), dtype=np.float64)
        chosen = {name: self.parameters[name] for name in _TAKES[self.kernel]}
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(pairwise_kernels(X, Y, metric=self.kernel, **chosen), dtype=np.float64)
        check_finite_kernel(values, X, self.kernel)
        return values

    def _within(self, X: Any) -> Array:
        """Return the kernel values between all rows of one matrix."""
        if callable(self.kernel):
            return self.between(X, X)
        # Only half of the values are computed, and no other large matrix is allocated.
        gram = np.empty((X.shape[0], X.shape[0]))
        for start in range(0, X.shape[0], _BLOCK):
            stop = min(start + _BLOCK, X.shape[0])
            gram[start:stop, :stop] = self.between(X[start:stop], X[:stop])
            gram[:start, start:stop] = gram[start:stop, :start].T
        if self.kernel == "rbf":
            np.fill_diagonal(gram, 1.0)
        return gram

    def gram(self, X: Any) -> Array:
        """Return the Gram matrix of training rows; check it if the kernel may not be positive semidefinite."""
        if self.kernel == "precomputed":
            gram = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        else:
            gram = self._within(X)
        if callable(self.kernel) or self.kernel in ("precomputed", "sigmoid"):
            check_mercer(gram, self.kernel)
        return np.ascontiguousarray(gram)


def check_finite_kernel(values: Any, X: Any, kernel: Any) -> None:
    """Raise ValueError if kernel values of rows are not finite, because values of the rows are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum takes little time; it is not finite if a value is not.
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    row = int(np.isfinite(values).all(axis=1).argmin())
    largest = float(np.abs(X[[row]].data if sparse.issparse(X) else X[row]).max())
    raise ValueError(
        f"values of X must be small enough for finite values of the kernel {kernel!r}; got values up to {largest:.3g} "
        f"in row {row}. Remove the row, or clip its values to the range of the training rows"
    )


def settled_gamma(gamma: str | float, X: Any, weight: Array | None) -> float:
    """Return the numerical value of ``gamma``, with "scale" and "auto" computed as in scikit-learn's ``SVC``."""
    if gamma == "auto":
        result: float = 1.0 / X.shape[1]
        return result
    if gamma == "scale":
        variance = _variance(X, weight)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return float(gamma)


def check_gram_memory(n_rows: int, limit_mb: float) -> None:
    """Raise ValueError if a Gram matrix would exceed the memory limit."""
    check_number("max_gram_mb", limit_mb, above=0.0)
    needed = 8 * n_rows**2 / 1e6
    if needed > limit_mb:
        raise ValueError(
            f"the Gram matrix must take at most max_gram_mb={limit_mb:g} MB; got {n_rows} rows, which take "
            f"{needed:.0f} MB. Increase max_gram_mb if there is enough memory, or use KMeansNystroem (an approximate "
            "feature map) with a linear estimator such as AUCClassifier"
        )


def check_mercer(gram: Array, kernel: Any) -> None:
    """Raise ValueError if a matrix is not square, symmetric and positive semidefinite."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"with kernel={kernel!r}, X must be a square matrix of training rows by training rows; got {gram.shape}"
        )
    scale = float(np.abs(gram).max(initial=0.0)) or 1.0
    if np.abs(gram - gram.T).max(initial=0.0) > 1e-8 * scale:
        raise ValueError(
            f"kernel={kernel!r} must give a symmetric matrix; got a matrix that differs from its transpose"
        )
    lifted = gram.copy()
    lifted[np.diag_indices(gram.shape[0])] += 1e-7 * scale
    try:
        linalg.cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError as error:
        raise ValueError(
            f"kernel={kernel!r} must give a positive semidefinite matrix (Mercer's condition); got negative "
            f"eigenvalues. Use another kernel"
        ) from error


def _variance(X: Any, weight: Array | None) -> float:
    """Return the variance of all entries, weighted by the sample weights of the rows."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    total = float(weight.sum()) * X.shape[1]
    mean = float(weight @ np.asarray(X.sum(axis=1), dtype=np.float64).ravel()) / total
    if sparse.issparse(X):
        square = float(weight @ np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()) / total
        found: float = square - mean**2
        return found
    result: float = float(weight @ ((X - mean) ** 2).sum(axis=1)) / total
    return result
