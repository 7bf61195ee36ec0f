"""A shard: some rows with labels, weights and score vectors, in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_expit

from rocmax._support import Array, Index
from rocmax._validation import LARGEST, canonical_csr
from rocmax.losses.binned import Bins, ScoreGrid
from rocmax.metrics.curve import distinct_scores
from rocmax.operators import moments, reference_point, row_scores, row_sum, with_sufficient_precision

# Rows whose scores are processed at a time, and values of a dense chunk that are copied at a time.
BLOCK = 1 << 16
T = TypeVar("T")


# Sums over rows in double precision, of which those of several sets of rows can be merged.


class Moments(NamedTuple):
    """Total weight, mean and sum of squared distances from the mean of each feature."""

    weight: float
    mean: Array
    square: Array

    def merged(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows (Chan, Golub and LeVeque 1979)."""
        total = self.weight + other.weight
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.weight / total)
        square = self.square + other.square + apart**2 * (self.weight * other.weight / total)
        return Moments(total, mean, square)


def row_blocks(start: int, chunk: Any) -> Iterator[tuple[slice, Any]]:
    """Yield a few rows of a chunk at a time: a copy of all of a dense chunk would take as much memory as the chunk."""
    step = chunk.shape[0] if sparse.issparse(chunk) else max(1, BLOCK // max(1, chunk.shape[1]))
    for first in range(0, chunk.shape[0], step):
        block = chunk[first : first + step]
        yield slice(start + first, start + first + block.shape[0]), block


# Rows of one process: products, histograms of scores and samples, computed chunk by chunk.


class Partition(NamedTuple):
    """Partition of the data: its number, size and name in messages, and the number of its first row among all rows."""

    number: int
    n_rows: int
    name: str = ""
    start: int = 0


class Recipe(NamedTuple):
    """How a stored vector is made: ``X @ v - shift``, or a combination of stored vectors if these are present.

    With ``double``, products with rows in single precision are computed in double precision.
    """

    key: int
    v: Array
    shift: float
    terms: tuple[tuple[int, float], ...]
    double: bool = False


class BinnedCoefficients(NamedTuple):
    """Coefficients of rows from the bins of their scores: weight times ``values[cell]``."""

    terms: tuple[tuple[int, float], ...]
    grid: ScoreGrid
    values: Array


class LinearCoefficients(NamedTuple):
    """Coefficients of rows that are linear in scores: weight times ``score + constant``."""

    terms: tuple[tuple[int, float], ...]
    constant: float


RequestedCoefficients = BinnedCoefficients | LinearCoefficients


class Sample(NamedTuple):
    """Rows of a sample in ascending order of their numbers, with labels, scores and inverse-probability weights."""

    row: Index
    X: Any
    positive: NDArray[np.bool_]
    scores: Array
    weight: Array


class Shard:
    """Rows of some partitions with labels, weights and score vectors, which may be in files to be read in blocks.

    The driver calls the methods by way of :meth:`answer`.
    """

    def __init__(
        self,
        rows: Any,
        positive: NDArray[np.bool_],
        weight: Any,
        partitions: Sequence[Partition],
        on_disk: bool = False,
        folder: str | Path | None = None,
        names: Sequence[Any] | None = None,
    ) -> None:
        self._rows, self._positive = rows, positive
        self._weight, self._partitions, self._names = weight, list(partitions), names
        self._first = np.cumsum([0, *(one.n_rows for one in partitions)])
        self._starts = np.array([one.start for one in partitions], dtype=np.int64)
        self._vectors: dict[int, Any] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="rocmax-scores-", dir=folder) if on_disk else None

    def answer(self, recipes: Sequence[Recipe], drop: Sequence[int], method: Callable[..., T], *args: Any) -> T:
        """Make and drop vectors, then call a method of this class; the answer to a request of the driver."""
        for key in drop:
            self._vectors.pop(key, None)
            if self._folder is not None:
                Path(self._folder.name, str(key)).unlink(missing_ok=True)
        for recipe in recipes:
            if recipe.key not in self._vectors:
                self._make(recipe)
        return method(self, *args)

    def close(self) -> None:
        """Remove the files of the score vectors."""
        self._vectors.clear()
        if self._folder is not None:
            self._folder.cleanup()

    def has(self, key: int) -> bool:
        """Return whether a vector is stored."""
        return key in self._vectors

    def counts(self) -> tuple[int, int, float, float]:
        """Return the numbers and the total weights of positives and negatives with non-zero weight."""
        counts, totals = np.zeros(2, dtype=np.int64), np.zeros(2)
        for rows in self._blocks():
            sides = np.stack([self._positive[rows], ~self._positive[rows]])
            weight = self._weights(rows)
            counts += np.count_nonzero(sides if weight is None else sides & (weight > 0), axis=1)
            totals += sides.sum(axis=1) if weight is None else sides @ weight
        return int(counts[0]), int(counts[1]), float(totals[0]), float(totals[1])

    def moments(self) -> Moments:
        """Return the moments of the features in one pass; raise ValueError if a value is not finite or too large."""
        d = self._rows.shape[1]
        found = Moments(0.0, np.zeros(d), np.zeros(d))
        for start, chunk in self._rows.chunks():
            self._check(chunk, start)
            for rows, block in row_blocks(start, chunk):
                weight = self._filled_weights(rows)
                if (total := float(weight.sum())) > 0:
                    block = canonical_csr(block) if sparse.issparse(block) else block
                    mean, variance = moments(block.astype(np.float64), weight)
                    found = found.merged(Moments(total, mean, total * variance))
        return found

    def summary(self, key: int, rate: float) -> tuple[float, float, list[tuple[int, Array]]]:
        """Return the range of a vector, and its values for a random sample of rows, by partition."""
        low, high = np.inf, -np.inf
        sample = []
        for one, first in zip(self._partitions, self._first.tolist(), strict=False):
            values = [np.empty(0)]
            for rows in _blocks(first, first + one.n_rows):
                s = self._vectors[key][rows]
                low, high = min(low, float(s.min())), max(high, float(s.max()))
                values.append(s[_uniform(self._number(rows)) < rate])
            sample.append((one.number, np.concatenate(values)))
        return low, high, sample

    def bins(
        self, terms: Sequence[tuple[int, float]], grid: ScoreGrid, others: Sequence[int]
    ) -> tuple[Bins, dict[int, Array]]:
        """Return the bins of scores, and the sums of other vectors in each bin."""
        size = 2 * grid.n_bins
        found = Bins(grid, np.zeros(size), np.zeros(size), np.inf, -np.inf)
        sums = {key: np.zeros(size) for key in others}
        for rows in self._blocks():
            s, weight = self._scores(terms, rows), self._weights(rows)
            cells = np.empty(s.size, dtype=np.uint16)
            found += Bins.count(grid, s, self._positive[rows], weight, cells)
            for key in others:
                sums[key] += found.sums(cells, self._vectors[key][rows], weight)
        return found, sums

    def gradient(self, coefficients: Sequence[RequestedCoefficients], double: bool = False) -> tuple[Array, float]:
        """Return ``X.T @ c`` and the sum of ``c`` for coefficients of rows, in one pass."""
        total, gradient = 0.0, np.zeros(self._rows.shape[1])
        for rows, chunk in self._chunks(double):
            c = self._coefficients(coefficients, rows)
            gradient += row_sum(chunk, c, reference_point(chunk))
            total += float(c.sum())
        return gradient, total

    def dot(self, coefficients: Sequence[RequestedCoefficients], keys: Sequence[int]) -> Array:
        """Return the products of coefficients with stored vectors, and last the sum of their absolute values."""
        found = np.zeros(len(keys) + 1)
        for rows in self._blocks():
            c = self._coefficients(coefficients, rows)
            found += [*(c @ self._vectors[key][rows] for key in keys), np.abs(c).sum()]
        return found

    def gram(self, keys: Sequence[int]) -> Array:
        """Return the weighted sums of products of stored vectors, with a vector of ones as the last one."""
        found = np.zeros((len(keys) + 1, len(keys) + 1))
        for rows in self._blocks():
            stored = [self._vectors[key][rows] for key in keys]
            stacked = np.array([*stored, np.ones(rows.stop - rows.start)])
            weight = self._weights(rows)
            found += (stacked if weight is None else stacked * weight) @ stacked.T
        return found

    def sample(self, terms: Sequence[tuple[int, float]], cutoff: float, rates: tuple[float, float, float]) -> Sample:
        """Return a random sample of rows.

        ``rates`` are the probabilities of positives, of negatives with a score of at least ``cutoff``, and of other
        negatives. The draws depend on the numbers of the rows only.
        """
        chosen, scores, share = [np.empty(0, dtype=np.intp)], [np.empty(0)], [np.empty(0)]
        for rows in self._blocks():
            s = self._scores(terms, rows)
            rate = np.where(self._positive[rows], rates[0], np.where(s >= cutoff, rates[1], rates[2]))
            weight = self._filled_weights(rows)
            drawn = np.flatnonzero((_uniform(self._number(rows)) < rate) & (weight > 0))
            chosen.append(drawn + rows.start)
            scores.append(s[drawn])
            share.append(weight[drawn] / rate[drawn])
        index = np.concatenate(chosen)
        number = self._number_of(index)
        return Sample(
            number, self._rows.rows(index), self._positive[index], np.concatenate(scores), np.concatenate(share)
        )

    def take(self, number: Index) -> tuple[Index, Any]:
        """Return the positions in ``number``, the numbers of some rows, of those that are here, and the rows."""
        place = np.full(number.size, -1, dtype=np.int64)
        for one, first in zip(self._partitions, self._first, strict=False):
            inside = (number >= one.start) & (number < one.start + one.n_rows)
            place[inside] = number[inside] - one.start + first
        here = np.flatnonzero(place >= 0)
        return here, self._rows.rows(place[here])

    def between(
        self, terms: Sequence[tuple[int, float]], low: float, high: float
    ) -> tuple[Array, NDArray[np.bool_], Array]:
        """Return the distinct scores from ``low`` to ``high`` in each class, with label and weight."""
        found = []
        for rows in self._blocks():
            s = self._scores(terms, rows)
            inside = np.flatnonzero((s >= low) & (s <= high))
            found.append((s[inside], self._positive[rows][inside], self._filled_weights(rows)[inside]))
        if not found:
            return np.empty(0), np.empty(0, dtype=bool), np.empty(0)
        scores, positive, weight = (np.concatenate(column) for column in zip(*found, strict=True))
        (negatives, negative_weight), (positives, positive_weight) = (
            distinct_scores(scores[rows], weight[rows]) for rows in (~positive, positive)
        )
        label = np.repeat([False, True], [negatives.size, positives.size])
        return np.append(negatives, positives), label, np.append(negative_weight, positive_weight)

    def logistic(self, v: Array, shift: float, double: bool = False) -> tuple[float, Array, float]:
        """Return the sum of logistic losses of ``X @ v + shift`` and its gradient, in one pass over the rows."""
        value, total, gradient = 0.0, 0.0, np.zeros(v.size)
        for rows, chunk in self._chunks(double):
            side = np.where(self._positive[rows], 1.0, -1.0)
            reference = reference_point(chunk)
            margin = side * (row_scores(chunk, v, reference) + shift)
            weight = self._filled_weights(rows)
            value -= float(weight @ log_expit(margin))
            c = -weight * side * expit(-margin)
            gradient += row_sum(chunk, c, reference)
            total += float(c.sum())
        return value, gradient, total

    def _make(self, recipe: Recipe) -> None:
        target = self._new(recipe.key)
        if recipe.terms and all(key in self._vectors for key, _ in recipe.terms):
            for rows in self._blocks():
                target[rows] = self._scores(recipe.terms, rows)
        else:
            for rows, chunk in self._chunks(recipe.double):
                target[rows] = row_scores(chunk, recipe.v, reference_point(chunk)) - recipe.shift
        self._vectors[recipe.key] = target

    def _chunks(self, double: bool) -> Iterator[tuple[slice, Any]]:
        """Yield the rows in chunks; with ``double``, a few rows of single precision at a time in double precision.

        Whether this is necessary is known for standardized features. Otherwise, products are computed from differences
        to the means of a chunk, see :func:`~rocmax.operators.reference_point`.
        """
        for start, chunk in self._rows.chunks():
            if double and chunk.dtype != np.float64:
                yield from ((rows, block.astype(np.float64)) for rows, block in row_blocks(start, chunk))
            else:
                yield slice(start, start + chunk.shape[0]), with_sufficient_precision(chunk)

    def _new(self, key: int) -> Any:
        size = self._rows.shape[0]
        if self._folder is None:
            return np.empty(size)
        from rocmax.data.store import DiskArray  # loads the readers of all formats

        return DiskArray.create(Path(self._folder.name, str(key)), np.float64, (size,))

    def _scores(self, terms: Sequence[tuple[int, float]], rows: slice) -> Array:
        s = np.zeros(rows.stop - rows.start)
        for key, factor in terms:
            values = self._vectors[key][rows]
            s += values if factor == 1.0 else factor * values
        return s

    def _coefficients(self, coefficients: Sequence[RequestedCoefficients], rows: slice) -> Array:
        c = np.zeros(rows.stop - rows.start)
        for term in coefficients:
            s = self._scores(term.terms, rows)
            if isinstance(term, BinnedCoefficients):
                c += term.values[term.grid.cells(s, self._positive[rows])]
            else:
                c += s + term.constant
        weight = self._weights(rows)
        return c if weight is None else c * weight

    def _blocks(self) -> Iterator[slice]:
        return _blocks(0, self._rows.shape[0])

    def _weights(self, rows: slice) -> Array | None:
        if self._weight is None:
            return None
        weight: Array = self._weight[rows]
        return weight

    def _filled_weights(self, rows: slice) -> Array:
        weight = self._weights(rows)
        return np.ones(rows.stop - rows.start) if weight is None else weight

    def _number(self, rows: slice) -> Index:
        return self._number_of(np.arange(rows.start, rows.stop))

    def _number_of(self, index: Index) -> Index:
        place = np.searchsorted(self._first, index, side="right") - 1
        result: Index = self._starts[place] + index - self._first[place]
        return result

    def _check(self, chunk: Any, start: int) -> None:
        values = chunk.data if sparse.issparse(chunk) else chunk
        largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
        if largest <= LARGEST:
            return
        if sparse.issparse(chunk):
            entry = int(np.argmin(np.abs(chunk.data) <= LARGEST))
            row, column = int(np.searchsorted(chunk.indptr, entry, side="right")) - 1, int(chunk.indices[entry])
        else:
            row, column = (int(i) for i in np.argwhere(~(np.abs(chunk) <= LARGEST))[0])
        place = int(np.searchsorted(self._first, start + row, side="right")) - 1
        where = f" of {self._partitions[place].name}" if self._partitions[place].name else ""
        name = column if self._names is None else repr(self._names[column])
        raise ValueError(
            f"X must contain finite numbers with absolute values of at most {LARGEST:g}; got {chunk[row, column]} in "
            f"row {start + row - int(self._first[place])}, column {name}{where}"
        )


def _uniform(number: Index) -> Array:
    """Return a pseudo-random number in [0, 1) for each row number (the finalizer of SplitMix64)."""
    z = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z.astype(np.float64) * 2.0**-64


def _blocks(start: int, stop: int) -> Iterator[slice]:
    return (slice(first, min(first + BLOCK, stop)) for first in range(start, stop, BLOCK))


# Shards in this process.


class LocalShards:
    """Executor for shards in this process."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = list(shards)

    def run(self, recipes: Sequence[Recipe], drop: Sequence[int], method: Callable[..., T], *args: Any) -> list[T]:
        """Return the answer of each shard."""
        return [shard.answer(recipes, drop, method, *args) for shard in self._shards]
