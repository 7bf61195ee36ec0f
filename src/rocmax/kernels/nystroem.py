"""Approximate feature map of a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from rocmax._validate import check_choice, check_number, check_rows, check_unlabelled, random_source
from rocmax.kernels.gram import check_finite_kernel, settled_gamma

Array = NDArray[Any]

# Number of rows for the choice of the bandwidth, as in the paper.
_N_FOR_BANDWIDTH = 80_000


class KMeansNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Approximate feature map of a kernel, based on k-means landmarks.

    With landmarks :math:`z_1, \dots, z_k`, the centers found by mini-batch k-means, and :math:`W = K(z, z)`, a row x
    becomes :math:`W^{-1/2} (K(x, z_1), \dots, K(x, z_k))`, where small eigenvalues of W are treated as zero
    (pseudo-inverse). Landmarks from k-means approximate the kernel better than the same number of random rows. A linear
    classifier on these features is a nonlinear classifier on the rows; with :class:`PSAMClassifier` it is NPSAM.

    Parameters
    ----------
    n_components : int, default=100
        Number of landmarks. If the number of rows is not larger, each row is a landmark, and the feature map is exact
        for the training rows.
    kernel : str, default="rbf"
        Kernel, one of scikit-learn's pairwise kernels, such as "rbf", "laplacian" or "poly".
    gamma : {"scale", "auto", "scale-to-mean"}, float or None, default="scale"
        Kernel coefficient of the kernels that have one. "scale" is ``1 / (n_features * X.var())``, "auto" is ``1 /
        n_features``, "scale-to-mean" is 1 divided by the mean squared distance of the first 80,000 rows to their mean;
        None takes the default of the kernel.
    degree : float, default=None
        Degree of the kernel, if it has one; None takes the default of the kernel.
    coef0 : float, default=None
        Independent term of the kernel, if it has one; None takes the default of the kernel.
    batch_size : int, default=2048
        Number of rows in a batch of k-means, and in a block of the kernel matrix.
    max_iter : int, default=100
        Maximum number of passes over the rows in k-means, which stops early if it does not improve.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The landmarks.
    normalization_ : ndarray of shape (n_components, n_components)
        The matrix :math:`W^{-1/2}`.
    n_iter_ : int
        Number of passes of k-means.
    gamma_ : float or None
        Value of ``gamma`` that was used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if `X` had any.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : Feature map with random rows as landmarks.

    References
    ----------
    Zhang, Tsang and Kwok, "Improved Nyström low-rank approximation and error analysis", ICML 2008.
    Khalid, Chitsaz and Ray, "Proximal stochastic AUC maximization", 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.pipeline import make_pipeline
    >>> from rocmax import KMeansNystroem, PSAMClassifier
    >>> X, y = make_circles(n_samples=1000, noise=0.1, factor=0.5, random_state=0)
    >>> linear = PSAMClassifier(random_state=0).fit(X, y)
    >>> model = make_pipeline(KMeansNystroem(50, random_state=0), PSAMClassifier(random_state=0)).fit(X, y)
    >>> linear.score(X, y) < 0.6, model.score(X, y) > 0.98
    (True, True)
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: str = "rbf",
        gamma: float | str | None = "scale",
        degree: float | None = None,
        coef0: float | None = None,
        batch_size: int = 2048,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the landmarks.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._check_parameters()
        X = check_unlabelled(self, X)
        if self.n_components < X.shape[0]:
            means = MiniBatchKMeans(
                self.n_components,
                batch_size=self.batch_size,
                max_iter=self.max_iter,
                n_init=1,
                random_state=random_source(self.random_state),
            ).fit(X)
            self.components_, self.n_iter_ = means.cluster_centers_, means.n_iter_
        else:
            self.components_, self.n_iter_ = X.toarray() if sparse.issparse(X) else X.copy(), 1
        self.gamma_ = self._bandwidth(X)
        self.normalization_ = inverse_root(self._kernel(self.components_).astype(np.float64))
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of the rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Features, in the precision of `X`.
        """
        X = check_rows(self, X)
        result = np.empty((X.shape[0], self.components_.shape[0]), dtype=X.dtype)
        for start in range(0, X.shape[0], self.batch_size):
            part = slice(start, start + self.batch_size)
            np.matmul(self._kernel(X[part]), self.normalization_.astype(X.dtype, copy=False), out=result[part])
        return result

    @property
    def _n_features_out(self) -> int:
        result: int = self.components_.shape[0]
        return result

    def _bandwidth(self, X: Any) -> float | None:
        if self.gamma == "scale-to-mean":
            return 1.0 / spread(X[:_N_FOR_BANDWIDTH])
        return None if self.gamma is None else settled_gamma(self.gamma, X, None)

    def _kernel(self, X: Any) -> Array:
        parameters = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        given = {name: value for name, value in parameters.items() if value is not None}
        landmarks = self.components_.astype(X.dtype, copy=False)
        # filter_params ignores parameters that the kernel does not have.
        with np.errstate(over="ignore", invalid="ignore"):
            values = pairwise_kernels(X, landmarks, metric=self.kernel, filter_params=True, **given)
        check_finite_kernel(values, X, self.kernel)
        result: Array = values.astype(X.dtype, copy=False)
        return result

    def _check_parameters(self) -> None:
        check_number("n_components", self.n_components, above=0, integer=True)
        check_number("batch_size", self.batch_size, above=0, integer=True)
        check_number("max_iter", self.max_iter, above=0, integer=True)
        check_choice("kernel", self.kernel, tuple(sorted(PAIRWISE_KERNEL_FUNCTIONS)))
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto", "scale-to-mean"))
        elif self.gamma is not None:
            check_number("gamma", self.gamma, above=0.0)


def spread(X: Any) -> float:
    """Return the mean squared distance of rows to their mean; 1 if all rows are equal."""
    if sparse.issparse(X):
        total, mean = np.square(X.data, dtype=np.float64).sum(), np.asarray(X.mean(axis=0), dtype=np.float64)
        value = float(total / X.shape[0] - np.square(mean).sum())
    else:
        value = float(X.var(axis=0, dtype=np.float64).sum())
    return value if value > 0 else 1.0


def inverse_root(W: Array) -> Array:
    """Return the inverse square root of a positive semidefinite matrix, without eigenvalues that are rounding error."""
    values, vectors = linalg.eigh(W)
    keep = values > values[-1] * W.shape[0] * np.finfo(np.float64).eps
    result: Array = (vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T
    return result
