"""Surrogate losses on scores, for measures of the ranking and for threshold-based measures."""

from __future__ import annotations

from rocmax._docstrings import publish
from rocmax.losses.base import BoundLoss, Evaluation, Loss, Pairs
from rocmax.losses.binned import Binned, Bins, ScoreGrid
from rocmax.losses.bounded import PartialAUCRamp, SoftMeasure, SoftPrecision
from rocmax.losses.contingency import BreakEven, Contingency, ContingencyLoss, FBeta, FreeShift, GMean, PrecisionAtK
from rocmax.losses.logistic_pairs import PairwiseSquaredHinge, WindowPairs
from rocmax.losses.window import (
    PairwiseHinge,
    PartialAUCHinge,
    PartialAUCStructural,
    PartialAUCTight,
)

__all__ = [
    "Binned",
    "Bins",
    "BoundLoss",
    "BreakEven",
    "Contingency",
    "ContingencyLoss",
    "Evaluation",
    "FBeta",
    "FreeShift",
    "GMean",
    "Loss",
    "Pairs",
    "PairwiseHinge",
    "PairwiseSquaredHinge",
    "PartialAUCHinge",
    "PartialAUCRamp",
    "PartialAUCStructural",
    "PartialAUCTight",
    "PrecisionAtK",
    "ScoreGrid",
    "SoftMeasure",
    "SoftPrecision",
    "WindowPairs",
]

publish("rocmax.losses", globals(), __all__)
