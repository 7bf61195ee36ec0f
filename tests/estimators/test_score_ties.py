"""Scores that are equal up to rounding: one extreme row never makes ties of others, nor moves a threshold over them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from helpers.commands import run
from helpers.given_scores import Given
from rocmax import ROCSVC, AUCClassifier, FPRThresholdClassifier, MiniBatchClassifier, PartialAUCClassifier
from rocmax._rounding import join_ties, product_error, score_error
from rocmax.measures import above_order, at_fpr
from rocmax.metrics import partial_auc_score, roc_auc_score
from rocmax.papers import PAUCBoostClassifier

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def distinct_scores(min_size):
    """Scores that differ by much more than rounding, on several scales."""
    numbers = st.lists(st.integers(-1000, 1000), min_size=min_size, max_size=60, unique=True)
    return st.tuples(numbers, st.sampled_from([1e-200, 1e-9, 1.0, 1e6, 1e200])).map(lambda s: np.array(s[0]) * s[1])


@st.composite
def held_out_rows(draw):
    """Distinct scores of both classes, and a row with another, arbitrary finite score."""
    scores = draw(distinct_scores(3))
    positive = np.array(draw(st.lists(st.booleans(), min_size=scores.size, max_size=scores.size)))
    positive[0], positive[-2:] = True, False
    changed = scores.copy()
    row = draw(st.integers(0, scores.size - 1))
    changed[row] = draw(FINITE | st.sampled_from([1e11, -1e11, 1e300, -1e300, 0.0]))
    return scores, changed, positive, row


@settings(deadline=None, max_examples=300)
@given(held_out_rows(), st.floats(0.0, 0.99), st.floats(0, 1))
def test_an_outlier_moves_a_threshold_by_its_own_rank_only(rows, max_fpr, place):
    scores, changed, positive, row = rows
    n = int(np.sum(~positive))
    k = 1 + round(place * (n - 1))
    others = ~positive
    others[row] = False
    for rule in (lambda s: at_fpr(s, positive, None, max_fpr), lambda s: above_order(s, positive, k)):
        before, after = ((s[others] > rule(s)).sum() for s in (scores, changed))
        if positive[row]:
            assert after == before
        else:
            assert abs(int(after) - int(before)) <= 1
    for s in (scores, changed):
        assert np.sum(s[~positive] > at_fpr(s, positive, None, max_fpr)) <= max_fpr * n * (1 + 1e-9)
        # Above the k-th smallest lie at most the other n - k, and only what equals it is lost.
        assert np.sum(s[~positive] > above_order(s, positive, k)) <= n - k


@settings(deadline=None, max_examples=300)
@given(st.lists(FINITE | st.integers(-5, 5).map(float), min_size=1, max_size=40).map(np.array), FINITE)
def test_a_score_is_joined_by_its_own_rounding_only(scores, outlier):
    joined = join_ties(scores)
    assert (joined >= scores).all()
    assert (joined - scores <= 4 * score_error(scores)).all()
    order = np.argsort(scores)
    assert (np.diff(joined[order]) >= 0).all()
    far = np.abs(scores / 2 - outlier / 2) > score_error(scores)
    if far.all():
        np.testing.assert_array_equal(join_ties(np.append(scores, outlier))[:-1], joined)


def test_what_rounding_parts_is_joined_and_no_run_grows_without_end():
    base = np.array([0.3, -2.0, 7e5, -1e-9])
    jittered = np.concatenate([base, base * (1 + 4e-16), base * (1 - 9e-16)])
    assert np.unique(join_ties(jittered)).size == base.size
    crowded = 1.0 + 4 * np.finfo(float).eps * np.arange(1000)
    np.testing.assert_array_equal(join_ties(crowded), crowded)
    # Terms of 1e6 that cancel leave the error of the terms, not of the sum.
    X, w = np.array([[1e6, -1e6 + 1.0], [1e6, -1e6 + 1.0 + 1e-9], [1.0, 0.0]]), np.ones(2)
    error = product_error(X, w)
    assert np.unique(join_ties((X @ w)[:2], error[:2])).size == 1
    np.testing.assert_array_equal(error, product_error(sparse.csr_array(X), w))
    assert error[2] < 1e-12
    single = product_error(X.astype(np.float32), w)
    assert single[2] == pytest.approx(error[2] * 2.0**29 / 128)


def rows(n, rng, shift=1.5):
    y = (np.arange(n) % 4 == 0).astype(int)
    return rng.normal(size=(n, 3)) + shift * y[:, None] * [1.0, 0.0, 0.0], y


@pytest.mark.parametrize("value", [1e11, -1e11, 1e200])
@pytest.mark.parametrize("where", [0, 1], ids=["positive", "negative"])
@pytest.mark.parametrize("confidence", [None, 0.95])
def test_one_extreme_row_among_those_held_out(value, where, confidence):
    rng = np.random.default_rng(0)
    model = LogisticRegression().fit(*rows(2000, rng))
    X, y = rows(4000, rng)
    plain = FPRThresholdClassifier(model, 0.05, confidence=confidence, cv="prefit").fit(X, y)
    X[where] = [value, 0.0, 0.0]
    found = FPRThresholdClassifier(model, 0.05, confidence=confidence, cv="prefit").fit(X, y)
    fresh, y_fresh = rows(40_000, rng)
    rates = [chosen.predict(fresh[y_fresh == 0]).mean() for chosen in (plain, found)]
    assert rates[1] <= (0.05 if confidence else 0.055)
    assert rates[1] == pytest.approx(rates[0], abs=0.001)
    if where == 0:
        assert found.threshold_ == plain.threshold_ or value < 0


@pytest.mark.slow
def test_the_guarantee_holds_with_an_extreme_positive():
    rng = np.random.default_rng(1)
    limit, n, violations, repeats = 0.05, 150, 0, 1500
    y = np.repeat([0, 1], [n, 3])
    for _ in range(repeats):
        scores = rng.normal(size=(y.size, 1)) + 3 * y[:, None]
        scores[-1] = 1e11
        model = FPRThresholdClassifier(Given().fit(scores, y), limit, confidence=0.95, cv="prefit").fit(scores, y)
        violations += norm.sf(model.threshold_) > limit
    assert violations / repeats <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)
    assert violations / repeats >= 0.4 * model.violation_bound_


def test_probabilities_near_one_stay_apart():
    rng = np.random.default_rng(0)
    X, y = rows(4000, rng, shift=12.0)
    model = FPRThresholdClassifier(GaussianNB().fit(X, y), 0.05, cv="prefit").fit(X, y)
    assert model.predict(X[y == 1]).mean() == 1.0
    assert model.predict(X[y == 0]).mean() <= 0.05


@pytest.mark.parametrize("value", [1e11, -1e11])
@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize(
    "model",
    [AUCClassifier(), PartialAUCClassifier(max_fpr=0.3), MiniBatchClassifier(random_state=0)],
    ids=["auc", "partial", "minibatch"],
)
def test_score_with_an_extreme_row_is_the_exact_measure(model, value, row):
    rng = np.random.default_rng(0)
    model.fit(*rows(1000, rng))
    X, y = rows(3000, rng)
    X[row, 0] = value
    for data in (X, np.asfortranarray(X), sparse.csr_array(X)):
        exact = partial_auc_score(y, model.decision_function(data), max_fpr=getattr(model, "max_fpr", 1.0) or 1.0)
        assert model.score(data, y) == pytest.approx(exact, abs=1e-12)


def test_training_with_an_extreme_row_keeps_the_limit():
    rng = np.random.default_rng(0)
    X, y = rows(2000, rng)
    for model in (PAUCBoostClassifier(max_fpr=0.1, n_estimators=5), ROCSVC()):
        model.fit(X[:300], y[:300])
        large = X.copy()
        large[0] = 1e11
        scores = model.decision_function(large)
        assert model.score(large, y) == pytest.approx(
            partial_auc_score(y, scores, max_fpr=getattr(model, "max_fpr", 1.0)), abs=1e-9
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_identical_rows_are_predicted_alike_in_either_precision(dtype):
    rng = np.random.default_rng(3)
    X = (rng.integers(0, 2, size=(200, 6)) + 0.1).astype(dtype)
    y = (X @ rng.normal(size=6) + rng.normal(size=200) > 0).astype(int)
    model = PartialAUCClassifier(max_fpr=0.2).fit(np.asfortranarray(X), y)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, [model.predict(X[i : i + 1])[0] for i in range(200)])
    np.testing.assert_array_equal(predicted, model.predict(np.asfortranarray(X)))
    same = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    assert all(np.unique(predicted[same == group]).size == 1 for group in range(same.max() + 1))
    assert model.score(np.asfortranarray(X), y) == pytest.approx(model.score(X, y), abs=1e-9)


@pytest.mark.slow
def test_the_command_line_keeps_its_limit_with_an_extreme_row(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rows(6000, rng)
    _, test = train_test_split(np.arange(y.size), test_size=0.25, stratify=y == 1, random_state=0)
    X[test[y[test] == 1][0], 0] = 1e11
    pd.DataFrame(X, columns=list("abc")).assign(label=y).to_csv(tmp_path / "t.csv", index=False)
    options = ["--target", "label", "--positive", "1", "--max-fpr", "0.05", "--confidence", "0.95"]
    options += ["--model", "logistic", "--no-tune", "--out", tmp_path / "m.rocmax"]
    run("fit", tmp_path / "t.csv", *options)
    fresh, y_fresh = rows(40_000, rng)
    pd.DataFrame(fresh[y_fresh == 0], columns=list("abc")).to_csv(tmp_path / "new.csv", index=False)
    run("predict", tmp_path / "m.rocmax", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")["label"]
    assert (predicted.astype(str) == "1").mean() <= 0.05


def test_the_exact_area_of_the_example_in_which_ties_were_joined():
    rng = np.random.default_rng(0)
    X, y = rows(2000, rng, shift=2.5)
    model = AUCClassifier().fit(X, y)
    X[0] = 1e11
    assert model.score(X, y) == pytest.approx(roc_auc_score(y, model.decision_function(X)), abs=1e-12)
    assert model.score(X, y) > 0.9


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from((0.0, 0.4, 1.0, 3.0))), min_size=1, max_size=30),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=300, deadline=None)
def test_runs_of_ties_are_joined_as_by_a_loop(rows, seed):
    order = np.random.default_rng(seed).permutation(len(rows))
    scores = np.array([float(score) for score, _ in rows])[order]
    error = np.array([bound for _, bound in rows])[order]
    expected = scores.copy()
    ranked = np.argsort(scores, kind="stable")
    run = [ranked[0]]
    for row in [*ranked[1:], None]:
        if row is not None and scores[row] - scores[run[-1]] <= min(error[row], error[run[-1]]):
            run.append(row)
            continue
        if scores[run[-1]] - scores[run[0]] <= 4 * error[run].min():
            expected[run] = scores[run[-1]]
        run = [row]
    # Equal scores with different bounds can be in either order.
    if np.unique(scores).size == scores.size:
        np.testing.assert_array_equal(join_ties(scores, error), expected)
    joined = join_ties(scores, error)
    assert (joined >= scores).all()
    assert np.isin(joined, scores).all()
