"""Thresholds from held-out groups, whose rows are not independent."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rocmax
import rocmax.displays
from helpers.given_scores import Given
from rocmax import FPRThresholdClassifier, TPRThresholdClassifier
from rocmax.thresholds import GroupEvidence, group_order

CLASSIFIERS = {"fpr": (FPRThresholdClassifier, 0.05), "tpr": (TPRThresholdClassifier, 0.95)}


def customers(n_groups, rng, *, sizes=None, shared=0.7, positives=0.3):
    """Return scores, labels and groups; a score is standard normal, with a part that a group shares, plus the label."""
    sizes = np.full(n_groups, 20) if sizes is None else sizes
    groups = np.repeat(np.arange(n_groups), sizes)
    y = (rng.random(groups.size) < positives).astype(int)
    own = math.sqrt(1 - shared) * rng.normal(size=groups.size)
    return own + math.sqrt(shared) * rng.normal(size=n_groups)[groups] + y, y, groups


def on_scores(name, scores, y, groups, **options):
    """Return the classifier fitted to rows whose single feature is the score."""
    make, limit = CLASSIFIERS[name]
    X = np.asarray(scores, dtype=float).reshape(-1, 1)
    return make(Given().fit(X, y), limit, cv="prefit", **options).fit(X, y, groups=groups)


def error_rate(name, threshold):
    """Return the error rate of all rows at a threshold on scores of ``customers``."""
    return norm.sf(threshold) if name == "fpr" else norm.cdf(threshold - 1)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("setting", ["equal sizes", "unequal sizes", "almost copies"])
def test_the_limit_is_kept_with_the_confidence_if_groups_share_an_effect(name, setting):
    """The rate is above the limit in at most 10 % of the samples; with the threshold for independent rows in more."""
    rng = np.random.default_rng(0)
    wrong, naive, n_samples = 0, 0, 200
    for _ in range(n_samples):
        sizes = 1 + rng.poisson(19, size=200) if setting == "unequal sizes" else np.full(150, 20)
        shared = 0.99 if setting == "almost copies" else 0.7
        scores, y, groups = customers(sizes.size, rng, sizes=sizes, shared=shared, positives=0.5)
        model = on_scores(name, scores, y, groups, confidence=0.9)
        wrong += error_rate(name, model.threshold_) > 0.05
        naive += error_rate(name, on_scores(name, scores, y, None, confidence=0.9).threshold_) > 0.05
    assert wrong <= 0.1 * n_samples
    assert naive > 0.2 * n_samples


def test_the_rate_of_rows_is_limited_if_large_groups_have_higher_scores():
    """The mean over groups is below the limit here while every row of a large group is a false positive."""
    rng = np.random.default_rng(1)
    sizes = np.where(np.arange(400) < 16, 100, 10)
    wrong = {"row": 0, "group": 0}
    for _ in range(50):
        scores, _, groups = customers(400, rng, sizes=sizes, positives=0.0)
        scores += 3.0 * (groups < 16)
        large = sizes[groups] == 100
        truth = [norm.sf, lambda t: norm.sf(t - 3)]
        y = np.append(np.zeros(scores.size, dtype=int), 1)
        for rate in wrong:
            model = on_scores("fpr", np.append(scores, 9.0), y, np.append(groups, 400), confidence=0.9, rate=rate)
            share = large.mean()
            wrong[rate] += (1 - share) * truth[0](model.threshold_) + share * truth[1](model.threshold_) > 0.05
    assert wrong["row"] <= 5
    assert wrong["group"] > 40


@pytest.mark.parametrize("rate", ["row", "group"])
def test_the_evidence_has_an_expectation_of_at_most_one_under_every_rate_above_the_limit(rate):
    """The expectation over all outcomes of four groups, for expected shares on the boundary of the hypothesis.

    The largest expectation, found by a solver that knows nothing of the formula, is 1 for a single bet.
    """
    sizes = np.array([1, 2, 4, 9])
    rows = sizes / sizes.sum() if rate == "row" else np.full(4, 0.25)
    evidence = GroupEvidence(sizes, 0.2, 0.05, rate)
    outcomes = list(itertools.product([0, 1], repeat=4))
    values = np.array([math.exp(evidence.log_evidence(np.array(outcome) * sizes)) for outcome in outcomes])

    def expectation(shares):
        chances = [np.prod(np.where(outcome, shares, 1 - shares)) for outcome in np.array(outcomes)]
        return float(np.dot(chances, values))

    rng = np.random.default_rng(0)
    for _ in range(300):
        shares = rng.dirichlet(np.ones(4)) * 0.2 / rows
        if shares.max() <= 1:
            assert expectation(shares) <= 1 + 1e-9
    found = minimize(
        lambda shares: -expectation(shares),
        np.full(4, 0.2),
        bounds=[(0, 1)] * 4,
        constraints={"type": "ineq", "fun": lambda shares: rows @ shares - 0.2},
    )
    assert -found.fun == pytest.approx(1.0, abs=1e-4)


def test_groups_have_no_weight_in_the_rate_of_rows_without_a_guarantee():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    scores, groups = rng.standard_normal((300, 1)) + y[:, None], rng.integers(0, 20, 300) ** 2 // 25
    found = {}
    for rate in ("row", "group", None):
        model = FPRThresholdClassifier(Given().fit(scores, y), 0.1, cv="prefit", rate=rate or "row")
        found[rate] = model.fit(scores, y, groups=None if rate is None else groups).threshold_
    assert found["row"] == found[None] != found["group"]


@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_the_smallest_with_enough_evidence(seed):
    rng = np.random.default_rng(seed)
    groups, risk = np.sort(rng.integers(0, 60, 150)), rng.standard_normal(150)
    sizes = np.unique(groups, return_counts=True)[1]
    member = np.unique(groups, return_inverse=True)[1]
    evidence = GroupEvidence(sizes, 0.2, 0.1, "row")
    ranks = np.argsort(np.argsort(risk))
    enough = [
        evidence.is_enough(np.bincount(member[ranks >= count], minlength=sizes.size)) for count in range(risk.size + 1)
    ]
    assert 1 < enough.index(True) < risk.size
    assert group_order(risk, groups, 0.2, 0.1, "row") == enough.index(True)


@pytest.mark.parametrize("max_rate", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("sizes", [[3, 3, 3, 3], [1, 2, 4, 9], [1, 1, 1, 40]], ids=str)
def test_evidence_is_that_of_the_formula(max_rate, sizes):
    """The worst shares are found by a solver that knows nothing of multipliers."""
    sizes, delta = np.array(sizes), 0.1
    share = sizes / sizes.sum()
    best = math.sqrt(2 * math.log(1 / delta) * (share @ share) / (max_rate * (1 - max_rate)))
    bets = {min(1.0, factor * best) for factor in (1.0, 2.0, 4.0) if factor**2 <= sizes.mean()}
    errors = np.array([1, 0, 2, 0]) * sizes // 3
    expected = []
    for bet in bets:
        c = np.minimum(1.0, bet * share / (share @ share))
        worst = minimize(
            lambda p, c=c: -np.log(np.maximum(1 - c * p, 1e-300)).sum(),
            np.full(4, max_rate),
            bounds=[(0, 1)] * 4,
            constraints={"type": "ineq", "fun": lambda p: share @ p - max_rate},
            options={"ftol": 1e-14},
        )
        expected.append(np.prod(1 - c * errors / sizes) * math.exp(worst.fun))
    found = GroupEvidence(sizes, max_rate, delta, "row").log_evidence(errors)
    assert math.exp(found) == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.parametrize(("size", "n_bets"), [(1, 1), (4, 2), (20, 3)])
def test_evidence_of_many_groups_of_one_size(size, n_bets):
    """Then the worst shares are all equal to the limit."""
    max_rate, delta, n_groups = 0.3, 0.05, 800
    best = math.sqrt(2 * math.log(1 / delta) / (n_groups * max_rate * (1 - max_rate)))
    bets = best * 2.0 ** np.arange(n_bets)
    errors = np.random.default_rng(0).binomial(size, 0.25, n_groups)
    logs = np.log1p(-np.outer(bets, errors / size)).sum(axis=1) - n_groups * np.log1p(-bets * max_rate)
    found = GroupEvidence(np.full(n_groups, size), max_rate, delta, "row").log_evidence(errors)
    assert found == pytest.approx(math.log(np.exp(logs).mean()), rel=1e-9)


@pytest.mark.parametrize("max_rate", [0.05, 0.06, 0.08, 0.11])
def test_the_number_of_groups_in_the_message_is_the_smallest(max_rate):
    with pytest.raises(ValueError, match="independent groups") as caught:
        GroupEvidence(np.full(5, 3), max_rate, 0.05, "row").check()
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    enough = [GroupEvidence(np.full(n, 3), max_rate, 0.05, "row").is_enough(np.zeros(n)) for n in (needed - 1, needed)]
    assert enough == [False, True]


def test_evidence_does_not_fall_when_errors_become_fewer():
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 30, size=200)
    evidence = GroupEvidence(sizes, 0.05, 0.05, "row")
    errors = rng.binomial(sizes, 0.1)
    values = []
    while errors.any():
        values.append(evidence.log_evidence(errors))
        errors[rng.choice(np.flatnonzero(errors))] -= 1
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize(("name", "rows"), [("fpr", "negatives"), ("tpr", "positives")])
def test_too_few_groups_are_counted_in_the_message(name, rows):
    """As many groups are required as independent rows if they are of one size: log(0.05) / log(0.95) = 58.4."""
    scores, y, groups = customers(59, np.random.default_rng(0))
    y[::2], y[1::2] = 0, 1
    on_scores(name, scores, y, groups, confidence=0.95)
    message = f"requires at least 59 independent groups with held-out {rows}; got 58"
    with pytest.raises(ValueError, match=message):
        on_scores(name, scores[groups < 58], y[groups < 58], groups[groups < 58], confidence=0.95)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_fraction_holds_out_whole_groups_with_both_classes(name):
    make, limit = CLASSIFIERS[name]
    scores, y, groups = customers(400, np.random.default_rng(3), shared=0.3)
    seen = []

    class Recording(Given):
        def fit(self, X, y):
            seen.append(set(X[:, 1]))
            return super().fit(X, y)

    X = np.column_stack([scores, groups])
    model = make(Recording(), limit, confidence=0.9, random_state=0).fit(X, y, groups=groups)
    assert 0.65 <= len(seen[0]) / 400 <= 0.75
    held_out = ~np.isin(groups, list(seen[0]))
    assert model.n_groups_ == len(set(groups)) - len(seen[0])
    assert abs(y[held_out].mean() - y.mean()) < 0.03
    assert not hasattr(model.fit(X, y), "n_groups_")


def test_generators_and_numbers_of_folds_get_the_groups():
    scores, y, groups = customers(30, np.random.default_rng(4))
    X = scores[:, None]
    asked = []

    class Folds(GroupKFold):
        def split(self, X, y=None, groups=None):
            asked.append(groups)
            return super().split(X, y, groups)

    FPRThresholdClassifier(LogisticRegression(), 0.2, cv=Folds(3)).fit(X, y, groups=groups)
    assert asked[0] is not None
    parts = []

    class Recording(Given):
        def fit(self, X, y):
            parts.append(set(X[:, 1]))
            return super().fit(X, y)

    FPRThresholdClassifier(Recording(), 0.2, cv=3).fit(np.column_stack([scores, groups]), y, groups=groups)
    assert [len(part) for part in parts[:3]] == [20, 20, 20]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_group_counts_once_with_the_rate_of_groups(name):
    make, limit = CLASSIFIERS[name]
    rng = np.random.default_rng(5)
    scores, y, groups = customers(300, rng, sizes=rng.integers(1, 60, size=300))
    model = on_scores(name, scores, y, groups, rate="group")
    errors = (scores > model.threshold_) if name == "fpr" else (scores <= model.threshold_)
    members = y == (name == "tpr")
    rates = [errors[members & (groups == g)].mean() for g in np.unique(groups[members])]
    assert 0.04 < np.mean(rates) <= 0.05 + 1e-9
    with pytest.raises(ValueError, match="requires the group of each row"):
        make(LogisticRegression(), limit, rate="group").fit(scores[:, None], y)
    with pytest.raises(ValueError, match='rate must be "row" or "group"; got \'customer\''):
        make(LogisticRegression(), limit, rate="customer").fit(scores[:, None], y)


def test_groups_are_routed_through_pipelines_and_searches():
    scores, y, groups = customers(120, np.random.default_rng(6))
    X = scores[:, None]
    with sklearn.config_context(enable_metadata_routing=True):
        model = FPRThresholdClassifier(LogisticRegression(), 0.3, confidence=0.9, random_state=0)
        pipeline = make_pipeline(StandardScaler(), model.set_fit_request(groups=True))
        pipeline.fit(X, y, groups=groups)
        # 3/10 of the groups
        assert pipeline[-1].n_groups_ == 36
        search = GridSearchCV(pipeline, {"fprthresholdclassifier__max_fpr": [0.3, 0.4]}, cv=GroupKFold(2))
        found = search.fit(X, y, groups=groups).best_estimator_[-1]
        assert found.n_groups_ == 36
        fitted = cross_validate(pipeline, X, y, cv=GroupKFold(2), params={"groups": groups}, return_estimator=True)[
            "estimator"
        ]
        assert {each[-1].n_groups_ for each in fitted} == {18}


class NeedsGroups(ClassifierMixin, BaseEstimator):
    """A classifier that records the groups of its rows."""

    def fit(self, X, y, groups=None):
        self.classes_, self.groups_ = np.unique(y), groups
        return self

    def decision_function(self, X):
        return np.asarray(X, dtype=float)[:, 0]


@pytest.mark.parametrize("routing", [False, True])
def test_an_estimator_that_takes_groups_gets_those_of_its_rows(routing):
    scores, y, groups = customers(50, np.random.default_rng(7))
    with sklearn.config_context(enable_metadata_routing=routing):
        inner = NeedsGroups().set_fit_request(groups=True) if routing else NeedsGroups()
        model = FPRThresholdClassifier(inner, 0.3, random_state=0).fit(scores[:, None], y, groups=groups)
    assert model.estimator_.groups_.size < groups.size
    assert set(model.estimator_.groups_) < set(groups)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(name, confidence, bad):
    scores, y, _ = customers(20, np.random.default_rng(8))
    scores[[3, 7]] = bad
    message = rf"decision_function of Given must give finite scores; got 2 NaN or infinite values in 400 rows, .* {bad}"
    with pytest.raises(ValueError, match=message):
        on_scores(name, scores, y, None, confidence=confidence)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_predictions_for_scores_that_are_not_finite_are_refused(name):
    scores, y, _ = customers(20, np.random.default_rng(8))
    model = on_scores(name, scores, y, None)
    for method in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match="must give finite scores; got 1 NaN"):
            method([[0.0], [np.nan]])


def test_reports_displays_and_scorers_refuse_scores_that_are_not_finite():
    scores, y, _ = customers(20, np.random.default_rng(8))
    X = np.where(np.arange(scores.size) == 5, np.nan, scores)[:, None]
    model = Given().fit(X, y)
    calls = (rocmax.report, rocmax.displays.PartialROCDisplay.from_estimator, rocmax.metrics.make_scorer("roc_auc"))
    for call in calls:
        with pytest.raises(ValueError, match="finite"):
            call(model, X, y)


@pytest.mark.parametrize("groups", [[0.0, np.nan], [None, "a"], [[0], [1]]])
def test_groups_must_be_one_value_for_each_row(groups):
    y = [0, 1] * 10
    with pytest.raises(ValueError, match="groups must"):
        FPRThresholdClassifier(LogisticRegression(), 0.3).fit(np.arange(20.0)[:, None], y, groups=groups * 10)
