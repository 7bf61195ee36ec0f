"""Common methods of the kernel machines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._support import Array
from rocmax._validation import TrainingSet, direction, positive_index, towards
from rocmax.kernel.maps import Kernel, check_gram_memory


class KernelMixin:
    """Mixin for kernel machines: Gram matrix, support vectors and scores.

    It must precede ``ScoredClassifier`` in the list of bases.
    """

    classes_: NDArray[Any]
    pos_label: Any
    kernel: Any
    gamma: str | float
    degree: int
    coef0: float
    max_gram_mb: float
    takes_sparse = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of ScoredClassifier
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_parameters(self) -> None:
        Kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def _gram(self, data: TrainingSet) -> Array:
        check_gram_memory(data.X.shape[0], self.max_gram_mb)
        self._kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0).settled(data.X, data.weight)
        return self._kernel.gram(data.X[:, data.rows] if self.kernel == "precomputed" else data.X)

    def _keep_support(self, data: TrainingSet, coefficients: Array) -> None:
        """Store the support vectors; positive scores indicate ``classes_[1]``."""
        # Smaller coefficients are rounding errors.
        used = np.flatnonzero(np.abs(coefficients) > 1e-10 * np.abs(coefficients).max(initial=0.0))
        self.support_ = data.rows[used]
        self.dual_coef_ = direction(data.positive_index) * coefficients[used][np.newaxis, :]
        if self.kernel != "precomputed":
            self.support_vectors_ = data.X[used]

    def _scores(self, X: Any) -> Array:
        if self.kernel == "precomputed":
            values = X[:, self.support_]
        elif self.support_.size == 0:
            return np.zeros(X.shape[0])
        else:
            values = self._kernel.between(X, self.support_vectors_)
        return towards(values @ self.dual_coef_[0], positive_index(self.classes_, self.pos_label))
