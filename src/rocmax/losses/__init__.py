"""Losses on scores: what to minimise so that the AUC or the partial AUC grows."""

from rocmax.losses.base import BoundLoss, Loss, Pairs
from rocmax.losses.pairwise import PairwiseHinge, PairwiseSquaredHinge
from rocmax.losses.partial_auc import PartialAUCHinge, PartialAUCStructural, PartialAUCTight
from rocmax.losses.ramp import PartialAUCRamp

__all__ = [
    "BoundLoss",
    "Loss",
    "Pairs",
    "PairwiseHinge",
    "PairwiseSquaredHinge",
    "PartialAUCHinge",
    "PartialAUCRamp",
    "PartialAUCStructural",
    "PartialAUCTight",
]
