"""What importing the package does and does not do."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import inspect
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rocmax

# They start processes.
pytestmark = pytest.mark.slow

# Slow to import, large, or not installed everywhere.
LATE = {
    "clarabel",
    "dask",
    "distributed",
    "jinja2",
    "joblib",
    "lightgbm",
    "llvmlite",
    "matplotlib",
    "numba",
    "onnx",
    "onnxruntime",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy",
    "skl2onnx",
    "sklearn",
    "skops",
    "torch",
    "typer",
    "xgboost",
}


def loaded_after(code):
    """Top-level packages that a fresh interpreter loads for this code."""
    ask = "import json; print(json.dumps(sorted(set(sys.modules) - before)))"
    program = f"import sys; before = set(sys.modules)\n{code}\n{ask}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def test_import_loads_nothing_slow_or_optional():
    loaded = loaded_after("import rocmax")
    assert "rocmax" in loaded
    assert loaded & LATE == set()


def test_listing_and_versions_load_nothing_either():
    assert loaded_after("import rocmax; dir(rocmax); rocmax.__version__; rocmax.__all__") & LATE == set()


def test_a_missing_name_loads_nothing():
    assert loaded_after("import rocmax; hasattr(rocmax, 'nothing')") & LATE == set()


def test_losses_and_solvers_need_no_scikit_learn():
    loaded = loaded_after("import rocmax.losses, rocmax.solvers, rocmax.operators, rocmax.penalties")
    assert loaded & {"sklearn", "pandas", "numba", "matplotlib"} == set()


def test_a_fit_needs_no_plots_and_no_optional_package():
    code = "from rocmax import *\nfor model in AUCClassifier(), PartialAUCClassifier(): model.fit([[0], [1]], [0, 1])"
    # scikit-learn loads some of its own, if they are there.
    optional = LATE - {"joblib", "pandas", "pyarrow", "rich", "scipy", "sklearn"}
    assert loaded_after(code) & optional == set()


SAVE = "import rocmax, tempfile, pathlib\nmodel = rocmax.AUCClassifier().fit([[0], [1]], [0, 1])\n"
SAVE += "rocmax.save(model, pathlib.Path(tempfile.mkdtemp(), 'model.rocmax'))"


def test_saving_a_model_loads_no_array_library():
    pytest.importorskip("skops")
    assert loaded_after(SAVE) & {"torch", "dask", "cupy"} == set()


def test_the_list_of_trusted_estimators_is_that_of_a_plain_import():
    pytest.importorskip("skops")
    ask = "from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES as names; print(sorted(names))"
    lists = [
        subprocess.run([sys.executable, "-c", f"{first}\n{ask}"], capture_output=True, text=True, check=True).stdout
        for first in (SAVE, "")
    ]
    assert lists[0] == lists[1]
    assert "LogisticRegression" in lists[0]


def test_other_imports_are_as_before_after_a_model_was_saved():
    pytest.importorskip("skops")
    pytest.importorskip("torch")
    assert "torch" in loaded_after(f"{SAVE}\nimport sklearn.externals.array_api_compat.torch")


def test_loops_are_loaded_when_a_stochastic_model_is_fitted_and_not_before():
    made = "from rocmax import KMeansNystroem, PSAMClassifier\nmodel = PSAMClassifier()"
    assert loaded_after(made) & {"numba", "llvmlite"} == set()
    assert "numba" in loaded_after(f"{made}\nmodel.fit([[0], [1]], [0, 1])")


def test_every_public_name_resolves():
    assert len(set(rocmax.__all__)) == len(rocmax.__all__)
    for name in rocmax.__all__:
        value = getattr(rocmax, name)
        assert value is getattr(rocmax, name)
        if inspect.isclass(value):
            assert value.__name__ == name
            assert value.__doc__
    assert set(rocmax.__all__) <= set(dir(rocmax))


def test_public_names_of_the_modules_resolve():
    for module in (rocmax.losses, rocmax.metrics, rocmax.solvers):
        assert inspect.ismodule(module)
        for name in module.__all__:
            value = getattr(module, name)
            assert value.__doc__ or not (inspect.isclass(value) or inspect.isfunction(value))


def test_star_import():
    names = {}
    exec("from rocmax import *", names)
    assert set(rocmax.__all__) <= set(names)
    assert names["AUCClassifier"] is rocmax.AUCClassifier


@pytest.mark.parametrize("name", ["nothing", "aucclassifier", "AUCClassifier_", "numpy", "__wrapped__"])
def test_an_unknown_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=f"module 'rocmax' has no attribute '{name}'"):
        getattr(rocmax, name)
    assert not hasattr(rocmax, name)


def test_an_unknown_name_is_an_import_error_on_import():
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'rocmax'"):
        exec("from rocmax import nothing")


def test_types_are_shipped():
    assert importlib.resources.files("rocmax").joinpath("py.typed").is_file()


def test_one_version():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert "version" not in project  # the package itself says it
    assert rocmax.__version__ == importlib.metadata.version("rocmax")
    assert "Typing :: Typed" in project["classifiers"]
