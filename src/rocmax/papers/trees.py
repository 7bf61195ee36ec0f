"""Published trees and combinations of features: the AUC tree, RankBoost, pAUCBoost and the greedy combination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rocmax._rounding import join_ties, window_end
from rocmax._support import Array, Index, check_window
from rocmax._validation import TrainingSet, check_number
from rocmax.base import ScoredClassifier
from rocmax.measures import Measure, PartialAUCMeasure


def standardized(data: TrainingSet) -> tuple[Array, Array]:
    """Return the features with mean 0 and deviation 1, and their factors; a constant feature has the factor 0."""
    weight = np.ones(data.positive.size) if data.weight is None else data.weight
    mean = np.average(data.X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((data.X - mean) ** 2, axis=0, weights=weight))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-12)
    return (data.X - mean) * scale, scale


# Relative tolerance within which gains are considered equal, so that rounding errors do not affect the choice.
_ROUNDING = 1e-10


class Stump(NamedTuple):
    """Indicator of a feature above a threshold; ``gain`` is the sum of the coefficients of these rows."""

    feature: int
    threshold: float
    gain: float

    def __call__(self, X: Array) -> Array:
        """Return 0 or 1 for each row."""
        return (X[:, self.feature] > self.threshold).astype(np.float64)


class SortedFeatures:
    """Features sorted once, so that each search for the best stump costs O(N d)."""

    def __init__(self, X: Array) -> None:
        self._order = np.argsort(X, axis=0, kind="stable")
        self._placed = np.take_along_axis(X, self._order, axis=0)
        # Thresholds are possible only between different values.
        self._between = np.diff(self._placed, axis=0) > 0

    def best(self, coefficients: Array) -> Stump | None:
        """Return the stump with the largest gain, the absolute sum of its coefficients; None if no feature varies.

        Ties are resolved by the first feature and its lowest threshold.
        """
        varies = np.flatnonzero(self._between.any(axis=0))
        if varies.size == 0:
            return None
        below = np.cumsum(coefficients[self._order], axis=0)
        above = np.where(self._between, below[-1] - below[:-1], 0.0)
        size = np.abs(above)
        most = size.max(axis=0)
        # Rounding preserves the order of features with equal gains.
        f = int(varies[np.argmax(np.round(most[varies] / (most.max() or 1.0), 10))])
        k = int(np.argmax(size[:, f] >= (1 - _ROUNDING) * most[f]))
        return Stump(f, midpoint(self._placed[k, f], self._placed[k + 1, f]), float(above[k, f]))


def midpoint(low: float, high: float) -> float:
    """Return the midpoint; it is at least ``low`` and below ``high`` despite rounding errors."""
    middle = 0.5 * low + 0.5 * high
    return float(middle) if low <= middle < high else float(low)


class AUCTreeClassifier(ScoredClassifier):
    r"""Decision tree with splits that maximize the area under the local ROC curve (AUCsplit).

    A split of a node with ``P`` positives and ``N`` negatives defines a ROC curve of its children, ordered by their
    fraction of positives. For two children, one of them with ``p`` positives and ``n`` negatives, the area under the
    curve is :math:`\frac{1}{2} + \frac{1}{2} |p/P - n/N|`; the split with the largest area is chosen. The score of a
    leaf is the Laplace estimate :math:`(p + 1) / (p + n + 2)`.

    The criterion and the scores of the leaves are those of the paper. Splits of numeric features are binary, at the
    midpoint between neighboring values. There is no pruning; the size is limited by the two parameters below.

    Parameters
    ----------
    max_depth : int, default=None
        Maximum depth of the tree. None means no limit.
    min_samples_leaf : float, default=1
        Minimum total weight (number of rows) in a leaf.
    pos_label

    Attributes
    ----------
    feature_ : ndarray of int
        Feature used by the split of each node; -1 for a leaf.
    split_ : ndarray
        Threshold of the split of each node: rows at or below it go to the left child.
    left_, right_ : ndarray of int
        Children of each node; -1 for a leaf.
    value_ : ndarray
        Laplace estimate of each node.
    threshold_ : float
        Score above which a row is predicted positive; it maximizes TPR - FPR on the training rows.
    classes_

    References
    ----------
    Ferri, Flach and Hernandez-Orallo, "Learning decision trees using the area under the ROC curve", ICML 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import AUCTreeClassifier
    >>> X, y = make_classification(n_samples=500, weights=[0.9], random_state=0)
    >>> round(AUCTreeClassifier(max_depth=3).fit(X, y).score(X, y), 2)
    0.98
    """

    def __init__(self, max_depth: int | None = None, *, min_samples_leaf: float = 1, pos_label: Any = None) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        if self.max_depth is not None:
            check_number("max_depth", self.max_depth, above=0, integer=True)
        check_number("min_samples_leaf", self.min_samples_leaf, above=0.0)

    def _remedy(self) -> str:
        return (
            "The tree has no split: a leaf must have a total weight of at least "
            f"min_samples_leaf={self.min_samples_leaf:g}. Decrease it, divide the weights by their "
            "mean, or check that the features differ between the classes."
        )

    def _learn(self, data: TrainingSet) -> Array:
        weight = np.ones(data.positive.size) if data.weight is None else data.weight
        gain, cost = weight * data.positive, weight * ~data.positive
        feature: list[int] = []
        split: list[float] = []
        left: list[int] = []
        right: list[int] = []
        value: list[float] = []
        # Rows, depth, and the list and position in which to store the index of the node.
        waiting: list[tuple[Index, int, list[int] | None, int]] = [(np.arange(weight.size), 0, None, 0)]
        while waiting:
            rows, depth, note, parent = waiting.pop()
            node = len(value)
            if note is not None:
                note[parent] = node
            p, n = float(gain[rows].sum()), float(cost[rows].sum())
            value.append((p + 1.0) / (p + n + 2.0))
            left.append(-1)
            right.append(-1)
            limit = self.max_depth is not None and depth >= self.max_depth
            found = None if limit else best_split(data.X[rows], gain[rows], cost[rows], self.min_samples_leaf)
            feature.append(-1 if found is None else found[0])
            split.append(0.0 if found is None else found[1])
            if found is not None:
                low = data.X[rows, found[0]] <= found[1]
                waiting.append((rows[~low], depth + 1, right, node))
                waiting.append((rows[low], depth + 1, left, node))
        self.feature_, self.split_ = np.array(feature), np.array(split)
        self.left_, self.right_, self.value_ = np.array(left), np.array(right), np.array(value)
        return self._scores(data.X)

    def _scores(self, X: Any) -> Array:
        return self.value_[self._leaves(X)]

    def _leaves(self, X: Array) -> Index:
        """Return the leaf of each row."""
        node = np.zeros(X.shape[0], dtype=np.intp)
        moving = np.flatnonzero(self.feature_[node] >= 0)
        while moving.size:
            at = node[moving]
            low = X[moving, self.feature_[at]] <= self.split_[at]
            node[moving] = np.where(low, self.left_[at], self.right_[at])
            moving = moving[self.feature_[node[moving]] >= 0]
        return node


def best_split(X: Array, gain: Array, cost: Array, least: float) -> tuple[int, float] | None:
    """Return the feature and threshold with the largest local AUC; None if the node is pure or no split is possible.

    Ties are resolved by the first feature and its lowest threshold.
    """
    positives, negatives = gain.sum(), cost.sum()
    if positives <= 0 or negatives <= 0:
        return None
    order = np.argsort(X, axis=0, kind="stable")
    placed = np.take_along_axis(X, order, axis=0)
    p, n = np.cumsum(gain[order], axis=0)[:-1], np.cumsum(cost[order], axis=0)[:-1]
    low = p + n
    # Tolerance for rounding errors in sums of weights.
    allowed = (np.diff(placed, axis=0) > 0) & (low >= least - 1e-9) & (positives + negatives - low >= least - 1e-9)
    area = np.where(allowed, np.abs(p / positives - n / negatives), -1.0).T
    if area.max(initial=-1.0) <= _ROUNDING:
        return None
    feature, place = np.unravel_index(int(np.argmax(area >= area.max() - _ROUNDING)), area.shape)
    return int(feature), midpoint(placed[place, feature], placed[place + 1, feature])


class RankBoostClassifier(ScoredClassifier):
    r"""Boosted decision stumps that maximize the area under the ROC curve (RankBoost, bipartite form).

    Minimizes the exponential loss on pairs, :math:`\sum_{ij} D_{ij} \exp(F(x_j^-) - F(x_i^+))`, by adding one stump in
    each round. The weight of a pair is the product of the weights of its two rows, so a round costs O(N d) with
    presorted features. Let :math:`r` be the weighted mean of :math:`h(x_i^+) - h(x_j^-)` over the pairs. Each round
    adds the stump ``h`` (0 or 1) with the largest :math:`|r|`, with the weight :math:`\frac{1}{2} \ln\frac{1+r}{1-r}`
    (the third method of the paper). The loss does not increase.

    Parameters
    ----------
    n_estimators : int, default=100
        Maximum number of boosting rounds. They stop early if no stump improves the ranking.
    pos_label

    Attributes
    ----------
    stumps_ : list of Stump
        Feature and threshold of each round.
    weights_ : ndarray of shape (n_rounds,)
        Weight of each round; negative if low values of the feature indicate the positive class.
    train_loss_ : ndarray of shape (n_rounds + 1,)
        Exponential loss before the first round (1) and after each round.
    threshold_ : float
        Score above which a row is predicted positive; it maximizes TPR - FPR on the training rows.
    classes_

    References
    ----------
    Freund, Iyer, Schapire and Singer, "An efficient boosting algorithm for combining preferences", JMLR 2003, section
    3.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import RankBoostClassifier
    >>> X, y = make_classification(n_samples=500, weights=[0.9], random_state=0)
    >>> model = RankBoostClassifier(n_estimators=30).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    """

    def __init__(self, n_estimators: int = 100, *, pos_label: Any = None) -> None:
        self.n_estimators = n_estimators
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_number("n_estimators", self.n_estimators, above=0, integer=True)

    def _learn(self, data: TrainingSet) -> Array:
        features = SortedFeatures(data.X)
        share = np.ones(data.positive.size) if data.weight is None else data.weight.copy()
        side = np.where(data.positive, 1.0, -1.0)
        scores = np.zeros(side.size)
        stumps, weights, losses = [], [], [1.0]
        for _ in range(self.n_estimators):
            share /= np.where(data.positive, share[data.positive].sum(), share[~data.positive].sum())
            stump = features.best(side * share)
            if stump is None or abs(stump.gain) < 1e-12:
                break
            # A stump that ranks all pairs correctly would have an infinite weight.
            weight = float(np.arctanh(np.clip(stump.gain, -1 + 1e-6, 1 - 1e-6)))
            step = weight * stump(data.X)
            share *= np.exp(-side * step)
            losses.append(losses[-1] * float(share[data.positive].sum() * share[~data.positive].sum()))
            scores += step
            stumps.append(stump)
            weights.append(weight)
        self.stumps_, self.weights_, self.train_loss_ = stumps, np.array(weights), np.array(losses)
        return scores

    def _scores(self, X: Any) -> Array:
        scores = np.zeros(X.shape[0])
        for stump, weight in zip(self.stumps_, self.weights_, strict=True):
            scores += weight * stump(X)
        return scores


class _WindowMixin:
    """Common methods of the classifiers that maximize the partial AUC of the training rows.

    It must precede ``ScoredClassifier`` in the list of bases.
    """

    min_fpr: float
    max_fpr: float

    def _area(self: Any, data: TrainingSet, scores: Array) -> float:
        return float(self._measure(data.positive, join_ties(scores), data.weight, True))

    def _scores(self: Any, X: Any) -> Array:
        result: Array = self._sign() * (X @ self.coef_[0])
        return result

    def _make_measure(self) -> Measure:
        return PartialAUCMeasure(self.min_fpr, self.max_fpr)


class PAUCBoostClassifier(_WindowMixin, ScoredClassifier):
    r"""Boosted single features that maximize a smooth partial area under the ROC curve (pAUCBoost).

    For scores ``F``, the smooth partial AUC is

    .. math:: \frac{1}{m (b-a)} \sum_i \sum_j q_j \, \Phi\bigl(F(x_i^+) - F(x_j^-)\bigr),

    where :math:`\Phi` is the normal distribution function and :math:`q_j` the fraction of the rank of a negative in the
    window :math:`(a, b]` of false positives, shared by tied negatives. Every weak learner ``f`` has a coefficient
    :math:`\beta(f)` that is kept between rounds and starts at 1 or -1. A round

    1. finds the negatives in the window of :math:`F + \beta(f) f`, for each ``f``,
    2. updates :math:`\beta(f)` by one Newton-Raphson step on the smooth partial AUC with these negatives,
    3. adds the :math:`\beta(f) f` with the largest smooth partial AUC to ``F``.

    There is no line search. A Newton-Raphson step can go to a minimum or far away, so the partial AUC of the training
    rows can decrease.

    As in the experiments of Narasimhan and Agarwal (2017), the weak learners are the standardized features, and the
    model is linear. Komori and Eguchi use natural cubic splines and stumps, with a penalty on second derivatives, which
    is zero for linear functions. Choices of this implementation: the sum runs over all positives, the sign at the start
    is that with the larger smooth partial AUC, and a coefficient without a finite Newton-Raphson step is kept. The text
    of Komori and Eguchi was not available in full, so other details may differ from theirs.

    Parameters
    ----------
    min_fpr, max_fpr
    n_estimators : int, default=100
        Number of boosting rounds.
    pos_label

    Attributes
    ----------
    features_ : ndarray of shape (n_estimators,)
        Feature of each round.
    weights_ : ndarray of shape (n_estimators,)
        Coefficient of each round, for the standardized feature.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features; positive scores indicate ``classes_[1]``.
    train_partial_auc_ : ndarray of shape (n_estimators + 1,)
        Partial AUC of the training rows before the first and after each round.
    threshold_ : float
        The lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``.
    classes_

    References
    ----------
    Komori and Eguchi, "A boosting method for maximizing the partial area under the ROC curve", BMC Bioinformatics 2010.
    Narasimhan and Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", Neural
    Computation 2017, for the weak learners.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import PAUCBoostClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = PAUCBoostClassifier(max_fpr=0.1, n_estimators=10).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    def __init__(
        self, min_fpr: float = 0.0, max_fpr: float = 0.1, *, n_estimators: int = 100, pos_label: Any = None
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.n_estimators = n_estimators
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_window(self.min_fpr, self.max_fpr)
        check_number("n_estimators", self.n_estimators, above=0, integer=True)

    def _learn(self, data: TrainingSet) -> Array:
        Z, scale = standardized(data)
        smooth = SmoothPartialAUC(data.positive, data.weight, self.min_fpr, self.max_fpr)
        varies = np.flatnonzero(scale).tolist()
        signs = (1.0, -1.0)
        coefficients = {f: signs[np.argmax([smooth.value(sign * Z[:, f]) for sign in signs])] for f in varies}
        scores = np.zeros(data.positive.size)
        chosen: list[int] = []
        weights, trace = [], [self._area(data, scores)]
        for _ in range(self.n_estimators if coefficients else 0):
            values = []
            for f, beta in coefficients.items():
                slope, curvature = smooth.derivatives(scores + beta * Z[:, f], Z[:, f])
                step = -slope / curvature if curvature else np.inf
                coefficients[f] = beta + step if np.isfinite(beta + step) else beta
                values.append(smooth.value(scores + coefficients[f] * Z[:, f]))
            best = varies[int(np.argmax(values))]
            scores = scores + coefficients[best] * Z[:, best]
            chosen.append(best)
            weights.append(coefficients[best])
            trace.append(self._area(data, scores))
        self.features_, self.weights_ = np.array(chosen, dtype=np.intp), np.array(weights)
        self.train_partial_auc_ = np.array(trace)
        total = np.bincount(self.features_, self.weights_, data.X.shape[1])
        self.coef_ = self._sign() * (scale * total)[np.newaxis, :]
        return self._scores(data.X)


class SmoothPartialAUC:
    """The partial AUC, smoothed by the normal distribution function.

    The sum over pairs runs over distinct scores, in blocks of limited size.
    """

    def __init__(self, positive: NDArray[np.bool_], weight: Array | None, min_fpr: float, max_fpr: float) -> None:
        self._positive = positive
        self._weight = np.ones(positive.size) if weight is None else weight
        n = float(self._weight[~positive].sum())
        self._a, self._b = window_end(n, min_fpr), window_end(n, max_fpr)
        self._norm = float(self._weight[positive].sum()) * (self._b - self._a)

    def value(self, scores: Array) -> float:
        """Return the smooth partial AUC."""
        up, down = self._sums(scores, np.ones((1, scores.size)))
        return sum(float(part[0] @ ndtr(apart) @ down.sums[0]) for part, apart in up.apart(down)) / self._norm

    def derivatives(self, scores: Array, direction: Array) -> tuple[float, float]:
        """Return both derivatives along a direction, with the negatives in the window as they are."""
        up, down = self._sums(scores, np.array([np.ones(scores.size), direction, direction**2]))
        slope = curvature = 0.0
        for part, apart in up.apart(down):
            # From 40 on, it is zero in double precision; a square could overflow.
            density = np.exp(-0.5 * np.minimum(np.abs(apart), 40.0) ** 2) / (np.sqrt(2 * np.pi) * self._norm)
            # The sums over pairs of z_i - z_j and its square, times the density and its derivative.
            once, twice = part @ density @ down.sums.T, part @ (-apart * density) @ down.sums.T
            slope += float(once[1, 0] - once[0, 1])
            curvature += float(twice[2, 0] - 2 * twice[1, 1] + twice[0, 2])
        return slope, curvature

    def _sums(self, scores: Array, powers: Array) -> tuple[_Levels, _Levels]:
        """Return the weighted sums of each row of ``powers`` over the positives, and over the window, by score."""
        levels, level_of = np.unique(join_ties(scores), return_inverse=True)
        full = np.bincount(level_of, self._weight * ~self._positive, levels.size)
        # Ranks start at the highest score.
        stop = np.cumsum(full[::-1])[::-1]
        part = np.clip(stop, self._a, self._b) - np.clip(stop - full, self._a, self._b)
        share = np.divide(part, full, out=np.zeros(levels.size), where=full > 0)
        sides = []
        for weight in (self._weight * self._positive, self._weight * ~self._positive * share[level_of]):
            used = np.flatnonzero(np.bincount(level_of, weight, levels.size))
            sides.append(
                _Levels(levels[used], np.array([np.bincount(level_of, weight * p, levels.size)[used] for p in powers]))
            )
        return sides[0], sides[1]


class _Levels(NamedTuple):
    """Distinct scores, and sums over the rows with each."""

    scores: Array
    sums: Array

    def apart(self, others: _Levels) -> Iterator[tuple[Array, Array]]:
        """Yield blocks of the sums, with the differences of their scores from all those of the others."""
        for rows in _blocks(np.arange(self.scores.size), others.scores.size):
            yield self.sums[:, rows], self.scores[rows][:, None] - others.scores


def _blocks(rows: NDArray[np.intp], width: int, size: int = 2_000_000) -> list[NDArray[np.intp]]:
    """Split rows into blocks so that a table with ``width`` columns has a limited size."""
    return np.array_split(rows, max(1, -(-rows.size * max(width, 1) // size)))


class GreedyPairClassifier(_WindowMixin, ScoredClassifier):
    r"""Greedy linear combination of features for the partial AUC.

    The features are standardized, the sign of each is chosen to maximize its partial AUC, and they are sorted by their
    partial AUC. Starting from the best feature, the current combination ``s`` and the next feature ``x`` are combined
    to :math:`(1 - \lambda) s + \lambda x` with the :math:`\lambda \in \{0, 1/k, 2/k, \dots, 1\}` that maximizes the
    partial AUC on the training rows; the smallest in case of ties. Therefore the partial AUC on the training rows does
    not decrease.

    Known from the literature: the method finds a linear combination by combining two scores at a time for the largest
    partial AUC, with one parameter (100 in Narasimhan and Agarwal (2017)) for the number of intervals. The order, the
    choice of the signs, and convex combinations of standardized scores are choices of this implementation. The original
    method combines classifiers; here features are combined, as in Narasimhan and Agarwal (2017). With
    ``standardize=False`` and ``orient=False``, the features are combined without changes.

    Parameters
    ----------
    min_fpr, max_fpr
    n_steps : int, default=100
        Number of intervals ``k`` of the grid for each weight.
    standardize : bool, default=True
        Whether to standardize the features.
    orient : bool, default=True
        Whether to choose the signs of the features. Without it, all weights are at least 0 and a feature whose low
        values indicate positives cannot contribute.
    pos_label

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of the features; positive scores indicate ``classes_[1]``.
    order_ : ndarray of shape (n_features,)
        The features in the order in which they were added.
    train_partial_auc_ : ndarray of shape (n_features,)
        Partial AUC of the training rows after each feature.
    threshold_ : float
        The lowest threshold whose false-positive rate on the training rows is at most ``max_fpr``.
    classes_

    References
    ----------
    Ricamato and Tortorella, "Partial AUC maximization in a linear combination of dichotomizers", Pattern Recognition
    2011.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax.papers import GreedyPairClassifier
    >>> X, y = make_classification(n_samples=500, n_features=6, weights=[0.9], random_state=0)
    >>> model = GreedyPairClassifier(max_fpr=0.1).fit(X, y)
    >>> bool(model.train_partial_auc_[-1] >= model.train_partial_auc_[0])
    True
    """

    def __init__(
        self,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        *,
        n_steps: int = 100,
        standardize: bool = True,
        orient: bool = True,
        pos_label: Any = None,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.n_steps = n_steps
        self.standardize = standardize
        self.orient = orient
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_window(self.min_fpr, self.max_fpr)
        check_number("n_steps", self.n_steps, above=0, integer=True)

    def _learn(self, data: TrainingSet) -> Array:
        Z, scale = standardized(data) if self.standardize else (data.X, np.ones(data.X.shape[1]))
        sides = (1.0, -1.0) if self.orient else (1.0,)
        alone = np.array([[self._area(data, side * column) for side in sides] for column in Z.T])
        turned = np.where(alone[:, -1] > alone[:, 0] + 1e-12, -1.0, 1.0)
        self.order_ = np.argsort(-np.round(alone.max(axis=1), 12), kind="stable")
        coefficients, trace = np.zeros(Z.shape[1]), []
        scores = np.zeros(data.positive.size)
        for place, feature in enumerate(self.order_):
            column = turned[feature] * Z[:, feature]
            share, area = (1.0, alone[feature].max()) if place == 0 else self._best_share(data, scores, column)
            coefficients *= 1.0 - share
            coefficients[feature] = share * turned[feature] * scale[feature]
            scores = (1.0 - share) * scores + share * column
            trace.append(area)
        self.train_partial_auc_ = np.array(trace)
        self.coef_ = self._sign() * coefficients[np.newaxis, :]
        return self._scores(data.X)

    def _best_share(self, data: TrainingSet, scores: Array, column: Array) -> tuple[float, float]:
        shares = np.linspace(0.0, 1.0, self.n_steps + 1)
        areas = np.array([self._area(data, (1.0 - share) * scores + share * column) for share in shares])
        best = int(np.argmax(areas >= areas.max() - 1e-12))
        return float(shares[best]), float(areas[best])
