"""How often 95 % intervals of a partial AUC cover it, by the number of rows in the window or above a TPR.

``python -m benchmarks.metrics.interval_coverage [--samples 1000]`` writes benchmarks/results/interval_coverage.md.
Scores are normal, of unit variance and 1.3 apart, so that the area of every window is known.
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks._shared.results import RESULTS, markdown
from rocmax.metrics import bootstrap_interval, delong_interval

SHIFT, N_POSITIVE, N_RESAMPLES = 1.3, 300, 300
RATES = (0.01, 0.1)
IN_WINDOW = (2, 5, 10, 20, 30, 50, 100)
# Lower limit on the TPR, upper limit on the FPR.
CORNERS = ((0.8, 1.0), (0.5, 0.2))


def coverage(rate, n_negative, n_samples, rng, floor=0.0, n_positive=N_POSITIVE):
    """Share of the samples whose interval holds the true area: DeLong's on all, the bootstrap's on a quarter."""
    excess = quad(lambda f: max(norm.sf(norm.isf(f) - SHIFT) - floor, 0.0), 0, rate, limit=200)[0]
    truth, limits = excess / rate / (1 - floor), {"max_fpr": rate, "min_tpr": floor}
    y = np.repeat([0, 1], [n_negative, n_positive])
    covered = {"delong": [], "bootstrap": []}
    for i in range(n_samples):
        scores = rng.normal(size=y.size) + SHIFT * y
        try:
            low, high = delong_interval(y, scores, **limits)
        except ValueError:
            # The curve of the sample does not enter the corner.
            low, high = math.nan, math.nan
        covered["delong"].append(low <= truth <= high)
        if i % 4 == 0:
            options = {"n_resamples": N_RESAMPLES, "random_state": rng, **limits}
            low, high = bootstrap_interval("partial_auc", y, scores, **options)
            covered["bootstrap"].append(low <= truth <= high)
    return {name: np.mean(found) for name, found in covered.items()}


def percent(found):
    return [f"{100 * found[name]:.1f}" for name in ("delong", "bootstrap")]


def in_windows(n_samples, rng):
    rows = []
    for rate in RATES:
        for count in IN_WINDOW:
            n_negative = round(count / rate)
            found = coverage(rate, n_negative, n_samples, rng)
            rows.append([f"{count}", f"0 to {100 * rate:g} %", f"{n_negative:,}", *percent(found)])
    return rows


def in_corners(n_samples, rng):
    """Count with the same number of rows of both classes in the corner; 3,000 negatives if the FPR has no limit."""
    rows = []
    for floor, rate in CORNERS:
        for count in IN_WINDOW[1:]:
            n_positive = round(count / (1 - floor))
            n_negative = 3000 if rate == 1 else round(count / rate)
            found = coverage(rate, n_negative, n_samples, rng, floor, n_positive)
            region = f"TPR >= {100 * floor:g} %" + ("" if rate == 1 else f", FPR <= {100 * rate:g} %")
            rows.append([f"{count}", region, f"{n_positive:,}", f"{n_negative:,}", *percent(found)])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    n_samples = parser.parse_args().samples
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the window contains")
        windows, corners = in_windows(n_samples, rng), in_corners(n_samples, rng)
    covers = ["DeLong covers, %", "bootstrap covers, %"]
    header = ["negatives in the window", "window", "negatives", *covers]
    corner_header = ["rows of a class in the region", "region", "positives", "negatives", *covers]
    text = f"""# Coverage of 95 % intervals of a partial AUC in narrow windows

`python -m benchmarks.metrics.interval_coverage --samples {n_samples}`: {n_samples} samples for DeLong's interval, a
quarter of them for the bootstrap ({N_RESAMPLES} resamples each), {N_POSITIVE} positives, normal scores {SHIFT} apart.

{markdown(header, windows)}

Above a true-positive rate, and in a corner, with the same number of rows of each limited class in the region. A
sample whose curve does not enter the corner has no interval of DeLong and counts as not covered:

{markdown(corner_header, corners)}
"""
    (RESULTS / "interval_coverage.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
