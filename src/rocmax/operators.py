"""Data access for solvers: products with the data matrix, and selected rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg.lapack import dpstrf

from rocmax._docstrings import publish
from rocmax._support import Array

__all__ = ["MatrixOperator", "Operator", "as_operator"]

# In single precision, the rows of a matrix are centered for products if the mean of a column is above this multiple of
# its standard deviation. Both are from a sample of about this number of rows.
FAR, _ROWS_FOR_MEANS = 64.0, 1000
# Values of centered rows that are in memory at a time.
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
    are computed from differences to approximate means. In single precision, columns that do not vary are left out of
    the products and added in double precision. A sparse matrix in single precision with columns far from zero is
    converted to double precision.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The data.
    """

    def __init__(self, X: Any) -> None:
        self._X = with_sufficient_precision(X) if X.dtype.kind == "f" else X.astype(np.float64)
        self.shape: tuple[int, int] = X.shape

    @property
    def is_sparse(self) -> bool:
        """Whether the data are sparse."""
        return bool(sparse.issparse(self._X))

    def matvec(self, w: Array) -> Array:
        """Return the scores ``X @ w``."""
        return row_scores(self._X, w, self._reference)

    def rmatvec(self, c: Array) -> Array:
        """Return ``X.T @ c``."""
        return row_sum(self._X, c, self._reference)

    @cached_property
    def _reference(self) -> Reference | None:
        return reference_point(self._X)

    def rows(self, index: Any) -> Any:
        """Return the rows ``X[index]``."""
        if sparse.issparse(self._X) or isinstance(index, slice):
            return self._X[index]
        return np.take(self._X, index, axis=0)  # faster than an index


class Reference(NamedTuple):
    """Point from which products in single precision are computed.

    With ``constant_only``, the point is zero except in columns that do not vary: their part of a product is computed
    separately, and no row is changed.
    """

    point: Array
    constant_only: bool


def reference_point(X: Any) -> Reference | None:
    r"""Return the point from which products with rows in single precision are computed; None if none is needed.

    A product with rows around a mean :math:`\mu` has a rounding error of the order of :math:`\epsilon |\mu|`. Loss and
    gradient depend on differences of rows only, so a certified gap would not be a bound if the means were large: 1e6
    for columns with a standard deviation of 1 gives errors of 0.06. The difference of two close numbers is exact.

    In a column that does not vary, only the penalty limits the weight, which then is the rounding error of the
    gradient. It adds a large number to all scores, whose differences are lost.
    """
    if sparse.issparse(X) or X.dtype != np.float32 or not X.size:
        return None
    part = X[:: max(1, X.shape[0] // _ROWS_FOR_MEANS)]
    equal, first = (part == part[0]).all(axis=0), part[0].astype(np.float64)
    constant = np.flatnonzero(equal & (first != 0))
    constant = constant[_equal_in_all_rows(X, constant)] if constant.size else constant
    values = part.astype(np.float64)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    # A column that varies in other rows only: its error must be small relative to the other columns.
    spread[equal] = spread.max()
    mean[constant] = 0.0
    constant_only = not (np.abs(mean) > FAR * spread).any()
    if constant_only and not constant.size:
        return None
    point = np.zeros_like(mean) if constant_only else mean.astype(np.float32).astype(np.float64)
    point[constant] = first[constant]
    return Reference(point, constant_only)


def _equal_in_all_rows(X: Any, columns: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which of these columns have the same value in all rows."""
    equal, values = np.ones(columns.size, dtype=bool), X[0, columns]
    step = max(1, _BLOCK // columns.size)
    for start in range(0, X.shape[0], step):
        equal &= (X[start : start + step, columns] == values).all(axis=0)
        if not equal.any():
            break
    return equal


def with_sufficient_precision(X: Any) -> Any:
    """Return a sparse matrix in double precision if a column is far from zero, see :func:`reference_point`.

    Differences to a mean would not be sparse. Such columns are stored in full, which is rare in a sparse matrix; only
    the values are copied.
    """
    if not sparse.issparse(X) or X.dtype != np.float32 or not X.nnz:
        return X
    part = X[:: max(1, X.shape[0] // _ROWS_FOR_MEANS)].astype(np.float64)
    if not _is_far(part):
        return X
    return sparse.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)


def row_scores(X: Any, w: Array, reference: Reference | None) -> Array:
    """Return ``X @ w`` in double precision; from differences to a point if there is one."""
    if reference is None:
        return np.asarray(X @ w.astype(X.dtype, copy=False), dtype=np.float64)
    point, at_point = reference.point, float(reference.point @ w)
    if reference.constant_only:
        scores = np.asarray(X @ np.where(point == 0, w, 0.0).astype(X.dtype), dtype=np.float64)
    else:
        scores, short = np.empty(X.shape[0]), w.astype(X.dtype)
        for rows, centered in _centred_blocks(X, point):
            scores[rows] = centered @ short
    scores += at_point
    return scores


def row_sum(X: Any, c: Array, reference: Reference | None) -> Array:
    """Return ``X.T @ c`` in double precision; from differences to a point if there is one."""
    if reference is None:
        return np.asarray(X.T @ c.astype(X.dtype, copy=False), dtype=np.float64)
    point, at_point = reference.point, reference.point * float(c.sum())
    if reference.constant_only:
        return np.where(point == 0, np.asarray(X.T @ c.astype(X.dtype), dtype=np.float64), at_point)
    for rows, centered in _centred_blocks(X, point):
        at_point += centered.T @ c[rows].astype(X.dtype)
    return at_point


def _centred_blocks(X: Any, means: Array) -> Iterator[tuple[slice, Any]]:
    origin = means.astype(X.dtype)
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, X[rows] - origin


def column_scale(mean: Array, variance: Array) -> Array:
    """Return the standard deviation of columns; 0 for one that does not vary, by the rule of ``StandardScaler``."""
    spread = np.sqrt(variance)
    return np.where(spread <= 10 * np.finfo(np.float64).eps * np.abs(mean), 0.0, spread)


class StandardizedOperator:
    """Matrix in memory with standardized columns, ``(X - mean) / scale``, without a standardized copy.

    A column with a scale of 0, which does not vary, is replaced by zeros: differences to its mean would be rounding
    errors. The means of a sparse matrix are 0.
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
        """Return an operator for other rows with the same means and scales, dense or sparse like this one."""
        dense = sparse.issparse(X) and not self.is_sparse
        return StandardizedOperator(X.toarray() if dense else X, self.mean, self._given)

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
        centered = rows - self.mean.astype(rows.dtype, copy=False)
        centered *= self._factor.astype(rows.dtype, copy=False)
        return centered


def standardized(X: Any, weight: Array | None) -> StandardizedOperator:
    """Return an operator with standardized columns; sparse rows are not centered, and constant columns are left out.

    Sparse rows of which most values are stored are made dense if a column is far from zero: without centering, the
    mean would hide the differences between the rows.
    """
    mean, variance = moments(X, weight)
    scale = column_scale(mean, variance)
    if not sparse.issparse(X):
        return StandardizedOperator(X, mean, scale)
    is_far = bool((np.abs(mean) > FAR * scale)[scale > 0].any())
    # A dense value takes 8 bytes, a stored one of a sparse matrix 12.
    if is_far and 12 * X.nnz >= 8 * X.shape[0] * X.shape[1]:
        return standardized(X.toarray(), weight)
    return StandardizedOperator(X, np.zeros(X.shape[1]), scale)


def moments(X: Any, weight: Array | None) -> tuple[Array, Array]:
    """Return the mean and the variance of the columns; those of dense rows in one pass, from differences to a point."""
    if sparse.issparse(X):
        from sklearn.utils.sparsefuncs import mean_variance_axis  # solvers are imported without scikit-learn

        # scikit-learn requires weights of the type of the rows; the largest weights would overflow in single precision.
        if weight is not None and X.dtype != weight.dtype:
            weight = (weight / weight.max()).astype(X.dtype)
        mean, variance = mean_variance_axis(X.tocsr(), axis=0, weights=weight)
        return mean, np.maximum(variance.astype(np.float64), 0.0)  # of constant features, about -1e-47
    n_rows, n_features = X.shape
    origin = X[:: max(1, n_rows // _ROWS_FOR_MEANS)].mean(axis=0, dtype=np.float64)
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


class CountingOperator:
    """Operator that counts passes over the data: one for each product with all rows."""

    def __init__(self, operator: Operator) -> None:
        self.operator, self.shape, self.passes = operator, operator.shape, 0

    def matvec(self, w: Array) -> Array:
        """Return the scores; one pass."""
        self.passes += 1
        return self.operator.matvec(w)

    def rmatvec(self, c: Array) -> Array:
        """Return the weighted sum of rows; one pass."""
        self.passes += 1
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


# Maximum number of rows for a factorization of the Gram matrix, if there are more features than rows.
_MAX_GRAM = 2000


def row_space(
    operator: Operator, X: Any, shift_invariant: bool = False
) -> tuple[Operator, Callable[[Array], Array], Callable[[Array], Array]]:
    """Rotate data with more features than rows into the span of the rows.

    The optimum of ``1/2 |w|^2 + loss(X w)`` lies in the span of the rows, ``w = X.T v``. With the Gram matrix
    ``X X.T = L L.T``, the problem for the data ``L`` is equivalent, including the norms. The Cholesky factorization
    with pivots takes a tenth of the time of an eigendecomposition.

    Columns far from zero would make one eigenvalue so large that the others are lost. With ``shift_invariant``, their
    means are subtracted, which does not change a loss that is invariant to adding a constant to all scores.
    """
    n_rows, n_features = operator.shape
    if n_rows >= n_features or n_rows > _MAX_GRAM:
        return operator, _same, _same
    exact = X.astype(np.float64, copy=False)
    if shift_invariant and _is_far(exact):
        mean = np.asarray(exact.mean(axis=0)).ravel()
        operator = StandardizedOperator(X, mean, np.ones(n_features))
        exact = (exact.toarray() if sparse.issparse(exact) else exact) - mean
    gram = exact @ exact.T
    gram = gram.toarray() if sparse.issparse(gram) else gram
    largest = float(gram.diagonal().max())
    if not largest > 0:
        return operator, _same, _same
    factor, pivots, rank, _ = dpstrf(gram, lower=1, tol=1e-12 * largest)
    factor, basis = np.tril(factor)[:, :rank], pivots[:rank] - 1
    rotated = np.empty_like(factor, order="C")
    rotated[pivots - 1] = factor

    def lift(w: Array) -> Array:
        coefficients = np.zeros(n_rows)
        coefficients[basis] = linalg.solve_triangular(factor[:rank], w, lower=True, trans=1)
        return operator.rmatvec(coefficients)

    def lower(w: Array) -> Array:
        result: Array = linalg.solve_triangular(factor[:rank], operator.matvec(w)[basis], lower=True)
        return result

    return MatrixOperator(rotated), lower, lift


def _is_far(X: Any) -> bool:
    """Return whether the mean of a column is large relative to its standard deviation."""
    squares = X.multiply(X) if sparse.issparse(X) else X**2
    mean, square = (np.asarray(values.mean(axis=0)).ravel() for values in (X, squares))
    return bool((mean**2 > FAR**2 * (square - mean**2)).any())


def _same(w: Array) -> Array:
    return w


publish("rocmax.operators", globals(), __all__)
