"""Estimators for dask collections."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import reduce
from inspect import signature
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from rocmax._support import Array, need
from rocmax._validation import check_flag, check_number, positive_index
from rocmax.dask.cluster import (
    Cluster,
    DaskShards,
    LabelSet,
    LoadedPartition,
    PartitionFacts,
    Tasks,
    aligned,
    check_some_rows,
    load,
    warn_if_lost,
)
from rocmax.dask.metrics import partial_auc_score
from rocmax.data import DataError
from rocmax.linear.auc import AUCClassifier
from rocmax.linear.base import LinearScoreClassifier
from rocmax.linear.partial_auc import PartialAUCClassifier
from rocmax.linear.sharded import Checkpoint, ShardedSet, check_supported, fit_shards
from rocmax.sharded.driver import Space

# Base class of the linear estimators on dask collections.


# Parameters of the distributed fit, which the plain estimators do not have.
_OWN = ("client", "standardize", "sample_rows", "checkpoint", "timeout")
# Attributes of a fit that do not belong to the model.
_FACTS = ("n_rounds_",)


class DaskLinear(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Fit of a linear estimator on dask collections."""

    # The plain estimator, whose parameters the others are, too.
    _plain: type[LinearScoreClassifier]
    client: Any
    standardize: bool
    sample_rows: int
    checkpoint: Any
    timeout: float
    coef_: Array
    classes_: NDArray[Any]
    pos_label: Any

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
        self
        """
        local = self._local()
        local._check_parameters()
        check_supported(local)
        check_flag("standardize", self.standardize)
        check_number("sample_rows", self.sample_rows, above=0, integer=True)
        check_number("timeout", self.timeout, above=0.0)
        checkpoint = None if self.checkpoint is None else Checkpoint(self.checkpoint, self._settings())
        delayed = aligned(X=X, y=y, sample_weight=sample_weight)
        cluster = Cluster(self._client(), self.timeout, "; with checkpoint, the next fit continues")
        warn_if_lost(cluster.client, X, y, sample_weight)
        shards = DaskShards(cluster, delayed)
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
        return self._mapped(X, LinearScoreClassifier.decision_function, np.zeros(1))

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
        return self._mapped(X, LinearScoreClassifier.positive_scores, np.zeros(1))

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
        return self._mapped(X, LinearScoreClassifier.predict, self.classes_)

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
        limits = {name: getattr(self, name) for name in ("min_fpr", "max_fpr", "min_tpr") if hasattr(self, name)}
        with need("dask").config.set(**where):
            estimate = partial_auc_score(
                y,
                scores,
                **limits,
                sample_weight=sample_weight,
                pos_label=self.classes_[index],
                timeout=self.timeout,
            )
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
    space = Space(shards, first.shape[1])
    # The driver holds the sample once more as differences of pairs.
    rows = int(np.clip(2_000_000_000 // (32 * first.shape[1]), 1, sample_rows))
    return ShardedSet(space, classes, index, sample_rows=rows), first.names


def _check_columns(fact: PartitionFacts, first: PartitionFacts) -> None:
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

    The problem, the solver and the certificate are those of :class:`~rocmax.AUCClassifier`. Each worker keeps its rows
    and their scores; the driver exchanges weights, gradients and histograms of scores with the workers. If a worker is
    lost, its partitions are read again by others and the fit continues, with the same result up to rounding.

    Parameters
    ----------
    loss : {"hinge"}, default="hinge"
        Loss on the pairs of a positive and a negative.
    client : distributed.Client, default=None
        Client of the cluster. None uses the current client. A clone has the same client, and a pickle has none.
    constraint : {"l2", "l1", "elasticnet", "group"}, default=None
        Norm constraint on the weights, as for :class:`~rocmax.AUCClassifier`.
    C
    radius : float, default=None
        Upper bound on the norm. Required with a constraint, and only allowed with one.
    l1_ratio : float, default=0.5
        Share of the L1 norm of ``constraint="elasticnet"``, from 0 to 1.
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``.
    max_iter
    standardize : bool, default=True
        Whether the penalty or the constraint refers to standardized features; ``coef_`` always refers to the original
        features.
    sample_rows : int, default=20000
        Maximum number of rows that the driver fetches for the Hessian in an iteration.
    checkpoint : str or Path, default=None
        File in which the state of the fit is saved after each iteration. If it exists, the fit continues from it; a
        checkpoint of other data or parameters is an error. It is removed when the fit ends.
    timeout, pos_label, verbose

    Attributes
    ----------
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the threshold, which maximizes TPR - FPR on the training rows.
    classes_, objective_
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum, including the error of the histograms.
    n_iter_
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

    def __init__(
        self,
        loss: str = "hinge",
        *,
        client: Any = None,
        constraint: str | None = None,
        C: float = 1.0,
        radius: float | None = None,
        l1_ratio: float = 0.5,
        groups: Any = None,
        tol: float = 1e-3,
        max_iter: int = 500,
        standardize: bool = True,
        sample_rows: int = 20_000,
        checkpoint: Any = None,
        timeout: float = 60.0,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.client = client
        self.constraint = constraint
        self.C = C
        self.radius = radius
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.sample_rows = sample_rows
        self.checkpoint = checkpoint
        self.timeout = timeout
        self.pos_label = pos_label
        self.verbose = verbose


class DaskPartialAUCClassifier(DaskLinear):
    r"""Linear classifier for the partial area under the ROC curve, fitted on a dask cluster.

    The problem, the solvers and the certificate are those of :class:`~rocmax.PartialAUCClassifier`; the fit on the
    cluster is described in :class:`DaskAUCClassifier`.

    Parameters
    ----------
    min_fpr, max_fpr
    loss : {"auto", "tight", "structural", "hinge", "ramp"}, default="auto"
        Loss to minimize, as for :class:`~rocmax.PartialAUCClassifier`.
    min_tpr : float, default=0.0
        Lower end of the range of true-positive rates, at least 0 and below 1, as for
        :class:`~rocmax.PartialAUCClassifier`.
    client : distributed.Client, default=None
        Client of the cluster. None uses the current client. A clone has the same client, and a pickle has none.
    constraint : {"l2", "l1", "elasticnet", "group"}, default=None
        Norm constraint on the weights, as for :class:`~rocmax.PartialAUCClassifier`.
    C
    radius : float, default=None
        Upper bound on the norm. Required with a constraint, and only allowed with one.
    l1_ratio : float, default=0.5
        Share of the L1 norm of ``constraint="elasticnet"``, from 0 to 1.
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``.
    max_iter
    standardize : bool, default=True
        Whether the penalty or the constraint refers to standardized features; ``coef_`` always refers to the original
        features.
    sample_rows : int, default=20000
        Maximum number of rows that the driver fetches for the Hessian in an iteration.
    checkpoint : str or Path, default=None
        File in which the state of the fit is saved after each iteration. If it exists, the fit continues from it; a
        checkpoint of other data or parameters is an error. It is removed when the fit ends.
    timeout, pos_label, verbose

    Attributes
    ----------
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the threshold, which is that of :class:`~rocmax.PartialAUCClassifier` on the training rows.
    classes_, objective_, dual_gap_
    n_iter_
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

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        loss: str = "auto",
        *,
        min_tpr: float = 0.0,
        client: Any = None,
        constraint: str | None = None,
        C: float = 1.0,
        radius: float | None = None,
        l1_ratio: float = 0.5,
        groups: Any = None,
        tol: float = 1e-3,
        max_iter: int = 500,
        standardize: bool = True,
        sample_rows: int = 20_000,
        checkpoint: Any = None,
        timeout: float = 60.0,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.loss = loss
        self.min_tpr = min_tpr
        self.client = client
        self.constraint = constraint
        self.C = C
        self.radius = radius
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.sample_rows = sample_rows
        self.checkpoint = checkpoint
        self.timeout = timeout
        self.pos_label = pos_label
        self.verbose = verbose


# Streaming estimators on the partitions of dask collections.


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
    timeout

    Returns
    -------
    estimator
        A copy of the estimator, trained on all partitions.

    Examples
    --------
    >>> import dask.array as da
    >>> from rocmax import PSAMClassifier
    >>> from rocmax.dask import partial_fit
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
    parts = [load(number, one) for number, one in enumerate(aligned(X=X, y=y, sample_weight=sample_weight))]
    model: Any = deepcopy(estimator)
    for one in parts:
        model = step(model, one, classes)
    found = Tasks(timeout).compute([model], parts)[0]
    try:
        check_is_fitted(found)
    except NotFittedError as error:
        raise DataError(f"the partitions must have rows; got {len(parts)} without any") from error
    return found


def _step(model: Any, part: LoadedPartition, classes: Any) -> Any:
    if not part.X.shape[0]:
        return model
    X = part.X if part.names is None else need("pandas").DataFrame(part.X, columns=part.names, copy=False)
    weights = {} if part.weight is None else {"sample_weight": part.weight}
    try:
        return model.partial_fit(X, part.y, classes=classes, **weights)
    except ValueError as error:
        raise DataError(f"partition {part.number}: {error}") from error
