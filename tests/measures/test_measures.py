"""One registry of measures: the same names, parameters and values everywhere."""

import copy
import inspect
import pickle
import re
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, jaccard_score
from sklearn.model_selection import GridSearchCV

import rocmax
from rocmax import FollowTheLeaderClassifier, MiniBatchClassifier, measures, metrics
from rocmax.losses import Contingency, FreeShift, SoftMeasure
from rocmax.measures import Measure, PartialAUCMeasure, best_measure, find_measure, measure_names, pick_measure
from rocmax.metrics.curve import rank_labels
from rocmax.metrics.scores import METRICS, Metric
from rocmax.tables.options import MEASURES

PARAMS = {
    "partial_auc": {"min_fpr": 0.1, "max_fpr": 0.6},
    "tpr_at_fpr": {"max_fpr": 0.3},
    "fpr_at_tpr": {"min_tpr": 0.5},
    "precision_at_k": {"k": 3},
    "f_beta": {"beta": 2.0},
}
ALL = {name: find_measure(name, **PARAMS.get(name, {})) for name in measure_names()}
TRAINED = {name: measure for name, measure in ALL.items() if measure.trainable}
# Measures that are trained for by the loss of another one: the area below a limit, the break-even point.
RELATIVES = {"tpr_at_fpr": "partial_auc", "average_precision": "break_even_point"}
NOT_TRAINED = ["fpr_at_tpr", "weighted_relative_accuracy"]
every = pytest.mark.parametrize("measure", ALL.values(), ids=ALL)
trained = pytest.mark.parametrize("measure", TRAINED.values(), ids=TRAINED)
SHORT = {
    MiniBatchClassifier: {"batch_size": 60, "max_iter": 5, "random_state": 0},
    FollowTheLeaderClassifier: {"n_batches": 2, "tol": 0.01, "random_state": 0},
}
few = settings(max_examples=25)  # for each of the measures
online = pytest.mark.parametrize("kind", [MiniBatchClassifier, FollowTheLeaderClassifier])


@st.composite
def samples(draw, low=2):
    """Labels of both classes, and small whole scores, so that some tie."""
    y = np.repeat([True, False], [draw(st.integers(low, 6)), draw(st.integers(low, 6))])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.permutation(y), rng.integers(-2, 3, y.size).astype(float)


# Names and parameters


def test_names_are_those_of_the_functions():
    assert measure_names() == list(METRICS)
    assert sorted(set(measure_names()) - set(measure_names(trainable=True))) == sorted(NOT_TRAINED)
    functions = {name.removesuffix("_score") for name in metrics.__all__ if not inspect.isclass(getattr(metrics, name))}
    tools = {"bootstrap_interval", "bootstrap_test", "delong_interval", "delong_test", "exchangeability_test"}
    tools |= {"make_scorer", "positive_scores"}
    assert set(measure_names()) == functions - tools


@every
def test_parameters_are_those_of_the_function(measure):
    known = measure.metric.parameters
    assert list(measure.params) == list(known)
    for field in fields(measure):
        required = known[field.name] is inspect.Parameter.empty
        assert (field.default is not known[field.name]) if required else field.default == known[field.name]


@every
def test_every_measure_is_found_by_all_its_names(measure):
    for name in (measure.name, f"{measure.name}_score", measure.metric.function):
        assert find_measure(name, **measure.params) == measure
    assert find_measure(measure) is measure
    assert type(measure).__name__ in measures.__all__
    assert repr(metrics.make_scorer(measure)) == repr(metrics.make_scorer(measure.name, **measure.params))


def test_names_in_the_docstring_of_an_estimator():
    doc = inspect.cleandoc(MiniBatchClassifier.__doc__)
    text = re.search(r"measure : str or Measure.*?(?=\n\w)", doc, re.DOTALL).group()
    assert re.findall(r'"(\w+)"', text) == ["partial_auc", *measure_names(trainable=True)]


def test_names_in_the_help_of_the_command_line():
    from rocmax.cli import app as _app

    help_text = _app.LIMITS["measure"][0].__metadata__[0].help
    assert sorted(re.findall(r"[a-z]+(?:_[a-z]+)+", help_text)) == sorted(MEASURES)


@pytest.mark.parametrize("name", ["auc", "break_even", "accuracy", "f1", None, 3])
def test_an_unknown_name_lists_all(name):
    for call in (find_measure, metrics.make_scorer, lambda name: pick_measure(name, {})):
        with pytest.raises(ValueError, match=r"measure must be one of roc_auc, .*break_even_point, .*got") as error:
            call(name)
        assert all(known in str(error.value) for known in measure_names())


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("partial_auc", {"k": 3}, "partial_auc accepts min_fpr, .*, definition; got k"),
        ("tpr_at_fpr", {}, "tpr_at_fpr requires a value for max_fpr; got no parameters"),
        ("partial_auc", {"max_fpr": 0.0}, "0 <= min_fpr < max_fpr <= 1"),
        ("tpr_at_fpr", {"max_fpr": 1.5}, "max_fpr must be between 0 and 1; got 1.5"),
        ("precision_at_k", {"k": 0}, "at least 1; got 0"),
        ("f_beta", {"beta": -1.0}, "beta must be a finite number > 0; got -1.0"),
        (ALL["roc_auc"], {"max_fpr": 0.1}, "must not be passed with a Measure, .*; got max_fpr"),
    ],
)
def test_bad_parameters(name, params, message):
    with pytest.raises(ValueError, match=message):
        find_measure(name, **params)


# Values


@every
@few
@given(samples(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_the_score_is_that_of_the_function(measure, sample, weights):
    y, s = sample
    weight = np.maximum(weights[: y.size], np.arange(y.size) < 0)
    weight[[np.flatnonzero(y)[0], np.flatnonzero(~y)[0]]] = 2
    named = np.where(y, "fraud", "ok")
    values = np.where(s > 0, "fraud", "ok") if measure.metric.takes_labels else s
    for options in ({}, {"sample_weight": weight}):
        expected = measure.metric.function(named, values, pos_label="fraud", **measure.params, **options)
        assert measure.score(named, s, pos_label="fraud", **options) == pytest.approx(expected, abs=1e-12)
        assert measure.score(y, s, **options) == pytest.approx(expected, abs=1e-12)


@every
def test_the_class_ratio_matters_where_it_is_said_to(measure):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3 == 0
    s = rng.normal(size=60) + y
    copies = np.where(y, 5, 1)
    params = {"k": 0.2} if measure.name == "precision_at_k" else measure.params
    measure = find_measure(measure.name, **params)
    same = measure.score(y, s, sample_weight=copies) == pytest.approx(measure.score(y, s), rel=1e-9)
    # The G-mean is a function of the two rates, but its loss weighs positives against negatives.
    assert same != (measure.depends_on_class_ratio and measure.name != "g_mean")


@trained
@few
@given(samples())
def test_the_convex_loss_bounds_the_error_and_has_no_use_for_a_shift(measure, sample):
    y, s = sample
    loss = measure.convex_loss()
    assert loss.bind(y).convex
    assert loss.shift_invariant
    value = loss.bind(y).value_and_gradient(s)[0]
    assert loss.bind(y).value_and_gradient(s + 3.0)[0] == pytest.approx(value, abs=1e-9)
    if measure.name not in RELATIVES:
        decision = s - measure.threshold(s, y)
        assert value >= 1.0 - measure.score(y, decision) - 1e-9


@trained
@few
@given(samples())
def test_the_threshold_suits_the_measure(measure, sample):
    y, s = sample
    threshold = measure.threshold(s, y)
    tried = [np.inf, *np.unique(s) - 0.25]
    if measure.metric.takes_labels:
        best = max(measure.score(y, np.where(s > t, 1.0, -1.0)) for t in tried)
        assert measure.score(y, s - threshold) == pytest.approx(best)
    elif measure.params.get("min_tpr", 0.0) > 0:
        assert np.mean(s[y] > threshold) >= measure.min_tpr - 1e-9
        higher = [t for t in tried if (s > t).sum() < (s > threshold).sum()]
        assert all(np.mean(s[y] > t) < measure.min_tpr for t in higher)
    elif "max_fpr" in measure.params:
        assert np.mean(s[~y] > threshold) <= measure.max_fpr + 1e-9
        lower = [t for t in tried if t < threshold and (s > t).sum() > (s > threshold).sum()]
        assert all(np.mean(s[~y] > t) > measure.max_fpr for t in lower)


@trained
def test_a_narrow_soft_loss_is_the_error(measure):
    rng = np.random.default_rng(1)
    y = np.arange(40) % 3 == 0
    s = rng.normal(size=40) + y
    measure = ALL[RELATIVES.get(measure.name, measure.name)]
    value = measure.soft_loss(1e-7).bind(y).value_and_gradient(s)[0]
    assert value == pytest.approx(1.0 - measure.score(y, s - measure.threshold(s, y)), abs=1e-4)


@few
@given(samples(low=1), samples(low=1), st.sampled_from([0.5, 1.0, 3.0]))
def test_f_beta_is_that_of_scikit_learn(sample, other, beta):
    y, predicted = sample[0].astype(int), (sample[1] > 0).astype(int)
    weight = np.resize(other[1], y.size) + 2
    if np.unique(y[weight > 0]).size < 2:
        weight[:] = 1
    for options in ({}, {"sample_weight": weight}):
        expected = fbeta_score(y, predicted, beta=beta, zero_division=0.0, **options)
        assert metrics.f_beta_score(y, predicted, beta=beta, **options) == pytest.approx(expected, abs=1e-12)
    repeated = np.repeat(np.arange(y.size), weight.astype(int))
    assert metrics.f_beta_score(y[repeated], predicted[repeated], beta=beta) == pytest.approx(expected, abs=1e-12)
    flipped = fbeta_score(y, predicted, beta=beta, pos_label=0, zero_division=0.0)
    assert metrics.f_beta_score(y, predicted, beta=beta, pos_label=0) == pytest.approx(flipped, abs=1e-12)


def test_f_beta_with_one_class():
    assert metrics.f_beta_score([0, 0, 0], [0, 0, 0], pos_label=1) == 0.0  # undefined
    assert metrics.f_beta_score([0, 0, 0], [0, 1, 0]) == 0.0
    assert metrics.f_beta_score([1, 1, 1], [0, 1, 1]) == pytest.approx(0.8)
    assert metrics.f_beta_score(["a", "a"], ["a", "a"], pos_label="a") == 1.0
    assert find_measure("f_beta").score([1, 1], [0.5, -0.5], pos_label=1) == pytest.approx(2 / 3)
    assert find_measure("f_beta").score([0, 0], [-1.0, -0.5], pos_label=1) == 0.0
    with pytest.raises(ValueError, match=r"pos_label must be given if all labels.*got 0 only"):
        metrics.f_beta_score([0, 0], [0, 0])
    with pytest.raises(ValueError, match="each one of"):
        metrics.f_beta_score([0, 0], [0, 1], pos_label=7)
    with pytest.raises(ValueError, match="exactly two classes"):
        find_measure("f_beta").score([0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="decision must be finite"):
        find_measure("f_beta").score([0, 1], [0.1, np.nan])


# Measures in estimators, scorers and comparisons


@pytest.fixture(scope="module")
def payments():
    return make_classification(240, 3, n_informative=3, n_redundant=0, weights=[0.8], class_sep=1.2, random_state=1)


@online
@pytest.mark.parametrize("name", NOT_TRAINED)
def test_measures_without_a_loss_cannot_be_trained_for(kind, name, payments):
    for measure in (name, ALL[name]):
        for call in ("fit", "partial_fit"):
            with pytest.raises(
                ValueError, match=f"must be one of roc_auc, .*g_mean; got '{name}', which has no training loss"
            ):
                getattr(kind(measure), call)(*payments)
    for method in (ALL[name].convex_loss, lambda: ALL[name].soft_loss(1.0), lambda: ALL[name].threshold(None, None)):
        with pytest.raises(ValueError, match="has no training loss"):
            method()


@pytest.mark.filterwarnings("ignore:the interval of")
@every
def test_every_measure_serves_scorers_intervals_and_comparisons(measure, payments):
    X, y = payments
    model = LogisticRegression().fit(X, y)
    values = model.predict(X) if measure.metric.takes_labels else model.decision_function(X)
    value = measure.score(y, model.decision_function(X))
    sign = 1 if measure.metric.greater_is_better else -1
    assert metrics.make_scorer(measure)(model, X, y) == pytest.approx(sign * value)
    options = {"n_resamples": 20, "random_state": 0}
    low, high = metrics.bootstrap_interval(measure, y, values, **options)
    assert low <= value + 0.1
    assert value - 0.1 <= high
    assert (low, high) == metrics.bootstrap_interval(measure.name, y, values, **options, **measure.params)
    assert metrics.bootstrap_test(measure, y, values, values, **options).difference == 0.0
    table = rocmax.compare({"logistic": model}, X, y, scoring=measure, n_splits=2)
    scored = rocmax.compare({"logistic": model}, X, y, scoring=metrics.make_scorer(measure), n_splits=2)
    assert table["scores"].tolist() == scored["scores"].tolist()
    assert measure.title


@pytest.mark.parametrize(
    ("limits", "title"),
    [
        ({}, "partial AUC, FPR 0 to 1"),
        ({"max_fpr": 0.1}, "partial AUC, FPR 0 to 0.1"),
        ({"min_tpr": 0.8}, "partial AUC, TPR >= 0.8"),
        ({"min_fpr": 0.2, "min_tpr": 0.8}, "partial AUC, TPR >= 0.8, FPR 0.2 to 1"),
        ({"definition": "count", "normalize": False}, "partial AUC, FPR 0 to 1, count of pairs, not normalized"),
        ({"max_fpr": 0.1, "standardize": True}, "standardized partial AUC, FPR 0 to 0.1"),
    ],
)
def test_the_title_names_the_limits(limits, title):
    assert PartialAUCMeasure(**limits).title == title


def test_a_comparison_takes_a_name(payments):
    models = {"logistic": LogisticRegression()}
    one, two = (
        rocmax.compare(models, *payments, scoring=scoring, n_splits=2)
        for scoring in ("roc_auc", metrics.make_scorer("roc_auc"))
    )
    assert one["scores"].tolist() == two["scores"].tolist()
    with pytest.raises(ValueError, match="measure must be one of"):
        rocmax.compare(models, *payments, scoring="auc", n_splits=2)


@online
@trained
def test_a_measure_by_name_or_as_an_object(kind, measure, payments):
    offered = {
        key: value for key, value in measure.params.items() if key in ("min_fpr", "max_fpr", "min_tpr", "k", "beta")
    }
    named = kind(measure.name, **SHORT[kind], **offered).fit(*payments)
    model = clone(kind(measure, **SHORT[kind])).fit(*payments)
    np.testing.assert_array_equal(model.coef_, named.coef_)
    np.testing.assert_array_equal(model.intercept_, named.intercept_)
    assert model.score(*payments) == named.score(*payments)


def test_models_with_a_measure_are_copied_saved_and_searched(payments, tmp_path):
    model = FollowTheLeaderClassifier(find_measure("f_beta", beta=2.0), n_batches=2, tol=0.01).fit(*payments)
    rocmax.save(model, tmp_path / "model.rocmax")
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), rocmax.load(tmp_path / "model.rocmax")):
        assert other.measure == model.measure
        assert other.score(*payments) == model.score(*payments)
    assert other.partial_fit(*payments).regret_.size == 3
    stream = MiniBatchClassifier("g_mean", batch_size=60).partial_fit(*payments, classes=[0, 1])
    rocmax.save(stream, tmp_path / "stream.rocmax")
    again = rocmax.load(tmp_path / "stream.rocmax").partial_fit(*payments)
    np.testing.assert_array_equal(again.coef_, stream.partial_fit(*payments).coef_)
    grid = {"measure": [find_measure("roc_auc"), "g_mean"]}
    search = GridSearchCV(MiniBatchClassifier(max_iter=1, random_state=0), grid, scoring=metrics.make_scorer("roc_auc"))
    assert search.fit(*payments).best_score_ > 0.7


# Numbers of rows and fractions


@online
@pytest.mark.parametrize("k", [27, 60])
def test_a_number_of_rows_is_a_fraction_of_the_rows(kind, k, payments):
    X, y = payments
    options = SHORT[kind]
    counted = kind("precision_at_k", k=k, **options).fit(X, y)
    share = kind("precision_at_k", k=k / y.size, **options).fit(X, y)
    np.testing.assert_array_equal(counted.coef_, share.coef_)
    np.testing.assert_array_equal(counted.intercept_, share.intercept_)
    assert counted.objective_ == share.objective_
    assert counted.score(X, y) == pytest.approx(share.score(X, y))
    assert counted.predict(X).sum() == pytest.approx(k, abs=1)


@few
@given(samples(), st.integers(1, 4))
def test_the_law_of_numbers_and_fractions(sample, k):
    y, s = sample
    count = find_measure("precision_at_k", k=k)
    share = count.as_fraction(y.size)
    assert share.k == k / y.size
    assert (count.counts_rows, share.counts_rows) == (True, False)
    assert share.as_fraction(1000) is share
    assert share.score(y, s) == pytest.approx(count.score(y, s))
    assert share.threshold(s, y) == count.threshold(s, y)
    for make in (lambda measure: measure.convex_loss(), lambda measure: measure.soft_loss(0.5)):
        one, two = (make(measure).bind(y).value_and_gradient(s) for measure in (count, share))
        assert one[0] == pytest.approx(two[0], abs=1e-12)
        np.testing.assert_allclose(one[1], two[1], atol=1e-12)


@online
def test_a_number_of_rows_has_no_meaning_in_a_stream(kind, payments):
    X, y = payments
    for model in (kind("precision_at_k", k=20), kind(find_measure("precision_at_k", k=20))):
        with pytest.raises(ValueError, match=r"in partial_fit, k must be a fraction of the rows.*k=20"):
            model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="k as a count must be from 1 to the total weight, 240; got 241"):
        kind("precision_at_k", k=241).fit(X, y)
    kind("roc_auc", k=20).partial_fit(X, y, classes=[0, 1])  # where k is not used


# A measure of one's own


@dataclass(frozen=True)
class Jaccard(Measure):
    """The Jaccard index of the decisions."""

    name: ClassVar[str] = "jaccard"
    title = "Jaccard index"

    @property
    def metric(self):
        return Metric("jaccard", jaccard_score, jaccard_from_curve, rank_labels)

    def convex_loss(self):
        return FreeShift(Contingency(jaccard))

    def soft_loss(self, width):
        return SoftMeasure(Contingency(jaccard), width)

    def threshold(self, scores, positive, weight=None):
        return best_measure(scores, positive, weight, jaccard)


def jaccard(tp, fp, m, n):
    return tp / (m + fp)


def jaccard_from_curve(curve):
    return float(jaccard(curve.tp[1], curve.fp[1], curve.m, curve.n))


@online
def test_a_measure_of_ones_own(kind, payments):
    X, y = payments
    model = kind(Jaccard(), **SHORT[kind]).fit(X, y)
    assert model.score(X, y) == pytest.approx(jaccard_score(y, model.predict(X)))
    assert model.score(X, y) > 0.3
    low, high = metrics.bootstrap_interval(Jaccard(), y, model.predict(X), n_resamples=50, random_state=0)
    assert low <= model.score(X, y) <= high
    assert metrics.make_scorer(Jaccard(), pos_label=1)(model, X, y) == pytest.approx(model.score(X, y))
