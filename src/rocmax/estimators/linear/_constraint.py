"""Fits whose weights must stay in a ball: parameters, and the one way to solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_choice, check_number
from rocmax.estimators.linear.base import solve_linear
from rocmax.losses import Loss
from rocmax.penalties import Ball, ElasticNetBall, GroupBall, L1Ball, L2Ball
from rocmax.solvers import Callback, ProximalBundle, Result

PENALTIES = ("l2", "l1", "elasticnet", "group")


def check_constraint_parameters(penalty: Any, radius: Any, l1_ratio: Any, groups: Any) -> None:
    """Refuse parameters of a penalty that do not fit together."""
    check_choice("penalty", penalty, PENALTIES)
    if radius is not None:
        check_number("radius", radius, above=0.0)
    elif penalty != "l2":
        raise ValueError(
            f"penalty={penalty!r} needs a radius, a number > 0 that bounds the norm of the weights; got None "
            f"(rocmax.partial_auc_path shows what each radius gives)"
        )
    if penalty == "elasticnet":
        number = isinstance(l1_ratio, int | float | np.integer | np.floating) and not isinstance(l1_ratio, bool)
        if not number or not 0 <= l1_ratio <= 1:
            raise ValueError(f"l1_ratio needs a number from 0 to 1; got {l1_ratio!r}")
    if penalty == "group" and groups is None:
        raise ValueError("penalty='group' needs groups: one label per feature, or a list of index arrays; got None")
    if penalty != "group" and groups is not None:
        raise ValueError(f"groups are used by penalty='group' only; got groups and penalty={penalty!r}")


def make_constraint(penalty: str, radius: float, l1_ratio: float, groups: Any, n_features: int) -> Ball:
    """Return the set that the weights must stay in."""
    if penalty == "l1":
        return L1Ball(radius)
    if penalty == "elasticnet":
        return ElasticNetBall(radius, l1_ratio)
    if penalty == "group":
        return GroupBall(radius, groups, n_features)
    return L2Ball(radius)


class NormConstraintMixin:
    """The parameters of a ball, and a fit inside it."""

    penalty: str
    radius: float | None
    l1_ratio: float
    groups: Any
    tol: float
    max_iter: int

    def _fit_constrained(self, loss: Loss, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        assert self.radius is not None
        ball = make_constraint(self.penalty, self.radius, self.l1_ratio, self.groups, data.X.shape[1])
        return solve_linear(ProximalBundle(self.tol, self.max_iter), loss, data, ball, w0, callback)
