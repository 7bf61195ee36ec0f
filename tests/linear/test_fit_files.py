"""Fits on files: the models of fits in memory, within a memory limit."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_curve
from sklearn.preprocessing import StandardScaler

from helpers.overlapping import overlapping_rows
from rocmax import AUCClassifier, PartialAUCClassifier
from rocmax.data import DataError, Reading, RowStore
from rocmax.data.store import BinaryCopy, DiskArray
from rocmax.linear.sharded import ShardedSet
from rocmax.measures import PartialAUCMeasure
from rocmax.sharded.driver import Space
from rocmax.sharded.shard import Shard

MODELS = {
    "auc": AUCClassifier(C=10.0),
    "auc l1": AUCClassifier(constraint="l1", radius=1.0),
    "auto": PartialAUCClassifier(0.0, 0.2),
    "auto l2": PartialAUCClassifier(0.0, 0.2, constraint="l2", radius=2.0),
    "tight": PartialAUCClassifier(0.0, 0.2, loss="tight", C=10.0),
    "tight from 0.05": PartialAUCClassifier(0.05, 0.3, loss="tight", C=10.0),
    "structural": PartialAUCClassifier(0.0, 0.3, loss="structural", C=10.0),
    "cccp": PartialAUCClassifier(0.05, 0.3, loss="hinge", C=10.0),
}
CORNERS = {
    "auto": PartialAUCClassifier(0.0, 0.4, min_tpr=0.5),
    "tight": PartialAUCClassifier(0.0, 0.5, min_tpr=0.4, loss="tight", C=10.0),
    "tight from 0.05": PartialAUCClassifier(0.05, 0.5, min_tpr=0.3, loss="tight", C=10.0),
    "structural, above a rate": PartialAUCClassifier(0.0, 1.0, min_tpr=0.6, loss="structural", C=10.0),
    "cccp": PartialAUCClassifier(0.05, 0.5, min_tpr=0.4, loss="hinge", C=10.0),
    "l1": PartialAUCClassifier(0.0, 0.5, min_tpr=0.4, loss="tight", constraint="l1", radius=1.0),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    X, y = overlapping_rows(8000)
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "X.npy", X)
    return X, np.where(y, "fraud", "ok"), folder / "X.npy"


@pytest.mark.parametrize("name", MODELS)
def test_the_fit_is_that_in_memory(rows, name):
    X, y, path = rows
    model = clone(MODELS[name]).set_params(pos_label="fraud")
    Z = StandardScaler().fit_transform(X)
    expected = clone(model).fit(Z, y)
    found = clone(model).fit_files(RowStore(path, y, max_memory="100kB"))
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert found.score(X, y) == pytest.approx(expected.score(Z, y), abs=2e-3)
    assert found.n_features_in_ == X.shape[1]
    assert found.classes_.tolist() == ["fraud", "ok"]
    # The threshold is exact, not that of a bin.
    scores = -found.decision_function(X)
    if name.startswith("auc"):
        fpr, tpr, _ = roc_curve(y == "fraud", scores)
        reached = (found.predict(X[y == "fraud"]) == "fraud").mean() - (found.predict(X[y == "ok"]) == "fraud").mean()
        assert reached == pytest.approx((tpr - fpr).max(), abs=1e-9)
    else:
        negatives = np.sort(scores[y == "ok"])[::-1]
        allowed = int(model.max_fpr * negatives.size)
        assert (scores[y == "ok"] > 0).sum() == allowed
        assert negatives[allowed - 1] > 0 >= negatives[allowed]


@pytest.mark.parametrize("name", CORNERS)
def test_corners_of_both_rates(rows, name):
    X, y, path = rows
    model = clone(CORNERS[name]).set_params(pos_label="fraud")
    Z = StandardScaler().fit_transform(X)
    expected = clone(model).fit(Z, y)
    assert expected.coef_.any()
    found = clone(model).fit_files(RowStore(path, y, max_memory="100kB"))
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert found.score(X, y) == pytest.approx(expected.score(Z, y), abs=2e-3)
    # The threshold is exact, not that of a bin.
    scores, positive = X @ -found.coef_[0], y == "fraud"
    measure = PartialAUCMeasure(model.min_fpr, model.max_fpr, model.min_tpr)
    threshold = measure.threshold(scores, positive, np.ones(len(X)))
    np.testing.assert_array_equal(found.predict(X) == "fraud", scores > threshold)


@pytest.mark.parametrize("digits", [None, 1, 0], ids=["distinct", "few ties", "many ties"])
def test_the_threshold_is_exact_if_few_scores_may_be_fetched(tmp_path, monkeypatch, digits):
    X, positive = overlapping_rows(4000)
    X = X[:, :1] if digits is None else np.round(X[:, :1], digits)
    np.save(tmp_path / "X.npy", X)
    asked, ask = [], Space.ask

    def watched(self, recipes, method, *args):
        answers = ask(self, recipes, method, *args)
        if method is Shard.between:
            asked.append(sum(answer[0].size for answer in answers))
        return answers

    monkeypatch.setattr(Space, "ask", watched)
    monkeypatch.setattr(ShardedSet, "most_fetched", property(lambda self: 1, lambda self, given: None), raising=False)
    found = PartialAUCClassifier(0.0, 0.2).fit_files(RowStore(tmp_path / "X.npy", positive))
    scores = X @ found.coef_[0]
    threshold = PartialAUCMeasure(0.0, 0.2).threshold(scores, positive, np.ones(len(X)))
    np.testing.assert_array_equal(found.predict(X), scores > threshold)
    # One score of each class, as the others are farther away than the bins of a finer histogram; tied rows stay there.
    assert asked or digits is not None
    assert max(asked, default=0) <= 4


def test_without_standardized_features(rows):
    X, y, path = rows
    model = PartialAUCClassifier(0.0, 0.2, loss="tight", C=3.0, pos_label="fraud")
    expected = clone(model).fit(X, y)
    found = clone(model).fit_files(RowStore(path, y, max_memory="100kB"), standardize=False)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert found.dual_gap_ <= 1.01e-3 * found.objective_


def test_weights_and_sparse_rows(rows):
    X, y, _ = rows
    X = sparse.csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0).astype(np.float32))
    weight = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    model = AUCClassifier(C=1.0, pos_label="fraud")
    expected = clone(model).fit(X, y, sample_weight=weight)
    found = clone(model).fit_files(RowStore(X, y, weight), standardize=False)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert found.score(X, y, weight) == pytest.approx(expected.score(X, y, weight), abs=2e-3)


@pytest.mark.parametrize(
    "model",
    [AUCClassifier(C=10.0, pos_label="fraud"), PartialAUCClassifier(0.0, 0.2, pos_label="fraud")],
    ids=["auc", "auto"],
)
@pytest.mark.parametrize("form", [np.float64, np.float32, sparse.csr_matrix])
def test_constant_features_are_left_out(rows, model, form):
    X, y, _ = rows
    weight = np.random.default_rng(0).random(y.size)
    constant = np.insert(X, 2, 0.1, axis=1)
    found = clone(model).set_params(warm_start=True)
    for _ in range(2):
        found.fit_files(RowStore(form(constant), y, weight))
    expected = clone(model).fit_files(RowStore(form(X), y, weight))
    assert found.coef_[0, 2] == 0.0
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)


def test_tables_keep_their_names(tmp_path, rows):
    pandas = pytest.importorskip("pandas")
    X, y, _ = rows
    names = [f"f{i}" for i in range(X.shape[1])]
    table = pandas.DataFrame(X, columns=names).assign(label=y)
    table[:3000].to_parquet(tmp_path / "a.parquet")
    table[3000:].to_parquet(tmp_path / "b.parquet")
    model = PartialAUCClassifier(0.0, 0.3, pos_label="fraud").fit_files(
        tmp_path / "*.parquet", target="label", max_memory="200kB"
    )
    assert model.feature_names_in_.tolist() == names
    table.assign(label=np.where(np.arange(len(y)) == 17, None, y)).to_parquet(tmp_path / "c.parquet")
    same = clone(model).fit_files(tmp_path / "c.parquet", target="label", reading=Reading(skip_unlabeled=True))
    assert same.objective_ == pytest.approx(model.objective_, rel=2e-3)
    assert model.score(table[names], y) > 0.3
    again = model.fit_files(RowStore(X, y))
    assert not hasattr(again, "feature_names_in_")


def test_warm_start_needs_few_iterations(rows):
    _, y, path = rows
    store = RowStore(path, y)
    model = PartialAUCClassifier(0.05, 0.3, loss="tight", C=10.0, warm_start=True, pos_label="fraud")
    cold = model.fit_files(store).n_iter_
    assert model.fit_files(store).n_iter_ < cold


def test_progress_of_each_iteration(rows, capsys):
    _, y, path = rows
    found = AUCClassifier(verbose=True, pos_label="fraud").fit_files(RowStore(path, y, max_memory="50kB"))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == found.n_iter_
    assert all("objective" in line and "bound" in line for line in lines)


@pytest.mark.parametrize("form", ["file", "map", "column"])
def test_weights_in_files(rows, tmp_path, form):
    X, y, path = rows
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    expected = AUCClassifier(pos_label="fraud").fit_files(RowStore(path, y, weight, max_memory="100kB"))
    if form == "column":
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame(X, columns=list("abcdef")).assign(label=y, w=weight).to_parquet(tmp_path / "rows.parquet")
        store = RowStore.from_files(tmp_path / "rows.parquet", target="label", weight="w", max_memory="100kB")
    else:
        np.save(tmp_path / "w.npy", weight)
        given = tmp_path / "w.npy" if form == "file" else np.load(tmp_path / "w.npy", mmap_mode="r")
        store = RowStore(path, y, given, max_memory="100kB")
    with store:
        np.testing.assert_array_equal(store.weight, weight)
        assert AUCClassifier(pos_label="fraud").fit_files(store).objective_ == pytest.approx(
            expected.objective_, rel=1e-9
        )


def test_scores_leave_room_for_a_chunk(tmp_path):
    X, y = overlapping_rows(200_000)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    store = RowStore(tmp_path / "X.npy", y, max_memory="11MB")
    tracemalloc.start()
    AUCClassifier(C=0.1).fit_files(store)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < store.max_memory


def test_collapse_is_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.random(3000) < 0.2
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        PartialAUCClassifier(0.0, 0.05, loss="tight").fit_files(RowStore(X, y))


def test_bad_input(rows):
    X, y, path = rows
    bad = X.copy()
    bad[37, 2] = np.nan
    with pytest.raises(ValueError, match=r"X must contain finite numbers .* got nan in row 37, column 2"):
        AUCClassifier(pos_label="fraud").fit_files(RowStore(bad, y))
    with pytest.raises(ValueError, match="y must have two classes; got one class"):
        AUCClassifier().fit_files(RowStore(X, np.zeros(len(X))))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        AUCClassifier().fit_files(RowStore(X, np.arange(len(X)) % 3))
    with pytest.raises(ValueError, match="sample_weight must be finite and >= 0"):
        AUCClassifier(pos_label="fraud").fit_files(RowStore(X, y, np.full(len(X), -1.0)))
    with pytest.raises(ValueError, match=r"sample_weight must be .* not all zero; got 8000 zeros"):
        AUCClassifier(pos_label="fraud").fit_files(RowStore(X, y, np.zeros(len(X))))
    with pytest.raises(ValueError, match=r"X.npy has no labels. .* fit_files\(RowStore\(X, y\)\)"):
        AUCClassifier().fit_files(path)
    with pytest.raises(ValueError, match='loss must be "hinge"; got "squared_hinge"'):
        AUCClassifier("squared_hinge").fit_files(RowStore(path, y))
    with pytest.raises(ValueError, match='solver must be "certified"'):
        AUCClassifier(solver="cutting_plane").fit_files(RowStore(path, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "y"}, "with a RowStore, target must not be given"),
        ({"columns": ["a"]}, "with a RowStore, columns must not be given"),
        ({"max_memory": "10MB"}, "with a RowStore, max_memory must not be given"),
        ({"standardize": "no"}, "standardize must be True or False; got 'no'"),
        ({"standardize": None}, "standardize must be True or False; got None"),
    ],
)
def test_parameters_that_would_be_ignored(rows, options, message):
    X, y, _ = rows
    with pytest.raises(ValueError, match=message):
        AUCClassifier(pos_label="fraud").fit_files(RowStore(X, y), **options)


def test_a_warm_start_with_other_features(rows):
    X, y, _ = rows
    model = AUCClassifier(warm_start=True, pos_label="fraud").fit_files(RowStore(X, y))
    with pytest.raises(ValueError, match="X must have the 6 features of the previous fit; got 3 features"):
        model.fit_files(RowStore(X[:, :3], y))


def test_scores_are_written_to_the_folder(rows, tmp_path, monkeypatch):
    X, y, _ = rows
    lines = [",".join([*map(str, row), label]) for row, label in zip(X[:500].tolist(), y, strict=False)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,c,d,e,f,y", *lines]))
    create, folders = DiskArray.create.__func__, set()

    def listed(cls, path, *rest):
        folders.add(path.parent.parent.parent)
        return create(cls, path, *rest)

    monkeypatch.setattr(DiskArray, "create", classmethod(listed))
    AUCClassifier(pos_label="fraud").fit_files(tmp_path / "rows.csv", target="y", max_memory="20kB", folder=tmp_path)
    assert folders == {tmp_path}
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize(("offset", "size"), [(1e6, 1.0), (0.0, 1e18), (0.0, 1e-18)])
def test_single_precision_far_from_zero(offset, size):
    X, y = overlapping_rows(8000)
    X = (size * (X + offset)).astype(np.float32)
    expected = AUCClassifier(C=10.0).fit(StandardScaler().fit_transform(X.astype(float)), y)
    found = AUCClassifier(C=10.0).fit_files(RowStore(X, y))
    assert found.objective_ == pytest.approx(expected.objective_, abs=expected.dual_gap_ + found.dual_gap_ + 1e-6)
    precise = AUCClassifier(C=10.0).fit_files(RowStore(X.astype(float), y))
    np.testing.assert_allclose(found.coef_, precise.coef_, rtol=1e-5)
    auto = [PartialAUCClassifier(max_fpr=0.2).fit_files(RowStore(rows, y)).coef_ for rows in (X, X.astype(float))]
    np.testing.assert_allclose(*auto, rtol=1e-3, atol=1e-3 * abs(auto[1]).max())


LIMITED = """
import re, resource, sys, warnings
warnings.simplefilter("error")
import numpy as np
from scipy.linalg import cho_factor
from rocmax import AUCClassifier
from rocmax.data import DataError, Reading, RowStore
from rocmax.data.store import BinaryCopy
# The libraries take their own buffers, once.
np.ones((300, 300), dtype=np.float32) @ np.ones((300, 300), dtype=np.float32)
cho_factor(np.eye(300))
used = 1024 * int(re.search(r"VmData:\\s+(\\d+)", open("/proc/self/status").read())[1])
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (used + limit, used + limit))
store = RowStore(sys.argv[1] + "/X.npy", sys.argv[1] + "/y.npy", max_memory=limit // 4)
assert store.shape[0] * store.shape[1] * 4 >= 4 * limit
try:
    np.ones(limit // 8)
    raise SystemExit("the limit has no effect")
except MemoryError:
    pass
model = AUCClassifier(C=10.0).fit_files(store, standardize=sys.argv[3] == "standardized")
np.savez(sys.argv[1] + "/model.npz", coef=model.coef_, objective=model.objective_, gap=model.dual_gap_)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA counts all private memory on Linux only")
@pytest.mark.parametrize("features", ["standardized", "original"])
def test_a_memory_limit_of_a_quarter_of_the_data(tmp_path, features):
    limit, d = 50_000_000, 100
    n = 4 * limit // (4 * d) + 1
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.1
    np.save(tmp_path / "y.npy", y)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X[:, 0] += 1.5 * y
    X[:, 1] = 3.0 * X[:, 1] + 5.0
    np.save(tmp_path / "X.npy", X)
    subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path), str(limit), features], check=True, timeout=500)
    found = np.load(tmp_path / "model.npz")
    expected = AUCClassifier(C=10.0).fit(StandardScaler().fit_transform(X) if features == "standardized" else X, y)
    assert found["objective"] == pytest.approx(expected.objective_, rel=1.5e-3)
    assert found["gap"] <= 1.01e-3 * found["objective"]


def replace_in_pass(monkeypatch, store, number, change):
    """Call a function at the beginning of a pass over the rows."""
    chunks, passes = store.rows.chunks, []

    def watched():
        passes.append(1)
        if len(passes) == number:
            change()
        return chunks()

    monkeypatch.setattr(store.rows, "chunks", watched)


def another_file(path, X):
    other = path.with_name("other.npy")
    np.save(other, X[::-1])
    other.replace(path)


def written_in_place(path, X):
    with path.open("r+b") as file:
        file.seek(-8, 2)
        file.write(np.float64(1e3).tobytes())


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("change", [another_file, written_in_place])
def test_a_file_that_changes_between_two_passes_is_named(tmp_path, monkeypatch, change, number):
    X, y = overlapping_rows(2000)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    store = RowStore(path, y, max_memory="100KB")
    replace_in_pass(monkeypatch, store, number, lambda: change(path, X))
    with pytest.raises(DataError, match=r"rows\.npy must not change while its rows are used: "):
        AUCClassifier().fit_files(store)


@pytest.mark.parametrize("part", ["data", "indices"])
def test_a_file_of_sparse_rows_that_changes_is_named(tmp_path, monkeypatch, part):
    X, y = overlapping_rows(2000)
    rows = sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0.0, X))
    maps = {}
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(rows, name))
        maps[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    made = sparse.csr_matrix((maps["data"], maps["indices"], maps["indptr"]), shape=rows.shape, copy=False)
    store = RowStore(made, y)

    def change():
        values = getattr(rows, part).copy()
        values[[0, 1]] = values[[1, 0]] + (part == "data")
        np.save(tmp_path / f"{part}.npy", values)

    replace_in_pass(monkeypatch, store, 3, change)
    with pytest.raises(DataError, match=rf"{part}\.npy must not change while its rows are used"):
        AUCClassifier().fit_files(store)


def test_a_table_that_grows_while_it_is_converted_is_named(tmp_path, monkeypatch):
    X, y = overlapping_rows(3000)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,f,y", comments="")
    add, called = BinaryCopy.add, []

    def growing(self, *args):
        if not called:
            with path.open("a") as file:
                file.write("0,0,0,0,0,0,1\n")
        called.append(1)
        return add(self, *args)

    monkeypatch.setattr(BinaryCopy, "add", growing)
    with pytest.raises(DataError, match=r"rows\.csv must not change while it is read"):
        AUCClassifier().fit_files(path, target="y", folder=tmp_path)
    assert not list(tmp_path.glob("rocmax-*"))


def test_a_store_is_used_in_several_fits(tmp_path):
    X, y = overlapping_rows(2000)
    np.save(tmp_path / "X.npy", X)
    store = RowStore(tmp_path / "X.npy", y)
    np.testing.assert_array_equal(AUCClassifier().fit_files(store).coef_, AUCClassifier().fit_files(store).coef_)


@pytest.fixture
def small_files():
    """Let no file of this process become larger than a million bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_names_the_folder_of_the_binary_copy(tmp_path, small_files):
    X, y = overlapping_rows(6000)
    for i in range(4):
        rows = slice(1500 * i, 1500 * i + 1500)
        table = np.column_stack([*[X[rows]] * 5, y[rows]])
        header = ",".join([*(f"a{j}" for j in range(30)), "y"])
        np.savetxt(tmp_path / f"{i}.csv", table, delimiter=",", header=header, comments="", fmt="%.6g")
    where = re.escape(str(tmp_path / "rocmax-rows-"))
    with pytest.raises(DataError, match=rf"folder must have space .*; got {where}\w+: File too large\. Pass another"):
        AUCClassifier().fit_files(str(tmp_path / "*.csv"), target="y", folder=tmp_path)
    assert not list(tmp_path.glob("rocmax-*"))


def test_a_full_disk_names_the_folder_of_score_vectors(tmp_path, small_files):
    with pytest.raises(DataError, match=rf"got {re.escape(str(tmp_path))}: File too large"):
        DiskArray.create(tmp_path / "scores", np.float64, (1_000_000,))
    array = DiskArray(tmp_path / "scores", np.float64, (200_000,))
    with pytest.raises(DataError, match=rf"got {re.escape(str(tmp_path))}: File too large"):
        array[100_000:200_000] = np.ones(100_000)
