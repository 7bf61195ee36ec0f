"""Linear estimators on dask collections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rocmax._packages import need
from rocmax._response import towards
from rocmax._typing import Array
from rocmax._validate import check_number, positive_index
from rocmax.backends.dask.actors import DaskShards, PartFacts
from rocmax.backends.dask.metrics import partial_auc_score
from rocmax.backends.dask.partitions import split, warn_if_in_memory
from rocmax.data import DataError
from rocmax.estimators import AUCClassifier, PartialAUCClassifier
from rocmax.estimators.linear.checkpoint import Checkpoint
from rocmax.estimators.linear.sharded import ShardedSet, fit_shards
from rocmax.sharded.vectors import Space

# Parameters of the distributed fit, which the plain estimators do not have.
_OWN = ("client", "standardize", "sample_rows", "checkpoint", "timeout")
# Attributes of a fit that do not belong to the model.
_FACTS = ("n_rounds_",)


class _DaskLinear(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
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
    def _window(self) -> tuple[float, float]:
        """Return the range of false-positive rates."""

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
        check_number("sample_rows", self.sample_rows, above=0, integer=True)
        check_number("timeout", self.timeout, above=0.0)
        parts = split(X, y, sample_weight)
        client = self._client()
        warn_if_in_memory(X, y, sample_weight)
        shards = DaskShards(client, parts, self.timeout)
        try:
            data, names = _prepare(shards, self.pos_label, self.sample_rows)
            if self.checkpoint is not None:
                ignored = {"client", "checkpoint", "timeout", "verbose", "max_iter", "warm_start"}
                settings = {name: value for name, value in self.get_params().items() if name not in ignored}
                data.checkpoint = Checkpoint(Path(self.checkpoint), f"{type(self).__name__} {settings}")
            fit_shards(local, data, self.standardize, callback=local._progress())
        finally:
            self.n_rounds_ = shards.rounds
            shards.close()
        if names is not None:
            local.feature_names_in_ = np.array(names, dtype=object)
        for name, value in vars(local).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
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
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_") and name not in _FACTS:
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
        return self._mapped(X, "decision_function", np.dtype(np.float64))

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
        return self._mapped(X, "predict", self.classes_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the measure that this estimator optimizes, computed on the given rows.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Rows.
        y : dask Array or Series of shape (n_samples,)
            True class labels.
        sample_weight : dask Array or Series of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        float
            Value of the measure.
        """
        low, high = self._window()
        decision = self.decision_function(X)
        index = positive_index(self.classes_, self.pos_label)
        found = partial_auc_score(
            y,
            towards(decision, index),
            min_fpr=low,
            max_fpr=high,
            sample_weight=sample_weight,
            pos_label=self.classes_[index],
        )
        return found.value

    def _mapped(self, X: Any, method: str, dtype: Any) -> Any:
        local = self.to_local()
        if not need("dask").is_dask_collection(X):
            return getattr(local, method)(X)
        if hasattr(X, "map_partitions"):
            frames = need("pandas")
            meta = frames.Series(dtype=dtype)
            return X.map_partitions(_applied_to_frame, local, method, meta=meta)
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        return X.map_blocks(_applied, local, method, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype=dtype))

    def _local(self) -> Any:
        return self._plain(**{name: value for name, value in self.get_params().items() if name not in _OWN})

    def _client(self) -> Any:
        if self.client is not None:
            return self.client
        try:
            return need("distributed").default_client()
        except ValueError as error:
            raise ValueError(
                "client must be a distributed.Client, or one must have been created; got None and no current client"
            ) from error


class DaskAUCClassifier(_DaskLinear):
    r"""Linear classifier that maximizes the area under the ROC curve, fitted on a dask cluster.

    The problem, the solver and the certificate are those of :class:`~rocmax.AUCClassifier`. Each worker keeps its rows
    and their scores; the driver exchanges weights, gradients and histograms of scores with the workers. A worker that
    is lost during the fit is replaced: its partitions are read again and the interrupted step is repeated.

    Parameters
    ----------
    loss : {"hinge"}, default="hinge"
        Loss on the pairs of a positive and a negative.
    client : distributed.Client, default=None
        Client of the cluster. None uses the current client.
    constraint : {"l2", "l1", "elasticnet", "group"}, default=None
        Norm constraint on the weights, as for :class:`~rocmax.AUCClassifier`.
    C : float, default=1.0
        Regularization parameter, the weight of the loss against the penalty. Must be positive.
    radius : float, default=None
        Upper bound on the norm. Required with a constraint, and only allowed with one.
    l1_ratio : float, default=0.5
        Share of the L1 norm of ``constraint="elasticnet"``, from 0 to 1.
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``.
    max_iter : int, default=500
        Maximum number of iterations of the solver.
    standardize : bool, default=True
        Whether the penalty or the constraint refers to standardized features; ``coef_`` always refers to the original
        features.
    sample_rows : int, default=20000
        Maximum number of rows that the driver fetches for the Hessian in an iteration.
    checkpoint : str or Path, default=None
        File in which the state of the fit is saved after each iteration. If it exists, the fit continues from it; a
        checkpoint of other data or parameters is an error. It is removed when the fit ends.
    timeout : float, default=60.0
        Seconds for which workers are awaited when none is left.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    verbose : bool, default=False
        Whether to report progress on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold, which maximizes TPR - FPR on the training rows.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The objective at the solution.
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum, including the error of the histograms.
    n_iter_ : int
        Iterations.
    n_rounds_ : int
        Number of requests to the workers.

    See Also
    --------
    rocmax.AUCClassifier : The estimator for data in memory or in files.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from rocmax.backends.dask import DaskAUCClassifier
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     X = da.random.default_rng(0).normal(size=(5000, 5), chunks=(1000, 5))
    ...     y = (X[:, 0] > 1).astype(int)
    ...     model = DaskAUCClassifier().fit(X, y).to_local()
    >>> model.coef_.shape
    (1, 5)
    """

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

    def _plain(self, **parameters: Any) -> AUCClassifier:
        return AUCClassifier(**parameters)

    def _window(self) -> tuple[float, float]:
        return 0.0, 1.0


class DaskPartialAUCClassifier(_DaskLinear):
    r"""Linear classifier for the partial area under the ROC curve, fitted on a dask cluster.

    The problem, the solvers and the certificate are those of :class:`~rocmax.PartialAUCClassifier`; the fit on the
    cluster is described in :class:`DaskAUCClassifier`.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    loss : {"auto", "tight", "structural", "hinge", "ramp"}, default="auto"
        Loss to minimize, as for :class:`~rocmax.PartialAUCClassifier`.
    client : distributed.Client, default=None
        Client of the cluster. None uses the current client.
    constraint : {"l2", "l1", "elasticnet", "group"}, default=None
        Norm constraint on the weights, as for :class:`~rocmax.PartialAUCClassifier`.
    C : float, default=1.0
        Regularization parameter, the weight of the loss against the penalty. Must be positive.
    radius : float, default=None
        Upper bound on the norm. Required with a constraint, and only allowed with one.
    l1_ratio : float, default=0.5
        Share of the L1 norm of ``constraint="elasticnet"``, from 0 to 1.
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``.
    tol : float, default=1e-3
        Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``.
    max_iter : int, default=500
        Maximum number of iterations of the solver.
    standardize : bool, default=True
        Whether the penalty or the constraint refers to standardized features; ``coef_`` always refers to the original
        features.
    sample_rows : int, default=20000
        Maximum number of rows that the driver fetches for the Hessian in an iteration.
    checkpoint : str or Path, default=None
        File in which the state of the fit is saved after each iteration. If it exists, the fit continues from it; a
        checkpoint of other data or parameters is an error. It is removed when the fit ends. Only for
        ``loss="tight"`` and ``"structural"``.
    timeout : float, default=60.0
        Seconds for which workers are awaited when none is left.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    verbose : bool, default=False
        Whether to report progress on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``.
    classes_ : ndarray of shape (2,)
        The classes.
    objective_ : float
        The objective at the solution.
    dual_gap_ : float
        The objective minus a certified lower bound on its minimum; NaN where the loss is not convex.
    n_iter_ : int
        Iterations.
    n_rounds_ : int
        Number of requests to the workers.

    See Also
    --------
    rocmax.PartialAUCClassifier : The estimator for data in memory or in files.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from rocmax.backends.dask import DaskPartialAUCClassifier
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     X = da.random.default_rng(0).normal(size=(5000, 5), chunks=(1000, 5))
    ...     y = (X[:, 0] > 1).astype(int)
    ...     model = DaskPartialAUCClassifier(max_fpr=0.1).fit(X, y)
    >>> model.to_local()
    PartialAUCClassifier()
    """

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        loss: str = "auto",
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
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
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

    def _plain(self, **parameters: Any) -> PartialAUCClassifier:
        if self.checkpoint is not None and self.loss not in ("tight", "structural"):
            raise ValueError(f'with checkpoint, loss must be "tight" or "structural"; got {self.loss!r}')
        return PartialAUCClassifier(**parameters)

    def _window(self) -> tuple[float, float]:
        return self.min_fpr, self.max_fpr


def _prepare(shards: DaskShards, pos_label: Any, sample_rows: int) -> tuple[ShardedSet, list[str] | None]:
    """Check that the partitions belong together, and make the training set and the names of the features."""
    facts = shards.facts()
    first = next((fact for fact in facts if fact.shape[0]), facts[0])
    for fact in facts:
        _check_columns(fact, first)
    classes = np.unique(np.concatenate([fact.labels for fact in facts if fact.labels.size] or [np.empty(0)]))
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


def _applied(block: Any, model: Any, method: str) -> Any:
    return getattr(model, method)(block)


def _applied_to_frame(frame: Any, model: Any, method: str) -> Any:
    values = getattr(model, method)(frame) if len(frame) else np.empty(0)
    return need("pandas").Series(values, index=frame.index)
