"""How often 95 % intervals of the AUC and of partial AUCs cover them: few rows, narrow windows, corners, and groups.

``python -m benchmarks.metrics.interval_coverage [--samples 600]`` writes benchmarks/results/interval_coverage.md.
Scores are normal and of unit variance with a known distance of the classes, so that the area of every window is known.
Two models whose scores have a correlation of 0.8 in each class have the same area; the paired test should reject this
in 5 % of the samples. Figures are kept in ``results/interval_coverage.jsonl``, so an interrupted run goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from rocmax.metrics import bootstrap_interval, delong_interval, delong_test, partial_auc_score
from rocmax.metrics.uncertainty import estimate_measures, tail_share

SHIFT, N_OTHER, N_RESAMPLES = 1.3, 300, 300
IN_WINDOW = (2, 5, 10, 20, 30, 50, 100)


class Case(NamedTuple):
    """Distance of the classes, limits of the region, and numbers of rows of each class."""

    shift: float
    min_tpr: float
    max_fpr: float
    n_positive: int
    n_negative: int

    def entry(self) -> float:
        """Return the false-positive rate at which the curve enters the region."""
        return float(norm.sf(norm.isf(self.min_tpr) + self.shift)) if self.min_tpr > 0 else 0.0

    def tpr(self, fpr: float) -> float:
        """Return the true-positive rate of the population at a false-positive rate."""
        return float(norm.sf(norm.isf(fpr) - self.shift))

    def area(self) -> float:
        """Return the normalized area of the region under the curve of the population."""
        total = quad(lambda f: self.tpr(f) - self.min_tpr, self.entry(), self.max_fpr)[0]
        return total / self.max_fpr / (1 - self.min_tpr)

    def inside(self) -> tuple[float, float]:
        """Return the expected numbers of positives and negatives between the ends of the curve in the region."""
        return (
            self.n_positive * (self.tpr(self.max_fpr) - self.min_tpr),
            self.n_negative * (self.max_fpr - self.entry()),
        )

    def text(self) -> str:
        """Return the limits."""
        limits = ((f"TPR >= {self.min_tpr:g}", self.min_tpr > 0), (f"FPR <= {self.max_fpr:g}", self.max_fpr < 1))
        return ", ".join(text for text, given in limits if given)


WINDOWS = [Case(SHIFT, 0.0, rate, N_OTHER, round(count / rate)) for rate in (0.01, 0.1) for count in IN_WINDOW]
FLOORS = [Case(SHIFT, floor, 1.0, round(count / (1 - floor)), N_OTHER) for floor in (0.95, 0.8) for count in IN_WINDOW]
# The curve hardly enters the corner for the smallest distance of the classes.
CORNERS = [
    *(Case(SHIFT, 0.4, 0.4, n, n) for n in (50, 100, 200, 400, 800)),
    *(Case(shift, 0.5, 0.1, n, n) for shift in (1.4, 1.6, 2.0, 2.5) for n in (200, 800, 3200)),
]


def shares(*job: float) -> list[float]:
    """Return the shares of samples whose intervals cover the area, whose test rejects, and whose curve is outside.

    DeLong's interval and test are computed for all samples whose curves enter the region, and the bootstrap's interval
    for every fourth sample.
    """
    case, n_samples = Case(*job[:-1]), int(job[-1])  # type: ignore[arg-type]
    limits, truth = {"min_tpr": case.min_tpr, "max_fpr": case.max_fpr}, case.area()
    rng = np.random.default_rng([round(1000 * value) for value in case])
    y = np.repeat([0, 1], [case.n_negative, case.n_positive])
    covered, resampled, rejected = [], [], []
    for i in range(n_samples):
        first = rng.normal(size=y.size)
        second = 0.8 * first + 0.6 * rng.normal(size=y.size) + case.shift * y
        first += case.shift * y
        # A curve that does not enter the region has no variance.
        if min(partial_auc_score(y, scores, **limits) for scores in (first, second)) > 0:
            low, high = delong_interval(y, first, **limits)
            covered.append(low <= truth <= high)
            rejected.append(delong_test(y, first, second, **limits).pvalue < 0.05)
        if i % 4 == 0:
            options = {"n_resamples": N_RESAMPLES, "random_state": rng}
            low, high = bootstrap_interval("partial_auc", y, first, **options, **limits)
            resampled.append(low <= truth <= high)
    return [*(float(np.mean(found)) for found in (covered, resampled, rejected)), 1 - len(covered) / n_samples]


# Laws of the scores of the positives, of which the negatives are standard normal, or exponential in the second.
LAWS = ("normal", "exponential", "normal, sd 2")
AREAS, FEW, OTHERS = (0.7, 0.8, 0.9, 0.95, 0.99), (5, 10, 20, 30), (30, 100, 500)
SPREADS = {"normal": 1.0, "normal, sd 2": 2.0}
AUC_SAMPLES = 1000
RESAMPLED = ("roc_auc", "partial_auc", "tpr_at_fpr")
BOOTSTRAP_SAMPLES, BOOTSTRAP_LIMIT, BOOTSTRAP_OTHERS = 200, 0.1, 500
BOOTSTRAP_AREAS = (0.7, 0.9, 0.99)


def few_rows(law: str, area: float, n_positive: int, n_negative: int, n_samples: int) -> list[float]:
    """Return the share of samples whose interval of the AUC covers it, is below it and is above it, and its width."""
    rng = np.random.default_rng([LAWS.index(law), round(1000 * area), n_positive, n_negative])
    y = np.repeat([0, 1], [n_negative, n_positive])
    found = []
    for _ in range(n_samples):
        if law == "exponential":
            scores = rng.exponential(np.where(y == 1, area / (1 - area), 1.0))
        else:
            spread = SPREADS[law]
            scores = rng.normal(size=y.size) * np.where(y == 1, spread, 1.0)
            scores += np.sqrt(1 + spread**2) * norm.ppf(area) * y
        found.append(delong_interval(y, scores))
    low, high = np.array(found).T
    below, above = float(np.mean(high < area)), float(np.mean(low > area))
    return [1 - below - above, below, above, float(np.mean(high - low))]


def few_rows_resampled(area: float, n_positive: int, n_samples: int) -> list[float]:
    """Return the shares of samples whose bootstrap intervals of several measures cover them; normal scores."""
    case = Case(float(np.sqrt(2) * norm.ppf(area)), 0.0, BOOTSTRAP_LIMIT, n_positive, BOOTSTRAP_OTHERS)
    truth = area, case.area(), case.tpr(BOOTSTRAP_LIMIT)
    measures = [(name, {} if name == "roc_auc" else {"max_fpr": BOOTSTRAP_LIMIT}) for name in RESAMPLED]
    rng = np.random.default_rng([round(1000 * area), n_positive])
    y = np.repeat([0, 1], [case.n_negative, case.n_positive])
    covered = np.zeros(len(truth))
    for _ in range(n_samples):
        scores = rng.normal(size=y.size) + case.shift * y
        found = estimate_measures(measures, y, scores, n_resamples=N_RESAMPLES, random_state=rng)
        covered += [each.low - 1e-12 <= value <= each.high + 1e-12 for each, value in zip(found, truth, strict=True)]
    return [float(value) for value in covered / n_samples]


PRECISION_AREAS, PRECISION_POSITIVES = (0.7, 0.9), (10, 30, 100, 300)


def average_precision(area: float, n_positive: int, n_negative: int, n_samples: int) -> list[float]:
    """Return the share of samples whose bootstrap interval covers the average precision, its value and the mean one."""
    case = Case(float(np.sqrt(2) * norm.ppf(area)), 0.0, 1.0, n_positive, n_negative)

    def precision(tpr: float) -> float:
        false = n_negative * norm.sf(norm.isf(tpr) + case.shift)
        return float(n_positive * tpr / (n_positive * tpr + false))

    truth = quad(precision, 0.0, 1.0)[0]
    rng = np.random.default_rng([round(1000 * area), n_positive, n_negative])
    y = np.repeat([0, 1], [n_negative, n_positive])
    covered, values = [], []
    for _ in range(n_samples):
        scores = rng.normal(size=y.size) + case.shift * y
        named = [("average_precision", {})]
        (found,) = estimate_measures(named, y, scores, n_resamples=N_RESAMPLES, random_state=rng)
        covered.append(found.low <= truth <= found.high)
        values.append(found.value)
    return [float(np.mean(covered)), truth, float(np.mean(values))]


def precision_table(found: dict[tuple[Any, ...], list[float]]) -> str:
    """Return the coverage of the average precision."""
    lines = []
    for area in PRECISION_AREAS:
        for m in PRECISION_POSITIVES:
            figures = found.get(("average precision", area, m, 10 * m, BOOTSTRAP_SAMPLES))
            if figures is not None:
                texts = [f"{figures[1]:.3f}", f"{figures[2]:.3f}", f"{100 * figures[0]:.1f}"]
                lines.append([f"{area:g}", str(m), str(10 * m), *texts])
    return markdown(["AUC", "positives", "negatives", "average precision", "mean in samples", "covered"], lines)


GROUPS = [(60, 10, 0.6, "both classes"), (60, 10, 0.6, "one class"), (300, 10, 0.3, "both classes")]


def grouped(n_groups: int, size: int, shared: float, kind: str, n_samples: int) -> list[float]:
    """Return the shares of samples whose intervals of the AUC cover it, by DeLong and bootstrap, by groups and rows.

    The last two shares are those in which the paired test rejects the equality of equal models, by groups and rows.
    """
    rng = np.random.default_rng([n_groups, size, round(1000 * shared), kind == "one class"])
    truth, groups = float(norm.cdf(SHIFT / np.sqrt(2))), np.repeat(np.arange(n_groups), size)
    covered: dict[tuple[str, str], list[bool]] = {}
    for i in range(n_samples):
        y = rng.random(groups.size) < 0.3 if kind == "both classes" else (np.arange(n_groups) % 3 == 0)[groups]
        effects = np.sqrt(shared) * rng.normal(size=(2, n_groups))[:, groups]
        first, second = effects + np.sqrt(1 - shared) * rng.normal(size=(2, groups.size)) + SHIFT * y
        for by, given in (("groups", groups), ("rows", None)):
            low, high = delong_interval(y, first, groups=given)
            covered.setdefault(("DeLong", by), []).append(low <= truth <= high)
            covered.setdefault(("test", by), []).append(delong_test(y, first, second, groups=given).pvalue < 0.05)
            if i % 4 == 0:
                options = {"n_resamples": N_RESAMPLES, "random_state": rng}
                low, high = bootstrap_interval("roc_auc", y, first, groups=given, **options)
                covered.setdefault(("bootstrap", by), []).append(low <= truth <= high)
    order = [(way, by) for way in ("DeLong", "bootstrap", "test") for by in ("groups", "rows")]
    return [float(np.mean(covered[key])) for key in order]


def work(*job: Any) -> list[float]:
    """Return the figures of one job; the first entry of the new ones is their name."""
    if job[0] == "few rows":
        return few_rows(*job[1:])
    if job[0] == "few rows, bootstrap":
        return few_rows_resampled(*job[1:])
    if job[0] == "average precision":
        return average_precision(*job[1:])
    return grouped(*job[1:]) if job[0] == "groups" else shares(*job)


def few_rows_table(found: dict[tuple[Any, ...], list[float]]) -> str:
    """Return the coverage for each law, number of rows and area."""
    lines = []
    for law in LAWS:
        for m in FEW:
            for n in OTHERS:
                jobs = [("few rows", law, area, m, n, AUC_SAMPLES) for area in AREAS]
                figures = [f"{100 * found[job][0]:.1f}" if job in found else "" for job in jobs]
                lines.append([law, str(m), str(n), *figures])
    return markdown(["law", "positives", "negatives", *(f"AUC {area:g}" for area in AREAS)], lines)


def resampled_table(found: dict[tuple[Any, ...], list[float]]) -> str:
    """Return the coverage of bootstrap intervals with few positives."""
    lines = []
    for area in BOOTSTRAP_AREAS:
        for m in FEW:
            figures = found.get(("few rows, bootstrap", area, m, BOOTSTRAP_SAMPLES))
            if figures is not None:
                lines.append([f"{area:g}", str(m), str(BOOTSTRAP_OTHERS), *(f"{100 * value:.1f}" for value in figures)])
    return markdown(["AUC", "positives", "negatives", *RESAMPLED], lines)


def groups_table(found: dict[tuple[Any, ...], list[float]], n_samples: int) -> str:
    """Return the coverage and the size of tests with groups."""
    lines = []
    for n_groups, size, shared, kind in GROUPS:
        figures = found.get(("groups", n_groups, size, shared, kind, n_samples))
        if figures is not None:
            percent = [f"{100 * value:.1f}" for value in figures]
            lines.append([f"{n_groups} of {size} rows, {kind} each", f"{shared:g}", *percent])
    header = ["DeLong covers, groups", "rows", "bootstrap covers, groups", "rows", "test rejects, groups", "rows"]
    return markdown(["groups", "shared", *header], lines)


def table(cases: list[Case], found: dict[tuple[float, ...], list[float]], n_samples: int) -> str:
    """Return the shares of the cases in percent, with the numbers of rows in the region."""
    lines = []
    for case in cases:
        if (*case, n_samples) not in found:
            continue
        positives, negatives = case.inside()
        inside = [f"{positives:.0f}" if case.min_tpr > 0 else "", f"{negatives:.0f}" if case.max_fpr < 1 else ""]
        sizes = [f"{case.n_positive:,}", f"{case.n_negative:,}"]
        percent = [f"{100 * share:.1f}" for share in found[(*case, n_samples)]]
        lines.append([case.text(), f"{case.area():.3f}", *sizes, *inside, *percent])
    header = ("region", "area", "positives", "negatives", "positives in it", "negatives in it")
    measured = ("DeLong covers", "bootstrap covers", "test rejects", "outside")
    return markdown([*header, *measured], lines)


def main() -> None:
    """Simulate what is not there yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=600, help="samples of each case")
    parser.add_argument("--report", action="store_true", help="only write the cases that are there")
    args = parser.parse_args()
    n_samples = args.samples
    jobs: list[tuple[Any, ...]] = [
        *(("groups", *case, n_samples) for case in GROUPS),
        *(("few rows", law, a, m, n, AUC_SAMPLES) for law in LAWS for m in FEW for n in OTHERS for a in AREAS),
        *(("few rows, bootstrap", area, m, BOOTSTRAP_SAMPLES) for area in BOOTSTRAP_AREAS for m in FEW),
        *(("average precision", a, m, 10 * m, BOOTSTRAP_SAMPLES) for a in PRECISION_AREAS for m in PRECISION_POSITIVES),
        *((*case, n_samples) for case in (*WINDOWS, *FLOORS, *CORNERS)),
    ]
    with warnings.catch_warnings():
        for start in ("the window contains", "DeLong's interval covers", "the interval of"):
            warnings.filterwarnings("ignore", start)
        found, seconds = kept("interval_coverage", jobs, (lambda *_: None) if args.report else work)
    intro = (
        f"`python -m benchmarks.metrics.interval_coverage --samples {n_samples}`: {n_samples} samples for DeLong's "
        f"interval and paired test, a quarter of them for the bootstrap ({N_RESAMPLES} resamples each); the standard "
        f"error of 95 % is {100 * np.sqrt(0.05 * 0.95 / n_samples):.1f} and "
        f"{100 * np.sqrt(0.05 * 0.95 / (n_samples / 4)):.1f} percentage points. Normal scores; the area is that of the "
        "population. Shares are in percent: samples whose interval covers the area, samples in which DeLong's test "
        "rejects the equality of two equal models at 5 %, and samples in which a curve does not enter the region, "
        "so that DeLong's interval and test do not exist. Numbers of rows in a region are expected ones, between the "
        "points where the curve enters and leaves it. In the 33 cases with 200 rows or more of each class, the "
        "column of the bootstrap is from before `bootstrap_interval` took quantiles further out with few rows; with "
        f"200 rows, these are {100 * tail_share(0.95, 200):.1f} and {100 - 100 * tail_share(0.95, 200):.1f} % instead "
        "of 2.5 and 97.5 %, which changes little. `delong_interval` and `delong_test` warn below 30 rows of a class in "
        "a region, `bootstrap_interval` below 10: with 2 or 5 of them, it covers 66 to 87 %."
    )
    covers = {job: figures[0] for job, figures in found.items() if job[0] == "few rows"}
    below = [job for job, share in covers.items() if share < 0.93]
    few_below = sum(job[3] == min(FEW) for job in below)
    few_intro = (
        f"Shares, in percent, of {AUC_SAMPLES} samples in which `delong_interval` covers the AUC; the standard error "
        f"of 95 % is {100 * np.sqrt(0.05 * 0.95 / AUC_SAMPLES):.1f}. Negatives are standard normal and positives "
        "normal with a standard deviation of 1 or 2, or both are exponential. With 5 positives and an AUC of 0.99, "
        "most samples have all pairs in the right order; an interval of such a sample is [low, 1]. "
        f"Less than 93 % are covered in {len(below)} of {len(covers)} cases, {few_below} of them with 5 positives; "
        "`delong_interval` warns below 10 rows of a class."
    )
    resampled_intro = (
        f"The same for `bootstrap_interval` in {BOOTSTRAP_SAMPLES} samples of normal scores with {N_RESAMPLES} "
        f"resamples each, up to a false-positive rate of {BOOTSTRAP_LIMIT:g} for the last two measures; the standard "
        f"error of 95 % is {100 * np.sqrt(0.05 * 0.95 / BOOTSTRAP_SAMPLES):.1f}. Coverage falls with "
        "the distance of the measure from 0 or 1 in rows of the smaller class: an AUC of 0.99 with 30 positives is "
        "0.3 rows from 1, and most resamples of few rows do not show such a small share. `bootstrap_interval` warns "
        "if a measure is less than one row from 0 or 1, and below 10 rows of a class. Use `delong_interval` for the "
        "AUC there."
    )
    precision_intro = (
        f"Shares, in percent, of {BOOTSTRAP_SAMPLES} samples of normal scores in which `bootstrap_interval` with "
        f"{N_RESAMPLES} resamples covers the average precision of the population; the standard error of 95 % is "
        f"{100 * np.sqrt(0.05 * 0.95 / BOOTSTRAP_SAMPLES):.1f}. The mean in samples is higher than in the population: "
        "with few positives, the precision at each of them is that of few rows."
    )
    groups_intro = (
        f"Normal scores of which the rows of a group share the given part of the variance; {n_samples} samples, a "
        "quarter of them for the bootstrap. `groups`: with `groups=`; `rows`: as if rows were independent."
    )
    publish("interval_coverage", "Coverage of 95 % intervals of the AUC and of partial AUCs", [
        running_time(seconds),
        "## AUC with few rows of a class", few_intro, few_rows_table(found),
        "## Bootstrap with few positives", resampled_intro, resampled_table(found),
        "## Average precision", precision_intro, precision_table(found),
        "## Groups of dependent rows", groups_intro, groups_table(found, n_samples),
        "## Narrow windows and corners", intro,
        "### Below a false-positive rate", table(WINDOWS, found, n_samples),
        "### Above a true-positive rate", table(FLOORS, found, n_samples),
        "### In a corner", table(CORNERS, found, n_samples),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
