"""Fits leave the process as they found it, in eight threads too, and do not depend on scikit-learn's settings."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lightgbm  # noqa: F401  # loads its library for threads before the state is taken
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info

import rocmax
from helpers.every_estimator import DENSE_ONLY, MODELS, output, rows
from helpers.tables import make_model, payments
from rocmax._validation import CHECKING
from rocmax.linear.refine import LogisticProblem, fit_logistic
from rocmax.operators import StandardizedOperator

SOURCES = Path(rocmax.__file__).parent
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def snapshot():
    return {
        "filters": list(warnings.filters),
        "showwarning": warnings.showwarning,
        "random": [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],  # noqa: NPY002
        "errstate": np.geterr(),
        "rcParams": dict(mpl.rcParams),
        "scikit-learn": sklearn.get_config(),
        "print": np.get_printoptions(),
        "threads": {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()},
    }


@pytest.mark.parametrize("name", MODELS)
@quiet
def test_a_fit_leaves_global_state_alone(name):
    X, y = rows()
    before = snapshot()
    model = clone(MODELS[name])
    if "random_state" in model.get_params():
        model.set_params(random_state=None)
    output(model.fit(X, y), X)
    if hasattr(model, "partial_fit"):
        model.partial_fit(X, y)
    assert snapshot() == before


def fitted(task):
    name, seed = task
    X, y = rows(seed=seed)
    return output(clone(MODELS[name]).fit(X, y), X)


# These run estimators or kernels of scikit-learn for long, which check their input themselves: before Python 3.14 their
# checks in several threads may leave filters of theirs behind.
OF_SCIKIT_LEARN = (
    "ROCSVC",
    "TwoNormSVC",
    "AsymmetricSVC",
    "ExactKernelMap",
    "KMeansNystroem",
    "FPRThresholdClassifier",
    "TPRThresholdClassifier",
    "LimitThresholdClassifier",
)


def in_threads(tasks):
    expected = [fitted(task) for task in tasks]
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(fitted, tasks))
    finally:
        sys.setswitchinterval(0.005)
    for task, one, other in zip(tasks, expected, found, strict=True):
        np.testing.assert_array_equal(other, one, err_msg=str(task))


@quiet
@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith(OF_SCIKIT_LEARN)])
def test_filters_of_warnings_change_only_under_the_lock_of_checks(name, monkeypatch):
    # What a race of threads shows now and then is shown here by each fit: who changes the filters, for a moment only.
    others = []
    enter = warnings.catch_warnings.__enter__

    def noted(self):
        if not CHECKING._is_owned():
            others.append("".join(traceback.format_stack(limit=8)))
        return enter(self)

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", noted)
    fitted((name, 0))
    assert others == []


@quiet
def test_eight_threads_give_what_one_gives_and_leave_global_state_alone():
    before = snapshot()
    in_threads([(name, seed) for seed in range(2) for name in MODELS if not name.startswith(OF_SCIKIT_LEARN)])
    assert snapshot() == before


@quiet
def test_eight_threads_that_use_scikit_learn_give_what_one_gives():
    with warnings.catch_warnings():
        before = snapshot()
        in_threads([(name, seed) for seed in range(4) for name in MODELS if name.startswith(OF_SCIKIT_LEARN)])
        after = snapshot()
    assert ConvergenceWarning not in [entry[2] for entry in after.pop("filters") if entry not in before["filters"]]
    del before["filters"]
    assert after == before


FORK = """
import os, threading, time
import numpy as np
from rocmax import AUCClassifier

held = threading.Event()

class Slow:
    # Rows that take a while to be checked, and fail, so that no other library works while the process forks

    def __array__(self, dtype=None, copy=None):
        held.set()
        time.sleep(0.2)
        return np.full((4, 1), np.nan)

threading.excepthook = lambda error: None
threading.Thread(target=AUCClassifier().fit, args=(Slow(), [0, 0, 1, 1])).start()
held.wait()
child = os.fork()
AUCClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
if child == 0:
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_during_a_check_can_fit():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], timeout=120, check=False)
    assert done.returncode == 0


def test_no_fit_changes_the_filters_of_warnings():
    # On Python 3.11 such a change is for all threads, and two of them can undo each other's out of order.
    users = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if any(word in path.read_text() for word in ("catch_warnings", "simplefilter", "filterwarnings"))
    ]
    assert set(users) <= {"cli/screen.py"}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("frames", ["pandas", "polars"])
@quiet
def test_output_settings_do_not_change_a_fit(name, frames):
    X, y = rows()
    expected = output(clone(MODELS[name]).fit(X, y), X)
    forms = [X, pd.DataFrame(X, columns=list("abcdef"))]
    if name not in DENSE_ONLY and hasattr(MODELS[name], "predict"):
        forms.append(sparse.csr_array(X))
    with sklearn.config_context(transform_output=frames):
        for form in forms:
            model = clone(MODELS[name]).fit(form, y)
            found = output(model, form)
            if not hasattr(model, "predict"):
                assert type(found).__module__.startswith(frames)
            if form is X:
                np.testing.assert_array_equal(np.asarray(found), expected)
            elif not sparse.issparse(form):  # whose rows are not centered, so that the default fits end elsewhere
                # A frame has its columns in memory one after the other, and sums in another order.
                np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("frames", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["linear", "additive", "svm"])
def test_pipelines_of_the_command_line_do_not_depend_on_output_settings(name, frames):
    table = payments(300)
    X, y = table[["amount", "age", "country"]], table["label"].to_numpy()
    expected = make_model(name, X, "fraud", 0.1).fit(X, y).decision_function(X)
    with sklearn.config_context(transform_output=frames):
        found = make_model(name, X, "fraud", 0.1).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MODELS)
@quiet
def test_metadata_routing_does_not_change_a_fit(name):
    X, y = rows()
    expected = output(clone(MODELS[name]).fit(X, y), X)
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(MODELS[name]).fit(X, y)
        np.testing.assert_array_equal(output(model, X), expected)
        if hasattr(model, "predict") and "cv" not in model.get_params():
            assert cross_val_score(clone(model), X, y, cv=2).shape == (2,)


@quiet
def test_weights_are_routed_to_a_fit():
    X, y = rows()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    expected = rocmax.PartialAUCClassifier(0.0, 0.3).fit(X, y, sample_weight=weight).coef_
    with sklearn.config_context(enable_metadata_routing=True, transform_output="pandas"):
        model = rocmax.PartialAUCClassifier(0.0, 0.3).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        # Before scikit-learn 1.8, a pipeline needs a request of its own.
        pipeline = make_pipeline(model).set_score_request(sample_weight=True)
        search = GridSearchCV(pipeline, {"partialaucclassifier__C": [1.0]}, cv=2)
        search.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(search.best_estimator_[-1].coef_, expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_start_is_logistic_regression_of_scikit_learn(form, weighted):
    X, y = make_classification(300, 6, n_informative=4, weights=[0.8], flip_y=0.1, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 300).astype(float) if weighted else None
    for C in (0.01, 1.0):
        expected = LogisticRegression(C=C, tol=1e-9).fit(X, y, sample_weight=weight).coef_[0]
        operator = StandardizedOperator(form(X), np.zeros(6), np.ones(6))
        found = fit_logistic(LogisticProblem(operator, y == 1, weight, C), 1e-8, 1000)[:-1]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


SEARCH = """
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from rocmax.cli.screen import warnings_shown
from rocmax.metrics import make_scorer
from rocmax.tables.tune import fit_tuned
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
y = np.arange(60) % 2
X = rng.normal(size=(60, 4)) + y[:, None]
pipeline = Pipeline([("table", FunctionTransformer()), ("model", LogisticRegression(max_iter=MAX_ITER))])
splits = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]

with warnings_shown(lambda text: print("Warning: ", text)):
    fit_tuned(pipeline, X, y, splits, make_scorer("roc_auc"), {"C": [1.0, 1.0]})
"""


@pytest.mark.parametrize(("max_iter", "printed"), [(1, 1), (1000, 0)])
def test_the_command_line_prints_the_warning_of_the_fit_that_is_kept(max_iter, printed):
    code = SEARCH.replace("MAX_ITER", str(max_iter))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count("Warning: ") == printed
