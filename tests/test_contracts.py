"""The contracts that CONTRIBUTING lists are those of the code."""

import inspect
import re
from pathlib import Path

import pytest

from helpers.loss_cases import CASES
from rocmax.losses import BoundLoss, Evaluation, FreeShift, GMean, Loss, PairwiseHinge, PartialAUCTight, WindowPairs
from rocmax.losses.base import Tilted
from rocmax.operators import Operator
from rocmax.solvers import Solver

CONTRACTS = {cls.__name__: cls for cls in (Loss, BoundLoss, Evaluation, Operator, Solver)}
PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
LOSSES = {name: case.loss for name, case in CASES.items()} | {
    "squared pairs": WindowPairs("squared_hinge", 0.1, 0.3),
    "sigmoid pairs": WindowPairs("sigmoid"),
    "best shift": FreeShift(GMean()),
}


def methods(cls):
    """Public methods, without attributes and properties."""
    return {name for name, value in inspect.getmembers(cls, callable) if not name.startswith("_")}


def row(name):
    """Return the row of the table of contracts."""
    return re.search(rf"^\| `{name}` \|.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[0]


@pytest.mark.parametrize("name", CONTRACTS)
def test_contributing_lists_the_methods_and_no_others(name):
    assert set(re.findall(r"`(\w+)\(", row(name))) == methods(CONTRACTS[name])


def is_implemented(bound, method):
    """Whether a loss has a method of its own that does not refuse."""
    if getattr(type(bound), method) is getattr(BoundLoss, method):
        return False
    try:
        getattr(bound, method)(*{"split": (), "curvature": ([1.0, 0.0, 0.5], 4)}.get(method, ([1.0, 0.0, 0.5],)))
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("method", ["curvature", "gradient_and_curvature", "split"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_flags_say_which_methods_a_loss_has(loss, method):
    bound = loss.bind([1, 0, 0])
    assert getattr(bound, f"has_{method}") == is_implemented(bound, method)


@pytest.mark.parametrize("loss", [PairwiseHinge(), PartialAUCTight(0.0, 0.5), WindowPairs("squared_hinge")], ids=repr)
def test_flags_of_a_loss_plus_an_affine_function(loss):
    tilted = Tilted(loss.bind([1, 0, 0]), [0.1, 0.0, -0.1], 0.0)
    for method in ("curvature", "gradient_and_curvature", "split"):
        assert getattr(tilted, f"has_{method}") == is_implemented(tilted, method)
