"""Regularization path of the partial-AUC classifier under a norm constraint."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from rocmax._support import Array, stack_level
from rocmax._validation import (
    check_choice,
    check_number,
    check_training_set,
    direction,
    positive_index,
    towards,
)
from rocmax.linear.base import CONSTRAINTS, RowsInMemory, make_constraint
from rocmax.linear.partial_auc import PartialAUCClassifier, WindowProblem
from rocmax.losses import PartialAUCTight
from rocmax.measures import PartialAUCMeasure
from rocmax.operators import as_operator
from rocmax.penalties import Ball


@dataclass(frozen=True)
class PartialAUCPath:
    """Result of :func:`partial_auc_path`, with one entry per radius.

    Attributes
    ----------
    radii : ndarray of shape (n_radii,)
        The radii, ascending; the first is 0, the all-zero model.
    coefs : ndarray of shape (n_radii, n_features)
        Weights; as in ``coef_``, positive scores indicate ``classes[1]``.
    n_features : ndarray of int
        Number of features with non-zero weights.
    n_groups : ndarray of int
        Number of groups with non-zero weights; equal to ``n_features`` unless the constraint is "group".
    partial_auc : ndarray
        Partial AUC of each model on the training rows.
    objectives, gaps : ndarray
        Loss at each solution, and its certified duality gap.
    classes : ndarray of shape (2,)
        The classes.
    constraint : str
        The norm constraint.
    min_fpr, max_fpr : float
        The range of false-positive rates.
    feature_names : ndarray or None
        Names of the features, if `X` had any.
    pos_label : object
        Label of the positive class; None for ``classes[1]``.
    min_tpr : float
        Lower limit on the true-positive rate.
    """

    radii: Array
    coefs: Array = field(repr=False)
    n_features: NDArray[np.intp]
    n_groups: NDArray[np.intp]
    partial_auc: Array
    objectives: Array = field(repr=False)
    gaps: Array = field(repr=False)
    classes: NDArray[Any]
    constraint: str
    min_fpr: float
    max_fpr: float
    feature_names: NDArray[Any] | None = field(repr=False)
    pos_label: Any = None
    min_tpr: float = 0.0

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Return the partial AUC of every model on the given rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True class labels.
        sample_weight

        Returns
        -------
        ndarray of shape (n_radii,)
            Partial AUC.
        """
        index = positive_index(self.classes, self.pos_label)
        operator = as_operator(X if hasattr(X, "dtype") else np.asarray(X, dtype=np.float64))

        measure = PartialAUCMeasure(self.min_fpr, self.max_fpr, self.min_tpr)
        shared = {"sample_weight": sample_weight, "pos_label": self.classes[index]}
        return np.array([measure.score(y, towards(operator.matvec(w), index), **shared) for w in self.coefs])


def partial_auc_path(
    X: Any,
    y: Any,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 0.1,
    min_tpr: float = 0.0,
    loss: str = "tight",
    constraint: str = "l1",
    radii: ArrayLike | None = None,
    n_radii: int = 20,
    l1_ratio: float = 0.5,
    groups: Any = None,
    tol: float = 1e-3,
    max_iter: int = 500,
    pos_label: Any = None,
    sample_weight: Any = None,
) -> PartialAUCPath:
    r"""Fit :class:`PartialAUCClassifier` under norm constraints of increasing radius, with warm starts.

    The loss does not increase along the path, because the constraint set grows with the radius. If the loss is already
    within ``tol`` of its minimum, a larger radius has no effect.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        Training rows; the features should have a common scale.
    y, min_fpr, max_fpr
    min_tpr : ...
        Only the part of the curve above it is maximized, for applications that must not miss positives: ``min_tpr=0.8,
        max_fpr=1.0`` is the area above 80 percent true positives. With both limits, it is the two-way partial AUC.
    loss : {"tight", "structural", "auto"}, default="tight"
        Loss to minimize, as in :class:`PartialAUCClassifier`.
    constraint : {"l1", "elasticnet", "group", "l2"}, default="l1"
        Norm constraint on the weights, as in :class:`PartialAUCClassifier`.
    radii : array-like, default=None
        Radii above zero. None takes ``n_radii`` geometrically spaced values from 0.05 to 20 times the radius at which
        the linear approximation of the loss at zero weights is zero.
    n_radii : int, default=20
        Number of default radii.
    l1_ratio
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``: one label per feature, or the indices of the features of each group. Every
        feature is in exactly one group.
    tol : float, default=1e-3
        Tolerance for stopping of each fit, as in :class:`PartialAUCClassifier`.
    max_iter, pos_label, sample_weight

    Returns
    -------
    PartialAUCPath
        Radii, weights, numbers of features, partial AUC and certified gaps.

    See Also
    --------
    rocmax.displays.PartialAUCPathDisplay : Plot of the path.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import partial_auc_path
    >>> X, y = make_classification(1000, 50, n_informative=5, shuffle=False, class_sep=2.0, random_state=0)
    >>> path = partial_auc_path(X, y, max_fpr=0.2, radii=[0.1, 0.5, 1.0])
    >>> path.n_features.tolist()[:3]
    [0, 2, 3]
    >>> bool((path.partial_auc[1:] > path.partial_auc[0]).all())
    True
    """
    check_choice("constraint", constraint, CONSTRAINTS)
    problem = WindowProblem((min_fpr, max_fpr, min_tpr), loss, 1.0, "certified", tol, max_iter)
    problem.check(constraint, 1.0, l1_ratio, groups)
    # Validation notes the names of the features.
    notes = PartialAUCClassifier()
    data = RowsInMemory(*check_training_set(notes, X, y, sample_weight, pos_label))

    def ball(radius: float) -> Ball:
        return make_constraint(constraint, radius, l1_ratio, groups, data.X.shape[1])

    at_zero, slope = data.bind(PartialAUCTight(*problem.window)).value_and_gradient(np.zeros(data.positive.size))
    if radii is None:
        grid = _default_radii(ball, at_zero, as_operator(data.X).rmatvec(slope), n_radii)
    else:
        grid = _check_radii(radii)
    rows = [(0.0, zero := np.zeros(data.X.shape[1]), 0, problem.on_rows(data, zero), at_zero, 0.0)]
    w, missed = zero, []
    for radius in grid:
        result = problem.minimize_in(ball(radius), data, w)
        w = result.w
        missed += [] if result.converged else [float(radius)]
        rows.append((radius, w, ball(radius).n_used(w), problem.on_rows(data, w), result.objective, result.gap))
    radii, coefs, used, scores, objectives, gaps = map(np.array, zip(*rows, strict=True))
    _warn(problem, missed, collapsed=not coefs.any())
    return PartialAUCPath(
        radii=radii,
        coefs=direction(data.positive_index) * coefs,
        n_features=np.count_nonzero(coefs, axis=1),
        n_groups=used,
        partial_auc=scores,
        objectives=objectives,
        gaps=gaps,
        classes=data.classes,
        constraint=constraint,
        min_fpr=min_fpr,
        max_fpr=max_fpr,
        min_tpr=min_tpr,
        feature_names=getattr(notes, "feature_names_in_", None),
        pos_label=pos_label,
    )


def _warn(problem: WindowProblem, missed: list[float], collapsed: bool) -> None:
    if missed:
        text = f"partial_auc_path: {len(missed)} fits did not reach tol={problem.tol:g}, the first at radius "
        warnings.warn(f"{text}{missed[0]:.3g}; raise max_iter or tol", ConvergenceWarning, stacklevel=stack_level())
    if collapsed:
        text = f"partial_auc_path collapsed: all weights are zero at every radius. {problem.remedy(constrained=True)}"
        warnings.warn(text, ConvergenceWarning, stacklevel=stack_level())


def _check_radii(radii: ArrayLike) -> Array:
    values = np.unique(np.asarray(radii, dtype=np.float64))
    if values.size == 0 or not (values[0] > 0 and np.isfinite(values[-1])):
        raise ValueError(f"radii must be finite numbers > 0; got {np.asarray(radii).tolist()!r}")
    return values


def _default_radii(ball: Callable[[float], Ball], value: float, slope: Array, n_radii: int) -> Array:
    check_number("n_radii", n_radii, above=1, integer=True)
    if not slope.any():
        return np.geomspace(0.05, 20.0, n_radii)

    def excess(log_radius: float) -> float:
        return float(np.log(ball(float(np.exp(log_radius))).support(-slope) / value))

    unit = np.exp(brentq(excess, -60.0, 60.0, xtol=1e-6))
    result: Array = unit * np.geomspace(0.05, 20.0, n_radii)
    return result
