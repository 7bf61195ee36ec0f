"""Measures: what a classifier is judged by, and what training for it needs.

A :class:`Measure` brings together the score of a measure, the losses that train for it and the threshold that suits it.
Estimators, scorers, intervals and the command line find it by name, with :func:`find_measure`. The names are those of
the functions in :mod:`rocmax.metrics`, without the ending ``_score``; the parameters are those of the functions.
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
