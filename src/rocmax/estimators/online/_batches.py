"""State of mini-batch training: streams, held-out rows and the composition of batches."""

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


# Number of rows of a stream that are stored for the choice of the threshold.
_STREAM_ROWS = 5_000


class Watch:
    """Early stopping on held-out rows.

    Parameters
    ----------
    measure : Measure
        Measure to monitor.
    data : TrainingSet
        All rows.
    rows : ndarray of int
        Indices of the held-out rows.

    Attributes
    ----------
    best : tuple of ndarray and float
        Weights and intercept with the best value of the measure.
    """

    _PATIENCE = 2

    def __init__(self, measure: Measure, data: TrainingSet, rows: NDArray[np.intp]) -> None:
        self._measure, self._X, self._positive = measure, data.X[rows], data.positive[rows]
        if np.unique(self._positive).size < 2:
            raise ValueError(
                f"with early_stopping, the held-out rows must contain both classes; got one class in {rows.size} rows. "
                "Increase validation_fraction"
            )
        self._largest, self._waited = -np.inf, 0
        self.best = np.zeros(data.X.shape[1]), 0.0

    def should_stop(self, w: Array, b: float) -> bool:
        """Record the measure for the given weights; return whether it has stopped improving."""
        scores = self._X @ w
        scores = scores - self._measure.threshold(scores, self._positive)
        value = self._measure.score(self._positive, scores, pos_label=True)
        if value > self._largest:
            self._largest, self._waited, self.best = value, 0, (w.copy(), b)
        else:
            self._waited += 1
        return self._waited >= self._PATIENCE


class StreamState:
    """State of ``partial_fit`` between calls: steps, buffered rows and samples of bounded size."""

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
        """Add rows and take a step for each full batch."""
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
        """Add rows to the samples."""
        self._sample.add(X, positive, self._rng)
        if self._positives is not None:
            self._positives.add(X[positive], positive[positive], self._rng)
            self._n_negatives += int((~positive).sum())

    def threshold(self, w: Array) -> float:
        """Return the threshold chosen on the sample; zero if it contains only one class."""
        X, positive = self._sample.rows()
        if positive.all() or not positive.any():
            return 0.0
        return self._measure.threshold(X @ w, positive)


def n_batches(n_rows: int, size: int) -> int:
    """Return the number of batches of about the given size."""
    return max(1, round(n_rows / size))


def with_sample(sample: Any, negatives: Any, measure: Measure, ratio: float) -> tuple[Any, Bools, Array | None]:
    """Return a batch of sampled positives and negatives, with weights if the measure depends on the class ratio."""
    labels = np.arange(sample.shape[0] + negatives.shape[0]) < sample.shape[0]
    weight = None
    if measure.depends_on_class_ratio:
        weight = np.where(labels, ratio * negatives.shape[0] / sample.shape[0], 1.0)
    return stack([sample, negatives]), labels, weight
