"""Streaming estimators on the partitions of dask collections."""

from __future__ import annotations

from copy import deepcopy
from inspect import signature
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from rocmax._packages import need
from rocmax.backends.dask.partitions import LoadedPart, split
from rocmax.backends.dask.tasks import Tasks
from rocmax.data import DataError


def partial_fit(
    estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any = None, *, timeout: float = 60.0
) -> Any:
    """Train a streaming estimator on the partitions of dask collections, one after the other.

    The estimator moves to the workers, and the rows stay there: the driver holds the estimator only.

    Parameters
    ----------
    estimator : estimator with ``partial_fit``
        For example :class:`~rocmax.MiniBatchClassifier` or :class:`~rocmax.PSAMClassifier`. It is not modified; the
        training of a fitted one is continued.
    X : dask Array or DataFrame of shape (n_samples, n_features)
        Training rows. The estimator gets the names of the columns of a DataFrame.
    y : dask Array or Series of shape (n_samples,)
        Two classes, of any type, with the partitions of ``X``.
    classes : array-like of shape (2,)
        All classes; a partition may contain one class only.
    sample_weight : dask Array or Series of shape (n_samples,), default=None
        Sample weights, with the partitions of ``X``, for estimators whose ``partial_fit`` takes them.
    timeout : float, default=60.0
        Seconds for which workers are awaited if a cluster has none, or if none of them does anything, and after which
        a worker that sends no heartbeats is given up, but at least 10.

    Returns
    -------
    estimator
        A copy of the estimator, trained on all partitions.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax import PSAMClassifier
    >>> from rocmax.backends.dask import partial_fit
    >>> X = da.random.default_rng(0).normal(size=(2000, 3), chunks=(500, 3))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> partial_fit(PSAMClassifier(random_state=0), X, y, classes=[0, 1]).coef_.shape
    (1, 3)
    """
    if not hasattr(estimator, "partial_fit"):
        raise TypeError(f"estimator must have partial_fit; got {type(estimator).__name__}")
    if sample_weight is not None and "sample_weight" not in signature(estimator.partial_fit).parameters:
        raise TypeError(
            f"sample_weight must be None, because {type(estimator).__name__}.partial_fit takes no weights; got "
            f"{type(sample_weight).__name__}"
        )
    # Purity would hash the rows; each step depends on the one before.
    step = need("dask").delayed(_step, pure=False)
    parts = split(X, y, sample_weight)
    model: Any = deepcopy(estimator)
    for part in parts:
        model = step(model, part, classes)
    found = Tasks(timeout).compute([model], parts)[0]
    try:
        check_is_fitted(found)
    except NotFittedError as error:
        raise DataError(f"the partitions must have rows; got {len(parts)} without any") from error
    return found


def _step(model: Any, part: LoadedPart, classes: Any) -> Any:
    if not part.X.shape[0]:
        return model
    X = part.X if part.names is None else need("pandas").DataFrame(part.X, columns=part.names, copy=False)
    weights = {} if part.weight is None else {"sample_weight": part.weight}
    try:
        return model.partial_fit(X, part.y, classes=classes, **weights)
    except ValueError as error:
        raise DataError(f"partition {part.number}: {error}") from error
