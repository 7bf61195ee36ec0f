"""pAUCBoost: boosted stumps or single features for the partial AUC."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._rounding import join_ties
from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_choice, check_number
from rocmax._window import check_window, window_end
from rocmax.estimators.base import ScoredClassifier
from rocmax.estimators.baselines._single_features import SingleFeatures
from rocmax.estimators.baselines._stumps import SortedFeatures, stump_scores
from rocmax.measures import Measure, PartialAUCMeasure

# Number of candidate features in each round: those with the largest directional derivatives.
_CANDIDATES = 10


class PAUCBoostClassifier(ScoredClassifier):
    r"""Boosted decision stumps that maximize the partial area under the ROC curve (after pAUCBoost).

    The candidates of each round are chosen by the gradient of a smooth partial AUC,

    .. math:: \frac{1}{m (b-a)} \sum_i \sum_j q_j \, \Phi\bigl(F(x_i^+) - F(x_j^-)\bigr),

    where :math:`\Phi` is the normal distribution function and :math:`q_j` the fraction of the rank of a negative in the
    window :math:`(a, b]` of false positives, shared by tied negatives. The best stumps of the ten features with the
    largest directional derivatives are evaluated with a sequence of step sizes, each half of the previous one. The
    stump and step size with the largest partial AUC on the training rows are chosen. The partial AUC on the training
    rows does not decrease; boosting stops when no stump increases it.

    The smooth partial AUC and the addition of one feature at a time follow the paper. Differences: stumps are used for
    all features (the paper uses natural cubic splines for continuous features and stumps for discrete ones), so there
    is no penalty on second derivatives; there is no scale parameter for the smoothing, because the step sizes are
    relative to it; the step size is chosen by the exact partial AUC instead of a Newton-Raphson step on the smooth one,
    which for small windows is largest at very small steps that hardly change the ranking; the window is exact instead
    of being approximated by thresholds.

    With ``weak_learner="linear"``, the weak learners are single standardized features instead of stumps, and the model
    is linear, as in the experiments of Narasimhan and Agarwal (2017).

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    n_estimators : int, default=100
        Maximum number of boosting rounds. They stop early if no stump improves the ranking.
    weak_learner : {"stump", "linear"}, default="stump"
        Weak learners: decision stumps, or the features.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.

    Attributes
    ----------
    stumps_ : list of Stump
        Feature and threshold of each round. Only with stumps.
    features_ : ndarray of shape (n_rounds,)
        Feature of each round. Only with linear weak learners.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features; positive scores indicate ``classes_[1]``. Only with linear weak learners.
    weights_ : ndarray of shape (n_rounds,)
        Weight of each round.
    train_partial_auc_ : ndarray of shape (n_rounds + 1,)
        Partial AUC of the training rows before the first and after each round.
    threshold_ : float
        The lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``.
    classes_ : ndarray of shape (2,)
        The classes.

    References
    ----------
    Komori and Eguchi, "A boosting method for maximizing the partial area under the ROC curve", BMC Bioinformatics 2010.
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, for linear weak learners.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import PAUCBoostClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = PAUCBoostClassifier(max_fpr=0.1, n_estimators=30).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.98
    """

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        *,
        n_estimators: int = 100,
        weak_learner: str = "stump",
        pos_label: Any = None,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.n_estimators = n_estimators
        self.weak_learner = weak_learner
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_window(self.min_fpr, self.max_fpr)
        check_number("n_estimators", self.n_estimators, above=0, integer=True)
        check_choice("weak_learner", self.weak_learner, ("stump", "linear"))

    def _learn(self, data: TrainingSet) -> Array:
        linear = self.weak_learner == "linear"
        learners = SingleFeatures(data) if linear else SortedFeatures(data.X)
        smooth = SmoothPartialAUC(data.positive, data.weight, self.min_fpr, self.max_fpr)
        scores = np.zeros(data.positive.size)
        reached = self._area(data, scores)
        chosen: list[Any] = []
        weights, trace = [], [reached]
        for _ in range(self.n_estimators):
            found = self._best_step(data, scores, learners.leading(smooth.gradient(scores), _CANDIDATES))
            if found is None or found.area <= reached + 1e-12:
                break
            scores, reached = found.scores, found.area
            chosen.append(found.learner)
            weights.append(found.step)
            trace.append(reached)
        self.weights_, self.train_partial_auc_ = np.array(weights), np.array(trace)
        if isinstance(learners, SingleFeatures):
            self.features_ = np.array([one.feature for one in chosen], dtype=np.intp)
            total = np.bincount(self.features_, self.weights_, data.X.shape[1])
            self.coef_ = self._sign() * (learners.scale * total)[np.newaxis, :]
            return self._scores(data.X)
        self.stumps_ = chosen
        return scores

    def _best_step(self, data: TrainingSet, scores: Array, leading: list[Any]) -> _Step | None:
        """Return the weak learner and step size with the largest partial AUC; None without weak learners."""
        best = None
        tried = [(one, float(np.sign(one.gain)) * 2.0**power) for one in leading for power in range(2, -7, -1)]
        for learner, step in tried:
            moved = scores + step * learner(data.X)
            area = self._area(data, moved)
            if best is None or area > best.area + 1e-12:
                best = _Step(learner, step, moved, area)
        return best

    def _scores(self, X: Any) -> Array:
        if self.weak_learner == "stump":
            return stump_scores(self.stumps_, self.weights_, X)
        result: Array = self._sign() * (X @ self.coef_[0])
        return result

    def _area(self, data: TrainingSet, scores: Array) -> float:
        return self._measure(data.positive, join_ties(scores), data.weight, True)

    def _make_measure(self) -> Measure:
        return PartialAUCMeasure(self.min_fpr, self.max_fpr)


class _Step(NamedTuple):
    """A step along a weak learner, with the scores and the partial AUC after it."""

    learner: Any
    step: float
    scores: Array
    area: float


class SmoothPartialAUC:
    """Gradient of the partial AUC, smoothed by the normal distribution function.

    Sums of stumps have few distinct values, so the sum over pairs runs over distinct scores, in blocks of limited size.
    """

    def __init__(self, positive: NDArray[np.bool_], weight: Array | None, min_fpr: float, max_fpr: float) -> None:
        self._positive = positive
        self._weight = np.ones(positive.size) if weight is None else weight
        n = float(self._weight[~positive].sum())
        self._a, self._b = window_end(n, min_fpr), window_end(n, max_fpr)
        self._norm = float(self._weight[positive].sum()) * (self._b - self._a)

    def gradient(self, scores: Array) -> Array:
        """Return the derivative of the smooth partial AUC with respect to each score."""
        levels, level_of, gain, part = self._levels(scores)
        inside = np.flatnonzero(part > 0)
        up, down = np.zeros(levels.size), np.zeros(levels.size)
        for rows in _blocks(np.flatnonzero(gain > 0), inside.size):
            apart = levels[rows][:, None] - levels[inside]
            density = np.exp(-0.5 * apart**2) / (np.sqrt(2 * np.pi) * self._norm)
            up[rows] = density @ part[inside]
            down[inside] += gain[rows] @ density
        # Tied negatives are in the window with a fraction of their weight.
        full = np.bincount(level_of, self._weight * ~self._positive, levels.size)
        share = np.divide(part, full, out=np.zeros(levels.size), where=full > 0)
        return self._weight * np.where(self._positive, up[level_of], -(share * down)[level_of])

    def _levels(self, scores: Array) -> tuple[Array, NDArray[np.intp], Array, Array]:
        """Return distinct scores, the level of each row, and the weights of positives and negatives in the window."""
        levels, level_of = np.unique(join_ties(scores), return_inverse=True)
        gain = np.bincount(level_of, self._weight * self._positive, levels.size).astype(np.float64)
        full = np.bincount(level_of, self._weight * ~self._positive, levels.size).astype(np.float64)
        # Ranks start at the highest score.
        stop = np.cumsum(full[::-1])[::-1]
        part = np.clip(stop, self._a, self._b) - np.clip(stop - full, self._a, self._b)
        return levels, level_of, gain, part


def _blocks(rows: NDArray[np.intp], width: int, size: int = 2_000_000) -> list[NDArray[np.intp]]:
    """Split rows into blocks so that a table with ``width`` columns has a limited size."""
    return np.array_split(rows, max(1, -(-rows.size * max(width, 1) // size)))
