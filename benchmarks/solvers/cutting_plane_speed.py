"""The published cutting-plane method next to the certified solver: passes and CPU time for the full AUC, C = 100.

Both stop at the same gap, a thousandth of the objective: ``CuttingPlane`` stops when no constraint is violated by more
than its absolute tolerance, which bounds the gap by ``C`` times that. At most 300 passes; a run takes under a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from threadpoolctl import threadpool_limits

from benchmarks._shared.data import Dataset, load_real, synthetic
from benchmarks._shared.results import cpu_time, markdown, publish
from rocmax.losses import PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import CuttingPlane, Result, SmoothedNewton

TOL, C, MAX_PASSES, REPEATS = 1e-3, 100.0, 300, 3
HEADER = ("set", "passes", "gap", "CPU s", "cutting-plane passes", "gap reached", "CPU s ")


def datasets() -> Iterator[Dataset]:
    """Yield the sets one at a time, so that only one is in memory."""
    yield synthetic(100_000, 100)
    yield from filter(None, map(load_real, ("ijcnn1", "a9a", "letter")))


def describe(result: Result, seconds: float) -> tuple[str, str, str]:
    return str(result.trace[-1].passes), f"{result.gap / result.objective:.1e}", f"{seconds:.3f}"


def measure(data: Dataset) -> tuple[str, ...]:
    """Run both methods in turns; the least CPU time of each counts."""
    operator, loss, penalty = as_operator(data.X), PartialAUCTight(0.0, 1.0).bind(data.y), SquaredL2(C)
    certified = SmoothedNewton(TOL).solve(operator, loss, penalty)
    published = CuttingPlane(TOL * certified.objective / C, MAX_PASSES // 2)
    runs = [
        [cpu_time(lambda s=solver: s.solve(operator, loss, penalty)) for solver in (SmoothedNewton(TOL), published)]
        for _ in range(REPEATS)
    ]
    cells = [data.name]
    for turns in zip(*runs, strict=True):
        seconds, result = min(turns, key=lambda turn: turn[0])
        cells += describe(result, seconds)
    return tuple(cells)


def main() -> None:
    with threadpool_limits(1):
        table = markdown(HEADER, map(measure, datasets()))
    print(table)
    publish("cutting_plane_speed", f"One-slack cutting plane, [0, 1], C = {C:g}, at most {MAX_PASSES} passes", [table])


if __name__ == "__main__":
    main()
