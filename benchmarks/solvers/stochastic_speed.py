"""What steps on pairs cost: next to a bare compiled loop, and to an epoch of scikit-learn's SGDClassifier.

CPU time, the calls take turns, the least of several repeats; read the ratios. ``--quick`` uses fewer steps and leaves
the real sets out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory
from benchmarks._shared.results import interleaved, markdown, publish
from rocmax import PSAMClassifier
from rocmax.online.sampling import uniform_pairs

ALPHA, T0, SKIP = 1e-4, 100.0, 16
EPOCHS = (1, 6)

FIRST_USE = """
import time
import numpy as np
from rocmax import PSAMClassifier
X = np.random.default_rng(0).standard_normal((200, 5))
y = (X[:, 0] > 0).astype(int)
times = []
for _ in range(2):
    start = time.process_time()
    PSAMClassifier(random_state=0).fit(X, y)
    times.append(time.process_time() - start)
print(times[0] - times[1])
"""


@njit(fastmath={"reassoc", "contract", "nsz"})
def bare_dense(X, first, second, w, total):
    """Run PSAM in the plainest way: weights and their sum as arrays, shrunk and added up every 16 steps."""
    for t in range(1, first.size + 1):
        a, b = X[first[t - 1]], X[second[t - 1]]
        inner = squared = 0.0
        for k in range(w.size):
            value = a[k] - b[k]
            inner += w[k] * value
            squared += value * value
        if inner < 1.0 and squared > 0.0:
            step = min(1.0 / (ALPHA * (t + T0)), (1.0 - inner) / squared)
            for k in range(w.size):
                w[k] += step * (a[k] - b[k])
        if t % SKIP == 0:
            for k in range(w.size):
                w[k] *= 1.0 - SKIP / (t + T0)
                total[k] += w[k]


@njit(fastmath={"reassoc", "contract", "nsz"})
def bare_csr(data, indices, indptr, first, second, v, u, work):
    """Do the same on CSR rows: weights scale * v, sum of iterates weight * v - u."""
    scale, weight = 1.0, 0.0
    for t in range(1, first.size + 1):
        i, j = first[t - 1], second[t - 1]
        inner = squared = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            inner += v[indices[k]] * data[k]
        for k in range(indptr[j], indptr[j + 1]):
            inner -= v[indices[k]] * data[k]
        if scale * inner < 1.0:
            for k in range(indptr[i], indptr[i + 1]):
                work[indices[k]] = data[k]
            for k in range(indptr[j], indptr[j + 1]):
                squared += (work[indices[k]] - data[k]) ** 2
                work[indices[k]] = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                squared += work[indices[k]] ** 2
                work[indices[k]] = 0.0
            if squared > 0.0:
                step = min(1.0 / (ALPHA * (t + T0)), (1.0 - scale * inner) / squared) / scale
                for k in range(indptr[i], indptr[i + 1]):
                    v[indices[k]] += step * data[k]
                    u[indices[k]] += step * weight * data[k]
                for k in range(indptr[j], indptr[j + 1]):
                    v[indices[k]] -= step * data[k]
                    u[indices[k]] -= step * weight * data[k]
        if t % SKIP == 0:
            scale *= 1.0 - SKIP / (t + T0)
            weight += scale


def problem(n_rows: int, kind: str) -> tuple[Any, np.ndarray]:
    """Return rows (dense with 50 features, or CSR with 15 of 1000) and labels that a tenth of the pairs contradicts."""
    rng = np.random.default_rng(0)
    if kind == "dense":
        X = rng.standard_normal((n_rows, 50))
    else:
        indices = np.argsort(rng.random((n_rows, 1000)), axis=1)[:, :15] if n_rows <= 20_000 else None
        if indices is None:
            indices = np.sort(rng.integers(0, 66, (n_rows, 15)) + 66 * np.arange(15), axis=1)
        X = sparse.csr_matrix(
            (rng.standard_normal(indices.size), np.sort(indices, axis=1).ravel(), np.arange(0, indices.size + 1, 15)),
            shape=(n_rows, 1000),
        )
    signal = X @ rng.standard_normal(X.shape[1])
    noise = rng.standard_normal(n_rows) * signal.std() / 2
    return X, (signal + noise > np.quantile(signal, 0.8)).astype(int)


def model(epochs: int) -> PSAMClassifier:
    return PSAMClassifier(ALPHA, t0=T0, rskip=SKIP, askip=SKIP, max_iter=epochs, random_state=0)


def bare_run(X: Any, y: np.ndarray, epochs: int) -> Callable[[], None]:
    """Return a call that draws the pairs of some epochs and runs the bare loop on them."""
    positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y != 1)
    d = X.shape[1]

    def call() -> None:
        first, second = uniform_pairs(positives, negatives, epochs * y.size, np.random.default_rng(0))
        if sparse.issparse(X):
            bare_csr(X.data, X.indices, X.indptr, first, second, np.zeros(d), np.zeros(d), np.zeros(d))
        else:
            bare_dense(X, first, second, np.zeros(d), np.zeros(d))

    return call


def pair_rates(n_rows: int, repeats: int) -> str:
    """Compare an epoch of a fit, from fits of two lengths, with one of the bare loop, found in the same way."""
    rows = []
    for kind, name in (("dense", "dense, d = 50"), ("csr", "CSR, 15 non-zeros of 1000")):
        X, y = problem(n_rows, kind)
        calls: dict[Any, Callable[[], Any]] = {}
        for e in EPOCHS:
            calls["bare", e] = bare_run(X, y, e)
            calls["psam", e] = lambda e=e, X=X, y=y: model(e).fit(X, y)
        for call in calls.values():
            call()
        best = interleaved(calls, repeats)
        cost = {k: (best[k, EPOCHS[1]] - best[k, EPOCHS[0]]) / (EPOCHS[1] - EPOCHS[0]) for k in ("psam", "bare")}
        rates = [f"{n_rows / cost[k] / 1e6:.1f}" for k in ("psam", "bare")]
        ratio = cost["psam"] / cost["bare"]
        rows.append([name, *rates, f"{ratio:.2f}", "yes" if ratio <= 1.5 else "**no**"])
    return markdown(["rows", "PSAM, 1e6 pairs/s", "bare loop, 1e6 pairs/s", "time, PSAM / bare", "within 1.5"], rows)


def load(name: str) -> tuple[Any, np.ndarray] | None:
    """Return a9a as CSR or covtype as a standardized array, or None if the file is absent."""
    path = data_directory() / f"{name}.npz"
    if not path.exists():
        print(f"skipped {name}: no {path.name} in the data directory (set ROCMAX_DATA)")
        return None
    with np.load(path) as z:
        if "X" in z.files:
            X = z["X"].astype(np.float64)
            return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), z["y_psam"].astype(int)
        parts = (z["data"].astype(np.float64), z["indices"], z["indptr"])
        return sparse.csr_matrix(parts, shape=tuple(z["shape"])), z["y"].astype(int)


def against_sgd(repeats: int) -> str:
    """Compare an epoch of PSAM with an epoch of SGDClassifier: within a long fit, and a fit of one epoch."""
    rows = []
    for name in ("a9a", "covtype"):
        loaded = load(name)
        if loaded is None:
            continue
        X, y = loaded
        calls: dict[Any, Callable[[], Any]] = {}
        for e in EPOCHS:
            sgd = SGDClassifier(loss="hinge", max_iter=e, tol=None, random_state=0)
            calls["sgd", e] = lambda sgd=sgd, X=X, y=y: sgd.fit(X, y)
            calls["psam", e] = lambda e=e, X=X, y=y: model(e).fit(X, y)
        best = interleaved(calls, repeats)
        for what, cost in (
            ("one epoch more", {k: (best[k, EPOCHS[1]] - best[k, EPOCHS[0]]) / 5 for k in ("psam", "sgd")}),
            ("fit of one epoch", {k: best[k, 1] for k in ("psam", "sgd")}),
        ):
            ratio = cost["psam"] / cost["sgd"]
            times = [f"{1e3 * cost[k]:.1f}" for k in ("psam", "sgd")]
            kind = "CSR" if sparse.issparse(X) else "dense"
            rows.append([f"{name}, {kind}", what, *times, f"{ratio:.2f}", "yes" if ratio <= 1 else "**no**"])
    return markdown(["set", "what", "PSAM, ms", "SGDClassifier, ms", "ratio", "at most 1"], rows)


def first_use() -> str:
    """Measure what the first fit of a process costs beyond the second, with an empty and with a warm cache."""
    with tempfile.TemporaryDirectory() as directory:
        times = []
        for _ in range(4):
            environment = {**os.environ, "NUMBA_CACHE_DIR": directory}
            run = subprocess.run(
                [sys.executable, "-c", FIRST_USE], env=environment, capture_output=True, text=True, check=True
            )
            times.append(float(run.stdout))
    rows = [["empty cache", f"{times[0]:.2f}"], ["warm cache", f"{min(times[1:]):.2f}"]]
    return markdown(["first fit of a process, beyond the second", "s, CPU"], rows)


def main(arguments: list[str] | None = None) -> None:
    """Run all comparisons and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(arguments).quick
    start = time.perf_counter()
    with threadpool_limits(1):
        sections = ["## Pairs a second", pair_rates(20_000 if quick else 200_000, 3 if quick else 15)]
        if not quick:
            sections += ["## An epoch next to SGDClassifier", against_sgd(15)]
        sections += ["## First use", first_use()]
    print("\n\n".join(sections))
    print(f"{time.perf_counter() - start:.0f} s")
    publish("stochastic_speed", "Speed of steps on pairs", sections, quick)


if __name__ == "__main__":
    main()
