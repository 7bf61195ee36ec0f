"""Means, standard deviations and correlations of features, without a standardized copy of the rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from rocmax._typing import Array
from rocmax.losses.bins import blocks
from rocmax.operators import FAR, StandardizedOperator

# Largest number of features for matrices of pairs of features.
MAX_SQUARE = 300
# Rows per feature from which such a matrix is estimated, and the least number of values in these rows.
_ROWS_PER_FEATURE, _FEWEST_VALUES = 100, 1 << 18
# Numbers in a block of rows that is processed at a time, so that copies stay in the cache.
_BLOCK = 1 << 17
# Share of stored values above which a dense matrix takes less memory than a sparse one, 8 against 12 bytes for each.
_FULL = 2 / 3
# Part of the mean variance that is added to the diagonal of a covariance matrix before it is inverted.
_RIDGE = 0.1


def standardized(X: Any, weight: Array | None) -> StandardizedOperator:
    """Return an operator with standardized columns; sparse rows are not centered, and constant columns are left out.

    Sparse rows of which most values are stored are made dense if a column is far from zero: without centering, the
    mean would hide the differences between the rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The rows.
    weight : ndarray of shape (n_samples,), default=None
        Sample weights.
    """
    given = weight
    if sparse.issparse(X):
        # scikit-learn requires weights of the type of the rows; the largest weights would overflow in single precision.
        if weight is not None and X.dtype != weight.dtype:
            weight = (weight / weight.max()).astype(X.dtype)
        mean, variance = mean_variance_axis(X.tocsr(), axis=0, weights=weight)
    else:
        mean, variance = _moments(X, weight)
    spread = np.sqrt(variance.astype(np.float64))
    # As in scikit-learn's StandardScaler.
    constant = spread <= 10 * np.finfo(np.float64).eps * np.abs(mean)
    is_far = bool((np.abs(mean) > FAR * spread)[~constant].any())
    if sparse.issparse(X) and is_far and X.nnz >= _FULL * X.shape[0] * X.shape[1]:
        return standardized(X.toarray(), given)
    shift = np.zeros(X.shape[1]) if sparse.issparse(X) else mean
    return StandardizedOperator(X, shift, np.where(constant, 0.0, spread))


def _moments(X: Any, weight: Array | None) -> tuple[Array, Array]:
    """Return the mean and the variance of the columns in one pass, from differences to approximate means."""
    n_rows, n_features = X.shape
    origin = X[:: max(1, n_rows // 1000)].mean(axis=0, dtype=np.float64)
    origin = origin.astype(X.dtype if X.dtype.kind == "f" else np.float64)
    total, sums, squares = 0.0, np.zeros(n_features), np.zeros(n_features)
    for start in range(0, n_rows, step := max(1, _BLOCK // n_features)):
        block = X[start : start + step] - origin
        part = np.ones(len(block), block.dtype) if weight is None else weight[start : start + step].astype(block.dtype)
        total += float(part.sum(dtype=np.float64))
        sums += part @ block
        squares += part @ np.square(block, out=block)
    mean = sums / total
    return origin + mean, np.maximum(squares / total - mean**2, 0.0)


def weighted_spread(scores: Array, weight: Array | None) -> float:
    """Return the weighted standard deviation of scores; 1 if it is zero."""
    mean, total, square = np.average(scores, weights=weight), 0.0, 0.0
    for rows in blocks(scores.size):
        part = scores[rows] - mean
        share = np.ones(part.size) if weight is None else weight[rows]
        total, square = total + float(share.sum()), square + float((share * part) @ part)
    return float(np.sqrt(square / total)) or 1.0


class RowSample:
    """Standardized rows at equal distances, from which matrices of pairs of features are estimated.

    Parameters
    ----------
    operator : StandardizedOperator
        All rows.
    weight : ndarray of shape (n_samples,), default=None
        Sample weights.
    step : int, default=None
        Distance between the rows; None takes enough rows for an estimate.
    """

    def __init__(self, operator: StandardizedOperator, weight: Array | None = None, step: int | None = None) -> None:
        n_rows, n_features = operator.shape
        if step is None:
            step = max(1, n_rows // max(_FEWEST_VALUES // n_features, _ROWS_PER_FEATURE * n_features))
        self.index = slice(None, None, step)
        self._X = operator.rows(self.index)
        self._weight = np.ones(self._X.shape[0]) if weight is None else weight[self.index]
        # A feature that is constant in most of the rows may be constant in the sample. Its variance in all rows is 1.
        self._missing = np.maximum(1.0 - np.diag(self.covariance), 0.0) if step > 1 else np.zeros(n_features)

    def moments(self, share: Array, factor: Array) -> Array:
        """Return an estimate of the sum of ``share factor [x, 1] [x, 1]'`` over all rows.

        Parameters
        ----------
        share : ndarray of shape (n_samples,)
            Weights of all rows.
        factor : ndarray of shape (n_sample_rows,)
            Further factors of the rows of the sample.
        """
        part = share[self.index]
        part = part * (share.sum() / part.sum()) * factor
        result = self._sums(part)
        result[np.diag_indices_from(result)] += part.sum() * np.append(self._missing, 0.0)
        return result

    @cached_property
    def covariance(self) -> Array:
        """Covariance matrix of the features."""
        moments = self._sums(self._weight / self._weight.sum())
        mean = moments[-1, :-1]
        result: Array = moments[:-1, :-1] - np.outer(mean, mean)
        return result

    def _sums(self, weight: Array) -> Array:
        """Return the sum of ``weight [x, 1] [x, 1]'`` over the rows of the sample."""
        X, root = self._X, np.sqrt(weight).astype(self._X.dtype, copy=False)[:, np.newaxis]
        n_rows, size = X.shape
        result = np.zeros((size + 1, size + 1))
        step = n_rows if sparse.issparse(X) else max(1, _BLOCK // size)
        for start in range(0, n_rows, step):
            block, part = X[start : start + step], root[start : start + step]
            scaled = block.multiply(part).tocsr() if sparse.issparse(block) else block * part
            square = scaled.T @ scaled
            result[:-1, :-1] += square.toarray() if sparse.issparse(square) else square
            result[-1, :-1] += scaled.T @ part.ravel()
        result[:-1, -1] = result[-1, :-1]
        result[-1, -1] = weight.sum()
        return result

    def whitening(self) -> Array:
        """Return a matrix ``P`` so that the features ``X P`` are almost uncorrelated."""
        covariance = self.covariance.copy()
        size = len(covariance)
        covariance[np.diag_indices(size)] += self._missing + _RIDGE * max(float(covariance.trace()) / size, 1e-300)
        try:
            root = linalg.cholesky(covariance, lower=True)
        except linalg.LinAlgError:
            # Sparse columns far from zero are not centered, so that the covariance is mostly rounding error.
            return np.eye(size)
        result: Array = linalg.solve_triangular(root, np.eye(size), lower=True).T
        return result
