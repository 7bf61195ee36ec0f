"""Measures on dask collections: exact values, and error bounds from bins; streaming fits over partitions."""

from __future__ import annotations

import numpy as np
import pytest

from rocmax import MiniBatchClassifier, metrics
from rocmax.data import DataError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from rocmax.backends import dask as on_dask  # noqa: E402  # after the check that dask is there


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def scored(n=3000, ties=False, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    scores = rng.standard_t(2, n) + 1.5 * y
    return y, np.round(scores, 1) if ties else scores, rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "floor"),
    [(0.0, 1.0, 0.0), (0.0, 0.05, 0.0), (0.0213, 0.2, 0.0), (0.0, 1.0, 0.8), (0.0213, 0.3, 0.62), (0.0, 0.01, 0.9)],
)
def test_partial_auc(low, high, floor, weighted, ties):
    y, scores, weight = scored(ties=ties)
    given = {"sample_weight": da.from_array(weight, chunks=700)} if weighted else {}
    expected = metrics.partial_auc_score(
        y, scores, min_fpr=low, max_fpr=high, min_tpr=floor, sample_weight=weight if weighted else None
    )
    parts = da.from_array(y, chunks=700), da.from_array(scores, chunks=700)
    found = on_dask.partial_auc_score(*parts, min_fpr=low, max_fpr=high, min_tpr=floor, **given)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.error == 0.0
    for n_bins in (1, 7, 100, 5000):
        rough = on_dask.partial_auc_score(
            *parts, min_fpr=low, max_fpr=high, min_tpr=floor, n_bins=n_bins, exact=False, **given
        )
        assert abs(rough.value - expected) <= rough.error + 1e-12


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_tpr_at_fpr(rate, ties):
    y, scores, weight = scored(ties=ties)
    expected = metrics.tpr_at_fpr(y, scores, max_fpr=rate, sample_weight=weight)
    parts = da.from_array(y, chunks=700), da.from_array(scores, chunks=700)
    given = {"max_fpr": rate, "sample_weight": da.from_array(weight, chunks=700)}
    assert on_dask.tpr_at_fpr(*parts, **given).value == pytest.approx(expected, abs=1e-12)
    for n_bins in (3, 50):
        rough = on_dask.tpr_at_fpr(*parts, n_bins=n_bins, exact=False, **given)
        assert rough.value - 1e-12 <= expected <= rough.value + rough.error + 1e-12


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.01, 0.5, 0.9, 0.999, 1.0])
def test_fpr_at_tpr(rate, ties):
    y, scores, weight = scored(ties=ties)
    parts = da.from_array(y, chunks=700), da.from_array(scores, chunks=700)
    for given in (None, weight):
        expected = metrics.fpr_at_tpr(y, scores, min_tpr=rate, sample_weight=given)
        options = {"min_tpr": rate, "sample_weight": None if given is None else da.from_array(given, chunks=700)}
        assert on_dask.fpr_at_tpr(*parts, **options).value == pytest.approx(expected, abs=1e-12)
        for n_bins in (3, 50):
            rough = on_dask.fpr_at_tpr(*parts, n_bins=n_bins, exact=False, **options)
            assert rough.value - 1e-12 <= expected <= rough.value + rough.error + 1e-12


def test_rates_outside_their_range_are_refused():
    parts = [da.from_array(column, chunks=50) for column in scored(100)[:2]]
    with pytest.raises(ValueError, match=r"max_fpr must be between 0 and 1; got 1\.1"):
        on_dask.tpr_at_fpr(*parts, max_fpr=1.1)
    with pytest.raises(ValueError, match="min_tpr must be between 0 and 1; got None"):
        on_dask.fpr_at_tpr(*parts, min_tpr=None)


def test_the_positive_label_and_few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr("rocmax.backends.dask.metrics._FETCHED", 50)
    y, scores, _ = scored()
    words = np.where(y, "fraud", "ok")
    parts = da.from_array(words, chunks=999), da.from_array(-scores, chunks=999)
    assert on_dask.roc_auc_score(*parts).value == pytest.approx(metrics.partial_auc_score(words, -scores))
    found = on_dask.roc_auc_score(
        da.from_array(words, chunks=999), da.from_array(scores, chunks=999), pos_label="fraud"
    )
    assert found.value == pytest.approx(metrics.partial_auc_score(y, scores))


def test_bad_scores_name_the_partition():
    y, scores, _ = scored(100)
    scores[70] = np.nan
    with pytest.raises(ValueError, match="partition 2: y_score must be finite"):
        on_dask.roc_auc_score(da.from_array(y, chunks=30), da.from_array(scores, chunks=30))
    with pytest.raises(TypeError, match="y must be a dask Array"):
        on_dask.roc_auc_score(y, da.from_array(scores, chunks=30))
    with pytest.raises(ValueError, match="y must have the 4 partitions of X; got 2"):
        on_dask.roc_auc_score(da.from_array(y, chunks=50), da.from_array(scores, chunks=30))


def test_streaming_over_partitions_is_partial_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    y = X[:, 0] + rng.normal(size=1200) > 1
    model = MiniBatchClassifier("roc_auc", batch_size=50, random_state=0)
    found = on_dask.partial_fit(model, da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=400), [False, True])
    expected = MiniBatchClassifier("roc_auc", batch_size=50, random_state=0)
    for start in range(0, 1200, 400):
        expected.partial_fit(X[start : start + 400], y[start : start + 400], classes=[False, True])
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert not hasattr(model, "coef_")
    bad = np.where(np.arange(1200) == 900, np.nan, y)
    with pytest.raises(DataError, match="partition 2: y must have a label in each row; got 1 missing"):
        on_dask.partial_fit(model, da.from_array(X, chunks=(400, 4)), da.from_array(bad, chunks=400), [0.0, 1.0])
    with pytest.raises(TypeError, match="estimator must have partial_fit"):
        on_dask.partial_fit(object(), da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400), [False, True])
