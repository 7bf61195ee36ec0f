"""Penalties on the weights of a linear model: added to the loss, or as a set that the weights must stay in."""

from rocmax._public import set_public_module
from rocmax.penalties.balls import Ball, ElasticNetBall, GroupBall, L1Ball, L2Ball
from rocmax.penalties.groups import group_labels
from rocmax.penalties.quadratic import SquaredL2, Unpenalized

__all__ = [
    "Ball",
    "ElasticNetBall",
    "GroupBall",
    "L1Ball",
    "L2Ball",
    "SquaredL2",
    "Unpenalized",
    "group_labels",
]

set_public_module("rocmax.penalties", globals(), __all__)
