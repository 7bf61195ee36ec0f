"""How often 95 % intervals of a partial AUC cover it, by the number of negatives in the window.

``python -m benchmarks.metrics.interval_coverage [--samples 1000]`` writes benchmarks/results/interval_coverage.md.
Scores are normal, of unit variance and 1.3 apart, so that the area of every window is known.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks._shared.results import RESULTS, markdown
from rocmax.metrics import bootstrap_interval, delong_interval

SHIFT, N_POSITIVE, N_RESAMPLES = 1.3, 300, 300
RATES = (0.01, 0.1)
IN_WINDOW = (2, 5, 10, 20, 30, 50, 100)


def coverage(rate, n_negative, n_samples, rng):
    """Share of the samples whose interval holds the true area: DeLong's on all, the bootstrap's on a quarter."""
    truth = quad(lambda f: norm.sf(norm.isf(f) - SHIFT), 0, rate)[0] / rate
    y = np.repeat([0, 1], [n_negative, N_POSITIVE])
    covered = {"delong": [], "bootstrap": []}
    for i in range(n_samples):
        scores = rng.normal(size=y.size) + SHIFT * y
        low, high = delong_interval(y, scores, max_fpr=rate)
        covered["delong"].append(low <= truth <= high)
        if i % 4 == 0:
            options = {"n_resamples": N_RESAMPLES, "random_state": rng, "max_fpr": rate}
            low, high = bootstrap_interval("partial_auc", y, scores, **options)
            covered["bootstrap"].append(low <= truth <= high)
    return {name: np.mean(found) for name, found in covered.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    n_samples = parser.parse_args().samples
    rng = np.random.default_rng(0)
    rows = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the window contains")
        for rate in RATES:
            for count in IN_WINDOW:
                n_negative = round(count / rate)
                found = coverage(rate, n_negative, n_samples, rng)
                shares = [f"{100 * found[name]:.1f}" for name in ("delong", "bootstrap")]
                rows.append([f"{count}", f"0 to {100 * rate:g} %", f"{n_negative:,}", *shares])
    header = ["negatives in the window", "window", "negatives", "DeLong covers, %", "bootstrap covers, %"]
    text = f"""# Coverage of 95 % intervals of a partial AUC in narrow windows

`python -m benchmarks.metrics.interval_coverage --samples {n_samples}`: {n_samples} samples for DeLong's interval, a
quarter of them for the bootstrap ({N_RESAMPLES} resamples each), {N_POSITIVE} positives, normal scores {SHIFT} apart.

{markdown(header, rows)}
"""
    (RESULTS / "interval_coverage.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
