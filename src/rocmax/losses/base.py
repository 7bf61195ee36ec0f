"""The contract of a loss: scores in, one number and one coefficient per example out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._params import Parameters
from rocmax._typing import Array, Index
from rocmax.losses.growth import GrownCuts, Growth

# What a bound loss knows of its sample, for losses that wrap another.
_SAMPLE = ("n_samples", "positive", "negative", "is_negative", "weight", "positive_weight", "m", "n")


class Pairs(NamedTuple):
    """Weighted pairs of examples, a sample of a loss's curvature.

    The Hessian of the loss in the scores is approximated by
    ``sum_k weight[k] * (e[first[k]] - e[second[k]]) (e[first[k]] - e[second[k]])'``.
    A loss on pairs has a Hessian of this form (a weighted graph Laplacian), so a solver needs nothing else
    to take a Newton step. Where a positive jumps over many negatives at once, pairs bound the Hessian from above.
    """

    first: Index
    second: Index
    weight: Array


class BoundLoss(ABC):
    """A loss with its labels and weights: a function of the scores alone.

    A row of weight ``v`` counts as ``v`` copies of itself; a row of weight zero is absent.

    Attributes
    ----------
    n_samples : int
        Length of the score vector.
    positive, negative : ndarray of int
        Rows of each class whose weight is not zero.
    is_negative : ndarray of bool
        Whether a row is one of ``negative``.
    weight : ndarray
        The weight of each row.
    positive_weight : ndarray
        The weights of the rows ``positive``.
    m, n : float
        Total weight of the positives and of the negatives.
    convex, smooth : bool
        As in :class:`Loss`, for this window.
    has_kinks : bool
        Whether :meth:`smoothed` with ``width > 0`` differs from the subgradient.
    """

    convex: bool = True
    smooth: bool = False
    has_kinks: bool = False

    def __init__(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        labels = _check_labels(y)
        self.n_samples = labels.size
        weight = _check_weight(sample_weight, labels.size)
        seen: Any = True if sample_weight is None else weight > 0
        self.is_negative = ~labels & seen
        self.positive = np.flatnonzero(labels & seen)
        self.negative = np.flatnonzero(self.is_negative)
        for rows, name in ((self.positive, "positive"), (self.negative, "negative")):
            if rows.size == 0:
                raise ValueError(
                    f"a loss on pairs needs both classes, and got one class: no {name} example of non-zero "
                    f"weight among {labels.size} rows"
                )
        self.weight = weight
        self.positive_weight = weight[self.positive]
        self.m = float(self.positive_weight.sum())
        self.n = float(weight[self.negative].sum())

    @abstractmethod
    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return the loss at ``scores`` and a (sub)gradient, one coefficient per example."""

    def smoothed(self, scores: ArrayLike, width: float) -> tuple[float, Array]:
        """Return the value at ``scores`` and the gradient of an affine minorant of a convex loss.

        ``value + gradient @ (s - scores) <= loss(s)`` for every ``s``: the minorant certifies. The gradient
        moves continuously where the loss has kinks of noticeable size, over a range of ``width`` in
        the scores. ``width=0`` is the subgradient itself, which is also what a loss without such kinks returns.
        """
        return self.value_and_gradient(scores)

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Return about ``count`` weighted pairs that sample the Hessian of the loss near ``scores``.

        ``width`` is that of :meth:`smoothed`. The sample is deterministic.
        """
        raise TypeError(f"{type(self).__name__} has no curvature")

    def tables(self) -> Array | None:
        """Return rows of share, true and false positives: the mixture of labellings that the last call returned.

        None for a loss that is not a maximum over labellings, or whose error is linear in them.
        """
        return None

    def thinned(self, size: int) -> tuple[Index, BoundLoss] | None:
        """Return about ``size`` rows and the loss on them alone, for rough work on a large sample.

        None if the sample is not much larger than that, or the loss cannot be thinned.
        """
        return None

    def hessian_product(self, scores: ArrayLike) -> Callable[[Array], Array]:
        """Return ``v -> H v`` for the (generalised) Hessian of a smooth loss in the scores."""
        raise TypeError(f"{type(self).__name__} has no Hessian products")

    def has(self, method: str) -> bool:
        """Tell whether this loss implements an optional method: ``curvature``, ``hessian_product`` or ``split``."""
        return getattr(type(self), method) is not getattr(BoundLoss, method)

    def split(self) -> tuple[BoundLoss, BoundLoss]:
        """Return two convex bound losses whose difference is this loss."""
        if self.convex:
            return self, Zero(self.n_samples)
        raise TypeError(f"{type(self).__name__} is not given as a difference of convex losses")

    def _checked(self, scores: ArrayLike) -> Array:
        """Scores, checked, in double precision."""
        s = np.asarray(scores)
        if s.shape != (self.n_samples,):
            raise ValueError(f"expected {self.n_samples} scores, one per label; got an array of shape {s.shape}")
        s = s.astype(np.float64, copy=False)
        # The sum is infinite or NaN as soon as one score is; the slow look at the rows that count is only taken then.
        if not np.isfinite(s.sum()) and not np.isfinite(s[self.weight > 0]).all():
            raise ValueError("scores contain NaN or infinity; a loss needs finite scores")
        return s

    def _share_sample(self, other: BoundLoss) -> None:
        """Take over the sample of another bound loss."""
        for name in _SAMPLE:
            setattr(self, name, getattr(other, name))

    def _scatter(self, pos_rows: Index, pos_coef: Array, neg_rows: Index, neg_coef: Array) -> Array:
        """One coefficient per example from those of the positives and of some negatives."""
        gradient = np.zeros(self.n_samples)
        gradient[pos_rows] = pos_coef
        gradient[neg_rows] = neg_coef
        return gradient


class Loss(ABC):
    """A loss before it meets labels: parameters and what a solver may assume.

    Attributes
    ----------
    convex : bool
        Convex in the scores, so a solver can certify.
    smooth : bool
        Continuously differentiable.
    shift_invariant : bool
        Adding a constant to all scores changes nothing, so the coefficients sum to zero.
    batch_unbiased : bool
        The mean over random mini-batches estimates the value on all rows without bias.
    has_curvature : bool
        :meth:`BoundLoss.curvature` samples the Hessian, so that Newton steps are possible.
    """

    convex: ClassVar[bool]
    smooth: ClassVar[bool]
    shift_invariant: ClassVar[bool] = True
    batch_unbiased: ClassVar[bool]
    has_curvature: ClassVar[bool] = False

    get_params = Parameters.get_params
    with_params = Parameters.with_params

    @abstractmethod
    def bind(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BoundLoss:
        """Attach labels (boolean or 0/1) and weights."""

    def with_intercept(self) -> Loss:
        """Return the loss of scores that have an intercept of their own; the same loss, unless it has one inside."""
        return self

    def sum_scale(self, m: float, n: float) -> float:
        """Return by what the sum that the loss is made of is divided, for ``m`` positives and ``n`` negatives."""
        return 1.0

    def grow_cuts(self, offset: Array, tables: list[Array | None], growth: Growth) -> GrownCuts | None:
        """Return what cuts of the loss on some rows become when rows are added; None if they cannot be kept.

        Parameters
        ----------
        offset : ndarray of shape (n_cuts,)
            Values of the cuts at zero weights.
        tables : list of ndarray or None
            Tables of the cuts, see :meth:`BoundLoss.tables`.
        growth : Growth
            The rows so far and the new ones.

        Returns
        -------
        GrownCuts or None
            The cuts of the loss on all rows.
        """
        return None


class Zero(BoundLoss):
    """The loss that is zero: what a convex loss subtracts from itself."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Zero and zeros."""
        return 0.0, np.zeros(self.n_samples)


class Tilted(BoundLoss):
    """``base(s) - tilt @ s + constant``: a loss plus an affine function, as in each step of CCCP."""

    def __init__(self, base: BoundLoss, tilt: Array, constant: float) -> None:
        self._base, self._tilt, self._constant = base, tilt, constant
        self._share_sample(base)
        self.convex, self.smooth, self.has_kinks = base.convex, base.smooth, base.has_kinks

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Value and subgradient of the tilted loss."""
        return self._add(scores, *self._base.value_and_gradient(scores))

    def smoothed(self, scores: ArrayLike, width: float) -> tuple[float, Array]:
        """Affine minorant of the tilted loss."""
        return self._add(scores, *self._base.smoothed(scores, width))

    def has(self, method: str) -> bool:
        """Tell what the base implements."""
        return self._base.has(method)

    def curvature(self, scores: ArrayLike, count: int, width: float = 0.0) -> Pairs:
        """Curvature of the base; an affine function has none."""
        return self._base.curvature(scores, count, width)

    def _add(self, scores: ArrayLike, value: float, gradient: Array) -> tuple[float, Array]:
        tilted = value - float(self._tilt @ np.asarray(scores, dtype=np.float64)) + self._constant
        return tilted, gradient - self._tilt


def _check_labels(y: ArrayLike) -> NDArray[np.bool_]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"labels need one dimension; got an array of shape {labels.shape}")
    if labels.dtype != np.bool_:
        if not np.isin(labels, (0, 1)).all():
            raise ValueError(f"labels of a loss are boolean or 0/1; got values {np.unique(labels)[:5]}")
        labels = labels.astype(bool)
    return labels


def _check_weight(sample_weight: ArrayLike | None, size: int) -> Array:
    if sample_weight is None:
        return np.ones(size)
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.shape != (size,):
        raise ValueError(f"sample_weight needs shape ({size},), one per label; got {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"sample_weight needs finite values >= 0; got {weight.min()} to {weight.max()}")
    return weight
