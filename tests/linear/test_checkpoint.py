"""Checkpoints belong to one description of data and parameters, and are not used if they were changed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from helpers.overlapping import overlapping_rows
from rocmax import AUCClassifier
from rocmax.data.store import MemoryRows
from rocmax.linear.sharded import Checkpoint, ShardedSet, fit_shards
from rocmax.sharded.driver import Space
from rocmax.sharded.shard import LocalShards, Partition, Shard

X, Y = overlapping_rows(4000)


class Interrupting(LocalShards):
    """Shards of a driver that is interrupted before the threshold."""

    def run(self, recipes, drop, method, *args):
        if method is Shard.between:
            raise KeyboardInterrupt
        return super().run(recipes, drop, method, *args)


def fit(path, settings="settings", executor=LocalShards):
    """Fit with a checkpoint."""
    space = Space(executor([Shard(MemoryRows([X]), Y, None, [Partition(0, Y.size)])]), X.shape[1])
    data = ShardedSet(space, np.array([False, True]), 1)
    data.checkpoint = Checkpoint(path)
    data.checkpoint.load(settings)
    model = clone(AUCClassifier())
    fit_shards(model, data, standardize=True)
    return model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.npz"


def interrupt(path):
    with pytest.raises(KeyboardInterrupt):
        fit(path, executor=Interrupting)
    assert path.exists()


def test_a_resumed_fit_has_the_result_of_one_that_was_not_interrupted(path):
    interrupt(path)
    resumed = fit(path)
    assert not path.exists()
    assert resumed.objective_ == fit(path).objective_


def test_a_checkpoint_of_other_data_or_parameters_is_refused(path):
    interrupt(path)
    with pytest.raises(ValueError, match="checkpoint must be of the same data and parameters"):
        fit(path, "other settings")


@pytest.mark.parametrize(("name", "change"), [("offsets", 0.01), ("gradients", 1e-6), ("w", 1.0), ("completed", 1e-9)])
def test_a_checkpoint_with_other_numbers_is_refused(path, name, change):
    interrupt(path)
    with np.load(path) as saved:
        content = dict(saved)
    if not content[name].size:
        content[name] = np.zeros_like(content["completed"][0] if name == "w" else content[name])
    content[name] = content[name] + change if content[name].size else np.ones((1, 6))
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"fit\.npz: its checksum differs, so it was changed"):
        fit(path)
