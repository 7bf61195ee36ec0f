"""Base class of the stochastic estimators."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from rocmax._response import direction
from rocmax._typing import Array
from rocmax._validate import check_block, check_number, check_training_set, random_source
from rocmax.estimators.base import Decision
from rocmax.estimators.linear.base import LinearDecision
from rocmax.estimators.online._fixed_parameters import check_unchanged, fixed_parameters
from rocmax.measures import ROCAUCMeasure
from rocmax.operators import as_operator
from rocmax.streaming.base import Memory, Method, RowBlock

# Maximum number of rows for the choice of the threshold: more rows would take as long as a pass and change it little.
_N_FOR_THRESHOLD = 10_000
# Parameters that may change between calls of partial_fit: those used only by fit, and the seed.
_FREE = ("max_iter", "tol", "random_state")
_MEASURE = ROCAUCMeasure()


class StochasticClassifier(LinearDecision, Decision, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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
        y : array-like of shape (n_samples,)
            Two classes, of any type.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        data = check_training_set(self, X, y, None, self.pos_label)
        self._begin(data.X.shape[1])
        self.classes_ = data.classes
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
        self._warn_if_constant(data.X, lambda rows: as_operator(rows).matvec(self.coef_[0]))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Update the model with one pass over a block of rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            New rows, one or more.
        y : array-like of shape (n_samples,)
            Class labels; a block may contain only one of the classes.
        classes : array-like of shape (2,), default=None
            The two classes; required in the first call.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        block = check_block(self, X, y, classes, self.pos_label)
        if not hasattr(self, "classes_"):
            self._begin(block.X.shape[1])
            self.classes_ = block.classes
        check_unchanged(self, self._fixed)
        stream = self._memory.stream(block.X, block.positive, self._rng, uniform=False)
        self._method.epoch(stream)
        self.n_iter_ += 1
        self._finish(stream, block.positive_index)
        return self

    @abstractmethod
    def _make_method(self, n_features: int) -> Method:
        """Return the streaming method in its initial state."""

    def _remember(self, stream: RowBlock) -> None:
        """Add the new rows to the buffers, unless the method does this."""

    def _check_parameters(self) -> None:
        check_number("max_iter", self.max_iter, above=0, integer=True)
        check_number("buffer_size", self.buffer_size, above=0, integer=True)
        if self.tol is not None:
            check_number("tol", self.tol, above=0.0)

    def _begin(self, n_features: int) -> None:
        self._rng = np.random.default_rng(random_source(self.random_state).randint(2**31 - 1))
        self._method = self._make_method(n_features)
        self._memory = Memory(self.buffer_size)
        self._fixed = fixed_parameters(self, _FREE)
        self.n_iter_ = 0

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
        if rows.size > _N_FOR_THRESHOLD:
            rows = stream.rng.choice(rows.size, _N_FOR_THRESHOLD, replace=False, shuffle=False)
        positive = stream.positive[rows]
        if positive.all() or not positive.any():
            return 0.0
        X = stream.X if rows.size == stream.positive.size else stream.X[rows]
        return _MEASURE.threshold(as_operator(X).matvec(weights), positive)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return _MEASURE.score(y, scores, sample_weight=sample_weight, pos_label=pos_label)
