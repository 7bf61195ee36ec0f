"""ROC-SVM: a kernel machine on pairs."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rocmax._support import Array, Index
from rocmax._validation import TrainingSet, check_choice, check_number
from rocmax.base import ScoredClassifier
from rocmax.kernel.maps import KernelMixin
from rocmax.kernel.qp import RULES, GramNewton, ListedPairs, PairSums, SortedPairs
from rocmax.solvers.base import Callback, Progress


class ROCSVC(KernelMixin, ScoredClassifier):
    r"""Support vector machine that maximizes the area under the ROC curve (ROC-SVM), with a kernel.

    Minimizes, over the functions in the reproducing kernel Hilbert space,

    .. math:: \frac{1}{2} |f|^2 + c \sum_{(i,j)} \bigl(\rho - (f(x_i^+) - f(x_j^-))\bigr)_+

    over all pairs of a positive and a negative, or over the neighbor pairs of the paper (``n_neighbors``). The weight
    :math:`c` of a pair is ``C`` times the number of rows divided by the number of pairs, or ``C`` (``reduction``). The
    dual has one multiplier :math:`0 \le \alpha_{ij} \le c` per pair, and
    :math:`f = \sum_{ij} \alpha_{ij} (k(x_i^+, \cdot) - k(x_j^-, \cdot))`. At the optimum, the score difference of a
    pair is at least :math:`\rho` if its multiplier is 0, at most :math:`\rho` if it is :math:`c`, and exactly
    :math:`\rho` otherwise. The solution is exact up to the reported duality gap. Large numbers of pairs are not stored
    explicitly.

    Parameters
    ----------
    kernel
    C : float, default=1.0
        Regularization parameter. Must be positive.
    reduction : {"mean", "sum"}, default="mean"
        What ``C`` is the weight of. "mean": of a row, as in scikit-learn's ``SVC``. The loss is the mean over the pairs
        times the number of rows, so that one value of ``C`` suits samples of any size; the ``C`` of
        :class:`~rocmax.AUCClassifier` corresponds to ``C / n_samples`` here for ``margin=1``. "sum": of a pair, as in
        the paper. The loss grows with the number of pairs, and ``C=1`` is then close to a hard margin on all but the
        smallest samples.
    margin : float, default=1.0
        Margin :math:`\rho`. It sets the scale: ``(C, margin)`` and ``(C * a, margin * a)`` give the same ranking.
    n_neighbors : int, default=None
        Number of neighbors that pairs are restricted to: only positives among the ``n_neighbors`` nearest positives of
        some negative count, each with its ``n_neighbors`` nearest negatives. Distances are those of the kernel; for
        "rbf" their order is that of the features. Neighbors are counted by rows, whatever their weight. None takes all
        pairs.
    gamma, degree, coef0
    tol, max_iter, max_gram_mb, pos_label, verbose

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the support vectors: the sum of the multipliers of the pairs of each row.
    support_, support_vectors_
    threshold_ : float
        Score above which a row is predicted positive; it maximizes TPR - FPR on the training rows.
    classes_
    n_pairs_ : float
        Sum of the weights of the pairs; without sample weights, the number of pairs.
    objective_
    dual_gap_ : float
        The objective minus the dual objective of feasible multipliers.
    kkt_residual_ : float
        ``dual_gap_ / (c * margin * n_pairs_)``. The gap is a sum of non-negative violations of the conditions above,
        over the pairs, so the residual is 0 if and only if all of them are satisfied.
    n_iter_ : int
        Number of Newton steps.
    trace_ : list of Progress
        Objective, bound and number of products with the Gram matrix (those with a block count by the size of the
        block), one entry per step.

    See Also
    --------
    AUCClassifier : Linear classifier for the AUC, for large numbers of rows.
    rocmax.papers.TwoNormSVC : Less expensive baseline from the same paper.

    References
    ----------
    Rakotomamonjy, "Optimizing area under ROC curve with SVMs", ROCAI 2004, Eq. 3 and 12, section 3.3.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from rocmax import ROCSVC
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = ROCSVC().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    >>> bool(model.dual_gap_ <= model.tol * model.objective_)
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        reduction: str = "mean",
        margin: float = 1.0,
        n_neighbors: int | None = None,
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        max_gram_mb: float = 1000.0,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.reduction = reduction
        self.margin = margin
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.max_gram_mb = max_gram_mb
        self.pos_label = pos_label
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("C", "margin", "tol"):
            check_number(name, getattr(self, name), above=0.0)
        check_choice("reduction", self.reduction, ("mean", "sum"))
        check_number("max_iter", self.max_iter, above=0, integer=True)
        if self.n_neighbors is not None:
            check_number("n_neighbors", self.n_neighbors, above=0, integer=True)

    def _learn(self, data: TrainingSet) -> Array:
        gram = self._gram(data)
        pairs = self._pairs(data, gram)
        n_samples = data.positive.size if data.weight is None else float(data.weight.sum())
        c = self.C if self.reduction == "sum" else self.C * n_samples / self.n_pairs_
        result, scores = GramNewton(self.tol, self.max_iter).solve(gram, pairs, c, self._progress())
        if not result.converged:
            warnings.warn(f"ROCSVC: {result.message}", ConvergenceWarning, stacklevel=3)
        self._keep_support(data, result.w)
        self.objective_, self.dual_gap_ = result.objective, result.gap
        self.kkt_residual_ = result.gap / (c * self.margin * self.n_pairs_)
        self.n_iter_, self.trace_ = result.n_iter, result.trace
        return scores

    def _pairs(self, data: TrainingSet, gram: Array) -> PairSums:
        weight = np.ones(data.positive.size) if data.weight is None else data.weight
        positive, negative = np.flatnonzero(data.positive), np.flatnonzero(~data.positive)
        self.n_pairs_ = float(weight[positive].sum() * weight[negative].sum())
        if self.n_neighbors is None and positive.size * negative.size > RULES.most_listed:
            return SortedPairs(data.positive, weight, self.margin)
        if self.n_neighbors is None:
            first, second = np.repeat(positive, negative.size), np.tile(negative, positive.size)
        else:
            first, second = neighbor_pairs(gram, data.positive, self.n_neighbors)
        share = weight[first] * weight[second]
        self.n_pairs_ = float(share.sum())
        return ListedPairs(data.positive.size, first, second, share, self.margin)

    def _progress(self) -> Callback | None:
        if not self.verbose:
            return None

        def report(progress: Progress) -> None:
            sys.stderr.write(f"ROCSVC: objective {progress.objective:.6g}, bound {progress.bound:.6g}\n")

        return report


def neighbor_pairs(gram: Array, is_positive: NDArray[np.bool_], count: int) -> tuple[Index, Index]:
    """Return pairs of neighbors as in section 3.3 of Rakotomamonjy (2004).

    The pairs consist of the positives that are among the ``count`` nearest positives of some negative, each with its
    ``count`` nearest negatives.
    """
    positive, negative = np.flatnonzero(is_positive), np.flatnonzero(~is_positive)
    diagonal = np.diagonal(gram)
    distance = diagonal[positive][:, None] + diagonal[negative] - 2.0 * gram[np.ix_(positive, negative)]
    near = np.argsort(distance, axis=0, kind="stable")[:count]
    chosen = np.unique(near)
    theirs = np.argsort(distance[chosen], axis=1, kind="stable")[:, :count]
    return np.repeat(positive[chosen], theirs.shape[1]), negative[theirs.ravel()]
