"""pAUCBoost: boosted stumps for the partial AUC."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._rounding import join_ties
from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_number
from rocmax._window import check_window, window_end
from rocmax.estimators._base import ScoredClassifier
from rocmax.estimators.baselines._stumps import SortedFeatures, stump_scores
from rocmax.measures import Measure, PartialAUCMeasure

# pAUCBoost tries the stumps of this many features, those along which the partial AUC rises fastest.
_CANDIDATES = 10


class PAUCBoostClassifier(ScoredClassifier):
    r"""Boosted decision stumps that maximise the partial area under the ROC curve (after pAUCBoost).

    The direction of each round comes from a smooth partial AUC,

    .. math:: \frac{1}{m (b-a)} \sum_i \sum_j q_j \, \Phi\bigl(F(x_i^+) - F(x_j^-)\bigr),

    with :math:`\Phi` the normal distribution function and :math:`q_j` the part of a negative's rank that lies in the
    window :math:`(a, b]` of false positives; tied negatives share it. The ten features along whose best stumps it rises
    fastest are tried with a halving sequence of steps, and the stump and step with the largest partial AUC of the
    training rows are taken. That one never falls; where nothing raises it, the rounds end.

    The paper was followed in the smooth partial AUC and in adding one feature at a time. Chosen here: stumps for every
    feature (the paper takes natural cubic splines for continuous ones, and stumps for discrete ones only), hence no
    penalty on second derivatives and no tuning of it; no scale of the smoothing, as the steps are
    measured in it; the step by the exact partial AUC in place of a Newton-Raphson
    step on the smooth one, which for small windows is largest at tiny steps, where nothing is decided; an exact window
    in place of thresholds at its ends.

    Parameters
    ----------
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=0.1
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    n_estimators : int, default=100
        Maximum number of boosting rounds. They stop early if no stump improves the ranking.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.

    Attributes
    ----------
    stumps_ : list of Stump
        Feature and threshold of each round.
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
        pos_label: Any = None,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.n_estimators = n_estimators
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_window(self.min_fpr, self.max_fpr)
        check_number("n_estimators", self.n_estimators, above=0, integer=True)

    def _learn(self, data: TrainingSet) -> Array:
        features = SortedFeatures(data.X)
        smooth = SmoothPartialAUC(data.positive, data.weight, self.min_fpr, self.max_fpr)
        scores = np.zeros(data.positive.size)
        reached = self._area(data, scores)
        stumps, weights, trace = [], [], [reached]
        for _ in range(self.n_estimators):
            tried = [
                (stump, float(np.sign(stump.gain)) * 2.0**power)
                for stump in features.leading(smooth.gradient(scores), _CANDIDATES)
                for power in range(2, -7, -1)
            ]
            values = np.array([self._area(data, scores + step * stump(data.X)) for stump, step in tried])
            if values.max(initial=-np.inf) <= reached + 1e-12:
                break
            found = int(np.argmax(values >= values.max() - 1e-12))
            stump, step = tried[found]
            scores, reached = scores + step * stump(data.X), float(values[found])
            stumps.append(stump)
            weights.append(step)
            trace.append(reached)
        self.stumps_, self.weights_, self.train_partial_auc_ = stumps, np.array(weights), np.array(trace)
        return scores

    def _scores(self, X: Any) -> Array:
        return stump_scores(self.stumps_, self.weights_, X)

    def _area(self, data: TrainingSet, scores: Array) -> float:
        return self._measure(data.positive, join_ties(scores), data.weight, True)

    def _make_measure(self) -> Measure:
        return PartialAUCMeasure(self.min_fpr, self.max_fpr)


class SmoothPartialAUC:
    """The slope of the partial AUC with the normal distribution function in place of a jump.

    Scores are few distinct numbers (sums of stumps), so pairs are taken between distinct scores, in blocks of bounded
    memory.
    """

    def __init__(self, positive: NDArray[np.bool_], weight: Array | None, min_fpr: float, max_fpr: float) -> None:
        self._positive = positive
        self._weight = np.ones(positive.size) if weight is None else weight
        n = float(self._weight[~positive].sum())
        self._a, self._b = window_end(n, min_fpr), window_end(n, max_fpr)
        self._norm = float(self._weight[positive].sum()) * (self._b - self._a)

    def gradient(self, scores: Array) -> Array:
        """Return the derivative of the smooth partial AUC in each score, for the window at hand."""
        levels, level_of, gain, part = self._levels(scores)
        inside = np.flatnonzero(part > 0)
        up, down = np.zeros(levels.size), np.zeros(levels.size)
        for rows in _blocks(np.flatnonzero(gain > 0), inside.size):
            apart = levels[rows][:, None] - levels[inside]
            density = np.exp(-0.5 * apart**2) / (np.sqrt(2 * np.pi) * self._norm)
            up[rows] = density @ part[inside]
            down[inside] += gain[rows] @ density
        # A level of tied negatives is in the window with a share of its weight.
        full = np.bincount(level_of, self._weight * ~self._positive, levels.size)
        share = np.divide(part, full, out=np.zeros(levels.size), where=full > 0)
        return self._weight * np.where(self._positive, up[level_of], -(share * down)[level_of])

    def _levels(self, scores: Array) -> tuple[Array, NDArray[np.intp], Array, Array]:
        """Distinct scores, the level of each row, the positives' weight there, and the negatives' inside the window."""
        levels, level_of = np.unique(join_ties(scores), return_inverse=True)
        gain = np.bincount(level_of, self._weight * self._positive, levels.size).astype(np.float64)
        full = np.bincount(level_of, self._weight * ~self._positive, levels.size).astype(np.float64)
        # Ranks are counted from the highest score down.
        stop = np.cumsum(full[::-1])[::-1]
        part = np.clip(stop, self._a, self._b) - np.clip(stop - full, self._a, self._b)
        return levels, level_of, gain, part


def _blocks(rows: NDArray[np.intp], width: int, size: int = 2_000_000) -> list[NDArray[np.intp]]:
    """Cut rows into pieces whose table with ``width`` columns stays small."""
    return np.array_split(rows, max(1, -(-rows.size * max(width, 1) // size)))
