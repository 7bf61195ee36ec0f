"""Objectives and evaluation metrics of boosted trees, shared by the engines.

The two libraries use the same two forms of a call: ``f(scores, data)`` in their own interface, with a data set that has
``get_label`` and ``get_weight``, and ``f(y_true, scores, weight)`` in their interface for scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rocmax._support import Array, Bools
from rocmax._validation import check_number
from rocmax.losses import Bins, Loss, ScoreGrid, WindowPairs
from rocmax.measures import Measure, find_measure

# The objective of the default: pairs charged by a sigmoid, negatives beyond the first 5 % with falling weights.
DEFAULT_LOSS = WindowPairs("sigmoid", max_fpr=0.05, soft_tail=True, scale=2.0)
# More rows than this are counted in bins of their scores, this number for each class: a bin is then a thousandth of the
# range of the scores wide, and a round takes hardly longer than one of the logistic loss.
MANY_ROWS, N_BINS = 16_384, 1024


def relative_weights(weight: Array | None) -> Array | None:
    """Return the weights divided by the mean of those above zero, so that their scale has no effect on the trees.

    The limits and penalties of the engines on the sum of the curvatures in a leaf are for weights of about one: with
    small weights, no leaf would be split.
    """
    if weight is None:
        return None
    weight = np.asarray(weight, dtype=np.float64)
    present = weight[weight > 0]
    return weight / present.mean() if present.size else weight


class TreeObjective:
    """Gradient and curvature for each round of one fit: binary log loss first, then a loss of :mod:`rocmax.losses`.

    An object belongs to one fit: it counts the rounds. Only the ratios of the weights matter. ``offset`` is added to
    the scores for the binary log loss: if all scores are equal in the first round, it raises them to the logarithm of
    the odds. The scores of the model do not contain it.
    """

    def __init__(self, labels: Bools, weight: Array | None, warmup: int, loss: Loss | None = None) -> None:
        weight = relative_weights(weight)
        self._loss = DEFAULT_LOSS if loss is None else loss
        self._bound = self._loss.bind(labels, weight)
        if not self._bound.has_gradient_and_curvature:
            raise TypeError(f"loss must have a diagonal curvature, such as WindowPairs; got {loss!r}")
        self._sign = np.where(labels, 1.0, -1.0)
        self._weight = None if weight is None else self._bound.weight
        self._warmup = warmup
        self._factor: float | None = None
        self.offset = 0.0
        self.n_rounds = 0

    def __call__(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and curvature of the next round, one each per row."""
        scores = np.asarray(scores, dtype=np.float64)
        if self.n_rounds == 0 and (scores == scores[0]).all():
            self.offset = float(np.log(self._bound.m / self._bound.n)) - float(scores[0])
        self.n_rounds += 1
        if self.n_rounds <= self._warmup:
            return self._binary(scores + self.offset)
        gradient, curvature = self._of_window(scores)
        if self._factor is None:
            # A mean curvature of 0.1 makes limits on the sum of the curvatures in a leaf comparable with those of the
            # binary objective. If all pairs are in order, a larger factor would overflow if they were not later on.
            total = max(float(curvature.sum()), 1e-9)
            self._factor = 0.1 * (self._bound.m + self._bound.n) / total
        gradient *= self._factor
        curvature *= self._factor
        return gradient, curvature

    def _of_window(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and curvature of the loss; those of many rows at the mean scores of bins."""
        if scores.size <= MANY_ROWS:
            return self._bound.gradient_and_curvature(scores)
        cells = np.empty(scores.size, dtype=np.uint16)
        positive = self._sign > 0
        bins = Bins.count(ScoreGrid.covering(scores, N_BINS), scores, positive, self._weight, cells)
        held = np.flatnonzero(bins.weight)
        weight = bins.weight[held]
        bound = self._loss.bind(held >= N_BINS, weight)
        found = []
        for part in bound.gradient_and_curvature(bins.total[held] / weight):
            table = np.zeros(2 * N_BINS)
            table[held] = part / weight
            rows = table[cells]
            found.append(rows if self._weight is None else rows * self._weight)
        return found[0], found[1]

    def _binary(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and second derivative of the log loss, by the formulas of LightGBM."""
        with np.errstate(over="ignore"):
            size = 1.0 / (1.0 + np.exp(self._sign * scores))
        gradient, curvature = -self._sign * size, size * (1.0 - size)
        if self._weight is not None:
            gradient *= self._weight
            curvature *= self._weight
        return gradient, curvature


class CallRows(NamedTuple):
    """Scores, labels and weights of a call; weights are None if all are 1."""

    scores: Array
    labels: Any
    weight: Any


def rows_of_call(first: Any, second: Any, weight: Any) -> CallRows:
    """Return scores, labels and weights from the arguments of either form of a call."""
    if not hasattr(second, "get_label"):
        return CallRows(np.asarray(second), first, weight)
    labels, weight = second.get_label(), second.get_weight()
    if labels is None:
        raise ValueError("the data set must have labels; got none")
    # XGBoost has an empty array for no weights, LightGBM has None.
    return CallRows(np.asarray(first), labels, weight if weight is not None and len(weight) else None)


class Objective:
    """Objective for one fit; a copy, also one by ``copy.deepcopy`` or ``pickle``, is for another fit.

    ``check`` raises ValueError for settings of the library, found in the data set, that would be ignored.
    """

    def __init__(self, loss: Loss | None, n_warmup: int, check: Callable[[Any], None] | None = None) -> None:
        if loss is not None and not isinstance(loss, Loss):
            raise TypeError(f"loss must be a Loss, such as rocmax.losses.WindowPairs(), or None; got {loss!r}")
        check_number("n_warmup", n_warmup, above=-1, integer=True)
        self.loss, self.n_warmup, self._check = loss, n_warmup, check
        self._labels: Any = None
        self._weight: Any = None
        self._first: Array | None = None
        self._core: TreeObjective | None = None

    def __reduce__(self) -> Any:
        return Objective, (self.loss, self.n_warmup, self._check)

    def __call__(self, scores: Any, data: Any, sample_weight: Any = None) -> tuple[Array, Array]:
        """Return gradient and curvature of the next round, one each per row.

        The arguments are the scores and the training set or, in the interface for scikit-learn, labels and scores.
        """
        if self._check is not None and hasattr(data, "get_label"):
            self._check(data)
        rows = rows_of_call(scores, data, sample_weight)
        if self._core is None or self._first is None:
            self._start(rows)
        elif not (_same(rows.labels, self._labels) and _same(rows.weight, self._weight)):
            raise ValueError(
                f"an objective counts the rounds of one fit and must not be used for another; got labels or weights of "
                f"other data ({len(rows.labels)} rows) after {self._core.n_rounds} rounds. Make a new objective for "
                f"each fit and for each fold"
            )
        elif rows.scores[0] == self._first[0] and np.array_equal(rows.scores, self._first):
            self._start(rows)  # the first round of another fit on the same rows
        assert self._core is not None
        return self._core(rows.scores)

    def _start(self, rows: CallRows) -> None:
        if rows.scores.ndim != 1:
            raise ValueError(f"scores must be one-dimensional, for two classes; got shape {rows.scores.shape}")
        labels = np.asarray(rows.labels)
        if not np.isin(labels, (0, 1)).all():
            raise ValueError(f"labels must be 0 or 1; got values {np.unique(labels)[:5]}")
        self._core = TreeObjective(labels.astype(bool), rows.weight, self.n_warmup, self.loss)
        self._labels, self._weight, self._first = rows.labels, rows.weight, np.array(rows.scores)


class TreeEvaluation:
    """Measure of rows, for callbacks; measures of decisions are computed at the best threshold for the rows.

    LightGBM expects a name, the value and its direction; XGBoost a name and the value, in its interface for
    scikit-learn the value only.
    """

    def __init__(self, measure: str | Measure, name: str | None, of_lightgbm: bool) -> None:
        self.measure, self._of_lightgbm = find_measure(measure), of_lightgbm
        if self.measure.metric.takes_labels:
            self.measure.check_trainable()
        self.__name__ = self.measure.name if name is None else name
        if not self.__name__ or any(letter.isspace() or letter == ":" for letter in self.__name__):
            raise ValueError(f"name must be a word without spaces and colons; got {self.__name__!r}")

    def __call__(self, scores: Any, data: Any, sample_weight: Any = None) -> Any:
        """Return the measure in the form of the library; the arguments are those of an :class:`Objective`."""
        rows = rows_of_call(scores, data, sample_weight)
        margin, labels = rows.scores.astype(np.float64), np.asarray(rows.labels)
        if self.measure.metric.takes_labels:
            weight = None if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
            margin = margin - self.measure.threshold(margin, labels == 1, weight)
        value = float(self.measure.score(labels, margin, sample_weight=rows.weight, pos_label=1))
        if self._of_lightgbm:
            return self.__name__, value, self.measure.metric.greater_is_better
        return (self.__name__, value) if hasattr(data, "get_label") else value


def _same(one: Any, two: Any) -> bool:
    if one is two:
        return True
    return one is not None and two is not None and np.array_equal(one, two)
