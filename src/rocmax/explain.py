"""Contributions: what each column adds to the score of a row, of linear and additive models, trees and ensembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from rocmax._docstrings import publish
from rocmax._support import Array, Index, need

__all__ = ["Contributions", "contributions"]


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What each column adds to the score of each row.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_columns)
        Contributions. Positive values raise the score.
    reference : ndarray of shape (n_samples,)
        Score without the contributions. It is the same for all rows, unless their thresholds differ.
    columns : list of str
        Names of the columns.
    data : array-like of shape (n_samples, n_columns)
        Values of the columns.
    """

    values: Array
    reference: Array
    columns: list[str]
    data: Any

    @property
    def scores(self) -> Array:
        """Sum of the contributions and the reference: the score of each row."""
        result: Array = self.values.sum(axis=1) + self.reference
        return result

    def to_shap(self) -> Any:
        """Return the contributions as an object that the plots of the package ``shap`` take.

        Returns
        -------
        shap.Explanation
            The contributions, the reference, and the values of the columns.
        """
        data = self.data[self.columns] if hasattr(self.data, "columns") else self.data
        data = data.toarray() if sparse.issparse(data) else np.asarray(data)
        return need("shap").Explanation(self.values, self.reference, data, feature_names=self.columns)


def contributions(model: Any, X: Any) -> Contributions:
    """Return what each column of `X` adds to the decision value of each row.

    The sum of the contributions of a row and of its reference is the value of ``decision_function``. Columns that a
    pipeline makes from one column, such as splines or one-hot columns, are added up.

    Parameters
    ----------
    model : estimator
        A fitted linear classifier, :class:`rocmax.BoostedClassifier` or :class:`rocmax.EnsembleClassifier`; a pipeline
        that ends with one, and whose other steps make each feature from one column; or a threshold classifier on one of
        them.
    X

    Returns
    -------
    Contributions
        For linear models, the weight of a feature times its difference to the mean of the training rows; for trees, the
        SHAP values of the engine, averaged over the models; for ensembles, those of the members, scaled to their ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax import AUCClassifier, SplineFeatures
    >>> from rocmax.explain import contributions
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(SplineFeatures(), AUCClassifier()).fit(X[:, :5], y)
    >>> found = contributions(model, X[:10, :5])
    >>> found.values.shape
    (10, 5)
    >>> bool(np.allclose(found.scores, model.decision_function(X[:10, :5])))
    True
    """
    check_explained(model)
    if hasattr(model, "contributions"):
        found: Contributions = model.contributions(X)
        return found
    if not hasattr(model, "steps"):
        return linear_contributions(model, X, X)
    columns = column_names(model, X)
    rows, origin = X, np.arange(len(columns))
    for _, step in model.steps[:-1]:
        origin = origin[_origins(step, origin.size)]
        rows = rows if _is_empty(step) else step.transform(rows)
        if rows.shape[1] != origin.size:
            raise _of_several(step)
    final = model.steps[-1][1]
    if hasattr(final, "coef_"):
        values, reference = _linear(final, rows, origin, len(columns))
        return Contributions(values, reference, columns, X)
    part: Contributions = final.contributions(rows)
    return Contributions(part.values @ sums(origin, len(columns)), part.reference, columns, X)


def check_explained(model: Any) -> None:
    """Raise an error unless a fitted model has contributions."""
    model = getattr(model, "estimator_", model)
    final = getattr(model, "steps", [("", model)])[-1][1]
    check_is_fitted(final)
    of_sklearn = hasattr(final, "coef_") and not type(final).__module__.startswith("rocmax")
    if not of_sklearn and not hasattr(final, "contributions"):
        raise TypeError(
            "contributions are those of linear and additive models, BoostedClassifier and EnsembleClassifier, alone, "
            f"in a pipeline or in a threshold classifier; got {type(final).__name__}"
        )
    if hasattr(final, "coef_") and not hasattr(final, "_feature_means_"):
        raise ValueError(
            f"contributions refer to the means of the training rows, which this {type(final).__name__} does not have: "
            "it was saved by an earlier version, or fitted by partial_fit or by scikit-learn alone. Fit it again, with "
            "the method fit of a classifier of rocmax"
        )


def column_names(model: Any, X: Any) -> list[str]:
    """Return the names of the columns that a fitted model takes; x0, x1 and so on if it does not know them."""
    known = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(np.shape(X)[1])] if known is None else [str(name) for name in known]


def fill(values: Array, total: Array) -> Array:
    """Return contributions with the given sum in each row: what they lack is shared out in proportion to their size."""
    size = np.abs(values)
    whole = size.sum(axis=1, keepdims=True)
    share = np.divide(size, whole, out=np.full_like(size, 1 / size.shape[1]), where=whole > 0)
    result: Array = values + share * (total - values.sum(axis=1))[:, np.newaxis]
    return result


def linear_contributions(model: Any, rows: Any, X: Any) -> Contributions:
    """Return the contributions to the decision values of a linear model; ``rows`` are the validated rows of ``X``."""
    check_explained(model)
    columns = column_names(model, rows)
    return Contributions(*_linear(model, rows, np.arange(len(columns)), len(columns)), columns, X)


def _linear(model: Any, rows: Any, origin: Index, n_columns: int) -> tuple[Array, Array]:
    """Return the contributions of columns, and the reference, with the column that each feature is made from."""
    to_columns = sums(origin, n_columns, np.ravel(model.coef_))
    center = model._feature_means_ @ to_columns
    parts = rows @ to_columns
    values = (parts.toarray() if sparse.issparse(parts) else np.asarray(parts)) - center
    return values, np.full(values.shape[0], float(np.ravel(model.intercept_)[0]) + float(center.sum()))


def sums(origin: Index, n_columns: int, weights: Any = 1.0) -> Any:
    """Return the matrix by which features, times weights, add up to their columns."""
    n_features = origin.size
    values = np.broadcast_to(np.asarray(weights, dtype=np.float64), n_features)
    return sparse.csr_array((values, (np.arange(n_features), origin)), shape=(n_features, n_columns))


def _origins(step: Any, n_columns: int) -> Index:
    """Return the place of the column that each feature of a fitted transformer is made from."""
    found = np.arange(n_columns)
    if _is_empty(step):
        return found
    if hasattr(step, "steps"):
        for _, inner in step.steps:
            found = found[_origins(inner, found.size)]
        return found
    if hasattr(step, "transformers_"):
        named = {name: i for i, name in enumerate(getattr(step, "feature_names_in_", ()))}
        parts = [_places(places, named, found) for _, _, places in step.transformers_]
        made = zip(step.transformers_, parts, strict=True)
        kept = [own[_origins(one, own.size)] for (_, one, _), own in made if own.size and one != "drop"]
        return np.concatenate(kept or [found[:0]])
    if hasattr(step, "origins_"):
        result: Index = step.origins_
        return result
    if hasattr(step, "get_support"):
        return np.asarray(step.get_support(indices=True))
    if hasattr(step, "_n_features_outs"):  # one-hot columns
        return np.repeat(found, step._n_features_outs)
    if hasattr(step, "add_indicator"):  # imputed values, and indicators of missing ones
        return np.append(found, step.indicator_.features_) if step.add_indicator else found
    if isinstance(step, OneToOneFeatureMixin) or getattr(step, "func", step) is None:
        return found
    raise _of_several(step)


def _is_empty(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def _places(places: Any, named: dict[Any, int], every: Index) -> Index:
    """Return the positions of the columns of a part of a ColumnTransformer, given by name, position, slice or mask."""
    if isinstance(places, slice):
        return every[places]
    listed = np.atleast_1d(places)
    if listed.dtype.kind in "iub":
        return np.asarray(every[listed])
    return np.array([named[name] for name in listed], dtype=np.intp)


def _of_several(step: Any) -> TypeError:
    return TypeError(
        "contributions of a pipeline require steps that make each feature from one column, such as SplineFeatures, "
        f"scalers, imputers and one-hot encoders; got {type(step).__name__}"
    )


publish("rocmax.explain", globals(), __all__)
