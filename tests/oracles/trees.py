"""Predictions of tree ensembles, row by row and node by node, from the rules that the two libraries document."""

from __future__ import annotations

import math

import numpy as np

from rocmax.boosted.trees import BELOW, IN_SET, NAN_IS_MISSING, NAN_IS_ZERO, ZERO_IS_MISSING


def goes_left(trees, node, value):
    missing = trees.missing[node]
    if abs(value) <= trees.tiny:
        value = 0.0
    if trees.comparison[node] == IN_SET:
        if math.isnan(value):  # LightGBM: never in the set
            return missing == NAN_IS_MISSING and trees.single and bool(trees.default_left[node])
        return int(value) in trees.category[trees.set_start[node] : trees.set_start[node + 1]]
    if math.isnan(value) and missing == NAN_IS_ZERO:
        value = 0.0
    if math.isnan(value) or (missing == ZERO_IS_MISSING and value == 0):
        return bool(trees.default_left[node])
    if trees.comparison[node] == BELOW:
        return np.float32(value) < np.float32(trees.threshold[node])
    return value <= trees.threshold[node]


def predict_plain(trees, X):
    """Scores of the rows of X."""
    scores = []
    for row in np.asarray(X, dtype=np.float64):
        total = trees.constant
        for node in trees.root:
            while trees.left[node] >= 0:
                left = goes_left(trees, node, float(row[trees.feature[node]]))
                node = trees.left[node] if left else trees.right[node]
            total += trees.value[node]
        scores.append(total)
    return np.array(scores)
