"""Operator and loss on shards, for the solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._typing import Array, Index
from rocmax.losses.base import BoundLoss, Evaluation, Pairs
from rocmax.losses.bins import MAX_BINS, Bins
from rocmax.operators import Operator
from rocmax.penalties import SquaredL2
from rocmax.sharded.shard import Sample
from rocmax.sharded.vectors import Binned, Coefficients, Scores, Space
from rocmax.solvers.base import Result, gap_rounding, invalid_bound, valid_gap

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

        Their differences are used, and their size for rounding errors. So they are centred only if they are far from
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
        # On two weighted rows, the loss has the properties that it has on all rows.
        self._small = bind([False, True], [space.n, space.m])
        self.exact = False
        self.convex, self.smooth, self.has_kinks = self._small.convex, self._small.smooth, self._small.has_kinks
        self._last: tuple[tuple[tuple[int, float], ...], Bins, dict[int, Array]] | None = None

    def count_pairs(self) -> int:
        """Return the number of pairs of a positive and a negative."""
        return self.space.n_positive * self.space.n_negative

    def has(self, method: str) -> bool:
        """Return whether the loss implements an optional method."""
        return method in ("curvature", "split") and self._small.has(method)

    def value_and_gradient(self, scores: Any) -> tuple[float, Any]:
        """Return the value of a cut at the scores and its coefficients."""
        return self.smoothed(scores, 0.0)

    def smoothed(self, scores: Any, width: float) -> tuple[float, Any]:
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

    def finer(self) -> ShardedLoss:
        """Return the loss with twice as many bins, up to a maximum."""
        finer = ShardedLoss(self.operator, self.bind, min(2 * self.n_bins, MAX_BINS), self.sample_rows)
        # There are no tighter bounds than those of the largest number of bins.
        finer.exact = finer.n_bins == MAX_BINS
        return finer

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

    @cached_property
    def upper(self) -> float:
        """Upper bound of the exact loss."""
        loss: Any = self.loss
        found: float = loss.upper(self.scores)
        return found


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
