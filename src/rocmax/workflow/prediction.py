"""A score and a label for each row, in order; files of any size in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from rocmax._atomic import check_not_input, check_output, is_special, output_file
from rocmax._messages import Message, Parameter, ParameterError
from rocmax.data import DataError, TableSource
from rocmax.workflow.models import positive_scores
from rocmax.workflow.table_model import TableModel
from rocmax.workflow.tables import feature_options, need_tables

BATCH_SIZE = 50_000
ENDINGS = (".csv", ".parquet")
# What makes a spreadsheet compute a cell: OWASP's list for CSV injection, with the wide forms of the signs.
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def predict(model: TableModel, table: Any, *, delimiter: str | None = None) -> Any:
    """Score rows and label them.

    Parameters
    ----------
    model : TableModel
        A model of :func:`fit_table` or :func:`load_model`.
    table : str, Path or data frame
        A file (csv, tsv, parquet or svmlight, the text ones also compressed), or a DataFrame of pandas or polars.
        Columns are found by name, and labels are not needed.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.

    Returns
    -------
    pandas.DataFrame
        ``score``, above zero for the positive class, and ``label``, one row for each row in order; with the index of a
        pandas frame.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.workflow import fit_table, predict
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, tune=False)
    >>> predict(model, table.drop(columns="target")).label.head(3).tolist()
    ['0', '0', '0']
    """
    need_tables()
    import pandas as pd

    batches = [
        pd.DataFrame({"score": scores, "label": labels}) for scores, labels in scored_batches(model, table, delimiter)
    ]
    found = pd.concat(batches, ignore_index=True)
    return found.set_index(table.index) if hasattr(table, "iloc") else found


def write_predictions(
    model: TableModel,
    table: Any,
    out: str | Path | BinaryIO,
    *,
    escape_formulas: bool = False,
    delimiter: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Score rows and write a score and a label for each of them, in bounded memory; what ``rocmax predict`` does.

    Parameters
    ----------
    model : TableModel
        A model of :func:`fit_table` or :func:`load_model`.
    table : str, Path or data frame
        A file (csv, tsv, parquet or svmlight, the text ones also compressed), or a DataFrame of pandas or polars.
        Columns are found by name, and labels are not needed. A file may be of any size.
    out : str, Path or binary file
        A file that ends in .csv or .parquet, which appears whole or not at all; or an open file, which gets csv.
    escape_formulas : bool, default=False
        Whether to put ``'`` before labels that a spreadsheet would take for formulas; for csv only.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.
    progress : callable, default=None
        Called with a number of rows when they are written.

    Returns
    -------
    int
        The number of rows.
    """
    need_tables()
    path = Path(out) if isinstance(out, str | Path) else None
    if escape_formulas and path is not None and path.suffix == ".parquet":
        needed = " is for csv, which spreadsheets open; got a .parquet file"
        raise ParameterError(Message(Parameter("escape_formulas"), needed))
    ending = _ending(path)
    if path is not None:
        check_not_input(path, [file for file in (table, model.path) if isinstance(file, str | Path)])
        check_output(path)
    batches = scored_batches(model, table, delimiter, escape_formulas)
    first = next(batches)  # before anything is opened, so that a bad table leaves nothing in a pipe
    with nullcontext(out) if path is None else output_file(path) as file:
        return _write(chain([first], batches), file, ending, progress or (lambda count: None))


def escaped(label: str) -> str:
    """Return a label that no spreadsheet takes for a formula; numbers stay as written."""
    return "'" + label if label.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(label) else label


def scored_batches(
    fitted: TableModel, table: Any, delimiter: str | None, escape_formulas: bool = False
) -> Iterator[tuple[Any, list[str]]]:
    """Yield scores and labels of some rows at a time."""
    source = TableSource(table, delimiter=delimiter)
    options = feature_options(fitted.facts, fitted.place, source)
    for X, _ in source.batches(batch_size=BATCH_SIZE, **options):
        labels = [str(label) for label in fitted.model.predict(X)]
        if escape_formulas:
            labels = [escaped(label) for label in labels]
        yield positive_scores(fitted.model, X, fitted.positive), labels


def _ending(out: Path | None) -> str:
    """Return the format, .csv or .parquet; a device or a pipe without either ending gets csv."""
    if out is None or (out.suffix not in ENDINGS and is_special(out)):
        return ".csv"
    if out.suffix not in ENDINGS:
        raise DataError(f"the output needs a name that ends in .csv or .parquet; got {out.name!r}")
    return out.suffix


def _write(batches: Iterable[tuple[Any, list[str]]], file: Any, ending: str, progress: Callable[[int], None]) -> int:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    schema, rows = pa.schema([("score", pa.float64()), ("label", pa.string())]), 0
    if ending == ".parquet":
        writer = pyarrow.parquet.ParquetWriter(file, schema)
    else:
        writer = pyarrow.csv.CSVWriter(file, schema, write_options=pyarrow.csv.WriteOptions(quoting_style="needed"))
    with writer:
        for scores, labels in batches:
            writer.write_batch(pa.record_batch([pa.array(scores), pa.array(labels)], schema=schema))
            rows += len(labels)
            progress(len(labels))
    return rows
