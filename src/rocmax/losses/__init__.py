"""Surrogate losses on scores, for measures of the ranking and for threshold-based measures."""

from rocmax._public import set_public_module
from rocmax.losses.base import BoundLoss, Loss, Pairs
from rocmax.losses.binned import Binned
from rocmax.losses.bins import Bins, ScoreGrid
from rocmax.losses.contingency import Contingency, ContingencyLoss, FBeta, GMean
from rocmax.losses.free_shift import FreeShift
from rocmax.losses.growth import GrownCuts, Growth
from rocmax.losses.pairwise import PairwiseHinge, PairwiseSquaredHinge
from rocmax.losses.partial_auc import PartialAUCHinge, PartialAUCStructural, PartialAUCTight
from rocmax.losses.precision_at_k import BreakEven, PrecisionAtK
from rocmax.losses.ramp import PartialAUCRamp
from rocmax.losses.soft import SoftMeasure, SoftPrecision
from rocmax.losses.window_pairs import WindowPairs

__all__ = [
    "Binned",
    "Bins",
    "BoundLoss",
    "BreakEven",
    "Contingency",
    "ContingencyLoss",
    "FBeta",
    "FreeShift",
    "GMean",
    "GrownCuts",
    "Growth",
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

set_public_module("rocmax.losses", globals(), __all__)
