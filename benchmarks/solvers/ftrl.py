"""What a warm start saves when the leader is followed: passes over the rows, batch by batch.

``FollowTheLeaderClassifier`` on twenty batches of 300 rows: with the cuts of the batch before, with its weights alone,
and with each problem solved from nothing. Passes do not depend on the machine. The regret is measured by
``papers/ftrl_regret.py``.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import load_real
from benchmarks._shared.results import markdown, publish
from rocmax import FollowTheLeaderClassifier
from rocmax.losses import Loss
from rocmax.measures import measure_names
from rocmax.online import follow_the_leader as _leader
from rocmax.online.follow_the_leader import GrowingRows, carry, no_cuts
from rocmax.solvers import Cuts

SETS = ("cod-rna", "letter")
# The rate at a limit is trained for by the loss of the partial AUC.
MEASURES = [name for name in measure_names(trainable=True) if name != "tpr_at_fpr"]
N_BATCHES, SIZE = 20, 300


def without_cuts(loss: Loss, cuts: Cuts, rows: GrowingRows) -> Cuts:
    """Return no cuts, in place of carried ones."""
    return no_cuts(cuts.gradient.shape[1])


def follow(model: FollowTheLeaderClassifier, X: np.ndarray, y: np.ndarray) -> FollowTheLeaderClassifier:
    """Show the rows to a model, batch by batch."""
    for start in range(0, y.size, SIZE):
        model.partial_fit(X[start : start + SIZE], y[start : start + SIZE], classes=[0, 1])
    return model


def compare(X: np.ndarray, y: np.ndarray, measure: str) -> list[str]:
    """Return sums of passes."""
    model = FollowTheLeaderClassifier(measure, k=float(y.mean()), compute_regret=False, n_batches=1)
    warm = follow(clone(model), X, y)
    _leader.carry = without_cuts
    weights = follow(clone(model), X, y)
    _leader.carry = carry
    alone = clone(model)
    ends = np.flatnonzero(warm.passes_ > 0) + 1
    cold = [alone.fit(X[: end * SIZE], y[: end * SIZE]).passes_[0] for end in ends]
    sums = [int(np.sum(passes)) for passes in (cold, weights.passes_, warm.passes_)]
    return [*map(str, sums), f"{warm.passes_[-1]}"]


def main() -> None:
    """Run all measures and write the report."""
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first batches are small, and may collapse
        for name in SETS:
            data = load_real(name)
            if data is None:
                continue
            kept = np.random.default_rng(0).permutation(data.y.size)[: N_BATCHES * SIZE]
            for measure in MEASURES:
                rows.append([name, measure, *compare(data.X[kept], data.y[kept], measure)])
                print(" | ".join(rows[-1]), flush=True)
    header = ["set", "measure", "from nothing", "from the weights", "and the cuts", "last batch"]
    text = (
        f"Passes over the rows so far, sums of {N_BATCHES} batches of {SIZE} rows; the last one with cuts; eta = 1, "
        "radius = 10."
    )
    publish("ftrl", "Following the leader: passes", [text, markdown(header, rows)])


if __name__ == "__main__":
    main()
