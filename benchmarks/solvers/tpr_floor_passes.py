"""Passes over the data of a certified fit above a true-positive rate, on the sets of ``solver_speed``.

``min 1/2 |w|^2 + C R(w)`` with the tight loss, for TPR >= 0.9 and for the corner TPR >= 0.5, FPR <= 0.1. Passes are
counted up to a certified gap of 1e-3 times the objective, and up to the solver's own stop, where the gap is also at
most 1e-3 times the decrease from zero weights. The goal of 25 passes is for the first. Where the optimum is at zero
weights, the fit has collapsed and the goal does not apply.
Figures are kept in ``results/tpr_floor_passes.jsonl``, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import Dataset, load_real, synthetic
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from benchmarks.solvers.solver_speed import DUST, MAX_ITER, TOL
from rocmax.losses import PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import SmoothedNewton

SETS = ("letter", "ijcnn1", "a9a", "cod-rna", "synthetic 1e5", "covtype", "synthetic 1e6")
# (min_fpr, max_fpr, min_tpr)
CORNERS = [(0.0, 1.0, 0.9), (0.0, 0.1, 0.5)]
MOST_PASSES = 25


def load(name: str) -> Dataset | None:
    """Return a set of ``solver_speed``, or None if its file is absent."""
    if name == "synthetic 1e5":
        return synthetic(100_000, 100)
    return synthetic(1_000_000, 50) if name == "synthetic 1e6" else load_real(name)


def main() -> None:
    """Fit what is not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS, help="sets to fit")
    args = parser.parse_args()
    loaded: dict[str, Dataset | None] = {}

    def work(name: str, *problem: Any) -> list[Any] | None:
        if name not in loaded:
            loaded.clear()  # one set in memory at a time
            loaded[name] = load(name)
        data = loaded[name]
        if data is None:
            return None
        *window, C = problem
        loss = PartialAUCTight(*window).bind(data.y)
        with threadpool_limits(1):
            result = SmoothedNewton(TOL, MAX_ITER).solve(as_operator(data.X), loss, SquaredL2(C))
        reached = [entry.passes for entry in result.trace if entry.objective - entry.bound <= TOL * entry.objective]
        zero = bool(np.linalg.norm(result.w) < DUST)
        return [reached[0] if reached else None, result.trace[-1].passes, result.converged, zero]

    jobs = [(name, *corner, C) for name, corner, C in product(args.sets, CORNERS, (1.0, 100.0))]
    found, seconds = kept("tpr_floor_passes", jobs, work)
    lines = []
    for (name, _, limit, floor, C), (passes, at_stop, converged, zero) in found.items():
        window = f"TPR >= {floor:g}" + (f", FPR <= {limit:g}" if limit < 1 else "")
        verdict = "collapsed: w = 0" if zero else "PASS" if passes is not None and passes <= MOST_PASSES else "FAIL"
        shown = "not reached" if passes is None else str(passes)
        lines.append((name, window, f"{C:g}", shown, f"{at_stop}" if converged else f"> {at_stop}", verdict))
    header = ("set", "window", "C", "passes to 1e-3 of the objective", "passes at the stop", f"<= {MOST_PASSES}")
    publish("tpr_floor_passes", "Passes of a certified fit above a true-positive rate", [
        running_time(seconds), markdown(header, lines),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
