"""Linear models and samples for the tests of the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from rocmax import AUCClassifier, PartialAUCClassifier

CONVEX = {
    "auc-hinge": AUCClassifier(),
    "auc-squared_hinge": AUCClassifier("squared_hinge"),
    "tight": PartialAUCClassifier(0.0, 0.3, loss="tight"),
    "structural": PartialAUCClassifier(0.0, 0.3, loss="structural"),
    "hinge": PartialAUCClassifier(0.0, 0.3, loss="hinge"),
    "tight-inner": PartialAUCClassifier(0.1, 0.4, loss="tight"),
    "structural-inner": PartialAUCClassifier(0.1, 0.4, loss="structural"),
}


BOUNDED = {
    "auto": PartialAUCClassifier(0.0, 0.3),
    "auto-inner": PartialAUCClassifier(0.1, 0.4),
}


NOT_CONVEX = {"hinge-inner": PartialAUCClassifier(0.1, 0.4, loss="hinge"), **BOUNDED}


ALL = CONVEX | NOT_CONVEX


# One model for each path through the code, where a test has many data sets.
MAIN = [
    "auc-hinge",
    "auc-squared_hinge",
    "tight",
    "structural",
    "hinge",
    "hinge-inner",
    "auto",
    "auto-inner",
]


def parametrize(names):
    return pytest.mark.parametrize("model", [pytest.param(ALL[name], id=name) for name in names])


every_model = parametrize(ALL)


main_models = parametrize(MAIN)


def fresh(model, **params):
    return clone(model).set_params(**params)


def sample(n=60, d=3, seed=0, shift=2.0, share=0.4):
    """Gaussians, the first feature shifted for the positives."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=int)
    y[rng.permutation(n)[: max(1, round(share * n))]] = 1
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * y
    return X, y


def rates(positive, accepted, weight=None):
    """False- and true-positive rate of a set of rows."""
    weight = np.ones(len(positive)) if weight is None else np.asarray(weight, dtype=float)
    return [weight[accepted & side].sum() / weight[side].sum() for side in (~positive, positive)]
