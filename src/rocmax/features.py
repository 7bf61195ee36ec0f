"""Spline features of each column, for additive models."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from rocmax._docstrings import publish
from rocmax._support import Array, Index
from rocmax._validation import CHECKING


class SplineFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Piecewise-linear spline features of each column, for additive models.

    With the knots :math:`t_0 < \dots < t_m` of a column, which are quantiles of its training values, a value x becomes
    the m features

    .. math:: s_i(x) = \min(1, \max(0, (x - t_{i-1}) / (t_i - t_{i-1}))), \quad i = 1, \dots, m.

    They are I-splines of order one. A linear model of them is a sum of one continuous function per column, linear
    between the knots and constant beyond the outermost ones, so that outliers have a bounded effect. A weight is the
    rise of the score between two knots, and a quadratic penalty on the weights is one on the rises: the less data, the
    smoother the functions.

    Missing values (NaN) are replaced by the median of the column. A column with missing values in the training rows has
    another feature, which is 1 for them and 0 otherwise. A constant column becomes one feature that is zero.

    Parameters
    ----------
    quantiles : array-like of float, default=(0.0, 0.05, 0.275, 0.5, 0.725, 0.95, 1.0)
        Probabilities of the quantiles that are the knots, in ascending order, from 0 to 1; at least two. Equal
        quantiles of a column are one knot.

    Attributes
    ----------
    knots_ : list of ndarray
        Knots of each column; one knot for a constant column.
    medians_ : ndarray of shape (n_features,)
        Median of each column; 0 if all its values are missing.
    missing_ : ndarray of int
        Columns with missing values in the training rows.
    n_features_in_, feature_names_in_

    See Also
    --------
    sklearn.preprocessing.SplineTransformer : B-splines of any degree; it cannot be saved by :func:`rocmax.save`.

    References
    ----------
    J. O. Ramsay (1988). Monotone regression splines in action. Statistical Science 3, 425-441.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rocmax import PartialAUCClassifier, SplineFeatures
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = np.abs(X[:, 0]) > 1
    >>> linear = PartialAUCClassifier(max_fpr=0.1).fit(X, y)
    >>> additive = make_pipeline(SplineFeatures(), StandardScaler(), PartialAUCClassifier(max_fpr=0.1)).fit(X, y)
    >>> linear.score(X, y) < 0.75, additive.score(X, y) > 0.9
    (True, True)
    >>> SplineFeatures(quantiles=[0, 0.5, 1]).fit([[0.0], [1.0], [4.0]]).transform([[0.5], [9.0]])
    array([[0.5, 0. ],
           [1. , 1. ]])
    """

    def __init__(self, quantiles: Any = (0.0, 0.05, 0.275, 0.5, 0.725, 0.95, 1.0)) -> None:
        self.quantiles = quantiles

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the knots.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN for missing values.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        quantiles = self._check_quantiles()
        X = self._rows(X, reset=True)
        missing = np.isnan(X)
        known = [X[~missing[:, j], j] for j in range(X.shape[1])]
        self.knots_ = [_knots(values, quantiles) for values in known]
        self.medians_ = np.array([np.median(values) if values.size else 0.0 for values in known])
        self.missing_ = np.flatnonzero(missing.any(axis=0))
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN for missing values.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            The features of each column in turn, then the indicators of missing values.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        missing = np.isnan(X)
        filled = np.where(missing, self.medians_, X)
        columns = [_rises(filled[:, j], knots) for j, knots in enumerate(self.knots_)]
        return np.hstack([*columns, missing[:, self.missing_].astype(np.float64)])

    @property
    def origins_(self) -> Index:
        """Place of the column that each feature is made from."""
        sizes = [max(1, knots.size - 1) for knots in self.knots_]
        return np.append(np.repeat(np.arange(len(sizes)), sizes), self.missing_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features: the column and the interval between two knots.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns. None takes those of the fit, or x0, x1 and so on.

        Returns
        -------
        ndarray of str
            Names.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        found = []
        for name, knots in zip(names, self.knots_, strict=True):
            ends = pairwise(knots) if knots.size > 1 else [(knots[0], knots[0])]
            found += [f"{name} from {low:.6g} to {high:.6g}" for low, high in ends]
        found += [f"{names[j]} is missing" for j in self.missing_]
        return np.array(found, dtype=object)

    def _rows(self, X: Any, reset: bool) -> Array:
        with CHECKING:
            rows: Array = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        return rows

    def _check_quantiles(self) -> Array:
        given = np.asarray(self.quantiles, dtype=np.float64)
        if given.ndim != 1 or given.size < 2 or not (np.diff(given) > 0).all() or given[0] < 0 or given[-1] > 1:
            raise ValueError(f"quantiles must be at least two ascending numbers from 0 to 1; got {self.quantiles!r}")
        return given


def _knots(values: Array, quantiles: Array) -> Array:
    """Return the distinct quantiles of known values; a single zero if there are none."""
    if not values.size:
        return np.zeros(1)
    # Of the values, not between them: the mean of two huge values can overflow.
    found: Array = np.quantile(values, quantiles, method="nearest")
    # A smaller difference would be rounding error.
    apart = np.diff(found / 2) > 1e-9 * np.maximum(np.abs(found[1:] / 2), np.abs(found[:-1] / 2))
    kept: Array = found[np.append(True, apart)]
    return kept


def _rises(column: Array, knots: Array) -> Array:
    """Return the features of one column without missing values."""
    if knots.size == 1:
        return np.zeros((column.size, 1))
    # Halves, because the difference of two huge values can overflow.
    low, width = knots[:-1] / 2, np.diff(knots / 2)
    with np.errstate(over="ignore"):
        rises: Array = np.clip((column[:, np.newaxis] / 2 - low) / width, 0.0, 1.0)
    return rises


__all__ = ["SplineFeatures"]

# The name is exported by the package rocmax.
publish("rocmax", globals(), __all__)
