"""Fits on a file that is four times larger than the memory limit of the process.

The file is written first and removed at the end. The fit runs in a process of its own whose private memory is limited
with ``resource.setrlimit(RLIMIT_DATA)``, so the script needs Linux. The limit includes the interpreter and all
libraries. For comparison, the rows are also fitted in memory, without a limit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._shared.results import markdown, publish
from rocmax import AUCClassifier

FIT = """
import json, re, resource, sys, time
import numpy as np
from scipy.linalg import cho_factor
from rocmax import AUCClassifier
from rocmax.data import RowStore
np.ones((300, 300), dtype=np.float32) @ np.ones((300, 300), dtype=np.float32)
cho_factor(np.eye(300))
folder, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
store = RowStore(folder + "/X.npy", folder + "/y.npy", max_memory="32MB")
began, cpu = time.perf_counter(), time.process_time()
model = AUCClassifier(C=10.0).fit_files(store, standardize=False)
print(json.dumps({
    "seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "passes": model.trace_[-1].passes,
    "objective": model.objective_, "gap": model.dual_gap_,
    "rss": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024 / 1e6,
}))
"""


def main(arguments: list[str] | None = None) -> None:
    """Write the rows, fit with and without the limit, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=400, help="memory limit of the process in MB")
    parser.add_argument("--features", type=int, default=100)
    options = parser.parse_args(arguments)
    limit, d = 10**6 * options.limit, options.features
    n = 4 * limit // (4 * d) + 1
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.1
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "y.npy"), y)
        X = np.lib.format.open_memmap(Path(folder, "X.npy"), "w+", np.float32, (n, d))
        for start in range(0, n, 100_000):
            part = rng.standard_normal((min(100_000, n - start), d), dtype=np.float32)
            part[:, 0] += 1.5 * y[start : start + 100_000]
            X[start : start + 100_000] = part
        X.flush()
        done = subprocess.run(
            [sys.executable, "-c", FIT, folder, str(limit)], check=True, capture_output=True, text=True
        )
        limited = json.loads(done.stdout)
        in_memory = np.array(X)
        began, cpu = time.perf_counter(), time.process_time()
        model = AUCClassifier(C=10.0).fit(in_memory, y)
        free = {
            "seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "passes": model.trace_[-1].passes,
            "objective": model.objective_, "gap": model.dual_gap_, "rss": float("nan"),
        }  # fmt: skip
    lines = [
        [name, str(fit["passes"]), f"{fit['objective']:.6f}", f"{fit['gap']:.1e}", f"{fit['seconds']:.1f}",
         f"{fit['cpu']:.1f}", f"{fit['rss']:.0f}" if np.isfinite(fit["rss"]) else ""]
        for name, fit in ((f"chunks, limit of {options.limit} MB", limited), ("in memory", free))
    ]  # fmt: skip
    head = ["AUCClassifier(C=10)", "passes", "objective", "gap", "s", "CPU s", "peak resident MB"]
    sections = [f"{n:,} rows of {d} float32 features, {4 * n * d / 1e6:,.0f} MB.", markdown(head, lines)]
    print("\n\n".join(sections))
    publish("out_of_core", "A file four times larger than the memory limit", sections)


if __name__ == "__main__":
    main()
