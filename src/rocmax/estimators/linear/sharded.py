"""Fits of linear estimators on rows in shards: files on one machine, or the workers of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._response import direction
from rocmax._typing import Array
from rocmax._validate import warn_if_majority
from rocmax.estimators.linear.checkpoint import Checkpoint, Run
from rocmax.losses import Loss
from rocmax.losses.bins import Bins, ScoreGrid
from rocmax.measures import Measure
from rocmax.sharded.objective import ShardedLoss, ShardedOperator, certified
from rocmax.sharded.vectors import Scores, Space
from rocmax.solvers import Callback, Result, SmoothedNewton
from rocmax.solvers.base import Solver

# Maximum number of rows near a threshold whose distinct scores are fetched to compute it exactly: not more than there
# are bins, and in finer grids more, because ties stay together there. Number of finer grids.
_FETCHED, _FETCHED_LATER, _MAX_ZOOMS = 16_384, 100_000, 8


class ShardedSet:
    """Training data in shards, in place of a :class:`~rocmax._validate.TrainingSet`.

    Parameters
    ----------
    space : Space
        The shards.
    classes : ndarray of shape (2,)
        The classes.
    positive_index : int
        Index of the positive class.
    n_bins : int, default=8192
        Number of bins of the histograms for each class.
    sample_rows : int, default=20000
        Maximum number of rows in a sample for the Hessian.
    """

    def __init__(
        self,
        space: Space,
        classes: NDArray[Any],
        positive_index: int,
        n_bins: int = 8192,
        sample_rows: int = 20_000,
    ) -> None:
        self.space, self.classes, self.positive_index = space, classes, positive_index
        self.X = ShardedOperator(space)
        self.checkpoint: Checkpoint | None = None
        self._n_bins, self._sample_rows = n_bins, sample_rows

    def bind(self, loss: Loss) -> ShardedLoss:
        """Bind a loss to the labels and weights in the shards."""
        return ShardedLoss(self.X, loss.bind, self._n_bins, self._sample_rows)

    def solve(self, solver: Solver, loss: Loss, penalty: Any, w0: Array | None, callback: Callback | None) -> Result:
        """Run a solver; the objective and the gap of the result include the error of the bins."""
        bound = self.bind(loss)

        def run(operator: Any, solver: Solver, w0: Array | None) -> Result:
            result = solver.solve(operator, bound, penalty, w0, callback)
            if isinstance(solver, SmoothedNewton):
                return result
            return certified(result, solver, self.X, bound, penalty)

        return self.stage(run, solver, w0)

    def stage(self, run: Run, solver: Solver | None = None, w0: Array | None = None) -> Result:
        """Run a stage of the fit, a function of an operator, a solver and a start; continue from a checkpoint."""
        if self.checkpoint is None:
            return run(self.X, solver, w0)
        return self.checkpoint.run(run, self.X, solver, w0)

    def score(self, measure: Measure, scores: Scores) -> float:
        """Return a measure from the bins of the scores, in which the scores of a bin are tied."""
        means, positive, weight = self.bins(scores).rows
        return measure.score(positive, means, sample_weight=weight, pos_label=True)

    def threshold(self, measure: Measure, scores: Scores) -> float:
        """Return the threshold of a measure: from bins, then from the exact scores of the rows near it."""
        bins = self.bins(scores)
        found = measure.threshold(*bins.rows)
        rows = bins.rows
        for zoom in range(_MAX_ZOOMS if scores.any() else 0):
            limit = _FETCHED_LATER if zoom else _FETCHED
            low, high = _around(bins.grid, found)
            inside = (rows[0] >= low) & (rows[0] <= high)
            if float(rows[2][inside].sum()) <= limit * float(rows[2].sum()) / self.space.n_rows:
                answers = self.space.ask(list(scores.terms), "between", scores.requested, low, high)
                exact = [np.concatenate(column) for column in zip(*answers, strict=True)]
                rows = _joined(rows, ~inside, exact)
                return measure.threshold(*rows)
            bins = self.bins(scores, ScoreGrid(low, low, high, high, bins.grid.n_bins))
            kept = (bins.rows[0] >= low) & (bins.rows[0] <= high)
            rows = _joined(rows, ~inside, [column[kept] for column in bins.rows])
            found = measure.threshold(*rows)
        return found

    def bins(self, scores: Scores, grid: ScoreGrid | None = None) -> Bins:
        """Return the bins of scores."""
        space = self.space
        grid = scores.grid(self._n_bins) if grid is None else grid
        if not scores.any():
            return Bins(grid, np.array([space.n, space.m]), np.zeros(2), 0.0, 0.0)
        answers = space.ask(list(scores.terms), "bins", scores.requested, grid, ())
        bins: Bins = answers[0][0]
        for other, _ in answers[1:]:
            bins = bins + other
        return bins


def fit_shards(
    estimator: Any, data: ShardedSet, standardize: bool, w0: Array | None = None, callback: Callback | None = None
) -> None:
    """Fit a linear estimator on rows in shards, and set its attributes.

    Parameters
    ----------
    estimator : LinearScoreClassifier
        The estimator, with checked parameters.
    data : ShardedSet
        The data.
    standardize : bool
        Whether the weights of the problem refer to standardized features.
    w0 : ndarray, default=None
        Start, in the original features.
    callback : callable, default=None
        Called with the progress after each iteration.
    """
    space = data.space
    check_supported(estimator)
    if estimator.pos_label is None:
        warn_if_majority(type(estimator).__name__, data.classes, space.n, space.m)
    space.standardize()
    if data.checkpoint is not None:
        data.checkpoint.check(space)
    if not standardize and getattr(estimator, "loss", None) != "auto":
        space.mean, space.scale = np.zeros(space.n_features), np.ones(space.n_features)
    scale = np.where(np.isfinite(space.scale), space.scale, 0.0)
    start = None if w0 is None else direction(data.positive_index) * w0 * scale
    result = estimator._minimize(data, start, callback)
    estimator._warn(result)
    threshold = data.threshold(estimator._make_measure(), data.X.matvec(result.w))
    v, shift = space.raw(result.w)
    estimator._keep(result, v, threshold + shift, data)
    estimator.n_features_in_ = space.n_features
    if data.checkpoint is not None:
        data.checkpoint.remove()


def check_supported(estimator: Any) -> None:
    """Raise ValueError if a loss or solver needs all rows in memory."""
    if estimator.loss == "squared_hinge":
        raise ValueError('for rows in files or on a cluster, loss must be "hinge"; got "squared_hinge"')
    if estimator.solver == "cutting_plane":
        raise ValueError('for rows in files or on a cluster, solver must be "certified"; got "cutting_plane"')


def _around(grid: ScoreGrid, at: float) -> tuple[float, float]:
    """Return the ends of the bin of a score together with its neighbours."""
    edges = grid.edges
    cell = int(np.clip(np.searchsorted(edges, at, side="right") - 1, 0, edges.size - 2))
    return float(edges[max(cell - 1, 0)]), float(edges[min(cell + 2, edges.size - 1)])


def _joined(rows: tuple[Array, NDArray[np.bool_], Array], kept: NDArray[np.bool_], other: list[Any]) -> Any:
    return tuple(np.concatenate([column[kept], new]) for column, new in zip(rows, other, strict=True))
