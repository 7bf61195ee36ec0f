"""Regularization of linear models: penalties that are added to the loss, and norm constraints."""

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
