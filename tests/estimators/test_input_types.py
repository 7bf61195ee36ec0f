"""Every estimator takes every type of number, every format of rows and every type of weights."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import rocmax
from helpers.every_estimator import DENSE_ONLY, MODELS, output

# Whole numbers, so that they are the same in all types; 0 and 1 for booleans.
RNG = np.random.default_rng(0)
POSITIVE = np.arange(45) % 3 == 0
NUMBERS = np.where(RNG.random((45, 4)) < np.where(POSITIVE, 0.2, 0.5)[:, None], 0, RNG.integers(1, 9, (45, 4)))
LABELS = np.where(POSITIVE, "yes", "no")

DTYPES = ["float64", "float32", "float16", "int64", "bool"]
WEIGHTS = {
    "none": None,
    "integers": RNG.integers(1, 4, 45),
    "fractions": RNG.exponential(size=45) + 0.1,
    "float32": (RNG.exponential(size=45) + 0.1).astype(np.float32),
}


def with_long_indices(X):
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


DENSE = {"C": np.ascontiguousarray, "Fortran": np.asfortranarray, "frame": lambda X: pd.DataFrame(X, columns=[*"abcd"])}
SPARSE = {"CSR": sparse.csr_array, "CSC": sparse.csc_array, "long": with_long_indices}


def cases(name):
    """Yield single precision in every format, with every type of weights, and the other types in some formats."""
    takes_weights = "sample_weight" in inspect.signature(MODELS[name].fit).parameters
    weights = [*WEIGHTS] if takes_weights else ["none"]
    forms = [*DENSE] if name in DENSE_ONLY else [*DENSE, *SPARSE]
    for (i, dtype), (j, form) in itertools.product(enumerate(DTYPES), enumerate(forms)):
        if form in SPARSE and dtype == "float16":
            continue  # SciPy has no sparse matrices of this type
        if dtype == "float32" and form in ("C", "CSR"):
            yield from ((dtype, form, weight) for weight in weights)
        elif dtype == "float32" or (i + j) % 2:
            yield dtype, form, weights[(i + j) // 2 % len(weights)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_type_format_and_weight_gives_the_model_of_double_precision(name):
    expected = {}

    def outputs(X, weight):
        model = clone(MODELS[name])
        given = {} if WEIGHTS[weight] is None else {"sample_weight": WEIGHTS[weight]}
        found = output(model.fit(X, LABELS, **given), X)
        if not hasattr(model, "decision_function"):
            # Features of a kernel are known up to a rotation.
            return np.asarray((found @ found.T).todense() if sparse.issparse(found) else found @ found.T)
        return found

    for dtype, form, weight in cases(name):
        values = NUMBERS.astype(dtype)
        # Sparse rows are not centered by some estimators, so that their models differ from those of dense rows.
        key = form in SPARSE, dtype == "bool", weight
        if key not in expected:
            plain = values.astype(np.float64)
            expected[key] = outputs(sparse.csr_array(plain) if form in SPARSE else plain, weight)
        found = outputs((DENSE | SPARSE)[form](values), weight)
        assert np.isfinite(found).all()
        # Nearly the same scores: the last digits decide where a solver stops, and which row sets a threshold.
        if not np.allclose(found, expected[key]):
            agreement = np.corrcoef(found.ravel(), expected[key].ravel())[0, 1]
            assert agreement > 0.97, f"{dtype}, {form}, {weight}: {agreement}"


def far_rows(width, n_sparse=0):
    rng = np.random.default_rng(0)
    positive = np.arange(150) % 3 == 0
    far = 1000.0 + width * (rng.normal(size=(150, 3)) + positive[:, None])
    rare = (rng.random((150, n_sparse)) < 0.1).astype(float)
    return np.hstack([far, rare]), positive, rng.exponential(size=150)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1e-2, 1e-5])
@pytest.mark.parametrize(
    "model",
    [
        rocmax.PartialAUCClassifier(0.0, 0.3),
        rocmax.PartialAUCClassifierCV(0.0, 0.3, Cs=[1.0], cv=2),
        rocmax.PrecisionAtKClassifier(0.2),
        rocmax.FBetaClassifier(),
        rocmax.GMeanClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_rows_far_from_zero_give_the_scores_of_dense_rows(model, width, weighted):
    X, y, weight = far_rows(width)
    scores = [
        clone(model).fit(form(X), y, sample_weight=weight if weighted else None).decision_function(X)
        for form in (np.asarray, sparse.csr_array)
    ]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-4 * np.ptp(scores[0]))


@pytest.mark.parametrize("model", [rocmax.PartialAUCClassifier(0.0, 0.3), rocmax.FBetaClassifier()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_some_columns_far_from_zero_among_sparse_ones_are_fitted(model):
    X, y, weight = far_rows(1e-5, n_sparse=40)
    for given in (None, weight):
        fitted = clone(model).fit(sparse.csr_array(X), y, sample_weight=given)
        assert np.isfinite(fitted.decision_function(X)).all()


def test_a_table_in_the_other_byte_order_gives_the_same_model():
    frame = pd.DataFrame(NUMBERS.astype(">f4"), columns=[*"abcd"])
    model = rocmax.PSAMClassifier(max_iter=2, random_state=0)
    swapped, plain = (clone(model).fit(rows, LABELS).coef_ for rows in (frame, frame.astype("float32")))
    np.testing.assert_array_equal(swapped, plain)
