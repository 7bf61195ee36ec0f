"""Solvers: from coefficients to weights, with a certificate where there can be one."""

from rocmax.solvers.base import Callback, Cuts, Progress, Result, Solver
from rocmax.solvers.cccp import CCCP
from rocmax.solvers.lbfgs import LBFGS
from rocmax.solvers.ocas import OCAS
from rocmax.solvers.projected_subgradient import ProjectedSubgradient
from rocmax.solvers.proximal_bundle import ProximalBundle
from rocmax.solvers.smoothed_newton import SmoothedNewton
from rocmax.solvers.truncated_newton import TruncatedNewton

__all__ = [
    "CCCP",
    "LBFGS",
    "OCAS",
    "Callback",
    "Cuts",
    "Progress",
    "ProjectedSubgradient",
    "ProximalBundle",
    "Result",
    "SmoothedNewton",
    "Solver",
    "TruncatedNewton",
]
