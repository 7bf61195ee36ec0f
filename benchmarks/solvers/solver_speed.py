"""How long a certified fit takes: ``min 1/2 |w|^2 + C R(w)`` to a relative gap of 1e-3.

Passes over the data, the certified gap, and CPU time as a multiple of scikit-learn's ``LogisticRegression()`` on the
same standardized data in the same run; one thread, least of several interleaved repeats.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import Dataset, load_real, synthetic
from benchmarks._shared.results import cpu_time, markdown, publish
from rocmax.losses import PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import Result, SmoothedNewton

TOL = 1e-3
FULL_AUC, SMALL, INNER = (0.0, 1.0), (0.0, 0.1), (0.02, 0.05)
PROBLEMS = [(window, C) for window in (FULL_AUC, SMALL, INNER) for C in (1.0, 100.0, 1e4)]
BIG, MEDIUM = "synthetic 1e6", "synthetic 1e5"
FULL_AUC_LIMIT = {MEDIUM: 2.0, "ijcnn1": 2.0, "a9a": 3.0, "letter": 2.0}
# Four times the passes of the loosest goal: a fit that needs more has missed it anyway.
MAX_ITER = 100
# Weights shorter than this are zero but for rounding: scores have unit margins, and features unit deviation.
DUST = 1e-9
# A fit that takes longer than this many seconds is timed once.
LONG = 10.0

HEADER = ("set", "rows x features", "window", "C", "passes", "gap", "CPU s", "x LR", "goals", "")


class Fit(NamedTuple):
    """One problem on one set, solved.

    ``zero`` tells that the weights are zero, and ``refuted`` that they should not be: if zero weights are not optimal
    for one C, they are not for a larger one.
    """

    data: str
    shape: tuple[int, int]
    window: tuple[float, float]
    C: float
    passes: int
    gap: float
    seconds: float
    ratio: float
    zero: bool
    refuted: bool


def datasets(quick: bool) -> Iterator[Dataset]:
    """Yield the sets one at a time, so that only one is in memory."""
    if quick:
        yield synthetic(20_000, 30)
    else:
        yield synthetic(100_000, 100)
        yield synthetic(1_000_000, 50)
    for name in ("letter",) if quick else ("ijcnn1", "a9a", "letter", "cod-rna", "covtype"):
        data = load_real(name)
        if data is not None:
            yield data


def solve(data: Dataset, window: tuple[float, float], C: float) -> Result:
    """Fit with the labels bound inside, since logistic regression checks its input too."""
    loss = PartialAUCTight(*window).bind(data.y)
    return SmoothedNewton(tol=TOL, max_iter=MAX_ITER).solve(as_operator(data.X), loss, SquaredL2(C))


def fit_logistic(data: Dataset) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return int(LogisticRegression().fit(data.X, data.y).n_iter_[0])


def measure(data: Dataset, repeats: int) -> tuple[list[Fit], str]:
    """Time all problems on one set in rounds, each with a logistic regression of its own."""
    seconds, results = dict.fromkeys(PROBLEMS, np.inf), {}
    logistic, iterations = np.inf, 0
    for _ in range(repeats):
        spent, iterations = cpu_time(lambda: fit_logistic(data))
        logistic = min(logistic, spent)
        for problem in PROBLEMS:
            if problem in results and seconds[problem] > LONG:
                continue
            spent, results[problem] = cpu_time(lambda p=problem: solve(data, *p))
            seconds[problem] = min(seconds[problem], spent)
    fits, left_zero = [], set()
    for (window, C), result in results.items():  # C rises within a window
        spent, passes = seconds[window, C], result.trace[-1].passes
        gap, zero = result.gap / result.objective, bool(np.linalg.norm(result.w) < DUST)
        left_zero |= set() if zero else {window}
        refuted = zero and window in left_zero
        fits.append(Fit(data.name, data.X.shape, window, C, passes, gap, spent, spent / logistic, zero, refuted))
    return fits, f"{data.name}: LogisticRegression {logistic:.3f} s, {iterations} iterations"


def goals(fit: Fit) -> Iterator[tuple[str, bool]]:
    """Yield the goals that apply to a fit, and whether it meets them."""
    if fit.zero and not fit.refuted:
        return
    reached = fit.gap <= TOL
    limit = None
    if fit.C == 100:
        if fit.data == BIG:
            limit = 1.0
        elif fit.window == FULL_AUC:
            limit = FULL_AUC_LIMIT.get(fit.data)
        elif fit.window == SMALL:
            limit = 3.0
    if limit is not None:
        yield f"x LR <= {limit:g}", reached and fit.ratio <= limit
    most = 25 if fit.C <= 100 else 50
    yield f"passes <= {most}", reached and fit.passes <= most


def describe(fit: Fit) -> tuple[str, ...]:
    checks = list(goals(fit))
    failed = [goal for goal, met in checks if not met]
    verdict = ("FAIL " + ", ".join(failed)) if failed else ("PASS" if checks else "")
    note = "" if fit.gap <= TOL else "gap not reached"
    if fit.zero:
        note = "w = 0, not optimal" if fit.refuted else (f"w = 0, {note}" if note else "collapsed: w = 0")
    rows, features = fit.shape
    window = "[{:g}, {:g}]".format(*fit.window)
    cells = (fit.data, f"{rows} x {features}", window, f"{fit.C:g}", str(fit.passes), f"{fit.gap:.1e}")
    return (*cells, f"{fit.seconds:.3f}", f"{fit.ratio:.2f}", verdict, note)


def summary(fits: list[Fit]) -> str:
    """List the goals with the number of fits that meet them, and every fit that does not."""
    counts: dict[str, list[bool]] = {}
    failures = []
    for fit in fits:
        for goal, met in goals(fit):
            counts.setdefault(goal, []).append(met)
            if not met:
                window = "[{:g}, {:g}]".format(*fit.window)
                figures = f"{fit.passes} passes, gap {fit.gap:.1e}, {fit.ratio:.2f} x LR"
                failures.append(f"- FAIL {goal}: {fit.data} {window} C={fit.C:g}: {figures}")
    lines = [f"- {'PASS' if all(met) else 'FAIL'} {goal}: {sum(met)} of {len(met)}" for goal, met in counts.items()]
    zero = [fit for fit in fits if fit.zero and not fit.refuted]
    open_gaps = sum(fit.gap > TOL for fit in zero)
    unjudged = f"- not judged: {len(zero)} fits that end at w = 0, {open_gaps} of them without the certificate"
    return "\n".join(["## Goals", "", *sorted(lines), unjudged, "", *failures])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small sets, under a minute")
    parser.add_argument("--without", nargs="*", default=[], help="names of sets to leave out")
    args = parser.parse_args(argv)
    quick = args.quick
    fits, logistic = [], []
    with threadpool_limits(1):
        solve(synthetic(1000, 5), FULL_AUC, 1.0)  # pay for imports and first calls
        for data in (data for data in datasets(quick) if data.name not in args.without):
            new, line = measure(data, repeats=5 if data.y.size >= 500_000 else 7)
            fits, logistic = fits + new, [*logistic, f"- {line}"]
            print(line, flush=True)
            print(markdown(HEADER, map(describe, new)), flush=True)
    sections = [
        markdown(HEADER, map(describe, fits)),
        summary(fits),
        "\n".join(["## Logistic regression", "", *logistic]),
    ]
    print("\n\n".join(sections[1:-1]))
    publish("solver_speed", "Time to a certified gap of 1e-3", sections, quick)


if __name__ == "__main__":
    main()
