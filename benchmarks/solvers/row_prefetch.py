"""What asking for rows ahead of their use saves: the compiled loops next to copies of them without it.

CPU time of as many steps as there are rows, the calls take turns, the least of several repeats; read the ratios.
``--quick`` uses fewer rows and leaves the real sets out.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks._shared.results import interleaved, markdown, publish
from benchmarks.solvers.stochastic_speed import ALPHA, SKIP, T0, load, problem
from rocmax.online import loops
from rocmax.online.loops import loop_form
from rocmax.online.sampling import uniform_pairs

# Calls of fetch in pair_steps (a positive and a negative) and in saddle_steps.
CALLS = 3


def without_fetch(directory: str) -> ModuleType:
    """Return the module of the loops with the calls of ``fetch`` taken out, compiled from a copy of its file."""
    source, removed = re.subn(r"(?m)^ +fetch\(X, .*\n", "", Path(str(loops.__file__)).read_text())
    if removed != CALLS:
        raise RuntimeError(f"expected {CALLS} calls of fetch in the loops; found {removed}")
    path = Path(directory) / "loops_without_fetch.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("loops_without_fetch", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def steps(module: ModuleType, X: Any, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return calls that take one step per row: of PSAM on random pairs, of SOLAM on single rows in random order."""
    form, d, rng = loop_form(X), X.shape[1], np.random.default_rng(0)
    first, second = uniform_pairs(np.flatnonzero(y == 1), np.flatnonzero(y != 1), y.size, rng)
    positive, rows, state = y == 1, rng.permutation(y.size), (0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def pairs() -> None:
        v, u, work = np.zeros(d), np.zeros(d), np.zeros(d)
        module.pair_steps(form, first, second, v, u, work, (0, 1.0, 0.0, 0), (ALPHA, T0, SKIP, SKIP, 0.0, True))

    def saddle() -> None:
        module.saddle_steps(form, positive, rows, np.zeros(d), np.zeros(d), state, 1.0 / d, 1.0)

    return {"PSAM": pairs, "SOLAM": saddle}


def compare(plain: ModuleType, name: str, X: Any, y: np.ndarray, repeats: int) -> list[list[str]]:
    """Return a line of the table for each method."""
    calls: dict[Any, Callable[[], Any]] = {}
    for key, module in (("with", loops), ("without", plain)):
        for method, call in steps(module, X, y).items():
            calls[method, key] = call
            call()
    best = interleaved(calls, repeats)
    size = f"{X.shape[0]} x {X.shape[1]}, {'CSR' if sparse.issparse(X) else 'dense'}"
    lines = []
    for method in ("PSAM", "SOLAM"):
        nanoseconds = [1e9 * best[method, key] / y.size for key in ("with", "without")]
        ratio = nanoseconds[0] / nanoseconds[1]
        lines.append([name, size, method, *(f"{value:.0f}" for value in nanoseconds), f"{ratio:.2f}"])
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Run the comparison and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(arguments).quick
    sets = {f"synthetic, {kind}": problem(20_000 if quick else 200_000, kind) for kind in ("dense", "csr")}
    if not quick:
        sets |= {f"synthetic, small, {kind}": problem(5_000, kind) for kind in ("dense", "csr")}
        sets |= {name: loaded for name in ("a9a", "covtype") if (loaded := load(name)) is not None}
    with threadpool_limits(1), tempfile.TemporaryDirectory() as directory:
        plain = without_fetch(directory)
        rows = [line for name, (X, y) in sets.items() for line in compare(plain, name, X, y, 3 if quick else 15)]
    header = ["set", "rows x features", "method", "ns a step", "without fetching ahead", "ratio"]
    table = markdown(header, rows)
    print(table)
    publish("row_prefetch", "Rows asked for ahead of their use", [table], quick)


if __name__ == "__main__":
    main()
