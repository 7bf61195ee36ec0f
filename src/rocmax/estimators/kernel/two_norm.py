"""2-norm SVM."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from rocmax._typing import Array
from rocmax._validate import TrainingSet, check_number
from rocmax.estimators.base import ScoredClassifier
from rocmax.estimators.kernel.base import KernelMixin

# Maximum number of iterations of libsvm, which may cycle on nearly identical rows; scikit-learn warns if it is reached.
_MAX_LIBSVM = 1_000_000


class TwoNormSVC(KernelMixin, ScoredClassifier):
    r"""Support vector machine with squared slack variables (2-norm SVM), based on libsvm.

    Minimizes :math:`\frac12 |f|^2 + \frac{C}{2} \sum_i \xi_i^2` with :math:`y_i (f(x_i) + b) \ge 1 - \xi_i`. This
    is equivalent to the hard-margin SVM with the kernel :math:`k'(x_i, x_j) = k(x_i, x_j) + \delta_{ij} / C`. Every
    training set is separable in the space of this kernel, so the training AUC with :math:`k'` is 1. New rows are scored
    with ``k``.

    In Rakotomamonjy (2004), the slack variables have the weight ``C`` in Eq. 14 and the kernel the term ``1 / C`` in
    Eq. 15; these differ by a factor of 2 in ``C``. Here ``C`` is that of the kernel.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Kernel, which must be positive semidefinite. Its parameters are those of scikit-learn's ``SVC``.
    C : float, default=1.0
        Regularization parameter, the weight of the squared slacks. Must be positive. ``1 / C`` is added to the diagonal
        of the Gram matrix.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of "rbf", "poly" and "sigmoid". "scale" is ``1 / (n_features * X.var())``, "auto" is ``1 /
        n_features``.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Independent term of the "poly" and "sigmoid" kernels.
    tol : float, default=1e-3
        Tolerance for stopping: libsvm's bound on the violation of the optimality conditions.
    max_gram_mb : float, default=1000.0
        Maximum size of the Gram matrix in megabytes; 1000 corresponds to 11,180 rows.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes ``classes_[1]``, the larger label.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the support vectors.
    support_ : ndarray of shape (n_support,)
        Indices of the support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        Support vectors; not available for "precomputed".
    threshold_ : float
        Minus the constant ``b`` of the SVM.
    augmented_scores_ : ndarray
        Scores of the training rows with non-zero weight, computed with ``k'``.
    objective_ : float
        The objective at the solution.
    classes_ : ndarray of shape (2,)
        The classes.
    n_iter_ : int
        Number of iterations of libsvm.

    See Also
    --------
    ROCSVC : Kernel machine that maximizes the AUC.

    References
    ----------
    Rakotomamonjy, "Optimizing area under ROC curve with SVMs", ROCAI 2004, section 3.6.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from rocmax import TwoNormSVC
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> round(TwoNormSVC(C=1.0).fit(X, y).score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_gram_mb: float = 1000.0,
        pos_label: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_gram_mb = max_gram_mb
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, above=0.0)
        check_number("tol", self.tol, above=0.0)

    def _learn(self, data: TrainingSet) -> Array:
        gram = self._gram(data)
        weight = np.ones(data.positive.size) if data.weight is None else data.weight
        lift = 1.0 / (self.C * weight)
        gram[np.diag_indices(weight.size)] += lift
        # The bound on the multipliers is never active: with the augmented kernel, the margin is hard.
        machine = SVC(kernel="precomputed", C=1e12, tol=self.tol, max_iter=_MAX_LIBSVM, random_state=0)
        machine.fit(gram, data.positive)
        coefficients = np.zeros(weight.size)
        coefficients[machine.support_] = machine.dual_coef_[0]
        self.augmented_scores_ = gram @ coefficients
        scores = self.augmented_scores_ - lift * coefficients
        self._keep_support(data, coefficients)
        self._bias = float(machine.intercept_[0])
        slack = np.maximum(1.0 - np.where(data.positive, 1.0, -1.0) * (scores + self._bias), 0.0)
        self.objective_ = 0.5 * float(coefficients @ scores) + 0.5 * self.C * float(weight @ slack**2)
        self.n_iter_ = int(np.sum(machine.n_iter_))
        return scores

    def _threshold(self, data: TrainingSet, scores: Array) -> float:
        return -self._bias
