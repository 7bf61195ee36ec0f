"""Solvers with the losses they serve."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles import brute
from oracles import qp as oracles_qp
from rocmax.losses import (
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
    PartialAUCTight,
)
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import Result


@dataclass(frozen=True)
class Case:
    """A loss with its slow twin and, where it is convex, the general solver for it."""

    name: str
    loss: Any
    slow: Callable
    optimum: Callable | None = None

    def objective(self, w, X, y, C, weight=None):
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        return 0.5 * float(w @ w) + C * self.slow(X @ w, y, weight)[0]


def _window(name, loss, slow, **structural):
    ends = {"min_fpr": loss.min_fpr, "max_fpr": loss.max_fpr, "min_tpr": loss.min_tpr}
    floor = f",TPR>={loss.min_tpr:g}" if loss.min_tpr else ""
    label = f"{name}[{loss.min_fpr:g},{loss.max_fpr:g}{floor}]"
    return Case(label, loss, partial(slow, **ends), partial(oracles_qp.partial_auc, **ends, **structural))


def tight(low, high, floor=0.0):
    return _window("tight", PartialAUCTight(low, high, floor), brute.partial_auc_tight)


def structural(low, high, floor=0.0):
    loss = PartialAUCStructural(low, high, floor)
    return _window("structural", loss, brute.partial_auc_structural, structural=True)


HINGE = Case("hinge", PairwiseHinge(), brute.pairwise_hinge, oracles_qp.pairwise)


SQUARED_HINGE = Case(
    "squared-hinge",
    PairwiseSquaredHinge(),
    brute.pairwise_squared_hinge,
    partial(oracles_qp.pairwise, power=2),
)


CONVEX = [
    HINGE,
    SQUARED_HINGE,
    tight(0, 0.3),
    tight(0, 0.1),
    tight(0.2, 0.5),
    structural(0, 0.3),
    structural(0.1, 0.4),
]


DIFFERENCE = Case(
    "window-hinge",
    PartialAUCHinge(0.2, 0.5),
    partial(brute.partial_auc_hinge, min_fpr=0.2, max_fpr=0.5),
)


RAMP = Case("ramp", PartialAUCRamp(0, 0.4), partial(brute.partial_auc_ramp, min_fpr=0.0, max_fpr=0.4))


every_convex_case = pytest.mark.parametrize("case", CONVEX, ids=lambda case: case.name)


def sample(seed, n=45, d=4, weighted=False, signal=1.0):
    """Two overlapping classes, about half of the entries zero, weights with zeros and fractions."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    y[:2] = True, False
    X = rng.standard_normal((n, d)) + signal * y[:, None] * rng.random(d)
    X[rng.random((n, d)) < 0.4] = 0.0
    weight = None
    if weighted:
        weight = rng.integers(0, 4, n) * rng.choice([0.5, 1.0, 1.3], n)
        weight[:2] = 1.0
    return X, y, weight


def solve(solver, case, X, y, C, weight=None, w0=None, callback=None) -> Result:
    return solver.solve(as_operator(X), case.loss.bind(y, weight), SquaredL2(C), w0, callback)


def a_start(X, scale=1.0, seed=5):
    return scale * np.random.default_rng(seed).standard_normal(X.shape[1])
