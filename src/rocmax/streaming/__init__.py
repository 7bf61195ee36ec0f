"""Methods that see pairs or single rows, never a vector of scores."""

from rocmax._public import set_public_module
from rocmax.streaming.base import Memory
from rocmax.streaming.buffers import ConfidenceSteps, ReservoirSteps
from rocmax.streaming.pairs import PairSteps
from rocmax.streaming.saddle import SaddlePoint
from rocmax.streaming.sampling import Buffer, Reservoir

# What fitted models keep, and model files hold by these names.
__all__ = ["Buffer", "ConfidenceSteps", "Memory", "PairSteps", "Reservoir", "ReservoirSteps", "SaddlePoint"]

set_public_module("rocmax.streaming", globals(), __all__)
