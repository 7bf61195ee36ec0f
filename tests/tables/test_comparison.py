"""Comparisons: the same splits for all, tuned alike, resumable."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import wilcoxon
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import check_random_state

from rocmax import AUCClassifier, compare
from rocmax.metrics import make_scorer

SCORER = make_scorer("roc_auc")
GRID = {"C": [0.001, 1.0]}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3 == 0
    return rng.normal(size=(150, 5)) + 0.7 * y[:, None], y.astype(int)


def test_the_table_is_a_plain_loop(problem):
    X, y = problem
    models = {"auc": AUCClassifier(), "logistic": LogisticRegression(), "guess": DummyClassifier()}
    table = compare(models, X, y, scoring=SCORER, param_grids={"logistic": GRID}, n_splits=6, random_state=3)
    splits = StratifiedShuffleSplit(6, test_size=0.3, random_state=check_random_state(3)).split(y, y)
    expected = {name: [] for name in models}
    for train, test in splits:
        for name, model in models.items():
            chosen = GridSearchCV(model, GRID, scoring=SCORER, cv=StratifiedKFold(3)) if name == "logistic" else model
            fitted = chosen.fit(X[train], y[train])
            expected[name].append(SCORER(getattr(fitted, "best_estimator_", fitted), X[test], y[test]))
    for name, scores in expected.items():
        row = table.loc[name]
        assert row["scores"] == pytest.approx(scores)
        assert row["mean"] == pytest.approx(np.mean(scores))
        assert row["standard_error"] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(6))
    best = table.index[0]
    assert np.isnan(table.loc[best, "p_value"])
    assert table.index[-1] == "guess"
    differences = np.subtract(expected[best], expected["guess"])
    assert table.loc["guess", "p_value"] == pytest.approx(wilcoxon(differences).pvalue)


def test_a_twin_is_no_worse(problem):
    table = compare({"a": AUCClassifier(), "b": AUCClassifier()}, *problem, scoring=SCORER, n_splits=4)
    assert table["p_value"].dropna().tolist() == [1.0]


class Counting(LogisticRegression):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


def test_an_interrupted_comparison_goes_on(problem, tmp_path):
    X, y = problem
    store, steps = tmp_path / "results.jsonl", []

    def stop_after_three(count):
        steps.append(count)
        if sum(steps) == 3:
            raise KeyboardInterrupt

    models = {"counting": Counting(), "auc": AUCClassifier()}
    options = {"scoring": SCORER, "n_splits": 4, "store": store}
    Counting.fits = 0
    with pytest.raises(KeyboardInterrupt):
        compare(models, X, y, progress=stop_after_three, **options)
    done = Counting.fits
    lines = store.read_text().splitlines()
    assert len(lines) == 3
    # A line that was cut by a kill is done again.
    store.write_text("\n".join(lines[:2]) + "\n" + lines[2][:20] + "\n")
    steps.clear()
    table = compare(models, X, y, progress=steps.append, **options)
    assert steps[0] == 2
    assert sum(steps) == 8
    assert Counting.fits <= 4 + done
    fresh = compare(models, X, y, scoring=SCORER, n_splits=4)
    assert table["mean"].to_dict() == pytest.approx(fresh["mean"].to_dict())
    # Other data, another grid and another measure are other results.
    before = len(store.read_text().splitlines())
    compare(models, X + 1e-9, y, **options)
    compare(models, X, y, **{**options, "scoring": make_scorer("partial_auc", max_fpr=0.3)})
    compare(models, X, y, param_grids={"auc": GRID}, **options)
    keys = [json.loads(line)["key"] for line in store.read_text().splitlines()[before:]]
    assert len(keys) == len(set(keys)) == 8 + 8 + 4


@pytest.mark.slow
def test_parallel_fits_and_groups(problem):
    X, y = problem
    groups = np.arange(150) // 3
    models = {"auc": AUCClassifier()}
    serial = compare(models, X, y, scoring=SCORER, groups=groups, n_splits=3, param_grids={"auc": GRID})
    parallel = compare(models, X, y, scoring=SCORER, groups=groups, n_splits=3, param_grids={"auc": GRID}, n_jobs=2)
    assert serial.loc["auc", "scores"] == parallel.loc["auc", "scores"]
    with pytest.raises(ValueError, match="one class only"):
        compare(models, X, y, scoring=SCORER, groups=y, n_splits=3)


def test_bad_calls(problem):
    with pytest.raises(ValueError, match="at least one entry"):
        compare({}, *problem, scoring=SCORER)
    with pytest.raises(ValueError, match=r"must be names of estimators; got \['b'\]"):
        compare({"a": AUCClassifier()}, *problem, scoring=SCORER, param_grids={"b": GRID})
