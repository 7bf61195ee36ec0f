"""The threshold with the largest TPR - FPR on many rows, located in bins first, is that of sorting all rows."""

import numpy as np
import pytest

from rocmax import measures
from rocmax.measures import best_measure, best_youden

N_ROWS = 50_000
RNG = np.random.default_rng(0)
LABELS = RNG.random(N_ROWS) < 0.05
SCORES = RNG.standard_normal(N_ROWS) + 1.2 * LABELS
CASES = {
    "distinct scores": SCORES,
    "ties": np.round(SCORES, 1),
    "few values": np.round(SCORES),
    "one value": np.ones(N_ROWS),
    "heavy tails": RNG.standard_t(1.0, N_ROWS) + LABELS,
    "reversed": -SCORES,
    "no signal": RNG.standard_normal(N_ROWS),
    "narrow range": 1e6 + 1e-3 * SCORES,
}


@pytest.mark.parametrize("scores", CASES.values(), ids=CASES)
@pytest.mark.parametrize("weight", [None, RNG.uniform(0.1, 3.0, N_ROWS)], ids=["plain", "weighted"])
def test_the_best_threshold_is_that_of_sorting_all_rows(scores, weight):
    expected = best_measure(scores, LABELS, weight, lambda tp, fp, m, n: tp / m - fp / n)
    assert best_youden(scores, LABELS, weight) == expected


@pytest.mark.parametrize("name", ["distinct scores", "ties", "heavy tails"])
@pytest.mark.parametrize("weight", [None, RNG.uniform(0.1, 3.0, N_ROWS)], ids=["plain", "weighted"])
def test_not_all_rows_are_sorted(name, weight, monkeypatch):
    scores = CASES[name]
    expected = best_measure(scores, LABELS, weight, lambda tp, fp, m, n: tp / m - fp / n)
    monkeypatch.setattr(measures, "best_measure", None)
    assert best_youden(scores, LABELS, weight) == expected
