"""Base class of the streaming classifiers, and the state and interface of the methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from rocmax._support import Array, RowNumbers
from rocmax._validation import (
    Block,
    check_block,
    check_number,
    check_training_set,
    direction,
    random_source,
)
from rocmax.base import Decision
from rocmax.linear.base import LinearDecision
from rocmax.measures import Measure, ROCAUCMeasure
from rocmax.online.sampling import reservoir, stack
from rocmax.operators import as_operator, moments


@dataclass(frozen=True)
class StreamRules:
    """Numbers of the streaming methods."""

    # Maximum number of rows for the choice of the threshold: more would take as long as a pass and change it little.
    threshold_rows: int = 10_000
    # Number of rows or pairs from which the length of the first step is derived.
    measured: int = 1000
    # Steps between returns to Python: small enough for interrupts, large enough for a negligible overhead. A row that
    # is compared with a buffer counts as one step per row of the buffer.
    block: int = 1 << 16


RULES = StreamRules()
_MEASURE = ROCAUCMeasure()


class StreamMixin:
    """``partial_fit``, which begins a model with the first rows and updates it with others."""

    # Parameters that may change between calls of partial_fit: those used only by fit, and the seed.
    _free: ClassVar[tuple[str, ...]] = ("max_iter", "tol", "random_state")
    classes_: NDArray[Any]

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Update the model with new rows; see above for what it does with them.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            New rows, one or more.
        y : array-like of shape (n_samples,)
            Class labels; a call may contain only one of the classes.
        classes : array-like of shape (2,), default=None
            The two classes; required in the first call, unless it follows ``fit``.

        Returns
        -------
        self
        """
        own: Any = self
        own._check_parameters()
        measure = own._stream_measure()
        block = check_block(self, X, y, classes, own.pos_label)
        if not hasattr(self, "_fixed"):
            self.classes_ = block.classes
            self._make_state(measure, block.X.shape[1])
            self._fix_parameters()
            self.n_iter_ = 0
        for name, value in self._fixed.items():
            given = getattr(self, name)
            if given is not value and given != value:
                raise ValueError(
                    f"{name} must stay {value!r} between calls of partial_fit; got {given!r}. "
                    "Use fit to train a new model"
                )
        self._update(measure, block)
        self.__dict__.pop("_feature_means_", None)  # of the rows of fit
        return self

    def _fix_parameters(self) -> None:
        own: Any = self
        parameters = own.get_params(deep=False)
        self._fixed = {name: value for name, value in parameters.items() if name not in self._free}

    @abstractmethod
    def _make_state(self, measure: Measure, n_features: int) -> None:
        """Set the state of a stream without rows."""

    @abstractmethod
    def _update(self, measure: Measure, block: Block) -> None:
        """Update the state and the model with new rows."""


class BatchStreamMixin(StreamMixin):
    """``fit`` and ``partial_fit`` of the classifiers that learn batches; must precede the base class with ``fit``."""

    warm_start = False

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model to all rows, in random order; rows of earlier calls are discarded.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training rows. The features should be standardized, so that steps and penalty affect all of them equally.
        y

        Returns
        -------
        self
        """
        super().fit(X, y)  # type: ignore[misc]  # of LinearScoreClassifier
        self._fix_parameters()
        return self


class StochasticClassifier(StreamMixin, LinearDecision, Decision, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class: run a streaming method over all rows or block by block, then choose a threshold."""

    max_iter: int
    tol: float | None
    buffer_size: int
    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training rows, standardized or scaled to unit length.
        y

        Returns
        -------
        self
        """
        self._check_parameters()
        data = check_training_set(self, X, y, None, self.pos_label)
        self._make_state(_MEASURE, data.X.shape[1])
        self._fix_parameters()
        self.classes_, self.n_iter_ = data.classes, 0
        stream = self._memory.stream(data.X, data.positive, self._rng, uniform=True)
        last = self._method.weights()
        for _ in range(self.max_iter):
            self._method.epoch(stream)
            self.n_iter_ += 1
            weights = self._method.weights()
            if self.tol is not None and np.linalg.norm(weights - last) <= self.tol * np.linalg.norm(weights):
                break
            last = weights
        self._finish(stream, data.positive_index)
        self._feature_means_ = moments(data.X, None)[0]
        self._warn_if_constant(data.X, lambda rows: as_operator(rows).matvec(self.coef_[0]))
        return self

    def _update(self, measure: Measure, block: Block) -> None:
        stream = self._memory.stream(block.X, block.positive, self._rng, uniform=False)
        self._method.epoch(stream)
        self.n_iter_ += 1
        self._finish(stream, block.positive_index)

    def _stream_measure(self) -> Measure:
        return _MEASURE

    @abstractmethod
    def _make_method(self, n_features: int) -> RowSteps:
        """Return the streaming method in its initial state."""

    def _remember(self, stream: RowBlock) -> None:
        """Add the new rows to the buffers, unless the method does this."""

    def _check_parameters(self) -> None:
        check_number("max_iter", self.max_iter, above=0, integer=True)
        check_number("buffer_size", self.buffer_size, above=0, integer=True)
        if self.tol is not None:
            check_number("tol", self.tol, above=0.0)

    def _make_state(self, measure: Measure, n_features: int) -> None:
        self._rng = np.random.default_rng(random_source(self.random_state).randint(2**31 - 1))
        self._method = self._make_method(n_features)
        self._memory = Memory(self.buffer_size)

    def _finish(self, stream: RowBlock, positive_index: int) -> None:
        self._remember(stream)
        self._memory.keep(stream)
        weights = self._method.weights()
        if not np.isfinite(weights).all():
            raise ValueError(
                f"{type(self).__name__}: the weights must be finite; got infinite or NaN values. Standardize the "
                "features, or scale the rows to unit length"
            )
        sign = direction(positive_index)
        # As in scikit-learn, positive decision values indicate classes_[1], whether or not it is the positive class.
        self.coef_ = sign * weights[np.newaxis, :]
        self.intercept_ = np.array([-sign * self._threshold(stream, weights)])

    def _threshold(self, stream: RowBlock, weights: Array) -> float:
        rows: NDArray[Any] = np.arange(stream.positive.size)
        if rows.size > RULES.threshold_rows:
            rows = stream.rng.choice(rows.size, RULES.threshold_rows, replace=False, shuffle=False)
        positive = stream.positive[rows]
        if positive.all() or not positive.any():
            return 0.0
        X = stream.X if rows.size == stream.positive.size else stream.X[rows]
        return _MEASURE.threshold(as_operator(X).matvec(weights), positive)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return _MEASURE.score(y, scores, sample_weight=sample_weight, pos_label=pos_label)


@dataclass
class RowBlock:
    """Rows of one pass: the stored rows, followed by the new rows, whose indices are ``new``.

    ``buffers`` has the indices of the stored rows: negatives first, then positives, of which the first
    ``min(seen, capacity)`` entries are used. With ``uniform``, a pass draws pairs from all rows instead of pairing each
    new row once.
    """

    X: Any
    positive: NDArray[np.bool_]
    new: RowNumbers
    buffers: RowNumbers
    seen: RowNumbers
    rng: np.random.Generator
    uniform: bool = True

    @cached_property
    def loop_form(self) -> Any:
        """The rows in the format of the loops."""
        # Imported here because the import of numba takes longer than many fits.
        from rocmax.online.loops import loop_form

        return loop_form(self.X)

    def shuffled_blocks(self, steps_per_row: int = 1) -> Iterator[RowNumbers]:
        """Yield blocks of indices of the new rows, in random order."""
        order, size = self.rng.permutation(self.new), max(RULES.block // steps_per_row, 1)
        for start in range(0, order.size, size):
            yield order[start : start + size]

    def remember(self) -> None:
        """Update the buffers, which are uniform samples of all rows of each class, with the new rows."""
        capacity = self.buffers.shape[1]
        is_positive = self.positive[self.new]
        for own, new in enumerate((self.new[~is_positive], self.new[is_positive])):
            held = self.buffers[own, : min(self.seen[own], capacity)]
            sample = reservoir(held, int(self.seen[own]), new, capacity, self.rng)
            self.buffers[own, : sample.size] = sample
            self.seen[own] += new.size


@dataclass
class RowSteps:
    """A streaming method: steps on single rows, or on pairs of rows; ``_w`` are the weights."""

    n_features: int
    _w: Array = field(init=False)

    def __post_init__(self) -> None:
        self._w = np.zeros(self.n_features)

    def epoch(self, stream: RowBlock) -> None:
        """Process the new rows once, in random order."""
        for rows in stream.shuffled_blocks(self.comparisons(stream)):
            self.steps(stream, rows)

    def comparisons(self, stream: RowBlock) -> int:
        """Return the number of rows that a row is compared with."""
        return int(stream.buffers.shape[1])

    @abstractmethod
    def steps(self, stream: RowBlock, rows: RowNumbers, /) -> None:
        """Take the steps for the given rows."""

    def weights(self) -> Array:
        """Return the weights of the model."""
        return self._w.copy()


@dataclass
class Memory:
    """Rows stored between calls of ``partial_fit``: up to ``capacity`` rows of each class."""

    capacity: int
    seen: RowNumbers = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    rows: Any = None

    def stream(self, X: Any, positive: NDArray[np.bool_], rng: np.random.Generator, uniform: bool) -> RowBlock:
        """Return a block with the stored rows followed by the new rows."""
        held = np.minimum(self.seen, self.capacity)
        buffers = np.zeros((2, self.capacity), dtype=np.int64)
        buffers[0, : held[0]] = np.arange(held[0])
        buffers[1, : held[1]] = held[0] + np.arange(held[1])
        n_old = int(held.sum())
        if n_old:
            X = stack([self.rows, X])
            positive = np.concatenate([np.repeat([False, True], held), positive])
        return RowBlock(X, positive, np.arange(n_old, positive.size), buffers, self.seen, rng, uniform)

    def keep(self, stream: RowBlock) -> None:
        """Store the rows of the current buffers."""
        held = np.minimum(stream.seen, self.capacity)
        self.seen = stream.seen
        self.rows = stream.X[np.concatenate([stream.buffers[0, : held[0]], stream.buffers[1, : held[1]]])]


def mean_squared_length(rows: Any) -> float:
    """Return the mean of ``|x|^2`` over the rows."""
    values = rows.data if sparse.issparse(rows) else rows
    return float(np.square(values, dtype=np.float64).sum() / rows.shape[0])
