"""Linear classifier for the full AUC."""

from __future__ import annotations

from typing import Any

from rocmax._support import Array
from rocmax._validation import check_choice, check_number
from rocmax.base import MeasureMixin
from rocmax.linear.base import (
    CUTTING_PLANE_REMEDY,
    LinearScoreClassifier,
    RowsInMemory,
    check_constraint_parameters,
    check_solver_parameters,
    solver_for,
)
from rocmax.linear.sharded import FitFilesMixin
from rocmax.losses import PairwiseSquaredHinge
from rocmax.measures import Measure, ROCAUCMeasure
from rocmax.penalties import SquaredL2
from rocmax.solvers import Callback, Result


class AUCClassifier(FitFilesMixin, MeasureMixin, LinearScoreClassifier):
    r"""Linear classifier that maximizes the area under the ROC curve.

    Minimizes :math:`\frac{1}{2}|w|^2 + C R(w)` with ``R`` the mean over all pairs of a positive and a negative of
    :math:`(1 - w \cdot (x_i - x_j))_+` (``loss="hinge"``, SVM-AUC) or of its square (``"squared_hinge"``, BAM). The
    solution has a certified duality gap.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Loss on the pairs of a positive and a negative.
    constraint, C
    radius : float, default=None
        Upper bound on :math:`\Omega(w)`. Required with a constraint, and only allowed with one.
    l1_ratio
    groups : array-like of shape (n_features,) or list of array-likes of int, default=None
        Groups of ``constraint="group"``: one label per feature, or the indices of the features of each group. Every
        feature is in exactly one group.
    solver : ...
        It requires ``loss="hinge"``, without a ``constraint``.
    tol, max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_
    intercept_ : ndarray of shape (1,)
        Minus the threshold with the largest TPR - FPR on the training rows.
    classes_, objective_, dual_gap_, n_iter_, trace_, n_features_in_, feature_names_in_

    See Also
    --------
    PartialAUCClassifier : Linear classifier for a range of false-positive rates.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, Algorithm 1.
    Chapelle and Keerthi, "Efficient algorithms for ranking with SVMs", Information Retrieval 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import AUCClassifier
    >>> X, y = make_classification(n_samples=500, weights=[0.9], random_state=0)
    >>> model = AUCClassifier(C=10).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.924
    >>> bool(model.dual_gap_ <= model.tol * model.objective_)
    True
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        constraint: str | None = None,
        C: float = 1.0,
        radius: float | None = None,
        l1_ratio: float = 0.5,
        groups: Any = None,
        solver: str = "certified",
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.C = C
        self.radius = radius
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, above=0.0)
        check_constraint_parameters(self.constraint, self.radius, self.l1_ratio, self.groups)
        check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        check_solver_parameters(self.solver, self.loss, ("hinge",), self.constraint)

    def _remedy(self) -> str:
        return CUTTING_PLANE_REMEDY if self.solver == "cutting_plane" else super()._remedy()

    def _minimize(self, data: RowsInMemory, w0: Array | None, callback: Callback | None) -> Result:
        loss = self._make_measure().convex_loss() if self.loss == "hinge" else PairwiseSquaredHinge()
        if self.constraint is not None:
            return self._fit_constrained(loss, data, w0, callback)
        penalty = SquaredL2(self.C)
        solver = solver_for(loss, penalty, self.tol, self.max_iter, self.solver)
        return data.solve(solver, loss, penalty, w0, callback)

    def _make_measure(self) -> Measure:
        return ROCAUCMeasure()
