"""Streaming methods that process pairs or single rows."""

from rocmax._public import set_public_module
from rocmax.streaming.base import Memory
from rocmax.streaming.buffers import ConfidenceSteps, ReservoirSteps
from rocmax.streaming.pairs import PairSteps
from rocmax.streaming.saddle import SaddlePoint
from rocmax.streaming.sampling import Buffer, Reservoir

# Classes stored in fitted models. Model files refer to them by name.
__all__ = ["Buffer", "ConfidenceSteps", "Memory", "PairSteps", "Reservoir", "ReservoirSteps", "SaddlePoint"]

set_public_module("rocmax.streaming", globals(), __all__)
