"""Groups of rows in estimators that cross-validate: no group is on both sides of a split."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rocmax import BoostedClassifier, PartialAUCClassifierCV

TREES = {"max_leaf_nodes": 6, "n_models": 1, "n_jobs": 1, "random_state": 0, "objective": "binary"}
MODELS = [
    PartialAUCClassifierCV(max_fpr=0.5, loss="hinge", Cs=[0.1, 1.0], random_state=0),
    BoostedClassifier(max_fpr=0.5, min_samples_leaf=5, **TREES),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def customers(n=60, rows=5, seed=0):
    """Rows of customers: the features identify a customer, the class is a coin toss for each customer."""
    rng = np.random.default_rng(seed)
    groups = np.repeat([f"customer {i}" for i in range(n)], rows)
    X = np.repeat(rng.standard_normal((n, 12)), rows, axis=0) + 1e-3 * rng.standard_normal((n * rows, 12))
    y = np.repeat(np.arange(n) % 2, rows)
    order = rng.permutation(y.size)
    return X[order], y[order], groups[order]


def scores(model, X, y, **params):
    return clone(model).fit(X, y, **params).decision_function(X)


@every_model
@pytest.mark.parametrize("splitter", [GroupKFold(3), StratifiedGroupKFold(4), LeaveOneGroupOut()], ids=str)
def test_a_splitter_for_groups_gets_the_groups(model, splitter):
    X, y, groups = customers()
    if isinstance(splitter, LeaveOneGroupOut):
        groups = np.arange(y.size) % 4
    by_splitter = clone(model).set_params(cv=splitter)
    by_list = clone(model).set_params(cv=list(splitter.split(X, y, groups)))
    assert np.array_equal(scores(by_splitter, X, y, groups=groups), scores(by_list, X, y))


@every_model
def test_a_number_of_folds_means_folds_of_groups(model):
    X, y, groups = customers()
    by_list = clone(model).set_params(cv=list(StratifiedGroupKFold(3).split(X, y, groups)))
    by_number = clone(model).set_params(cv=3)
    assert np.array_equal(scores(by_number, X, y, groups=groups), scores(by_list, X, y))


def held_out(fitted):
    """The best mean score on held-out rows."""
    if isinstance(fitted, BoostedClassifier):
        return max(fitted.cv_results_["mean_score"])
    return fitted.scores_.mean(axis=0).max()


@every_model
@pytest.mark.parametrize("cv", [None, 3])
def test_what_is_remembered_of_a_group_does_not_count(model, cv):
    X, y, groups = customers()
    model = clone(model).set_params(cv=cv)
    # The class of a customer is random: nothing can be learned about the others.
    assert held_out(clone(model).fit(X, y, groups=groups)) < held_out(clone(model).fit(X, y)) - 0.1


def test_many_rows_have_one_held_out_part_of_whole_groups():
    X, y, groups = customers(1000, rows=31)
    model = BoostedClassifier("roc_auc", n_estimators=20, **(TREES | {"objective": "auto"}))
    alone, together = (clone(model).fit(X, y, groups=g) for g in (None, groups))
    assert alone.cv_results_["std_score"] == together.cv_results_["std_score"] == [0.0]
    assert held_out(together) < 0.54 < held_out(alone)


@every_model
@pytest.mark.parametrize(
    "cv", [StratifiedKFold(3), RepeatedStratifiedKFold(n_splits=3, random_state=0), StratifiedShuffleSplit(2), "list"]
)
def test_splits_through_a_group_are_an_error(model, cv):
    X, y, groups = customers()
    given = list(StratifiedKFold(3).split(X, y)) if cv == "list" else cv
    with pytest.raises(ValueError, match=r"got group 'customer \d+' in both parts of split 0 .* StratifiedGroupKFold"):
        scores(clone(model).set_params(cv=given), X, y, groups=groups)


@every_model
def test_rows_of_weight_zero_are_left_out_of_the_folds_of_groups(model):
    X, y, groups = customers()
    kept = np.arange(y.size) >= 20
    model = clone(model).set_params(cv=None)
    weighted = scores(model, X, y, sample_weight=kept.astype(float), groups=groups)
    removed = clone(model).fit(X[kept], y[kept], sample_weight=np.ones(kept.sum()), groups=groups[kept])
    np.testing.assert_allclose(weighted, removed.decision_function(X), atol=1e-9)


@every_model
def test_groups_are_routed_through_a_pipeline_and_cross_validation(model):
    X, y, groups = customers()
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), clone(model).set_params(cv=GroupKFold(3)).set_fit_request(groups=True))
        direct = make_pipeline(StandardScaler(), clone(model).set_params(cv=list(GroupKFold(3).split(X, y, groups))))
        assert np.array_equal(scores(routed, X, y, groups=groups), scores(direct, X, y))
        found = cross_validate(routed, X, y, params={"groups": groups}, cv=GroupKFold(2), error_score="raise")
        assert found["test_score"].shape == (2,)
    by_name = {f"{routed.steps[-1][0]}__groups": groups}
    assert np.array_equal(scores(routed, X, y, **by_name), scores(direct, X, y))


@every_model
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(3), r"groups must have one value for each of 300 rows; got shape \(3,\)"),
        (np.full(300, np.nan), "groups must not have missing values"),
        ([None] * 300, "groups must not have missing values"),
        ([pd.NA, "a"] * 150, "groups must not have missing values"),
        (np.array([1, "a"] * 150, dtype=object), "groups must be values of one type; got int and str"),
        (np.zeros(300), "each class must belong to at least two groups"),
    ],
)
def test_wrong_groups(model, groups, message):
    X, y, _ = customers()
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, groups=groups)


@every_model
def test_groups_with_too_few_rows_of_a_class_are_an_error(model):
    X, y, _ = customers()
    groups = np.where(y == 1, 0, 1 + np.arange(y.size) % 3)
    with pytest.raises(ValueError, match="too few groups with rows of both classes"):
        clone(model).set_params(cv=3).fit(X, y, groups=groups)
