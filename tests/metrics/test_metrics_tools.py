"""Scorers inside scikit-learn's searches, and bootstrap intervals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.stats import norm, t
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from rocmax import metrics
from rocmax.metrics.curve import Blocks, rank_labels, rank_scores
from rocmax.metrics.uncertainty import resamples

CASES = [
    ("partial_auc_score", {"min_fpr": 0.05, "max_fpr": 0.3}),
    ("partial_auc_score", {"max_fpr": 0.3, "definition": "count"}),
    ("partial_auc_score", {"max_fpr": 0.3, "standardize": True}),
    ("partial_auc_score", {"min_tpr": 0.2, "max_fpr": 0.6}),
    ("tpr_at_fpr", {"max_fpr": 0.2}),
    ("fpr_at_tpr", {"min_tpr": 0.6}),
    ("precision_at_k", {"k": 7}),
    ("precision_at_k", {"k": 0.2}),
    ("break_even_point", {}),
    ("average_precision_score", {}),
    ("f_beta_score", {}),
    ("f_beta_score", {"beta": 2.0}),
    ("g_mean_score", {}),
    ("weighted_relative_accuracy", {}),
    ("roc_auc_score", {}),
]
LABELED = ("f_beta_score", "g_mean_score", "weighted_relative_accuracy")
every = pytest.mark.parametrize(("name", "params"), CASES)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4))
    fraud = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=90) > 0.6
    return X, np.where(fraud, "fraud", "ok")


def public_value(name, params, y, values, **weight):
    return getattr(metrics, name)(y, values, **params, **weight)


@every
def test_every_scorer_in_a_grid_search(problem, name, params):
    X, y = problem
    folds, grid = StratifiedKFold(3), [1e-3, 1.0]
    search = GridSearchCV(
        LogisticRegression(),
        {"C": grid},
        scoring=metrics.make_scorer(name, pos_label="fraud", **params),
        cv=folds,
        error_score="raise",
    ).fit(X, y)
    sign = -1 if name == "fpr_at_tpr" else 1
    for i, (train, test) in enumerate(folds.split(X, y)):
        for C, score in zip(grid, search.cv_results_[f"split{i}_test_score"], strict=True):
            model = LogisticRegression(C=C).fit(X[train], y[train])
            if name in LABELED:
                values = (model.predict(X[test]) == "fraud").astype(int)
            else:
                values = -model.decision_function(X[test])
            expected = public_value(name, params, (y[test] == "fraud").astype(int), values)
            assert score == pytest.approx(sign * expected)


def test_the_positive_class_of_a_scorer(problem):
    X, y = problem
    model = LogisticRegression().fit(X, y)
    window = {"max_fpr": 0.1}
    of_fraud = metrics.make_scorer("partial_auc", pos_label="fraud", **window)(model, X, y)
    of_ok = metrics.make_scorer("partial_auc", pos_label="ok", **window)(model, X, y)
    assert of_fraud == pytest.approx(metrics.partial_auc_score(y == "fraud", -model.decision_function(X), **window))
    assert of_ok == pytest.approx(metrics.partial_auc_score(y == "ok", model.decision_function(X), **window))
    assert of_ok == metrics.make_scorer("partial_auc", **window)(model, X, y)
    assert abs(of_fraud - of_ok) > 0.01
    both = [metrics.make_scorer("roc_auc", pos_label=label)(model, X, y) for label in ("fraud", "ok")]
    assert both == pytest.approx([roc_auc_score(y, model.decision_function(X))] * 2)


def test_a_scorer_uses_probabilities_where_there_is_no_decision_function(problem):
    X, y = problem
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    score = metrics.make_scorer("tpr_at_fpr", pos_label="fraud", max_fpr=0.2)(model, X, y)
    expected = metrics.tpr_at_fpr(y, model.predict_proba(X)[:, 0], max_fpr=0.2, pos_label="fraud")
    assert score == expected > 0.2


def test_a_scorer_takes_weights_and_pickles(problem):
    X, y = problem
    model, weight = LogisticRegression().fit(X, y), np.arange(90) % 4
    scorer = pickle.loads(pickle.dumps(metrics.make_scorer("partial_auc", max_fpr=0.3)))
    expected = metrics.partial_auc_score(y, model.decision_function(X), max_fpr=0.3, sample_weight=weight)
    assert scorer(model, X, y, sample_weight=weight) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:the interval of")
@every
def test_a_measure_by_name_or_by_function(name, params):
    y, s = [0, 1, 1, 0, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0, 1, 0]
    short = name.removesuffix("_score")
    values = {
        metrics.bootstrap_interval(measure, y, s, n_resamples=20, random_state=1, **params)
        for measure in (name, short, getattr(metrics, name))
    }
    assert len(values) == 1
    assert repr(metrics.make_scorer(short, **params)) == repr(metrics.make_scorer(getattr(metrics, name), **params))


@pytest.mark.parametrize(
    ("measure", "params", "message"),
    [
        ("accuracy", {}, "one of roc_auc, partial_auc, .*weighted_relative_accuracy.*got 'accuracy'"),
        ("auc", {}, "one of roc_auc, .*got 'auc'"),
        (len, {}, "or that function; got <built-in function len>"),
        ("partial_auc", {"k": 3}, "accepts min_fpr, max_fpr, min_tpr, standardize, normalize, definition; got k"),
        ("break_even_point", {"k": 3}, "break_even_point accepts no parameters; got k"),
        ("tpr_at_fpr", {"max_fpr": 0.1, "sample_weight": [1]}, "accepts max_fpr; got sample_weight"),
        ("tpr_at_fpr", {}, "tpr_at_fpr requires a value for max_fpr; got no parameters"),
        ("roc_auc", {"max_fpr": 0.1}, "use partial_auc_score with max_fpr, and standardize=True"),
    ],
)
def test_unknown_measures_and_parameters(measure, params, message):
    with pytest.raises(ValueError, match=message):
        metrics.make_scorer(measure, **params)
    if "sample_weight" not in params:
        with pytest.raises(ValueError, match=message):
            metrics.bootstrap_interval(measure, [0, 1], [0, 1], **params)


@pytest.mark.parametrize(
    ("measure", "params", "message"),
    [
        *(("partial_auc", {"min_tpr": floor}, "min_tpr must be at least 0") for floor in (1.0, -0.1, "x", None, True)),
        *(("partial_auc", {"max_fpr": limit}, "0 <= min_fpr < max_fpr <= 1") for limit in (0.0, 1.1, "x", None)),
        ("partial_auc", {"min_fpr": 0.5, "max_fpr": 0.2}, "0 <= min_fpr < max_fpr <= 1"),
        ("partial_auc", {"definition": "mean"}, 'definition must be "area" or "count"'),
        ("partial_auc", {"standardize": True, "normalize": False}, "requires normalize=True"),
        ("tpr_at_fpr", {"max_fpr": -0.1}, "max_fpr must be between 0 and 1"),
        ("fpr_at_tpr", {"min_tpr": 1.5}, "min_tpr must be between 0 and 1"),
        ("precision_at_k", {"k": 0}, "k as a count must be at least 1"),
        ("precision_at_k", {"k": 1.5}, "k as a fraction must be above 0 and at most 1"),
        ("f_beta", {"beta": 0.0}, "beta must be a finite number > 0"),
    ],
)
def test_bad_values_are_refused_when_a_scorer_is_made(measure, params, message):
    with pytest.raises(ValueError, match=message):
        metrics.make_scorer(measure, **params)


def test_good_values_make_a_scorer():
    for k in (1, 10**9, 1e-9, 1.0, np.int64(7)):
        metrics.make_scorer("precision_at_k", k=k)
    for limits in ({"min_tpr": 0.999}, {"max_fpr": 1e-12}, {"min_fpr": 0.2, "max_fpr": 0.3, "definition": "count"}):
        metrics.make_scorer("partial_auc", **limits)
    for limit in (0, 1, 0.5):
        metrics.make_scorer("tpr_at_fpr", max_fpr=limit)
        metrics.make_scorer("fpr_at_tpr", min_tpr=limit)


def tied_sample(size=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(size) % 3 == 0
    return y.astype(int), np.round(2 * (rng.normal(size=size) + y)).astype(int)


@pytest.mark.filterwarnings("ignore:the interval of")
@every
@pytest.mark.parametrize("copies", [1, 100])
def test_bootstrap_is_a_loop_over_weighted_calls(name, params, copies):
    y, s = tied_sample()
    values = (s > 0).astype(int) if name in LABELED else s
    weight = np.full(y.size, copies)
    ranked = (rank_labels if name in LABELED else rank_scores)(y, values, weight)
    sampled = []
    for drawn in resamples(ranked.blocks(), 50, np.random.default_rng(5)):
        assert drawn.negative.sum() == copies * np.sum(y == 0)
        assert drawn.positive.sum() == copies * np.sum(y == 1)
        # In a block of ties each row of a class gets an equal part of what was drawn.
        counts = np.where(y == 1, drawn.positive[ranked.block], drawn.negative[ranked.block])
        _, group, size = np.unique(np.stack([y, ranked.block]), axis=1, return_inverse=True, return_counts=True)
        counts = counts / size[group.ravel()]
        keep = counts > 0
        sampled.append(public_value(name, params, y[keep], values[keep], sample_weight=counts[keep]))
    got = metrics.bootstrap_interval(
        name, y, values, n_resamples=50, confidence_level=0.8, random_state=5, sample_weight=weight, **params
    )
    # Student's quantile for the 20 positives and their copies, and a spread that is too small by sqrt(19 / 20).
    count = 20 * copies
    tail = norm.cdf(t.ppf(0.1, count - 1) * np.sqrt(count / (count - 1)))
    assert got == pytest.approx(tuple(np.quantile(sampled, [tail, 1 - tail])), rel=1e-9)
    assert got[0] < got[1] or params == {"k": 7}  # seven of a hundred copies of the top row do not vary


@pytest.mark.parametrize("copies", [2, 200])
def test_redrawn_counts_are_multinomial(copies):
    """Few copies a block are drawn one by one, many by their counts: the same distribution."""
    weight = np.array([0.0, 1.0, 2.0, 5.0]) * copies
    rng = np.random.default_rng(0)
    drawn = np.array([r.negative for r in resamples(Blocks(weight, weight), 4000, rng)])
    total, share = weight.sum(), weight / weight.sum()
    np.testing.assert_array_equal(drawn.sum(axis=1), total)
    np.testing.assert_allclose(drawn.mean(axis=0), weight, atol=5 * np.sqrt(total / 4000))
    covariance = total * (np.diag(share) - np.outer(share, share))
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1 * covariance.max())


def test_bootstrap_agrees_with_resampled_rows():
    y, s = tied_sample(150)
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(y == label) for label in (0, 1)]
    drawn = [np.concatenate([rng.choice(r, r.size) for r in rows]) for _ in range(2000)]
    low, high = np.quantile([metrics.partial_auc_score(y[i], s[i], max_fpr=0.4) for i in drawn], [0.025, 0.975])
    got = metrics.bootstrap_interval("partial_auc", y, s, n_resamples=4000, random_state=1, max_fpr=0.4)
    assert got == pytest.approx((low, high), abs=0.1 * (high - low))


def test_integer_weights_are_repeated_rows_in_a_bootstrap():
    y, s = tied_sample()
    weight = 1 + np.arange(60) % 3
    repeated = np.repeat(np.arange(60), weight)
    settings = {"n_resamples": 200, "random_state": 2, "max_fpr": 0.4}
    # Draws are made by block of tied scores, so the two see the same random numbers.
    assert metrics.bootstrap_interval("partial_auc", y, s, sample_weight=weight, **settings) == pytest.approx(
        metrics.bootstrap_interval("partial_auc", y[repeated], s[repeated], **settings), rel=1e-12
    )


def test_zero_weight_is_absent_in_a_bootstrap():
    y, s = tied_sample()
    weight = (np.arange(60) % 4 > 0).astype(int)
    settings = {"n_resamples": 50, "random_state": 2}
    assert metrics.bootstrap_interval("roc_auc", y, s, sample_weight=weight, **settings) == pytest.approx(
        metrics.bootstrap_interval("roc_auc", y[weight > 0], s[weight > 0], **settings), rel=1e-12
    )


@pytest.mark.filterwarnings("ignore:the interval of")
def test_fractional_weights_keep_the_totals_of_the_classes():
    y, s = tied_sample(12)
    # 2.4 positives and 7.2 negatives; whole copies alone would be 2 and 7.
    fixed = {"sample_weight": np.where(y == 1, 0.6, 0.9), "n_resamples": 30, "random_state": 0}
    low, high = metrics.bootstrap_interval("precision_at_k", y, s, k=9, **fixed)
    assert 0 < low <= high < 1
    # Precision among all rows is the share of positives, which a stratified resample can't change.
    assert metrics.bootstrap_interval("precision_at_k", y, s, k=1.0, **fixed) == pytest.approx((0.25, 0.25))


def test_seeds():
    y, s = tied_sample()

    def interval(seed):
        return metrics.bootstrap_interval("roc_auc", y, s, n_resamples=50, random_state=seed)

    assert interval(1) == interval(1) == interval(np.random.default_rng(1))
    assert interval(1) != interval(2)
    generator = np.random.default_rng(1)
    assert interval(generator) != interval(generator)


def test_a_higher_level_gives_a_wider_interval_around_the_value():
    y, s = tied_sample(150)
    settings = {"n_resamples": 400, "random_state": 0}
    wide = metrics.bootstrap_interval("roc_auc", y, s, confidence_level=0.99, **settings)
    narrow = metrics.bootstrap_interval("roc_auc", y, s, confidence_level=0.5, **settings)
    assert wide[0] < narrow[0] < roc_auc_score(y, s) < narrow[1] < wide[1]


@pytest.mark.filterwarnings("ignore:the interval of")
def test_the_positive_class_of_a_bootstrap():
    y, s = tied_sample()
    settings = {"n_resamples": 50, "random_state": 0, "max_fpr": 0.2}
    named = np.where(y == 1, "fraud", "ok")
    of_fraud = metrics.bootstrap_interval("tpr_at_fpr", named, s, pos_label="fraud", **settings)
    assert of_fraud == metrics.bootstrap_interval("tpr_at_fpr", y, s, **settings)
    assert of_fraud != metrics.bootstrap_interval("tpr_at_fpr", named, s, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_resamples": 0}, "n_resamples must be an integer >= 1; got 0"),
        ({"n_resamples": 10.0}, "n_resamples must be an integer.*got 10.0"),
        ({"n_resamples": True}, "n_resamples must be an integer.*got True"),
        ({"confidence_level": 1.0}, "confidence_level must be above 0 and below 1; got 1.0"),
        ({"confidence_level": 95}, "confidence_level.*got 95"),
        ({"sample_weight": [0.1, 0.1, 0.1, 0.1]}, "sample_weight must sum to at least 1 in each class.*got 0.2"),
        ({"sample_weight": [1, 0, 1, 0]}, "one class"),
    ],
)
def test_bad_settings_of_a_bootstrap(settings, message):
    with pytest.raises(ValueError, match=message):
        metrics.bootstrap_interval("roc_auc", [0, 1, 0, 1], [1, 2, 3, 4], **settings)
