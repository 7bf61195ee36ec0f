"""Base class of the linear estimators on dask collections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import deepcopy
from functools import reduce
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from rocmax._packages import need
from rocmax._typing import Array
from rocmax._validate import check_flag, check_number, positive_index
from rocmax.backends.dask.cluster import Cluster
from rocmax.backends.dask.metrics import partial_auc_score
from rocmax.backends.dask.partitions import LabelSet, check_some_rows, pieces, warn_if_lost
from rocmax.backends.dask.shards import DaskShards
from rocmax.backends.dask.worker import PartFacts
from rocmax.data import DataError
from rocmax.estimators.linear.checkpoint import Checkpoint
from rocmax.estimators.linear.sharded import ShardedSet, check_supported, fit_shards
from rocmax.sharded.vectors import Space

# Parameters of the distributed fit, which the plain estimators do not have.
_OWN = ("client", "standardize", "sample_rows", "checkpoint", "timeout")
# Attributes of a fit that do not belong to the model.
_FACTS = ("n_rounds_",)


class DaskLinear(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Fit of a linear estimator on dask collections."""

    client: Any
    standardize: bool
    sample_rows: int
    checkpoint: Any
    timeout: float
    coef_: Array
    classes_: NDArray[Any]
    pos_label: Any

    @abstractmethod
    def _plain(self, **parameters: Any) -> Any:
        """Return the plain estimator."""

    @abstractmethod
    def _limits(self) -> dict[str, Any]:
        """Return the ranges of false-positive and true-positive rates, as parameters of a measure."""

    def __sklearn_clone__(self) -> Self:
        parameters = {name: clone(value, safe=False) for name, value in self._parameters().items()}
        copied = type(self)(client=self.client, **parameters)
        if hasattr(self, "_metadata_request"):
            copied._metadata_request = deepcopy(self._metadata_request)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        # A client belongs to its process.
        return {**super().__getstate__(), "client": None}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model on the workers.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Training rows. Each worker loads its own partitions and keeps them in memory during the fit.
        y : dask Array or Series of shape (n_samples,)
            Two classes, of any type, with the partitions of ``X``.
        sample_weight : dask Array or Series of shape (n_samples,), default=None
            Sample weights, with the partitions of ``X``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        local = self._local()
        local._check_parameters()
        check_supported(local)
        check_flag("standardize", self.standardize)
        check_number("sample_rows", self.sample_rows, above=0, integer=True)
        check_number("timeout", self.timeout, above=0.0)
        checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, self._settings())
        parts = pieces(X, y, sample_weight)
        cluster = Cluster(self._client(), self.timeout, "; with checkpoint, the next fit continues")
        warn_if_lost(cluster.client, X, y, sample_weight)
        shards = DaskShards(cluster, parts)
        try:
            data, names = _prepare(shards, self.pos_label, self.sample_rows)
            data.checkpoint = checkpoint
            fit_shards(local, data, self.standardize, callback=local._progress())
        finally:
            shards.close()
        for name in _fitted(self):
            delattr(self, name)
        if names is not None and all(isinstance(name, str) for name in names):
            local.feature_names_in_ = np.array(names, dtype=object)
        for name, value in _fitted(local).items():
            setattr(self, name, value)
        self.n_rounds_ = shards.rounds
        return self

    def to_local(self) -> Any:
        """Return the fitted model as the plain estimator, which does not need dask.

        Returns
        -------
        AUCClassifier or PartialAUCClassifier
            The model.
        """
        check_is_fitted(self)
        local = self._local()
        for name, value in _fitted(self).items():
            if name not in _FACTS:
                setattr(local, name, value)
        return local

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
        return self._mapped(X, "decision_function", np.zeros(1))

    def positive_scores(self, X: Any) -> Any:
        """Return scores in which higher means more likely positive, whatever the order of the labels.

        These are the scores for the metrics of :mod:`rocmax.backends.dask`. Rows with a score above 0 are predicted
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
        return self._mapped(X, "positive_scores", np.zeros(1))

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
        return self._mapped(X, "predict", self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure that this estimator optimizes, computed on the given rows.

        It is that of the values of :meth:`positive_scores`. The plain estimator also joins values that differ by
        rounding error only.

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
        where = {} if self.client is None else {"scheduler": self._client()}
        with need("dask").config.set(**where):
            estimate = partial_auc_score(
                y,
                scores,
                **self._limits(),
                sample_weight=sample_weight,
                pos_label=self.classes_[index],
                timeout=self.timeout,
            )
        return estimate.value

    def _mapped(self, X: Any, method: str, like: NDArray[Any]) -> Any:
        """Apply a method to each partition; ``like`` has values of the type of the result."""
        local = self.to_local()
        if not need("dask").is_dask_collection(X):
            return getattr(local, method)(X)
        if hasattr(X, "map_partitions"):
            # The type of strings is found from their values.
            meta = need("pandas").Series(like).iloc[:0]
            return X.map_partitions(_applied_to_frame, local, method, meta.dtype, meta=meta)
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        return X.map_blocks(_applied, local, method, like.dtype, drop_axis=1, dtype=like.dtype, meta=like[:0])

    def _local(self) -> Any:
        return self._plain(**{name: value for name, value in self.get_params().items() if name not in _OWN})

    def _parameters(self) -> dict[str, Any]:
        """Return all parameters but the client."""
        return {name: value for name, value in self.get_params(deep=False).items() if name != "client"}

    def _settings(self) -> str:
        """Return a description of the parameters that determine the result."""
        ignored = ("checkpoint", "timeout", "verbose", "max_iter")
        settings = {name: value for name, value in self._parameters().items() if name not in ignored}
        return f"{type(self).__name__} {joblib.hash(settings)}"

    def _client(self) -> Any:
        distributed = need("distributed")
        if isinstance(self.client, distributed.Client):
            return self.client
        if self.client is not None:
            raise TypeError(
                f"client must be a distributed.Client or None; got {self.client!r}. For the address of a scheduler, "
                "pass distributed.Client(address)"
            )
        try:
            return distributed.default_client()
        except ValueError as error:
            raise ValueError(
                "client must be a distributed.Client, or one must have been created; got None and no current client"
            ) from error


def _fitted(estimator: Any) -> dict[str, Any]:
    """Return the attributes of an estimator that a fit has set."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}


def _prepare(shards: DaskShards, pos_label: Any, sample_rows: int) -> tuple[ShardedSet, list[Any] | None]:
    """Check that the partitions belong together, and make the training set and the names of the features."""
    facts = shards.facts()
    first = next((fact for fact in facts if fact.shape[0]), facts[0])
    for fact in facts:
        _check_columns(fact, first)
    if not first.shape[1]:
        raise DataError(f"X must have at least one column; got none in partition {first.number}")
    classes = reduce(LabelSet.joined, (LabelSet(fact.number, fact.labels) for fact in facts)).labels
    check_some_rows(classes)
    index = positive_index(classes, pos_label)
    ends = np.cumsum([0, *(fact.shape[0] for fact in facts)])
    shards.prepare(classes[index], {fact.number: int(end) for fact, end in zip(facts, ends, strict=False)})
    counts = np.sum(shards.run((), (), "counts"), axis=0)
    space = Space(shards, first.shape[1], (int(counts[0]), int(counts[1]), float(counts[2]), float(counts[3])))
    # The driver holds the sample once more as differences of pairs.
    rows = int(np.clip(2_000_000_000 // (32 * first.shape[1]), 1, sample_rows))
    return ShardedSet(space, classes, index, sample_rows=rows), first.names


def _check_columns(fact: PartFacts, first: PartFacts) -> None:
    if fact.shape[1] != first.shape[1] or fact.names != first.names:
        got = fact.names if fact.names is not None and fact.shape[1] == first.shape[1] else fact.shape[1]
        wanted = first.names if got is fact.names else first.shape[1]
        raise DataError(
            f"partition {fact.number} must have the columns of partition {first.number}, {wanted}; got {got}"
        )


def _applied(block: Any, model: Any, method: str, dtype: Any) -> Any:
    return getattr(model, method)(block) if block.shape[0] else np.empty(0, dtype=dtype)


def _applied_to_frame(frame: Any, model: Any, method: str, dtype: Any) -> Any:
    values = getattr(model, method)(frame) if len(frame) else ()
    return need("pandas").Series(values, index=frame.index, dtype=dtype)
