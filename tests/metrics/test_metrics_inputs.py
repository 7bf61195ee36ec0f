"""What the measures accept, and how they refuse: what was got and what is needed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rocmax import metrics

SCORED = [
    (metrics.partial_auc_score, {"max_fpr": 0.5}),
    (metrics.partial_auc_score, {"min_tpr": 0.1, "max_fpr": 0.5}),
    (metrics.tpr_at_fpr, {"max_fpr": 0.5}),
    (metrics.fpr_at_tpr, {"min_tpr": 0.5}),
    (metrics.precision_at_k, {"k": 1}),
    (metrics.break_even_point, {}),
    (metrics.average_precision_score, {}),
]
LABELED = [(metrics.g_mean_score, {}), (metrics.weighted_relative_accuracy, {})]
every = pytest.mark.parametrize(("measure", "params"), SCORED + LABELED, ids=[f.__name__ for f, _ in SCORED + LABELED])
every_scored = pytest.mark.parametrize(("measure", "params"), SCORED, ids=[f.__name__ for f, _ in SCORED])
every_labelled = pytest.mark.parametrize(("measure", "params"), LABELED, ids=[f.__name__ for f, _ in LABELED])

Y, S = [0, 1, 0, 1], [0, 1, 1, 0]


@every
@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        ([1, 1, 1, 1], None, r"two classes.*got one class: \[1\]"),
        (["a"] * 4, None, r"two classes.*got one class: \['a'\]"),
        ([0, 1, 2, 1], None, "exactly two classes; got 3: 0, 1, 2"),
        ([0.1, 0.2, 0.3, 0.4], None, "exactly two classes; got 4"),
        ([0.0, 1.0, np.nan, 1.0], None, "label in each row; got NaN"),
        ([0.0, np.nan, 0.0, np.nan], None, "label in each row; got NaN"),
        (np.array([None, "a", None, "a"], dtype=object), None, "labels in y_true must be of one type; got None, 'a'"),
        ([[0], [1], [0], [1]], None, r"y_true must be one-dimensional.*\(4, 1\)"),
        (Y, [1, 0, 1, 0], r"two classes among the rows of non-zero weight; got one class: \[0\]"),
        (Y, [0, 0, 0, 0], "must contain a value > 0; got 4 zeros"),
        (Y, [1, 1, -2, 1], "must be finite and >= 0; got -2.0 to 1.0"),
        (Y, [1, 1, np.nan, 1], "must be finite and >= 0; got nan"),
        (Y, [1, 1, np.inf, 1], "must be finite and >= 0; got 1.0 to inf"),
        (Y, [1, 1, 1], "y_true and sample_weight must have the same length; got 4 and 3"),
        (Y, ["a", "b", "c", "d"], "sample_weight must contain real numbers; got values of type <U1"),
    ],
)
def test_bad_labels_and_weights(measure, params, y, weight, message):
    with pytest.raises(ValueError, match=message):
        measure(y, S, sample_weight=weight, **params)


@every
def test_no_rows(measure, params):
    with pytest.raises(ValueError, match=r"two classes.*got no rows"):
        measure([], [], **params)
    with pytest.raises(ValueError, match=r"two classes.*got no rows"):
        measure([], [], sample_weight=[], **params)


@every
def test_unknown_positive_label(measure, params):
    with pytest.raises(ValueError, match=r"pos_label must be one of the labels \[0, 1\]; got 'fraud'"):
        measure(Y, S, pos_label="fraud", **params)


@every_scored
@pytest.mark.parametrize(
    ("s", "message"),
    [
        ([0.1, np.nan, 0.3, np.nan], "must be finite; got 2 NaN or infinite values, the first is nan"),
        ([0.1, np.inf, 0.3, 0.4], "must be finite; got 1 NaN or infinite values, the first is inf"),
        ([0.1, None, 0.3, 0.4], "must be finite; got 1 NaN"),
        ([0.1, 0.2], "y_true and y_score must have the same length; got 4 and 2"),
        ([[0.1, 0.9]] * 4, r"y_score must be one-dimensional.*\(4, 2\)"),
        (["a", "b", "c", "d"], "y_score must contain real numbers"),
        ([1j, 2j, 3j, 4j], "y_score must contain real numbers; got values of type complex128"),
        (np.array([object()] * 4), "y_score must contain numbers; got <object"),
    ],
)
def test_bad_scores(measure, params, s, message):
    with pytest.raises(ValueError, match=message):
        measure(Y, s, **params)


@every_labelled
@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ([0, 1, 2, 1], r"each one of \[0, 1\]; got 2"),
        ([0.3, 0.2, 0.1, 0.4], "this measure is computed from labels, not from scores"),
        ([0, 1, np.nan, 1], "got nan"),
        (["0", "1", "0", "1"], "each one of"),
        ([0, 1], "y_true and y_pred must have the same length; got 4 and 2"),
    ],
)
def test_bad_predictions(measure, params, predicted, message):
    with pytest.raises(ValueError, match=message):
        measure(Y, predicted, **params)


@pytest.mark.parametrize(
    ("measure", "params", "message"),
    [
        ("partial_auc_score", {"min_fpr": 0.5, "max_fpr": 0.5}, "got min_fpr=0.5, max_fpr=0.5"),
        ("partial_auc_score", {"max_fpr": 1.5}, "got min_fpr=0.0, max_fpr=1.5"),
        ("partial_auc_score", {"max_fpr": float("nan")}, "max_fpr=nan"),
        ("partial_auc_score", {"definition": "sum"}, 'must be "area" or "count"; got \'sum\''),
        ("partial_auc_score", {"definition": "count", "standardize": True}, 'requires definition="area"'),
        ("tpr_at_fpr", {"max_fpr": -0.1}, "max_fpr must be between 0 and 1; got -0.1"),
        ("tpr_at_fpr", {"max_fpr": float("nan")}, "got nan"),
        ("fpr_at_tpr", {"min_tpr": 1.1}, "min_tpr must be between 0 and 1; got 1.1"),
        ("precision_at_k", {"k": 0}, "k as a count must be at least 1; got 0"),
        ("precision_at_k", {"k": 5}, "from 1 to the total weight, 4; got 5"),
        ("precision_at_k", {"k": 0.0}, "above 0 and at most 1; got 0.0"),
        ("precision_at_k", {"k": 2.0}, r"at most 1; got 2.0 \(a count must be an int\)"),
        ("precision_at_k", {"k": float("nan")}, "got nan"),
        ("precision_at_k", {"k": True}, "integer count or a float fraction; got True"),
        ("precision_at_k", {"k": np.True_}, "integer count or a float fraction; got np.True_"),
        ("precision_at_k", {"k": "2"}, "integer count or a float fraction; got '2'"),
    ],
)
def test_bad_parameters(measure, params, message):
    with pytest.raises(ValueError, match=message):
        getattr(metrics, measure)(Y, S, **params)


def test_k_is_held_against_the_weights():
    with pytest.raises(ValueError, match=r"total weight, 2.5; got 3"):
        metrics.precision_at_k(Y, S, k=3, sample_weight=[0.5, 1, 0.5, 0.5])
    # Ten weights of 0.1 sum to a little less than 1.
    assert metrics.precision_at_k([0, 1] * 5, range(10), k=1, sample_weight=[0.1] * 10) == pytest.approx(0.5)


@every
def test_columns_of_data_frames_do(measure, params):
    y, s = np.array(["no", "yes", "no", "yes"]), np.array(S)
    values = s if (measure, params) in SCORED else y[[0, 1, 1, 0]]
    expected = measure(y, values, sample_weight=[1, 2, 3, 4], **params)
    for column in (pd.Series, pl.Series, list, lambda v: pd.Series(v).astype("category")):
        weight = pd.Series([1, 2, 3, 4], index=[9, 8, 7, 6])
        assert measure(column(y), column(values), sample_weight=weight, **params) == expected


def test_large_integer_scores_are_not_rounded_into_ties():
    assert metrics.partial_auc_score([0, 1], [2**53, 2**53 + 1]) == 1


def test_inputs_are_left_alone():
    y, s, w = np.array(Y), np.array(S, dtype=float), np.ones(4)
    for array in (y, s, w):
        array.flags.writeable = False
    assert metrics.partial_auc_score(y, s, sample_weight=w) == 0.5


def test_public_names():
    for name in metrics.__all__:
        assert getattr(metrics, name).__doc__
