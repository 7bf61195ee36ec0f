"""Run all benchmarks, one after the other; ``--quick`` is passed on to each."""

from __future__ import annotations

import sys

from benchmarks.solvers import loss_cost, solver_speed

if __name__ == "__main__":
    for benchmark in (loss_cost, solver_speed):
        print(f"== {benchmark.__name__}", flush=True)
        benchmark.main(sys.argv[1:])
