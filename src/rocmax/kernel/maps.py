"""Kernels, what kernel machines share, and feature maps: exact, and approximate by Nystroem landmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics.pairwise import pairwise_kernels

from rocmax._support import Array
from rocmax._validation import (
    TrainingSet,
    check_number,
    check_rows,
    check_unlabeled,
    direction,
    positive_index,
    random_source,
    towards,
)

_NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")


class Kernel:
    """Kernel with its parameters, those of scikit-learn's ``SVC``.

    A callable takes two matrices of rows and returns the matrix of their kernel values.
    """

    def __init__(self, kernel: str | Callable[[Any, Any], Any], gamma: str | float, degree: int, coef0: float) -> None:
        if not callable(kernel) and kernel not in _NAMES:
            raise ValueError(f"kernel must be one of {', '.join(map(repr, _NAMES))} or a callable; got {kernel!r}")
        if gamma not in ("scale", "auto"):
            check_number("gamma", gamma, above=0.0)
        check_number("degree", degree, above=0, integer=True)
        if isinstance(coef0, bool) or not isinstance(coef0, int | float | np.integer | np.floating):
            raise ValueError(f"coef0 must be a number; got {coef0!r}")
        self.kernel = kernel
        self.parameters: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0}

    def settled(self, X: Any, weight: Array | None) -> Kernel:
        """Return the kernel with ``gamma`` replaced by its numerical value."""
        gamma = settled_gamma(self.parameters["gamma"], X, weight)
        return Kernel(self.kernel, gamma, self.parameters["degree"], self.parameters["coef0"])

    def between(self, X: Any, Y: Any) -> Array:
        """Return the kernel values between the rows of two matrices."""
        if callable(self.kernel):
            return np.asarray(self.kernel(X, Y), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            # With filter_params, parameters that the kernel does not have are ignored.
            values = pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **self.parameters)
        values = np.asarray(values, dtype=np.float64)
        check_finite_kernel(values, X, self.kernel)
        return values

    def _within(self, X: Any) -> Array:
        """Return the kernel values between all rows of one matrix."""
        if callable(self.kernel):
            return self.between(X, X)
        # Only half of the values are computed, and no other large matrix is allocated.
        gram = np.empty((X.shape[0], X.shape[0]))
        for start in range(0, X.shape[0], 256):
            stop = min(start + 256, X.shape[0])
            gram[start:stop, :stop] = self.between(X[start:stop], X[:stop])
            gram[:start, start:stop] = gram[start:stop, :start].T
        if self.kernel == "rbf":
            np.fill_diagonal(gram, 1.0)
        return gram

    def gram(self, X: Any) -> Array:
        """Return the Gram matrix of training rows; check it if the kernel may not be positive semidefinite."""
        if self.kernel == "precomputed":
            gram = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        else:
            gram = self._within(X)
        if callable(self.kernel) or self.kernel in ("precomputed", "sigmoid"):
            check_mercer(gram, self.kernel)
        return np.ascontiguousarray(gram)


def check_finite_kernel(values: Any, X: Any, kernel: Any) -> None:
    """Raise ValueError if kernel values of rows are not finite, because values of the rows are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum takes little time; it is not finite if a value is not.
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    row = int(np.isfinite(values).all(axis=1).argmin())
    largest = float(np.abs(X[[row]].data if sparse.issparse(X) else X[row]).max())
    raise ValueError(
        f"values of X must be small enough for finite values of the kernel {kernel!r}; got values up to {largest:.3g} "
        f"in row {row}. Remove the row, or clip its values to the range of the training rows"
    )


def settled_gamma(gamma: str | float, X: Any, weight: Array | None) -> float:
    """Return the numerical value of ``gamma``, with "scale" and "auto" computed as in scikit-learn's ``SVC``."""
    if gamma == "auto":
        result: float = 1.0 / X.shape[1]
        return result
    if gamma == "scale":
        variance = _variance(X, weight)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return float(gamma)


def check_gram_memory(n_rows: int, limit_mb: float) -> None:
    """Raise ValueError if a Gram matrix would exceed the memory limit."""
    check_number("max_gram_mb", limit_mb, above=0.0)
    needed = 8 * n_rows**2 / 1e6
    if needed > limit_mb:
        raise ValueError(
            f"the Gram matrix must take at most max_gram_mb={limit_mb:g} MB; got {n_rows} rows, which take "
            f"{needed:.0f} MB. Increase max_gram_mb if there is enough memory, or use KMeansNystroem (an approximate "
            "feature map) with a linear estimator such as AUCClassifier"
        )


def check_mercer(gram: Array, kernel: Any) -> None:
    """Raise ValueError if a matrix is not square, symmetric and positive semidefinite."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"with kernel={kernel!r}, X must be a square matrix of training rows by training rows; got {gram.shape}"
        )
    scale = float(np.abs(gram).max(initial=0.0)) or 1.0
    if np.abs(gram - gram.T).max(initial=0.0) > 1e-8 * scale:
        raise ValueError(
            f"kernel={kernel!r} must give a symmetric matrix; got a matrix that differs from its transpose"
        )
    lifted = gram.copy()
    lifted[np.diag_indices(gram.shape[0])] += 1e-7 * scale
    try:
        linalg.cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError as error:
        raise ValueError(
            f"kernel={kernel!r} must give a positive semidefinite matrix (Mercer's condition); got negative "
            f"eigenvalues. Use another kernel"
        ) from error


def _variance(X: Any, weight: Array | None) -> float:
    """Return the variance of all entries, weighted by the sample weights of the rows."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    total = float(weight.sum()) * X.shape[1]
    mean = float(weight @ np.asarray(X.sum(axis=1), dtype=np.float64).ravel()) / total
    if sparse.issparse(X):
        square = float(weight @ np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()) / total
        found: float = square - mean**2
        return found
    result: float = float(weight @ ((X - mean) ** 2).sum(axis=1)) / total
    return result


class KernelMixin:
    """Mixin for kernel machines: Gram matrix, support vectors and scores.

    It must precede ``ScoredClassifier`` in the list of bases.
    """

    classes_: NDArray[Any]
    pos_label: Any
    kernel: Any
    gamma: str | float
    degree: int
    coef0: float
    max_gram_mb: float
    takes_sparse = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of ScoredClassifier
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_parameters(self) -> None:
        Kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def _gram(self, data: TrainingSet) -> Array:
        check_gram_memory(data.X.shape[0], self.max_gram_mb)
        self._kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0).settled(data.X, data.weight)
        return self._kernel.gram(data.X[:, data.rows] if self.kernel == "precomputed" else data.X)

    def _keep_support(self, data: TrainingSet, coefficients: Array) -> None:
        """Store the support vectors; positive scores indicate ``classes_[1]``."""
        # Smaller coefficients are rounding errors.
        used = np.flatnonzero(np.abs(coefficients) > 1e-10 * np.abs(coefficients).max(initial=0.0))
        self.support_ = data.rows[used]
        self.dual_coef_ = direction(data.positive_index) * coefficients[used][np.newaxis, :]
        if self.kernel != "precomputed":
            self.support_vectors_ = data.X[used]

    def _scores(self, X: Any) -> Array:
        if self.kernel == "precomputed":
            values = X[:, self.support_]
        elif self.support_.size == 0:
            return np.zeros(X.shape[0])
        else:
            values = self._kernel.between(X, self.support_vectors_)
        return towards(values @ self.dual_coef_[0], positive_index(self.classes_, self.pos_label))


class ExactKernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Exact feature map of a kernel on the training rows.

    With the Gram matrix of the training rows :math:`K = V \Lambda V^T`, a row ``x`` becomes
    :math:`\Lambda^{-1/2} V^T k(x)`, where :math:`k(x)` contains its kernel values with the training rows. For any loss
    ``R`` of the scores of the training rows, the minimizer of :math:`\frac{1}{2} |f|^2 + C R(f)` over the reproducing
    kernel Hilbert space is a linear combination of the kernel functions of the training rows (representer theorem).
    Therefore a linear estimator applied to these features solves the kernel problem exactly, with the same norm, solver
    and certificate: ``make_pipeline(ExactKernelMap(), PartialAUCClassifier(loss="tight"))`` is the kernel machine for
    the partial AUC.

    The map takes :math:`O(n^3)` time and :math:`O(n^2)` memory, and the number of features equals the number of
    linearly independent rows. It is intended for up to a few thousand rows. For more rows, use the approximation
    ``KMeansNystroem``.

    Parameters
    ----------
    kernel, gamma, degree, coef0, max_gram_mb

    Attributes
    ----------
    rows_ : ndarray or CSR matrix of shape (n_samples, n_features)
        The training rows; not available for "precomputed".
    components_ : ndarray of shape (n_samples, n_components)
        :math:`V \Lambda^{-1/2}`, without eigenvalues that are zero up to rounding error.
    n_features_in_

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
        X = check_unlabeled(self, X)
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


AnyArray = NDArray[Any]


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
    kernel : {"rbf", "linear", "poly", "sigmoid"} or callable, default="rbf"
        Kernel. Its parameters are those of scikit-learn's ``SVC``.
    gamma : {"scale", "auto", "scale-to-mean"} or float, default="scale"
        Kernel coefficient. "scale" is ``1 / (n_features * X.var())``, "auto" is ``1 / n_features``, "scale-to-mean" is
        1 divided by the mean squared distance of the first 80,000 rows to their mean.
    degree, coef0
    batch_size : int, default=2048
        Number of rows in a batch of k-means, and in a block of the kernel matrix.
    max_iter : int, default=100
        Maximum number of passes over the rows in k-means, which stops early if it does not improve.
    random_state

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The landmarks.
    normalization_ : ndarray of shape (n_components, n_components)
        The matrix :math:`W^{-1/2}`.
    n_iter_ : int
        Number of passes of k-means.
    gamma_ : float
        Value of ``gamma`` that was used.
    n_features_in_, feature_names_in_

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
        kernel: Any = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
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
        X = check_unlabeled(self, X)
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
        # The first 80,000 rows, as in the paper.
        gamma = 1.0 / spread(X[:80_000]) if self.gamma == "scale-to-mean" else self.gamma
        self._kernel = self._made(gamma).settled(X, None)
        self.gamma_ = self._kernel.parameters["gamma"]
        self.normalization_ = inverse_root(self._kernel.between(self.components_, self.components_))
        return self

    def transform(self, X: Any) -> AnyArray:
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
        landmarks = self.components_.astype(X.dtype, copy=False)
        for start in range(0, X.shape[0], self.batch_size):
            part = slice(start, start + self.batch_size)
            values = self._kernel.between(X[part], landmarks).astype(X.dtype, copy=False)
            np.matmul(values, self.normalization_.astype(X.dtype, copy=False), out=result[part])
        return result

    @property
    def _n_features_out(self) -> int:
        result: int = self.components_.shape[0]
        return result

    def _check_parameters(self) -> None:
        check_number("n_components", self.n_components, above=0, integer=True)
        check_number("batch_size", self.batch_size, above=0, integer=True)
        check_number("max_iter", self.max_iter, above=0, integer=True)
        if self.kernel == "precomputed":
            raise ValueError("kernel must not be 'precomputed', because landmarks are not rows; use ExactKernelMap")
        self._made("auto" if self.gamma == "scale-to-mean" else self.gamma)

    def _made(self, gamma: str | float) -> Kernel:
        return Kernel(self.kernel, gamma, self.degree, self.coef0)


def spread(X: Any) -> float:
    """Return the mean squared distance of rows to their mean; 1 if all rows are equal."""
    if sparse.issparse(X):
        total, mean = np.square(X.data, dtype=np.float64).sum(), np.asarray(X.mean(axis=0), dtype=np.float64)
        value = float(total / X.shape[0] - np.square(mean).sum())
    else:
        value = float(X.var(axis=0, dtype=np.float64).sum())
    return value if value > 0 else 1.0


def inverse_root(W: AnyArray) -> AnyArray:
    """Return the inverse square root of a positive semidefinite matrix, without eigenvalues that are rounding error."""
    values, vectors = linalg.eigh(W)
    keep = values > values[-1] * W.shape[0] * np.finfo(np.float64).eps
    result: AnyArray = (vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T
    return result
