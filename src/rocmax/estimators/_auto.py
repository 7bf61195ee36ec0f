"""The default way to a partial AUC: a bounded loss, lowered from a good start and held near it.

Convex surrogates charge a pair by how far it is out of order, so that a few far negatives outweigh everything near
the window, up to a collapse to zero weights. A bounded loss does not, but it has local minima and overfits. So it is
lowered from a start that is good already, and pays for every move away from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from rocmax._validate import TrainingSet
from rocmax.losses import PairwiseHinge, PartialAUCRamp
from rocmax.losses.anchored import Anchored
from rocmax.metrics import partial_auc_score
from rocmax.operators import MatrixOperator
from rocmax.penalties import SquaredL2, Unpenalized
from rocmax.solvers import Callback, Descent, Result, SmoothedNewton

Array = NDArray[np.float64]

# Length of the step of the loss, in standard deviations of the start's scores. Wider steps drift towards what
# the convex losses do; narrower ones see fewer pairs.
_STEP = 0.25
# Share of the examples per feature that is trusted at C = 1.
_TRUST = 0.1
# Weight of the loss in the full-AUC start, on standardised features.
_AUC_C = 10.0


@dataclass
class Refinement:
    """Starts on standardised features, and the descent from the best of them.

    Parameters
    ----------
    data : TrainingSet
        Rows, labels and weights.
    window : (float, float)
        The range of false-positive rates.
    tol : float
        Precision of starts and descent.
    max_iter : int
        Largest number of iterations of each.
    """

    data: TrainingSet
    window: tuple[float, float]
    tol: float
    max_iter: int

    def __post_init__(self) -> None:
        scaler = StandardScaler(with_mean=not sparse.issparse(self.data.X))
        X = scaler.fit_transform(self.data.X, sample_weight=self.data.weight)
        self._scale = scaler.scale_
        self._operator = MatrixOperator(X)
        self._weight = np.ones(X.shape[0]) if self.data.weight is None else self.data.weight
        self._loss = PartialAUCRamp(*self.window, width=_STEP, margin=0.0).bind(self.data.positive, self.data.weight)
        self.start, self.anchor = self._best_start(X)

    @property
    def trust(self) -> float:
        """How far the scores may move at ``C = 1``: examples that the window holds, per feature.

        The examples are those of the rarer side: positives, or negatives inside the window.
        """
        held = 1.0 / (1.0 / self._loss.m + 1.0 / (self._loss.b - self._loss.a))
        return _TRUST * held / self._operator.shape[1]

    def run(self, C: float, w0: Array | None = None, callback: Callback | None = None) -> Result:
        """Lower ``C * trust * loss + 1/2 Var(scores - anchor)`` from the start, or from ``w0`` if that is lower.

        Weights are those of the given features. The start is returned unless the training partial AUC rises.
        """
        objective = Anchored(self._loss, self.anchor, 1.0 / (C * self.trust))
        begin = self.start
        if w0 is not None and np.any(w0):
            other = self._normalized(w0 * self._scale)[0]
            values = [objective.value_and_gradient(self._operator.matvec(w))[0] for w in (begin, other)]
            begin = other if values[1] < values[0] else begin
        descent = Descent(0.01 * self.tol, self.max_iter)
        result = descent.solve(self._operator, objective, Unpenalized(), begin, callback)
        if self._partial_auc(result.w) < self._partial_auc(self.start):
            value = objective.value_and_gradient(self.anchor)[0]
            result = replace(result, w=self.start, objective=value)
        return replace(result, w=result.w / self._scale)

    def start_weights(self) -> Array:
        """Return the weights of the start, for the given features."""
        return self.start / self._scale

    def _best_start(self, X: Any) -> tuple[Array, Array]:
        """Return the start with the larger training partial AUC; logistic regression wins a tie."""
        candidates = [self._normalized(start(X)) for start in self._starts()]
        return max(candidates, key=lambda candidate: self._partial_auc(candidate[0]))

    def _starts(self) -> list[Callable[[Any], Array]]:
        return [self._logistic, self._full_auc]

    def _logistic(self, X: Any) -> Array:
        model = LogisticRegression(tol=min(1e-4, 0.1 * self.tol), max_iter=10 * self.max_iter)
        return model.fit(X, self.data.positive, sample_weight=self.data.weight).coef_[0]

    def _full_auc(self, X: Any) -> Array:
        loss = PairwiseHinge().bind(self.data.positive, self.data.weight)
        return SmoothedNewton(self.tol, self.max_iter).solve(self._operator, loss, SquaredL2(_AUC_C)).w

    def _normalized(self, w: Array) -> tuple[Array, Array]:
        """Return weights and scores, scaled to unit standard deviation of the scores."""
        scores = self._operator.matvec(w)
        mean = np.average(scores, weights=self._weight)
        spread = float(np.sqrt(np.average((scores - mean) ** 2, weights=self._weight)))
        return (w / spread, scores / spread) if spread > 0 else (w, scores)

    def _partial_auc(self, w: Array) -> float:
        return partial_auc_score(
            self.data.positive,
            self._operator.matvec(w),
            min_fpr=self.window[0],
            max_fpr=self.window[1],
            sample_weight=self.data.weight,
        )
