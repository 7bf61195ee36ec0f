"""The positive class travels with the estimator: renaming the labels changes nothing, and contradictions are errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import rocmax
from helpers.every_estimator import MODELS, STREAMS
from helpers.tables import payments
from rocmax.metrics import make_scorer, partial_auc_score, positive_scores, tpr_at_fpr

MAX_FPR = 0.05
X, Y = make_classification(1200, 6, weights=[0.85], class_sep=0.7, random_state=0)
X_TRAIN, X_TEST, FRAUD = X[:800], X[800:], Y == 1
# The same rows with the positive label as the larger and as the smaller of two labels.
LAST = np.where(FRAUD, "zz-rare", "aa-common")
FIRST = np.where(FRAUD, "aa-rare", "zz-common")
NAMED = np.where(FRAUD, "fraud", "ok")
CLASSIFIERS = {name: model for name, model in MODELS.items() if hasattr(model, "predict")}


def partial_auc(**params):
    return rocmax.PartialAUCClassifier(max_fpr=MAX_FPR, **params)


def of_rows(scores, test=slice(800, None)):
    """The partial AUC of the rare class, computed from a mask."""
    return partial_auc_score(FRAUD[test], scores, max_fpr=MAX_FPR)


# What the entry points say about a model of the label ``rare``: functions of the label and of all labels.


def own_score(rare, y):
    return partial_auc(pos_label=rare).fit(X_TRAIN, y[:800]).score(X_TEST, y[800:])


def scores_for_the_metrics(rare, y):
    return partial_auc(pos_label=rare).fit(X_TRAIN, y[:800]).positive_scores(X_TEST)


def a_scorer(rare, y):
    return SCORER(partial_auc(pos_label=rare).fit(X_TRAIN, y[:800]), X_TEST, y[800:])


def a_scorer_of_predicted_labels(rare, y):
    return make_scorer("f_beta")(partial_auc(pos_label=rare).fit(X_TRAIN, y[:800]), X_TEST, y[800:])


def a_pipeline(rare, y):
    model = make_pipeline(StandardScaler(), partial_auc(pos_label=rare)).fit(X_TRAIN, y[:800])
    assert SCORER(model, X_TEST, y[800:]) == of_rows(positive_scores(model, X_TEST))
    return positive_scores(model, X_TEST)


def a_search(rare, y):
    model = make_pipeline(StandardScaler(), partial_auc(pos_label=rare))
    grid = {"partialaucclassifier__C": [0.1, 1.0]}
    search = GridSearchCV(model, grid, scoring=SCORER, cv=2).fit(X_TRAIN, y[:800])
    assert search.score(X_TEST, y[800:]) == SCORER(search, X_TEST, y[800:])
    return [*search.cv_results_["mean_test_score"], search.score(X_TEST, y[800:])]


def cross_validation(rare, y):
    return cross_val_score(partial_auc(pos_label=rare), X, y, scoring=SCORER, cv=2)


def calibration(rare, y):
    model = CalibratedClassifierCV(partial_auc(pos_label=rare), cv=2).fit(X_TRAIN, y[:800])
    return [SCORER(model, X_TEST, y[800:]), *positive_scores(model, X_TEST)]


def a_fixed_threshold(rare, y):
    model = FixedThresholdClassifier(partial_auc(pos_label=rare), threshold=0.0, pos_label=rare)
    return make_scorer("f_beta")(model.fit(X_TRAIN, y[:800]), X_TEST, y[800:])


def an_fpr_limit(rare, y):
    inner = make_pipeline(StandardScaler(), partial_auc(pos_label=rare))
    # A random split depends on the names of the labels.
    inner.fit(X_TRAIN[:400], y[:400])
    model = rocmax.FPRThresholdClassifier(inner, 0.05, confidence=0.9, cv="prefit").fit(X_TRAIN[400:], y[400:800])
    assert model.positive_class_ == rare
    flagged = model.predict(X_TEST) == rare
    np.testing.assert_array_equal(flagged, model.positive_scores(X_TEST) > 0)
    assert flagged[~FRAUD[800:]].mean() <= 0.05
    return [*model.positive_scores(X_TEST), SCORER(model, X_TEST, y[800:]), *flagged]


def a_tpr_floor(rare, y):
    model = rocmax.TPRThresholdClassifier(partial_auc(pos_label=rare), 0.8, cv=3).fit(X_TRAIN, y[:800])
    flagged = model.predict(X_TEST) == rare
    assert flagged[FRAUD[800:]].mean() > 0.7
    return [*model.positive_scores(X_TEST), *flagged]


def a_comparison(rare, y):
    models = {"ours": partial_auc(pos_label=rare), "logistic": LogisticRegression()}
    grids = {"logistic": {"C": [0.1, 1.0]}}
    # Random splits depend on the names of the labels, unless they are by groups.
    options = {"n_splits": 2, "param_grids": grids, "inner_cv": 2, "groups": np.arange(Y.size)}
    table = rocmax.compare(models, X, y, scoring=SCORER, **options)
    measure = rocmax.measures.PartialAUCMeasure(0.0, MAX_FPR)
    assert table.equals(rocmax.compare(models, X, y, scoring=measure, **options).assign(seconds=table["seconds"]))
    return np.concatenate([table.loc[name, "scores"] for name in models])


def curves(rare, y):
    from matplotlib import pyplot as plt

    models = {"ours": partial_auc(pos_label=rare), "logistic": LogisticRegression()}
    fitted = {name: model.fit(X_TRAIN, y[:800]) for name, model in models.items()}
    display = rocmax.PartialROCDisplay.from_estimator(fitted, X_TEST, y[800:], n_resamples=0)
    assert display.pos_label == rare
    plt.close("all")
    return np.concatenate([curve.tpr for curve in display.curves])


def a_path(rare, y):
    path = rocmax.partial_auc_path(X_TRAIN, y[:800], max_fpr=0.1, radii=[1.0, 0.1], pos_label=rare)
    return path.score(X_TEST, y[800:])


SCORER = make_scorer("partial_auc", max_fpr=MAX_FPR)
ENTRIES = (
    own_score, scores_for_the_metrics, a_scorer, a_scorer_of_predicted_labels, a_pipeline, a_search, cross_validation,
    calibration, a_fixed_threshold, an_fpr_limit, a_tpr_floor, a_comparison, curves, a_path,
)  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
def test_renaming_the_labels_changes_nothing(entry):
    if entry is curves:
        pytest.importorskip("matplotlib")
    first, last = entry("aa-rare", FIRST), entry("zz-rare", LAST)
    np.testing.assert_allclose(first, last, rtol=1e-6, atol=1e-9)
    assert np.ptp(np.append(first, 0.0)) > 0


def test_the_report_is_about_the_positive_class_of_the_model():
    pages = []
    for rare, common, y in (("aa-rare", "zz-common", FIRST), ("zz-rare", "aa-common", LAST)):
        model = make_pipeline(StandardScaler(), partial_auc(pos_label=rare)).fit(X_TRAIN, y[:800])
        tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X_TRAIN, y[:800])
        page = rocmax.report({"ours": model, "tree": tree}, X_TEST, y[800:])
        pages.append(page.replace(rare, "rare").replace(common, "common"))
    assert pages[0] == pages[1]


def test_all_entry_points_agree_on_the_class_to_find():
    model = partial_auc(pos_label="fraud").fit(X_TRAIN, NAMED[:800])
    expected = of_rows(-model.decision_function(X_TEST))
    assert expected > 0.3
    assert model.score(X_TEST, NAMED[800:]) == expected
    assert SCORER(model, X_TEST, NAMED[800:]) == expected
    assert make_scorer("partial_auc", max_fpr=MAX_FPR, pos_label="fraud")(model, X_TEST, NAMED[800:]) == expected
    assert of_rows(model.positive_scores(X_TEST)) == expected
    limited = rocmax.FPRThresholdClassifier(FrozenEstimator(model), 0.05, cv="prefit").fit(X_TEST, NAMED[800:])
    assert np.mean(limited.predict(X_TEST[~FRAUD[800:]]) == "fraud") <= 0.05


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scores_of_every_classifier_are_higher_for_positives(name):
    rare = np.arange(240) % 3 == 0
    rows = np.random.default_rng(0).normal(size=(240, 4)) + 0.8 * rare[:, None]
    found = []
    for label, other in (("zz", "aa"), ("aa", "zz")):
        model = clone(CLASSIFIERS[name]).set_params(pos_label=label)
        if "estimator" in model.get_params() and hasattr(model.estimator, "pos_label"):
            model.set_params(estimator__pos_label=label)
        model.fit(rows, np.where(rare, label, other))
        scores, decision = model.positive_scores(rows), model.decision_function(rows)
        np.testing.assert_array_equal(scores, decision if label == "zz" else -decision)
        np.testing.assert_array_equal(scores > 0, model.predict(rows) == label)
        assert tpr_at_fpr(rare, scores, max_fpr=0.3) > 0.4
        found.append(scores)
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-8)


def test_a_score_at_the_threshold_is_negative_in_both_orders_of_the_labels():
    for label, other in (("zz", "aa"), ("aa", "zz")):
        model = rocmax.AUCClassifier(pos_label=label).fit(X, np.where(FRAUD, label, other))
        model.coef_, model.intercept_ = np.zeros_like(model.coef_), np.zeros(1)
        assert set(model.predict(X)) == {other}


def wrapped():
    """Estimators around one for "fraud", and whether bagging or voting, which fit with codes, are among them."""
    inner = rocmax.AUCClassifier(pos_label="fraud")
    return {
        "pipeline": make_pipeline(StandardScaler(), inner),
        "search": GridSearchCV(inner, {"C": [1.0]}, cv=2),
        "search of a pipeline": GridSearchCV(make_pipeline(StandardScaler(), inner), {}, cv=2),
        "pipeline with a search": make_pipeline(StandardScaler(), GridSearchCV(inner, {}, cv=2)),
        "calibrated": CalibratedClassifierCV(inner, cv=2),
        "threshold of a pipeline": rocmax.FPRThresholdClassifier(make_pipeline(StandardScaler(), inner), 0.1),
        "fixed threshold": FixedThresholdClassifier(inner, pos_label="fraud"),
        "frozen": FrozenEstimator(inner),
        "bagging, with codes of the classes": BaggingClassifier(clone(inner).set_params(pos_label=0), 2),
        "voting, with codes of the classes": VotingClassifier(
            [("calibrated", CalibratedClassifierCV(clone(inner).set_params(pos_label=0), cv=2))], voting="soft"
        ),
    }


def wrapper(name):
    """Return one of these estimators, not fitted except for what is frozen."""
    model = wrapped()[name]
    if name == "frozen":
        model.estimator.fit(X, NAMED)
    return model


@pytest.mark.parametrize("name", wrapped())
def test_the_positive_class_is_found_in_estimators_around_it(name):
    model = wrapper(name).fit(X, NAMED)
    assert partial_auc_score(FRAUD, positive_scores(model, X), max_fpr=MAX_FPR) > 0.2
    assert SCORER(model, X, NAMED) == partial_auc_score(FRAUD, positive_scores(model, X), max_fpr=MAX_FPR)
    with pytest.raises(ValueError, match="pos_label must be the same everywhere; got 'ok' from the scorer and 'fraud'"):
        make_scorer("partial_auc", max_fpr=MAX_FPR, pos_label="ok")(model, X, NAMED)


@pytest.mark.parametrize("name", [name for name in wrapped() if "codes" not in name])
def test_a_threshold_takes_the_positive_class_of_an_estimator_that_is_not_fitted(name):
    model = rocmax.FPRThresholdClassifier(wrapper(name), 0.1, random_state=0)
    assert model.fit(X, NAMED).positive_class_ == "fraud"
    assert np.mean(model.predict(X[~FRAUD]) == "fraud") < 0.15
    # The estimator of the next fit counts, not the one that was fitted.
    assert model.set_params(estimator=LogisticRegression(), pos_label="ok").fit(X, NAMED).positive_class_ == "ok"


OF_OK = {"pos_label": "ok"}
# Functions of a fitted model for "fraud" and one for "ok".
CONTRADICTIONS = {
    "scorer": lambda fraud, _: make_scorer("roc_auc", **OF_OK)(fraud, X, NAMED),
    "scores": lambda fraud, _: positive_scores(fraud, X, **OF_OK),
    "FPR limit": lambda fraud, _: rocmax.FPRThresholdClassifier(fraud, **OF_OK).fit(X, NAMED),
    "TPR floor": lambda fraud, _: rocmax.TPRThresholdClassifier(make_pipeline(fraud), **OF_OK).fit(X, NAMED),
    "fixed threshold": lambda fraud, _: SCORER(FixedThresholdClassifier(fraud, **OF_OK).fit(X, NAMED), X, NAMED),
    "report": lambda fraud, _: rocmax.report(fraud, X, NAMED, **OF_OK),
    "report of two": lambda fraud, ok: rocmax.report({"one": fraud, "two": ok}, X, NAMED),
    "display": lambda fraud, _: rocmax.PartialROCDisplay.from_estimator(fraud, X, NAMED, **OF_OK),
    "display of two": lambda fraud, ok: rocmax.PartialROCDisplay.from_estimator({"one": fraud, "two": ok}, X, NAMED),
    "comparison": lambda fraud, ok: rocmax.compare({"one": fraud, "two": ok}, X, NAMED, scoring="roc_auc"),
    "comparison with a scorer": lambda fraud, _: rocmax.compare(
        {"one": fraud}, X, NAMED, scoring=make_scorer("roc_auc", **OF_OK)
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_two_positive_classes_are_an_error(name):
    models = (make_pipeline(rocmax.AUCClassifier(pos_label=label)).fit(X, NAMED) for label in ("fraud", "ok"))
    with pytest.raises(ValueError, match=r"pos_label must be the same everywhere; got '\w+' from .* and '\w+' from "):
        CONTRADICTIONS[name](*models)


def test_a_label_that_is_no_class_is_an_error():
    model = LogisticRegression().fit(X, NAMED)
    with pytest.raises(ValueError, match=r"pos_label must be one of the classes \['fraud', 'ok'\]; got 'Fraud'"):
        positive_scores(model, X, pos_label="Fraud")
    with pytest.raises(ValueError, match=r"pos_label must be one of the classes \['fraud', 'ok'\]; got 'Fraud'"):
        rocmax.PartialROCDisplay.from_estimator(model, X, NAMED, pos_label="Fraud")


def test_without_a_label_the_larger_one_is_positive():
    model = LogisticRegression().fit(X, Y)
    assert SCORER(model, X, Y) == partial_auc_score(Y, model.decision_function(X), max_fpr=MAX_FPR)
    np.testing.assert_array_equal(positive_scores(model, X), model.decision_function(X))


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
def test_scorers_of_a_dictionary_do_not_share_the_sign_of_the_positive_class(order):
    scorers = {"ours": SCORER, "theirs": "roc_auc"}
    model = rocmax.AUCClassifier(pos_label="fraud")
    found = cross_validate(model, X, NAMED, scoring={name: scorers[name] for name in order}, cv=2)
    alone = {name: cross_val_score(model, X, NAMED, scoring=scorer, cv=2) for name, scorer in scorers.items()}
    for name, values in alone.items():
        np.testing.assert_array_equal(found[f"test_{name}"], values)
    assert (found["test_theirs"] > 0.8).all()
    search = GridSearchCV(model, {"C": [1.0]}, scoring=scorers, refit="ours", cv=2).fit(X, NAMED)
    assert search.score(X, NAMED) == SCORER(search.best_estimator_, X, NAMED)


def test_a_scorer_is_pickled_cloned_and_routed():
    model = rocmax.AUCClassifier(pos_label="fraud").fit(X, NAMED)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, Y.size)
    weighted = SCORER(model, X, NAMED, sample_weight=weight)
    assert weighted == partial_auc_score(FRAUD, model.positive_scores(X), max_fpr=MAX_FPR, sample_weight=weight)
    for again in (pickle.loads(pickle.dumps(SCORER)), clone(SCORER, safe=False)):
        assert again(model, X, NAMED, sample_weight=weight) == weighted
        assert repr(again) == repr(SCORER)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer("partial_auc", max_fpr=MAX_FPR).set_score_request(sample_weight=True)
        routed = rocmax.AUCClassifier(pos_label="fraud").set_fit_request(sample_weight=False)
        found = cross_validate(
            routed, X, NAMED, scoring={"a": scorer, "b": scorer}, cv=2, params={"sample_weight": weight},
            return_estimator=True, return_indices=True,
        )  # fmt: skip
    for i, (fitted, test) in enumerate(zip(found["estimator"], found["indices"]["test"], strict=True)):
        scores = fitted.positive_scores(X[test])
        expected = partial_auc_score(FRAUD[test], scores, max_fpr=MAX_FPR, sample_weight=weight[test])
        assert found["test_a"][i] == found["test_b"][i] == expected


@pytest.mark.parametrize("limit", [{}, {"max_fpr": 0.1}])
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_a_model_of_a_table_knows_its_positive_class(model, limit):
    pytest.importorskip("pandas")
    table = payments(600, 0)
    found = rocmax.tables.fit_table(
        table,
        target="label",
        positive="fraud",
        columns=rocmax.tables.Columns(drop="customer"),
        model=model,
        tune=False,
        **limit,
    )
    assert found.pos_label == found.positive == "fraud"
    positive = (table["label"] == "fraud").to_numpy()
    rows = table[list(found.facts.features)]
    expected = partial_auc_score(positive, rocmax.tables.predict(found, rows)["score"], max_fpr=MAX_FPR)
    # Only the threshold classifier and the linear model name the class; a scorer can name it for the other one.
    named = limit or model == "linear"
    scorer = SCORER if named else make_scorer("partial_auc", max_fpr=MAX_FPR, pos_label="fraud")
    assert scorer(found.model, rows, table["label"]) == pytest.approx(expected)


# One warning if the positive class was not named and has most of the rows.

MESSAGE = "the positive class is 'ok', the larger of the labels, and most rows belong to it. If 'fraud' is .* pos_label"


def warned(call):
    """Return the messages of all warnings about the positive class, also repeated ones."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found if "pos_label" in str(each.message)]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_warns_once_if_the_larger_label_is_the_larger_class(name):
    model, rows, labels = clone(CLASSIFIERS[name]), X[:150], NAMED[:150]
    with pytest.warns(UserWarning, match=MESSAGE):
        model.fit(rows, labels)
    assert len(warned(lambda: model.fit(rows, labels))) == 1
    assert warned(lambda: model.fit(rows, FRAUD[:150])) == []
    if "estimator" in model.get_params() and hasattr(model.estimator, "pos_label"):
        # The inner estimator is trained for the other class, and says so once.
        (message,) = warned(lambda: clone(model).set_params(pos_label="fraud").fit(rows, labels))
        assert message.startswith("AUCClassifier: ")
        model.set_params(estimator__pos_label="fraud")
    assert warned(lambda: clone(model).set_params(pos_label="fraud").fit(rows, labels)) == []


@pytest.mark.parametrize("label", ["fraud", "ok"])
def test_a_label_that_is_named_needs_no_warning(label):
    assert warned(lambda: rocmax.AUCClassifier(pos_label=label).fit(X, NAMED)) == []
    inner = rocmax.AUCClassifier(pos_label=label)
    assert warned(lambda: rocmax.FPRThresholdClassifier(inner, 0.1, cv=2).fit(X, NAMED)) == []


def test_a_threshold_for_the_default_class_of_its_estimator_needs_no_warning():
    assert (
        warned(lambda: rocmax.FPRThresholdClassifier(rocmax.AUCClassifier(), cv=2, pos_label="ok").fit(X, NAMED)) == []
    )


def test_half_of_the_rows_are_no_majority_and_weights_count():
    rows, labels = X[:40], np.repeat(["fraud", "ok"], 20)
    model = rocmax.AUCClassifier()
    assert warned(lambda: model.fit(rows, labels)) == []
    assert len(warned(lambda: model.fit(rows, labels, sample_weight=np.repeat([1.0, 1.1], 20)))) == 1
    assert warned(lambda: model.fit(rows, labels, sample_weight=np.repeat([1.1, 1.0], 20))) == []
    assert (
        warned(lambda: model.fit(rows, labels, sample_weight=np.r_[np.full(20, 0.1), np.full(10, 0.2), np.zeros(10)]))
        == []
    )
    threshold = rocmax.FPRThresholdClassifier(LogisticRegression(), 0.2, cv=2)
    assert len(warned(lambda: threshold.fit(rows, labels, sample_weight=np.repeat([1.0, 1.1], 20)))) == 1


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_warns_in_its_first_call_only(name):
    model = clone(MODELS[name])

    def stream():
        for part in (slice(0, 60), slice(60, 150)):
            model.partial_fit(X[part], NAMED[part], classes=["fraud", "ok"])

    assert len(warned(stream)) == 1


def test_files_and_comparisons_warn_once(tmp_path):
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X).add_prefix("x").assign(label=NAMED).to_csv(tmp_path / "a.csv", index=False)
    files = rocmax.AUCClassifier()
    assert len(warned(lambda: files.fit_files(tmp_path / "a.csv", target="label"))) == 1
    models = {"auc": rocmax.AUCClassifier(), "logistic": LogisticRegression()}
    grids = {"auc": {"C": [0.1, 1.0]}}
    (message,) = warned(
        lambda: rocmax.compare(models, X, NAMED, scoring="roc_auc", n_splits=2, param_grids=grids, inner_cv=2)
    )
    assert message.startswith("compare: ")
    named = make_scorer("roc_auc", pos_label="ok")
    assert warned(lambda: rocmax.compare(models, X, NAMED, scoring=named, n_splits=2)) == []


def test_the_warning_points_to_the_call():
    for model in (rocmax.AUCClassifier(), rocmax.FPRThresholdClassifier(rocmax.AUCClassifier(), cv=2)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model.fit(X, NAMED)
        assert [each.filename for each in found] == [__file__]


def test_python_shows_the_warning_once_in_a_search():
    program = """
import numpy as np
from sklearn.model_selection import GridSearchCV
from rocmax import AUCClassifier, FPRThresholdClassifier
X = np.random.default_rng(0).normal(size=(200, 3))
y = np.where(X[:, 0] > 1, "fraud", "ok")
GridSearchCV(AUCClassifier(), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
GridSearchCV(FPRThresholdClassifier(AUCClassifier(), cv=2), {"max_fpr": [0.1, 0.2]}, cv=3).fit(X, y)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stderr.count("set pos_label='fraud'") == 2
    assert done.stderr.count("AUCClassifier: ") == done.stderr.count("FPRThresholdClassifier: ") == 1
