"""Data access for solvers: products with the data matrix, and selected rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rocmax._typing import Array

__all__ = ["MatrixOperator", "Operator", "as_operator"]

# Below this share of non-zero coefficients, gathering their rows is cheaper than a product with all rows: at most, and
# for each byte of a row. Short rows cost little in a product with all rows, and as much as others to gather.
_FEW, _FEW_PER_BYTE = 0.2, 1 / 3000
# In single precision, the rows of a matrix are centred for products if the mean of a column is above this multiple of
# its standard deviation. Both are from a sample of about this number of rows.
_FAR, _ROWS_FOR_MEANS = 64.0, 1000
# Values of centred rows that are in memory at a time.
_BLOCK = 1 << 17
# Rounding error of a sum of products, in multiples of the machine epsilon times the sum of their absolute values.
_UNITS = 8
_EPS = float(np.finfo(np.float64).eps)


class Operator(Protocol):
    """Interface of the data for solvers."""

    shape: tuple[int, int]

    def matvec(self, w: Array) -> Array:
        """Return the scores ``X @ w``."""

    def rmatvec(self, c: Array) -> Array:
        """Return ``X.T @ c``."""

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return the rows ``X[index]``, dense or sparse like the data."""


class MatrixOperator:
    """Dense or CSR matrix in memory.

    A matrix of floating-point numbers is used in its precision, without a copy or conversion. Integers are converted
    once. Results have double precision. Products of a dense matrix in single precision whose columns are far from zero
    are computed from differences to approximate means.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The data.
    """

    def __init__(self, X: Any) -> None:
        self._X = X if X.dtype.kind == "f" else X.astype(np.float64)
        self.shape: tuple[int, int] = X.shape

    @property
    def is_sparse(self) -> bool:
        """Whether the data are sparse."""
        return bool(sparse.issparse(self._X))

    def matvec(self, w: Array) -> Array:
        """Return the scores ``X @ w``."""
        return row_scores(self._X, w, self._means)

    def rmatvec(self, c: Array) -> Array:
        """Return ``X.T @ c``; if few coefficients are non-zero, only the corresponding rows are used."""
        X = self._X
        if np.count_nonzero(c) < self._few:
            used = np.flatnonzero(c)
            X, c = self.rows(used), c[used]
        return row_sum(X, c, self._means)

    @cached_property
    def _means(self) -> Array | None:
        return far_means(self._X)

    @cached_property
    def _few(self) -> float:
        """Number of non-zero coefficients below which the other rows are left out of a product."""
        X = self._X
        size = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
        return float(min(_FEW * self.shape[0], _FEW_PER_BYTE * size))

    def rows(self, index: Any) -> Any:
        """Return the rows ``X[index]``."""
        if sparse.issparse(self._X) or isinstance(index, slice):
            return self._X[index]
        return np.take(self._X, index, axis=0)  # faster than an index


def far_means(X: Any) -> Array | None:
    r"""Return approximate means of the columns if products in single precision require them; otherwise None.

    A product with rows around a mean :math:`\mu` has a rounding error of the order of :math:`\epsilon |\mu|`. Loss and
    gradient depend on differences of rows only, so a certified gap would not be a bound if the means were large: 1e6
    for columns with a standard deviation of 1 gives errors of 0.06. The difference of two close numbers is exact.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The rows.

    Returns
    -------
    ndarray of shape (n_features,) or None
        The means, in double precision with values of single precision.
    """
    if sparse.issparse(X) or X.dtype != np.float32 or not X.size:
        return None
    part = X[:: max(1, X.shape[0] // _ROWS_FOR_MEANS)].astype(np.float64)
    mean, spread = part.mean(axis=0), part.std(axis=0)
    # The error of a column that does not vary must be small relative to the other columns.
    spread[spread <= 1e-7 * np.abs(mean)] = spread.max()
    return mean.astype(np.float32).astype(np.float64) if (np.abs(mean) > _FAR * spread).any() else None


def row_scores(X: Any, w: Array, means: Array | None) -> Array:
    """Return ``X @ w`` in double precision; with ``means``, from differences to them, a block of rows at a time."""
    if means is None:
        return np.asarray(X @ w.astype(X.dtype, copy=False), dtype=np.float64)
    scores = np.empty(X.shape[0])
    short, at_means = w.astype(X.dtype), float(means @ w)
    for rows, centred in _centred_blocks(X, means):
        scores[rows] = centred @ short
    scores += at_means
    return scores


def row_sum(X: Any, c: Array, means: Array | None) -> Array:
    """Return ``X.T @ c`` in double precision; with ``means``, from differences to them, a block of rows at a time."""
    if means is None:
        return np.asarray(X.T @ c.astype(X.dtype, copy=False), dtype=np.float64)
    total = means * float(c.sum())
    for rows, centred in _centred_blocks(X, means):
        total += centred.T @ c[rows].astype(X.dtype)
    return total


def _centred_blocks(X: Any, means: Array) -> Iterator[tuple[slice, Any]]:
    origin = means.astype(X.dtype)
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, X[rows] - origin


class StandardizedOperator:
    """Matrix in memory with standardized columns, ``(X - mean) / scale``, without a standardized copy.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The data.
    mean, scale : ndarray of shape (n_features,)
        Numbers to subtract from the columns, all zero for a sparse matrix, and to divide them by. A column with a scale
        of 0, which does not vary, is replaced by zeros: differences to its mean would be rounding errors.
    """

    def __init__(self, X: Any, mean: Array, scale: Array) -> None:
        self._operator = MatrixOperator(X)
        self.mean, self._given = mean, scale
        self.scale = np.where(scale > 0, scale, 1.0)
        self._factor = (scale > 0) / self.scale
        self.shape = self._operator.shape

    @property
    def is_sparse(self) -> bool:
        """Whether the data are sparse."""
        return self._operator.is_sparse

    def like(self, X: Any) -> StandardizedOperator:
        """Return an operator for other rows with the same means and scales."""
        return StandardizedOperator(X, self.mean, self._given)

    def matvec(self, w: Array) -> Array:
        """Return the scores of the standardized rows."""
        v = w * self._factor
        scores = self._operator.matvec(v)
        scores -= float(self.mean @ v)
        return scores

    def rmatvec(self, c: Array) -> Array:
        """Return the sum of the standardized rows with the coefficients ``c``."""
        result: Array = (self._operator.rmatvec(c) - self.mean * float(c.sum())) * self._factor
        return result

    def rows(self, index: Any) -> Any:
        """Return some standardized rows, in the precision of the data; ``index`` may also be a slice."""
        rows = self._operator.rows(index)
        if sparse.issparse(rows):
            return rows @ sparse.diags_array(self._factor, dtype=rows.dtype)
        centred = rows - self.mean.astype(rows.dtype, copy=False)
        centred *= self._factor.astype(rows.dtype, copy=False)
        return centred


class RotatedOperator:
    """Data in other coordinates: the weights ``v`` stand for the weights ``matrix @ v`` of the features.

    Parameters
    ----------
    operator : Operator
        The data.
    matrix : ndarray of shape (n_features, n_features)
        Map from weights in the new coordinates to weights of the features.
    """

    def __init__(self, operator: Operator, matrix: Array) -> None:
        self._operator, self.matrix, self.shape = operator, matrix, operator.shape

    def matvec(self, v: Array) -> Array:
        """Return the scores."""
        return self._operator.matvec(self.matrix @ v)

    def rmatvec(self, c: Array) -> Array:
        """Return the product of the transposed data with ``c``."""
        return np.asarray(self.matrix.T @ self._operator.rmatvec(c))

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows in the new coordinates."""
        return self._operator.rows(index) @ self.matrix


class CountingOperator:
    """Operator that counts passes over the data: one for each product with all rows.

    Parameters
    ----------
    operator : Operator
        The data.
    share : float, default=1.0
        What a product counts: less than one if the operator has a part of the rows only.

    Attributes
    ----------
    count : float
        The passes so far, with their fractions.
    """

    def __init__(self, operator: Operator, share: float = 1.0) -> None:
        self.operator = operator
        self.shape = operator.shape
        self.count, self._share = 0.0, share

    @property
    def passes(self) -> int:
        """Number of passes so far, rounded up."""
        return math.ceil(self.count - 1e-9)

    def matvec(self, w: Array) -> Array:
        """Return the scores; one pass."""
        self.count += self._share
        return self.operator.matvec(w)

    def rmatvec(self, c: Array) -> Array:
        """Return the weighted sum of rows; one pass."""
        self.count += self._share
        return self.operator.rmatvec(c)

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows; not counted as a pass."""
        return self.operator.rows(index)


def as_operator(X: Any) -> Operator:
    """Convert data to an operator, the input format of the solvers.

    Parameters
    ----------
    X : ndarray, SciPy sparse matrix or array, or Operator, of shape (n_samples, n_features)
        The data. Floating-point numbers are used in their precision, without a copy; integers are converted once, and
        sparse formats other than CSR are converted to CSR. A custom operator (an object with ``shape``, ``matvec``,
        ``rmatvec`` and ``rows``) is returned unchanged.

    Returns
    -------
    Operator
        The operator.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.operators import as_operator
    >>> as_operator(np.array([[1, 2], [3, 4]])).matvec(np.array([1.0, 0.5]))
    array([2., 5.])
    """
    if sparse.issparse(X):
        return MatrixOperator(X.tocsr())
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise ValueError(f"X must be a 2-D array of numbers; got {X.ndim} dimensions and dtype {X.dtype}")
        return MatrixOperator(X)
    missing = [name for name in ("shape", "matvec", "rmatvec", "rows") if not hasattr(X, name)]
    if missing:
        raise TypeError(
            f"X must be a NumPy array, a SciPy sparse matrix or an operator; got {type(X).__name__}, which has no "
            + ", ".join(missing)
        )
    result: Operator = X
    return result


def zero_scores(operator: Operator) -> Any:
    """Return the scores of zero weights, of the type of the operator's scores.

    The array is a view of one number, which needs no memory. An operator whose scores are not arrays has a method
    ``zero_scores``.
    """
    if isinstance(operator, CountingOperator):
        return zero_scores(operator.operator)
    make = getattr(operator, "zero_scores", None)
    return np.broadcast_to(0.0, operator.shape[0]) if make is None else make()


def absolute_sum(coefficients: Any) -> float:
    """Return the sum of the absolute values of coefficients, which may be of another type than an array."""
    if not isinstance(coefficients, np.ndarray):
        return float(coefficients.absolute_sum())
    return float(sum(np.abs(coefficients[i : i + _BLOCK]).sum() for i in range(0, coefficients.size, _BLOCK)))


def product_rounding(coefficients: Any, scores: Any) -> float:
    """Return an estimate, on the safe side, of the rounding error of a loss minus ``coefficients @ scores``.

    This difference is the value of a cut at zero weights. At scores of 1e15, which the first steps of a solver reach on
    features of a large scale, its error is about 1, and without a correction the cut would not be a lower bound. A loss
    is a mean of differences of scores, some of which may cancel, so its terms can be as large as the largest score,
    even if all coefficients are small. Vectors of another type than an array have a method ``product_size``.
    """
    if isinstance(scores, np.ndarray):
        size = (1.0 + absolute_sum(coefficients)) * max(abs(float(scores.max())), abs(float(scores.min())))
    else:
        size = coefficients.product_size()
    return float(_UNITS * _EPS * size)


# Maximum number of rows for an eigendecomposition of the Gram matrix, if there are more features than rows.
_MAX_GRAM = 2000


def row_space(operator: Operator, X: Any) -> tuple[Operator, Callable[[Array], Array], Callable[[Array], Array]]:
    """Rotate data with more features than rows into the span of the rows.

    The optimum of ``1/2 |w|^2 + loss(X w)`` lies in the span of the rows, ``w = X.T v``. With the Gram matrix
    ``X X.T = V diag(e) V.T``, the problem for the data ``V diag(sqrt(e))`` is equivalent, including the norms.

    Returns
    -------
    operator : Operator
        The rotated data, or the given operator if a rotation would not be faster.
    lower, lift : callable
        Maps from the weights of the given features to those of the rotated features, and back.
    """
    n_rows, n_features = operator.shape
    if n_rows >= n_features or n_rows > _MAX_GRAM:
        return operator, _same, _same
    exact = X.astype(np.float64, copy=False)
    gram = exact @ exact.T
    values, vectors = linalg.eigh(gram.toarray() if sparse.issparse(gram) else gram)
    keep = values > 1e-12 * values[-1]
    if not keep.any():
        return operator, _same, _same
    root, vectors = np.sqrt(values[keep]), vectors[:, keep]

    def lift(w: Array) -> Array:
        return operator.rmatvec(vectors @ (w / root))

    def lower(w: Array) -> Array:
        result: Array = (vectors.T @ operator.matvec(w)) / root
        return result

    return MatrixOperator(vectors * root), lower, lift


def _same(w: Array) -> Array:
    return w
