"""Hashes of what the library computes, to show that a change of the code's structure changes no result.

``python tests/golden/golden.py make`` writes ``hashes.json`` beside this file, and ``check`` compares with it, case by
case. Hashes are of exact bits, so that ``make`` and ``check`` must run on the same machine with the same packages; the
file records them. A case is an estimator with its options on one data set (fitted attributes, traces without times,
decision values), a loss with a solver, a measure, or a command with its output and the predictions of its model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_info, threadpool_limits

import rocmax
from rocmax import losses, metrics, penalties, solvers

HERE = Path(__file__).parent
HASHES = HERE / "hashes.json"


# Data


def dense(n: int = 300, d: int = 6, *, seed: int = 0, rate: float = 0.25, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    X = rng.normal(size=(n, d)) + 0.7 * y[:, None] * rng.random(d)
    return X.astype(dtype), y, None


def tied() -> Any:
    X, y, _ = dense(seed=1)
    return np.round(X), y, None


def weighted() -> Any:
    X, y, _ = dense(seed=2)
    return X, y, np.random.default_rng(3).integers(0, 4, y.size) / 2


def words() -> Any:
    X, y, _ = dense(seed=4)
    return X, np.where(y == 1, "fraud", "ok"), None


def sparse() -> Any:
    rng = np.random.default_rng(5)
    y = (rng.random(400) < 0.3).astype(int)
    X = (rng.random((400, 40)) < 0.1) * (1 + rng.random((400, 40)) * y[:, None])
    return scipy.sparse.csr_matrix(X), y, None


def large() -> Any:
    return dense(12_000, 8, seed=6, rate=0.1)


def many() -> Any:
    """Enough rows for the accelerations of the certified solver."""
    return dense(60_000, 20, seed=9, rate=0.05)


def rare() -> Any:
    """Rare binary features beside others, which need steps on a part of the rows."""
    rng = np.random.default_rng(10)
    y = (rng.random(40_000) < 0.4).astype(int)
    rate = np.geomspace(2e-4, 0.3, 30)
    shown = rng.random((y.size, 30)) < rate * np.where(y[:, None], rng.uniform(0.5, 2.0, 30), 1.0)
    X = np.column_stack([shown, rng.standard_normal((y.size, 5)) + 0.8 * y[:, None]])
    return (X - X.mean(axis=0)) / X.std(axis=0), y, None


DATA: dict[str, Callable[[], Any]] = {
    "dense": dense,
    "float32": lambda: dense(seed=7, dtype=np.float32),
    "tied": tied,
    "weighted": weighted,
    "words": words,
    "sparse": sparse,
    "large": large,
    "many": many,
    "rare": rare,
}

# Estimators: name, options, data sets

SMALL = ("dense", "float32", "tied", "weighted", "words", "sparse")
WEIGHTLESS = ("dense", "tied", "words", "sparse")
ONLINE = ("dense", "sparse", "words")
ESTIMATORS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("AUCClassifier", {}, (*SMALL, "large")),
    ("AUCClassifier", {"C": 100.0}, ("dense", "sparse", "large", "many", "rare")),
    ("AUCClassifier", {"loss": "squared_hinge"}, SMALL),
    ("AUCClassifier", {"constraint": "l1", "radius": 1.0}, ("dense", "sparse", "weighted")),
    ("AUCClassifier", {"constraint": "l2", "radius": 1.0}, ("dense", "sparse")),
    ("AUCClassifier", {"constraint": "elasticnet", "radius": 1.0}, ("dense",)),
    ("PartialAUCClassifier", {"max_fpr": 0.1}, (*SMALL, "large")),
    ("PartialAUCClassifier", {"min_fpr": 0.05, "max_fpr": 0.3}, ("dense", "weighted", "large")),
    ("PartialAUCClassifier", {"max_fpr": 0.3, "min_tpr": 0.5}, ("dense", "large")),
    ("PartialAUCClassifier", {"max_fpr": 0.2, "loss": "tight", "C": 10.0}, (*SMALL, "large")),
    ("PartialAUCClassifier", {"max_fpr": 0.1, "loss": "tight", "C": 1e4}, ("large", "many", "rare")),
    ("PartialAUCClassifier", {"min_fpr": 0.02, "max_fpr": 0.05, "loss": "structural", "C": 100.0}, ("many",)),
    ("PartialAUCClassifier", {"max_fpr": 0.2, "loss": "tight", "solver": "cutting_plane"}, ("dense", "tied")),
    ("PartialAUCClassifier", {"max_fpr": 0.2, "loss": "structural"}, ("dense", "weighted", "sparse")),
    ("PartialAUCClassifier", {"min_fpr": 0.05, "max_fpr": 0.3, "loss": "tight"}, ("dense", "weighted")),
    ("PartialAUCClassifier", {"min_fpr": 0.05, "max_fpr": 0.3, "loss": "hinge"}, ("dense", "weighted")),
    ("PartialAUCClassifier", {"max_fpr": 0.2, "loss": "tight", "constraint": "l1", "radius": 1.0}, ("dense",)),
    ("PartialAUCClassifierCV", {"max_fpr": 0.2, "cv": 3}, ("dense", "weighted", "sparse")),
    ("PrecisionAtKClassifier", {"k": 0.2}, SMALL),
    ("PrecisionAtKClassifier", {"k": 0.2, "loss": "convex"}, ("dense", "weighted")),
    ("BreakEvenClassifier", {}, WEIGHTLESS),
    ("FBetaClassifier", {}, SMALL),
    ("FBetaClassifier", {"loss": "convex"}, ("dense", "tied")),
    ("GMeanClassifier", {}, SMALL),
    ("GMeanClassifier", {"loss": "convex"}, ("dense",)),
    ("ScoreClassifier", {}, ("dense", "sparse")),
    ("MiniBatchClassifier", {"measure": "roc_auc", "batch_size": 50, "max_iter": 3, "random_state": 0}, ONLINE),
    ("MiniBatchClassifier", {"measure": "partial_auc", "max_fpr": 0.2, "max_iter": 3, "random_state": 0}, ONLINE),
    ("MiniBatchClassifier", {"measure": "f_beta", "reservoir_size": 20, "max_iter": 2, "random_state": 0}, ONLINE),
    ("FollowTheLeaderClassifier", {"measure": "roc_auc", "n_batches": 3, "random_state": 0}, ONLINE),
    ("FollowTheLeaderClassifier", {"measure": "precision_at_k", "n_batches": 3, "random_state": 0}, ("dense",)),
    ("PSAMClassifier", {"max_iter": 3, "random_state": 0}, ONLINE),
    ("ASAMClassifier", {"max_iter": 3, "random_state": 0}, ONLINE),
    ("SOLAMClassifier", {"max_iter": 3, "random_state": 0}, ONLINE),
    ("OAMClassifier", {"C": 0.01, "random_state": 0}, ONLINE),
    ("CBRClassifier", {"random_state": 0}, ONLINE),
    ("ROCSVC", {}, ("dense", "sparse", "words")),
    ("ROCSVC", {"C": 0.01, "kernel": "linear", "reduction": "sum"}, ("dense",)),
    ("TwoNormSVC", {}, ("dense", "words")),
    ("AsymmetricSVC", {"tau": 1.0}, ("dense", "words")),
    ("RankBoostClassifier", {"n_estimators": 10}, ("dense", "words")),
    ("AUCTreeClassifier", {}, ("dense", "words")),
    ("PAUCBoostClassifier", {"n_estimators": 10}, ("dense",)),
    ("GreedyPairClassifier", {"n_steps": 5}, ("dense",)),
    ("ExactKernelMap", {}, ("dense",)),
    ("KMeansNystroem", {"n_components": 20, "random_state": 0}, ("dense",)),
    ("SplineFeatures", {}, ("dense",)),
    ("BoostedClassifier", {"n_estimators": 20, "max_leaf_nodes": 4, "n_models": 2, "cv": 2}, ("dense", "weighted")),
    ("BoostedClassifier", {"measure": "partial_auc", "max_fpr": 0.2, "cv": 2}, ("dense",)),
    ("BoostedClassifier", {"engine": "xgboost", "n_estimators": 20, "max_leaf_nodes": 4, "cv": 2}, ("dense",)),
]
THRESHOLDS: list[tuple[str, dict[str, Any]]] = [
    ("FPRThresholdClassifier", {"max_fpr": 0.2}),
    ("FPRThresholdClassifier", {"max_fpr": 0.2, "confidence": 0.9}),
    ("FPRThresholdClassifier", {"max_fpr": 0.2, "cv": 3}),
    ("TPRThresholdClassifier", {"min_tpr": 0.7}),
    ("TPRThresholdClassifier", {"min_tpr": 0.6, "confidence": 0.9}),
]
LOSSES: list[Any] = [
    losses.PairwiseHinge(),
    losses.PairwiseSquaredHinge(),
    losses.PartialAUCTight(0.0, 0.2),
    losses.PartialAUCTight(0.05, 0.2),
    losses.PartialAUCStructural(0.0, 0.2),
    losses.PartialAUCHinge(0.0, 0.2),
    losses.PartialAUCRamp(0.0, 0.2),
    losses.PrecisionAtK(0.2),
    losses.BreakEven(),
    losses.FBeta(),
    losses.GMean(),
    losses.WindowPairs(min_fpr=0.0, max_fpr=0.2),
]
MEASURES: list[tuple[str, dict[str, Any]]] = [
    ("partial_auc_score", {"max_fpr": 0.2}),
    ("partial_auc_score", {"min_fpr": 0.05, "max_fpr": 0.2}),
    ("partial_auc_score", {"min_tpr": 0.5, "max_fpr": 0.3}),
    ("tpr_at_fpr", {"max_fpr": 0.1}),
    ("fpr_at_tpr", {"min_tpr": 0.8}),
    ("precision_at_k", {"k": 30}),
    ("break_even_point", {}),
]


def digest(value: Any) -> str:
    """Return a hash of the exact bits of arrays, numbers and text in any nesting."""
    found = hashlib.sha256()
    for part in flat(value):
        found.update(part)
        found.update(b"|")
    return found.hexdigest()[:16]


def flat(value: Any) -> Iterator[bytes]:
    if scipy.sparse.issparse(value):
        yield from flat([value.shape, value.indptr, value.indices, value.data])
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype.kind}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes() if value.dtype.kind != "U" else "\0".join(map(str, value)).encode()
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield str(key).encode()
            yield from flat(value[key])
    elif hasattr(value, "_asdict"):
        yield from flat({key: held for key, held in value._asdict().items() if "time" not in key})
    elif isinstance(value, list | tuple | np.ndarray):
        yield str(len(value)).encode()
        for item in value:
            yield from flat(item)
    elif isinstance(value, bool | np.bool_ | int | np.integer | str | type(None)):
        yield str(value).encode()
    elif isinstance(value, float | np.floating):
        yield np.float64(value).tobytes()
    elif hasattr(value, "get_params"):
        yield from flat(fitted(value))
    elif hasattr(value, "__dict__"):
        yield from flat(vars(value))
    else:
        yield type(value).__name__.encode()


def fitted(model: Any) -> dict[str, Any]:
    """Return the fitted attributes of an estimator, those of a wrapped estimator included."""
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and "time" not in name and name != "cv_results_"
    }


def find(name: str) -> Any:
    return getattr(rocmax, name, None) or getattr(rocmax.papers, name)


def cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the name of each case and a function that computes its results."""
    for name, options, sets in ESTIMATORS:
        for data in sets:
            yield f"{name}({shown(options)}) on {data}", lambda n=name, o=options, d=data: estimator(n, o, d)
    for name, options in THRESHOLDS:
        for data in ("dense", "words"):
            yield f"{name}({shown(options)}) on {data}", lambda n=name, o=options, d=data: threshold(n, o, d)
    for loss in LOSSES:
        for data in ("dense", "weighted"):
            yield f"{loss!r} on {data}", lambda one=loss, d=data: bound(one, d)
    for loss in LOSSES[:6]:
        for ball in (penalties.SquaredL2(10.0), penalties.L1Ball(1.0)):
            yield f"{loss!r} with {ball!r}", lambda one=loss, b=ball: solved(one, b)
    for name, options in MEASURES:
        for data in ("dense", "weighted", "words"):
            yield f"{name}({shown(options)}) on {data}", lambda n=name, o=options, d=data: measured(n, o, d)
    yield "bootstrap_interval", lambda: intervals("bootstrap_interval", n_resamples=200, random_state=0)
    yield "delong_interval", lambda: intervals("delong_interval")
    yield "partial_auc_path", path
    for model in ("linear", "additive", "boosted"):
        yield f"rocmax fit --model {model}", lambda m=model: command_line(m)


def shown(options: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in options.items())


def rows(name: str, estimator: Any = None) -> tuple[Any, Any, dict[str, Any]]:
    X, y, weight = DATA[name]()
    return X, y, {} if weight is None else {"sample_weight": weight}


def estimator(name: str, options: dict[str, Any], data: str) -> dict[str, Any]:
    X, y, weight = rows(data)
    kind = find(name)
    more = {"pos_label": "fraud"} if data == "words" and "pos_label" in kind().get_params() else {}
    if name == "BoostedClassifier":
        more |= {"n_jobs": 1, "random_state": 0}
    model = kind(**options, **more).fit(X, y, **weight)
    return fitted(model) | {"output": output(model, X)}


def output(model: Any, X: Any) -> Any:
    return model.decision_function(X) if hasattr(model, "decision_function") else model.transform(X)


def threshold(name: str, options: dict[str, Any], data: str) -> dict[str, Any]:
    X, y, _ = rows(data)
    positive = {"pos_label": "fraud"} if data == "words" else {}
    model = find(name)(rocmax.AUCClassifier(**positive), **options, random_state=0).fit(X, y)
    return fitted(model) | {"labels": model.predict(X)}


def bound(loss: Any, data: str) -> dict[str, Any]:
    X, y, weight = rows(data)
    weight = weight.get("sample_weight")
    if weight is not None:
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    made = loss.bind(y == 1, weight)
    value, gradient = made.value_and_gradient(X.sum(axis=1))
    return {"value": value, "gradient": gradient}


def solved(loss: Any, penalty: Any) -> dict[str, Any]:
    X, y, _ = dense()
    made = loss.bind(y == 1)
    result = solvers.choose_solver(made, penalty).solve(rocmax.operators.as_operator(X), made, penalty)
    return result._asdict() if hasattr(result, "_asdict") else vars(result)


def measured(name: str, options: dict[str, Any], data: str) -> dict[str, Any]:
    X, y, weight = rows(data)
    positive = {"pos_label": "fraud"} if data == "words" else {}
    return {"value": getattr(metrics, name)(y, X.sum(axis=1), **options, **weight, **positive)}


def intervals(name: str, **options: Any) -> dict[str, Any]:
    X, y, _ = dense()
    first = ("partial_auc",) if name.startswith("bootstrap") else ()
    return {"value": getattr(metrics, name)(*first, y, X.sum(axis=1), max_fpr=0.3, **options)}


def path() -> dict[str, Any]:
    X, y, _ = dense()
    found = rocmax.partial_auc_path(X, y, max_fpr=0.2, constraint="l1", n_radii=5)
    return {name: value for name, value in vars(found).items() if "time" not in name}


def command_line(model: str) -> dict[str, Any]:
    """Fit, evaluate and predict on the command line; return what it prints and the predictions."""
    import contextlib
    import io

    import pandas as pd
    from typer.testing import CliRunner

    X, y, _ = dense(600, 4, seed=8)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["kind"] = np.where(X[:, 0] > 0, "left", "right")
    frame["label"] = np.where(y == 1, "fraud", "ok")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()):
        frame.to_csv("table.csv", index=False)
        commands = {
            "fit": f"fit table.csv --target label --positive fraud --max-fpr 0.2 --model {model} --out model.rocmax",
            "evaluate": "evaluate model.rocmax table.csv",
            "predict": "predict model.rocmax table.csv --out predictions.csv",
        }
        for name, line in commands.items():
            done = CliRunner().invoke(command(), line.split())
            if done.exit_code != 0:
                raise RuntimeError(f"rocmax {line}: exit code {done.exit_code}: {done.output}")
            found[name] = re.sub(r"\d+(\.\d+)? ?(s|seconds|minutes)\b", "TIME", done.output)
        found["predictions"] = Path("predictions.csv").read_text()
    return found


def command() -> Any:
    """Return the command line, wherever the present layout has it."""
    try:
        from rocmax.cli.app import app
    except ImportError:
        from rocmax.cli.app import app
    return app


def computed(pattern: str) -> dict[str, dict[str, str]]:
    found = {}
    for name, run in cases():
        if re.search(pattern, name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = {key: digest(value) for key, value in run().items()}
    return found


def machine() -> dict[str, str]:
    import sklearn

    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    # Sums of products depend on the kernels that BLAS has chosen for the processor.
    kernels = sorted({each["architecture"] for each in threadpool_info() if "architecture" in each})
    found = {"machine": platform.machine(), "blas": ", ".join(kernels)}
    return {**found, **versions, "sklearn": sklearn.__version__}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["make", "check"])
    parser.add_argument("--cases", default="", help="regular expression: only the cases whose names match it")
    parser.add_argument("--file", type=Path, default=HASHES, help="the file of hashes")
    options = parser.parse_args()
    # One thread: the order of sums in parallel is not fixed. The variable is read by libraries that are loaded later.
    os.environ["OMP_NUM_THREADS"] = "1"
    with threadpool_limits(1):
        found = computed(options.cases)
    if options.action == "make":
        stored = json.loads(options.file.read_text())["cases"] if options.cases else {}
        others = {name: case for name, case in stored.items() if not re.search(options.cases, name)}
        made = {name: found.get(name, others.get(name)) for name in {**stored, **found} if name in {**found, **others}}
        options.file.write_text(json.dumps({"made with": machine(), "cases": made}, indent=1) + "\n")
        print(f"{len(found)} cases written to {options.file}")
        return 0
    stored = json.loads(options.file.read_text())
    if stored["made with"] != machine():
        print(f"made with {stored['made with']}, and this is {machine()}: bits may differ")
    expected = {name: case for name, case in stored["cases"].items() if re.search(options.cases, name)}
    different = []
    for name in sorted({*expected, *found}):
        if name not in found or name not in expected:
            different.append(f"{name}: {'missing' if name not in found else 'new'}")
        elif keys := sorted(k for k in expected[name] if found[name].get(k) != expected[name][k]):
            different.append(f"{name}: {', '.join(keys)}")
    print("\n".join(different) or "no difference")
    print(f"{len(found) - len(different)} of {len(expected)} cases are the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
