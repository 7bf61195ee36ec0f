"""Boosted trees on dask collections, grown by XGBoost on the workers of a cluster."""

from __future__ import annotations

import importlib
import io
import json
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._files import check_output, write_file
from rocmax._support import Array, Bools, need
from rocmax._validation import check_number, positive_index, random_source
from rocmax.boosted import BoostedClassifier
from rocmax.boosted.categories import (
    FROM_DTYPE,
    Categories,
    categorical_columns,
    check_text,
    encode_categories,
    find_categories,
)
from rocmax.boosted.classifier import directions
from rocmax.boosted.objective import DEFAULT_LOSS
from rocmax.boosted.search import AUTO, selection_score, window_loss
from rocmax.boosted.search import RULES as SEARCH
from rocmax.boosted.trees import read_xgboost
from rocmax.dask.cluster import RULES as CLUSTER
from rocmax.dask.cluster import (
    Cluster,
    LabelSet,
    PartitionFacts,
    aligned,
    changed,
    check_some_rows,
    checked_labels,
    checked_weight,
    too_many,
)
from rocmax.dask.estimators import DaskClassifier, check_columns, current_client
from rocmax.dask.metrics import histogram, joined
from rocmax.data import DataError
from rocmax.data.store import checksum
from rocmax.losses import Bins, Loss, ScoreGrid
from rocmax.losses.binned import Cells, row_coefficients
from rocmax.measures import PartialAUCMeasure
from rocmax.thresholds import fit_calibration


@dataclass(frozen=True)
class ClusterTreeRules:
    """Numbers of fits of trees on a cluster, each with its reason."""

    # Share of the rows of each partition that are held out in the search, as in one process for many rows.
    held_out: float = 0.25
    # Bins of scores for each class. Each worker sends weights and sums of scores, 131 kB, in a round with the window
    # objective, and weights, 66 kB, when the held-out rows are scored; the width of a bin is small against the scale of
    # the objective.
    n_bins: int = 4096
    # Bins of the held-out scores by which the threshold is chosen.
    threshold_bins: int = 100_000
    # Rounds after which the trees come to the driver. After the loss of a worker the fit goes on from there; each time,
    # XGBoost makes the bins of the features again, which takes as long as a few rounds.
    rounds: int = 50
    # Seconds after an error until a lost worker is known to be lost.
    notice: float = 10.0
    # Largest absolute value of a feature: XGBoost computes in single precision.
    largest: float = 1e37


RULES = ClusterTreeRules()


# Objective and held-out score. They run on each worker, and exchange histograms of scores with the others.


def _sum(values: Array) -> Array:
    collective = need("xgboost").collective
    found: Array = collective.allreduce(values, collective.Op.SUM)
    return found


def shared_grid(scores: Array) -> ScoreGrid:
    """Return bins for the scores of all workers."""
    collective = need("xgboost").collective
    own = np.array([scores.min(initial=np.inf), -scores.max(initial=-np.inf)])
    low, high = collective.allreduce(own, collective.Op.MIN)
    return ScoreGrid(float(low), float(low), float(-high), float(-high), RULES.n_bins)


class WorkerRows(NamedTuple):
    """Scores, labels and weights of the rows of a worker."""

    scores: Array
    positive: Bools
    weight: Array

    @classmethod
    def of_call(cls, scores: Any, data: Any) -> WorkerRows:
        """Return the rows of a call by XGBoost."""
        weight = data.get_weight()
        weight = np.asarray(weight, dtype=np.float64) if len(weight) else np.ones(len(scores))
        return cls(np.asarray(scores, dtype=np.float64), data.get_label() > 0.5, weight)


class SharedObjective:
    """Gradient and curvature of the rows of a worker: binary log loss first, then a loss on the scores of all workers.

    It is :class:`rocmax.boosted.objective.TreeObjective` for rows on several workers, where negatives and positives of
    one bin of scores have the gradient and the curvature of their mean score. ``n_rounds`` is the number of rounds
    before, and ``factor`` the scale that the first round with the loss has set, if there was one.
    """

    def __init__(self, loss: Loss, warm_up: int | None, n_rounds: int, factor: float | None) -> None:
        self.loss, self.warm_up, self.n_rounds, self.factor = loss, warm_up, n_rounds, factor
        self._sizes: Array | None = None

    def __call__(self, scores: Any, data: Any) -> tuple[Array, Array]:
        """Return gradient and curvature of the next round."""
        rows = WorkerRows.of_call(scores, data)
        if self._sizes is None:
            self._sizes = _sum(np.array([rows.weight[side].sum() for side in (rows.positive, ~rows.positive)]))
        self.n_rounds += 1
        if self.warm_up is None or self.n_rounds <= self.warm_up:
            return self._binary(rows)
        return self._of_loss(rows)

    def _binary(self, rows: WorkerRows) -> tuple[Array, Array]:
        assert self._sizes is not None
        sign = np.where(rows.positive, 1.0, -1.0)
        # The scores start at zero: the logarithm of the odds is in the objective only.
        with np.errstate(over="ignore"):
            size = 1.0 / (1.0 + np.exp(sign * (rows.scores + np.log(self._sizes[0] / self._sizes[1]))))
        return -sign * size * rows.weight, size * (1.0 - size) * rows.weight

    def _of_loss(self, rows: WorkerRows) -> tuple[Array, Array]:
        assert self._sizes is not None
        grid = shared_grid(rows.scores)
        cells: Cells = np.empty(rows.scores.size, dtype=np.uint16)
        own = Bins.count(grid, rows.scores, rows.positive, rows.weight, cells)
        weight, total = np.split(_sum(np.concatenate([own.weight, own.total])), 2)
        bins = Bins(grid, weight, total, grid.least, grid.largest)
        mean, positive, size = bins.rows
        gradient, curvature = self.loss.bind(positive, size).gradient_and_curvature(mean)
        if self.factor is None:
            self.factor = 0.1 * float(self._sizes.sum()) / max(float(curvature.sum()), 1e-9)
        found = []
        for values in (gradient, curvature):
            of_bins = np.zeros(weight.size)
            of_bins[bins.used] = self.factor * values / size
            found.append(row_coefficients(of_bins, cells, rows.weight))
        return found[0], found[1]


class SharedScore:
    """Held-out score of all workers, after every few rounds; in between, the last one."""

    def __init__(self, measure: PartialAUCMeasure, n_rounds: int, most: int) -> None:
        self.measure, self.n_rounds, self.most, self._last = measure, n_rounds, most, 0.0

    def __call__(self, scores: Any, data: Any) -> tuple[str, float]:
        """Return the name and the value after the next round."""
        self.n_rounds += 1
        if self.n_rounds % SEARCH.step == 0 or self.n_rounds == self.most:
            rows = WorkerRows.of_call(scores, data)
            grid = shared_grid(rows.scores)
            weight = _sum(Bins.count(grid, rows.scores, rows.positive, rows.weight).weight)
            used = np.flatnonzero(weight)
            # Positives and negatives of one bin are tied.
            bins = (used % grid.n_bins).astype(np.float64)
            self._last = float(selection_score(self.measure)(used >= grid.n_bins, bins, weight[used]))
        return "score", self._last


def _remembering(objective: SharedObjective) -> Any:
    """Return a callback that keeps the scale of an objective with the trees, for the rounds that follow."""

    class Remember(need("xgboost").callback.TrainingCallback):  # type: ignore[misc]  # XGBoost may be missing
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            model.set_attr(factor=None if objective.factor is None else repr(objective.factor))
            return False

    return Remember()


# Partitions on the workers: checked rows, then numbers in two parts.


class TreeRows(NamedTuple):
    """Checked rows of a partition, with categories as they are."""

    number: int
    X: Any
    y: NDArray[Any]
    weight: Array | None
    checksum: int


class TreeFacts(NamedTuple):
    """What the driver has to know of a partition: categories by column, and sum and number of weights above zero."""

    partition: PartitionFacts
    categories: Categories
    weights: tuple[float, int]


class TreePart(NamedTuple):
    """Numbers, labels and weights of some rows of a partition."""

    X: NDArray[np.float32]
    y: NDArray[np.float32]
    weight: NDArray[np.float32] | None


def _rows(number: int, X: Any, y: Any, weight: Any) -> TreeRows:
    if sparse.issparse(X) or hasattr(X, "todense"):
        X = np.asarray(X.todense())
    X = X if hasattr(X, "iloc") else np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"partition {number}: X must be two-dimensional; got {X.ndim} dimensions")
    labels = checked_labels(number, "y", y, X.shape[0])
    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "iloc") else [X]
    weight = checked_weight(number, weight, labels.size)
    return TreeRows(number, X, labels, weight, checksum(*columns, labels, weight))


def _facts(rows: TreeRows, requested: Any) -> TreeFacts:
    columns = categorical_columns(rows.X, requested)
    try:
        check_text(rows.X, columns, requested)
    except ValueError as error:
        raise DataError(f"partition {rows.number}: {error}") from error
    used = np.ones(rows.y.size, dtype=bool) if rows.weight is None else rows.weight > 0
    names = list(rows.X.columns) if hasattr(rows.X, "iloc") else None
    partition = PartitionFacts(rows.number, rows.X.shape, names, np.unique(rows.y[used]), rows.checksum)
    total = float(used.sum() if rows.weight is None else rows.weight.sum())
    return TreeFacts(partition, find_categories(rows.X, columns), (total, int(used.sum())))


def _encoded(
    rows: TreeRows, expected: int, categories: Categories, positive: Any, unit: float, seed: int
) -> list[TreePart]:
    """Return the rows to fit and the held-out rows of a partition; weights are divided by ``unit``."""
    if rows.checksum != expected:
        raise changed(rows.number)
    try:
        X = encode_categories(rows.X, categories)
        values = X.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(X, "iloc") else X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"partition {rows.number}: X must contain numbers: {error}") from error
    bad = np.abs(values) > RULES.largest
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"partition {rows.number}: absolute values in X must be at most {RULES.largest:g}; got "
            f"{values[row, column]} in column {column}"
        )
    used = np.ones(rows.y.size, dtype=bool) if rows.weight is None else rows.weight > 0
    held = np.random.default_rng([seed, rows.number]).random(rows.y.size) < RULES.held_out
    found = []
    for side in (~held & used, held & used):
        weight = None if rows.weight is None else (rows.weight[side] / unit).astype(np.float32)
        found.append(TreePart(values[side].astype(np.float32), (rows.y[side] == positive).astype(np.float32), weight))
    return found


def _counts(parts: list[TreePart]) -> NDArray[np.int64]:
    """Return the number of negatives and positives of each part."""
    return np.array([[np.count_nonzero(part.y == 0), np.count_nonzero(part.y)] for part in parts])


def _field(parts: list[TreePart], part: int, name: str) -> Any:
    return getattr(parts[part], name)


def _held_out_histogram(number: int, parts: list[TreePart], model: bytes, n_rounds: int, params: Any) -> Any:
    """Return the histogram of the scores of the held-out rows of a partition."""
    part, xgboost = parts[1], need("xgboost")
    booster = xgboost.Booster(model_file=bytearray(model))
    rows = xgboost.DMatrix(part.X, **params)
    scores = booster.predict(rows, output_margin=True, iteration_range=(0, n_rounds)) if part.y.size else part.y
    return histogram(number, scores, part.y > 0.5, part.weight, RULES.threshold_bins)


# Growth of trees, seen from the driver: stages of a fit, and the file from which it goes on.


@dataclass
class Stage:
    """Trees of one size and objective: the candidates of the search first, then the model on all rows.

    ``warm_up`` is as in a candidate of one process. ``scores`` are the held-out scores by number of rounds. With
    ``automatic``, the best of them counts, otherwise the last one.
    """

    max_leaf_nodes: int
    warm_up: int | None
    n_rounds: int
    automatic: bool
    scores: list[tuple[int, float]]
    factor: float | None = None
    ended: bool = False
    model: bytes = b""

    @property
    def best(self) -> tuple[int, float]:
        """Number of rounds that counts, and its held-out score."""
        return max(self.scores, key=lambda scored: scored[1]) if self.automatic else self.scores[-1]


class StageFile:
    """Stages of a fit, saved after every few rounds; the file is replaced atomically, and holds no code."""

    def __init__(self, path: Any) -> None:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"checkpoint must be a path or None; got {path!r}")
        check_output(Path(path))
        self._path = Path(path)

    def load(self, settings: str) -> tuple[int | None, list[Stage]]:
        """Return seed and stages, none without a file; raise ValueError if it is of other data or parameters."""
        if not self._path.exists():
            return None, []
        try:
            if not zipfile.is_zipfile(self._path):
                raise ValueError("it has another format")
            with np.load(self._path, allow_pickle=False) as saved:
                state = {name: saved[name] for name in saved.files}
            if int(state.pop("checksum")) != checksum(*state.values()):
                raise ValueError("its checksum differs, so it was changed")
            header = json.loads(str(state["header"]))
            models = [state[f"model{i}"].tobytes() for i in range(len(header["stages"]))]
            stages = [Stage(**fields, model=model) for fields, model in zip(header["stages"], models, strict=True)]
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"checkpoint must be a file written by a fit; got {self._path}: {error}") from error
        if header["settings"] != settings:
            raise ValueError(
                f"checkpoint must be of the same data and parameters; got {self._path}, which is of other ones. "
                "Remove the file, or use another one"
            )
        return header["seed"], stages

    def save(self, settings: str, seed: int, stages: list[Stage]) -> None:
        """Replace the file."""
        fields = [{name: value for name, value in asdict(stage).items() if name != "model"} for stage in stages]
        header = json.dumps({"settings": settings, "seed": seed, "stages": fields})
        models = {f"model{i}": np.frombuffer(stage.model, dtype=np.uint8) for i, stage in enumerate(stages)}
        state: dict[str, Any] = {"header": np.array(header), **models}
        stream = io.BytesIO()
        np.savez(stream, **state, checksum=np.array(checksum(*state.values())))
        write_file(self._path, stream.getvalue())

    def remove(self) -> None:
        """Remove the file after a complete fit."""
        self._path.unlink(missing_ok=True)


class Grower:
    """Growth of trees on the workers; a lost worker costs the rounds since the trees last came to the driver."""

    def __init__(
        self, cluster: Cluster, parts: dict[int, Any], width: int, params: dict[str, Any], measure: PartialAUCMeasure
    ) -> None:
        self._cluster, self._parts, self._width, self._params = cluster, parts, width, params
        self._measure, self._loss = measure, window_loss(measure) or DEFAULT_LOSS
        self.features: dict[str, Any] = {}
        cluster.loaded(parts)
        self.counts = np.array(cluster.client.gather([cluster.client.submit(_counts, part) for part in parts.values()]))
        self.weighted = False

    def grow(self, stage: Stage, all_rows: bool) -> None:
        """Add the next rounds to a stage."""
        done = self.rounds_of(stage)
        step = min(RULES.rounds, stage.n_rounds - done)
        for _ in range(CLUSTER.attempts):
            self._cluster.loaded(self._parts)
            workers = self._cluster.workers()
            try:
                found = _watched(lambda: self._train(stage, step, all_rows), self._cluster)
            except Exception as error:
                if isinstance(error, DataError):
                    raise
                if self._lost(workers):
                    continue
                raise RuntimeError(
                    f"XGBoost must grow trees on all workers; got {type(error).__name__}: {error}. Where a worker is "
                    "too slow for the others, raise timeout; with checkpoint, the next fit continues"
                ) from error
            booster = found["booster"]
            stage.model = bytes(booster.save_raw("ubj"))
            factor = booster.attr("factor")
            stage.factor = None if factor is None else float(factor)
            if not all_rows:
                scores = enumerate(found["history"]["held_out"]["score"], done + 1)
                stage.scores += [(n, v) for n, v in scores if n % SEARCH.step == 0 or n == stage.n_rounds]
            return
        raise too_many()

    def rounds_of(self, stage: Stage) -> int:
        """Return the number of rounds of a stage."""
        return self.booster(stage).num_boosted_rounds() if stage.model else 0

    def booster(self, stage: Stage) -> Any:
        """Return the trees of a stage."""
        return need("xgboost").Booster(model_file=bytearray(stage.model))

    def held_out(self, stage: Stage) -> Any:
        """Return the histogram of the scores of the held-out rows at the best number of rounds."""
        self._cluster.loaded(self._parts)
        count = need("dask").delayed(_held_out_histogram, pure=False)
        delayed = [
            count(number, part, stage.model, stage.best[0], self.features) for number, part in self._parts.items()
        ]
        with self._cluster.client.as_current():
            return joined(delayed, RULES.threshold_bins)

    def _train(self, stage: Stage, step: int, all_rows: bool) -> Any:
        xgboost, on_dask = need("xgboost"), importlib.import_module("xgboost.dask")
        done = self.rounds_of(stage)
        objective = SharedObjective(self._loss, stage.warm_up, done, stage.factor)
        train = self._matrix(on_dask, (0, 1) if all_rows else (0,))
        options: dict[str, Any] = {}
        if not all_rows:
            options["evals"] = [(self._matrix(on_dask, (1,), ref=train), "held_out")]
            options["custom_metric"] = SharedScore(self._measure, done, stage.n_rounds)
        with xgboost.config_context(verbosity=0):
            return on_dask.train(
                self._cluster.client,
                {**self._params, "max_leaves": stage.max_leaf_nodes},
                train,
                num_boost_round=step,
                obj=objective,
                verbose_eval=False,
                xgb_model=self.booster(stage) if stage.model else None,
                callbacks=[_remembering(objective)],
                coll_cfg=xgboost.collective.Config(timeout=max(1, int(self._cluster.timeout)), retry=1),
                **options,
            )

    def _matrix(self, on_dask: Any, sides: tuple[int, ...], **options: Any) -> Any:
        """Return the rows of one part, or of both, in the format of XGBoost."""
        arrays = importlib.import_module("dask.array")
        field, chunks = need("dask").delayed(_field), {"X": (self._width,), "y": (), "weight": ()}
        pieces: dict[str, list[Any]] = {name: [] for name in chunks if name != "weight" or self.weighted}
        for future, counts in zip(self._parts.values(), self.counts, strict=True):
            for side in (side for side in sides if counts[side].sum()):
                for name, blocks in pieces.items():
                    shape = (int(counts[side].sum()), *chunks[name])
                    blocks.append(arrays.from_delayed(field(future, side, name), shape, np.float32))
        joined_blocks = [arrays.concatenate(blocks) for blocks in pieces.values()]
        weight = joined_blocks[2] if self.weighted else None
        return on_dask.DaskQuantileDMatrix(
            self._cluster.client, *joined_blocks[:2], weight=weight, **self.features, **options
        )

    def _lost(self, workers: set[str]) -> bool:
        """Return whether some of the workers are gone; the scheduler may notice it after the others."""
        end = time.monotonic() + RULES.notice
        while workers <= self._cluster.workers():
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True


def _watched(call: Callable[[], Any], cluster: Cluster) -> Any:
    """Return the result of a call; raise an error if there is no worker left, for which XGBoost would wait."""
    found: dict[str, Any] = {}

    def run() -> None:
        try:
            with cluster.client.as_current():
                found["value"] = call()
        except BaseException as error:
            found["error"] = error

    thread, fine = threading.Thread(target=run, daemon=True), time.monotonic()
    thread.start()
    while thread.is_alive():
        thread.join(1.0)
        if cluster.workers():
            fine = time.monotonic()
        elif time.monotonic() - fine > cluster.timeout:
            raise cluster.no_progress()
    if "error" in found:
        raise found["error"]
    return found["value"]


# The estimator.


class DaskBoostedClassifier(DaskClassifier):
    r"""Boosted trees of XGBoost, tuned for the partial AUC and fitted on a dask cluster.

    The search, the objective for the top of the ranking and the threshold are those of
    :class:`~rocmax.BoostedClassifier`, with these differences. A quarter of the rows of each partition is held out in
    place of folds. Workers exchange histograms of their scores: the window objective uses the mean score of each of
    4,096 bins for each class, and the held-out score is that of the bins. One model is fitted, to all rows and columns.

    Each worker keeps its rows as single-precision numbers. After the loss of a worker, its partitions are read again by
    others, and the fit goes on from the trees that the driver has: it loses at most 50 rounds. The trees depend on how
    the rows are divided among the workers, as XGBoost's bins of the features do, so the result can differ slightly.

    It requires ``pip install 'rocmax[dask,xgboost]'``.

    Parameters
    ----------
    min_fpr, max_fpr, min_tpr
    objective : {"auto", "binary", "window"}, default="auto"
        Objective of the trees: the logistic loss, the window objective, or the one with the higher held-out score.
    max_leaf_nodes : "auto" or int, default="auto"
        Largest number of leaves of a tree, at least 2. "auto" tries 6 and 31.
    learning_rate : "auto" or float, default="auto"
        Factor of each tree, above 0. "auto" takes 0.1.
    n_estimators : "auto" or int, default="auto"
        Number of rounds, each of which adds a tree. "auto" chooses it by the held-out score: at most 250 with a
        learning rate of 0.1, and in inverse proportion for others.
    categorical_features : "from_dtype", None or array-like of int, bool or str, default="from_dtype"
        Columns of categories, as for :class:`~rocmax.BoostedClassifier`.
    monotonic_cst : dict or array-like of int of shape (n_features,), default=None
        Direction of the effect of each feature on the score for the positive class: 1 increasing, -1 decreasing, 0 any.
        A dict maps names of features to directions.
    random_state, pos_label, verbose

    Attributes
    ----------
    models_ : list of TreeModel
        The fitted ensemble.
    threshold_ : float
        Threshold of the score.
    calibration_ : dict
        The function from scores to probabilities.
    max_leaf_nodes_ : int
        Largest number of leaves of a tree.
    learning_rate_ : float
        Learning rate.
    n_estimators_ : int
        Number of rounds.
    used_objective_ : {"binary", "window"}
        Objective of the model.
    cv_results_ : dict of lists
        What was tried, as for :class:`~rocmax.BoostedClassifier`, with one held-out quarter in place of folds.
    categories_ : dict
        Categories of each categorical column, by position.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    rocmax.BoostedClassifier : The estimator for data in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from rocmax.dask import DaskBoostedClassifier
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     X = da.random.default_rng(0).normal(size=(5000, 5), chunks=(1000, 5))
    ...     y = (X[:, 0] > 1).astype(int)
    ...     model = DaskBoostedClassifier(max_leaf_nodes=6, n_estimators=20, objective="binary", random_state=0)
    ...     local = model.fit(X, y).to_local()
    >>> local.n_estimators_
    20
    """

    _plain = BoostedClassifier

    def __init__(
        self,
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        min_tpr: float = 0.0,
        objective: str = AUTO,
        max_leaf_nodes: int | str = AUTO,
        learning_rate: float | str = AUTO,
        n_estimators: int | str = AUTO,
        categorical_features: Any = FROM_DTYPE,
        monotonic_cst: Any = None,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.min_tpr = min_tpr
        self.objective = objective
        self.max_leaf_nodes = max_leaf_nodes
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def _unfitted(self) -> Any:
        return BoostedClassifier(engine="xgboost", n_models=1, **self.get_params())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: Any = None, timeout: float = 60.0) -> Self:
        """Fit the model on the workers of the current client.

        Parameters
        ----------
        X : dask Array or DataFrame of shape (n_samples, n_features)
            Training rows; NaN is a missing value. Each worker loads its own partitions.
        y : dask Array or Series of shape (n_samples,)
            Two classes, of any type, with the partitions of ``X``.
        sample_weight : dask Array or Series of shape (n_samples,), default=None
            Sample weights, with the partitions of ``X``. Only their ratios matter.
        checkpoint : str or Path, default=None
            File in which the trees are saved after every 50 rounds. If it exists, the fit continues from it; a
            checkpoint of other data or parameters is an error. It is removed when the fit ends.
        timeout : ...
            Also the seconds for which XGBoost awaits a worker in a round.

        Returns
        -------
        self
        """
        local = self._unfitted()
        local._check_parameters()
        check_number("timeout", timeout, above=0.0)
        need("xgboost")
        saved = None if checkpoint is None else StageFile(checkpoint)
        fit = _Fit(self, Cluster(current_client(), timeout), aligned(X=X, y=y, sample_weight=sample_weight), saved)
        fit.search()
        final = fit.refit()
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(fit.attributes(final))
        if saved is not None:
            saved.remove()
        return self


class _Fit:
    """A fit on the driver: what is known of the partitions, the stages so far, and the choice among them."""

    def __init__(
        self, model: DaskBoostedClassifier, cluster: Cluster, delayed: list[tuple[Any, ...]], saved: StageFile | None
    ) -> None:
        self._model, self._saved = model, saved
        client, wrap = cluster.client, need("dask").delayed
        cluster.check_package("rocmax.dask.boosted", "xgboost.dask")
        loaded = dict(enumerate(client.compute([wrap(_rows, pure=False)(i, *one) for i, one in enumerate(delayed)])))
        cluster.loaded(loaded)
        asked = {i: client.submit(_facts, rows, model.categorical_features, pure=False) for i, rows in loaded.items()}
        cluster.loaded(asked)
        facts: list[TreeFacts] = client.gather(list(asked.values()))
        self.first = _first_partition([fact.partition for fact in facts])
        labels = (LabelSet(fact.partition.number, fact.partition.labels) for fact in facts)
        self.classes = reduce(LabelSet.joined, labels).labels
        check_some_rows(self.classes)
        self.index = positive_index(self.classes, model.pos_label)
        self.categories = _all_categories([fact.categories for fact in facts])
        checksums = [fact.partition.checksum for fact in facts]
        params = {name: value for name, value in model.get_params().items() if name != "verbose"}
        self._settings = f"{type(model).__name__} {joblib.hash((params, checksums))}"
        seed, self.stages = (None, []) if saved is None else saved.load(self._settings)
        self.seed = int(random_source(model.random_state).randint(2**30)) if seed is None else seed
        total, count = np.sum([fact.weights for fact in facts], axis=0)
        label, unit = self.classes[self.index], float(total / count)
        parts = {
            i: client.submit(_encoded, rows, checksums[i], self.categories, label, unit, self.seed, pure=False)
            for i, rows in loaded.items()
        }
        self._measure = PartialAUCMeasure(model.min_fpr, model.max_fpr, model.min_tpr)
        self._rate = SEARCH.rate if model.learning_rate == AUTO else float(model.learning_rate)
        self._grower = Grower(cluster, parts, self.first.shape[1], self._params(), self._measure)
        self._grower.weighted = delayed[0][2] is not None
        if self.categories:
            kinds = ["c" if i in self.categories else "q" for i in range(self.first.shape[1])]
            self._grower.features = {"feature_types": kinds, "enable_categorical": True}
        if not self._grower.counts.sum(axis=0).all():
            raise DataError("the rows to fit and the held-out quarter must have both classes; got too few rows")

    def _params(self) -> dict[str, Any]:
        """Return the parameters of the trees, those of one process."""
        found: dict[str, Any] = {
            "objective": "binary:logistic",
            "base_score": 0.5,  # scores of zero
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "learning_rate": self._rate,
            "seed": self.seed,
            "verbosity": 0,
            "disable_default_eval_metric": True,
        }
        names = None if self.first.names is None else np.array(self.first.names, dtype=object)
        monotonic = directions(self._model.monotonic_cst, self.first.shape[1], names, sorted(self.categories))
        return found if monotonic is None else {**found, "monotone_constraints": tuple(monotonic)}

    def search(self) -> None:
        """Grow the candidates: trees of each size, then those of the best size with the window objective.

        Where all parameters are given, the only candidate is what gives held-out scores for the threshold.
        """
        model, automatic = self._model, self._model.n_estimators == AUTO
        most = round(SEARCH.most_shrinkage / self._rate) if automatic else int(model.n_estimators)
        sizes = SEARCH.sizes if model.max_leaf_nodes == AUTO else (int(model.max_leaf_nodes),)
        binary = [Stage(size, None, most, automatic, []) for size in sizes]
        if model.objective == "window" and not automatic and len(sizes) == 1:
            binary, size, rounds = [], sizes[0], most
        if binary:
            grown = [self._grow(number, stage) for number, stage in enumerate(binary)]
            self.chosen = max(grown, key=lambda stage: stage.best[1])
            size, rounds = self.chosen.max_leaf_nodes, self.chosen.best[0]
        narrow = model.min_tpr > 0 or model.max_fpr <= SEARCH.window_limit
        if model.objective == "binary" or (model.objective == AUTO and not narrow):
            return
        warm_up = max(1, round(SEARCH.warm_up * rounds))
        most = round(SEARCH.window_rounds * rounds) if automatic else most
        window = self._grow(len(binary), Stage(size, warm_up, most, automatic, []))
        if model.objective == "window" or window.best[1] > self.chosen.best[1]:
            self.chosen = window

    def refit(self) -> Stage:
        """Fit the chosen candidate to all rows."""
        size, warm_up, rounds = self.chosen.max_leaf_nodes, self.chosen.warm_up, self.chosen.best[0]
        return self._grow(len(self.searched), Stage(size, warm_up, rounds, False, []), all_rows=True)

    @property
    def searched(self) -> list[Stage]:
        """The candidates."""
        return [stage for stage in self.stages if stage.scores]

    def attributes(self, final: Stage) -> dict[str, Any]:
        """Return the attributes of the fitted model."""
        held = self._grower.held_out(self.chosen)
        # A limit on false positives is kept if all of a cell counts as its highest score, a floor if as its lowest.
        place = held.low if self._model.min_tpr > 0 else held.high
        weight = held.weight.ravel()
        positive = np.repeat(held.labels.labels, place.size)
        scores, used = np.tile(place, 2), weight > 0
        text = bytes(self._grower.booster(final).save_raw("json")).decode()
        rows = [(s.max_leaf_nodes, _name(s), *s.best, 0.0) for s in self.searched]
        columns = ("max_leaf_nodes", "objective", "n_estimators", "mean_score", "std_score")
        found = {
            "models_": [read_xgboost(text, self.first.shape[1])],
            "threshold_": self._measure.threshold(scores[used], positive[used], weight[used]),
            "calibration_": fit_calibration(scores[used], positive[used], weight[used]),
            "max_leaf_nodes_": final.max_leaf_nodes,
            "learning_rate_": self._rate,
            "n_estimators_": final.n_rounds,
            "used_objective_": _name(final),
            "cv_results_": {name: list(values) for name, values in zip(columns, zip(*rows, strict=True), strict=True)},
            "categories_": self.categories,
            "classes_": self.classes,
            "n_features_in_": self.first.shape[1],
        }
        names = self.first.names
        if names is not None and all(isinstance(name, str) for name in names):
            found["feature_names_in_"] = np.array(names, dtype=object)
        return found

    def _grow(self, number: int, stage: Stage, all_rows: bool = False) -> Stage:
        """Grow a stage to its end, or take what was saved of it."""
        if number == len(self.stages):
            self.stages.append(stage)
        stage = self.stages[number]
        while not stage.ended:
            self._grower.grow(stage, all_rows)
            done = self._grower.rounds_of(stage)
            idle = stage.automatic and done - stage.best[0] >= SEARCH.patience
            stage.ended = idle or done >= stage.n_rounds
            if self._saved is not None:
                self._saved.save(self._settings, self.seed, self.stages)
        if self._model.verbose:
            what = f"held-out score {stage.best[1]:.4f}" if stage.scores else "fitted to all rows"
            sys.stderr.write(f"DaskBoostedClassifier: {stage.max_leaf_nodes} leaves, {_name(stage)}: {what}\n")
        return stage


def _name(stage: Stage) -> str:
    return "binary" if stage.warm_up is None else "window"


def _first_partition(facts: list[PartitionFacts]) -> PartitionFacts:
    """Return the first partition with rows; raise DataError if others have other columns."""
    first = next((fact for fact in facts if fact.shape[0]), facts[0])
    for fact in facts:
        check_columns(fact, first)
    if not first.shape[1]:
        raise DataError(f"X must have at least one column; got none in partition {first.number}")
    return first


def _all_categories(of_partitions: list[Categories]) -> Categories:
    """Return the categories of each column in all partitions, in the order of their codes."""
    found: Categories = {}
    for column in sorted({column for known in of_partitions for column in known}):
        values = np.concatenate([known[column] for known in of_partitions if column in known])
        kinds = {type(value) for value in values.tolist()}
        found[column] = np.unique(values if len(kinds) <= 1 else values.astype(str).astype(object))
    return found
