"""What training on batches keeps between them: a stream's state, held-out rows, and how a batch is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array, Bools
from rocmax._validate import TrainingSet
from rocmax.measures import Measure
from rocmax.streaming.sampling import Buffer, Reservoir, stack

if TYPE_CHECKING:
    from rocmax.estimators.online.minibatch import MiniBatchClassifier
    from rocmax.solvers.minibatch import MiniBatchSteps


# Rows of a stream on which the threshold is chosen, and which have to be kept.
_STREAM_ROWS = 5_000


class Watch:
    """Held-out rows, and what was best on them.

    Parameters
    ----------
    measure : Measure
        What is watched.
    data : TrainingSet
        All rows.
    rows : ndarray of int
        The held-out ones.

    Attributes
    ----------
    best : tuple of ndarray and float
        Weights and intercept.
    """

    _PATIENCE = 2

    def __init__(self, measure: Measure, data: TrainingSet, rows: NDArray[np.intp]) -> None:
        self._measure, self._X, self._positive = measure, data.X[rows], data.positive[rows]
        if np.unique(self._positive).size < 2:
            raise ValueError(
                f"early_stopping needs both classes among the {rows.size} rows that are held out; raise "
                "validation_fraction"
            )
        self._largest, self._waited = -np.inf, 0
        self.best = np.zeros(data.X.shape[1]), 0.0

    def should_stop(self, w: Array, b: float) -> bool:
        """Note the measure of these weights, whose intercept is kept with them; tell whether it no longer grows."""
        scores = self._X @ w
        scores = scores - self._measure.threshold(scores, self._positive)
        value = self._measure.score(self._positive, scores, pos_label=True)
        if value > self._largest:
            self._largest, self._waited, self.best = value, 0, (w.copy(), b)
        else:
            self._waited += 1
        return self._waited >= self._PATIENCE


class StreamState:
    """What ``partial_fit`` keeps between calls: steps, waiting rows, and samples of bounded size."""

    def __init__(
        self, estimator: MiniBatchClassifier, measure: Measure, steps: MiniBatchSteps, rng: np.random.RandomState
    ) -> None:
        self.steps = steps
        self.n_skipped = 0
        self._measure = measure
        self._rng = rng
        self._buffer = Buffer(estimator.batch_size)
        self._positives = None if estimator.reservoir_size is None else Reservoir(estimator.reservoir_size)
        self._sample = Reservoir(_STREAM_ROWS)
        self._n_negatives = 0

    def take(self, X: Any, positive: Bools) -> None:
        """Take rows; step for each batch that is full."""
        self.remember(X, positive)
        if self._positives is not None:
            X, positive = X[~positive], positive[~positive]
        for batch, labels in self._buffer.push(X, positive):
            weight = None
            if self._positives is not None and len(self._positives):
                ratio = self._positives.seen / self._n_negatives
                batch, labels, weight = with_sample(self._positives.rows()[0], batch, self._measure, ratio)
            if labels.all() or not labels.any():
                self.n_skipped += 1
            else:
                self.steps.step(batch, labels, weight)

    def remember(self, X: Any, positive: Bools) -> None:
        """Let rows into the samples."""
        self._sample.add(X, positive, self._rng)
        if self._positives is not None:
            self._positives.add(X[positive], positive[positive], self._rng)
            self._n_negatives += int((~positive).sum())

    def threshold(self, w: Array) -> float:
        """Return the threshold on the sample; zero while it has one class."""
        X, positive = self._sample.rows()
        if positive.all() or not positive.any():
            return 0.0
        return self._measure.threshold(X @ w, positive)


def n_batches(n_rows: int, size: int) -> int:
    """Return how many batches of about one size the rows make."""
    return max(1, round(n_rows / size))


def with_sample(sample: Any, negatives: Any, measure: Measure, ratio: float) -> tuple[Any, Bools, Array | None]:
    """Return a batch of sampled positives and negatives, with weights if their ratio matters to the measure."""
    labels = np.arange(sample.shape[0] + negatives.shape[0]) < sample.shape[0]
    weight = None
    if measure.depends_on_class_ratio:
        weight = np.where(labels, ratio * negatives.shape[0] / sample.shape[0], 1.0)
    return stack([sample, negatives]), labels, weight
