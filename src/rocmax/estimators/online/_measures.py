"""The measures that estimators take by name: their losses, thresholds and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_choice, check_number
from rocmax._window import check_window
from rocmax.estimators.linear._base import LinearScoreClassifier
from rocmax.estimators.linear.auc import AUCClassifier
from rocmax.estimators.linear.f_measure import FBetaClassifier, GMeanClassifier
from rocmax.estimators.linear.partial_auc import PartialAUCClassifier
from rocmax.estimators.linear.precision_at_k import BreakEvenClassifier, PrecisionAtKClassifier
from rocmax.losses import BreakEven, FBeta, GMean, Loss, PairwiseHinge, PartialAUCTight, PrecisionAtK

MEASURES = ("auc", "partial_auc", "precision_at_k", "break_even", "f_beta", "g_mean")
# Losses that compare positives with negatives alone; the others depend on the share of positives in a batch.
RANKING = ("auc", "partial_auc")


class NamedMeasure(LinearScoreClassifier):
    """Linear classifier that is told its measure by name."""

    measure: str
    min_fpr: float
    max_fpr: float
    k: float
    beta: float

    def make_loss(self) -> Loss:
        """Return the loss of the measure."""
        losses = {
            "auc": PairwiseHinge,
            "partial_auc": lambda: PartialAUCTight(self.min_fpr, self.max_fpr),
            "precision_at_k": lambda: PrecisionAtK(float(self.k)),
            "break_even": BreakEven,
            "f_beta": lambda: FBeta(self.beta),
            "g_mean": GMean,
        }
        return losses[self.measure]()

    def _batch_twin(self) -> LinearScoreClassifier:
        """Return the batch classifier of the measure, which knows its threshold and its score."""
        twins = {
            "auc": AUCClassifier,
            "partial_auc": lambda: PartialAUCClassifier(self.min_fpr, self.max_fpr),
            "precision_at_k": lambda: PrecisionAtKClassifier(float(self.k)),
            "break_even": BreakEvenClassifier,
            "f_beta": lambda: FBetaClassifier(self.beta),
            "g_mean": GMeanClassifier,
        }
        return twins[self.measure]()

    def _check_measure(self) -> None:
        check_choice("measure", self.measure, MEASURES)
        check_window(self.min_fpr, self.max_fpr)
        check_number("beta", self.beta, above=0.0)
        if isinstance(self.k, bool | int) or not 0 < self.k < 1:
            raise ValueError(f"k needs a fraction of the rows, above 0 and below 1; got {self.k!r}")

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return self._batch_twin()._threshold(data, scores)

    def _measure(self, y: Any, scores: Array, sample_weight: Any, pos_label: Any) -> float:
        return self._batch_twin()._measure(y, scores, sample_weight, pos_label)


def plain_set(X: Any, positive: NDArray[np.bool_]) -> TrainingSet:
    """Return rows without weights as a training set."""
    return TrainingSet(X, positive, None, np.array([False, True]), 1, positive, np.arange(positive.size))
