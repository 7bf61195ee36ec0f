"""Handles of vectors with one number per row, which are stored in shards."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from rocmax._typing import Array
from rocmax.losses.bins import Bins, ScoreGrid
from rocmax.sharded.moments import Moments
from rocmax.sharded.shard import BinnedTerm, LinearTerm, Recipe

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
