"""Linear classifier composed of a loss, a penalty, a solver and a threshold rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from rocmax._support import Array, Bools
from rocmax._validation import TrainingSet, check_number
from rocmax.linear.base import LinearScoreClassifier, RowsInMemory, solver_for
from rocmax.losses import ContingencyLoss, FreeShift, Loss, PairwiseHinge
from rocmax.measures import ROCAUCMeasure, best_measure, find_measure
from rocmax.metrics.curve import rank_labels
from rocmax.penalties import Ball, SquaredL2
from rocmax.solvers import Callback, Result, choose_solver


class ScoreClassifier(LinearScoreClassifier):
    r"""Linear classifier for any loss on scores, with a choice of penalty and solver.

    Minimizes :math:`\frac{1}{2}|w|^2 + C R(Xw)`, or :math:`R(Xw)` under a norm constraint. The other linear
    classifiers are predefined combinations of these components. This class is for all other combinations, such as
    custom measures.

    Parameters
    ----------
    loss : Loss, default=None
        A loss of :mod:`rocmax.losses`, or a custom one; None is :class:`~rocmax.losses.PairwiseHinge`, the full AUC.
        A :class:`~rocmax.losses.ContingencyLoss` depends on a shift of the scores and is minimized over the shift
        (:class:`~rocmax.losses.FreeShift`).
    penalty : SquaredL2 or Ball, default=None
        :class:`~rocmax.penalties.SquaredL2`, or a norm constraint such as :class:`~rocmax.penalties.L1Ball`; None is
        ``SquaredL2(C=1.0)``.
    solver : Solver, default=None
        A solver of :mod:`rocmax.solvers`; None chooses one that is suitable for the loss and the penalty, see
        :func:`~rocmax.solvers.choose_solver`.
    threshold : {"auto", "youden"}, name of a measure, Measure, float or callable, default="auto"
        Rule for the choice of the threshold on the scores after the fit:

        - "auto": maximizes the measure of the loss on the training rows, for losses of a contingency table
          (:class:`~rocmax.losses.FBeta`, :class:`~rocmax.losses.Contingency`, ...); "youden" for other losses.
        - "youden": maximizes TPR - FPR on the training rows.
        - a number: uses this threshold.
        - an object with ``threshold(scores, positive, weight)`` and ``score(y_true, decision, sample_weight=...,
          pos_label=...)``, or with ``measure(tp, fp, m, n)``, such as the losses of a contingency table.
        - a function ``threshold(scores, positive, weight)`` that returns a number; ``weight`` may be None.
    tol : float, default=1e-3
        Tolerance of the solver if ``solver=None``; otherwise that of the given solver is used.
    max_iter : int, default=500
        Maximum number of iterations of the solver if ``solver=None``.
    pos_label, verbose, warm_start

    Attributes
    ----------
    coef_, intercept_, classes_
    solver_ : Solver
        The solver that was used.
    objective_, dual_gap_, n_iter_, trace_, n_features_in_, feature_names_in_

    See Also
    --------
    AUCClassifier, PartialAUCClassifier, FBetaClassifier : Classifiers for one measure, with suitable defaults.

    Notes
    -----
    Parameters of the components can be set by nested names such as ``loss__max_fpr`` or ``penalty__C``, in
    ``set_params`` and in searches such as ``GridSearchCV``. Components are immutable: they are replaced by new ones.

    A loss that is not convex is minimized from the full-AUC solution, or from the previous fit with ``warm_start``.

    ``score`` returns the measure that corresponds to the threshold: that of a measure object, or that of the loss with
    "auto" and a loss of a contingency table; otherwise the area under the ROC curve.

    Model files cannot contain functions, so a model with a custom ``Contingency`` cannot be saved by
    :func:`rocmax.save`. The same applies to custom subclasses of :class:`~rocmax.losses.ContingencyLoss`, because only
    types defined in rocmax are supported. Both can be pickled if the function or class can be imported.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import ScoreClassifier
    >>> from rocmax.losses import Contingency
    >>> X, y = make_classification(n_samples=500, weights=[0.8], class_sep=2.0, random_state=0)
    >>> jaccard = Contingency(lambda tp, fp, m, n: tp / (m + fp))
    >>> model = ScoreClassifier(jaccard).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.9
    >>> bool(model.dual_gap_ <= 1e-3 * model.objective_)
    True
    """

    def __init__(
        self,
        loss: Loss | None = None,
        penalty: SquaredL2 | Ball | None = None,
        solver: Any = None,
        threshold: Any = "auto",
        *,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including those of the components.

        Parameters
        ----------
        **params : dict
            New values; ``loss__max_fpr`` replaces the loss by a copy with another ``max_fpr``.

        Returns
        -------
        self : object
            The estimator.
        """
        current = self.get_params(deep=False)
        parts = {"loss": self._loss(), "penalty": self._penalty()}
        for name, value in _new_values(type(self).__name__, current | parts, params).items():
            setattr(self, name, value)
        return self

    def _loss(self) -> Loss:
        return PairwiseHinge() if self.loss is None else self.loss

    def _penalty(self) -> SquaredL2 | Ball:
        return SquaredL2() if self.penalty is None else self.penalty

    def _check_parameters(self) -> None:
        super()._check_parameters()
        loss = self._loss()
        if not isinstance(loss, Loss):
            raise TypeError(f"loss must be a Loss, such as rocmax.losses.PairwiseHinge(); got {loss!r}")
        if not loss.shift_invariant and not isinstance(loss, ContingencyLoss):
            raise ValueError(
                f"loss must be invariant to a shift of the scores, or a ContingencyLoss, which is minimized over the "
                f"shift; got {loss!r}"
            )
        if not isinstance(self._penalty(), SquaredL2 | Ball):
            raise TypeError(f"penalty must be SquaredL2 or a norm constraint such as L1Ball; got {self.penalty!r}")
        if self.solver is not None and (not hasattr(self.solver, "solve") or isinstance(self.solver, type)):
            raise TypeError(f"solver must be a solver, such as rocmax.solvers.OCAS(), or None; got {self.solver!r}")
        threshold_rule(self.threshold, loss)

    def _minimize(self, data: RowsInMemory, w0: Array | None, callback: Callback | None) -> Result:
        loss, penalty = self._loss(), self._penalty()
        if not loss.shift_invariant:
            loss = FreeShift(loss)  # type: ignore[arg-type]  # checked before
        if isinstance(penalty, Ball):
            penalty = penalty.for_features(data.X.shape[1])
        bound = loss.bind(data.positive, data.weight)
        solver = self.solver
        if solver is None:
            solver = choose_solver(bound, penalty, self.tol, self.max_iter)
        self.solver_ = solver
        if getattr(solver, "needs_start", False) and isinstance(penalty, SquaredL2) and (w0 is None or not w0.any()):
            full_auc = PairwiseHinge()
            inner = solver_for(full_auc, penalty, solver.tol, max(solver.max_iter, 100))
            full = data.solve(inner, full_auc, penalty)
            if not full.w.any():
                return full
            w0 = full.w
        return data.solve(solver, loss, penalty, w0, callback)

    def _remedy(self) -> str:
        return (
            "The optimum of this loss, or the full-AUC solution that is used as the starting point for losses that are "
            "not convex, is at zero weights. Raise a very small C, use another loss, and check that the features vary."
        )

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        rule = threshold_rule(self.threshold, self._loss())
        return float(rule.threshold(scores, data.positive, data.weight))

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        rule = threshold_rule(self.threshold, self._loss())
        return float(rule.score(y, scores, sample_weight=sample_weight, pos_label=pos_label))


def threshold_rule(threshold: Any, loss: Loss) -> Any:
    """Return the measure for the parameter ``threshold``; that of a function or a number is the AUC."""
    if isinstance(threshold, str):
        table: Any = loss if hasattr(loss, "measure") else getattr(loss, "base", None)
        if threshold == "auto" and hasattr(table, "measure"):
            return _TableRule(table.measure)
        return ROCAUCMeasure() if threshold in ("auto", "youden") else find_measure(threshold)
    if hasattr(threshold, "threshold") and hasattr(threshold, "score"):
        return threshold
    if hasattr(threshold, "measure"):
        return _TableRule(threshold.measure)
    if callable(threshold) and not isinstance(threshold, type):
        return _GivenThreshold(threshold)
    check_number("threshold", threshold, above=-np.inf)
    return _GivenThreshold(lambda *_: threshold)


class _GivenThreshold(ROCAUCMeasure):
    """The AUC, with a threshold that a user gives."""

    def __init__(self, threshold: Callable[..., float]) -> None:
        object.__setattr__(self, "threshold", threshold)


class _TableRule(NamedTuple):
    """A measure of the contingency table, and the threshold with its largest value."""

    measure: Callable[[Array, Array, float, float], Array]

    def threshold(self, scores: Array, positive: Bools, weight: Array | None) -> float:
        """Return the threshold with the largest value."""
        return best_measure(scores, positive, weight, self.measure)

    def score(self, y: Any, decision: Array, *, sample_weight: Any, pos_label: Any) -> float:
        """Return the value for decisions."""
        table = rank_labels(np.asarray(y) == pos_label, decision > 0, sample_weight, True).blocks().curve()
        return float(self.measure(table.tp[1:2], table.fp[1:2], table.m, table.n)[0])


def _new_values(owner: str, current: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return new values by top-level name; a component with nested names is replaced by one with the new parameters.

    ``owner`` is the name of the class in messages, and ``current`` has all parameters of the object.
    """
    values = {name: value for name, value in params.items() if "__" not in name}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        part, mark, rest = name.partition("__")
        if part not in current:
            raise ValueError(f"{owner} has no parameter {part!r}; it has {', '.join(sorted(current)) or 'none'}")
        if mark:
            nested.setdefault(part, {})[rest] = value
    for name, inner in nested.items():
        old = values.get(name, current[name])
        if not hasattr(old, "get_params"):
            raise ValueError(f"{name}={old!r} of {owner} has no parameters; got {', '.join(sorted(inner))} for it")
        own = old.get_params(deep=False)
        # Not dataclasses.replace: the loss of a user need not be a dataclass.
        values[name] = type(old)(**own | _new_values(type(old).__name__, own, inner))
    return values
