"""Solvers for regularized and norm-constrained linear models, with certified duality gaps for convex losses."""

from __future__ import annotations

from rocmax._docstrings import publish
from rocmax.solvers.base import Callback, Cuts, Progress, Result, Solver
from rocmax.solvers.cccp import CCCP
from rocmax.solvers.certified import OCAS
from rocmax.solvers.choose import choose_solver
from rocmax.solvers.cutting_plane import CuttingPlane
from rocmax.solvers.first_order import LBFGS, ProjectedSubgradient
from rocmax.solvers.proximal_bundle import ProximalBundle
from rocmax.solvers.smoothed_newton import SmoothedNewton
from rocmax.solvers.stochastic import MiniBatchSteps

__all__ = [
    "CCCP",
    "LBFGS",
    "OCAS",
    "Callback",
    "Cuts",
    "CuttingPlane",
    "MiniBatchSteps",
    "Progress",
    "ProjectedSubgradient",
    "ProximalBundle",
    "Result",
    "SmoothedNewton",
    "Solver",
    "choose_solver",
]

publish("rocmax.solvers", globals(), __all__)
