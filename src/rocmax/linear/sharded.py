"""Linear fits on shards: files larger than memory and clusters, with checkpoints."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rocmax._files import check_output, write_file
from rocmax._support import Array
from rocmax._validation import check_flag, direction, positive_index, warn_if_majority
from rocmax.data.store import checksum
from rocmax.linear.refine import Start, fit_logistic
from rocmax.losses import BoundLoss, Loss
from rocmax.losses.binned import Bins, ScoreGrid
from rocmax.measures import Measure
from rocmax.penalties import Unpenalized
from rocmax.sharded.driver import (
    Scores,
    ShardedAnchored,
    ShardedLoss,
    ShardedOperator,
    Space,
    certified,
)
from rocmax.sharded.shard import LocalShards, Partition, Shard
from rocmax.solvers import LBFGS, Callback, Result, SmoothedNewton
from rocmax.solvers.base import Cuts, Solver

if TYPE_CHECKING:
    from rocmax.data import RowStore


_ARRAYS = ("settings", "completed", "ended", "w", "gradients", "offsets")
_FIELDS = ("objective", "gap", "n_iter", "converged", "message")
Run = Callable[[Any, Any, Array | None], Result]


# State of a fit in a file, from which an interrupted fit continues.


class Checkpoint:
    """Results of the completed stages of a fit, and weights and cuts of the current one, saved after each gradient.

    The file is replaced atomically, so that it is complete at all times. It contains a description of the parameters
    and the data, and a checksum; a file with other ones is an error.
    """

    def __init__(self, path: Any) -> None:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"checkpoint must be a path or None; got {path!r}")
        check_output(Path(path))
        self._path, self._settings = Path(path), ""
        self._completed: list[Result] = []
        self._stage = 0
        self._w: Array | None = None
        self._gradients: list[Array] = []
        self._offsets: list[float] = []

    def load(self, settings: str) -> None:
        """Read the file if it exists; raise ValueError if it belongs to other data or parameters."""
        self._settings = settings
        if not self._path.exists():
            return
        try:
            # NumPy would read an array, and regard any other file as a pickle.
            if not zipfile.is_zipfile(self._path):
                raise ValueError("it has another format")
            with np.load(self._path, allow_pickle=False) as saved:
                content = {name: saved[name] for name in _ARRAYS}
                if int(saved["checksum"]) != _checksum(content):
                    raise ValueError("its checksum differs, so it was changed")
                completed = json.loads(str(content["ended"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"checkpoint must be a file written by a fit; got {self._path}: {error}") from error
        if str(content["settings"]) != settings:
            raise ValueError(
                f"checkpoint must be of the same data and parameters; got {self._path}, which is of other ones. "
                "Remove the file, or use another one"
            )
        self._completed = [
            Result(w, **fields, trace=[]) for w, fields in zip(content["completed"], completed, strict=True)
        ]
        self._w = content["w"] if content["w"].size else None
        self._gradients, self._offsets = list(content["gradients"]), content["offsets"].tolist()

    def run(self, run: Run, operator: ShardedOperator, solver: Solver | None, w0: Array | None) -> Result:
        """Run the next stage, or return its result if it was completed before the interruption."""
        self._stage += 1
        if self._stage <= len(self._completed):
            return self._completed[self._stage - 1]
        if self._w is not None:
            w0 = self._w
            if isinstance(solver, SmoothedNewton) and self._offsets:
                cuts = Cuts(np.array(self._gradients), np.array(self._offsets), [None] * len(self._offsets))
                solver = replace(solver, cuts=cuts)
        operator.checkpoint = self
        result = run(operator, solver, w0)
        operator.checkpoint = None
        self._completed.append(result)
        self._w, self._gradients, self._offsets = None, [], []
        self._write()
        return result

    def save(self, w: Array) -> None:
        """Save the weights of the current stage."""
        self._w = w
        self._write()

    def note(self, w: Array, gradient: Array, value: float | None) -> None:
        """Save weights, and the cut there if its value is given."""
        if value is not None:
            self._gradients.append(gradient)
            self._offsets.append(value - float(gradient @ w))
        self.save(w)

    def remove(self) -> None:
        """Remove the file after a complete fit."""
        self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        ended = [{name: getattr(result, name) for name in _FIELDS} for result in self._completed]
        state: Any = {
            "settings": np.array(self._settings),
            "completed": np.array([result.w for result in self._completed]),
            "ended": np.array(json.dumps(ended, default=float)),
            "w": np.empty(0) if self._w is None else self._w,
            "gradients": np.array(self._gradients),
            "offsets": np.array(self._offsets),
        }
        stream = io.BytesIO()
        np.savez(stream, **state, checksum=np.array(_checksum(state)))
        write_file(self._path, stream.getvalue())


def _checksum(state: dict[str, Any]) -> int:
    """Return a checksum of the arrays of a file: cuts with other offsets would give a false bound."""
    return checksum(*(np.asarray(state[name]) for name in _ARRAYS))


# Fits of linear estimators on rows in shards: files on one machine, or the workers of a cluster.


class ShardedSet:
    """Training data in shards, in place of a :class:`~rocmax._validation.TrainingSet`."""

    def __init__(
        self,
        space: Space,
        classes: NDArray[Any],
        positive_index: int,
        n_bins: int = 8192,
        sample_rows: int = 20_000,
    ) -> None:
        self.space, self.classes, self.positive_index = space, classes, positive_index
        self.X, self.shape, self.scale = ShardedOperator(space), (space.n_rows, space.n_features), 1.0
        self.checkpoint: Checkpoint | None = None
        self._n_bins, self._sample_rows = n_bins, sample_rows
        # Rows near a threshold whose distinct scores are fetched to compute it exactly: as many as bins.
        self.most_fetched = 2 * n_bins

    def bind(self, loss: Loss) -> ShardedLoss:
        """Bind a loss to the labels and weights in the shards."""
        return ShardedLoss(self.X, loss.bind, self._n_bins, self._sample_rows)

    def solve(
        self,
        solver: Solver,
        loss: Loss,
        penalty: Any,
        w0: Array | None = None,
        callback: Callback | None = None,
    ) -> Result:
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

    # What a refinement needs, as of :class:`~rocmax.linear.refine.StandardizedRows`.

    def standardized(self) -> ShardedSet:
        """Return the set: weights refer to standardized features already."""
        return self

    def part(self, step: int) -> None:
        """Return None: no part of the rows is in this process."""
        return

    def logistic(self, strength: float, tol: float, max_iter: int, balanced: bool = False) -> Array:
        """Return the weights of logistic regression with this weight of the loss."""
        problem = ShardedLogistic(self.space, strength)

        def run(operator: Any, _: Solver | None, v: Array | None) -> Result:
            v = fit_logistic(problem, tol, max_iter, v, operator.save)
            return Result(v[:-1], np.nan, np.nan, 1, True, "logistic regression", [])

        return self.stage(run).w

    def start(self, w: Array) -> Start:
        """Return weights and their scores, scaled to unit standard deviation."""
        scores = self.X.matvec(w)
        if not scores.any():
            return Start(w, scores)
        (variance,) = self.space.moments(list(scores.terms))[1].ravel()
        spread = np.sqrt(max(float(variance), 0.0)) or 1.0
        return Start(w / spread, (1.0 / spread) * scores)

    def anchored(self, loss: ShardedLoss, anchor: Start, strength: float) -> ShardedAnchored:
        """Return a loss of standardized scores with a penalty on their distance from those of a start."""
        return ShardedAnchored(loss, anchor.scores, strength)

    def minimize(self, solver: LBFGS, objective: BoundLoss, w: Array, callback: Callback | None) -> Result:
        """Minimize an objective from some weights."""
        return self.stage(
            lambda operator, solver, w: solver.solve(operator, objective, Unpenalized(), w, callback), solver, w
        )

    def threshold(self, measure: Measure, scores: Scores) -> float:
        """Return the threshold of a measure: from bins, then from the exact scores of the rows near it."""
        bins = self.bins(scores)
        found = measure.threshold(*bins.rows)
        rows = bins.rows
        # Eight grids resolve all digits.
        for _ in range(8 if scores.any() else 0):
            low, high = _around(bins.grid, found)
            inside = (rows[0] >= low) & (rows[0] <= high)
            if float(rows[2][inside].sum()) <= self.most_fetched * float(rows[2].sum()) / self.space.n_rows:
                answers = self.space.ask(list(scores.terms), Shard.between, scores.requested, low, high)
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
        return self.space.bins(scores, scores.grid(self._n_bins) if grid is None else grid)[0]


class ShardedLogistic:
    """Objective of ``LogisticRegression(C=C)`` on shards, with one pass over the rows for value and gradient."""

    def __init__(self, space: Space, C: float) -> None:
        self._space, self._total = space, space.m + space.n
        self.ridge = np.append(np.full(space.n_features, 1.0 / (C * self._total)), 0.0)

    def value_and_gradient(self, v: Array) -> tuple[float, Array]:
        """Return value and gradient; the intercept is the last weight."""
        space, (raw, shift) = self._space, self._space.raw(v[:-1])
        answers = space.ask((), Shard.logistic, raw, float(v[-1]) - shift, space.double)
        value, slope = sum(a[0] for a in answers), sum(a[2] for a in answers)
        gradient = (np.sum([a[1] for a in answers], axis=0) - space.mean * slope) / space.scale
        ridge = self.ridge * v
        return float(value / self._total + 0.5 * ridge @ v), np.append(gradient, slope) / self._total + ridge


def fit_shards(
    estimator: Any, data: ShardedSet, standardize: bool, w0: Array | None = None, callback: Callback | None = None
) -> None:
    """Fit a linear estimator on rows in shards, and set its attributes."""
    space = data.space
    check_supported(estimator)
    if estimator.pos_label is None:
        warn_if_majority(type(estimator).__name__, data.classes, space.n, space.m)
    space.standardize()
    estimator._feature_means_ = space.mean
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
    """Return the ends of the bin of a score together with its neighbors."""
    edges = grid.edges
    cell = int(np.clip(np.searchsorted(edges, at, side="right") - 1, 0, edges.size - 2))
    return float(edges[max(cell - 1, 0)]), float(edges[min(cell + 2, edges.size - 1)])


def _joined(rows: tuple[Array, NDArray[np.bool_], Array], kept: NDArray[np.bool_], other: list[Any]) -> Any:
    return tuple(np.concatenate([column[kept], new]) for column, new in zip(rows, other, strict=True))


# Fits of data in files that are larger than memory.


class FitFilesMixin:
    """Mixin for linear estimators that are fitted on files of any size."""

    verbose: int | bool
    pos_label: Any

    def fit_files(self, files: Any, *, standardize: bool = True, **options: Any) -> Self:
        """Fit the model on files, which may be larger than memory.

        The rows are read in chunks, once for each product with the data. Losses are computed from histograms of the
        scores, whose error is included in ``objective_`` and ``dual_gap_``. The result agrees with :meth:`fit` on the
        same rows within the gap.

        Parameters
        ----------
        files : str, Path, list or RowStore
            A csv, tsv, parquet or svmlight file, a pattern such as ``"data/*.parquet"``, or a list of files. They are
            converted once to a binary copy, which is removed after the fit. To use a copy in several fits, or rows in
            .npy files or memory maps, pass a :class:`~rocmax.data.RowStore`.
        standardize : bool, default=True
            Whether the penalty or the constraint refers to standardized features. Mean and scale are computed in one
            pass, and the rows are not changed or copied. ``coef_`` always refers to the original features, and
            ``objective_`` to the problem that was solved.
        **options : dict
            Parameters of :meth:`RowStore.from_files <rocmax.data.RowStore.from_files>`, such as ``target``, ``weight``
            and ``max_memory``; none with a RowStore.

        Returns
        -------
        self
        """
        from rocmax.data import RowStore  # loads the readers of all formats

        self._check_parameters()  # type: ignore[attr-defined]  # of LinearScoreClassifier
        check_flag("standardize", standardize)
        if isinstance(files, RowStore):
            if options:
                raise ValueError(
                    f"with a RowStore, {next(iter(options))} must not be given; pass it to RowStore or "
                    "RowStore.from_files"
                )
            self._fit_store(files, standardize)
            return self
        with RowStore.from_files(files, **options) as store:
            self._fit_store(store, standardize)
        return self

    def _fit_store(self, store: RowStore, standardize: bool) -> None:
        classes, positive, weight = _checked_labels(store)
        index = positive_index(classes, self.pos_label)
        # Five score vectors and the labels may take half of the memory.
        on_disk = 2 * 6 * np.dtype(np.float64).itemsize * store.shape[0] > store.max_memory
        start = self._previous_weights(store.shape[1])  # type: ignore[attr-defined]  # of LinearScoreClassifier
        positive = positive if index == 1 else ~positive
        shard = Shard(store.rows, positive, weight, [Partition(0, store.shape[0])], on_disk, store.folder)
        try:
            space = Space(LocalShards([shard]), store.shape[1])
            # A quarter of the memory for the sample, in double precision with a copy for the differences of pairs.
            sample_rows = int(np.clip(store.max_memory // (32 * store.shape[1]), 1000, 20_000))
            data = ShardedSet(space, classes, index, sample_rows=sample_rows)
            fit_shards(self, data, standardize, start, self._progress())  # type: ignore[attr-defined]
        finally:
            shard.close()
        if store.feature_names is not None:
            self.feature_names_in_ = np.array(store.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _checked_labels(store: RowStore) -> tuple[NDArray[Any], NDArray[np.bool_], Any]:
    """Return the classes of rows with non-zero weight, the mask of the second one, and the weights."""
    classes, codes, weight = store.classes, store.codes, store.weight
    present = np.arange(classes.size)
    if weight is not None:
        present = np.flatnonzero(np.bincount(codes, weight > 0, classes.size))
        if not present.size:
            raise ValueError(f"sample_weight must be finite, >= 0 and not all zero; got {codes.size} zeros")
    positive_index(classes[present], None)
    return classes[present], codes == present[1], weight
