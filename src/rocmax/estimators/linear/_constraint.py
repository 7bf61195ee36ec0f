"""Fits under a norm constraint: validation of the parameters, and the solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_choice, check_number
from rocmax.estimators.linear.base import solve_linear
from rocmax.losses import Loss
from rocmax.penalties import Ball, ElasticNetBall, GroupBall, L1Ball, L2Ball
from rocmax.solvers import Callback, ProximalBundle, Result

CONSTRAINTS = ("l2", "l1", "elasticnet", "group")


def check_constraint_parameters(constraint: Any, radius: Any, l1_ratio: Any, groups: Any) -> None:
    """Raise ValueError if the parameters of a norm constraint are invalid or inconsistent."""
    if constraint is not None:
        check_choice("constraint", constraint, CONSTRAINTS)
    if radius is not None:
        check_number("radius", radius, above=0.0)
    if constraint is None and radius is not None:
        raise ValueError(
            f"radius must be None if constraint is None; got {radius!r}. Pass constraint as one of "
            f"{', '.join(map(repr, CONSTRAINTS))}, or radius=None for the penalized problem with C"
        )
    if constraint is not None and radius is None:
        raise ValueError(
            f"with constraint={constraint!r}, radius must be a number > 0, the bound on the norm of the weights; got "
            "None (rocmax.partial_auc_path fits the model for several radii)"
        )
    if constraint == "elasticnet":
        number = isinstance(l1_ratio, int | float | np.integer | np.floating) and not isinstance(l1_ratio, bool)
        if not number or not 0 <= l1_ratio <= 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1; got {l1_ratio!r}")
    if constraint == "group" and groups is None:
        raise ValueError(
            "with constraint='group', groups must be one label per feature or a list of index arrays; got None"
        )
    if constraint != "group" and groups is not None:
        raise ValueError(f"groups must be None unless constraint='group'; got groups and constraint={constraint!r}")


def make_constraint(constraint: str, radius: float, l1_ratio: float, groups: Any, n_features: int) -> Ball:
    """Return the norm constraint."""
    if constraint == "l1":
        return L1Ball(radius)
    if constraint == "elasticnet":
        return ElasticNetBall(radius, l1_ratio)
    if constraint == "group":
        return GroupBall(radius, groups, n_features)
    return L2Ball(radius)


class NormConstraintMixin:
    """Mixin for estimators with a norm constraint."""

    constraint: str | None
    radius: float | None
    l1_ratio: float
    groups: Any
    tol: float
    max_iter: int

    def _fit_constrained(self, loss: Loss, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        assert self.constraint is not None
        assert self.radius is not None
        ball = make_constraint(self.constraint, self.radius, self.l1_ratio, self.groups, data.X.shape[1])
        return solve_linear(ProximalBundle(self.tol, self.max_iter), loss, data, ball, w0, callback)
