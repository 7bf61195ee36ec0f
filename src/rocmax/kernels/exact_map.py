"""Exact feature map of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from rocmax._typing import Array
from rocmax._validate import check_rows, check_unlabelled
from rocmax.kernels.gram import Kernel, check_gram_memory


class ExactKernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Exact feature map of a kernel on the training rows.

    With the Gram matrix of the training rows :math:`K = V \Lambda V^T`, a row ``x`` becomes
    :math:`\Lambda^{-1/2} V^T k(x)`, where :math:`k(x)` contains its kernel values with the training rows. For any loss
    ``R`` of the scores of the training rows, the minimizer of :math:`\frac12 |f|^2 + C R(f)` over the reproducing
    kernel Hilbert space is a linear combination of the kernel functions of the training rows (representer theorem).
    Therefore a linear estimator applied to these features solves the kernel problem exactly, with the same norm, solver
    and certificate: ``make_pipeline(ExactKernelMap(), PartialAUCClassifier(loss="tight"))`` is the kernel machine for
    the partial AUC.

    The map takes :math:`O(n^3)` time and :math:`O(n^2)` memory, and the number of features equals the number of
    linearly independent rows. It is intended for up to a few thousand rows. For more rows, use the approximation
    ``KMeansNystroem``.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Kernel, which must be positive semidefinite. Its parameters are those of scikit-learn's ``SVC``.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient of "rbf", "poly" and "sigmoid". "scale" is ``1 / (n_features * X.var())``, "auto" is ``1 /
        n_features``.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Independent term of the "poly" and "sigmoid" kernels.
    max_gram_mb : float, default=1000.0
        Maximum size of the Gram matrix in megabytes; 1000 corresponds to 11,180 rows.

    Attributes
    ----------
    rows_ : ndarray or CSR matrix of shape (n_samples, n_features)
        The training rows; not available for "precomputed".
    components_ : ndarray of shape (n_samples, n_components)
        :math:`V \Lambda^{-1/2}`, without eigenvalues that are zero up to rounding error.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    ROCSVC : Kernel machine for the full AUC, for larger numbers of rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from rocmax import ExactKernelMap, PartialAUCClassifier
    >>> X, y = make_moons(300, noise=0.3, random_state=0)
    >>> linear = PartialAUCClassifier(max_fpr=0.1, loss="tight", C=10.0)
    >>> round(linear.fit(X, y).score(X, y), 2)
    0.62
    >>> round(make_pipeline(ExactKernelMap(), linear).fit(X, y).score(X, y), 2)
    0.83
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        max_gram_mb: float = 1000.0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.max_gram_mb = max_gram_mb

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any = None) -> ExactKernelMap:
        """Compute the eigendecomposition of the Gram matrix of the training rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training rows; for "precomputed" their Gram matrix.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
            The fitted map.
        """
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0)
        X = check_unlabelled(self, X)
        check_gram_memory(X.shape[0], self.max_gram_mb)
        self._kernel = kernel.settled(X, None)
        values, vectors = linalg.eigh(self._kernel.gram(X))
        keep = values > 1e-12 * max(float(values[-1]), np.finfo(np.float64).tiny)
        self.components_ = vectors[:, keep] / np.sqrt(values[keep])
        if self.kernel != "precomputed":
            self.rows_ = X.copy()  # the caller may modify the input
        self._n_features_out = self.components_.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of the rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows; for "precomputed" their kernel values with the training rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Features.
        """
        X = check_rows(self, X)
        values = X if self.kernel == "precomputed" else self._kernel.between(X, self.rows_)
        return np.asarray(values @ self.components_, dtype=np.float64)
