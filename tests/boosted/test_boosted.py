"""Boosted trees: choice of the model, engines, categories, missing values, weights and explanations."""

import pickle
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.utils.estimator_checks import estimator_checks_generator
from xgboost import DMatrix, XGBClassifier

from rocmax import BoostedClassifier, FPRThresholdClassifier, load, save
from rocmax.measures import measure_names
from rocmax.metrics import make_scorer, partial_auc_score, roc_auc_score

ENGINES = ("lightgbm", "xgboost")
UNTUNED = {"objective": "binary", "max_leaf_nodes": 8, "n_estimators": 30, "n_models": 1, "n_jobs": 1}
# A search that takes well below a second.
QUICK = {"max_leaf_nodes": 6, "cv": 2, "n_models": 2, "n_jobs": 1, "random_state": 0}


def rings(n=600, seed=0):
    """Rows whose positives, one in six, lie in a ring: no linear score ranks them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    radius = np.hypot(X[:, 0], X[:, 1])
    y = (np.abs(radius - 1.0) < 0.15).astype(int)
    return X, y


def mixed(n=500, seed=0):
    """A data frame with a categorical column, missing values and labels that depend on both."""
    rng = np.random.default_rng(seed)
    color = rng.choice(["red", "green", "blue", "grey"], n)
    size = rng.normal(size=n)
    y = ((color == "green") & (size > 0)) | (rng.random(n) < 0.03)
    size[rng.random(n) < 0.1] = np.nan
    frame = pd.DataFrame({"color": pd.Categorical(color), "size": size, "noise": rng.normal(size=n)})
    return frame, np.where(y, "yes", "no")


def test_one_untuned_model_is_the_default_classifier_of_lightgbm():
    X, y = rings()
    X[::9, 2] = np.nan
    ours = BoostedClassifier(objective="binary", max_leaf_nodes=31, learning_rate=0.1, n_estimators=100, n_models=1)
    theirs = LGBMClassifier(verbose=-1, deterministic=True, force_row_wise=True).fit(X, y)
    score = ours.fit(X, y).decision_function(X) + ours.threshold_
    np.testing.assert_allclose(score, theirs.booster_.predict(X, raw_score=True), rtol=0, atol=1e-12)


def test_one_untuned_model_is_a_classifier_of_xgboost():
    X, y = rings()
    theirs = XGBClassifier(
        n_estimators=30, learning_rate=0.1, max_leaves=8, max_depth=0, grow_policy="lossguide", random_state=0
    ).fit(X, y)
    ours = BoostedClassifier(engine="xgboost", learning_rate=0.1, **UNTUNED).fit(X, y)
    score = ours.decision_function(X) + ours.threshold_
    np.testing.assert_allclose(score, theirs.predict(X, output_margin=True), rtol=0, atol=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_tuned_trees_rank_what_a_linear_score_cannot(engine):
    X, y = rings()
    test, labels = rings(seed=1)
    model = BoostedClassifier(max_fpr=0.2, engine=engine, **QUICK).fit(X, y)
    assert partial_auc_score(labels, model.decision_function(test), max_fpr=0.2) > 0.5
    assert model.score(test, labels) == partial_auc_score(labels, model.decision_function(test), max_fpr=0.2)


@pytest.mark.parametrize("measure", measure_names(trainable=True))
def test_every_measure_is_trained_for_and_scored_by(measure):
    X, y = rings(300)
    model = BoostedClassifier(measure, max_fpr=0.3, **QUICK).fit(X, y)
    assert 0.0 <= model.score(X, y) <= 1.0
    assert set(model.predict(X)) == {0, 1}


def test_the_candidate_with_the_best_held_out_score_is_used():
    X, y = rings(1400)
    model = BoostedClassifier(max_fpr=0.1, cv=2, n_models=1, n_jobs=1, random_state=0).fit(X, y)
    found = model.cv_results_
    assert found["max_leaf_nodes"][:2] == [6, 31]
    best = int(np.argmax(found["mean_score"]))
    assert model.max_leaf_nodes_ == found["max_leaf_nodes"][best]
    assert model.used_objective_ == found["objective"][best]
    assert model.n_estimators_ == round(1.6 * found["n_estimators"][best])


def test_a_window_objective_that_falls_behind_on_the_first_folds_is_not_tried_on_the_others():
    X, y = rings(400)
    results = [
        BoostedClassifier(max_fpr=0.1, max_leaf_nodes=6, n_models=1, n_jobs=1, random_state=seed).fit(X, y).cv_results_
        for seed in range(4)
    ]
    tried = [found["n_folds"][1] for found in results]
    assert min(tried) < 5 == max(tried)
    for found in results:
        assert found["n_folds"][0] == 5
        assert found["n_folds"][1] == 5 or found["mean_score"][1] <= found["mean_score"][0]


def test_the_window_objective_is_tried_for_low_false_positive_rates_only():
    X, y = rings(300)
    assert "window" in BoostedClassifier(max_fpr=0.1, **QUICK).fit(X, y).cv_results_["objective"]
    assert "window" not in BoostedClassifier(max_fpr=0.5, **QUICK).fit(X, y).cv_results_["objective"]
    assert "window" not in BoostedClassifier("f_beta", **QUICK).fit(X, y).cv_results_["objective"]
    assert BoostedClassifier("f_beta", objective="window", **QUICK).fit(X, y).used_objective_ == "window"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("max_fpr", [0.1, 1.0])
def test_above_a_true_positive_rate(engine, max_fpr):
    X, y = rings()
    corner = {"min_tpr": 0.6, "max_fpr": max_fpr}
    model = BoostedClassifier(engine=engine, **corner, **QUICK).fit(X, y)
    assert "window" in model.cv_results_["objective"]
    assert model.score(X, y) == partial_auc_score(y, model.decision_function(X), **corner)
    # The threshold reaches the rate on held-out scores, so that new positives are found about as often.
    test, labels = rings(seed=1)
    assert (model.predict(test[labels == 1]) == 1).mean() > 0.45
    forced = BoostedClassifier(engine=engine, objective="window", **corner, **QUICK).fit(X, y)
    assert forced.used_objective_ == "window"
    assert forced.score(X, y) > 0.5 * max_fpr


def test_half_the_learning_rate_and_more_rounds_after_the_search():
    X, y = rings(300)
    model = BoostedClassifier(objective="binary", **QUICK).fit(X, y)
    assert model.learning_rate_ == 0.05
    assert model.n_estimators_ == round(1.6 * model.cv_results_["n_estimators"][0])
    assert BoostedClassifier(learning_rate=0.2, **QUICK).fit(X, y).learning_rate_ == 0.2
    given_rounds = BoostedClassifier(n_estimators=20, **QUICK).fit(X, y)
    assert (given_rounds.n_estimators_, given_rounds.learning_rate_) == (20, 0.1)


def test_the_threshold_is_chosen_on_held_out_scores():
    # Labels without any relation to the rows: training scores separate them, held-out scores do not.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), (rng.random(2000) < 0.3).astype(int)
    test = rng.normal(size=(4000, 5))
    settings_ = {"max_leaf_nodes": 31, "n_estimators": 100, "n_models": 2, "n_jobs": 1, "random_state": 0}
    model = BoostedClassifier(max_fpr=0.1, **settings_).fit(X, y)
    assert (model.decision_function(test) > 0).mean() < 0.15
    on_training_rows = BoostedClassifier(max_fpr=0.1, objective="binary", **settings_).fit(X, y)
    assert (on_training_rows.decision_function(test) > 0).mean() > 0.25


@pytest.mark.parametrize("engine", ENGINES)
def test_categories_and_missing_values(engine):
    frame, y = mixed()
    model = BoostedClassifier(max_fpr=0.3, engine=engine, **QUICK).fit(frame, y)
    assert model.categories_[0].tolist() == ["blue", "green", "grey", "red"]
    assert model.score(frame, y) > 0.6
    order = ["red", "grey", "green", "blue"]
    renamed = frame.assign(color=pd.Categorical(frame["color"].astype(str), categories=order))
    assert np.array_equal(model.decision_function(renamed), model.decision_function(frame))
    unknown = frame.assign(color=pd.Categorical(["violet"] * len(frame)))
    missing = frame.assign(color=pd.Categorical([None] * len(frame), categories=["red"]))
    assert np.array_equal(model.decision_function(unknown), model.decision_function(missing))


def test_categories_by_name_position_and_mask_and_from_polars():
    frame, y = mixed(300)
    fits = [BoostedClassifier(**UNTUNED).fit(frame, y).decision_function(frame)]
    text = frame.assign(color=frame["color"].astype(str))
    for columns in (["color"], [0], [True, False, False]):
        model = BoostedClassifier(categorical_features=columns, **UNTUNED).fit(text, y)
        fits.append(model.decision_function(text))
    numbers = frame.assign(color=frame["color"].cat.codes * 10.0).to_numpy()
    model = BoostedClassifier(categorical_features=[0], **UNTUNED).fit(numbers, y)
    fits.append(model.decision_function(numbers))
    color = pl.Series(text["color"].to_numpy(), dtype=pl.Categorical)
    polars = pl.DataFrame({"color": color, "size": frame["size"].to_numpy(), "noise": frame["noise"].to_numpy()})
    fits.append(BoostedClassifier(**UNTUNED).fit(polars, y).decision_function(polars))
    for other in fits[1:]:
        assert np.array_equal(fits[0], other)


def test_no_categories():
    X, y = rings(200)
    fits = [BoostedClassifier(categorical_features=none, **UNTUNED).fit(X, y) for none in ("from_dtype", None, [])]
    assert [model.categories_ for model in fits] == [{}, {}, {}]
    assert np.array_equal(fits[0].decision_function(X), fits[2].decision_function(X))


@pytest.mark.parametrize("engine", ENGINES)
def test_contributions_sum_to_the_decision_values(engine):
    frame, y = mixed()
    model = BoostedClassifier(engine=engine, pos_label="no", **QUICK).fit(frame, y)
    parts = model.contributions(frame)
    assert parts.values.shape == (len(frame), 3)
    assert parts.columns == list(frame)
    assert np.ptp(parts.reference) == 0
    np.testing.assert_allclose(parts.values.sum(axis=1) + parts.reference, model.decision_function(frame), atol=1e-9)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmin() == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_monotonic_constraints_hold_for_the_positive_class(engine):
    X, y = make_classification(600, 4, n_informative=3, n_redundant=0, weights=[0.8], random_state=0)
    grid = np.repeat(X[:20], 30, axis=0)
    grid[:, 1] = np.tile(np.linspace(-3, 3, 30), 20)
    for pos_label, sign in ((1, 1), (0, -1)):
        model = BoostedClassifier(engine=engine, monotonic_cst=[0, 1, 0, 0], pos_label=pos_label, **QUICK).fit(X, y)
        steps = sign * np.diff(model.decision_function(grid).reshape(20, 30), axis=1)
        assert steps.min() >= -1e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_trees_for_a_seed_whatever_the_threads(engine):
    X, y = rings(300)
    one = BoostedClassifier(engine=engine, **QUICK).fit(X, y).decision_function(X)
    assert np.array_equal(one, BoostedClassifier(engine=engine, **QUICK).fit(X, y).decision_function(X))
    short = {"objective": "binary", "max_leaf_nodes": 6, "n_estimators": 10, "n_models": 2, "random_state": 0}
    fits = [BoostedClassifier(engine=engine, n_jobs=n, **short).fit(X, y).decision_function(X) for n in (1, 2)]
    np.testing.assert_allclose(*fits, atol=1e-12 if engine == "lightgbm" else 1e-5)
    other = BoostedClassifier(engine=engine, **(QUICK | {"random_state": 1})).fit(X, y).decision_function(X)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_of_a_fitted_model_score_alike(engine):
    X, y = rings(300)
    model = BoostedClassifier(engine=engine, **UNTUNED).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("engine", ENGINES)
def test_sparse_rows_are_scored_as_dense_rows(engine):
    X, y = rings(400)
    X[np.abs(X) < 0.4] = 0.0
    dense = BoostedClassifier(engine=engine, **UNTUNED).fit(X, y)
    thin = BoostedClassifier(engine=engine, **UNTUNED).fit(sparse.csr_array(X), y)
    for model in (dense, thin):
        for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
            np.testing.assert_allclose(model.decision_function(rows), dense.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("objective", ["binary", "window"])
def test_the_scale_of_the_weights_has_no_effect(engine, objective):
    X, y = rings(400)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 400)
    model = BoostedClassifier(engine=engine, **(QUICK | {"objective": objective}))
    expected = clone(model).fit(X, y, sample_weight=weight).decision_function(X)
    # With powers of two, there is no rounding.
    for scale in (2.0**-40, 2.0**30):
        assert np.array_equal(clone(model).fit(X, y, sample_weight=scale * weight).decision_function(X), expected)
    shares = clone(model).fit(X, y, sample_weight=weight / weight.sum()).decision_function(X)
    np.testing.assert_allclose(shares, expected, atol=1e-3)
    assert np.unique(shares).size > 50


def test_a_number_of_rows_is_a_share_of_the_training_rows_for_weights_of_any_scale():
    X, y = rings(400)
    for weight in (np.ones(400), np.full(400, 2.0**-20)):
        model = BoostedClassifier("precision_at_k", k=40, **QUICK).fit(X, y, sample_weight=weight)
        assert 20 < np.count_nonzero(model.predict(X)) < 80


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_change_the_trees_as_in_the_engine(engine):
    X, y = rings(300)
    weight = np.where(X[:, 0] > 0, 4.0, 1.0)
    ours = BoostedClassifier(engine=engine, **UNTUNED, learning_rate=0.1).fit(X, y, sample_weight=3 * weight)
    relative = weight / weight.mean()
    if engine == "lightgbm":
        theirs = LGBMClassifier(
            n_estimators=30, num_leaves=8, n_jobs=1, verbose=-1, deterministic=True, force_row_wise=True
        ).fit(X, y, sample_weight=relative)
        expected = theirs.booster_.predict(X, raw_score=True)
    else:
        theirs = XGBClassifier(
            n_estimators=30, max_leaves=8, max_depth=0, grow_policy="lossguide", learning_rate=0.1, n_jobs=1
        ).fit(X, y, sample_weight=relative)
        expected = theirs.predict(X, output_margin=True)
    np.testing.assert_allclose(ours.decision_function(X) + ours.threshold_, expected, atol=1e-5)


def test_given_folds_are_used_and_rows_of_weight_zero_left_out():
    X, y = rings(400)
    groups = np.arange(400) // 4
    splits = list(GroupKFold(3).split(X, y, groups))
    options = QUICK | {"cv": splits, "objective": "binary"}
    weight = np.where(np.arange(400) < 40, 0.0, 1.0)
    weighted = BoostedClassifier(**options).fit(X, y, sample_weight=weight)
    kept = [(train[train >= 40] - 40, test[test >= 40] - 40) for train, test in splits]
    removed = BoostedClassifier(**(options | {"cv": kept})).fit(X[40:], y[40:], sample_weight=np.ones(360))
    assert np.array_equal(weighted.decision_function(X), removed.decision_function(X))
    by_splitter = BoostedClassifier(**(options | {"cv": StratifiedKFold(3)})).fit(X, y)
    assert len(by_splitter.cv_results_["mean_score"]) == 1


def test_folds_without_a_class():
    X, y = rings(60)
    splits = [(np.flatnonzero(y == 0), np.arange(60))]
    with pytest.raises(ValueError, match=r"each split; got 0 positives among \d+ training rows of split 0"):
        BoostedClassifier(cv=splits, n_jobs=1).fit(X, y)


def test_the_order_of_the_classes_only_turns_the_sign():
    X, y = rings(300)
    one = BoostedClassifier(**QUICK).fit(X, y).decision_function(X)
    other = BoostedClassifier(pos_label=0, **QUICK).fit(X, 1 - y).decision_function(X)
    assert np.array_equal(one, -other)


def test_large_numbers_of_rows_have_one_held_out_part():
    X, y = rings(31_000)
    model = BoostedClassifier(max_leaf_nodes=4, n_estimators=10, n_models=1, random_state=0).fit(X, y)
    assert model.cv_results_["std_score"] == [0.0, 0.0]
    assert roc_auc_score(y, model.decision_function(X)) > 0.5


def test_progress_goes_to_standard_error(capsys):
    X, y = rings(200)
    BoostedClassifier(verbose=True, **QUICK).fit(X, y)
    said = capsys.readouterr()
    assert said.out == ""
    assert "6 leaves, binary objective: held-out score" in said.err
    assert "fitted model 2 of 2" in said.err


@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_engine_is_named_with_its_extra(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, engine, None)
    X, y = rings(60)
    with pytest.raises(ImportError, match=r"pip install 'rocmax\[(boost|xgboost)\]'"):
        BoostedClassifier(engine=engine).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"engine": "catboost"}, "engine must be one of 'lightgbm', 'xgboost'; got 'catboost'"),
        ({"objective": "hinge"}, "objective must be one of 'auto', 'binary', 'window'; got 'hinge'"),
        ({"max_leaf_nodes": 1}, 'max_leaf_nodes other than "auto" must be an integer > 1; got 1'),
        ({"learning_rate": 0.0}, 'learning_rate other than "auto" must be a finite number > 0; got 0.0'),
        ({"n_estimators": "many"}, 'n_estimators other than "auto" must be an integer > 0'),
        ({"n_models": 0}, "n_models must be an integer > 0; got 0"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be an integer > 0; got 0"),
        ({"categorical_features": "all"}, "categorical_features must be 'from_dtype', None or a list; got 'all'"),
        (
            {"categorical_features": [0.5]},
            "categorical_features must be a list of positions, names or booleans; got [0.5]",
        ),
        ({"categorical_features": [9]}, "categorical_features must be positions from 0 to 3; got 9"),
        ({"categorical_features": ["a"]}, "categorical_features must be names of columns of X; got 'a'"),
        ({"categorical_features": [True]}, "categorical_features must have one boolean for each of 4 features; got 1"),
        ({"monotonic_cst": [1]}, "monotonic_cst must have a value -1, 0 or 1 for each of 4 features"),
        ({"monotonic_cst": {"a": 1}}, "monotonic_cst must have names of columns of X as keys; got 'a'"),
        ({"measure": "fpr_at_tpr"}, "the measure to optimize must be one of"),
    ],
)
def test_wrong_parameters(parameters, message):
    X, y = rings(60)
    with pytest.raises(ValueError, match=re.escape(message)):
        BoostedClassifier(**parameters).fit(X, y)


def test_values_and_weights_beyond_single_precision():
    X, y = rings(60)
    with pytest.raises(ValueError, match=r"at most 1e\+37 with engine=\"xgboost\"; got 1e\+50"):
        BoostedClassifier(engine="xgboost", **UNTUNED).fit(np.where(np.arange(60)[:, None] == 3, 1e50, X), y)
    with pytest.raises(ValueError, match="sample_weight must be zero or at least 1e-37 times its mean"):
        BoostedClassifier(**UNTUNED).fit(X, y, sample_weight=np.where(np.arange(60) == 3, 1e-40, 1.0))
    with pytest.raises(ValueError, match="categorical_features must be None for sparse X"):
        BoostedClassifier(categorical_features=[0], **UNTUNED).fit(sparse.csr_array(X), y)


def odds_rows(n, seed):
    """Rows with known probabilities of the positive class, which depend on products and waves of features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    share = expit(-1.5 + 1.5 * X[:, 0] * X[:, 1] + 1.2 * np.sin(2 * X[:, 2]) + X[:, 3])
    return X, (rng.random(n) < share).astype(int), share


def calibration_error(found, truth):
    """Mean difference of probabilities and truth in twenty groups of rows with neighboring probabilities."""
    groups = np.array_split(np.argsort(found), 20)
    return np.mean([abs(found[rows].mean() - truth[rows].mean()) for rows in groups])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("objective", ["binary", "window"])
@pytest.mark.parametrize("n", [1000, 5000])
def test_probabilities_are_calibrated(engine, objective, n):
    X, y, _ = odds_rows(n, 0)
    fresh, _, truth = odds_rows(20_000, 1)
    model = BoostedClassifier(engine=engine, learning_rate=0.3, **(QUICK | {"objective": objective})).fit(X, y)
    assert model.calibration_["method"] == ("sigmoid" if n == 1000 else "isotonic")
    found = model.predict_proba(fresh)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert 0 < found.min() < found.max() < 1
    assert calibration_error(found[:, 1], truth) < (0.06 if n == 1000 else 0.03)
    # They rank as the scores do: none are tied.
    decision = model.decision_function(fresh)
    assert (np.diff(found[np.argsort(decision), 1])[np.diff(np.sort(decision)) > 1e-6] > 0).all()


def test_probabilities_are_in_the_order_of_the_classes():
    X, y, truth = odds_rows(1000, 0)
    names = np.where(y == 1, "a fraud", "ok")
    model = BoostedClassifier(pos_label="a fraud", **QUICK).fit(X, names)
    other = BoostedClassifier(**QUICK).fit(X, y)
    assert model.classes_.tolist() == ["a fraud", "ok"]
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X)[:, ::-1])
    assert calibration_error(model.predict_proba(X)[:, 0], truth) < 0.1


@pytest.mark.parametrize("n", [1000, 5000])
def test_probabilities_are_those_of_the_weighted_rows(n):
    X, y, _ = odds_rows(n, 0)
    fresh, _, truth = odds_rows(20_000, 1)
    weight = 1e-5 * np.where(y == 1, 4.0, 1.0)
    options = QUICK | {"objective": "binary", "learning_rate": 0.3}
    found = BoostedClassifier(**options).fit(X, y, sample_weight=weight).predict_proba(fresh)[:, 1]
    among_copies = 4 * truth / (4 * truth + 1 - truth)
    assert calibration_error(found, among_copies) < (0.11 if n == 1000 else 0.035)
    assert calibration_error(found, truth) > 0.15


def test_without_cross_validation_probabilities_are_those_of_the_logistic_loss():
    X, y = rings()
    ours = BoostedClassifier(**UNTUNED, learning_rate=0.1).fit(X, y)
    engine = {"verbose": -1, "deterministic": True, "force_row_wise": True, "n_jobs": 1}
    theirs = LGBMClassifier(n_estimators=30, num_leaves=8, **engine).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)


def test_a_window_objective_without_cross_validation_has_no_probabilities():
    X, y = rings(200)
    model = BoostedClassifier(**(UNTUNED | {"objective": "window"}))
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model.fit(X, y), "predict_proba")
    assert hasattr(BoostedClassifier(objective="window"), "predict_proba")
    few = BoostedClassifier(objective="window", min_samples_leaf=2, n_jobs=1, random_state=0).fit(X[:39], y[:39])
    with pytest.raises(AttributeError, match="predict_proba"):
        few.predict_proba(X)


def test_scorers_and_thresholds_prefer_decision_values_to_probabilities():
    class Silent(BoostedClassifier):
        def predict_proba(self, X):
            raise AssertionError("probabilities must not be used for a ranking")

    X, y = rings(300)
    model = Silent(**UNTUNED).fit(X, y)
    expected = roc_auc_score(y, model.decision_function(X))
    assert get_scorer("roc_auc")(model, X, y) == pytest.approx(expected)
    assert make_scorer("roc_auc")(model, X, y) == pytest.approx(expected)
    assert FPRThresholdClassifier(model, 0.1, cv="prefit").fit(X, y).predict(X).shape == (300,)


def test_models_of_earlier_versions_are_read_and_have_no_probabilities(tmp_path):
    X, y = rings(200)
    model = BoostedClassifier(**QUICK).fit(X, y)
    save(model, tmp_path / "new.rocmax")
    again = load(tmp_path / "new.rocmax")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    del model.calibration_
    save(model, tmp_path / "old.rocmax")
    old = load(tmp_path / "old.rocmax")
    assert np.array_equal(old.decision_function(X), again.decision_function(X))
    assert not hasattr(old, "predict_proba")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            pd.DataFrame({"size": np.arange(60.0), "city": ["Rome", "Oslo"] * 30}),
            r"the category dtype .*; got the text 'Rome' in column 'city' of dtype (str|object)\. Convert .* "
            r"astype\('category'\)",
        ),
        (
            pl.DataFrame({"size": np.arange(60.0), "city": ["7", "Oslo"] * 30}),
            r"got the text 'Oslo' in column 'city' of dtype String.*cast\(pl\.Categorical\)",
        ),
        (
            np.array([[1.0, "Rome"], [None, "Oslo"]] * 30, dtype=object),
            r"got the text 'Rome' in column 1 of dtype object.* or \[1\] as categorical_features",
        ),
        (np.array([["1", "Rome"], ["2", "Oslo"]] * 30), r"got the text 'Rome' in column 1 of dtype <U4"),
    ],
    ids=["pandas", "polars", "objects", "strings"],
)
def test_text_columns_are_named_with_the_data_type_that_they_need(frame, message):
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match=message):
        BoostedClassifier(**UNTUNED).fit(frame, y)
    column = "city" if hasattr(frame, "columns") else 1
    with pytest.raises(ValueError, match=f"Add {column!r} to categorical_features"):
        BoostedClassifier(categorical_features=[0], **UNTUNED).fit(frame, y)
    model = BoostedClassifier(categorical_features=[column], **UNTUNED).fit(frame, y)
    assert model.categories_[1].tolist() == sorted({"7" if isinstance(frame, pl.DataFrame) else "Rome", "Oslo"})


def test_numbers_as_text_and_missing_values_are_read_as_before():
    rows = np.array([["1.5", None], ["2", 3.0]] * 30, dtype=object)
    model = BoostedClassifier(**UNTUNED).fit(rows, np.arange(60) % 2)
    assert np.array_equal(model.encode(rows[:2]), [[1.5, np.nan], [2.0, 3.0]], equal_nan=True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("pos_label", ["yes", "no"])
def test_the_boosters_of_the_engine_score_encoded_rows(engine, pos_label):
    frame, y = mixed()
    model = BoostedClassifier(engine=engine, pos_label=pos_label, **QUICK).fit(frame, y)
    rows, boosters = model.encode(frame), model.boosters()
    if engine == "lightgbm":
        scores = [booster.predict(rows, raw_score=True) for booster in boosters]
    else:
        scores = [booster.predict(DMatrix(rows), output_margin=True) for booster in boosters]
    sign = 1 if pos_label == "yes" else -1
    found = sign * (np.mean(scores, axis=0) - model.threshold_)
    np.testing.assert_allclose(found, model.decision_function(frame), atol=1e-6)
    with pytest.raises(NotFittedError):
        BoostedClassifier().boosters()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_shap_explains_the_boosters(engine):
    shap = pytest.importorskip("shap")
    frame, y = mixed()
    model = BoostedClassifier(engine=engine, **QUICK).fit(frame, y)
    rows = model.encode(frame)
    explainers = [shap.TreeExplainer(booster) for booster in model.boosters()]
    values = np.mean([explainer.shap_values(rows) for explainer in explainers], axis=0)
    np.testing.assert_allclose(values, model.contributions(frame).values, atol=1e-5)
    constant = np.mean([np.ravel(explainer.expected_value)[-1] for explainer in explainers])
    np.testing.assert_allclose(
        values.sum(axis=1) + constant - model.threshold_, model.decision_function(frame), atol=1e-4
    )


# A weight is not a number of copies: it is relative to the mean, and rows are counted in leaves, folds and subsets.
# Its threshold is not a probability of 0.5, which `check_classifiers_train` requires.
LEFT_OUT = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_classifiers_train",
)
TUNED = [
    (estimator, check)
    for estimator, check in estimator_checks_generator(BoostedClassifier(n_jobs=1))
    if check.func.__name__ not in LEFT_OUT
]


# Some checks have too few rows for a split, and the fit says so.
@pytest.mark.filterwarnings("ignore:.*same score:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "check"), TUNED, ids=[check.func.__name__ for _, check in TUNED])
def test_tuned_trees_pass_the_other_checks_of_scikit_learn(estimator, check):
    check(estimator)
