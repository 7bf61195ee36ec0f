"""A table like those that users have: mixed types, missing values, names that need care."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.pipeline import Pipeline

from rocmax.tables import Limits
from rocmax.tables.options import check_limits
from rocmax.tables.preprocess import common_levels
from rocmax.tables.read import Schema, Training, make_target
from rocmax.tables.tune import make_classifier, make_preprocessing

SCRIPT = "<script>alert(1)</script>"


def payments(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    fraud = rng.random(n_rows) < 0.15
    frame = pd.DataFrame(
        {
            "amount": (rng.lognormal(size=n_rows) + fraud).round(3),
            "age": rng.integers(18, 90, n_rows).astype(float),
            "country": rng.choice(["FR", "DE", "IT", "<b>é</b>"], n_rows, p=[0.4, 0.3, 0.2, 0.1]),
            "online": rng.choice(["true", "false"], n_rows),
            SCRIPT: (rng.normal(size=n_rows) + 1.5 * fraud).round(3),
            "since": pd.date_range("2020", periods=n_rows, freq="h").strftime("%Y-%m-%d"),
            "customer": [f"c{i}" for i in rng.integers(0, n_rows // 4, n_rows)],
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n_rows) < 0.05, "country"] = None
    return frame.assign(label=np.where(fraud, "fraud", "ok"))


def loud(n_rows, seed=0):
    """A table whose loudest negatives are far out where the positives are: a fit that does not see the limit fails."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n_rows) < 0.1
    X = rng.normal(size=(n_rows, 4))
    X[:, :2] += np.outer(positive, [3.0, 1.0])
    X[~positive & (rng.random(n_rows) < 0.02), 0] += 6.0
    return pd.DataFrame(X.round(4), columns=list("abcd")).assign(label=positive.astype(int))


def column_kinds(X):
    return {name: "number" if dtype.kind == "f" else "text" for name, dtype in X.dtypes.items()}


def make_model(name, X, positive, max_fpr=1.0):
    """A pipeline of the preprocessing for the table and an untuned classifier."""
    kinds = column_kinds(X)
    classifier = make_classifier(name, check_limits(Limits(max_fpr)), positive, 0, kinds=kinds)
    return Pipeline([("table", make_preprocessing(name, kinds, common_levels(X, kinds))), ("model", classifier)])


def training_of(X, labels, positive, groups=None):
    """Training data as those that are read from a file."""
    target = make_target(np.asarray(labels), positive)
    kinds = None if scipy.sparse.issparse(X) else column_kinds(X)
    schema = Schema(positive=target.positive, negative=target.negative, features=kinds, n_features=X.shape[1])
    return Training(X, target, schema, groups)
