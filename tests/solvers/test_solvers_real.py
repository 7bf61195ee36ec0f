"""Full-AUC optima on real data, known to 0.002 %."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from rocmax.losses import PairwiseHinge
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import SmoothedNewton

DATA = Path(os.environ.get("ROCMAX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))

OPTIMA = [
    ("letter", 10.0, 1.06705),
    ("letter", 100.0, 4.97573),
    ("ijcnn1", 10.0, 3.32346),
    ("ijcnn1", 100.0, 21.9172),
    ("a9a", 10.0, 2.60901),
    ("a9a", 100.0, 23.6185),
]


def load(name):
    path = DATA / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"{name} is not there; set ROCMAX_DATA to the folder that holds {name}.npz")
    with np.load(path) as stored:
        if "X" in stored.files:
            X = stored["X"]
        else:
            parts = (stored["data"], stored["indices"], stored["indptr"])
            X = sparse.csr_array(parts, shape=tuple(stored["shape"])).toarray()
        return X.astype(np.float64), stored["y"] == 1


def standardized(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "C", "optimum"), OPTIMA)
def test_known_optimum(name, C, optimum):
    X, y = load(name)
    result = SmoothedNewton(tol=2e-5).solve(as_operator(standardized(X)), PairwiseHinge().bind(y), SquaredL2(C))
    assert result.converged
    assert result.objective == pytest.approx(optimum, rel=5e-5)
    assert result.objective - result.gap <= optimum * (1 + 2e-5)
