"""How often 95 % intervals of a partial AUC cover it, by the numbers of rows in narrow windows and in corners.

``python -m benchmarks.metrics.interval_coverage [--samples 600]`` writes benchmarks/results/interval_coverage.md.
Scores are normal and of unit variance with a known distance of the classes, so that the area of every window is known.
Two models whose scores have a correlation of 0.8 in each class have the same area; the paired test should reject this
in 5 % of the samples. Figures are kept in ``results/interval_coverage.jsonl``, so an interrupted run goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from rocmax.metrics import bootstrap_interval, delong_interval, delong_test, partial_auc_score

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
        """Return the normalised area of the region under the curve of the population."""
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
    jobs = [(*case, n_samples) for case in (*WINDOWS, *FLOORS, *CORNERS)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the window contains")
        found, seconds = kept("interval_coverage", jobs, (lambda *_: None) if args.report else shares)
    intro = (
        f"`python -m benchmarks.metrics.interval_coverage --samples {n_samples}`: {n_samples} samples for DeLong's "
        f"interval and paired test, a quarter of them for the bootstrap ({N_RESAMPLES} resamples each); the standard "
        f"error of 95 % is {100 * np.sqrt(0.05 * 0.95 / n_samples):.1f} and "
        f"{100 * np.sqrt(0.05 * 0.95 / (n_samples / 4)):.1f} percentage points. Normal scores; the area is that of the "
        "population. Shares are in percent: samples whose interval covers the area, samples in which DeLong's test "
        "rejects the equality of two equal models at 5 %, and samples in which a curve does not enter the region, "
        "so that DeLong's interval and test do not exist. Numbers of rows in a region are expected ones, between the "
        "points where the curve enters and leaves it."
    )
    publish("interval_coverage", "Coverage of 95 % intervals of a partial AUC in narrow windows and corners", [
        running_time(seconds), intro,
        "## Below a false-positive rate", table(WINDOWS, found, n_samples),
        "## Above a true-positive rate", table(FLOORS, found, n_samples),
        "## In a corner", table(CORNERS, found, n_samples),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
