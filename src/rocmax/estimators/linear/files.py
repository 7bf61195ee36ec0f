"""Fits of data in files that are larger than memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rocmax._progress import Listener, listening
from rocmax._validate import check_flag, positive_index
from rocmax.estimators.linear.sharded import ShardedSet, fit_shards
from rocmax.sharded.local import LocalShards
from rocmax.sharded.shard import Part, Shard
from rocmax.sharded.vectors import Space
from rocmax.solvers import Callback, Progress

if TYPE_CHECKING:
    from rocmax.data import RowStore
    from rocmax.data.rows import Rows

# Bytes per row of the score vectors and labels of a fit, and the share of the memory that they may take.
_ROW_BYTES, _SHARE = 50, 2
# Rows whose weights are read at a time.
_BLOCK = 1 << 20
# Seconds between two updates of the progress on a terminal.
_INTERVAL = 0.2


class FitFilesMixin:
    """Mixin for linear estimators that are fitted on files of any size."""

    verbose: int | bool
    pos_label: Any

    def fit_files(
        self,
        files: Any,
        *,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        types: Mapping[str, Any] | None = None,
        delimiter: str | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
        skip_unlabelled: bool = False,
        standardize: bool = True,
        max_memory: int | str = "1GB",
        folder: Any = None,
    ) -> Self:
        """Fit the model on files, which may be larger than memory.

        The rows are read in chunks, once for each product with the data. Losses are computed from histograms of the
        scores, whose error is included in ``objective_`` and ``dual_gap_``. The result agrees with :meth:`fit` on the
        same rows within the gap.

        Parameters
        ----------
        files : str, Path, list or RowStore
            A csv, tsv, parquet or svmlight file, a pattern such as ``"data/*.parquet"``, or a list of files. They are
            converted once to a binary copy in ``folder``, which is removed after the fit. To use a copy in several
            fits, or rows in .npy files or memory maps, pass a :class:`~rocmax.data.RowStore`, and no other parameter
            except ``standardize``.
        target : str, default=None
            Name of the column with the labels. An svmlight file stores its labels itself and takes no target.
        weight : str, default=None
            Name of the column with sample weights.
        columns : sequence of str, default=None
            Features to read, in this order. If None, all columns except the target and the weights are read.
        types : dict, default=None
            "number" or "text" for columns whose type should not be inferred.
        delimiter : str, default=None
            Field delimiter of a text table. If None, a comma is used, or a tab for tsv files.
        n_features : int, default=None
            Number of features of svmlight files. If None, the largest index is used. This requires an extra pass.
        zero_based : bool, default=False
            Whether the feature indices of an svmlight file start at 0 instead of 1.
        skip_unlabelled : bool, default=False
            Whether to leave out rows without a label, which are otherwise an error.
        standardize : bool, default=True
            Whether the penalty or the constraint refers to standardized features. Mean and scale are computed in one
            pass, and the rows are not changed or copied. ``coef_`` always refers to the original features, and
            ``objective_`` to the problem that was solved.
        max_memory : int or str, default="1GB"
            Target for the memory of the fit, in bytes or as a string such as "500MB"; from about 10 MB on, it is kept
            to. The readers of the files have buffers of their own, for blocks of text and for row groups of parquet
            files, which are not part of it.
        folder : str or Path, default=None
            Folder for the binary copy and for score vectors, on a disk with space for both. None uses the folder for
            temporary files.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        from rocmax.data import RowStore  # loads the readers of all formats

        self._check_parameters()  # type: ignore[attr-defined]  # of LinearScoreClassifier
        check_flag("standardize", standardize)
        options: dict[str, Any] = {
            "target": target,
            "weight": weight,
            "columns": columns,
            "types": types,
            "delimiter": delimiter,
            "n_features": n_features,
            "zero_based": zero_based,
            "skip_unlabelled": skip_unlabelled,
            "max_memory": max_memory,
            "folder": folder,
        }
        if isinstance(files, RowStore):
            _check_unused(options)
            self._fit_store(files, standardize)
            return self
        with listening(_conversion(type(self).__name__)) if self.verbose else nullcontext():
            store = RowStore.from_files(files, **options)
        with store:
            self._fit_store(store, standardize)
        return self

    def _fit_store(self, store: RowStore, standardize: bool) -> None:
        classes, positive, weight = _checked_labels(store)
        index = positive_index(classes, self.pos_label)
        meter = _Meter(store.rows, type(self).__name__ if self.verbose else None)
        on_disk = _SHARE * _ROW_BYTES * store.shape[0] > store.max_memory
        start = self._previous_weights(store.shape[1])  # type: ignore[attr-defined]  # of LinearScoreClassifier
        parts, positive = [Part(0, store.shape[0])], positive if index == 1 else ~positive
        shard = Shard(meter, positive, weight, parts, on_disk, store.folder)
        try:
            space = Space(LocalShards([shard]), store.shape[1], shard.counts())
            # A quarter of the memory for the sample, in double precision with a copy for the differences of pairs.
            sample_rows = int(np.clip(store.max_memory // (32 * store.shape[1]), 1000, 20_000))
            data = ShardedSet(space, classes, index, sample_rows=sample_rows)
            fit_shards(self, data, standardize, start, meter.callback())
        finally:
            shard.close()
        if store.feature_names is not None:
            self.feature_names_in_ = np.array(store.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _check_unused(options: dict[str, Any]) -> None:
    """Raise ValueError for parameters that are not used with a RowStore."""
    known = signature(FitFilesMixin.fit_files).parameters
    given = [
        name
        for name, value in options.items()
        if type(value) is not type(known[name].default) or value != known[name].default
    ]
    if given:
        raise ValueError(
            f"with a RowStore, {given[0]} must not be given; got {options[given[0]]!r}. Pass it to RowStore or "
            "RowStore.from_files"
        )


def _checked_labels(store: RowStore) -> tuple[NDArray[Any], NDArray[np.bool_], Any]:
    """Return the classes of rows with non-zero weight, the mask of the second one, and the weights."""
    classes, codes, weight = store.classes, store.codes, store.stored_weight
    present = np.arange(classes.size)
    if weight is not None:
        seen = np.zeros(classes.size, dtype=bool)
        for start in range(0, codes.size, _BLOCK):
            part = (
                weight[start : start + _BLOCK] if isinstance(weight, np.ndarray) else weight.read(start, start + _BLOCK)
            )
            seen |= np.bincount(codes[start : start + _BLOCK], part > 0, classes.size) > 0
        present = np.flatnonzero(seen)
        if not present.size:
            raise ValueError(f"sample_weight must be finite, >= 0 and not all zero; got {codes.size} zeros")
    positive_index(classes[present], None)
    return classes[present], codes == present[1], weight


class _Meter:
    """Rows that report the progress of passes over them on standard error.

    Parameters
    ----------
    rows : Rows
        The rows.
    name : str, default=None
        Name of the estimator in the messages; None for no messages. The progress within a pass is shown on terminals
        only.
    """

    def __init__(self, rows: Rows, name: str | None) -> None:
        self._rows, self._line = rows, None if name is None else _Line(name)
        self.shape, self.dtype = rows.shape, rows.dtype
        self._count, self._seconds = 0, 0.0

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Yield the chunks, and count their rows and the time of the pass."""
        began = time.perf_counter()
        for start, chunk in self._rows.chunks():
            yield start, chunk
            self._count += chunk.shape[0]
            now = time.perf_counter()
            self._seconds, began = self._seconds + now - began, now
            if self._line is not None:
                self._line.show(f"{(start + chunk.shape[0]) / self.shape[0]:.0%} of a pass, {self._rate()}")

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Return some rows."""
        return self._rows.rows(index)

    def callback(self) -> Callback | None:
        """Return a callback that reports objective, bound, passes and rows per second after each iteration."""
        line = self._line
        if line is None:
            return None

        def report(progress: Progress) -> None:
            line.write(
                f"objective {progress.objective:.6g}, bound {progress.bound:.6g}, "
                f"{progress.passes} passes over the data, {self._rate()}\n"
            )

        return report

    def _rate(self) -> str:
        return f"{self._count / max(self._seconds, 1e-9):,.0f} rows/s"


class _Line:
    """Line on standard error with the progress of an estimator; on a terminal, it replaces the one before.

    Parameters
    ----------
    name : str
        Name of the estimator.
    """

    def __init__(self, name: str) -> None:
        self._name, self._shown = name, -np.inf

    def show(self, text: str) -> None:
        """Show a text for a short time, on a terminal only."""
        now = time.perf_counter()
        if sys.stderr.isatty() and now - self._shown >= _INTERVAL:
            self._shown = now
            self.write(text)

    def write(self, text: str) -> None:
        """Write a text."""
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{start}{self._name}: {text}")
        sys.stderr.flush()


def _conversion(name: str) -> Listener:
    """Return a listener that shows the rows of the binary copy so far, and their number per second."""
    line, began = _Line(name), time.perf_counter()

    def listen(text: str, done: int, total: int | None) -> None:
        line.show(f"{text}, {done:,} rows, {done / (time.perf_counter() - began):,.0f} rows/s")

    return listen
