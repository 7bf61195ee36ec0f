"""Losses for networks, each with the loss on NumPy arrays that it equals."""

from typing import NamedTuple

import pytest

from rocmax.losses import (
    PairwiseSquaredHinge,
    SoftPrecision,
    WindowPairs,
)

WINDOWS = [(0.0, 1.0), (0.0, 0.1), (0.0, 0.3), (0.2, 0.5), (0.05, 0.37), (0.35, 0.36), (0.6, 1.0), (0.0, 0.01)]
CORNERS = [(0.0, 1.0, 0.8), (0.0, 0.3, 0.5), (0.05, 0.37, 0.33)]


class Pair(NamedTuple):
    """A class of rocmax.torch with its parameters, and the loss on NumPy arrays."""

    kind: str
    parameters: dict
    twin: object

    def module(self, **more):
        import rocmax.torch

        return getattr(rocmax.torch, self.kind)(**self.parameters, **more)


def _pairs():
    for low, high in WINDOWS:
        window = {"min_fpr": low, "max_fpr": high}
        yield Pair("PartialAUCLoss", {**window, "soft_tail": False}, WindowPairs("squared_hinge", low, high))
        if low == 0:
            yield Pair("PartialAUCLoss", window, WindowPairs("squared_hinge", low, high, soft_tail=True))
    for low, high, floor in CORNERS:
        corner = {"min_fpr": low, "max_fpr": high, "min_tpr": floor}
        yield Pair("PartialAUCLoss", corner, WindowPairs("squared_hinge", **corner, soft_tail=low == 0))
    yield Pair("AUCLoss", {}, PairwiseSquaredHinge())
    for k in (1, 2, 0.1, 0.25, 0.7, 1.0):
        yield Pair("PrecisionAtKLoss", {"k": k}, SoftPrecision(k))
        yield Pair("PrecisionAtKLoss", {"k": k, "width": 0.3}, SoftPrecision(k, 0.3))
    yield Pair("PrecisionAtKLoss", {"k": None, "width": 2.0}, SoftPrecision(None, 2.0))


def _name(pair):
    shown = ",".join(f"{name}={value}" for name, value in pair.parameters.items() if value is not None)
    return f"{pair.kind}[{shown}]"


PAIRS = {_name(pair): pair for pair in _pairs()}

every_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)

# One of each surrogate, for tests of what does not depend on its parameters.
ONE_OF_EACH = {
    name: PAIRS[name]
    for name in (
        "PartialAUCLoss[min_fpr=0.0,max_fpr=0.3]",
        "PartialAUCLoss[min_fpr=0.2,max_fpr=0.5,soft_tail=False]",
        "PartialAUCLoss[min_fpr=0.0,max_fpr=0.3,min_tpr=0.5]",
        "AUCLoss[]",
        "PrecisionAtKLoss[k=0.25]",
        "PrecisionAtKLoss[width=2.0]",
    )
}

one_of_each = pytest.mark.parametrize("pair", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
