"""Regularization of linear models: penalties that are added to the loss, and norm constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rocmax._docstrings import publish
from rocmax._support import Array, Parameters


@dataclass(frozen=True)
class SquaredL2(Parameters):
    """L2 regularization: the objective is ``1/2 |w|^2`` plus ``C`` times the loss, as in support vector machines.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.

    Attributes
    ----------
    rotation_invariant : bool
        Whether the penalty is invariant to rotations of the weights, so that a solver may work in the span of the rows.
    """

    C: float = 1.0
    rotation_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (0 < self.C < np.inf):
            raise ValueError(f"C must be a finite number > 0; got {self.C!r}")
        # Solvers use its negative, which an unsigned integer does not have.
        object.__setattr__(self, "C", float(self.C))

    def value(self, w: NDArray[np.float64]) -> float:
        """Return ``1/2 |w|^2``."""
        return 0.5 * float(w @ w)

    def gradient(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``w``."""
        return w


@dataclass(frozen=True)
class Unpenalized(Parameters):
    """No penalty on the weights, for a loss that regularizes the scores itself.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    """

    C: float = 1.0
    rotation_invariant: ClassVar[bool] = True

    def value(self, w: NDArray[np.float64]) -> float:
        """Return 0."""
        return 0.0

    def gradient(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return zeros."""
        return np.zeros_like(w)


def group_labels(groups: Any, n_features: int) -> NDArray[np.intp]:
    """Return the index of the group of each feature, from consecutive indices 0, 1, ....

    Parameters
    ----------
    groups : array-like of shape (n_features,), or list of array-likes of int
        One label per feature (numbers or words), or one array of feature indices per group. The indices must name
        every feature once.
    n_features : int
        Number of features.

    Examples
    --------
    >>> from rocmax.penalties import group_labels
    >>> group_labels([[0, 2], [1]], 3)
    array([0, 1, 0])
    >>> group_labels(["dose", "age", "dose"], 3)
    array([1, 0, 1])
    """
    if groups is None:
        raise ValueError("groups must be one label per feature, or a list of index arrays; got None")
    items = list(groups)
    if not items or np.ndim(items[0]) == 0:
        return _from_labels(items, n_features)
    return _from_indices(items, n_features)


def _from_labels(labels: list[Any], n_features: int) -> NDArray[np.intp]:
    if len(labels) != n_features or any(np.ndim(label) for label in labels):
        raise ValueError(
            f"groups must be {n_features} labels, one per feature, or a list of index arrays; got {len(labels)} labels"
        )
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.intp)


def _from_indices(groups: list[Any], n_features: int) -> NDArray[np.intp]:
    arrays = [np.asarray(group) for group in groups]
    for p, group in enumerate(arrays):
        if group.ndim != 1 or group.size == 0 or group.dtype.kind not in "iu":
            raise ValueError(
                f"groups must be non-empty one-dimensional arrays of feature indices; got group {p} with dtype "
                f"{group.dtype} and shape {group.shape}"
            )
    index = np.concatenate(arrays)
    if index.min() < 0 or index.max() >= n_features:
        raise ValueError(
            f"feature indices in groups must be between 0 and {n_features - 1}; got {index.min()} to {index.max()}"
        )
    count = np.bincount(index, minlength=n_features)
    if (count > 1).any():
        raise ValueError(f"groups must not overlap; got features in several groups: {np.flatnonzero(count > 1)[:5]}")
    if (count == 0).any():
        raise ValueError(f"groups must cover all features; got features in no group: {np.flatnonzero(count == 0)[:5]}")
    label = np.empty(n_features, dtype=np.intp)
    label[index] = np.repeat(np.arange(len(arrays)), [group.size for group in arrays])
    return label


# Norm constraints on the weights: exact projections, support functions and Jacobians of the projections.


@dataclass(frozen=True)
class Ball(ABC):
    r"""Norm constraint :math:`W = \{w : \Omega(w) \le \mathrm{radius}\}` for a convex function that is 0 at 0.

    Parameters
    ----------
    radius

    Attributes
    ----------
    sparse : bool
        Whether the constraint leads to sparse solutions, in which weights are exactly zero.
    rotation_invariant : bool
        Whether the penalty is invariant to rotations of the weights, so that a solver may work in the span of the rows.
    """

    radius: float
    sparse: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = False

    get_params = Parameters.get_params

    def __post_init__(self) -> None:
        if not (0 < self.radius < np.inf):
            raise ValueError(f"radius must be a finite number > 0 (at 0 all weights are zero); got {self.radius!r}")

    @abstractmethod
    def value(self, w: Array) -> float:
        """Return the value of the constrained function."""

    @abstractmethod
    def project(self, v: Array) -> Array:
        """Return the projection of ``v`` onto the set."""

    @abstractmethod
    def support(self, g: Array) -> float:
        """Return the largest ``g @ w`` over the set."""

    @abstractmethod
    def reach(self) -> float:
        """Return the largest Euclidean norm in the set."""

    @abstractmethod
    def jacobian_gram(self, v: Array, G: Array, gram: Array) -> Array:
        """Return ``G J G'``, with ``J`` the (generalized) Jacobian of the projection at ``v``; ``gram`` is ``G G'``."""

    def inside(self, w: Array) -> Array:
        """Return weights that may be outside of the set by a rounding error, shortened so that they are not.

        The value at the result, as computed by :meth:`value`, is at most the radius.
        """
        share = float(np.finfo(np.float64).eps)
        while self.value(w) > self.radius:
            w, share = w * (1.0 - share), 2.0 * share
        return w

    def n_used(self, w: Array) -> int:
        """Return the number of features (groups of features for :class:`GroupBall`) with non-zero weights."""
        return int(np.count_nonzero(w))

    def for_features(self, n_features: int) -> Ball:
        """Return the constraint for this number of features; only group constraints depend on it."""
        return self


@dataclass(frozen=True)
class L2Ball(Ball):
    r"""L2-norm constraint, :math:`|w|_2 \le \mathrm{radius}`.

    Parameters
    ----------
    radius

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.penalties import L2Ball
    >>> L2Ball(radius=1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    sparse: ClassVar[bool] = False
    rotation_invariant: ClassVar[bool] = True

    def value(self, w: Array) -> float:
        """Return the Euclidean norm."""
        return float(np.linalg.norm(w))

    def project(self, v: Array) -> Array:
        """Return ``v``, rescaled if its norm exceeds the radius. O(d)."""
        norm = np.linalg.norm(v)
        return v.copy() if norm <= self.radius else self.inside(v * (self.radius / norm))

    def support(self, g: Array) -> float:
        """Return ``radius |g|_2``."""
        return self.radius * float(np.linalg.norm(g))

    def reach(self) -> float:
        """Return the radius."""
        return self.radius

    def jacobian_gram(self, v: Array, G: Array, gram: Array) -> Array:
        """Return the product; the Jacobian scales all directions orthogonal to ``v`` and removes that of ``v``."""
        norm = np.linalg.norm(v)
        if norm <= self.radius:
            return gram
        along = G @ (v / norm)
        return (self.radius / norm) * (gram - np.outer(along, along))


@dataclass(frozen=True)
class ElasticNetBall(Ball):
    r"""Elastic-net constraint, :math:`\kappa |w|_1 + \frac{1-\kappa}{2} |w|_2^2 \le \mathrm{radius}`.

    The projection is :math:`u_i = \mathrm{sign}(v_i) (|v_i| - \kappa\tau)_+ / (1 + (1-\kappa)\tau)`. With the ``k``
    largest entries active, their sum ``S1`` and sum of squares ``S2``, ``u`` lies on the boundary if

    .. math:: (1-\kappa)\tau^2 + 2\tau = \frac{\kappa S_1 + \frac{1-\kappa}{2} S_2 - \mathrm{radius}}
        {\frac{1}{2} k\kappa^2 + (1-\kappa)\,\mathrm{radius}},

    and an entry is active if ``tau`` is below :math:`|v_i|/\kappa` (Duchi et al., ICML 2008, for ``l1_ratio=1``). The
    cost is O(d log d), for one sort.

    Parameters
    ----------
    radius
    l1_ratio : float, default=0.5
        The share :math:`\kappa` of the L1 norm, from 0 (an L2 ball of radius ``sqrt(2 radius)``) to 1 (an L1 ball).

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.penalties import ElasticNetBall
    >>> ball = ElasticNetBall(radius=1.0, l1_ratio=0.5)
    >>> w = ball.project(np.array([3.0, -2.0, 0.1]))
    >>> w.round(3), round(ball.value(w), 12)
    (array([ 0.96, -0.47,  0.  ]), 1.0)
    """

    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.l1_ratio <= 1):
            raise ValueError(f"l1_ratio must be between 0 and 1; got {self.l1_ratio!r}")

    def value(self, w: Array) -> float:
        """Return the elastic-net penalty."""
        kappa = self.l1_ratio
        return kappa * float(np.abs(w).sum()) + 0.5 * (1 - kappa) * float(w @ w)

    def project(self, v: Array) -> Array:
        """Return the projection onto the set. O(d log d)."""
        size = np.abs(v)
        shrunk, _ = _shrink(size, self.l1_ratio, self.radius)
        return np.copysign(shrunk, v)

    def support(self, g: Array) -> float:
        r"""Return the support function, from its dual :math:`\min_\lambda \lambda r + \lambda\,\Omega^*(g/\lambda)`."""
        kappa, rest = self.l1_ratio, 1 - self.l1_ratio
        size = np.sort(np.abs(g[g != 0]))[::-1]
        if size.size == 0:
            return 0.0
        if rest == 0:
            return self.radius * float(size[0])
        unit = float(size[0])
        size = size / unit
        squares = np.cumsum(size**2)
        half = 0.5 * kappa**2 * np.arange(1, size.size + 1) + rest * self.radius
        k = max(1, int(np.count_nonzero(kappa**2 * squares < 2 * half * size**2)))
        multiplier = np.sqrt(squares[k - 1] / (2 * half[k - 1]))
        # Every multiplier gives an upper bound, so certificates are valid despite rounding error.
        excess = np.maximum(size - kappa * multiplier, 0.0)
        return unit * float(multiplier * self.radius + excess @ excess / (2 * rest * multiplier))

    def reach(self) -> float:
        """Return the norm of a point with one non-zero weight, which has the largest norm."""
        return _largest_weight(self.l1_ratio, self.radius)

    def jacobian_gram(self, v: Array, G: Array, gram: Array) -> Array:
        """Return the product; the Jacobian is restricted to the active weights and the tangent of the boundary."""
        shrunk, scale = _shrink(np.abs(v), self.l1_ratio, self.radius)
        if scale is None:
            return gram
        active = np.flatnonzero(shrunk)
        normal = np.copysign(self.l1_ratio + (1 - self.l1_ratio) * shrunk[active], v[active])
        part = G[:, active]
        along = part @ (normal / np.linalg.norm(normal))
        return scale * (part @ part.T - np.outer(along, along))


@dataclass(frozen=True)
class L1Ball(ElasticNetBall):
    r"""L1-norm constraint, :math:`|w|_1 \le \mathrm{radius}`.

    Parameters
    ----------
    radius
    l1_ratio : float, default=1.0
        Always 1: the elastic net without its L2 part.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.penalties import L1Ball
    >>> L1Ball(radius=1.0).project(np.array([1.5, -1.0, 0.2]))
    array([ 0.75, -0.25,  0.  ])
    """

    l1_ratio: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.l1_ratio != 1:
            raise ValueError(f"l1_ratio of L1Ball must be 1; got {self.l1_ratio!r}; use ElasticNetBall")


@dataclass(frozen=True, eq=False)
class GroupBall(Ball):
    r"""Group-norm constraint, :math:`\sum_p |w_p|_2 \le \mathrm{radius}`.

    The norms of the groups are projected onto the L1 ball, and each group is rescaled to its new norm (van den Berg et
    al., 2008). Narasimhan and Agarwal (KDD 2013) bound the square, :math:`(\sum_p |w_p|_2)^2 \le \lambda`: ``radius``
    is :math:`\sqrt\lambda`.

    Parameters
    ----------
    radius
    groups : array-like of shape (n_features,), or list of array-likes of int
        As in :func:`group_labels`.
    n_features : int, default=None
        Number of features. With None, the groups are validated when :meth:`for_features` is called, as estimators do in
        ``fit``; the constraint cannot be used before that.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.penalties import GroupBall
    >>> ball = GroupBall(radius=1.0, groups=[[0, 1], [2]], n_features=3)
    >>> ball.project(np.array([3.0, 4.0, 2.0]))
    array([0.6, 0.8, 0. ])
    """

    groups: Any
    n_features: int | None = None
    _label: NDArray[np.intp] | None = field(init=False, repr=False)
    n_groups: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        label = None if self.n_features is None else group_labels(self.groups, self.n_features)
        object.__setattr__(self, "_label", label)
        object.__setattr__(self, "n_groups", 0 if label is None else int(label.max()) + 1)

    @property
    def label(self) -> NDArray[np.intp]:
        """Index of the group of each feature."""
        if self._label is None:
            raise ValueError(
                "n_features of GroupBall must be set before it is used; got None: pass n_features, or use for_features"
            )
        return self._label

    def for_features(self, n_features: int) -> GroupBall:
        """Return the constraint for this number of features."""
        if self.n_features is None:
            return GroupBall(self.radius, self.groups, n_features)
        if self.n_features != n_features:
            raise ValueError(
                f"the data must have n_features={self.n_features} features, as GroupBall; got {n_features} features"
            )
        return self

    def n_used(self, w: Array) -> int:
        """Return the number of groups with non-zero weights."""
        return int(np.unique(self.label[w != 0]).size)

    def norms(self, w: Array) -> Array:
        """Return the Euclidean norm of each group."""
        # Scale by the largest weight, to avoid underflow and overflow of the squares.
        largest = float(np.abs(w).max(initial=0.0))
        if largest == 0:
            return np.zeros(self.n_groups)
        return largest * np.sqrt(np.bincount(self.label, (w / largest) ** 2, self.n_groups))

    def value(self, w: Array) -> float:
        """Return the sum of the norms of the groups."""
        return float(self.norms(w).sum())

    def project(self, v: Array) -> Array:
        """Return the projection onto the set, in O(d + P log P) for P groups."""
        norms = self.norms(v)
        shrunk, scale = _shrink(norms, 1.0, self.radius)
        if scale is None:
            return v.copy()
        return v * (shrunk / np.where(norms > 0, norms, 1.0))[self.label]

    def support(self, g: Array) -> float:
        """Return ``radius`` times the largest norm of a group."""
        return self.radius * float(self.norms(g).max())

    def reach(self) -> float:
        """Return the radius."""
        return self.radius

    def jacobian_gram(self, v: Array, G: Array, gram: Array) -> Array:
        """Return the product; the Jacobian shrinks active groups across their direction and keeps the sum of norms."""
        norms = self.norms(v)
        shrunk, scale = _shrink(norms, 1.0, self.radius)
        if scale is None:
            return gram
        active = np.flatnonzero(shrunk[self.label])
        group = self.label[active]
        ratio = shrunk[group] / norms[group]
        part = G[:, active]
        # The Jacobian scales by the ratio across the direction of a group, and by 1 along it.
        direction = v[active] / norms[group]
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        along = np.add.reduceat((part * direction)[:, order], starts, axis=1)
        share = 1.0 - ratio[order][starts]
        across = (part * ratio) @ part.T + (along * share) @ along.T
        total = along.sum(axis=1)
        return across - np.outer(total, total) / starts.size


def _largest_weight(kappa: float, radius: float) -> float:
    """Return the largest weight that a single feature can have in the elastic-net ball."""
    return 2 * radius / (kappa + float(np.sqrt(kappa**2 + 2 * (1 - kappa) * radius)))


def _shrink(size: Array, kappa: float, radius: float) -> tuple[Array, float | None]:
    """Project non-negative numbers onto the elastic-net ball.

    The second result is ``1 / (1 + (1 - kappa) tau)`` for the multiplier ``tau``; None if the point is inside the ball.
    """
    rest = 1.0 - kappa
    if kappa * float(size.sum()) + 0.5 * rest * float(size @ size) <= radius:
        return size, None
    # No entry of the projection exceeds the largest possible single weight. This gives a lower bound of the
    # multiplier, and only the entries above it are sorted.
    single = _largest_weight(kappa, radius)
    least = max((float(size.max()) - single) / (kappa + rest * single), 0.0)
    falling = np.sort(size[size > kappa * least * (1 - 1e-9)])[::-1]
    value = np.cumsum(kappa * falling + 0.5 * rest * falling**2) - radius
    half = 0.5 * kappa**2 * np.arange(1, falling.size + 1) + rest * radius
    in_play = kappa**2 * value < half * falling * (rest * falling + 2 * kappa)
    last = falling[max(1, int(np.count_nonzero(in_play))) - 1]
    active, scale = size >= last, 1.0
    held = size[active]
    # Two rounds: if the point is far outside, the multiplier is large and its rounding error is visible in the result.
    # The error is in the direction of the multiplier, so a second round removes it.
    for _ in range(2):
        excess = float((kappa * held + 0.5 * rest * held**2).sum()) - radius
        ratio = excess / (0.5 * kappa**2 * held.size + rest * radius)
        tau = ratio / (1.0 + np.sqrt(max(1.0 + rest * ratio, 0.0)))
        held = np.maximum(held - kappa * tau, 0.0) / (1.0 + rest * tau)
        scale /= 1.0 + rest * tau
    shrunk = np.zeros_like(size)
    shrunk[active] = held
    return shrunk, scale


__all__ = [
    "Ball",
    "ElasticNetBall",
    "GroupBall",
    "L1Ball",
    "L2Ball",
    "SquaredL2",
    "Unpenalized",
    "group_labels",
]

publish("rocmax.penalties", globals(), __all__)
