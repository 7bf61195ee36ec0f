"""What each acceleration and heuristic of the linear fits gains: CPU time, passes and test partial AUC without it.

A mechanism is switched off by replacing a function or a number of the package. The fit without it takes turns with the
full fit in one process, with one thread; the least CPU time of the repeats counts. The sets are those of
``scale_speed``, ``default_fit_speed`` and ``partial_auc``, with fewer rows. Results are kept in
``results/ablation.jsonl``, so an interrupted run goes on where it stopped. A mechanism that has since been deleted from
the package, and from ``MECHANISMS`` here, stays on the page with its stored results. ``--only`` names the mechanisms to
run, ``--report`` only writes the page.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import is_dataclass
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy import sparse
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import load_real, standardize, synthetic
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import RESULTS, markdown, publish
from benchmarks._shared.tables import Rows, large_test
from benchmarks.solvers.scale_speed import shifted
from rocmax import FollowTheLeaderClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.losses import PartialAUCTight
from rocmax.metrics import partial_auc_score
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import SmoothedNewton

NAME = "ablation"
RULE = (
    "Each mechanism is switched off alone, and the fit without it takes turns with the full fit on the same rows. A "
    "mechanism stays if most of the sets on which it acts are at least 10 % slower without it, or if the test partial "
    "AUC falls by more than one standard error of the paired difference without it. A deleted one was measured against "
    "the fit of that time, which had all of them; the script measures those that remain. Fits: `solver` is "
    "`SmoothedNewton(tol=1e-3)` on the tight loss, `C=100`; `default` is `PartialAUCClassifier()`; `cv` is "
    "`PartialAUCClassifierCV()`, also for a window that does not start at 0 and above a true-positive rate."
)
BATCH = 300
TOGETHER = """## All deletions together

Measured next to the code before, paired. The solver takes 0.79 to 1.05 times as long on 14 of 15 cases of the speed
page, and 1.33 times on synthetic 1e5 in [0, 0.1], which then misses its goal: 1.12 instead of 0.92 times logistic
regression, for a goal of 1. The default fit takes 0.67 to 1.09 times as long on five sets.

The test partial AUC of `PartialAUCClassifierCV`, on 56 splits (14 sets, seeds 10 and 11) on which nothing was decided,
changes by -0.15 ± 0.21 points: -0.46 ± 0.29 in [0, 0.05], -0.02 ± 0.31 in [0.02, 0.05] and +0.32 ± 0.49 above a
true-positive rate of 0.8. Its time is 0.98 times that before (median; 0.48 to 1.53).

How to read the decisions:

- The rule speaks of most sets. It is applied to the sets on which a mechanism acts, which was decided after the first
  results. Of all sets, fewer than half are slower without "little smoothing", "cutting-plane steps" or "width kept",
  for example, and by the letter these would go.
- More than 50 mechanisms were compared by one standard error, so some decisions are chance. Sets and splits were added
  during the work where a decision was close: the hinge start was at +0.28 ± 0.28 after 7 splits and at +0.26 ± 0.15
  after 14, all starts but logistic regression at +0.18 ± 0.28 after 16 and at +0.25 ± 0.20 after 30.
- Mechanisms are measured one at a time, but depend on each other. Three stay because the fits without them and without
  the deleted ones were slower or worse than each result alone shows; see the last column.
- The number of sets differs between mechanisms: not every one was run on every set."""
SECONDS = 0.6  # CPU time of the repeats of a case


class Case(NamedTuple):
    """Data, window and lower limit on the true-positive rate; ``rows`` are training rows."""

    data: str
    low: float = 0.0
    high: float = 0.05
    floor: float = 0.0
    rows: int = 0

    def __str__(self) -> str:
        floor = f", TPR >= {self.floor:g}" if self.floor else ""
        return f"{self.data} [{self.low:g}, {self.high:g}]{floor}"


SOLVER_CASES = [
    Case("synthetic 1e5 x 100", high=1.0),
    Case("synthetic 1e5 x 100", high=0.1),
    Case("synthetic 3e5 x 50", high=0.1),
    Case("synthetic 3e5 x 50", 0.02, 0.05),
    Case("shifted 3e5 x 50", high=0.1),
    *(Case(name, high=high) for name in ("ijcnn1", "a9a", "letter", "cod-rna") for high in (1.0, 0.1)),
    Case("a9a sparse", high=1.0),
    Case("a9a sparse", high=0.1),
    Case("covtype", high=1.0),
    Case("a9a", high=1.0, floor=0.9),
    Case("cod-rna", high=1.0, floor=0.9),
    Case("ijcnn1", high=0.1, floor=0.5),
    Case("synthetic 1e5 x 100", high=0.1, floor=0.5),
    Case("outliers 1e5 x 20", high=1.0),
    Case("outliers 1e5 x 20", high=0.1),
    *(Case(name, high=0.1) for name in ("pima", "ionosphere", "oil", "spambase")),
]
LARGE = [
    Case("a9a", 0.02, 0.05, rows=10**6),
    Case("cod-rna", rows=10**6),
    Case("ijcnn1", rows=10**6),
    Case("letter:Z", rows=10**6),
    Case("covtype", rows=10**5),
    Case("float32 1e5 x 20"),
    Case("float32 1e6 x 20"),
]
SMALL = [
    Case(name, rows=2000)
    for name in ("pima", "yeast_me2", "abalone", "oil", "letter:K", "letter:S", "covtype:5", "ijcnn1")
]
MORE = [
    Case(name, rows=2000) for name in ("mammography-like", "cod-rna", "letter:A", "letter:O", "letter:Q", "letter:Z")
]
LATE = [case._replace(low=0.02) for case in SMALL if case.data != "oil"]
FLOORS = [case._replace(high=1.0, floor=0.8) for case in SMALL if case.data != "oil"]
FOLDS = [
    Case("cross-validation, isotropic 20000 x 50", high=0.1),
    Case("cross-validation, correlated 20000 x 50", high=0.1),
]
WIDE = [Case("leukemia", high=0.1)]
STREAMS = [
    Case(f"{name}: {measure}")
    for name in ("cod-rna", "letter")
    for measure in ("roc_auc", "partial_auc", "precision_at_k", "f_beta")
]
SEEDS = range(2)
# Area: the fit, its cases, and the seeds of each case.
AREAS = {
    "solver": [(case, 0) for case in SOLVER_CASES],
    "default": [*((case, 0) for case in LARGE), *((case, seed) for case in SMALL for seed in SEEDS)],
    "cv": [*((case, 0) for case in FOLDS), *((case, seed) for case in (*SMALL, *MORE) for seed in SEEDS)],
    "cv, window": [(case, seed) for case in LATE for seed in SEEDS],
    "cv, floor": [(case, seed) for case in FLOORS for seed in SEEDS],
    "tight": [(case, 0) for case in WIDE],
    "solver, C = 1": [(Case(name, high=1.0, floor=0.9), 0) for name in ("a9a", "covtype")],
    "stream": [(case, 0) for case in STREAMS],
}


class Mechanism(NamedTuple):
    """Areas in which a mechanism is measured, what replaces names of the package, and why it stays if it must."""

    areas: tuple[str, ...]
    off: dict[str, Any]
    reason: str = ""


def _nothing(*args: Any, **options: Any) -> None:
    return None


def _no(*args: Any) -> bool:
    return False


def _all_pairs(run: Any) -> Any:
    return run.here.curvature(run.n_pairs, run.width)


def _even_grid(cls: Any, scores: Any, n_bins: int) -> Any:
    least, largest = float(np.min(scores)), float(np.max(scores))
    return cls(least, least, largest, largest, n_bins)


def _all_rows(scores: Any, positive: Any, weight: Any, max_fpr: float) -> Any:
    return positive, scores, weight


def _not_refined(refinement: Any, start: Any, *args: Any) -> Any:
    return refinement._unmoved(start)


def _no_path(refinement: Any, start: Any, Cs: Any) -> list[Any]:
    return [refinement._unmoved(start)] * (1 + len(Cs))


NEWTON, RUN, REFINE = "rocmax.solvers.smoothed_newton:", "rocmax.solvers.certified:", "rocmax.linear.refine:"
PARTIAL, CARRIED = "rocmax.linear.partial_auc:", "rocmax.losses.contingency:"
SOLVER, DEFAULT, CV, BOTH = ("solver",), ("default",), ("cv",), ("default", "cv")
FOREVER = 10**12
NONE = property(_nothing)
# Names of mechanisms that were deleted are in the stored results only, and so are some that cannot be measured in the
# same way any more.
ALONE = "stays: not together with the other starts that were deleted"
NOTES = {
    "steps on a part of the rows": "**deleted**: one of 28 cases was faster with it, covtype above a TPR",
    "starts: logistic": "stays: the start of the fit without cross-validation",
    "starts: balanced": ALONE,
    "start: logistic, in the default fit": "stays",
    "starts: all but logistic": "not deleted together: class weights and the tight loss stay",
    "starts: svc, full AUC, clusters and tight": "not deleted together: the tight loss stays",
    "starts: svc, full AUC and clusters": "**deleted** together",
}
MECHANISMS: dict[str, Mechanism] = {
    "binned losses, and all that needs them": Mechanism(SOLVER, {f"{NEWTON}SmoothedNewton._binned": _nothing}),
    "wider bins for scores far from the others": Mechanism(
        SOLVER,
        {"rocmax.losses.binned:ScoreGrid.covering": classmethod(_even_grid)},
        "stays: histograms of measures on a cluster have no exact loss to fall back on",
    ),
    "bins only from 50,000 rows on for a window": Mechanism(SOLVER, {f"{RUN}RULES.many_rows_with_kinks": 15_000}),
    "start from a part of the rows": Mechanism(SOLVER, {f"{NEWTON}SmoothedNewton._subsample_solution": _nothing}),
    "little smoothing after such a start": Mechanism(SOLVER, {f"{RUN}CertifiedRun.settle": _nothing}),
    "fewer pairs on that part": Mechanism(
        SOLVER,
        {f"{RUN}RULES.subsample_pairs": 64},
        "stays: without it and the deleted mechanisms, goals of the speed page are missed",
    ),
    "Hessians from a part of the rows": Mechanism(SOLVER, {f"{RUN}CertifiedRun._pairs": _all_pairs}),
    "more pairs near the solution": Mechanism(SOLVER, {f"{RUN}RULES.pairs_near_solution": (64, 64)}),
    "cutting-plane steps when Newton steps are slow": Mechanism(SOLVER, {f"{RUN}RULES.slow": FOREVER}),
    "width kept at zero weights": Mechanism(
        SOLVER, {f"{RUN}CertifiedRun._keep_or_reduce_width": lambda run: run._adapt_width(run._smoothing_error())}
    ),
    "row space, for more features than rows": Mechanism(("tight",), {"rocmax.operators:_MAX_GRAM": 0}),
    "cuts of labels carried to more rows": Mechanism(
        ("stream",), {f"{CARRIED}grow_labels": _nothing, f"{CARRIED}grow_top": _nothing}
    ),
    "fits begin on a part of the rows": Mechanism(DEFAULT, {f"{REFINE}WindowRefinement._part": NONE}),
    "minimization begins on a part of the rows": Mechanism(
        DEFAULT,
        {f"{REFINE}WindowRefinement._closer": lambda fit, objective, start, begin: begin},
        "stays: without this and without uncorrelated features, ijcnn1 takes 1.9 and cod-rna 1.6 times as long",
    ),
    "measure from the top rows": Mechanism(DEFAULT, {f"{REFINE}top_rows": _all_rows}),
    "looser tolerances on many values": Mechanism(BOTH, {f"{REFINE}RULES.many_values": FOREVER}),
    "single precision of many values": Mechanism(CV, {f"{PARTIAL}STARTS.few_values": FOREVER}),
    "refinement, in the default fit": Mechanism(DEFAULT, {f"{REFINE}Refinement.run": _not_refined}),
    "refinement": Mechanism(CV, {f"{REFINE}Refinement.path": _no_path}),
    "starts: tight": Mechanism(
        CV, {f"{PARTIAL}STARTS.tight": ()}, "stays: without the starts that were deleted, it gains 0.22 ± 0.13 points"
    ),
    "start: hinge": Mechanism(("cv, window",), {f"{PARTIAL}STARTS.hinge": ()}),
    "starts: tight, above a true-positive rate": Mechanism(("cv, floor",), {f"{PARTIAL}STARTS.tight": ()}),
    "early dropping of other starts": Mechanism(CV, {f"{PARTIAL}STARTS.trial": FOREVER}),
}  # fmt: skip


def switched_off(name: str) -> ExitStack:
    """Switch a mechanism off until the stack is closed; a number of a frozen dataclass is set in its instance."""
    stack = ExitStack()
    for path, value in MECHANISMS[name].off.items() if name else ():
        owner, _, attribute = path.replace(":", ".").rpartition(".")
        target = resolve_name(owner)
        if is_dataclass(target) and not isinstance(target, type):
            stack.callback(object.__setattr__, target, attribute, getattr(target, attribute))
            object.__setattr__(target, attribute, value)
        else:
            stack.enter_context(patch.object(target, attribute, value))
    return stack


@lru_cache(maxsize=1)
def rows_of(case: Case, seed: int) -> Rows | None:
    """Return training and test rows; the same rows for both where there is no measure on test rows."""
    name = case.data
    if case.rows:
        return large_test(name, seed, case.rows)
    if name.startswith("float32"):
        size = int(float(name.split()[1]))
        X, y = shifted(size + 100_000, 20, 0.05, np.float32)
        return Rows(X[:size], X[size:], y[:size], y[size:])
    if name.startswith("cross-validation, isotropic"):
        X, y = synthetic(40_000, 50)[1:]
    elif name.startswith("cross-validation"):
        X, y = make_classification(40_000, 50, n_informative=15, weights=[0.9], class_sep=0.7, random_state=0)
        X = standardize(X)
    if name.startswith("cross-validation"):
        return Rows(X[::2], X[1::2], y[::2], y[1::2])
    if name.startswith("synthetic"):
        X, y = synthetic(int(float(name.split()[1])), int(name.split()[-1]))[1:]
    elif name.startswith("outliers"):
        X, y = synthetic(100_000, 20)[1:]
        X[:, 0] *= np.random.default_rng(1).standard_cauchy(y.size)
    elif name.startswith("shifted"):
        X, y = shifted(int(float(name.split()[1])), int(name.split()[-1]), 0.09, np.float64)
    else:
        data = load_real(name.split()[0].strip(":"))
        if data is None:
            return None
        X, y = data.X, data.y
    if ":" in name:
        chosen = np.random.default_rng(0).permutation(y.size)[: 20 * BATCH]
        X, y = X[chosen], y[chosen]
    if name.endswith("sparse"):
        X = sparse.csr_array(X - X.min(axis=0))
    return Rows(X, X, y, y)


def fit(area: str, case: Case, seed: int) -> list[float | None]:
    """Fit once; return CPU seconds, passes, relative gap and test partial AUC."""
    rows = rows_of(case, seed)
    window = {"min_fpr": case.low, "max_fpr": case.high, "min_tpr": case.floor}
    started = time.process_time()
    if area.startswith("solver"):
        operator, loss = as_operator(rows.X), PartialAUCTight(**window).bind(rows.y)
        result = SmoothedNewton(1e-3, 200).solve(operator, loss, SquaredL2(1.0 if area.endswith("C = 1") else 100.0))
        seconds = time.process_time() - started
        return [seconds, result.trace[-1].passes, result.gap / result.objective, None]
    if area == "stream":
        return stream(case.data.split()[-1], rows.X, rows.y)
    if area == "tight":
        model: Any = PartialAUCClassifier(**window, loss="tight", C=100.0).fit(rows.X, rows.y)
        return [time.process_time() - started, model.trace_[-1].passes, model.dual_gap_ / model.objective_, None]
    if area == "default":
        model = PartialAUCClassifier(**window).fit(rows.X, rows.y)
        passes = model.trace_[-1].passes
    else:
        model, passes = PartialAUCClassifierCV(**window, random_state=seed).fit(rows.X, rows.y), None
    seconds = time.process_time() - started
    return [seconds, passes, None, partial_auc_score(rows.y_test, model.decision_function(rows.X_test), **window)]


def stream(measure: str, X: np.ndarray, y: np.ndarray) -> list[float | None]:
    """Follow the leader; the same as :func:`fit`."""
    model = FollowTheLeaderClassifier(measure, k=float(y.mean()), compute_regret=False, n_batches=1)
    started = time.process_time()
    for first in range(0, y.size, BATCH):
        model.partial_fit(X[first : first + BATCH], y[first : first + BATCH], classes=[0, 1])
    return [time.process_time() - started, int(model.passes_.sum()), None, None]


@lru_cache(maxsize=1)
def full_fit(area: str, case: Case, seed: int) -> list[float | None]:
    """Fit once with all mechanisms; the fits of one split without a mechanism follow."""
    return fit(area, case, seed)


def measured(area: str, case: Case, seed: int, name: str) -> list[list[float | None]]:
    """Return the full fit and the one without a mechanism; short fits take turns, with the least time of each."""
    if area.startswith("cv"):
        full = full_fit(area, case, seed)
        with switched_off(name):
            return [full, fit(area, case, seed)]
    calls: list[Callable[[], ExitStack]] = [lambda: switched_off(""), lambda: switched_off(name)]
    found: list[list[Any]] = [[], []]
    spent = 0.0
    while not spent or (spent < SECONDS and len(found[0]) < 5):
        for off, fits in zip(calls, found, strict=True):
            with off():
                fits.append(fit(area, case, seed))
            spent += fits[-1][0]
    return [[min(each[0] for each in fits), *fits[0][1:]] for fits in found]


def work(area: str, data: str, low: float, high: float, floor: float, rows: int, seed: int, name: str) -> Any:
    case = Case(data, low, high, floor, rows)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return None if rows_of(case, seed) is None else measured(area, case, seed, name)


def jobs(names: list[str], areas: list[str]) -> list[tuple[Any, ...]]:
    """Return the jobs, those on the same rows after each other."""
    return [
        (area, *case, seed, name)
        for area in areas
        for case, seed in AREAS[area]
        for name in names
        if area in MECHANISMS[name].areas
    ]


class Finding(NamedTuple):
    """Results of a mechanism in one area: a pair of fits, with it and without it, for each case and seed."""

    name: str
    area: str
    cases: dict[Case, list[Any]]

    def ratios(self) -> np.ndarray:
        """Return the time without the mechanism divided by that with it, for each case."""
        logs = [[np.log(off[0] / on[0]) for on, off in pairs] for pairs in self.cases.values()]
        return np.array([np.exp(np.mean(each)) for each in logs])

    def acts(self) -> np.ndarray:
        """Return the cases in which the mechanism changes the result, or the time by more than a tenth."""
        changed = [any(on[1:] != off[1:] for on, off in pairs) for pairs in self.cases.values()]
        return np.array(changed) | (np.abs(np.log(self.ratios())) > np.log(1.1))

    def cells(self) -> list[str]:
        """Return the line of the table."""
        acts = self.acts()
        ratio = self.ratios()[acts] if acts.any() else np.ones(1)
        passes = [[pair[side][1] for pairs in self.cases.values() for pair in pairs] for side in (0, 1)]
        counted = "" if passes[0][0] is None else f"{sum(passes[0])} / {sum(passes[1])}"
        gains = [100 * (on[3] - off[3]) for pairs in self.cases.values() for on, off in pairs if on[3] is not None]
        gain = ""
        if gains:
            error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
            gain = f"{np.mean(gains):+.2f} ± {error:.2f}"
        faster = f"{np.count_nonzero(ratio > 1.1)} of {np.count_nonzero(acts)} ({acts.size})"
        spread = f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
        state = MECHANISMS[self.name].reason if self.name in MECHANISMS else NOTES.get(self.name, "**deleted**")
        return [self.name, self.area, faster, spread, counted, gain, state]


def findings(stored: list[Any]) -> list[Finding]:
    """Return the results by mechanism and area, first those of the mechanisms that remain."""
    found: dict[tuple[str, str], Finding] = {}
    for (area, *case, _, name), pair, _ in stored:
        finding = found.setdefault((name, area), Finding(name, area, {}))
        finding.cases.setdefault(Case(*case), []).append(pair)
    order = list(MECHANISMS)
    return sorted(found.values(), key=lambda each: order.index(each.name) if each.name in order else len(order))


def report() -> None:
    """Write the page from the stored results."""
    stored = [json.loads(line) for line in (RESULTS / f"{NAME}.jsonl").read_text().splitlines()]
    found = findings(stored)
    header = [
        "mechanism", "fit", "10 % slower without, of the sets on which it acts (of all)",
        "time without / with: median (range)", "passes with / without",
        "gain in test partial AUC, points", "",
    ]  # fmt: skip
    each = [
        (
            finding.name,
            str(case),
            f"{ratio:.2f}",
            *("" if pairs[0][k][1] is None else str(pairs[0][k][1]) for k in (0, 1)),
        )
        for finding in found
        if finding.area == "solver"
        for (case, pairs), ratio in zip(finding.cases.items(), finding.ratios(), strict=True)
        if abs(np.log(ratio)) > np.log(1.1)
    ]
    publish(NAME, "Ablation of the linear fits", [
        running_time(sum(seconds for *_, seconds in stored)),
        RULE,
        markdown(header, [finding.cells() for finding in found]),
        TOGETHER,
        "## The solver: cases whose time changes by more than a tenth",
        markdown(["mechanism", "case", "time without / with", "passes with", "passes without"], each),
    ])  # fmt: skip


def main() -> None:
    """Run what is not there yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(MECHANISMS), default=list(MECHANISMS), help="mechanisms")
    parser.add_argument("--areas", nargs="+", choices=list(AREAS), default=list(AREAS), help="kinds of fits")
    parser.add_argument("--report", action="store_true", help="only write the page")
    args = parser.parse_args()
    if not args.report:
        kept(NAME, jobs(args.only, args.areas), work)
    report()


if __name__ == "__main__":
    main()
