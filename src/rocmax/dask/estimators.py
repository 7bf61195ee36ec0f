"""Estimators for dask collections."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rocmax._support import need
from rocmax._validation import check_flag, check_number, positive_index
from rocmax.dask.cluster import (
    Cluster,
    DaskShards,
    LabelSet,
    PartitionFacts,
    aligned,
    check_some_rows,
)
from rocmax.dask.metrics import partial_auc_score
from rocmax.data import DataError
from rocmax.linear.auc import AUCClassifier
from rocmax.linear.partial_auc import PartialAUCClassifier
from rocmax.linear.sharded import Checkpoint, ShardedSet, check_supported, fit_shards
from rocmax.sharded.driver import Space

# Base classes of the estimators on dask collections.


class DaskClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Model that was fitted on dask collections, and its predictions for others."""

    # The plain estimator.
    _plain: Any
    classes_: NDArray[Any]
    pos_label: Any

    def to_local(self) -> Any:
        """Return the fitted model as the plain estimator, which does not need dask.

        Returns
        -------
        AUCClassifier, PartialAUCClassifier or BoostedClassifier
            The model.
        """
        check_is_fitted(self)
        local = self._unfitted()
        local.__dict__.update(fitted_attributes(self))
        return local

    def _unfitted(self) -> Any:
        """Return the plain estimator with the parameters of this one."""
        return self._plain(**self.get_params())

    def decision_function(self, X: Any) -> Any:
        """Return the score of each row minus the threshold; positive values indicate ``classes_[1]``.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Rows. Other input is passed to the plain estimator.

        Returns
        -------
        dask Array or Series of shape (n_samples,)
            Decision values, computed on the workers.
        """
        return self._mapped(X, self._plain.decision_function, np.zeros(1))

    def positive_scores(self, X: Any) -> Any:
        """Return scores in which higher means more likely positive, whatever the order of the labels.

        These are the scores for the metrics of :mod:`rocmax.dask`. Rows with a score above 0 are predicted
        positive.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Rows. Other input is passed to the plain estimator.

        Returns
        -------
        dask Array or Series of shape (n_samples,)
            The values of ``decision_function``, negated if the positive class is ``classes_[0]``.
        """
        return self._mapped(X, self._plain.positive_scores, np.zeros(1))

    def predict(self, X: Any) -> Any:
        """Return the predicted class of each row.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Rows. Other input is passed to the plain estimator.

        Returns
        -------
        dask Array or Series of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return self._mapped(X, self._plain.predict, self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure that this estimator optimizes, computed on the given rows.

        It is that of :func:`rocmax.dask.partial_auc_score` for the values of :meth:`positive_scores`. The plain
        estimator also joins values that differ by rounding error only.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Rows. Other input is passed to the plain estimator.
        y : dask Array or Series of shape (n_samples,)
            True class labels.
        sample_weight : dask Array or Series of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        float
            Value of the measure.
        """
        if not need("dask").is_dask_collection(X):
            found: float = self.to_local().score(X, y, sample_weight)
            return found
        scores = self.positive_scores(X)
        index = positive_index(self.classes_, self.pos_label)
        limits = {name: getattr(self, name) for name in ("min_fpr", "max_fpr", "min_tpr") if hasattr(self, name)}
        label = self.classes_[index]
        estimate = partial_auc_score(y, scores, **limits, sample_weight=sample_weight, pos_label=label)
        return estimate.value

    def _mapped(self, X: Any, method: Callable[..., Any], like: NDArray[Any]) -> Any:
        """Apply a method to each partition; ``like`` has values of the type of the result."""
        local = self.to_local()
        if not need("dask").is_dask_collection(X):
            return method(local, X)
        if hasattr(X, "map_partitions"):
            # The type of strings is found from their values.
            meta = need("pandas").Series(like).iloc[:0]
            return X.map_partitions(_applied_to_frame, local, method, meta.dtype, meta=meta)
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        return X.map_blocks(_applied, local, method, like.dtype, drop_axis=1, dtype=like.dtype, meta=like[:0])


class DaskLinear(DaskClassifier):
    """Fit of a linear estimator on dask collections."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        standardize: bool = True,
        checkpoint: Any = None,
        timeout: float = 60.0,
    ) -> Self:
        """Fit the model on the workers of the current client.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Training rows. Each worker loads its own partitions and keeps them in memory during the fit.
        y : dask Array or Series of shape (n_samples,)
            Two classes, of any type, with the partitions of ``X``.
        sample_weight : dask Array or Series of shape (n_samples,), default=None
            Sample weights, with the partitions of ``X``.
        standardize : bool, default=True
            Whether the penalty or the constraint refers to standardized features; ``coef_`` always refers to the
            original features.
        checkpoint : str or Path, default=None
            File in which the state of the fit is saved after each iteration. If it exists, the fit continues from it; a
            checkpoint of other data or parameters is an error. It is removed when the fit ends.
        timeout

        Returns
        -------
        self
        """
        local: Any = self._unfitted()
        local._check_parameters()
        check_supported(local)
        check_flag("standardize", standardize)
        check_number("timeout", timeout, above=0.0)
        saved = None if checkpoint is None else Checkpoint(checkpoint)
        shards = DaskShards(Cluster(current_client(), timeout), aligned(X=X, y=y, sample_weight=sample_weight))
        try:
            facts = shards.facts()
            if saved is not None:
                saved.load(self._settings(facts, standardize))
            data, names = _prepare(shards, facts, self.pos_label)
            data.checkpoint = saved
            local.__dict__.update(fitted_attributes(self))
            fit_shards(local, data, standardize, local._previous_weights(data.X.shape[1]), local._progress())
        finally:
            shards.close()
        local.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            local.feature_names_in_ = np.array(names, dtype=object)
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(fitted_attributes(local) | {"n_rounds_": shards.rounds})
        return self

    def _settings(self, facts: list[PartitionFacts], standardize: bool) -> str:
        """Return a description of the partitions and of the parameters that determine the result."""
        ignored = ("verbose", "max_iter")
        settings = {name: value for name, value in self.get_params().items() if name not in ignored}
        content = joblib.hash((settings, standardize, [fact.checksum for fact in facts]))
        return f"{type(self).__name__} {content}"


def current_client() -> Any:
    """Return the client of the user; raise ValueError if there is none."""
    try:
        return need("distributed").default_client()
    except ValueError as error:
        raise ValueError("a distributed.Client must have been created, and not be closed; got none") from error


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return the attributes of the model that a fit has set."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and name != "n_rounds_"}


def _prepare(shards: DaskShards, facts: list[PartitionFacts], pos_label: Any) -> tuple[ShardedSet, list[Any] | None]:
    """Check that the partitions belong together, and make the training set and the names of the features."""
    first = next((fact for fact in facts if fact.shape[0]), facts[0])
    for fact in facts:
        check_columns(fact, first)
    if not first.shape[1]:
        raise DataError(f"X must have at least one column; got none in partition {first.number}")
    classes = reduce(LabelSet.joined, (LabelSet(fact.number, fact.labels) for fact in facts)).labels
    check_some_rows(classes)
    index = positive_index(classes, pos_label)
    ends = np.cumsum([0, *(fact.shape[0] for fact in facts)])
    shards.prepare(classes[index], {fact.number: int(end) for fact, end in zip(facts, ends, strict=False)})
    space = Space(shards, first.shape[1])
    # The driver holds the sample once more as differences of pairs.
    rows = int(np.clip(2_000_000_000 // (32 * first.shape[1]), 1, 20_000))
    return ShardedSet(space, classes, index, sample_rows=rows), first.names


def check_columns(fact: PartitionFacts, first: PartitionFacts) -> None:
    """Raise DataError if a partition has other columns than the first one."""
    if fact.shape[1] != first.shape[1] or fact.names != first.names:
        got = fact.names if fact.names is not None and fact.shape[1] == first.shape[1] else fact.shape[1]
        wanted = first.names if got is fact.names else first.shape[1]
        raise DataError(
            f"partition {fact.number} must have the columns of partition {first.number}, {wanted}; got {got}"
        )


def _applied(block: Any, model: Any, method: Callable[..., Any], dtype: Any) -> Any:
    return method(model, block) if block.shape[0] else np.empty(0, dtype=dtype)


def _applied_to_frame(frame: Any, model: Any, method: Callable[..., Any], dtype: Any) -> Any:
    values = method(model, frame) if len(frame) else ()
    return need("pandas").Series(values, index=frame.index, dtype=dtype)


# Linear estimators on dask collections.


class DaskAUCClassifier(DaskLinear):
    r"""Linear classifier that maximizes the area under the ROC curve, fitted on a dask cluster.

    The problem, the parameters and the certificate are those of :class:`~rocmax.AUCClassifier`. Each worker keeps its
    rows and their scores; the driver exchanges weights, gradients and histograms of scores with the workers. If a
    worker is lost, its partitions are read again by others and the fit continues, with the same result up to rounding.

    Parameters
    ----------
    loss : {"hinge"}, default="hinge"
        Loss on the pairs of a positive and a negative.
    constraint, C, radius, l1_ratio
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``.
    solver : {"certified"}, default="certified"
        Solver of the penalized problem.
    tol, max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the threshold, which maximizes TPR - FPR on the training rows.
    classes_, objective_
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum, including the error of the histograms.
    n_iter_, trace_, n_features_in_, feature_names_in_
    n_rounds_ : int
        Number of requests to the workers.

    See Also
    --------
    rocmax.AUCClassifier : The estimator for data in memory or in files.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from rocmax.dask import DaskAUCClassifier
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     X = da.random.default_rng(0).normal(size=(5000, 5), chunks=(1000, 5))
    ...     y = (X[:, 0] > 1).astype(int)
    ...     model = DaskAUCClassifier().fit(X, y).to_local()
    >>> model.coef_.shape
    (1, 5)
    """

    _plain = AUCClassifier
    __init__ = AUCClassifier.__init__


class DaskPartialAUCClassifier(DaskLinear):
    r"""Linear classifier for the partial area under the ROC curve, fitted on a dask cluster.

    The problem, the parameters and the certificate are those of :class:`~rocmax.PartialAUCClassifier`; the fit on the
    cluster is described in :class:`DaskAUCClassifier`.

    Parameters
    ----------
    min_fpr, max_fpr
    loss : {"auto", "tight", "structural", "hinge"}, default="auto"
        Loss to minimize, as for :class:`~rocmax.PartialAUCClassifier`.
    min_tpr, constraint, C, radius, l1_ratio
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``.
    solver : {"certified"}, default="certified"
        Solver of the penalized problem.
    tol, max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the threshold, which is that of :class:`~rocmax.PartialAUCClassifier` on the training rows.
    classes_, objective_, dual_gap_, n_iter_, trace_, n_features_in_, feature_names_in_
    n_rounds_ : int
        Number of requests to the workers.

    See Also
    --------
    rocmax.PartialAUCClassifier : The estimator for data in memory or in files.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from rocmax.dask import DaskPartialAUCClassifier
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     X = da.random.default_rng(0).normal(size=(5000, 5), chunks=(1000, 5))
    ...     y = (X[:, 0] > 1).astype(int)
    ...     model = DaskPartialAUCClassifier(max_fpr=0.1).fit(X, y)
    >>> model.to_local()
    PartialAUCClassifier()
    """

    _plain = PartialAUCClassifier
    __init__ = PartialAUCClassifier.__init__
