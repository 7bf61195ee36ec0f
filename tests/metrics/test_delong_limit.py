"""DeLong's variance in windows that hold few negatives."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from helpers.report_entries import entries
from rocmax.metrics import delong_interval, delong_test
from rocmax.metrics.uncertainty import RULES, estimate_measures, estimate_with_delong, holds_enough
from rocmax.report import render

SHIFT = 1.3


def sample(rng, n_negative, n_positive=300):
    y = np.repeat([0, 1], [n_negative, n_positive])
    return y, rng.normal(size=y.size) + SHIFT * y


def coverage(rate, n_negative, n_samples, rng):
    truth = quad(lambda f: norm.sf(norm.isf(f) - SHIFT), 0, rate)[0] / rate
    intervals = [delong_interval(*sample(rng, n_negative), max_fpr=rate) for _ in range(n_samples)]
    return np.mean([low <= truth <= high for low, high in intervals])


@pytest.mark.parametrize("call", [delong_interval, lambda y, s, **k: delong_test(y, s, s[::-1], **k)])
def test_few_negatives_in_the_window_are_announced(call):
    y, scores = sample(np.random.default_rng(0), 500)
    with pytest.warns(UserWarning, match=r"the window contains about 5 negatives; .* at least 30.* more rows") as found:
        call(y, scores, max_fpr=0.01)
    assert found[0].filename == __file__
    weight = np.where(y == 0, 10.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(y, scores, max_fpr=0.01, sample_weight=weight)
        call(y[480:], scores[480:])
        for low, high in ((0.3, 0.4), (0.7, 0.76), (0.01, 0.07)):
            call(y, scores, min_fpr=low, max_fpr=high)


@pytest.mark.filterwarnings("ignore:the window contains")
def test_the_limit_parts_what_covers_from_what_does_not():
    rng = np.random.default_rng(0)
    assert not holds_enough(*sample(rng, 500), max_fpr=0.01)
    assert coverage(0.01, 500, 500, rng) < 0.92
    assert holds_enough(*sample(rng, RULES.min_in_region * 100), max_fpr=0.01)
    assert coverage(0.01, RULES.min_in_region * 100, 500, rng) >= 0.92


@pytest.mark.parametrize(("n_rows", "shown"), [(400, False), (4000, True)])
def test_a_report_leaves_delong_out_of_a_thin_window(n_rows, shown):
    page = render(*entries(n_rows=n_rows))
    assert bool(re.search(r"partial AUC.*DeLong", page)) == shown
    assert re.search(r"partial AUC.*bootstrap", page)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_positive", [1, 2, 3])
def test_only_a_class_with_one_row_keeps_the_interval_of_the_bootstrap(n_positive):
    y = np.arange(40) < n_positive
    scores = np.random.default_rng(1).standard_normal(40) + y
    measures, options = [("roc_auc", {}), ("break_even_point", {})], {"n_resamples": 50, "random_state": 0}
    area, other = estimate_with_delong(measures, y, scores, **options)
    kept = estimate_measures(measures, y, scores, **options)
    expected = (kept[0].low, kept[0].high) if n_positive == 1 else delong_interval(y, scores)
    assert (area.low, area.high) == pytest.approx(expected, rel=1e-12)
    assert other == kept[1]
