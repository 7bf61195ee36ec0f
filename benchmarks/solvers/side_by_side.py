"""Time of fits in this checkout and in another one, in turns.

``python -m benchmarks.solvers.side_by_side OTHER_CHECKOUT [--repeats 5]`` starts a process for each of the two
source trees,
alternates between them and prints the least CPU time of each fit and the ratio. Both must know the fits below.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks._shared.results import markdown

# Runs in each source tree: one line of JSON, the CPU seconds of each fit. The first fit of a kind loads and compiles.
PROGRAM = """
import json, time, warnings
import numpy as np
from sklearn.datasets import make_classification
import rocmax
warnings.simplefilter("ignore")
X, y = make_classification(30000, 30, n_informative=10, weights=[0.95], class_sep=0.8, random_state=0)
small, labels = X[:1500], y[:1500]
fits = {
    "AUCClassifier(C=100)": (rocmax.AUCClassifier(C=100.0), X, y),
    "PartialAUCClassifier(max_fpr=0.05)": (rocmax.PartialAUCClassifier(max_fpr=0.05), X, y),
    "PartialAUCClassifier, tight": (rocmax.PartialAUCClassifier(max_fpr=0.05, loss="tight", C=100.0), X, y),
    "PartialAUCClassifierCV, 3 folds": (rocmax.PartialAUCClassifierCV(max_fpr=0.05, cv=3), X[:5000], y[:5000]),
    "FBetaClassifier": (rocmax.FBetaClassifier(), X, y),
    "FBetaClassifier, convex": (rocmax.FBetaClassifier(loss="convex"), X, y),
    "MiniBatchClassifier": (rocmax.MiniBatchClassifier(random_state=0), X, y),
    "FollowTheLeaderClassifier": (rocmax.FollowTheLeaderClassifier(random_state=0), X, y),
    "PSAMClassifier": (rocmax.PSAMClassifier(random_state=0), X, y),
    "ROCSVC": (rocmax.ROCSVC(C=0.001, reduction="sum"), small, labels),
}
seconds = {}
for name, (model, rows, target) in fits.items():
    for _ in range(2):
        start = time.process_time()
        model.fit(rows, target)
        seconds[name] = time.process_time() - start
print(json.dumps(seconds))
"""


def seconds(checkout: Path) -> dict[str, float]:
    """Return the CPU seconds of each fit with the sources of a checkout."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    env = {**os.environ, **threads, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    times: dict[str, float] = json.loads(done.stdout)
    return times


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(argv)
    checkouts = {"other": args.other.resolve(), "this": Path(__file__).resolve().parents[2]}
    best: dict[str, dict[str, float]] = {name: {} for name in checkouts}
    for _ in range(args.repeats):
        for name, checkout in checkouts.items():
            for fit, time in seconds(checkout).items():
                best[name][fit] = min(time, best[name].get(fit, float("inf")))
    rows = [
        [fit, f"{before:.3f}", f"{best['this'][fit]:.3f}", f"{best['this'][fit] / before:.2f}"]
        for fit, before in best["other"].items()
    ]
    print(markdown(["fit", "other, CPU s", "this, CPU s", "ratio"], rows))


if __name__ == "__main__":
    main()
