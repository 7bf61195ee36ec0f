"""What a round of LightGBM costs with the window objective, next to its built-in binary objective.

Both models are trained at the same time, on the same million rows with 30 columns and 2 % of positives, one round of
each in turns. The table has the least wall-clock time of a round, and with one thread also the least processor time,
which another load on the machine hardly changes. The rounds of binary log loss at the start of the window objective are
not counted.
"""

from __future__ import annotations

import argparse
import time

import lightgbm as lgb
import numpy as np

from benchmarks._shared.results import markdown, publish
from rocmax.boosted.lightgbm import objective
from rocmax.losses import WindowPairs

N_ROWS, N_COLUMNS, N_WARMUP, LIMIT = 1_000_000, 30, 5, 2.0
LOSSES = {
    "sigmoid, soft tail 0.05 (the default)": None,
    "squared hinge, soft tail 0.05": WindowPairs("squared_hinge", max_fpr=0.05, soft_tail=True, scale=2.0),
    "sigmoid, window [0, 0.05]": WindowPairs("sigmoid", max_fpr=0.05, scale=2.0),
}
HEADER = ("objective", "threads", "time", "round ms", "binary ms", "ratio", "requirement")


def make_rows(seed: int = 0) -> lgb.Dataset:
    """Return columns of which five have an effect, in a form ready for training."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, N_COLUMNS), dtype=np.float32)
    signal = X[:, :5].sum(axis=1) + 2.0 * rng.standard_normal(N_ROWS)
    y = signal > np.quantile(signal, 0.98)
    return lgb.Dataset(X, y.astype(float), params={"verbose": -1}).construct()


def timed_round(model: lgb.Booster, fobj: object) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    model.update(fobj=fobj)
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(
    data: lgb.Dataset, loss: WindowPairs | None, n_threads: int, n_rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return wall-clock and processor time of the fastest round: of the objective and of binary."""
    params = {"verbose": -1, "num_threads": n_threads, "num_leaves": 31}
    ours, theirs = (lgb.Booster({**params, "objective": name}, data) for name in ("none", "binary"))
    fobj = objective(loss, n_warmup=N_WARMUP)
    times = [(timed_round(ours, fobj), timed_round(theirs, None)) for _ in range(N_WARMUP + n_rounds)]
    first, second = np.min(np.array(times[N_WARMUP + 1 :]), axis=0)
    return first, second


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args(argv).quick
    data = make_rows()
    rows = []
    for name, loss in LOSSES.items():
        for n_threads in (1, 2):
            ours, theirs = measure(data, loss, n_threads, 6 if quick else 15)
            for i, kind in enumerate(("wall", "processor")[: 3 - n_threads]):
                ratio = ours[i] / theirs[i]
                verdict = "" if loss is not None else f"<= {LIMIT:g} {'PASS' if ratio <= LIMIT else 'FAIL'}"
                figures = (f"{1e3 * ours[i]:.0f}", f"{1e3 * theirs[i]:.0f}", f"{ratio:.2f}")
                rows.append((name, str(n_threads), kind, *figures, verdict))
    table = markdown(HEADER, rows)
    print(table)
    publish("tree_objective_cost", "Cost of a round of boosting, a million rows", [table], quick)


if __name__ == "__main__":
    main()
