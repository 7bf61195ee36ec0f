"""Base classes of the losses: functions of the scores with a value and one gradient coefficient per example."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._support import Array, Index, Parameters

# Attributes of a bound loss that describe the sample; losses that wrap another loss copy them.
_SAMPLE = ("n_samples", "positive", "n_positive", "n_negative", "is_negative", "weight", "positive_weight", "m", "n")


class Pairs(NamedTuple):
    """Weighted pairs of examples that sample the curvature of a loss.

    The Hessian of the loss in the scores is approximated by
    ``sum_k weight[k] * (e[first[k]] - e[second[k]]) (e[first[k]] - e[second[k]])'``.
    A loss on pairs has a Hessian of this form (a weighted graph Laplacian), so the pairs are sufficient for a Newton
    step. Where a positive moves past many negatives at once, the pairs give an upper bound of the Hessian.
    """

    first: Index
    second: Index
    weight: Array


class Evaluation:
    """Values and affine minorants of a convex loss at given scores.

    Parameters
    ----------
    loss : BoundLoss
        The loss.
    scores : ndarray of shape (n_samples,)
        The scores.

    Attributes
    ----------
    tables : ndarray or None
        Rows of share, true and false positives: the mixture of labellings whose cut is the last minorant. None for a
        loss that is not a maximum over labellings, or whose error is linear in them.
    """

    tables: Array | None = None

    def __init__(self, loss: BoundLoss, scores: Array) -> None:
        self.loss, self.scores = loss, scores
        self._last: tuple[float, tuple[float, Array]] | None = None
        self._values: dict[float, float] = {}

    @cached_property
    def upper(self) -> float:
        """Upper bound of the loss; its value if the loss is exact."""
        return self.value(0.0)

    def minorant(self, width: float) -> tuple[float, Array]:
        """Return the value at the scores and the gradient of an affine minorant of the loss.

        ``value + gradient @ (s - scores) <= loss(s)`` for every ``s``, so the minorant is a valid lower bound. Where
        the loss has large kinks, the gradient changes continuously over a range of ``width`` in the scores. With
        ``width=0``, and for a loss without such kinks, the gradient is a subgradient.
        """
        if self._last is None or self._last[0] != width:
            self._last = width, self._computed(width)
            self._values[width] = self._last[1][0]
        return self._last[1]

    def _computed(self, width: float) -> tuple[float, Array]:
        """Compute the minorant."""
        return self.loss._minorant(self.scores, width)

    def value(self, width: float) -> float:
        """Return the value of the minorant; the last gradient, which is as large as the scores, is kept."""
        if width not in self._values:
            self._values[width] = self._computed(width)[0]
        return self._values[width]

    def slope(self, width: float, direction: Array) -> float:
        """Return the product of the gradient of the minorant with a vector of scores."""
        return float(self.minorant(width)[1] @ direction)

    def curvature(self, count: int, width: float) -> Pairs:
        """Return pairs that sample the Hessian; see :meth:`BoundLoss.curvature`."""
        return self.loss.curvature(self.scores, count, width)

    def refined(self) -> Evaluation:
        """Return tighter bounds at the same scores; the same bounds if the loss is exact."""
        return self

    def sample(self, size: int) -> tuple[Index, Array] | None:
        """Return about ``size`` rows and their copies for :meth:`BoundLoss.restrict`, to approximate the loss.

        None if the sample is not much larger than ``size``, or if the loss cannot be subsampled.
        """
        return None


class BoundLoss(ABC):
    """Loss bound to labels and weights: a function of the scores.

    A row of weight ``v`` counts as ``v`` copies; a row of weight zero is ignored.

    Attributes
    ----------
    n_samples : int
        Length of the score vector.
    positive, negative : ndarray of int
        Rows of each class with non-zero weight.
    n_positive, n_negative : int
        Numbers of these rows.
    is_negative : ndarray of bool
        Whether a row is one of ``negative``.
    weight : ndarray
        The weight of each row.
    positive_weight : ndarray
        The weights of the rows ``positive``.
    m, n : float
        Total weight of the positives and of the negatives.
    convex : bool
        Whether the loss is convex in the scores, so that a solver can certify the optimum.
    exact : bool
        Whether the value is that of the loss and not a lower bound.
    has_kinks : bool
        Whether :meth:`Evaluation.minorant` with ``width > 0`` differs from the subgradient.
    has_curvature, has_gradient_and_curvature : bool
        Whether the loss implements the method.
    has_split : bool
        Whether a loss that is not convex implements :meth:`split`.
    """

    convex: bool = True
    exact: bool = True
    has_kinks: bool = False
    has_curvature: bool = False
    has_gradient_and_curvature: bool = False
    has_split: bool = False

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        labels = _check_labels(y)
        self.n_samples = labels.size
        weight = _check_weight(sample_weight, labels.size)
        seen: Any = True if sample_weight is None else weight > 0
        self.is_negative = ~labels & seen
        self.positive = np.flatnonzero(labels & seen)
        self.n_positive, self.n_negative = self.positive.size, int(np.count_nonzero(self.is_negative))
        for size, name in ((self.n_positive, "positive"), (self.n_negative, "negative")):
            if size == 0:
                raise ValueError(
                    f"y must contain both classes; got one class: no {name} example of non-zero weight among "
                    f"{labels.size} rows"
                )
        self.weight = weight
        self.positive_weight = weight[self.positive]
        self.m = float(self.positive_weight.sum())
        self.n = float(self.n_negative) if sample_weight is None else float(weight[self.is_negative].sum())

    @cached_property
    def negative(self) -> Index:
        """Rows of the negatives with non-zero weight; the array is made when it is first used."""
        return np.flatnonzero(self.is_negative)

    @abstractmethod
    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return the loss at ``scores`` and a (sub)gradient, one coefficient per example."""

    def at(self, scores: Array) -> Evaluation:
        """Return an object that computes several bounds of a convex loss at the same scores."""
        return Evaluation(self, scores)

    def _minorant(self, scores: Array, width: float) -> tuple[float, Array]:
        """Compute :meth:`Evaluation.minorant`."""
        return self.value_and_gradient(scores)

    def binned(self, n_bins: int) -> BoundLoss | None:
        """Return bounds of this loss from histograms of the scores; None if the loss does not support them."""
        return None

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Return about ``count`` weighted pairs that sample the Hessian of the loss near ``scores``.

        ``width`` is that of :meth:`Evaluation.minorant`. The sample is deterministic.
        """
        raise TypeError(f"{type(self).__name__} does not implement curvature")

    def restrict(self, rows: Index, copies: Array) -> BoundLoss:
        """Return the loss on some rows, an estimate of that on all rows.

        ``copies`` is the number of rows of the same class that each row stands for; only the ratios within a class
        matter.
        """
        raise TypeError(f"{type(self).__name__} does not implement a loss on some rows")

    def gradient_and_curvature(self, scores: ArrayLike) -> tuple[Array, Array]:
        """Return the gradient and a diagonal curvature, one positive number per row of non-zero weight.

        A boosting step divides sums of the first by sums of the second. The curvature is the diagonal of the Hessian in
        the scores or an upper bound of its absolute value, and at least a small positive number.
        """
        raise TypeError(f"{type(self).__name__} does not implement a diagonal curvature")

    def split(self) -> tuple[BoundLoss, BoundLoss]:
        """Return two convex bound losses whose difference is this loss."""
        if self.convex:
            return self, Zero(self.n_samples)
        raise TypeError(f"{type(self).__name__} is not available as a difference of convex losses")

    def _checked(self, scores: ArrayLike) -> Array:
        """Return validated scores in double precision."""
        s = np.asarray(scores)
        if s.shape != (self.n_samples,):
            raise ValueError(
                f"scores must have shape ({self.n_samples},), one per label; got an array of shape {s.shape}"
            )
        s = s.astype(np.float64, copy=False)
        # The sum is not finite if any score is not finite; only then are the rows of non-zero weight checked.
        if not np.isfinite(s.sum()) and not np.isfinite(s[self.weight > 0]).all():
            raise ValueError("scores must be finite; got NaN or infinity")
        return s

    def _share_sample(self, other: BoundLoss) -> None:
        """Copy the attributes of the sample from another bound loss; a loss on shards has no arrays."""
        for name in _SAMPLE:
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))


class Loss(ABC):
    """Parameters of a loss and the properties that a solver may assume.

    Attributes
    ----------
    shift_invariant : bool
        Whether the loss is invariant to adding a constant to all scores. The gradient coefficients then sum to zero.
    """

    shift_invariant: ClassVar[bool] = True

    get_params = Parameters.get_params

    @abstractmethod
    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundLoss:
        """Bind the loss to labels (boolean or 0/1) and weights."""

    def with_intercept(self) -> Loss:
        """Return the loss for scores that include an intercept; the same loss unless it optimizes a shift itself."""
        return self

    def sum_scale(self, m: float, n: float) -> float:
        """Return the divisor that turns the sum into the loss, for ``m`` positives and ``n`` negatives."""
        return 1.0


class Zero(BoundLoss):
    """Zero loss, the subtracted part of a convex loss in a difference of convex losses."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return zero and a vector of zeros."""
        return 0.0, np.zeros(self.n_samples)


class Tilted(BoundLoss):
    """Loss plus an affine function, ``base(s) - tilt @ s + constant``, as in each step of CCCP."""

    def __init__(self, base: BoundLoss, tilt: Array, constant: float) -> None:
        self.base, self._tilt, self._constant = base, tilt, constant
        self._share_sample(base)
        self.convex, self.has_kinks = base.convex, base.has_kinks
        self.has_curvature, self.has_gradient_and_curvature = base.has_curvature, base.has_gradient_and_curvature

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and subgradient of the tilted loss."""
        return self._add(scores, *self.base.value_and_gradient(scores))

    def _minorant(self, scores: Array, width: float) -> tuple[float, Array]:
        return self._add(scores, *self.base.at(scores).minorant(width))

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Return the curvature of the base loss; the affine function adds none."""
        return self.base.curvature(scores, count, width)

    def gradient_and_curvature(self, scores: ArrayLike) -> tuple[Array, Array]:
        """Return the gradient of the tilted loss, and the curvature of the base loss."""
        gradient, curvature = self.base.gradient_and_curvature(scores)
        return gradient - self._tilt, curvature

    def _add(self, scores: ArrayLike, value: float, gradient: Array) -> tuple[float, Array]:
        """Add the affine function to a value and a gradient of the base loss."""
        tilted = value - float(self._tilt @ cast(Array, scores)) + self._constant
        return tilted, gradient - self._tilt


def scatter(n_samples: int, pos_rows: Index, pos_coef: Array, neg_rows: Index, neg_coef: Array) -> Array:
    """Return one coefficient per example, from those of some positives and of some negatives."""
    gradient = np.zeros(n_samples)
    gradient[pos_rows] = pos_coef
    gradient[neg_rows] = neg_coef
    return gradient


def _check_labels(y: ArrayLike) -> NDArray[np.bool_]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"labels must be one-dimensional; got an array of shape {labels.shape}")
    if labels.dtype != np.bool_:
        if not ((labels == 0) | (labels == 1)).all():
            raise ValueError(f"labels must be boolean or 0/1; got values {np.unique(labels)[:5]}")
        labels = labels.astype(bool)
    return labels


def _check_weight(sample_weight: ArrayLike | None, size: int) -> Array:
    if sample_weight is None:
        return np.broadcast_to(1.0, size)  # a view of one number, which needs no memory
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.shape != (size,):
        raise ValueError(f"sample_weight must have shape ({size},), one per label; got {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"sample_weight must be finite and >= 0; got {weight.min()} to {weight.max()}")
    return weight
