"""Solvers: from coefficients to weights, with a certificate where there can be one."""

from rocmax.solvers.base import Callback, Progress, Result, Solver
from rocmax.solvers.cccp import CCCP
from rocmax.solvers.cutting_plane import CuttingPlane
from rocmax.solvers.descent import Descent
from rocmax.solvers.newton import TruncatedNewton
from rocmax.solvers.smoothed_newton import SmoothedNewton

__all__ = [
    "CCCP",
    "Callback",
    "CuttingPlane",
    "Descent",
    "Progress",
    "Result",
    "SmoothedNewton",
    "Solver",
    "TruncatedNewton",
]
