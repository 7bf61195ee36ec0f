"""Input of users on a real cluster of two processes: frames, empty partitions, and values that must be refused."""

from __future__ import annotations

import numpy as np
import pytest

from rocmax import metrics
from rocmax.data import DataError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
import dask.array as da  # noqa: E402  # after the check that dask is there

from rocmax.dask import (  # noqa: E402
    DaskAUCClassifier,
    DaskPartialAUCClassifier,
    partial_auc_score,
    roc_auc_score,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]
NAMES = [f"f{i}" for i in range(6)]


def table(rows):
    """Return a data frame with text labels and weights, and the same rows in three partitions."""
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    frame = pandas.DataFrame(X, columns=NAMES).assign(label=np.where(y, "fraud", "ok"), w=weight)
    return frame, frames.from_pandas(frame, npartitions=3)


def with_empty_parts(array):
    """Return an array of unknown chunk sizes, with empty chunks at both ends and in the middle."""
    parts = [dask.delayed(part) for part in np.split(array, [0, 1000, 1000, 4000, 6000])]
    chunks = [da.from_delayed(part, (np.nan, *array.shape[1:]), array.dtype) for part in parts]
    return da.concatenate(chunks, allow_unknown_chunksizes=True)


def test_scores_and_predictions_of_frames_are_those_of_the_plain_estimator(client, rows):
    frame, parts = table(rows)
    for label in ("fraud", "ok"):
        model = DaskPartialAUCClassifier(max_fpr=0.3, pos_label=label).fit(parts[NAMES], parts["label"], parts["w"])
        local = model.to_local()
        expected = local.score(frame[NAMES], frame["label"], frame["w"])
        assert model.score(parts[NAMES], parts["label"], parts["w"]) == pytest.approx(expected, abs=1e-9)
        predicted = model.predict(parts[NAMES])
        found = predicted.compute()
        assert predicted.dtype == found.dtype
        np.testing.assert_array_equal(found, local.predict(frame[NAMES]))
        assert found.index.equals(frame.index)


def test_renaming_the_labels_changes_nothing(client, rows):
    X, y = rows
    parts, found = da.from_array(X, chunks=(2000, 6)), []
    for rare, common in (("zz", "aa"), ("aa", "zz")):
        labels = np.where(y, rare, common)
        target = da.from_array(labels, chunks=2000)
        model = DaskPartialAUCClassifier(max_fpr=0.2, pos_label=rare).fit(parts, target)
        scores = model.positive_scores(parts)
        assert isinstance(scores, da.Array)
        area = partial_auc_score(target, scores, max_fpr=0.2, pos_label=rare).value
        assert area == pytest.approx(metrics.partial_auc_score(y, scores.compute(), max_fpr=0.2))
        assert model.score(parts, target) == pytest.approx(area)
        for fitted in (model, model.to_local()):
            assert metrics.make_scorer("partial_auc", max_fpr=0.2)(fitted, X, labels) == pytest.approx(area)
            np.testing.assert_array_equal(fitted.positive_scores(X) > 0, fitted.predict(X) == rare)
        found.append(scores.compute())
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-8)


def test_a_positive_class_with_most_rows_that_is_not_named_warns(client, rows):
    X, y = rows
    labels = da.from_array(np.where(y, "fraud", "ok"), chunks=2000)
    assert np.mean(y) < 0.5
    with pytest.warns(UserWarning, match="the positive class is 'ok'.* set pos_label='fraud'") as found:
        DaskAUCClassifier().fit(da.from_array(X, chunks=(2000, 6)), labels)
    assert len(found) == 1


def test_predictions_of_partitions_without_rows(client, rows):
    X, y = rows
    labels = np.where(y, "fraud", "ok")
    features = with_empty_parts(X)
    model = DaskAUCClassifier(pos_label="fraud").fit(features, with_empty_parts(labels))
    local = model.to_local()
    np.testing.assert_array_equal(model.predict(features).compute(), local.predict(X))
    np.testing.assert_array_equal(model.decision_function(features).compute(), local.decision_function(X))
    assert model.score(features, with_empty_parts(labels)) == pytest.approx(local.score(X, labels), abs=1e-9)
    _, parts = table(rows)
    none = parts[parts["f0"] > 1e6][NAMES]
    found = DaskAUCClassifier(pos_label="fraud").fit(parts[NAMES], parts["label"]).predict(none)
    assert len(found.compute()) == 0
    assert found.dtype == found.compute().dtype


def test_arrays_in_memory_are_scored_by_the_plain_estimator(client, rows, files):
    model = DaskAUCClassifier().fit(*files)
    assert model.score(*rows) == model.to_local().score(*rows)


def test_values_that_are_not_finite_are_named(client, rows):
    frame, _ = table(rows)
    frame.loc[5, "f2"] = np.nan
    for n_partitions in (1, 2):
        parts = frames.from_pandas(frame, npartitions=n_partitions)
        with pytest.raises(ValueError, match=r"got nan in row 5, column 'f2' of partition 0"):
            DaskAUCClassifier(pos_label="fraud").fit(parts[NAMES], parts["label"])
        with pytest.raises(ValueError, match=r"got nan in row 5, column 2 of partition 0"):
            DaskAUCClassifier(pos_label="fraud").fit(parts[NAMES].values, parts["label"])


def test_no_rows_no_columns_and_extreme_weights(client, rows):
    X, y = (da.from_array(array, chunks=(2000, 6)[: array.ndim]) for array in rows)
    with pytest.raises(DataError, match="X must have at least one column; got none in partition 0"):
        DaskAUCClassifier().fit(X[:, :0], y)
    zero = da.zeros(6000, chunks=2000)
    for call in (
        lambda: DaskAUCClassifier().fit(X, y, zero),
        lambda: DaskAUCClassifier().fit(X[:0], y[:0]),
        lambda: roc_auc_score(y, X[:, 0], sample_weight=zero),
    ):
        with pytest.raises(ValueError, match="the partitions must have rows with a weight > 0; got none"):
            call()
    tiny = da.where(da.arange(6000, chunks=2000) == 4500, 1e-200, 1.0)
    for call in (
        lambda: DaskAUCClassifier().fit(X, y, tiny),
        lambda: roc_auc_score(y, X[:, 0], sample_weight=tiny),
    ):
        with pytest.raises(
            DataError, match=r"partition 2: sample_weight must be from 1e-100 .* got 1e-200 in row 500 of"
        ):
            call()
    with pytest.raises(ValueError, match=r"y must have the 3 partitions of X; got 6\. Use rechunk"):
        DaskAUCClassifier().fit(X, y.rechunk(1000))


def test_flags(client, rows):
    X, y = (da.from_array(array, chunks=(2000, 6)[: array.ndim]) for array in rows)
    with pytest.raises(ValueError, match="standardize must be True or False; got 'no'"):
        DaskAUCClassifier().fit(X, y, standardize="no")


def test_checkpoints_that_are_other_files(client, files, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    (tmp_path / "b.txt").write_text("text")
    for path in tmp_path.iterdir():
        before = path.read_bytes()
        with pytest.raises(ValueError, match=r"checkpoint must be a file written by a fit; .* it has another format"):
            DaskAUCClassifier().fit(*files, checkpoint=path)
        assert path.read_bytes() == before
    with pytest.raises(TypeError, match="checkpoint must be a path or None; got 5"):
        DaskAUCClassifier().fit(*files, checkpoint=5)
