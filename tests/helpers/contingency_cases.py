"""Losses of the contingency table, and samples for them."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from rocmax.losses import Contingency, ContingencyLoss, FBeta, GMean

BETAS = (0.3, 0.5, 1, 2, 5)


def jaccard(tp, fp, m, n):
    return tp / (m + fp)


class Accuracy(ContingencyLoss):
    """The least that a subclass can say."""

    def measure(self, tp, fp, m, n):
        return (tp + n - fp) / (m + n)


def f_beta(beta):
    """F-beta from precision and recall (van Rijsbergen 1979)."""

    def measure(tp, fp, m, n):
        tp, fp = np.broadcast_arrays(np.asarray(tp, dtype=float), fp)
        precision, recall = tp / np.maximum(tp + fp, 1e-300), tp / m
        return (1 + beta**2) * precision * recall / np.maximum(beta**2 * precision + recall, 1e-300)

    return measure


def g_mean(tp, fp, m, n):
    return np.sqrt(np.asarray(tp) / m * (1 - np.asarray(fp) / n))


KNOWN = {f"FBeta({beta})": (FBeta(beta), f_beta(beta)) for beta in BETAS} | {"GMean": (GMean(), g_mean)}


CASES = KNOWN | {
    "Jaccard": (Contingency(jaccard), jaccard),
    "Accuracy": (Accuracy(), lambda tp, fp, m, n: (tp + n - fp) / (m + n)),
}


every_loss = pytest.mark.parametrize(("loss", "measure"), CASES.values(), ids=CASES)


every_known_shape = pytest.mark.parametrize(("loss", "measure"), KNOWN.values(), ids=KNOWN)


law = settings(max_examples=15, deadline=None, derandomize=True, database=None)


@st.composite
def samples(draw, vectors=1, largest=10):
    """Labels and score vectors; many scores are multiples of 1/4, so ties abound, also at 0."""
    m = draw(st.integers(1, largest // 2))
    n = draw(st.integers(1, largest - m))
    y = np.array(draw(st.permutations([True] * m + [False] * n)))
    score = st.integers(-8, 8).map(lambda k: k / 4) | st.integers(-(2**20), 2**20).map(lambda k: k / 2**18)
    scores = []
    for _ in range(vectors):
        scale = draw(st.sampled_from([0.0, 2.0**-10, 0.25, 1.0, 1.0, 8.0]))
        scores.append(scale * np.array(draw(st.lists(score, min_size=m + n, max_size=m + n))))
    return y, *scores


def assert_minorants(bound, points):
    """``value + gradient @ (other - base) <= loss(other)`` between all points, up to rounding."""
    found = [bound.value_and_gradient(point) for point in points]
    for base, (value, gradient) in zip(points, found, strict=True):
        for other, (target, _) in zip(points, found, strict=True):
            size = 1.0 + abs(value) + abs(target) + np.abs(gradient) @ np.abs(other - base)
            assert value + gradient @ (other - base) <= target + 1e-11 * size
