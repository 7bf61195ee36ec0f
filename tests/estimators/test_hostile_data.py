"""Every public estimator on hostile data: each fit ends in time, with finite scores or a clear ValueError."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import rocmax
from helpers import every_estimator, hostile

N_SHARES = 2


def test_hostile_list_holds_every_estimator():
    public = [getattr(package, name) for package in (rocmax, rocmax.papers) for name in package.__all__]
    fitted = {kind for kind in public if inspect.isclass(kind) and hasattr(kind, "fit")}
    assert fitted == {type(estimator) for estimator in hostile.ESTIMATORS}


@pytest.mark.slow
@pytest.mark.parametrize("share", range(N_SHARES))
def test_hostile_fits_end(share):
    program = Path(hostile.__file__)
    run = subprocess.run(
        [sys.executable, str(program), str(share), str(N_SHARES)], capture_output=True, text=True, timeout=900
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert lines, run.stderr
    assert lines[-1] == {"done": share}, f"ended at {lines[-1]}: {run.stderr[-3000:]}"
    assert [line["wrong"] for line in lines if "wrong" in line] == []


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "model",
    [
        rocmax.ROCSVC(C=0.01),
        rocmax.ROCSVC("poly", C=0.01, gamma=0.01),
        rocmax.papers.TwoNormSVC(),
        rocmax.papers.AsymmetricSVC(tau=1.0),
        rocmax.ExactKernelMap(),
        rocmax.KMeansNystroem(5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
# scikit-learn's check for infinite values adds up the rows.
@pytest.mark.filterwarnings("ignore:.* encountered in (reduce|dot|matmul):RuntimeWarning")
def test_rows_too_large_for_a_kernel_are_named(model, form):
    X, y = every_estimator.rows(60)
    model = clone(model).fit(form(X), y)
    large = X.copy()
    large[7] = 1e308
    with pytest.raises(
        ValueError, match=r"finite values of the kernel '\w+'; got values up to 1e\+308 in row 7\. Remove"
    ):
        every_estimator.output(model, form(large))
