"""Performance measures, with the losses and thresholds that optimise them.

A :class:`Measure` combines the score of a measure, the losses to train for it and the choice of the threshold.
Estimators, scorers, intervals and the command line look it up by name with :func:`find_measure`. The names and
parameters are those of the functions in :mod:`rocmax.metrics`, without the suffix ``_score``.
"""

from rocmax._public import set_public_module
from rocmax.measures.base import Measure
from rocmax.measures.decisions import (
    BreakEvenPointMeasure,
    FBetaMeasure,
    GMeanMeasure,
    PrecisionAtKMeasure,
    WeightedRelativeAccuracyMeasure,
)
from rocmax.measures.ranking import (
    FPRAtTPRMeasure,
    PartialAUCMeasure,
    ROCAUCMeasure,
    TPRAtFPRMeasure,
    TwoWayPartialAUCMeasure,
)
from rocmax.measures.registry import find_measure, measure_names, pick_measure

__all__ = [
    "BreakEvenPointMeasure",
    "FBetaMeasure",
    "FPRAtTPRMeasure",
    "GMeanMeasure",
    "Measure",
    "PartialAUCMeasure",
    "PrecisionAtKMeasure",
    "ROCAUCMeasure",
    "TPRAtFPRMeasure",
    "TwoWayPartialAUCMeasure",
    "WeightedRelativeAccuracyMeasure",
    "find_measure",
    "measure_names",
    "pick_measure",
]

set_public_module("rocmax.measures", globals(), __all__)
