"""Public names say that they live in the public module, and pickles, model files and examples go by that."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression

import rocmax
from helpers.extras import can_be_imported
from rocmax.model_io import ModelFileError

ROOT = Path(rocmax.__file__).parent
FILES = Path(__file__).parent / "files"
# Public packages; a name of several is listed under the last of them that is its home.
PACKAGES = [
    "rocmax",
    "rocmax.costs",
    "rocmax.data",
    "rocmax.displays",
    "rocmax.explain",
    "rocmax.losses",
    "rocmax.measures",
    "rocmax.metrics",
    "rocmax.monitor",
    "rocmax.operators",
    "rocmax.papers",
    "rocmax.penalties",
    "rocmax.solvers",
    "rocmax.tables",
]


def public_objects():
    """Return every public class and function of rocmax's own, by its public path."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("rocmax"):
                found[f"{package}.{name}"] = value
    return found


PUBLIC = public_objects()


def test_a_public_name_carries_a_public_module():
    for path, value in PUBLIC.items():
        assert value.__module__ in PACKAGES, path
        assert f"{value.__module__}.{value.__qualname__}" in PUBLIC, path
        assert getattr(importlib.import_module(value.__module__), value.__name__) is value, path
        assert pickle.loads(pickle.dumps(value)) is value, path


def test_homes():
    assert rocmax.PartialAUCClassifier.__module__ == "rocmax"
    assert rocmax.KMeansNystroem.__module__ == "rocmax"
    assert rocmax.save.__module__ == rocmax.compare.__module__ == rocmax.partial_auc_path.__module__ == "rocmax"
    assert rocmax.losses.PairwiseHinge.__module__ == "rocmax.losses"
    assert rocmax.solvers.Result.__module__ == "rocmax.solvers"
    assert rocmax.metrics.partial_auc_score.__module__ == "rocmax.metrics"
    assert rocmax.metrics.roc_auc_score.__module__.startswith("sklearn")
    assert rocmax.displays.PartialAUCPathDisplay.__module__ == "rocmax.displays"
    assert rocmax.data.DataError.__module__ == "rocmax.data"
    assert repr(rocmax.losses.FBeta) == "<class 'rocmax.losses.FBeta'>"


def run(code, *args):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_a_pickle_is_read_by_a_fresh_process(tmp_path):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    model = rocmax.ScoreClassifier(rocmax.losses.PartialAUCTight(0.0, 0.5)).fit(X, y)
    (tmp_path / "m.pickle").write_bytes(pickle.dumps((model, rocmax.load, rocmax.solvers.SmoothedNewton)))
    code = """if True:
        import pickle, sys
        model, load, solver = pickle.load(open(sys.argv[1], "rb"))
        print(type(model).__module__, load.__module__, solver.__module__, model.predict([[0.0], [3.0]]).tolist())
    """
    assert run(code, tmp_path / "m.pickle") == "rocmax rocmax rocmax.solvers [0, 1]\n"


@pytest.mark.slow
def test_workers_of_joblib_find_the_classes():
    code = """if True:
        import numpy as np, rocmax
        from joblib import Parallel, delayed
        X, y = np.arange(8.0)[:, None], np.arange(8) > 3
        models = [rocmax.AUCClassifier(C=C) for C in (1.0, 2.0)]
        fitted = Parallel(n_jobs=2)(delayed(type(model).fit)(model, X, y) for model in models)
        print([type(model).__name__ for model in fitted])
    """
    assert run(code) == "['AUCClassifier', 'AUCClassifier']\n"


# What model files hold

ESTIMATORS = [
    value
    for value in PUBLIC.values()
    if inspect.isclass(value) and issubclass(value, BaseEstimator) and not issubclass(value, MetaEstimatorMixin)
]


def rows():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3 == 0
    return rng.normal(size=(120, 4)) + y[:, None], y


def stored_types(model):
    return [name for name in skops.io.get_untrusted_types(data=skops.io.dumps(model)) if name.startswith("rocmax")]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_model_files_name_public_modules_only(kind):
    X, y = rows()
    models = [kind().fit(X, y)]
    if hasattr(kind, "partial_fit"):
        models.append(kind().partial_fit(X, y, classes=[False, True]))
    homes = {*PACKAGES, "rocmax.boosted", "rocmax.ensemble", "rocmax.kernel", "rocmax.online", "rocmax.papers"}
    for model in models:
        names = stored_types(model)
        assert f"{kind.__module__}.{kind.__name__}" in names
        assert {name.rpartition(".")[0] for name in names} <= homes


@pytest.mark.parametrize("kind", [rocmax.FPRThresholdClassifier, rocmax.TPRThresholdClassifier])
def test_wrapped_estimators_are_stored_by_public_names(kind):
    model = kind(LogisticRegression(), 0.2, cv=2).fit(*rows())
    assert stored_types(model) == [f"rocmax.{kind.__name__}"]


def test_a_file_of_the_first_format_is_refused_with_both_numbers():
    # Written before classes were stored by their public names.
    with pytest.raises(ModelFileError, match=r"in file format 1; .* reads format 3; fit the model again"):
        rocmax.load(FILES / "partial_auc_format_1.rocmax")


# Examples in docstrings: doctest looks for an object in the module that it names, not in the file that defines it.


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("rocmax", *parts)).removesuffix(".__init__")


def definitions_with_examples():
    """Return the place of every docstring with an example, from the source."""
    found = set()
    for path in ROOT.rglob("*.py"):
        if not can_be_imported(module_name(path)):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and ">>>" in (ast.get_docstring(node) or ""):
                found.add((path.relative_to(ROOT).as_posix(), node.name))
    return found


def found_by_pytest():
    """Return the names whose examples ``--doctest-modules`` finds, in the file or in the package that is their home."""
    names = set()
    for path in ROOT.rglob("*.py"):
        if path.name == "__main__.py" or not can_be_imported(module_name(path)):
            continue
        module = importlib.import_module(module_name(path))
        names |= {test.name.rpartition(".")[2] for test in doctest.DocTestFinder().find(module) if test.examples}
    return names


# What rocmax itself exports, and imports when it is asked for.
LATE = sorted(
    (value for value in set(PUBLIC.values()) if value.__module__ == "rocmax"),
    key=lambda value: value.__name__,
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", LATE, ids=lambda kind: kind.__name__)
def test_examples_of_what_rocmax_exports(kind):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    report = []
    for test in doctest.DocTestFinder().find(kind, kind.__name__, module=False, globs={}):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_no_example_is_lost():
    run = found_by_pytest() | {kind.__name__ for kind in LATE}
    examples = definitions_with_examples()
    assert {(path, name) for path, name in examples if name not in run} == set()
    assert len(examples) >= 68
