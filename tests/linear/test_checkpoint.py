"""Checkpoints belong to one set of rows, however these are divided and ordered."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from helpers.overlapping import overlapping_rows
from rocmax import AUCClassifier
from rocmax.data.store import MemoryRows
from rocmax.linear.sharded import Checkpoint, ShardedSet, fit_shards
from rocmax.sharded.driver import Space
from rocmax.sharded.shard import LocalShards, Partition, Shard

X, Y = overlapping_rows(4000)
WEIGHT = np.random.default_rng(1).integers(1, 4, Y.size).astype(float)
REFUSED = "checkpoint must be of the same data and parameters"


class Interrupting(LocalShards):
    """Shards of a driver that is interrupted before the threshold."""

    def run(self, recipes, drop, method, *args):
        if method is Shard.between:
            raise KeyboardInterrupt
        return super().run(recipes, drop, method, *args)


def fit(path, X, y=Y, weight=None, ends=(), executor=LocalShards):
    """Fit with a checkpoint on rows that are divided at the given ends."""
    made = []
    for number, (low, high) in enumerate(zip((0, *ends), (*ends, y.size), strict=True)):
        share = None if weight is None else weight[low:high]
        made.append(Shard(MemoryRows([X[low:high]]), y[low:high], share, [Partition(number, high - low, start=low)]))
    space = Space(executor(made), X.shape[1])
    data = ShardedSet(space, np.array([False, True]), 1)
    data.checkpoint = Checkpoint(path, "settings")
    model = clone(AUCClassifier())
    fit_shards(model, data, standardize=True)
    return model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.npz"


def interrupt(path, X, weight=None):
    with pytest.raises(KeyboardInterrupt):
        fit(path, X, weight=weight, executor=Interrupting)
    assert path.exists()


def permuted(members, column):
    """Return the rows with the values of a column permuted among some of them."""
    other = X.copy()
    other[members, column] = np.roll(other[members, column], 1)
    return other


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("column", [0, 5])
def test_a_column_permuted_within_a_class_is_other_data(path, positive, column):
    interrupt(path, X)
    with pytest.raises(ValueError, match=REFUSED):
        fit(path, permuted(np.flatnonzero(positive == Y), column))


def test_two_exchanged_values_are_other_data(path):
    interrupt(path, X)
    with pytest.raises(ValueError, match=REFUSED):
        fit(path, permuted(np.flatnonzero(Y)[:2], 3))


def test_two_exchanged_weights_are_other_data(path):
    interrupt(path, X, WEIGHT)
    weight = WEIGHT.copy()
    weight[[np.flatnonzero(weight == 1)[0], np.flatnonzero(weight == 2)[0]]] = 2, 1
    with pytest.raises(ValueError, match=REFUSED):
        fit(path, X, weight=weight)


FORMS = {
    "double": X,
    "single": X.astype(np.float32),
    "sparse": sparse.csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0).astype(np.float32)),
    "constant column": np.where(np.arange(6) == 4, 0.1, X),
    "far from zero": X + np.array([0.0, 1e3, 1e6, 1e9, 0.0, -1e4]),
}


@pytest.mark.parametrize("ends", [(1, 3000), tuple(range(500, 4000, 500))])
@pytest.mark.parametrize("form", FORMS)
def test_another_division_is_the_same_data(path, form, ends):
    weight = WEIGHT if form == "double" else None
    interrupt(path, FORMS[form], weight)
    resumed = fit(path, FORMS[form], weight=weight, ends=ends)
    assert resumed.objective_ == fit(path, FORMS[form], weight=weight).objective_


def test_another_order_is_the_same_data(path):
    interrupt(path, X)
    order = np.arange(Y.size)
    order[[7, 3000]] = order[[3000, 7]]
    whole = fit(path, X[order], Y[order])
    interrupt(path, X)
    order = np.random.default_rng(0).permutation(Y.size)
    assert fit(path, X[order], Y[order]).objective_ == pytest.approx(whole.objective_, rel=1e-3)


@pytest.mark.parametrize(("name", "change"), [("offsets", 0.01), ("gradients", 1e-6), ("w", 1.0), ("completed", 1e-9)])
def test_a_checkpoint_with_other_numbers_is_refused(path, name, change):
    interrupt(path, X)
    with np.load(path) as saved:
        content = dict(saved)
    if not content[name].size:
        content[name] = np.zeros_like(content["completed"][0] if name == "w" else content[name])
    content[name] = content[name] + change if content[name].size else np.ones((1, 6))
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"fit\.npz: its checksum differs, so it was changed"):
        fit(path, X)
