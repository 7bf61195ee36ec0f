"""Losses, samples and tolerances for the contract tests."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from oracles import brute
from rocmax.losses import (
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
    PartialAUCTight,
    WindowPairs,
)


class Case(NamedTuple):
    """A loss and its twin, ``oracle(scores, y, weight) -> (value, gradient)``."""

    loss: object
    oracle: Callable


# (0.35, 0.36) lies within one negative on all small samples here; (0.05, 0.37) cuts one at each end.
WINDOWS = [(0.0, 1.0), (0.0, 0.1), (0.0, 0.3), (0.2, 0.5), (0.05, 0.37), (0.35, 0.36), (0.6, 1.0)]


# (min_fpr, max_fpr, min_tpr): above a true-positive rate, both limits, and a window with a floor that cuts a positive.
CORNERS = [(0.0, 1.0, 0.8), (0.0, 0.3, 0.5), (0.0, 0.37, 0.33), (0.05, 0.37, 0.6), (0.0, 1.0, 0.97)]


# (min_fpr, max_fpr, width, margin): steps that bound the error and steps that do not.
RAMPS = [
    (0.0, 1.0, 1.0, None),
    (0.0, 1.0, 2.0, 1.5),
    (0.0, 0.1, 0.25, None),
    (0.0, 0.1, 3.0, 0.0),
    (0.2, 0.5, 1.0, None),
    (0.05, 0.37, 1.0, -0.5),
    (0.35, 0.36, 2.0, None),
]


SURROGATES = ("sigmoid", "squared_hinge")


PAIRS_NAMES = ("surrogate", "min_fpr", "max_fpr", "soft_tail", "scale", "min_tpr")
PAIRS = [
    *((surrogate, 0.0, 0.3, soft_tail, 1.0, 0.0) for surrogate in SURROGATES for soft_tail in (False, True)),
    *((surrogate, 0.05, 0.37, False, 2.0, 0.0) for surrogate in SURROGATES),
    ("sigmoid", 0.0, 0.05, True, 2.0, 0.0),
    ("squared_hinge", 0.35, 0.36, False, 1.0, 0.0),
    ("squared_hinge", 0.0, 1.0, False, 0.5, 0.0),
    *((surrogate, 0.0, 0.3, soft_tail, 1.0, 0.4) for surrogate in SURROGATES for soft_tail in (False, True)),
    ("sigmoid", 0.05, 0.37, False, 2.0, 0.6),
    ("squared_hinge", 0.0, 1.0, False, 0.5, 0.97),
]


WINDOWED = [
    (PartialAUCTight, brute.partial_auc_tight),
    (PartialAUCStructural, brute.partial_auc_structural),
    (PartialAUCHinge, brute.partial_auc_hinge),
]


def _cases():
    cases = {
        "PairwiseHinge": Case(PairwiseHinge(), brute.pairwise_hinge),
        "PairwiseSquaredHinge": Case(PairwiseSquaredHinge(), brute.pairwise_squared_hinge),
    }
    for low, high in WINDOWS:
        window = {"min_fpr": low, "max_fpr": high}
        for cls, oracle in WINDOWED:
            cases[f"{cls.__name__}[{low},{high}]"] = Case(cls(**window), partial(oracle, **window))
    for low, high, floor in CORNERS:
        window = {"min_fpr": low, "max_fpr": high, "min_tpr": floor}
        for cls, oracle in (*WINDOWED, (PartialAUCRamp, brute.partial_auc_ramp)):
            cases[f"{cls.__name__}[{low},{high},TPR>={floor}]"] = Case(cls(**window), partial(oracle, **window))
    for low, high, width, margin in RAMPS:
        arguments = {"min_fpr": low, "max_fpr": high, "width": width, "margin": margin}
        cases[f"PartialAUCRamp[{low},{high},{width},{margin}]"] = Case(
            PartialAUCRamp(**arguments), partial(brute.partial_auc_ramp, **arguments)
        )
    for values in PAIRS:
        arguments = dict(zip(PAIRS_NAMES, values, strict=True))
        name = f"WindowPairs[{','.join(map(str, values))}]"
        cases[name] = Case(WindowPairs(**arguments), partial(brute.window_pairs, **arguments))
    return cases


CASES = _cases()


every_loss = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


CONVEX = {name: case for name, case in CASES.items() if case.loss.bind([1, 0]).convex}


every_convex_loss = pytest.mark.parametrize("case", CONVEX.values(), ids=CONVEX)


law = settings(max_examples=20, deadline=None, derandomize=True, database=None)


def generic_sample(rng, m=7, n=13, weighted=False):
    """Labels in random order, scores without ties, weights that make no round sums."""
    y = rng.permutation(np.repeat([True, False], [m, n]))
    weight = rng.uniform(0.2, 3.0, m + n) if weighted else None
    return y, weight, rng.standard_normal(m + n) + 0.8 * y


@st.composite
def samples(draw, vectors=1, scales=(0.0, 2.0**-10, 1.0, 1.0, 1.0, 8.0, 2.0**20)):
    """Labels, weights and score vectors; many scores are multiples of 1/4, so ties and kinks are common.

    All numbers are binary fractions of few digits: what ties does so exactly, not up to rounding.
    """
    m = draw(st.integers(1, 5))
    n = draw(st.integers(1, 9))
    y = np.array(draw(st.permutations([True] * m + [False] * n)))
    weight = draw(
        st.none()
        | st.lists(st.integers(1, 3).map(float), min_size=m + n, max_size=m + n)
        | st.lists(st.integers(1, 40).map(lambda k: k / 8), min_size=m + n, max_size=m + n)
    )
    score = st.integers(-8, 8).map(lambda k: k / 4) | st.integers(-(2**20), 2**20).map(lambda k: k / 2**18)
    scores = []
    for _ in range(vectors):
        scale = draw(st.sampled_from(scales))
        scores.append(scale * np.array(draw(st.lists(score, min_size=m + n, max_size=m + n))))
    return y, weight, *scores


def magnitude(*arrays):
    """Size of the numbers a result was computed from, for tolerances."""
    return 1.0 + max(float(np.abs(a).max()) for a in arrays)


def value_tolerance(loss, scores):
    """Rounding of a value whose terms are score differences, or squares of them in the unit of the loss."""
    size = magnitude(scores)
    if isinstance(loss, PairwiseSquaredHinge):
        return 1e-13 * size**2
    if isinstance(loss, PartialAUCRamp):
        return 1e-14 * (size / loss.width) ** 2 / (loss.max_fpr - loss.min_fpr)
    if isinstance(loss, WindowPairs):
        return 1e-13 * _margin(loss, scores) ** (2 if loss.surrogate == "squared_hinge" else 1)
    return 1e-13 * size


def gradient_tolerance(loss, scores):
    """Rounding of coefficients: counts, or the differences themselves where the value has their squares."""
    size = magnitude(scores)
    if isinstance(loss, PairwiseSquaredHinge):
        return 1e-12 * size
    if isinstance(loss, PartialAUCRamp):
        return 1e-14 * (1 + size / loss.width) / loss.width / (loss.max_fpr - loss.min_fpr)
    if isinstance(loss, WindowPairs) and loss.surrogate == "squared_hinge":
        return 1e-12 * _margin(loss, scores)
    return 1e-12


def _margin(loss, scores):
    return 1 + magnitude(scores) / loss.scale


def assert_affine_minorant(bound, base, other, value, gradient):
    """``value + gradient @ (other - base) <= loss(other)``, up to rounding."""
    target = bound.value_and_gradient(other)[0]
    rise = gradient @ (other - base)
    size = 1.0 + abs(value) + abs(target) + np.abs(gradient) @ np.abs(other - base)
    assert value + rise <= target + 1e-10 * size
