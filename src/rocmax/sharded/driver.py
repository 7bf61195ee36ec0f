"""Driver of a fit on shards: handles of score vectors, the operator and the losses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from rocmax._support import Array, Index
from rocmax.losses.base import BoundLoss, Evaluation, Pairs
from rocmax.losses.binned import MAX_BINS, Bins, ScoreGrid
from rocmax.operators import Operator, column_scale
from rocmax.penalties import SquaredL2
from rocmax.sharded.shard import BinnedCoefficients, LinearCoefficients, Recipe, RequestedCoefficients, Sample, Shard
from rocmax.solvers.base import Result, gap_rounding, invalid_bound, valid_gap

# Rows whose scores are known to the driver, for the ranges of bins and the spread of scores.
SAMPLED = 4096
# Scales beyond which single precision overflows or underflows in squares and their sums.
LARGEST_SINGLE = 1e15
_KEYS = itertools.count()
T = TypeVar("T")


# Handles of vectors with one number per row, which are stored in shards.


class Executor(Protocol):
    """Shards that answer requests, in this process or on the workers of a cluster."""

    def run(self, recipes: Sequence[Recipe], drop: Sequence[int], method: Callable[..., T], *args: Any) -> list[T]:
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
    """Driver of the shards: sends requests, and keeps track of the stored vectors."""

    def __init__(self, executor: Executor, n_features: int) -> None:
        self._executor, self._drop = executor, list[int]()
        counts = np.sum(self.ask((), Shard.counts), axis=0)
        self.n_positive, self.n_negative = int(counts[0]), int(counts[1])
        self.m, self.n = float(counts[2]), float(counts[3])
        self.n_rows, self.n_features = self.n_positive + self.n_negative, n_features
        self.mean, self.scale = np.zeros(n_features), np.ones(n_features)
        self.double = False

    def standardize(self) -> None:
        """Compute mean and scale of the features in one pass; from now on, weights refer to standardized features.

        This also determines whether rows in single precision need products in double precision.
        """
        moments, *others = self.ask((), Shard.moments)
        for other in others:
            moments = moments.merged(other)
        scale = column_scale(moments.mean, moments.square / moments.weight)
        # A constant feature is left out: with an infinite scale, its products are zero.
        self.mean, self.scale = moments.mean, np.where(scale > 0, scale, np.inf)
        largest, smallest = np.max(scale, initial=0.0), np.min(scale[scale > 0], initial=1.0)
        # Means beyond this multiple of the scale cost half of the digits of single precision.
        far = np.max(np.abs(self.mean) / self.scale, initial=0.0) > 1.0 / np.sqrt(np.finfo(np.float32).eps)
        self.double = bool(far or largest > LARGEST_SINGLE or smallest < 1.0 / LARGEST_SINGLE)

    def raw(self, w: Array) -> tuple[Array, float]:
        """Return weights of the original features and a shift that give the scores of standardized features."""
        v = w / self.scale
        return v, float(self.mean @ v)

    def ask(self, needed: Sequence[Stored], method: Callable[..., T], *args: Any) -> list[T]:
        """Return the answer of each shard to a method of :class:`Shard` that refers to some stored vectors."""
        drop, self._drop = self._drop, []
        return self._executor.run([vector.recipe for vector in needed], drop, method, *args)

    def forget(self, key: int) -> None:
        """Note that a vector is not used any more."""
        self._drop.append(key)

    def product(self, w: Array) -> Scores:
        """Return the scores ``X @ w``; one pass over the data."""
        if not w.any():
            return Scores(self, {}, w)
        vector = Stored(self, w)
        answers = self.ask([vector], Shard.summary, vector.key, SAMPLED / max(self.n_rows, 1))
        vector.low, vector.high = min(low for low, _, _ in answers), max(high for _, high, _ in answers)
        # By number of partition, so that the samples of all vectors have the same rows, wherever these are.
        samples = sorted((one for _, _, found in answers for one in found), key=lambda one: one[0])
        vector.sample = np.concatenate([values for _, values in samples])
        return Scores(self, {vector: 1.0}, w)

    def combined(self, terms: dict[Stored, float], w: Array) -> Stored:
        """Store a combination of stored vectors; no pass over the data."""
        found = Stored(self, w, tuple(terms.items()))
        self.ask([*terms, found], Shard.has, found.key)
        found.low, found.high = _range(terms)
        found.sample = _sample(terms)
        return found

    def bins(self, scores: Scores, grid: ScoreGrid, others: Sequence[int] = ()) -> tuple[Bins, dict[int, Array]]:
        """Return the bins of scores, and the sums of other vectors in each bin."""
        if not scores.terms:
            return Bins(grid, np.array([self.n, self.m]), np.zeros(2), 0.0, 0.0), {}
        answers = self.ask(list(scores.terms), Shard.bins, scores.requested, grid, others)
        bins = answers[0][0]
        for other, _ in answers[1:]:
            bins = bins + other
        return bins, {key: np.sum([sums[key] for _, sums in answers], axis=0) for key in others}

    def moments(self, vectors: Sequence[Stored]) -> tuple[Array, Array]:
        """Return the means and the covariance matrix of stored vectors."""
        gram = np.sum(self.ask(vectors, Shard.gram, [vector.key for vector in vectors]), axis=0)
        mean = gram[-1, :-1] / gram[-1, -1]
        return mean, gram[:-1, :-1] / gram[-1, -1] - np.outer(mean, mean)


class Scores:
    """Scores ``X @ w`` of all rows: a linear combination of stored vectors, given by their factors."""

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
        return ScoreGrid.covering(np.append(_sample(self.terms), _range(self.terms)), n_bins)

    def _short(self) -> Scores:
        """Store a combination as one vector before it becomes part of a longer one."""
        if len(self.terms) > 1:
            self.terms = {self.space.combined(self.terms, self.w): 1.0}
        return self


class RowCoefficients:
    """Coefficients of all rows: a sum of terms that the shards compute from scores.

    ``value`` is that of the loss whose cut has these coefficients, at the scores of the first term; None without a cut.
    """

    __array_ufunc__ = None

    def __init__(self, space: Space, terms: Sequence[BinnedTerm | LinearTerm], value: float | None = None) -> None:
        self.space, self.terms, self.value = space, list(terms), value
        self._products: dict[int, float] = {}
        self._size: float | None = None

    def __matmul__(self, scores: Scores) -> float:
        unknown = [vector for vector in scores.terms if not self._knows(vector)]
        if unknown:
            self._ask(unknown)
        return sum((factor * self._products[vector.key] for vector, factor in scores.terms.items()), 0.0)

    def __add__(self, other: RowCoefficients) -> RowCoefficients:
        return RowCoefficients(self.space, [*self.terms, *other.terms])

    def __sub__(self, other: RowCoefficients) -> RowCoefficients:
        return self + -1.0 * other

    def __rmul__(self, factor: float) -> RowCoefficients:
        return RowCoefficients(self.space, [replace(term, factor=factor * term.factor) for term in self.terms])

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
        return sum(term.product_size() for term in self.terms if isinstance(term, BinnedTerm))

    def gradient(self) -> Array:
        """Return ``X.T @ c`` for the standardized features; one pass over the data."""
        needed, requested = self._requested()
        answers = self.space.ask(needed, Shard.gradient, requested, self.space.double)
        total = sum(part for _, part in answers)
        gradient = np.sum([part for part, _ in answers], axis=0)
        result: Array = (gradient - self.space.mean * total) / self.space.scale
        return result

    def _requested(self) -> tuple[list[Stored], list[RequestedCoefficients]]:
        needed = list(dict.fromkeys(vector for term in self.terms for vector in term.scores.terms))
        return needed, [term.request() for term in self.terms]

    def _knows(self, vector: Stored) -> bool:
        """Return whether the product with a vector is known without a request."""
        if vector.key not in self._products:
            products = [term.product(vector) for term in self.terms]
            if None in products:
                return False
            self._products[vector.key] = sum(product for product in products if product is not None)
        return True

    def _ask(self, vectors: Sequence[Stored]) -> None:
        needed, requested = self._requested()
        keys = [vector.key for vector in vectors]
        found = np.sum(self.space.ask([*dict.fromkeys([*needed, *vectors])], Shard.dot, requested, keys), axis=0)
        self._products |= dict(zip(keys, map(float, found), strict=False))
        self._size = float(found[-1])


@dataclass(frozen=True, eq=False)
class BinnedTerm:
    """Term of coefficients, constant in the bins of scores; ``sums`` are those of stored vectors in the bins."""

    scores: Scores
    bins: Bins
    values: Array
    sums: dict[int, Array]
    factor: float = 1.0

    def is_nonzero(self) -> bool:
        """Return whether some coefficient of a row is not zero."""
        return bool(self.values[self.bins.used].any())

    def product_size(self) -> float:
        """Return one plus the sum of the absolute coefficients, times the largest absolute score, from the bins."""
        used = self.bins.used
        weight = self.bins.weight[used]
        largest = float(np.abs(self.bins.total[used] / weight).max(initial=0.0))
        return abs(self.factor) * (1.0 + float(np.abs(self.values[used]) @ weight)) * largest

    def request(self) -> BinnedCoefficients:
        """Return the term as part of a request."""
        return BinnedCoefficients(self.scores.requested, self.bins.grid, self.factor * self.values)

    def product(self, vector: Stored) -> float | None:
        """Return the product with a vector if it is known from sums in the bins."""
        if vector.key in self.sums:
            return self.factor * float(self.values @ self.sums[vector.key])
        if vector.terms and all(key in self.sums for key, _ in vector.terms):
            return self.factor * sum(factor * float(self.values @ self.sums[key]) for key, factor in vector.terms)
        return None


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """Term of coefficients, linear in scores: weight times ``factor * (score + constant)``."""

    scores: Scores
    constant: float
    factor: float

    def is_nonzero(self) -> bool:
        """Return True: linear terms of non-constant scores are not all zero."""
        return True

    def request(self) -> LinearCoefficients:
        """Return the term as part of a request."""
        terms = tuple((key, self.factor * factor) for key, factor in self.scores.requested)
        return LinearCoefficients(terms, self.factor * self.constant)

    def product(self, vector: Stored) -> float | None:
        """Return None: the shards compute the product."""
        return None


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


class ShardedOperator:
    """Products with rows in shards."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.shape = (space.n_rows, space.n_features)
        self._held: Sample | None = None
        # Gets the weights, and the gradient and the value of a cut: coefficients come with these.
        self.checkpoint: Any = None

    def zero_scores(self) -> Scores:
        """Return the scores of zero weights."""
        return Scores(self.space, {}, np.zeros(self.shape[1]))

    def matvec(self, w: Array) -> Any:
        """Return a handle of the scores ``X @ w``."""
        return self.space.product(np.asarray(w, dtype=np.float64))

    def rmatvec(self, c: Any) -> Array:
        """Return ``X.T @ c`` for a handle of coefficients."""
        gradient: Array = c.gradient()
        if self.checkpoint is not None:
            self.checkpoint.note(c.terms[0].scores.w, gradient, c.value)
        return gradient

    def save(self, w: Array) -> None:
        """Save the weights of a stage, in a fit with a checkpoint."""
        if self.checkpoint is not None:
            self.checkpoint.save(w)

    def hold(self, sample: Sample) -> None:
        """Keep the rows of a sample, so that :meth:`rows` does not request them again."""
        self._held = sample

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows, given by their numbers in the order of all partitions."""
        if self._held is not None and self._held.row.size:
            place = np.minimum(np.searchsorted(self._held.row, index), self._held.row.size - 1)
            if np.array_equal(self._held.row[place], index):
                return self._scaled(self._held.X[place])
        answers = [answer for answer in self.space.ask((), Shard.take, index) if answer[0].size]
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
        self.convex, self.has_kinks = self._small.convex, self._small.has_kinks
        self.has_curvature, self.has_split = self._small.has_curvature, self._small.has_split
        self._last: tuple[tuple[tuple[int, float], ...], Bins, dict[int, Array]] | None = None

    def value_and_gradient(self, scores: Any) -> tuple[float, Any]:
        """Return the value of a cut at the scores and its coefficients."""
        return self.minorant(scores, 0.0)

    def minorant(self, scores: Any, width: float) -> tuple[float, Any]:
        """Return the value and the coefficients of an affine minorant."""
        bins, sums = self.bins_at(scores)
        value, coefficients = bins.minorant(self.bind, width)
        return value, RowCoefficients(self.space, [BinnedTerm(scores, bins, coefficients, sums)], value)

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

    def curvature(self, scores: Any, count: int, width: float = 0.0) -> Pairs:
        """Sample pairs that estimate the Hessian, from a random sample of rows."""
        bins, _ = self.bins_at(scores)
        answers = self.space.ask(list(scores.terms), Shard.sample, scores.requested, *self._rates(bins))
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
        if self._last is None or self._last[0] != requested:
            found = self.space.bins(scores, scores.grid(self.n_bins), [key for key, _ in requested])
            self._last = requested, *found
        return self._last[1:]

    def _rates(self, bins: Bins) -> tuple[float, tuple[float, float, float]]:
        """Return the score above which negatives are in the window, and the rates of the sample.

        Positives, negatives in the window and other negatives get equal shares.
        """
        row_weight = (self.m + self.n) / self.n_samples
        n_bins = bins.grid.n_bins
        above = np.cumsum(bins.weight[:n_bins][::-1])[::-1]
        end = getattr(self._small, "b", self.n)
        cell = max(int(np.searchsorted(-above, -end, side="right")) - 1, 0) if end < self.n else 0
        inside = float(above[cell])
        weights = self.m, inside, self.n - inside
        count = self.sample_rows * row_weight / sum(weight > 0 for weight in weights)
        rates = tuple(min(1.0, count / weight) if weight > 0 else 1.0 for weight in weights)
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
        coefficients = RowCoefficients(
            scores.space,
            [
                BinnedTerm(scores, bins, slopes, sums, 1.0 / spread),
                LinearTerm(scores, -mean, own),
                LinearTerm(self._anchor, -mean_0, -strength / (total * spread * spread_0)),
                LinearTerm(scores.space.product(np.zeros_like(scores.w)), 1.0, -rise / (total * spread)),
            ],
        )
        return value + strength * (1.0 - correlation), coefficients

    def _moments(self, scores: Scores) -> tuple[tuple[float, float], tuple[float, float], float]:
        """Return mean and standard deviation of the scores and of the anchor, and their correlation."""
        vectors = list(dict.fromkeys([*scores.terms, *self._anchor.terms]))
        mean, covariance = self._base.space.moments(vectors)
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
