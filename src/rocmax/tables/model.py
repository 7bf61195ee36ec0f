"""Fitted model with its metadata: its file, and predictions in bounded memory for files of any size."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import estimator_html_repr

from rocmax._files import check_not_input, check_output, is_special, output_file
from rocmax._support import Array, Index, Parameter, ParameterError, holding
from rocmax._validation import positive_index, towards
from rocmax.costs import Costs
from rocmax.data import DataError, Reading
from rocmax.data.read import TableSource, check_columns
from rocmax.explain import Contributions
from rocmax.metrics import positive_scores
from rocmax.model_io import ModelFileError, load_with_facts, save
from rocmax.tables.columns import MAX_NAMED
from rocmax.tables.options import HOLDERS, Limits, carried_columns, chosen
from rocmax.tables.preprocess import MISSING
from rocmax.tables.read import Schema, need_tables, typed_labels
from rocmax.tables.reasons import FLAGGED, Reasons
from rocmax.thresholds import calibrated, decisions

# What a model stores.


@dataclass(frozen=True, kw_only=True)
class Facts(Schema):
    """Metadata of a model: its table, its limits, how it was chosen and fitted, and its results on held-out rows.

    The names, and the order, are those of the JSON that ``rocmax fit --json`` prints and that a model file contains.
    """

    rate: str = "row"
    min_fpr: float = 0.0
    max_fpr: float = 1.0
    min_tpr: float = 0.0
    min_precision: float = 0.0
    # As given; and as a share of the rows, with the number of rows per period in the table.
    capacity: float | None = None
    capacity_share: float | None = None
    per: list[str] = field(default_factory=list)
    block: dict[str, Any] | None = None
    costs: dict[str, Any] | None = None
    measure: str = "roc_auc"
    model: str
    family: str
    families: dict[str, Any] | None = None
    confidence: float | None = None
    # Scores have the threshold of the classifier subtracted.
    threshold: float = 0.0
    offset: float = 0.0
    thresholds: dict[str, float] | None = None
    binding: str | dict[str, str] | None = None
    violation_bound: float | None = None
    tuning: dict[str, Any] | None = None
    seed: int = 0
    rows: dict[str, int]
    periods: dict[str, Any] | None = None
    held_out_groups: int | None = None
    classes: dict[str, int]
    versions: dict[str, str]
    fitted: str
    seconds: float
    held_out: dict[str, Any]
    # With times: the prediction interval of the measure in a later period.
    later: dict[str, Any] | None = None
    at_threshold: dict[str, Any]
    # With costs: those of the decisions, whether each row has its own threshold, and whether costs were weights.
    savings: dict[str, Any] | None = None
    over_time: list[dict[str, Any]] | None = None
    resemblance: dict[str, Any] | None = None
    calibration: dict[str, Any]
    shares: dict[str, Any]
    # Ends of the 95 % intervals of the rates at the threshold; name and SHA-256 of each file of the training table.
    intervals: dict[str, list[float]] | None = None
    data: list[list[str]] | None = None

    @property
    def limits(self) -> Limits:
        """What the model promises."""
        block = None if self.block is None else Limits(**self.block)
        costs = None if self.costs is None else Costs(**self.costs)
        names = ("max_fpr", "confidence", "min_fpr", "min_tpr", "measure", "rate", "min_precision", "capacity")
        return Limits(**{name: getattr(self, name) for name in names}, per=tuple(self.per), block=block, costs=costs)

    def more_limits(self) -> list[str]:
        """Return the limits other than those on the two rates, in words."""
        parts = [f"precision >= {100 * self.min_precision:g} %"] if self.min_precision else []
        if self.capacity:
            alerts = f"{100 * self.capacity:g} % of rows" if self.capacity < 1 else f"{self.capacity:g}"
            parts.append(f"alerts <= {alerts}" + (f" per {self.limits.period}" if self.limits.period else ""))
        column = self.limits.column
        parts += [f"for each value of {column!r}"] if column else []
        return [*parts, f"block: {_block_text(self.block)}"] if self.block else parts

    @property
    def aim(self) -> Limits:
        """What the model was trained for, with the largest false-positive rate of the measure on the held-out rows."""
        return replace(self.limits, max_fpr=self.held_out.get("max_fpr", self.max_fpr))

    def read_options(self, model: str, source: TableSource) -> dict[str, Any]:
        """Return the options of a `Schema`, with the columns on which thresholds depend."""
        options = super().read_options(model, source)
        more = [name for name in self.carried if name not in options.get("types", ())]
        if not more:
            return options
        check_columns(source.name, more, source.columns or ())
        types = {**options["types"], **dict.fromkeys(more, "raw")}
        return {**options, "columns": [*options["columns"], *more], "types": types}

    def features_of(self, X: Any, source: TableSource | None = None, **options: Any) -> Any:
        """Return the features of a `Schema`, with the columns on which thresholds depend."""
        found = super().features_of(X, source, **options)
        more = {name: X[name] for name in self.carried if name not in found}
        return found.assign(**more) if more else found

    @property
    def carried(self) -> list[str]:
        """Columns on which the thresholds of new rows depend."""
        return list(carried_columns(self.limits, costs=self.savings is not None and self.savings["per_case"]))


def _block_text(block: dict[str, float]) -> str:
    words = {"max_fpr": "FPR <=", "min_precision": "precision >=", "capacity": "alerts <="}
    return " and ".join(f"{words[name]} {value:g}" for name, value in block.items())


def file_hashes(table: Any) -> list[list[str]]:
    """Return the name and the SHA-256 of each file of a table; none for data frames and streams."""
    found = []
    for file in table if isinstance(table, list | tuple) else [table]:
        if isinstance(file, str | Path) and Path(file).is_file():
            with open(file, "rb") as content:
                found.append([Path(file).name, hashlib.file_digest(content, "sha256").hexdigest()])
    return found


# Missing values and unknown categories of a table, compared with the training table.


TITLES = {"missing": "missing values", "unknown": "unknown categories"}


def known_levels(model: Any, kinds: dict[str, str] | None) -> dict[str, set[str]]:
    """Return the categories that a model knows, by column."""
    pipeline = getattr(model, "estimator_", model)
    names = [name for name, kind in (kinds or {}).items() if kind == "text"]
    if not names:
        return {}
    encoder = pipeline.named_steps["table"].named_transformers_["texts"].steps[-1][1]
    return {name: set(levels) - {MISSING} for name, levels in zip(names, encoder.categories_, strict=True)}


@dataclass
class ValueShares:
    """Counts of missing values and unknown categories by column; ``levels`` are the known categories."""

    levels: dict[str, set[str]]
    rows: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in TITLES})

    def add(self, X: Any) -> ValueShares:
        """Count the values of some rows."""
        self.rows += X.shape[0]
        if not hasattr(X, "columns"):
            return self
        self.counts["missing"].update(X.isna().sum().to_dict())
        for name, levels in self.levels.items():
            self.counts["unknown"][name] += int(np.count_nonzero(~X[name].dropna().isin(levels)))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the shares of the rows, as plain values; columns without such values are left out."""
        shares = {
            kind: {name: count / self.rows for name, count in counts.items() if count}
            for kind, counts in self.counts.items()
        }
        return {"rows": self.rows, **shares}

    def moved(self, training: dict[str, Any]) -> list[tuple[str, str, float, float]]:
        """Return the kind of value, the column, and its share in training and here, where the shares differ."""
        found = []
        for kind in TITLES:
            for name, count in self.counts[kind].items():
                then, now = training[kind].get(name, 0.0), count / self.rows
                if _moved(now, self.rows, then, training["rows"]):
                    found.append((kind, name, then, now))
        return found

    def warnings(self, training: dict[str, Any]) -> list[str]:
        """Return a warning for each kind of value whose share differs from that of the training table."""
        moved, found = self.moved(training), []
        for kind, title in TITLES.items():
            named = [f"{name!r} {now:.1%} (training: {then:.1%})" for of, name, then, now in moved if of == kind]
            if named:
                more = f" and {len(named) - MAX_NAMED} more columns" if len(named) > MAX_NAMED else ""
                found.append(f"the share of {title} differs from training: {', '.join(named[:MAX_NAMED])}{more}")
        return found


def _moved(share: float, rows: int, before: float, rows_before: int) -> bool:
    pooled = (share * rows + before * rows_before) / (rows + rows_before)
    error = math.sqrt(pooled * (1 - pooled) * (1 / rows + 1 / rows_before))
    # A difference below 5 % of the rows matters little; one of four standard errors is no chance, for any column.
    return abs(share - before) > max(0.05, 4.0 * error)


# Fitted model.


@dataclass(eq=False, repr=False)
class TableModel:
    """Model fitted to a table, with its metadata.

    It is returned by :func:`fit_table` and :func:`load_model`. Its methods are those of a fitted classifier of
    scikit-learn, on tables: ``rocmax.report``, scorers and displays take it. :func:`predict` and
    :func:`write_predictions` have more options and, for files of any size, bounded memory.

    Parameters
    ----------
    model : estimator
        Fitted pipeline of preprocessing and classifier; with a limit on the false-positive rate, a
        :class:`rocmax.FPRThresholdClassifier` that wraps it.
    facts : object
        Metadata, as attributes: columns and their kinds, classes, range of false-positive rates, measure, the chosen
        ``family`` and the comparison behind the choice, ``families``, tuning, numbers of rows, versions.
        ``facts.to_dict()`` has them as plain values, those of ``rocmax fit --json``.
    notes : sequence of str, default=()
        What the user should know about the fit: columns that were left out, for example.
    path : Path, default=None
        The file that the model comes from.
    held_out_rows : ndarray of int, default=None
        Places in the table of the rows that were held out; None for a model from a file.

    Attributes
    ----------
    model, facts, notes, path, held_out_rows
        Same as the parameters.
    """

    model: Any
    facts: Facts
    _: KW_ONLY
    notes: Sequence[str] = ()
    path: Path | None = None
    held_out_rows: Index | None = None

    @property
    def name(self) -> str:
        """File name without its extension, or the name of the model if there is no file."""
        return self.facts.model if self.path is None else self.path.stem

    @property
    def family(self) -> str:
        """Name of the fitted model: the chosen family if the name of the model is "auto"."""
        return self.facts.family

    @property
    def positive(self) -> str:
        """Label of the positive class."""
        return self.facts.positive

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes in the type of the target, in ascending order."""
        return np.sort(self._labels)

    @property
    def _labels(self) -> NDArray[Any]:
        """The negative class and the positive class."""
        return typed_labels(np.array([self.facts.negative, self.positive], dtype=object), self.facts.label_type)

    @property
    def pos_label(self) -> Any:
        """Label of the positive class in the type of the target."""
        return self._labels[1:].tolist()[0]

    @property
    def min_fpr(self) -> float:
        """Lower end of the range of false-positive rates that the model was fitted for."""
        return self.facts.min_fpr

    @property
    def max_fpr(self) -> float:
        """Upper end of the range of false-positive rates that the model was fitted for."""
        return self.facts.max_fpr

    @property
    def min_tpr(self) -> float:
        """Lower limit on the true-positive rate that the model was fitted for."""
        return self.facts.min_tpr

    def decision_function(self, X: Any) -> Array:
        """Return the decision value of each row; positive values indicate ``classes_[1]``.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            A table, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Decision values, with the sign that scikit-learn expects. :meth:`positive_scores` has the sign of the
            positive class.
        """
        return towards(self.positive_scores(X), positive_index(self.classes_, self.pos_label))

    def positive_scores(self, X: Any) -> Array:
        """Return the score of each row: higher means positive, and above zero the row is predicted positive.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            A table, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores, those of :func:`predict`.
        """
        found: Array = predict(self, X)["score"].to_numpy()
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row, in the type of the target.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            A table, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        return self._labels[(self.positive_scores(X) > 0).astype(np.intp)]

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, calibrated on the held-out rows of the fit.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            Rows, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Probabilities of ``classes_``.
        """
        share = predict(self, X, proba=True)["probability"].to_numpy()
        by_class = (1.0 - share, share) if positive_index(self.classes_, self.pos_label) else (share, 1.0 - share)
        return np.column_stack(by_class)

    def contributions(self, table: Any) -> Contributions:
        """Return what each column adds to the score of each row, which is that of :meth:`positive_scores`.

        Parameters
        ----------
        table

        Returns
        -------
        rocmax.explain.Contributions
            Contributions of the columns of the table: those of one-hot columns, splines, and parts of dates are added
            up. The sum for a row and its reference is the score.
        """
        need_tables()
        import pandas as pd

        asked = Reasons(self.model, self.facts, self.family, 1)
        asked.check()
        batches = Scoring(self, table, (), False, False, Reading()).rows()
        parts = [asked.contributions(rows, columns) for columns, rows, _ in batches]
        data = [part.data for part in parts]
        joined = pd.concat(data, ignore_index=True) if hasattr(data[0], "columns") else sparse.vstack(data, "csr")
        values, reference = (np.concatenate([getattr(part, key) for part in parts]) for key in ("values", "reference"))
        return Contributions(values, reference, asked.columns, joined)

    def reasons(self, table: Any, n: int = 3, rows: str = "flagged") -> Any:
        """Return the columns that moved the scores of flagged rows most, with their values.

        Parameters
        ----------
        table
        n : int, default=3
            Number of reasons of a row, at most the number of columns of the model.
        rows : {"flagged", "all"}, default="flagged"
            Whether only flagged rows, with a score above zero, are explained and returned.

        Returns
        -------
        pandas.DataFrame
            The result of :func:`predict` for these rows, with the columns ``reason_1``, ``reason_1_value`` and
            ``reason_1_effect`` up to ``n``: the name of a column, its value as text, and its contribution to the
            score, above zero if it raised it. The index is that of a pandas DataFrame, or the position of the row.
        """
        found = predict(self, table, reasons=n, reasons_for=rows)
        return found if rows == "all" else found[found["score"] > 0]

    @property
    def threshold(self) -> float:
        """Scores above it are classified as positive: 0 on the scale of :func:`predict`, reports and ONNX graphs."""
        return 0.0

    @property
    def held_out(self) -> dict[str, Any]:
        """Value of the measure on the held-out rows, with its confidence interval."""
        return self.facts.held_out

    @property
    def place(self) -> str:
        """Name of the model in messages."""
        return "the model" if self.path is None else str(self.path)

    def save(self, path: str | Path) -> None:
        """Save the model and its metadata to a file, which is written atomically.

        Parameters
        ----------
        path : str or Path
            Output file, by convention ``model.rocmax``. :func:`load_model` and the command ``rocmax`` read it.
        """
        save(self.model, path, about=self.facts.to_dict())

    def __repr__(self) -> str:
        facts = self.facts
        limit = "" if facts.max_fpr == 1.0 else f", max_fpr={facts.max_fpr:g}"
        limit += f", min_tpr={facts.min_tpr:g}" if facts.min_tpr else ""
        limit += f", min_precision={facts.min_precision:g}" if facts.min_precision else ""
        limit += f", capacity={facts.capacity:g}" if facts.capacity else ""
        limit += f", per={facts.per!r}" if facts.per else ""
        limit += f", costs={facts.limits.costs!r}" if facts.costs else ""
        chosen = "" if facts.family == facts.model else f", family={facts.family!r}"
        return f"TableModel({facts.model!r}{chosen}, positive={facts.positive!r}{limit})"

    def _repr_html_(self) -> str:
        """Return the model as HTML, for notebooks; text of the user is escaped."""
        value, low, high = (self.held_out[key] for key in ("value", "low", "high"))
        about = {
            "model": repr(self),
            "file": "" if self.path is None else str(self.path),
            "rows": ", ".join(f"{count} {name}" for name, count in self.facts.rows.items()),
            "measure": self.facts.measure,
            "held out": f"{value:.4f} (95 % interval {low:.4f} to {high:.4f})",
            "fitted": self.facts.fitted,
        }
        left = 'style="text-align: left"'
        lines = "".join(
            f"<tr><th {left}>{name}</th><td {left}>{escape(text)}</td></tr>" for name, text in about.items() if text
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<table>{lines}</table>{f'<ul>{notes}</ul>' if notes else ''}{estimator_html_repr(self.model)}"


def load_model(path: str | Path, *, max_bytes: int | None = None) -> TableModel:
    """Load a model saved by :meth:`TableModel.save` or ``rocmax fit``; no code in the file is executed.

    Parameters
    ----------
    path : str or Path
        The file.
    max_bytes : int, default=None
        Maximum number of bytes that the file may unpack to, as in :func:`rocmax.load`.

    Returns
    -------
    TableModel
        The model and its metadata.

    Raises
    ------
    ModelFileError
        If the file is not a model of this kind.
    """
    model, about = load_with_facts(path, max_bytes=max_bytes)
    try:
        facts = Facts.from_dict(about)
    except (TypeError, AttributeError) as error:
        raise ModelFileError(
            f"{path} must be a model saved by `rocmax fit` or rocmax.tables; it has no metadata about its columns "
            "and its positive class. Use rocmax.load in Python instead"
        ) from error
    return TableModel(model, facts, path=Path(path))


# Prediction of a score and a label for each row, in bounded memory for files of any size.


BATCH_SIZE = 50_000
ENDINGS = (".csv", ".parquet", ".jsonl")
OUTPUT_COLUMNS = ("score", "label", "decision", "probability")
OUTPUT_REASON = re.compile(r"reasons|reason_\d+(_value|_effect)?")
# Characters that start a formula in spreadsheets: OWASP's list for CSV injection, with full-width forms.
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class PredictionSummary:
    """Summary of the predictions for a table.

    Attributes
    ----------
    rows : int
        Number of rows.
    positive : int
        Number of rows that are classified as positive.
    blocked : int or None
        Number of them that are to be blocked; None for a model without a second threshold.
    shares : dict
        Shares of "missing" values and "unknown" categories by column, for columns that have any.
    warnings : list of str
        Differences between these shares and those of the training table.
    notes : list of str
        Remarks on the table, such as a delimiter that is not that of the training table.
    """

    rows: int
    positive: int
    shares: dict[str, Any]
    warnings: list[str]
    notes: list[str] = field(default_factory=list)
    blocked: int | None = None


@holding(HOLDERS)
def predict(
    model: TableModel,
    table: Any,
    *,
    keep: str | Sequence[str] = (),
    keep_all: bool = False,
    proba: bool = False,
    reasons: int | None = None,
    reasons_for: str = "flagged",
    reading: Reading | None = None,
) -> Any:
    """Predict scores and labels.

    Parameters
    ----------
    model : TableModel
        Model returned by :func:`fit_table` or :func:`load_model`.
    table : ...
        Labels are not needed.
    keep : str or sequence of str, default=()
        Columns of the table to return with the predictions, after the columns that were declared as ``id`` in the fit.
    keep_all : bool, default=False
        Whether to keep all columns.
    proba : bool, default=False
        Whether to return the probability of the positive class, calibrated on the held-out rows of the fit.
    reasons : int, default=None
        Number of columns to return for each flagged row that moved its score most, with their values, as in
        :meth:`TableModel.reasons`. None returns none.
    reasons_for : {"flagged", "all"}, default="flagged"
        Rows that get reasons.
    reading

    Returns
    -------
    pandas.DataFrame
        The columns to keep, ``score``, above zero for the positive class, ``label``, in the type of the target,
        ``decision`` ("approve", "review" or "block") for a model with a second threshold, and ``probability`` if it is
        wanted, in the order of the rows. The index of a pandas DataFrame is kept.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.tables import fit_table, predict
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, tune=False)
    >>> predict(model, table.drop(columns="target")).label.head(3).tolist()
    [0, 0, 0]
    """
    need_tables()
    import pyarrow as pa

    asked = _asked(model, reasons, reasons_for)
    scoring = Scoring(model, table, keep, keep_all, proba, chosen(Reading, reading), reasons=asked)
    batches = [pa.table(batch) for batch in scoring.batches()]
    found = pa.concat_tables(batches, promote_options="permissive").to_pandas()
    return found.set_index(table.index) if hasattr(table, "iloc") else found


@holding(HOLDERS)
def write_predictions(
    model: TableModel,
    table: Any,
    out: str | Path | BinaryIO,
    *,
    keep: str | Sequence[str] = (),
    keep_all: bool = False,
    proba: bool = False,
    reasons: int | None = None,
    reasons_for: str = "flagged",
    escape_formulas: bool = False,
    reading: Reading | None = None,
    progress: Callable[[int], None] | None = None,
) -> PredictionSummary:
    """Write the score and the label of each row, in bounded memory, as ``rocmax predict`` does.

    Parameters
    ----------
    model : TableModel
        Model returned by :func:`fit_table` or :func:`load_model`.
    table : ...
        Labels are not needed. A file may be of any size.
    out : str, Path or binary file
        File name that ends in .csv, .parquet or .jsonl, which is written atomically; or an open file, for csv output.
        In .jsonl, each line is a row, with its reasons as a list.
    keep : str or sequence of str, default=()
        Columns of the table to return with the predictions, after the columns that were declared as ``id`` in the fit.
    keep_all : bool, default=False
        Whether to keep all columns.
    proba : bool, default=False
        Whether to return the probability of the positive class, calibrated on the held-out rows of the fit.
    reasons : int, default=None
        Number of columns to return for each flagged row that moved its score most, with their values, as in
        :meth:`TableModel.reasons`. None returns none.
    reasons_for : {"flagged", "all"}, default="flagged"
        Rows that get reasons.
    escape_formulas : bool, default=False
        Whether to put ``'`` before text that a spreadsheet would take for a formula; for csv only.
    reading
    progress : callable, default=None
        Called with a number of rows when they are written.

    Returns
    -------
    PredictionSummary
        Numbers of rows, and how the values of the table differ from those of the training table.
    """
    need_tables()
    path = Path(out) if isinstance(out, str | Path) else None
    if escape_formulas and path is not None and path.suffix in ENDINGS[1:]:
        needed = f" applies to csv files only, which spreadsheets open; got a {path.suffix} file"
        raise ParameterError(Parameter("escape_formulas"), needed)
    ending, asked = _ending(path), _asked(model, reasons, reasons_for)
    if path is not None:
        check_not_input(path, [file for file in (table, model.path) if isinstance(file, str | Path)])
        check_output(path)
    scoring = Scoring(model, table, keep, keep_all, proba, chosen(Reading, reading), escape_formulas, asked)
    batches = scoring.batches()
    first = next(batches)  # before the output is opened, so that an invalid table writes nothing to a pipe
    with nullcontext(out) if path is None else output_file(path) as file:
        _write(chain([first], batches), file, ending, progress or (lambda count: None), asked)
    return scoring.summary()


def _asked(model: TableModel, n: int | None, rows: str) -> Reasons | None:
    """Return the reasons that are wanted, if any; raise ParameterError if the model does not have them."""
    if n is None:
        if rows != FLAGGED:
            raise ParameterError(Parameter("reasons_for", rows), " requires ", Parameter("reasons", ...))
        return None
    asked = Reasons(model.model, model.facts, model.family, n, rows)
    asked.check()
    return asked


def batch_scores(model: Any, X: Any, positive: str) -> Array:
    """Return the scores of rows, in bounded memory."""
    starts = range(0, X.shape[0], BATCH_SIZE)
    return np.concatenate([positive_scores(model, X[i : i + BATCH_SIZE], pos_label=positive) for i in starts])


def risk_scores(model: Any, margins: Array, X: Any) -> Array:
    """Return the scores of rows without the thresholds of single cases, as they rank by risk alone."""
    return margins + model.case_thresholds(X) if hasattr(model, "case_thresholds") else margins


def escaped(label: str) -> str:
    """Return a label that no spreadsheet interprets as a formula; numbers are not changed."""
    return "'" + label if label.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(label) else label


class Scoring:
    """Scores of a table in batches, and counts of what was found in it."""

    def __init__(
        self,
        fitted: TableModel,
        table: Any,
        keep: str | Sequence[str],
        keep_all: bool,
        proba: bool,
        reading: Reading,
        escape_formulas: bool = False,
        reasons: Reasons | None = None,
    ) -> None:
        self._reasons = reasons
        self._fitted, self._proba, self._escape = fitted, proba, escape_formulas
        self._source = fitted.facts.open(table, replace(reading, skip_unlabeled=False))
        self._day_first = reading.day_first
        self._options = fitted.facts.read_options(fitted.place, self._source)
        self._kept = self._check_kept((keep,) if isinstance(keep, str) else tuple(keep), keep_all)
        self._levels = known_levels(fitted.model, fitted.facts.features)
        self._shares = ValueShares(self._levels)
        self._positive = 0
        self._blocked: int | None = None if fitted.facts.block is None else 0

    def _check_kept(self, keep: tuple[str, ...], keep_all: bool) -> list[str]:
        present = self._source.columns
        if present is None:
            if keep or keep_all:
                raise DataError(f"{self._source.name} is an svmlight file, which has no columns to keep")
            return []
        check_columns(self._source.name, keep, present)
        ids = [name for name in self._fitted.facts.ids if name in present]
        kept = list(dict.fromkeys([*ids, *(present if keep_all else keep)]))
        types = self._options["types"]
        more = [name for name in kept if name not in types]
        self._options |= {"columns": [*types, *more], "types": {**types, **dict.fromkeys(more, "raw")}}
        return kept

    def rows(self) -> Iterator[tuple[Any, Any, Array]]:
        """Yield batches of rows: the columns of the table, the features, and the scores."""
        facts, model = self._fitted.facts, self._fitted.model
        for columns, _ in self._source.batches(batch_size=BATCH_SIZE, **self._options):
            X = facts.features_of(columns, self._source, day_first=self._day_first, levels=self._levels)
            self._shares.add(X)
            yield columns, X, positive_scores(model, X, pos_label=facts.positive)

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield the columns of the output for batches of rows, as Arrow arrays."""
        import pyarrow as pa

        facts, model = self._fitted.facts, self._fitted.model
        for columns, X, scores in self.rows():
            labels = np.where(scores > 0, facts.positive, facts.negative)
            self._positive += int(np.count_nonzero(scores > 0))
            found = {self._name(name): pa.array(columns[name], from_pandas=True) for name in self._kept}
            typed = typed_labels(labels, facts.label_type)
            found |= {"score": pa.array(scores), "label": pa.array(typed)}
            if self._blocked is not None:
                decided = decisions(scores, model.block_margin(X))
                self._blocked += int(np.count_nonzero(decided == "block"))
                found["decision"] = pa.array(decided)
            if self._proba:
                found["probability"] = pa.array(calibrated(facts.calibration, risk_scores(model, scores, X)))
            if self._reasons is not None:
                found |= self._reasons.output(X, columns, scores)
            yield {name: _escaped(column) for name, column in found.items()} if self._escape else found

    def _name(self, name: str) -> str:
        """Return the name of a kept column in the output, which has columns of its own."""
        return f"{name}_table" if name in OUTPUT_COLUMNS or OUTPUT_REASON.fullmatch(name) else name

    def summary(self) -> PredictionSummary:
        """Return the summary of the batches that were scored."""
        shares = self._shares
        warnings = shares.warnings(self._fitted.facts.shares)
        return PredictionSummary(
            shares.rows, self._positive, shares.to_dict(), warnings, self._source.notes, self._blocked
        )


def _escaped(column: Any) -> Any:
    """Return a column whose text no spreadsheet takes for a formula."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return pa.array([None if text is None else escaped(text) for text in column.to_pylist()], column.type)


def _ending(out: Path | None) -> str:
    """Return the format, .csv, .parquet or .jsonl; csv for a device or a pipe without one of these extensions."""
    if out is None or (out.suffix not in ENDINGS and is_special(out)):
        return ".csv"
    if out.suffix not in ENDINGS:
        raise DataError(f"the output file must end in .csv, .parquet or .jsonl; got {out.name!r}")
    return out.suffix


def _write(
    batches: Iterable[dict[str, Any]],
    file: Any,
    ending: str,
    progress: Callable[[int], None],
    reasons: Reasons | None,
) -> None:
    import pyarrow as pa
    from pyarrow.csv import CSVWriter, WriteOptions
    from pyarrow.parquet import ParquetWriter

    parquet, writer = ending == ".parquet", None
    try:
        for batch in batches:
            table = pa.table(batch)
            if ending == ".jsonl":
                rows = table.to_pylist() if reasons is None else map(reasons.nested, table.to_pylist())
                file.writelines(f"{json.dumps(row, default=str)}\n".encode() for row in rows)
            else:
                if writer is None and parquet:
                    writer = ParquetWriter(file, table.schema)
                elif writer is None:
                    writer = CSVWriter(file, table.schema, write_options=WriteOptions(quoting_style="needed"))
                writer.write_table(table.cast(writer.schema) if parquet else table)
            progress(table.num_rows)
    finally:
        if writer is not None:
            writer.close()
