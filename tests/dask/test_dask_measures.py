"""Measures on dask collections: exact with few scores, error bounds from bins."""

from __future__ import annotations

import numpy as np
import pytest

from rocmax import metrics
from rocmax.data import DataError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from rocmax import dask as on_dask  # noqa: E402  # after the check that dask is there


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
    for n_bins in (2, 7, 100, 2000):
        rough = on_dask.partial_auc_score(*parts, min_fpr=low, max_fpr=high, min_tpr=floor, n_bins=n_bins, **given)
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
        rough = on_dask.tpr_at_fpr(*parts, n_bins=n_bins, **given)
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
            rough = on_dask.fpr_at_tpr(*parts, n_bins=n_bins, **options)
            assert rough.value - 1e-12 <= expected <= rough.value + rough.error + 1e-12


def test_rates_outside_their_range_are_refused():
    parts = [da.from_array(column, chunks=50) for column in scored(100)[:2]]
    with pytest.raises(ValueError, match=r"max_fpr must be between 0 and 1; got 1\.1"):
        on_dask.tpr_at_fpr(*parts, max_fpr=1.1)
    with pytest.raises(ValueError, match="min_tpr must be between 0 and 1; got None"):
        on_dask.fpr_at_tpr(*parts, min_tpr=None)


def test_the_positive_label():
    y, scores, _ = scored()
    words = np.where(y, "fraud", "ok")
    parts = da.from_array(words, chunks=999), da.from_array(-scores, chunks=999)
    assert on_dask.roc_auc_score(*parts).value == pytest.approx(metrics.partial_auc_score(words, -scores))
    found = on_dask.roc_auc_score(
        da.from_array(words, chunks=999), da.from_array(scores, chunks=999), pos_label="fraud"
    )
    assert found.value == pytest.approx(metrics.partial_auc_score(y, scores))


SCORES = {
    "normal": lambda rng, y: rng.normal(size=y.size) + y,
    "ties": lambda rng, y: rng.integers(0, 4, y.size) + y,
    "skewed": lambda rng, y: np.exp(20 * (rng.normal(size=y.size) + y)) * np.where(rng.random(y.size) < 0.3, -1, 1),
    "dense and far": lambda rng, y: np.where(rng.random(y.size) < 0.01, 1e300, 1 + 1e-15 * rng.integers(0, 50, y.size)),
    "constant": lambda rng, y: np.zeros(y.size),
    "both zeros": lambda rng, y: rng.choice([0.0, -0.0, 5e-324, -5e-324], y.size),
    "extreme": lambda rng, y: rng.choice([-1.7e308, 0.0, 1.0, 1.7e308], y.size),
}


@pytest.mark.parametrize("n_bins", [2, 30, 599, 10**6])
@pytest.mark.parametrize("kind", SCORES)
def test_the_rows_are_read_once_and_the_error_bound_holds(kind, n_bins):
    reads = []

    def read(block):
        reads.append(block.size)
        return block

    rng = np.random.default_rng(n_bins)
    y = rng.random(600) < 0.3
    scores, weight = SCORES[kind](rng, y).astype(float), rng.exponential(size=600)
    exact = np.unique(scores).size <= n_bins
    for sample_weight in (None, np.round(weight), weight):
        parts = da.from_array(y, chunks=130), da.from_array(scores, chunks=130).map_blocks(read, meta=np.empty(0))
        given = {"sample_weight": None if sample_weight is None else da.from_array(sample_weight, chunks=130)}
        for name, limits in (
            ("partial_auc_score", {}),
            ("partial_auc_score", {"min_fpr": 0.013, "max_fpr": 0.21, "min_tpr": 0.2}),
            ("tpr_at_fpr", {"max_fpr": 0.07}),
            ("fpr_at_tpr", {"min_tpr": 0.6}),
        ):
            reads.clear()
            expected = getattr(metrics, name)(y, scores, sample_weight=sample_weight, **limits)
            found = getattr(on_dask, name)(*parts, n_bins=n_bins, **limits, **given)
            assert abs(found.value - expected) <= found.error + 1e-12
            assert not exact or found.error == 0.0
            assert sum(reads) == y.size


def test_the_error_is_small_with_the_default_number_of_bins():
    rng = np.random.default_rng(0)
    y = rng.random(400_000) < 0.1
    for scores in (rng.normal(size=y.size) + y, 1e6 + rng.exponential(size=y.size) * (1 + y)):
        parts = da.from_array(y, chunks=50_000), da.from_array(scores, chunks=50_000)
        for found, expected in (
            (on_dask.roc_auc_score(*parts), metrics.partial_auc_score(y, scores)),
            (on_dask.tpr_at_fpr(*parts, max_fpr=0.1), metrics.tpr_at_fpr(y, scores, max_fpr=0.1)),
            (on_dask.fpr_at_tpr(*parts, min_tpr=0.5), metrics.fpr_at_tpr(y, scores, min_tpr=0.5)),
        ):
            assert abs(found.value - expected) <= found.error + 1e-12
            assert found.error < 1e-4


def test_bad_scores_name_the_partition():
    y, scores, _ = scored(100)
    scores[70] = np.nan
    with pytest.raises(ValueError, match="partition 2: y_score must be finite"):
        on_dask.roc_auc_score(da.from_array(y, chunks=30), da.from_array(scores, chunks=30))
    with pytest.raises(TypeError, match="y_true must be a dask Array"):
        on_dask.roc_auc_score(y, da.from_array(scores, chunks=30))
    with pytest.raises(ValueError, match="y_true must have the 4 partitions of y_score; got 2"):
        on_dask.roc_auc_score(da.from_array(y, chunks=50), da.from_array(scores, chunks=30))


@pytest.mark.parametrize("rate", [-1, 2, np.nan, "a", None, True])
def test_limits_are_checked_as_in_the_local_measure(rate):
    y, scores, _ = scored(100)
    with pytest.raises(ValueError, match="max_fpr must be between 0 and 1; got") as local:
        metrics.tpr_at_fpr(y, scores, max_fpr=rate)
    with pytest.raises(ValueError, match="max_fpr must be between 0 and 1; got") as found:
        on_dask.tpr_at_fpr(da.from_array(y, chunks=30), da.from_array(scores, chunks=30), max_fpr=rate)
    assert str(found.value) == str(local.value)


@pytest.mark.parametrize("n_bins", [0, 1, 2.5, "x", True])
def test_the_number_of_bins_is_checked(n_bins):
    y, scores, _ = scored(100)
    with pytest.raises(ValueError, match="n_bins must be an integer > 1; got"):
        on_dask.roc_auc_score(da.from_array(y, chunks=30), da.from_array(scores, chunks=30), n_bins=n_bins)


def test_errors_have_the_names_of_the_parameters():
    y, scores, _ = scored(90)
    labels, values = da.from_array(y, chunks=30), da.from_array(scores, chunks=30)
    with pytest.raises(TypeError, match="y_score must be a dask Array, DataFrame or Series; got ndarray"):
        on_dask.roc_auc_score(labels, scores)
    with pytest.raises(ValueError, match="y_score must have 1 dimension; got 2"):
        on_dask.roc_auc_score(labels, values[:, None])
    words = da.from_array(np.where(np.arange(90) == 40, "high", "1"), chunks=30)
    with pytest.raises(DataError, match=r"partition 1: y_score must contain numbers; got .*high"):
        on_dask.roc_auc_score(labels, words)
    with pytest.raises(DataError, match="partition 1: y_true must have a label in each row; got 1 missing"):
        on_dask.roc_auc_score(da.from_array(np.where(np.arange(90) == 40, np.nan, y), chunks=30), values)
    with pytest.raises(DataError, match="partition 2: y_true must have two classes; got 3"):
        on_dask.roc_auc_score(da.from_array(np.where(np.arange(90) == 80, 2, y), chunks=30), values)
    with pytest.raises(ValueError, match="Only binary classification"):
        on_dask.roc_auc_score(da.from_array(np.arange(90) // 30, chunks=30), values)
    with pytest.raises(DataError, match=r"partition 0: sample_weight must be .*; got -1.0 in row 7 of the partition"):
        on_dask.roc_auc_score(
            labels, values, sample_weight=da.from_array(np.where(np.arange(90) == 7, -1, 1), chunks=30)
        )
