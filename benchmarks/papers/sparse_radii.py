"""Thrombin with the radii of Narasimhan and Agarwal (KDD 2013), Table 3: where the sparsity comes from.

The constraint is ``Omega(w) <= lambda`` with lambda in 1e-4, 1e-2, 1, 1e2, 1e4 (for L2 the radius is sqrt(2 lambda)),
chosen on a validation third. Solved to a certified gap by ``ProximalBundle``, and by the projected subgradient method
of the paper with first steps lambda / u, ``u`` chosen by the training loss as there. The paper states neither its
range of ``u`` nor its number of iterations. Finished fits are kept in ``sparse_radii.jsonl``, so a run can go on where
it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._shared.results import RESULTS, markdown, publish
from benchmarks.solvers.sparse import MAX_FPR, PAPER, load_sparse, three_parts
from rocmax.losses import PartialAUCTight
from rocmax.metrics import partial_auc_score
from rocmax.operators import as_operator
from rocmax.penalties import Ball, ElasticNetBall, L1Ball, L2Ball
from rocmax.solvers import ProjectedSubgradient, ProximalBundle, Result

LAMBDAS = (1e-4, 1e-2, 1.0, 1e2, 1e4)
BALLS: dict[str, Callable[[float], Ball]] = {
    "L2": lambda value: L2Ball(math.sqrt(2 * value)),
    "elastic net, 0.001": lambda value: ElasticNetBall(value, 0.001),
    "elastic net, 0.1": lambda value: ElasticNetBall(value, 0.1),
    "L1": L1Ball,
}
TOL, MAX_ITER, STEPS, N_STEPS = 5e-3, 100, (1.0, 10.0, 100.0), 100
# A fit by subgradients takes ten times as long.
N_SPLITS, N_SUBGRADIENT_SPLITS = 10, 1


class Job(NamedTuple):
    """One fit: constraint, solver, lambda, seed of the split."""

    constraint: str
    solver: str
    value: float
    seed: int


def solve(job: Job, X: Any, y: np.ndarray) -> Result:
    operator, loss = as_operator(X), PartialAUCTight(max_fpr=MAX_FPR).bind(y)
    ball = BALLS[job.constraint](job.value)
    if job.solver == "exact":
        return ProximalBundle(TOL, MAX_ITER).solve(operator, loss, ball)
    runs = (ProjectedSubgradient(TOL, N_STEPS, job.value / u).solve(operator, loss, ball) for u in STEPS)
    return min(runs, key=lambda result: result.objective)


def run(job: Job, X: Any, y: np.ndarray) -> dict[str, float]:
    """Fit on the first third of a split; score the other two."""
    train, validation, test = three_parts(y, job.seed)
    start = time.perf_counter()
    with threadpool_limits(1):
        result = solve(job, X[train], y[train])
    seconds = time.perf_counter() - start
    scores = [partial_auc_score(y[part], X[part] @ result.w, max_fpr=MAX_FPR) for part in (validation, test)]
    kept = int(np.count_nonzero(result.w))
    return {
        "validation": scores[0],
        "test": scores[1],
        "kept": kept,
        "loss": result.objective,
        "seconds": round(seconds, 2),
    }


def runs(constraint: str) -> Iterator[tuple[str, int]]:
    """Yield the solvers of a constraint with the number of splits; L2 keeps all features with any solver."""
    yield "exact", N_SPLITS
    if constraint != "L2":
        yield "subgradient", N_SUBGRADIENT_SPLITS


def jobs() -> Iterator[Job]:
    for constraint in BALLS:
        for solver, n_splits in runs(constraint):
            yield from (Job(constraint, solver, value, seed) for seed in range(n_splits) for value in LAMBDAS)


def collect() -> dict[Job, dict[str, float]] | None:
    """Run what is missing, and return all figures; None without the data."""
    path = RESULTS / "sparse_radii.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    done = {Job(*entry[:4]): entry[4] for entry in map(json.loads, lines)}
    wanted = list(jobs())
    missing = [job for job in wanted if job not in done]
    data = load_sparse("thrombin") if missing else None
    if missing and data is None:
        return None
    for job in missing:
        done[job] = run(job, *data)
        with path.open("a") as file:
            file.write(json.dumps([*job, done[job]]) + "\n")
        print(*job, done[job], flush=True)
    return {job: done[job] for job in wanted}


def chosen(figures: dict[Job, dict[str, float]], constraint: str, solver: str, n_splits: int) -> list[Job]:
    """Return the fit of each split with the best validation score, the smallest radius of equals."""
    return [
        max((Job(constraint, solver, value, seed) for value in LAMBDAS), key=lambda job: figures[job]["validation"])
        for seed in range(n_splits)
    ]


def chosen_table(figures: dict[Job, dict[str, float]]) -> str:
    rows = []
    for constraint in BALLS:
        for solver, n_splits in runs(constraint):
            best = chosen(figures, constraint, solver, n_splits)
            whole = [figures[job]["kept"] for job in chosen(figures, "L2", "exact", n_splits)]
            test = 100 * np.array([figures[job]["test"] for job in best])
            kept = np.array([figures[job]["kept"] for job in best])
            radii = ", ".join(f"{value:g}: {sum(job.value == value for job in best)}" for value in LAMBDAS)
            cells = (
                constraint,
                solver,
                str(n_splits),
                f"{test.mean():.2f}",
            )
            rows.append((*cells, f"{kept.mean():.0f}", f"{100 * (kept / whole).mean():.1f}", radii, PAPER[constraint]))
    header = (
        *("constraint", "solver", "splits", "test partial AUC", "features", "% of L2's"),
        *("lambda: splits", "paper"),
    )
    return markdown(header, rows)


def features_table(figures: dict[Job, dict[str, float]]) -> str:
    rows = []
    for constraint in BALLS:
        for solver, n_splits in runs(constraint):
            cells = []
            for value in LAMBDAS:
                found = [figures[Job(constraint, solver, value, seed)] for seed in range(n_splits)]
                kept, loss = (np.mean([figure[name] for figure in found]) for name in ("kept", "loss"))
                cells.append(f"{kept:.0f} ({loss:.3f})")
            rows.append((constraint, solver, *cells))
    return markdown(("constraint", "solver", *(f"{value:g}" for value in LAMBDAS)), rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args(arguments)
    figures = collect()
    if figures is None:
        return
    minutes = sum(figure["seconds"] for figure in figures.values()) / 60
    note = (
        "thrombin, thirds for training, validation and test, partial AUC [0, 0.1]. Exact: a certified "
        f"gap of {TOL:g}. Subgradient: {N_STEPS} steps from each of {len(STEPS)} first steps lambda / u, u = "
        f"{', '.join(f'{u:g}' for u in STEPS)}; the best iterate. Running time of all fits, one thread: {minutes:.1f} "
        "minutes."
    )
    sections = [
        note,
        "## lambda chosen on the validation third",
        chosen_table(figures),
        "## Features and training loss for each lambda",
        features_table(figures),
    ]
    publish("sparse_radii", "Thrombin with the published radii", sections)


if __name__ == "__main__":
    main()
