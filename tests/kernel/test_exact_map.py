"""The exact feature map: kernel values, and kernel machines for the partial AUC against a general solver."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from oracles.qp import partial_auc
from rocmax import ROCSVC, AUCClassifier, ExactKernelMap, PartialAUCClassifier


def problem(n=40):
    X, y = make_classification(n, 5, n_informative=3, n_redundant=0, weights=[0.6], flip_y=0.1, random_state=3)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_inner_products_are_kernel_values():
    X, _ = problem()
    new = np.random.default_rng(0).standard_normal((6, 5))
    features = ExactKernelMap(gamma=0.3).fit(X)
    Z = features.transform(X)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=0.3), atol=1e-10)
    np.testing.assert_allclose(features.transform(new) @ Z.T, rbf_kernel(new, X, gamma=0.3), atol=1e-8)


def test_repeated_rows_add_no_features():
    X, _ = problem(20)
    assert ExactKernelMap(gamma=0.3).fit(np.vstack([X, X])).components_.shape == (40, 20)
    assert ExactKernelMap("linear").fit(X).components_.shape == (20, 5)


@pytest.mark.parametrize("window", [(0.0, 0.3), (0.1, 0.5)])
@pytest.mark.parametrize("loss", ["tight", "structural"])
def test_the_kernel_machine_for_the_partial_auc_equals_a_general_solver(window, loss):
    X, y = problem()
    model = PartialAUCClassifier(*window, loss=loss, C=5.0, tol=1e-7)
    pipeline = make_pipeline(ExactKernelMap(gamma=0.3), model).fit(X, y)
    gram = rbf_kernel(X, gamma=0.3)
    factor = linalg.cholesky(gram + 1e-12 * np.eye(y.size), lower=True)
    optimum = partial_auc(factor, y, 5.0, None, *window, structural=loss == "structural")
    assert pipeline[-1].objective_ == pytest.approx(optimum.primal, rel=1e-6)
    assert pipeline[-1].dual_gap_ <= 1e-7 * pipeline[-1].objective_


def test_the_full_auc_behind_the_map_is_the_roc_svm():
    X, y = problem(80)
    m, n = (y == 1).sum(), (y == 0).sum()
    pipeline = make_pipeline(ExactKernelMap(gamma=0.3), AUCClassifier(C=20.0, tol=1e-7)).fit(X, y)
    machine = ROCSVC(C=20.0 / (m * n), reduction="sum", gamma=0.3, tol=1e-7).fit(X, y)
    assert pipeline[-1].objective_ == pytest.approx(machine.objective_, rel=3e-7)


def test_precomputed_equals_the_kernel_itself():
    X, y = problem()
    gram = rbf_kernel(X, gamma=0.3)
    model = PartialAUCClassifier(loss="tight", C=5.0, tol=1e-7)
    direct = make_pipeline(ExactKernelMap(gamma=0.3), model).fit(X, y).decision_function(X)
    given = make_pipeline(ExactKernelMap("precomputed"), model).fit(gram, y).decision_function(gram)
    # The scores, up to the threshold: which of several rows that tie at the optimum it lies at is a matter of rounding.
    assert np.ptp(given - direct) < 1e-4


def test_memory_is_checked_first():
    with pytest.raises(ValueError, match=r"max_gram_mb=0\.001.*KMeansNystroem"):
        ExactKernelMap(max_gram_mb=0.001).fit(np.zeros((50, 2)))
