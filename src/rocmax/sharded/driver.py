"""Driver of a fit on shards: handles of score vectors, the operator and the losses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from rocmax._support import Array, Index
from rocmax.losses.base import BoundLoss, Evaluation, Pairs
from rocmax.losses.binned import MAX_BINS, Bins, ScoreGrid
from rocmax.operators import Operator
from rocmax.penalties import SquaredL2
from rocmax.sharded.shard import BinnedTerm, LinearTerm, Moments, Recipe, Sample
from rocmax.solvers.base import Result, gap_rounding, invalid_bound, valid_gap

# Handles of vectors with one number per row, which are stored in shards.


# Rows whose scores are known to the driver, for the ranges of bins and the spread of scores.
_SAMPLE = 4096
# If the mean of a feature is beyond this multiple of its scale, products in single precision have errors that matter to
# the gap; scales beyond the second limit overflow or underflow there.
_FARTHEST, _LARGEST_SINGLE = 1e3, 1e15
_KEYS = itertools.count()


class Executor(Protocol):
    """Shards that answer requests, in this process or on the workers of a cluster."""

    def run(self, recipes: Sequence[Recipe], drop: Sequence[int], method: str, *args: Any) -> list[Any]:
        """Return the answer of each shard to a request, see :meth:`~rocmax.sharded.shard.Shard.answer`.

        ``recipes`` are those of all vectors that the request refers to. A request can be repeated.
        """


class Stored:
    """Score vector ``X @ w`` in the shards; they drop it when the last reference to this object is gone."""

    def __init__(self, space: Space, w: Array, terms: tuple[tuple[Stored, float], ...] = ()) -> None:
        self.key, self.w = next(_KEYS), w
        self._space = space
        # The vectors of the combination must not be kept alive by this one: only their numbers are.
        self.terms = tuple((other.key, factor) for other, factor in terms)
        self.low, self.high = np.inf, -np.inf
        self.sample = np.empty(0)

    def __del__(self) -> None:
        self._space.forget(self.key)

    @property
    def recipe(self) -> Recipe:
        """How the shards make this vector."""
        v, shift = self._space.raw(self.w)
        return Recipe(self.key, v, shift, self.terms, self._space.double)


class Space:
    """Driver of the shards: sends requests, and keeps track of the stored vectors.

    Parameters
    ----------
    executor : Executor
        The shards.
    n_features : int
        Number of features.
    counts : tuple
        Numbers and total weights of positives and negatives, see :meth:`~rocmax.sharded.shard.Shard.counts`.
    """

    def __init__(self, executor: Executor, n_features: int, counts: tuple[int, int, float, float]) -> None:
        self._executor = executor
        self.n_positive, self.n_negative, self.m, self.n = counts
        self.n_rows, self.n_features = self.n_positive + self.n_negative, n_features
        self.mean, self.scale = np.zeros(n_features), np.ones(n_features)
        self.double = False
        self._drop: list[int] = []

    def standardize(self) -> None:
        """Compute mean and scale of the features in one pass; from now on, weights refer to standardized features.

        This also determines whether rows in single precision need products in double precision.
        """
        moments: Moments | None = None
        for part in self.ask((), "moments"):
            moments = part if moments is None else moments.merged(part)
        assert moments is not None
        spread = np.sqrt(moments.square / moments.weight)
        # A constant feature is left out: with this scale, its products are zero.
        constant = spread <= 10 * np.finfo(np.float64).eps * np.abs(moments.mean)
        self.mean, self.scale = moments.mean, np.where(constant, np.inf, spread)
        largest, smallest = np.max(spread, initial=0.0), np.min(spread[~constant], initial=1.0)
        far = np.max(np.abs(self.mean) / self.scale, initial=0.0) > _FARTHEST
        self.double = bool(far or largest > _LARGEST_SINGLE or smallest < 1 / _LARGEST_SINGLE)

    def raw(self, w: Array) -> tuple[Array, float]:
        """Return weights of the original features and a shift that give the scores of standardized features."""
        v = w / self.scale
        return v, float(self.mean @ v)

    def ask(self, needed: Sequence[Stored], method: str, *args: Any) -> list[Any]:
        """Return the answer of each shard to a request that refers to some stored vectors."""
        drop, self._drop = self._drop, []
        return self._executor.run([vector.recipe for vector in needed], drop, method, *args)

    def forget(self, key: int) -> None:
        """Note that a vector is not used any more."""
        self._drop.append(key)

    def product(self, w: Array) -> Scores:
        """Return the scores ``X @ w``; one pass over the data."""
        if not w.any():
            return Scores(self, {}, w)
        return Scores(self, {self._summarized(Stored(self, w)): 1.0}, w)

    def combined(self, terms: dict[Stored, float], w: Array) -> Stored:
        """Store a combination of stored vectors; no pass over the data."""
        found = Stored(self, w, tuple(terms.items()))
        self.ask([*terms, found], "has", found.key)
        low, high = _range(terms)
        found.low, found.high, found.sample = low, high, _sample(terms)
        return found

    def _summarized(self, vector: Stored) -> Stored:
        answers = self.ask([vector], "summary", vector.key, _SAMPLE / max(self.n_rows, 1))
        vector.low, vector.high = min(low for low, _, _ in answers), max(high for _, high, _ in answers)
        # By number of partition, so that the samples of all vectors have the same rows, wherever these are.
        parts = sorted((part for _, _, sample in answers for part in sample), key=lambda part: part[0])
        vector.sample = np.concatenate([values for _, values in parts])
        return vector


class Scores:
    """Scores of all rows, a linear combination of stored vectors.

    Parameters
    ----------
    space : Space
        The shards.
    terms : dict
        Factor of each stored vector.
    w : ndarray
        Weights with these scores.
    """

    __array_ufunc__ = None  # NumPy scalars leave products to this class

    def __init__(self, space: Space, terms: dict[Stored, float], w: Array) -> None:
        self.space, self.terms, self.w = space, terms, w

    def __add__(self, other: Scores) -> Scores:
        terms = dict(self._short().terms)
        for vector, factor in other._short().terms.items():
            terms[vector] = terms.get(vector, 0.0) + factor
        return Scores(self.space, terms, self.w + other.w)

    def __sub__(self, other: Scores) -> Scores:
        return self + -1.0 * other

    def __rmul__(self, factor: float) -> Scores:
        terms = {vector: factor * own for vector, own in self.terms.items()} if factor else {}
        return Scores(self.space, terms, factor * self.w)

    def any(self) -> bool:
        """Return whether the weights are not all zero."""
        return bool(self.w.any())

    def std(self, **options: Any) -> float:
        """Return the standard deviation in a sample of rows."""
        sample = _sample(self.terms)
        return float(sample.std()) if sample.size else 0.0

    @property
    def requested(self) -> tuple[tuple[int, float], ...]:
        """The combination as a part of a request."""
        return tuple((vector.key, factor) for vector, factor in self.terms.items())

    def grid(self, n_bins: int) -> ScoreGrid:
        """Return bins for these scores."""
        if not self.terms:
            return ScoreGrid(0.0, 0.0, 0.0, 0.0, 1)
        sample = _sample(self.terms)
        return ScoreGrid.covering(np.append(sample, [*_range(self.terms)]), n_bins)

    def _short(self) -> Scores:
        """Store a combination as one vector before it becomes part of a longer one."""
        if len(self.terms) > 1:
            self.terms = {self.space.combined(self.terms, self.w): 1.0}
        return self


class Coefficients:
    """Coefficients of all rows: a linear combination of terms that the shards compute from scores.

    Parameters
    ----------
    space : Space
        The shards.
    terms : list of Term
        The terms.
    value : float, default=None
        Value of the loss whose cut has these coefficients, at the scores of the first term; None if there is no cut.
    """

    __array_ufunc__ = None

    def __init__(self, space: Space, terms: Sequence[Term], value: float | None = None) -> None:
        self.space, self.terms, self.value = space, list(terms), value
        self._products: dict[int, float] = {}
        self._size: float | None = None

    def __matmul__(self, scores: Scores) -> float:
        unknown = [vector for vector in scores.terms if self._known(vector) is None]
        if unknown:
            self._ask(unknown)
        found = 0.0
        for vector, factor in scores.terms.items():
            product = self._known(vector)
            assert product is not None
            found += factor * product
        return found

    def __add__(self, other: Coefficients) -> Coefficients:
        return Coefficients(self.space, [*self.terms, *other.terms])

    def __sub__(self, other: Coefficients) -> Coefficients:
        return self + -1.0 * other

    def __rmul__(self, factor: float) -> Coefficients:
        return Coefficients(self.space, [term.times(factor) for term in self.terms])

    def any(self) -> bool:
        """Return whether some coefficient is not zero."""
        return any(term.factor and term.is_nonzero() for term in self.terms)

    def absolute_sum(self) -> float:
        """Return the sum of the absolute values."""
        if self._size is None:
            self._ask([])
        assert self._size is not None
        return self._size

    def product_size(self) -> float:
        """Return the size of the terms of a product with the scores of the bins; 0 without bins."""
        return sum(term.product_size() for term in self.terms if isinstance(term, Binned))

    def gradient(self) -> Array:
        """Return ``X.T @ c`` for the standardized features; one pass over the data."""
        needed, requested = self._requested()
        answers = self.space.ask(needed, "gradient", requested, self.space.double)
        total = sum(part for _, part in answers)
        gradient = np.sum([part for part, _ in answers], axis=0)
        result: Array = (gradient - self.space.mean * total) / self.space.scale
        return result

    def _requested(self) -> tuple[list[Stored], list[BinnedTerm | LinearTerm]]:
        needed = list(dict.fromkeys(vector for term in self.terms for vector in term.scores.terms))
        return needed, [request for term in self.terms for request in term.requests()]

    def _known(self, vector: Stored) -> float | None:
        if vector.key not in self._products:
            parts = [term.product(vector) for term in self.terms]
            if any(part is None for part in parts):
                return None
            self._products[vector.key] = sum(part for part in parts if part is not None)
        return self._products[vector.key]

    def _ask(self, vectors: Sequence[Stored]) -> None:
        needed, requested = self._requested()
        keys = [vector.key for vector in vectors]
        answers = self.space.ask([*dict.fromkeys([*needed, *vectors])], "dot", requested, keys)
        found = np.sum(answers, axis=0)
        self._products |= dict(zip(keys, (float(value) for value in found), strict=False))
        self._size = float(found[-1])


class Term(Protocol):
    """Term of coefficients."""

    scores: Scores
    factor: float

    def times(self, factor: float) -> Term:
        """Return a multiple of this term."""

    def is_nonzero(self) -> bool:
        """Return whether some coefficient of a row is not zero."""

    def requests(self) -> list[BinnedTerm | LinearTerm]:
        """Return the term as part of a request."""

    def product(self, vector: Stored) -> float | None:
        """Return the product with a vector if it is known without a request."""


class Binned:
    """Term of coefficients, constant in the bins of scores."""

    def __init__(self, scores: Scores, bins: Bins, values: Array, sums: dict[int, Array], factor: float = 1.0) -> None:
        self.scores, self.bins, self.values, self.sums, self.factor = scores, bins, values, sums, factor

    def times(self, factor: float) -> Binned:
        """Return a multiple of this term."""
        return Binned(self.scores, self.bins, self.values, self.sums, factor * self.factor)

    def is_nonzero(self) -> bool:
        """Return whether some coefficient of a row is not zero."""
        return bool(self.values[self.bins.used].any())

    def product_size(self) -> float:
        """Return one plus the sum of the absolute coefficients, times the largest absolute score, from the bins."""
        used = self.bins.used
        weight = self.bins.weight[used]
        largest = float(np.abs(self.bins.total[used] / weight).max(initial=0.0))
        return abs(self.factor) * (1.0 + float(np.abs(self.values[used]) @ weight)) * largest

    def requests(self) -> list[BinnedTerm | LinearTerm]:
        """Return the term as part of a request."""
        return [BinnedTerm(self.scores.requested, self.bins.grid, self.factor * self.values)]

    def product(self, vector: Stored) -> float | None:
        """Return the product with a vector if it is known from sums in the bins."""
        if vector.key in self.sums:
            return self.factor * float(self.values @ self.sums[vector.key])
        if vector.terms and all(key in self.sums for key, _ in vector.terms):
            return self.factor * sum(factor * float(self.values @ self.sums[key]) for key, factor in vector.terms)
        return None


class Linear:
    """Term of coefficients, linear in scores: weight times ``factor * (score + constant)``."""

    def __init__(self, scores: Scores, constant: float, factor: float) -> None:
        self.scores, self.constant, self.factor = scores, constant, factor

    def times(self, factor: float) -> Linear:
        """Return a multiple of this term."""
        return Linear(self.scores, self.constant, factor * self.factor)

    def is_nonzero(self) -> bool:
        """Return True: linear terms of non-constant scores are not all zero."""
        return True

    def requests(self) -> list[BinnedTerm | LinearTerm]:
        """Return the term as part of a request."""
        terms = tuple((key, self.factor * factor) for key, factor in self.scores.requested)
        return [LinearTerm(terms, self.factor * self.constant)]

    def product(self, vector: Stored) -> None:
        """Return None: the shards compute the product."""


def _range(terms: dict[Stored, float]) -> tuple[float, float]:
    """Return bounds on the scores of a combination."""
    low = high = 0.0
    for vector, factor in terms.items():
        ends = factor * vector.low, factor * vector.high
        low, high = low + min(ends), high + max(ends)
    return low, high


def _sample(terms: dict[Stored, float]) -> Array:
    found = [factor * vector.sample for vector, factor in terms.items()]
    return np.sum(found, axis=0) if found else np.empty(0)


# Operator and loss on shards, for the solvers.


# Share of a Hessian sample for the positives, and of the remaining rows for negatives far below the window.
_POSITIVES, _BELOW = 0.4, 0.2
# Negatives from the first rank to this multiple of the end of the window are sampled more densely.
_ZONE = 1.5


class ShardedOperator:
    """Products with rows in shards.

    Parameters
    ----------
    space : Space
        The shards.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.shape = (space.n_rows, space.n_features)
        self._held: Sample | None = None

    def zero_scores(self) -> Scores:
        """Return the scores of zero weights."""
        return Scores(self.space, {}, np.zeros(self.shape[1]))

    def matvec(self, w: Array) -> Any:
        """Return a handle of the scores ``X @ w``."""
        return self.space.product(np.asarray(w, dtype=np.float64))

    def rmatvec(self, c: Any) -> Array:
        """Return ``X.T @ c`` for a handle of coefficients."""
        result: Array = c.gradient()
        return result

    def save(self, w: Array) -> None:
        """Do nothing: the operator of a fit with a checkpoint saves the weights of a stage."""

    def hold(self, sample: Sample) -> None:
        """Keep the rows of a sample, so that :meth:`rows` does not request them again."""
        self._held = sample

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows, given by their numbers in the order of all partitions."""
        if self._held is not None and self._held.row.size:
            place = np.minimum(np.searchsorted(self._held.row, index), self._held.row.size - 1)
            if np.array_equal(self._held.row[place], index):
                return self._scaled(self._held.X[place])
        answers = [answer for answer in self.space.ask((), "take", index) if answer[0].size]
        rows = _stacked([X for _, X in answers])
        order = np.empty(index.size, dtype=np.intp)
        order[np.concatenate([here for here, _ in answers])] = np.arange(index.size)
        return self._scaled(rows[order])

    def _scaled(self, rows: Any) -> Any:
        """Divide rows by the scale of the features.

        Their differences are used, and their size for rounding errors. So they are centered only if they are far from
        zero.
        """
        scale = self.space.scale
        if self.space.double:
            rows = rows.astype(np.float64)
            rows = rows if sparse.issparse(rows) else rows - self.space.mean
        if (scale == 1.0).all():
            return rows
        if sparse.issparse(rows):
            return (rows @ sparse.diags_array(1.0 / scale)).tocsr()
        return rows / scale.astype(rows.dtype)


class ShardedLoss(BoundLoss):
    """Convex loss of scores in shards, evaluated on their histograms.

    The value is that of a valid cut of the exact loss, at most the exact loss; :meth:`upper` is at least the exact
    loss.

    Parameters
    ----------
    operator : ShardedOperator
        The rows.
    bind : callable
        Returns the loss for labels and weights, as ``Loss.bind``.
    n_bins : int, default=8192
        Number of bins for each class.
    sample_rows : int, default=20000
        Maximum number of rows in the sample for the Hessian.
    """

    def __init__(
        self,
        operator: ShardedOperator,
        bind: Callable[..., BoundLoss],
        n_bins: int = 8192,
        sample_rows: int = 20_000,
    ) -> None:
        space = operator.space
        self.operator, self.space, self.bind = operator, space, bind
        self.n_bins, self.sample_rows = n_bins, sample_rows
        self.n_samples, self.m, self.n = space.n_rows, space.m, space.n
        self.n_positive, self.n_negative = space.n_positive, space.n_negative
        # On two weighted rows, the loss has the properties that it has on all rows.
        self._small = bind([False, True], [space.n, space.m])
        self.exact = False
        self.convex, self.smooth, self.has_kinks = self._small.convex, self._small.smooth, self._small.has_kinks
        self.has_curvature, self.has_split = self._small.has_curvature, self._small.has_split
        self._last: tuple[tuple[tuple[int, float], ...], Bins, dict[int, Array]] | None = None

    def value_and_gradient(self, scores: Any) -> tuple[float, Any]:
        """Return the value of a cut at the scores and its coefficients."""
        return self.minorant(scores, 0.0)

    def minorant(self, scores: Any, width: float) -> tuple[float, Any]:
        """Return the value and the coefficients of an affine minorant."""
        bins, sums = self.bins_at(scores)
        value, coefficients = bins.minorant(self.bind, width)
        return value, Coefficients(self.space, [Binned(scores, bins, coefficients, sums)], value)

    def upper(self, scores: Scores) -> float:
        """Return an upper bound of the exact loss."""
        return self.bins_at(scores)[0].upper_bound(self.bind)

    def at(self, scores: Any) -> Evaluation:
        """Return an object that computes several bounds of a convex loss at the same scores."""
        return _Bounds(self, scores)

    def split(self) -> tuple[BoundLoss, BoundLoss]:
        """Return two convex losses whose difference is this loss."""
        if self.convex:
            return super().split()

        def part(index: int) -> ShardedLoss:
            return ShardedLoss(
                self.operator, lambda y, w: self.bind(y, w).split()[index], self.n_bins, self.sample_rows
            )

        return part(0), part(1)

    def curvature(self, scores: Any, count: int | None, width: float = 0.0) -> Pairs:
        """Sample pairs that estimate the Hessian, from a random sample of rows."""
        bins, _ = self.bins_at(scores)
        answers = self.space.ask(list(scores.terms), "sample", scores.requested, *self._rates(bins))
        sample = _merged(answers)
        if not (sample.positive.any() and not sample.positive.all()):
            none = np.empty(0, dtype=np.intp)
            return Pairs(none, none, np.empty(0))
        self.operator.hold(sample)
        pairs = self.bind(sample.positive, sample.weight).curvature(sample.scores, count, width)
        return Pairs(sample.row[pairs.first], sample.row[pairs.second], pairs.weight)

    def bins_at(self, scores: Scores) -> tuple[Bins, dict[int, Array]]:
        """Return the bins of scores and the sums of their stored vectors in each bin; the last result is kept."""
        requested = scores.requested
        if not requested:
            grid = scores.grid(1)
            return Bins(grid, np.array([self.n, self.m]), np.zeros(2), 0.0, 0.0), {}
        if self._last is None or self._last[0] != requested:
            grid, keys = scores.grid(self.n_bins), [key for key, _ in requested]
            answers = self.space.ask(list(scores.terms), "bins", requested, grid, keys)
            bins = answers[0][0]
            for other, _ in answers[1:]:
                bins = bins + other
            sums = {key: np.sum([part[key] for _, part in answers], axis=0) for key in keys}
            self._last = requested, bins, sums
        return self._last[1:]

    def _rates(self, bins: Bins) -> tuple[float, tuple[float, float, float]]:
        """Return the score above which negatives are sampled more densely, and the rates of the sample."""
        row_weight = (self.m + self.n) / self.n_samples
        positives = _POSITIVES * self.sample_rows
        n_bins = bins.grid.n_bins
        above = np.cumsum(bins.weight[:n_bins][::-1])[::-1]
        end = getattr(self._small, "b", self.n)
        cell = max(int(np.searchsorted(-above, -_ZONE * end, side="right")) - 1, 0) if end < self.n else 0
        held, rest = float(above[cell]), self.n - float(above[cell])
        below = _BELOW * (self.sample_rows - positives) if rest > 0 else 0.0
        wanted = (positives, self.sample_rows - positives - below, below)
        rates = tuple(
            min(1.0, count * row_weight / weight) if weight > 0 else 1.0
            for count, weight in zip(wanted, (self.m, held, rest), strict=True)
        )
        return float(bins.grid.edges[cell]) if cell else -np.inf, rates  # type: ignore[return-value]


class _Bounds(Evaluation):
    """Bounds of a loss at scores in shards, from one histogram."""

    loss: ShardedLoss
    scores: Any

    @cached_property
    def upper(self) -> float:
        """Upper bound of the exact loss."""
        return self.loss.upper(self.scores)

    def _computed(self, width: float) -> tuple[float, Any]:
        return self.loss.minorant(self.scores, width)

    def refined(self) -> Evaluation:
        """Return bounds from twice as many bins, up to a maximum."""
        loss = self.loss
        finer = ShardedLoss(loss.operator, loss.bind, min(2 * loss.n_bins, MAX_BINS), loss.sample_rows)
        # There are no tighter bounds than those of the largest number of bins.
        finer.exact = finer.n_bins == MAX_BINS
        return finer.at(self.scores)


def _merged(answers: list[Sample]) -> Sample:
    """Return the samples of all shards as one, in the order of the numbers of the rows."""
    found = [answer for answer in answers if answer.row.size] or answers[:1]
    row: Index = np.concatenate([sample.row for sample in found])
    order = np.argsort(row)
    X = _stacked([sample.X for sample in found])
    columns = (np.concatenate([sample[k] for sample in found])[order] for k in (2, 3, 4))
    return Sample(row[order], X[order], *columns)


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if any(map(sparse.issparse, parts)) else np.concatenate(parts)


def certified(result: Result, solver: Any, operator: Operator, loss: BoundLoss, penalty: Any) -> Result:
    """Return a result whose objective is an upper bound of the exact one, with a gap that holds for the exact loss.

    Most solvers use the value of a cut, which is a lower bound of the loss, as the value of the loss. The bins of the
    solver at the solution are not known here, so the objective is computed again and not corrected.
    """
    if not isinstance(loss, ShardedLoss) or not loss.convex:
        return result
    upper = loss.upper(operator.matvec(result.w))  # type: ignore[arg-type]  # scores in shards
    objective = penalty.value(result.w) + penalty.C * upper if isinstance(penalty, SquaredL2) else upper
    gap, tol = result.gap + (objective - result.objective), getattr(solver, "tol", 0.0)
    gap, valid = valid_gap(gap, gap_rounding(operator, gap, abs(objective) + abs(result.objective)), tol, objective)
    found = replace(result, objective=objective, gap=gap)
    if valid:
        return found
    reached = f"gap {gap:.3g} at objective {objective:.6g}"
    return replace(found, converged=False, message=invalid_bound(type(solver).__name__, reached, tol))


# Scale-invariant loss with a penalty on the distance from given scores, on shards.


class ShardedAnchored(BoundLoss):
    r"""The objective of :class:`~rocmax.losses.bounded.Anchored` for scores in shards.

    .. math:: R(t) + \frac{\lambda}{2} \, \mathrm{Var}(t - t_0), \qquad t = s / \mathrm{sd}(s)

    Parameters
    ----------
    base : ShardedLoss
        Shift-invariant loss; it is evaluated on bins.
    anchor : Scores
        Reference scores; they are standardized internally.
    strength : float
        Strength :math:`\lambda` of the penalty.
    """

    convex = False

    def __init__(self, base: ShardedLoss, anchor: Scores, strength: float) -> None:
        self._base, self._anchor, self._strength = base, anchor, strength
        self._share_sample(base)

    def value_and_gradient(self, scores: Any) -> tuple[float, Any]:
        """Return value and gradient; constant scores are standardized to zero."""
        (mean, spread), (mean_0, spread_0), correlation = self._moments(scores)
        bins, sums = self._base.bins_at(scores)
        value, slopes = bins.minorant(lambda y, w: _Standardized(self._base.bind(y, w), mean, spread))
        total, strength = self._base.m + self._base.n, self._strength
        rise = float(slopes @ bins.weight)
        along = float(slopes @ (bins.total - mean * bins.weight)) / spread + strength * (1.0 - correlation)
        # Project out the directions that change the mean or the standard deviation of the scores.
        own = (strength - along) / (total * spread**2)
        coefficients = Coefficients(
            scores.space,
            [
                Binned(scores, bins, slopes, sums, 1.0 / spread),
                Linear(scores, -mean, own),
                Linear(self._anchor, -mean_0, -strength / (total * spread * spread_0)),
                Linear(scores.space.product(np.zeros_like(scores.w)), 1.0, -rise / (total * spread)),
            ],
        )
        return value + strength * (1.0 - correlation), coefficients

    def _moments(self, scores: Scores) -> tuple[tuple[float, float], tuple[float, float], float]:
        """Return mean and standard deviation of the scores and of the anchor, and their correlation."""
        vectors = list(dict.fromkeys([*scores.terms, *self._anchor.terms]))
        gram = np.sum(self._base.space.ask(vectors, "gram", [vector.key for vector in vectors]), axis=0)
        weight = float(gram[-1, -1])
        mean = gram[-1, :-1] / weight
        covariance = gram[:-1, :-1] / weight - np.outer(mean, mean)
        one, two = (np.array([s.terms.get(vector, 0.0) for vector in vectors]) for s in (scores, self._anchor))
        spread, spread_0 = (float(np.sqrt(max(a @ covariance @ a, 0.0))) or 1.0 for a in (one, two))
        correlation = float(one @ covariance @ two) / (spread * spread_0)
        return (float(mean @ one), spread), (float(mean @ two), spread_0), min(correlation, 1.0)


class _Standardized(BoundLoss):
    """Loss of standardized scores, with the gradient in these."""

    def __init__(self, base: BoundLoss, mean: float, spread: float) -> None:
        self._base, self._mean, self._spread = base, mean, spread

    def value_and_gradient(self, scores: ArrayLike) -> tuple[float, Array]:
        """Return value and gradient."""
        return self._base.value_and_gradient((np.asarray(scores) - self._mean) / self._spread)
