"""The store of a comparison: every result belongs to one model, and to no other."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import rocmax
from helpers.every_estimator import MODELS
from rocmax import AUCClassifier, compare
from rocmax.metrics import make_scorer
from rocmax.tables.compare import content_key

SCORER = make_scorer("roc_auc")


@pytest.fixture(scope="module")
def wide():
    """Forty columns, of which the last one alone tells the classes apart."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 40))
    X[:, 39] += 3.0 * y
    return X, y


def on_columns(columns):
    return make_pipeline(ColumnTransformer([("kept", "passthrough", columns)]), LogisticRegression())


@pytest.mark.parametrize("stored", [False, True])
def test_long_lists_of_columns_are_told_apart(wide, tmp_path, stored):
    with_it, without = [*range(5, 40)], [*range(4, 39)]
    assert repr(on_columns(with_it)) == repr(on_columns([*with_it[:-1], 38]))  # as scikit-learn shortens them
    store = tmp_path / "results.jsonl" if stored else None
    for _ in range(2):
        table = compare(
            {"with": on_columns(with_it), "without": on_columns(without), "again": on_columns(with_it)},
            *wide, scoring=SCORER, n_splits=3, store=store,
        )  # fmt: skip
        assert table.loc["with", "mean"] > 0.9
        assert table.loc["without", "mean"] < 0.7
        assert table.loc["again", "scores"] == table.loc["with", "scores"]


def test_a_changed_model_is_run_again(wide, tmp_path):
    options = {"scoring": SCORER, "n_splits": 3, "store": tmp_path / "results.jsonl"}
    one = compare({"m": on_columns([*range(4, 39)])}, *wide, **options)
    two = compare({"m": on_columns([*range(5, 40)])}, *wide, **options)
    assert two.loc["m", "mean"] > one.loc["m", "mean"] + 0.2
    lines = [json.loads(line) for line in options["store"].read_text().splitlines()]
    assert len({line["key"] for line in lines}) == 6
    for seed in (np.random.RandomState(0), np.random.RandomState(1), 0, None):
        compare({"m": rocmax.PSAMClassifier(random_state=seed, max_iter=1)}, *wide, **options)
    assert len(options["store"].read_text().splitlines()) == 6 + 4 * 3


class Thing:
    def __init__(self, **parts):
        self.__dict__.update(parts)

    def double(self):
        return 2

    def triple(self):
        return 3


class Words(dict):
    """A dictionary of the user's own."""


def double(x):
    return 2 * x


def adder(k):
    def add(x):
        return x + k

    return add


def nested(value):
    steps = make_pipeline(FeatureUnion([("a", StandardScaler())]), FunctionTransformer(kw_args={"k": value}))
    return make_pipeline(steps, LogisticRegression())


DIFFERENT = {
    "types": [1, 1.0, True, "1", b"1", np.float64(1), np.float32(1), np.int64(1), None, [1], (1,), {1}, {1: 1}],
    "arrays": [
        np.zeros(4), np.zeros((2, 2)), np.zeros(4, dtype=int), np.zeros(4, dtype=">f8"), np.zeros(5), np.ones(4),
        np.array(["a", "b"]), np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object),
        np.array(["2020-01-01"], dtype="M8[D]"), np.arange(4.0), np.arange(4.0)[::-1],
        np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(2, 2).T,
        np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[1, 0]),
        np.array([double, None], dtype=object), np.array([adder, None], dtype=object),
    ],
    "long lists": [[*range(1000)], [*range(999), 1000], [*range(500), -1, *range(501, 1000)]],
    "long text": ["a" * 5000 + "b", "a" * 5000 + "c"],
    "nested": [
        [[1], 2], [1, [2]], [[1, 2]], [1, 2], [["1"], 2], {"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {}, "b": 1},
        {"b": 1, "a": {}},
    ],
    "functions": [
        np.log1p, np.log, double, adder, adder(1), adder(2), lambda x: x + 1, lambda x: x + 2,
        functools.partial(double, x=1), functools.partial(double, x=2), max, min, np.array([1.0]).max, "".join,
        Thing(a=1).double, Thing(a=2).double, Thing(a=1).triple,
        types.MethodType(lambda x: 1, 0), types.MethodType(lambda x: 2, 0), types.MethodType(lambda x: 2, 1),
    ],
    "estimators": [
        *(clone(model) for model in MODELS.values()), AUCClassifier(C=2.0), AUCClassifier(tol=1e-5),
        nested(1), nested(2),
        FrozenEstimator(LogisticRegression().fit([[0.0], [1.0]], [0, 1])),
        FrozenEstimator(LogisticRegression().fit([[0.0], [2.0]], [0, 1])),
        StandardScaler(), StandardScaler().set_output(transform="pandas"),
    ],
    "scorers": [
        SCORER, make_scorer("partial_auc", max_fpr=0.1), make_scorer("partial_auc", max_fpr=0.2),
        make_scorer("roc_auc", pos_label=0), make_scorer("fpr_at_tpr", min_tpr=0.5),
    ],
    "random states": [
        np.random.RandomState(0), np.random.RandomState(1), np.random.default_rng(0), np.random.default_rng(1),
    ],
    "others": [
        StratifiedKFold(3), StratifiedKFold(4), Thing(a=1), Thing(a=2), Thing(b=1), Path("a"), Path("b"),
        Words(a=1), Words(a=2), Words(a=lambda x: x + 1), Words(a=lambda x: x + 2),
        range(3), range(4), slice(1, 2), slice(1, 3), pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}),
        sparse.csr_array(np.eye(2)), sparse.csr_array(np.ones((2, 2))), LogisticRegression, StandardScaler, Thing,
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", DIFFERENT)
def test_different_things_have_different_keys(group):
    keys = [content_key(value) for value in DIFFERENT[group]]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("group", sorted(DIFFERENT.keys() - {"functions", "others"}))
def test_a_key_is_that_of_the_content(group):
    for value in DIFFERENT[group]:
        copied = clone(value, safe=False)
        assert content_key(copied) == content_key(value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(values, values)
def test_keys_are_equal_if_and_only_if_values_are(one, other):
    assert (content_key(one) == content_key(other)) == (repr(one) == repr(other))


def test_a_value_that_holds_itself():
    loop = [1]
    loop.append(loop)
    other = [2]
    other.append(other)
    assert content_key(loop) != content_key(other)


SCRIPT = """
import functools
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from rocmax.tables.compare import content_key
from rocmax.metrics import make_scorer

FACTOR = 3
COUNTS = []

def helper(X):
    return X * FACTOR

def scaled(X):
    COUNTS.append(1)
    return helper(X) if X.shape[1] in {1, 2, 3} else X

class Own(ClassifierMixin, BaseEstimator):
    shift = 1
    def __init__(self, C=1.0, names=frozenset({"a", "b", "c"})):
        self.C, self.names = C, names
    def fit(self, X, y):
        return self

def keys():
    return [
        content_key(make_pipeline(FunctionTransformer(scaled), LogisticRegression())),
        content_key(make_pipeline(FunctionTransformer(lambda X: scaled(X) + 1), Own())),
        content_key(Own(names=frozenset("abcdefgh"))),
        content_key(FunctionTransformer(functools.partial(np.clip, a_min=0))),
        content_key((make_scorer("partial_auc", max_fpr=0.1), {"words", "in", "a", "set"})),
    ]

first = keys()
COUNTS.append(1)
Own.shift = 7
assert keys() == first
print(*first)
"""


def script_keys(tmp_path, text, seed):
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
def test_keys_of_a_script_are_the_same_in_every_process_and_change_with_its_code(tmp_path):
    first = script_keys(tmp_path, SCRIPT, "1")
    assert len(set(first)) == 5
    assert script_keys(tmp_path, SCRIPT + "\n# a remark\n", "2") == first
    changed = SCRIPT.replace("FACTOR = 3", "FACTOR = 4").replace("shift = 1", "shift = 2")
    other = script_keys(tmp_path, changed, "1")
    assert [a == b for a, b in zip(first, other, strict=True)] == [False, False, False, True, True]


def test_what_cannot_be_told_is_refused_before_the_work(wide, tmp_path):
    model = make_pipeline(FunctionTransformer(kw_args={"lock": None}), LogisticRegression())
    counted = []
    with pytest.raises(TypeError, match=r"'m' cannot be saved in a store: the content of .*lock.* Use store=None"):
        compare(
            {"m": model.set_params(functiontransformer__inv_kw_args=Locked())}, *wide, scoring=SCORER, n_splits=2,
            store=tmp_path / "results.jsonl", progress=counted.append,
        )  # fmt: skip
    assert counted == []
    assert not (tmp_path / "results.jsonl").exists()


class Locked(dict):
    """Keyword arguments that can be copied, and not be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return Locked()


def test_without_a_store_anything_goes(wide):
    model = make_pipeline(FunctionTransformer(inv_kw_args=Locked()), LogisticRegression())
    assert compare({"m": model}, *wide, scoring=SCORER, n_splits=2).loc["m", "mean"] > 0.8
