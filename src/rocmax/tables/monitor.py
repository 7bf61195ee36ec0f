"""Watch the limits of a model on tables that come one after the other, with labels that may come later."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rocmax._files import check_not_input, check_output, output_file, write_file
from rocmax._support import Index, Message, Parameter, ParameterError, holding, need
from rocmax.data import DataError, Reading
from rocmax.data.read import TableSource, check_columns
from rocmax.forward import time_text
from rocmax.limits import Limits, checked
from rocmax.metrics import positive_scores
from rocmax.monitor import LIMITS, PASSED, Monitor, Proposal, Tally, Verdict, audit_size
from rocmax.report.history import Drift, history_page, proposal_texts, verdict_rows
from rocmax.tables.columns import read_times
from rocmax.tables.model import BATCH_SIZE, TITLES, TableModel, ValueShares, known_levels
from rocmax.tables.options import WATCHED, Watching, check_watching, chosen, names_of
from rocmax.tables.read import known_labels, need_tables

if sys.platform != "win32":
    import fcntl

# Ledger: the rows and labels that were counted, in records of 16 bytes. It is only appended to, and the state says how
# many of its records count: what a killed process did is decided by the state alone, which is replaced atomically.

RECORD = np.dtype([("id", "<u8"), ("batch", "<u4"), ("bin", "<u2"), ("label", "i1"), ("kind", "u1")])
ROW, LATE, TABLE, LABELS = range(4)
# Records, or rows of a file of labels, that are in memory at the same time.
PIECE = 1 << 18


class Ledger:
    """Records of rows and labels, by keyed hashes of the identifiers of rows."""

    def __init__(self, file: BinaryIO, name: str, size: int) -> None:
        self._file, self.size = file, size
        found = file.seek(0, os.SEEK_END) // RECORD.itemsize
        if found < size:
            raise DataError(f"{name} must have the {size:,} records that the state counts; got {found:,}")
        file.truncate(size * RECORD.itemsize)

    def append(self, kind: int, ids: Any, batch: Any, place: Any = 0, label: Any = -1) -> None:
        """Append records; one value may stand for all."""
        records = np.zeros(np.size(ids), dtype=RECORD)
        for name, values in zip(RECORD.names or (), (ids, batch, place, label, kind), strict=True):
            records[name] = values
        self._file.seek(self.size * RECORD.itemsize)
        self._file.write(records.tobytes())
        self.size += records.size

    def keep(self) -> None:
        """Wait until the records are on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def pieces(self, start: int, stop: int) -> Iterator[Any]:
        """Yield records."""
        for first in range(start, stop, PIECE):
            self._file.seek(first * RECORD.itemsize)
            yield np.frombuffer(self._file.read(min(PIECE, stop - first) * RECORD.itemsize), dtype=RECORD)

    def batch_of(self, kind: int, number: int) -> int | None:
        """Return the batch with which a table or a file of labels was counted; None if it was not."""
        for piece in self.pieces(0, self.size):
            own = piece["batch"][(piece["kind"] == kind) & (piece["id"] == np.uint64(number))]
            if own.size:
                return int(own[0])
        return None

    def repeated(self, start: int) -> int | None:
        """Return the number of the first row from ``start`` on whose identifier another row has; None if none has."""
        if start == self.size:
            return None
        new = np.concatenate([piece["id"] for piece in self.pieces(start, self.size)])
        ids, first, place = np.unique(new, return_index=True, return_inverse=True)
        known = np.zeros(ids.size, dtype=bool)
        for piece in self.pieces(0, start):
            known[_places(ids, piece[piece["kind"] == ROW])[1]] = True
        again = known[place]
        again[np.setdiff1d(np.arange(new.size), first)] = True
        return start + int(again.argmax()) if again.any() else None

    def rows(self, ids: Any) -> Any:
        """Return the records of rows, with their labels so far, for sorted identifiers; of kind LATE without one."""
        result = np.zeros(ids.size, dtype=RECORD)
        result["kind"], result["label"] = LATE, -1
        for piece in self.pieces(0, self.size):
            own, place = _places(ids, piece[piece["kind"] <= LATE])
            late = own["kind"] == LATE
            result[place[~late]] = own[~late]
            result["label"][place[late]] = own["label"][late]
        return result


def _places(ids: Any, records: Any) -> tuple[Any, Index]:
    """Return the records whose identifiers are among sorted ones, and the places of these."""
    place = np.minimum(np.searchsorted(ids, records["id"]), ids.size - 1)
    known = ids[place] == records["id"]
    return records[known], place[known]


@contextmanager
def _held(path: Path) -> Iterator[BinaryIO]:
    """Open a ledger for one process at a time."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b") as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(f"{path} is in use: another process counts a batch; wait until it ends") from None
        yield file


# State, and what a call returns.

# Version of the state; another one is refused.
VERSION = 1


@dataclass(frozen=True)
class MonitorReport:
    """What is known about the limits of a model after a batch.

    Attributes
    ----------
    batch : str or None
        Name of the batch, its latest date if there are dates; None if no batch was counted.
    rows, flagged, labels : int
        Rows and flagged rows of the batch, and labels that were added, those in the batch included.
    verdicts : list of Verdict
        One for each limit, see :class:`rocmax.monitor.Monitor`.
    proposals : list of Proposal
        A new threshold for each limit that is broken.
    changes : list of str
        Columns whose values differ from training, and scores and columns that are distributed differently from the
        first batch with enough rows.
    notes : list of str
        What else there is to know.
    table : list of dict
        The verdicts in words.
    proposed : list of str
        The proposals in words.
    """

    batch: str | None
    rows: int
    flagged: int
    labels: int
    verdicts: list[Verdict]
    proposals: list[Proposal]
    changes: list[str]
    notes: list[str]

    table: list[dict[str, str]] = field(repr=False)
    proposed: list[str] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for example for JSON; NaN is None."""
        found = asdict(self)
        for verdict in found["verdicts"]:
            verdict |= {name: None for name in ("rate", "low", "high") if np.isnan(verdict[name])}
        return {**found, "notes": list(map(str, self.notes))}


@dataclass
class _Watch:
    """What is stored between two calls, and the model."""

    fitted: TableModel
    options: dict[str, Any]
    monitor: Monitor
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    records: int = 0
    changes: list[str] = field(default_factory=list)
    drift: Drift = field(default_factory=Drift)

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": VERSION,
                "model": fingerprint(self.fitted),
                "options": self.options,
                "key": self.key,
                "records": self.records,
                "changes": self.changes,
                "drift": self.drift.columns,
                "monitor": json.loads(self.monitor.to_json()),
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str, path: Path, fitted: TableModel) -> _Watch:
        try:
            state = json.loads(text)
            version, model = state["version"], state["model"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is not the state of a monitor: {error!r}") from error
        if version != VERSION:
            raise DataError(f"{path} must have version {VERSION}; got {version!r}. Start a new state")
        if model != fingerprint(fitted):
            raise DataError(f"{path} is the state of another model than {fitted.place}: each model needs its own")
        try:
            monitor = Monitor.from_json(json.dumps(state["monitor"]))
            kept = {name: state[name] for name in ("key", "records", "changes")}
            return cls(fitted, dict(state["options"]), monitor, **kept, drift=Drift(dict(state["drift"])))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is damaged: {error!r}") from error


def fingerprint(fitted: TableModel) -> str:
    """Return a text that no other fit has; copies of a model have the same."""
    facts = json.dumps(fitted.facts.to_dict(), sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


@holding(WATCHED)
def monitor_table(
    model: TableModel,
    table: Any,
    state: str | Path,
    *,
    labels: Any = None,
    out: str | Path | None = None,
    limits: Limits | None = None,
    watching: Watching | None = None,
    reading: Reading | None = None,
    progress: Callable[[int], None] | None = None,
) -> MonitorReport:
    """Count a batch of rows, and labels of earlier ones, and say which limits of the model hold, as ``rocmax monitor``.

    Parameters
    ----------
    model : TableModel
        Model returned by :func:`fit_table` or :func:`load_model`.
    table : str, Path, list of them, file, data frame or None
        The rows of the batch, as for :func:`predict`. If it has the column of the labels, those that are not missing
        are counted. None if there are only late labels. A table that was counted before is not counted again.
    state : str or Path
        JSON file that is continued, or written if it does not exist. It has counts and no rows. Beside it, with the
        ending .ids, are keyed hashes of the identifiers of the rows, 16 bytes each.
    labels : str, Path, list of them, file or data frame, default=None
        Late labels: the columns that identify rows, and that of the labels. Each row gets one label, once.
    out : str or Path, default=None
        HTML page to write, with the history.
    limits : Limits, default=None
        What to watch, in addition to the limits of the model; with the first batch only.
    watching : Watching, default=None
        How labels come, and what the columns are, with the first batch only; the name of this batch, and a file for the
        rows of it to label.
    reading
    progress : callable, default=None
        Called with a number of rows when they are counted.

    Returns
    -------
    MonitorReport
        What is known about each limit.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.tables import fit_table, monitor_table
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, tune=False)
    >>> with TemporaryDirectory() as folder:
    ...     found = monitor_table(model, table.iloc[model.held_out_rows], Path(folder, "state.json"))
    >>> [(verdict.limit, verdict.status) for verdict in found.verdicts]
    [('max_fpr', 'not enough labels')]
    """
    need_tables()
    if table is None and labels is None:
        raise ParameterError("a batch or ", Parameter("labels", ...), " is required; got neither")
    state = Path(state)
    ledger_path = state.with_name(f"{state.name}.ids")
    files = [file for file in (table, labels, model.path) if isinstance(file, str | Path)]
    reading, given = chosen(Reading, reading), chosen(Watching, watching)
    for path in (state, ledger_path, out, given.review):
        if path is not None:
            check_not_input(path, files)
            check_output(path)
    if out is not None:
        need("jinja2")
    with _held(ledger_path) as file:
        fresh = not state.exists()
        if fresh:
            watch, notes = _begin(model, chosen(Limits, limits), given)
        else:
            watch, notes = _Watch.from_json(state.read_text(encoding="utf-8"), state, model), []
            _check_same(watch, limits, given, state)
        ledger = Ledger(file, str(ledger_path), watch.records)
        before, tally = ledger.size, Tally()
        if table is not None:
            source = model.facts.open(table, replace(reading, skip_unlabeled=False))
            counted = _count(watch, ledger, source, reading, given, progress or (lambda count: None), tally)
            notes += [*source.notes, *counted]
        new = int(tally.bins[1:].sum())
        if fresh and given.labeled == "alerts":
            notes += _of_alerts(watch, tally, given)
        if labels is not None:
            late, said = _settle(watch, ledger, labels, reading)
            new, notes = new + late, notes + said
        if ledger.size > before:
            watch.records = ledger.size
            ledger.keep()
            write_file(state, watch.to_json().encode())
    named = watch.monitor.last_label if tally.bins.any() else None
    monitor, threshold, (rows, flagged) = watch.monitor, watch.options["threshold"], tally.counts[:2]
    known = monitor.verdicts(), monitor.proposals(), watch.changes, notes
    texts = verdict_rows(monitor), proposal_texts(monitor, threshold)
    if out is not None:
        write_file(out, history_page(model.name, monitor, watch.changes, threshold).encode())
    return MonitorReport(named, rows, flagged, new, *known, *texts)


def _begin(model: TableModel, limits: Limits, given: Watching) -> tuple[_Watch, list[str]]:
    """Return a new state, with the limits of a model and those that are given, and notes."""
    facts, own = model.facts, model.facts.limits
    check_watching(given)
    limits, notes = checked(limits), []
    if own.min_tpr > 0 and not own.extended:
        own = replace(own, max_fpr=None)  # what the model was trained for; the threshold keeps the floor
    values: dict[str, Any] = {"confidence": limits.confidence or own.confidence or 0.95}
    for name, none in (("max_fpr", 1.0), ("min_tpr", 0.0), ("min_precision", 0.0)):
        value = [getattr(each, name) for each in (limits, own) if getattr(each, name) not in (none, None)]
        values[name] = value[0] if value else None
    of_capacity = limits if limits.capacity is not None else own
    values |= {"capacity": of_capacity.capacity, "per": of_capacity.period}
    if all(values[name] is None for name in LIMITS):
        options = Parameter("max_fpr", ...), ", ", Parameter("min_tpr", ...), ", ", Parameter("min_precision", ...)
        found = Message(f"{model.place} was fitted without limits; give one to watch: ", *options, " or ")
        raise ParameterError(*found.parts, Parameter("capacity", ...))
    if own.column is not None:
        notes.append(f"the limits are watched for all rows together, not for each value of {own.column!r}")
    if own.block is not None:
        notes.append("the threshold for review is watched, the one to block is not")
    # Without an audit, a floor on the true-positive rate is refused after the first batch, which shows how large one
    # must be.
    audit = given.audit or (1.0 if values["min_tpr"] is not None and given.labeled == "alerts" else None)
    monitor = Monitor(**values, labeled=given.labeled, audit=audit)
    time = given.time or facts.time
    ids = list(names_of(given.id)) or list(facts.ids)
    features = [name for name in ids if name in (facts.features or {})]
    if features:
        raise ParameterError(Parameter("id"), f" must be no column that the model uses; got {features[0]!r}")
    if values["per"] is not None and time is None:
        advice = Message(f"a capacity per {values['per']} requires the dates of rows: ", Parameter("time", ...))
        raise ParameterError(advice)
    options_of = {"id": ids, "time": time, "target": given.target or facts.target, "threshold": float(given.threshold)}
    if facts.group is not None:
        notes.append(f"rows count as independent, although those with the same {facts.group!r} may not be")
    return _Watch(model, options_of, monitor), notes


def _check_same(watch: _Watch, limits: Limits | None, given: Watching, state: Path) -> None:
    """Raise ParameterError if options differ from those of the state."""
    kept = {**watch.options, "labeled": watch.monitor.labeled, "audit": watch.monitor.audit}
    wanted = {name: getattr(given, name) for name in kept if getattr(given, name) != getattr(Watching(), name)}
    if "id" in wanted:
        wanted["id"] = list(names_of(wanted["id"]))
    given_limits = Limits() if limits is None else checked(limits)
    for name, value in {**given_limits.to_dict(), "per": given_limits.period}.items():
        if value is not None and hasattr(watch.monitor, name):
            wanted[name], kept[name] = value, getattr(watch.monitor, name)
    for name, value in wanted.items():
        if value != kept[name]:
            found = f" must be as in {state}, {kept[name]!r}; got {value!r}. Leave it out, or start a new state"
            raise ParameterError(Parameter(name), found)


def _of_alerts(watch: _Watch, tally: Tally, given: Watching) -> list[str]:
    """Return what labels of alerts alone cost; raise DataError with the size of an audit if one is needed."""
    counts, monitor = watch.fitted.facts.classes, watch.monitor
    share, (rows, flagged) = counts["positive"] / (counts["positive"] + counts["negative"]), tally.counts[:2]
    if monitor.min_tpr is None or given.audit is not None:
        if monitor.max_fpr is None:
            return []
        least = 100 * monitor.max_fpr / (1 - share)
        return [
            f"with labels of alerts, a false-positive rate is noticed only above {least:.3g} %, if {100 * share:.3g} % "
            "of the rows are positive, as in training"
        ]
    # Twice as many missed positives, or half of the rate; ten batches as large as this one.
    tpr, positives = max(2 * monitor.min_tpr - 1, monitor.min_tpr / 2), round(10 * rows * share)
    audit = audit_size(monitor.min_tpr, tpr, positives, power=given.power, confidence=monitor.confidence)
    raise DataError(
        f"a floor of {monitor.min_tpr:g} on the true-positive rate requires labels of rows that are not flagged. "
        f"To notice a rate of {tpr:.3g} within ten batches such as this one with probability {given.power:g}, "
        f"about {positives:,} positives, label {100 * audit:.2g} % of them at random, here "
        f"{audit * (rows - flagged):,.0f} rows: ",
        Parameter("audit", float(f"{audit:.2g}")),
    )


# Batches.


def _count(
    watch: _Watch,
    ledger: Ledger,
    source: TableSource,
    reading: Reading,
    given: Watching,
    progress: Callable[[int], None],
    tally: Tally,
) -> list[str]:
    """Count a batch, unless it was counted before, and return notes."""
    name, review = given.name, given.review
    number = source.digest("" if name is None else name)
    known = ledger.batch_of(TABLE, number)
    if known is not None:
        said = (
            f"{source.name} was counted before, as batch {known}, and is not counted again; if these are other rows, "
        )
        return [Message(said, "give the batch another name: ", Parameter("name", ...))]
    ids, start, batch = watch.options["id"], ledger.size, watch.monitor.n_batches
    if review is not None and not ids:
        raise ParameterError(Parameter("review"), " requires columns that identify rows: ", Parameter("id", ...))
    facts, monitor, offset = watch.fitted.facts, watch.monitor, watch.options["threshold"]
    levels = known_levels(watch.fitted.model, facts.features)
    shares, latest, drift = ValueShares(levels), None, watch.drift.following()
    with ExitStack() as stack:
        list_row = None if review is None else stack.enter_context(_review_file(review, ids))
        for X, scores, y, times, keys in _scored(watch, source, reading, levels):
            shares.add(X)
            place = tally.add(scores, y, times, monitor.per)
            drift.add(X, scores)
            hashes = None if not ids else _hashes(source, keys, watch.key)
            if hashes is not None:
                ledger.append(ROW, hashes, batch, place, np.nan_to_num(y, nan=-1.0).astype(np.int8))
            if list_row is not None and hashes is not None:
                chosen_rows = (place >= PASSED) | _audited(hashes, monitor.audit)
                for i in np.flatnonzero(chosen_rows & np.isnan(y)):
                    list_row([*keys.iloc[i], scores[i] + offset, "alert" if place[i] >= PASSED else "audit"])
            if times is not None:
                latest = times.max() if latest is None else max(latest, times.max())
            progress(scores.size)
        again = ledger.repeated(start) if ids else None
        if again is not None:
            found = f"{source.name}: row {again - start + 1:,} after the header has the identifier of another row"
            raise DataError(f"{found}, of this batch or an earlier one; each row needs its own ({', '.join(ids)})")
    ledger.append(TABLE, [number], batch)
    monitor.count(tally, name if name is not None else None if latest is None else time_text(latest))
    watch.drift = drift.settled()
    moved = shares.moved(facts.shares) if shares.rows else []
    watch.changes = [
        *(
            f"{column}: {TITLES[kind]} in {now:.1%} of the rows, {then:.1%} in training"
            for kind, column, then, now in moved
        ),
        *drift.texts(),
    ]
    return []


def _scored(watch: _Watch, source: TableSource, reading: Reading, levels: Any) -> Iterator[tuple[Any, ...]]:
    """Yield features, scores above the threshold, labels, dates and identifiers of pieces of a batch."""
    fitted, facts, wanted = watch.fitted, watch.fitted.facts, watch.options
    options = facts.read_options(fitted.place, source)
    present = source.columns or ()
    kinds = dict.fromkeys(wanted["id"], "text")
    if wanted["time"] is not None:
        numbers = wanted["time"] == facts.time and isinstance((facts.periods or {})["train"]["first"], float)
        kinds[wanted["time"]] = "number" if numbers else "date"
    check_columns(source.name, list(kinds), present)
    target = wanted["target"] if wanted["target"] in present else None
    if target is not None:
        kinds[target] = "text"
    # Scores that `rocmax predict` has written; a column of the training table with this name is something else.
    scored = "score" in present and "score" not in {column.name for column in facts.columns} | set(kinds)
    kinds |= {"score": "number"} if scored else {}
    types = {**kinds, **options.get("types", {})}
    options |= {"columns": list(types), "types": types} if present else {}
    for columns, labels in source.batches(batch_size=BATCH_SIZE, **options):
        X = facts.features_of(columns, source, day_first=reading.day_first, levels=levels)
        scores = positive_scores(fitted.model, X, pos_label=facts.positive)
        if scored:
            _check_scores(source, columns["score"].to_numpy(), scores)
        y = np.full(scores.size, np.nan)
        values = labels if target is None else columns[target].to_numpy(dtype=object, na_value=None)
        if values is not None:
            known = np.ones(scores.size, dtype=bool) if target is None else columns[target].notna().to_numpy()
            y[known] = known_labels(values[known], facts.positive, facts.negative, _title(target)) == facts.positive
        time = wanted["time"]
        order = facts.time_day_first if reading.day_first is None else reading.day_first
        times = None if time is None else read_times(columns[time], order, source)[0]
        yield X, scores - wanted["threshold"], y, times, columns[wanted["id"]] if wanted["id"] else None


def _title(target: str | None) -> str:
    return "the target" if target is None else f"column {target!r}"


def _check_scores(source: TableSource, given: Any, own: Any) -> None:
    """Raise DataError if a table has scores of another model."""
    other = np.flatnonzero(~np.isclose(given, own, rtol=1e-5, atol=1e-6))
    if other.size:
        first = other[0]
        raise DataError(
            f"{source.name} has been scored by another model: its column 'score' has {given[first]:g} where this model "
            f"has {own[first]:g}, and differs in {other.size} of {own.size} rows. Leave the column out, or use that "
            "model"
        )


def _hashes(source: TableSource, keys: Any, key: str) -> Any:
    """Return a keyed hash of the identifier of each row, of 64 bits; raise DataError if one is missing."""
    import pandas as pd

    lacking = np.flatnonzero(keys.isna().to_numpy().any(axis=1))
    if lacking.size:
        names = " and ".join(map(repr, keys.columns))
        raise DataError(f"{source.name}: {names} must identify each row; got {lacking.size} rows without a value")
    texts = keys.astype(str).astype(object)
    return pd.util.hash_pandas_object(texts, index=False, hash_key=key, categorize=False).to_numpy()


def _audited(hashes: Any, audit: float | None) -> Any:
    """Return whether rows that are not flagged are in the audit; their hashes decide, so that it can be repeated."""
    if audit is None:
        return np.zeros(hashes.size, dtype=bool)
    return (hashes * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)) * 2.0**-53 < audit


@contextmanager
def _review_file(path: str | Path, ids: list[str]) -> Iterator[Callable[[list[Any]], Any]]:
    with output_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow([*ids, "score", "why"])
        yield writer.writerow
        text.detach()


# Late labels.


def _settle(watch: _Watch, ledger: Ledger, labels: Any, reading: Reading) -> tuple[int, list[str]]:
    """Count late labels, unless the file was counted before; return their number and notes."""
    facts, ids, target = watch.fitted.facts, watch.options["id"], watch.options["target"]
    source = facts.open(labels, replace(reading, skip_unlabeled=False))
    number = source.digest("")
    known = ledger.batch_of(LABELS, number)
    if known is not None:
        return 0, [f"the labels of {source.name} were counted before, after batch {known}, and are not counted again"]
    if not ids or target is None:
        needed = Parameter("id", ...), " and ", Parameter("target", ...)
        raise ParameterError("late labels require columns that identify rows, and the target: ", *needed)
    check_columns(source.name, [*ids, target], source.columns or ())
    total, options = 0, dict[str, Any](columns=[*ids, target], types=dict.fromkeys([*ids, target], "text"))
    for columns, _ in source.batches(batch_size=PIECE, **options):
        if columns[target].isna().any():
            lacking = int(columns[target].isna().sum())
            raise DataError(f"{source.name}: column {target!r} must have a label in each row; got {lacking} missing")
        values = columns[target].to_numpy(dtype=object)
        y = known_labels(values, facts.positive, facts.negative, _title(target)) == facts.positive
        hashes = _hashes(source, columns[ids], watch.key)
        order = np.argsort(hashes, kind="stable")
        hashes, y = hashes[order], y[order].astype(np.intp)
        unique, place = np.unique(hashes, return_inverse=True)
        rows = ledger.rows(unique)[place]
        twice = np.append(False, hashes[1:] == hashes[:-1])
        passed = (rows["bin"] < PASSED) & ~_audited(hashes, watch.monitor.audit)
        same = np.where(twice, y == np.append(0, y[:-1]), rows["label"] == y)
        wrong = (
            (rows["kind"] == LATE, "is in no batch that was counted"),
            ((twice | (rows["label"] >= 0)) & ~same, "has another label already"),
            (twice | (rows["label"] >= 0), "has its label already; each label is counted once"),
            (
                passed & (watch.monitor.audit is not None),
                "is neither flagged nor in the audit, so its label would mislead",
            ),
        )
        for found, text in wrong:
            if found.any():
                row = order[np.flatnonzero(found)].min()
                who = ", ".join(f"{column} {columns[column].iloc[row]!r}" for column in ids)
                more = f" ({found.sum():,} such rows)" if found.sum() > 1 else ""
                raise DataError(f"{source.name}, row {total + row + 1:,} after the header: {who} {text}{more}")
        watch.monitor.settle(rows["batch"].astype(np.intp), rows["bin"].astype(np.intp), y)
        ledger.append(LATE, hashes, rows["batch"], rows["bin"], y)
        total += y.size
    ledger.append(LABELS, [number], watch.monitor.n_batches - 1)
    return total, list(source.notes)
