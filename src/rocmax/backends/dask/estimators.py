"""Linear estimators on dask collections."""

from __future__ import annotations

from typing import Any

from rocmax.backends.dask.base import DaskLinear
from rocmax.estimators import AUCClassifier, PartialAUCClassifier


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
        Seconds for which workers are awaited if none is left, or if none of them does anything, and after which a
        worker that sends no heartbeats is given up, but at least 10.
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
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
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

    def _limits(self) -> dict[str, Any]:
        return {}


class DaskPartialAUCClassifier(DaskLinear):
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
    min_tpr : float, default=0.0
        Lower end of the range of true-positive rates, at least 0 and below 1, as for
        :class:`~rocmax.PartialAUCClassifier`.
    client : distributed.Client, default=None
        Client of the cluster. None uses the current client. A clone has the same client, and a pickle has none.
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
        checkpoint of other data or parameters is an error. It is removed when the fit ends.
    timeout : float, default=60.0
        Seconds for which workers are awaited if none is left, or if none of them does anything, and after which a
        worker that sends no heartbeats is given up, but at least 10.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.
    verbose : bool, default=False
        Whether to report progress on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Minus the threshold, which is that of :class:`~rocmax.PartialAUCClassifier` on the training rows.
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
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
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

    def _plain(self, **parameters: Any) -> PartialAUCClassifier:
        return PartialAUCClassifier(**parameters)

    def _limits(self) -> dict[str, Any]:
        return {"min_fpr": self.min_fpr, "max_fpr": self.max_fpr, "min_tpr": self.min_tpr}
