"""Prediction of a score and a label for each row, in bounded memory for files of any size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from rocmax._atomic import check_not_input, check_output, is_special, output_file
from rocmax._messages import Message, Parameter, ParameterError
from rocmax.data import DataError
from rocmax.workflow.models import positive_scores
from rocmax.workflow.table_model import TableModel
from rocmax.workflow.tables import feature_options, model_features, need_tables, table_source

BATCH_SIZE = 50_000
ENDINGS = (".csv", ".parquet")
# Characters that start a formula in spreadsheets: OWASP's list for CSV injection, with full-width forms.
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def predict(model: TableModel, table: Any, *, delimiter: str | None = None) -> Any:
    """Predict scores and labels.

    Parameters
    ----------
    model : TableModel
        Model returned by :func:`fit_table` or :func:`load_model`.
    table : str, Path, list of them, file or data frame
        A file (csv, tsv, parquet or svmlight, the text ones also compressed), or a DataFrame of pandas or polars.
        Columns are found by name, and labels are not needed.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.

    Returns
    -------
    pandas.DataFrame
        Columns ``score``, above zero for the positive class, and ``label``, in the order of the rows. The index of a
        pandas DataFrame is kept.

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
    """Write the score and the label of each row, in bounded memory, as ``rocmax predict`` does.

    Parameters
    ----------
    model : TableModel
        Model returned by :func:`fit_table` or :func:`load_model`.
    table : str, Path, list of them, file or data frame
        A file (csv, tsv, parquet or svmlight, the text ones also compressed), or a DataFrame of pandas or polars.
        Columns are found by name, and labels are not needed. A file may be of any size.
    out : str, Path or binary file
        File name that ends in .csv or .parquet, which is written atomically; or an open file, for csv output.
    escape_formulas : bool, default=False
        Whether to put ``'`` before labels that a spreadsheet would take for formulas; for csv only.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.
    progress : callable, default=None
        Called with a number of rows when they are written.

    Returns
    -------
    int
        Number of rows.
    """
    need_tables()
    path = Path(out) if isinstance(out, str | Path) else None
    if escape_formulas and path is not None and path.suffix == ".parquet":
        needed = " applies to csv files only, which spreadsheets open; got a .parquet file"
        raise ParameterError(Message(Parameter("escape_formulas"), needed))
    ending = _ending(path)
    if path is not None:
        check_not_input(path, [file for file in (table, model.path) if isinstance(file, str | Path)])
        check_output(path)
    batches = scored_batches(model, table, delimiter, escape_formulas)
    first = next(batches)  # before the output is opened, so that an invalid table writes nothing to a pipe
    with nullcontext(out) if path is None else output_file(path) as file:
        return _write(chain([first], batches), file, ending, progress or (lambda count: None))


def escaped(label: str) -> str:
    """Return a label that no spreadsheet interprets as a formula; numbers are not changed."""
    return "'" + label if label.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(label) else label


def scored_batches(
    fitted: TableModel, table: Any, delimiter: str | None, escape_formulas: bool = False
) -> Iterator[tuple[Any, list[str]]]:
    """Yield the scores and labels of batches of rows."""
    source = table_source(fitted.facts, table, delimiter)
    options = feature_options(fitted.facts, fitted.place, source)
    for columns, _ in source.batches(batch_size=BATCH_SIZE, **options):
        X = model_features(fitted.facts, columns)
        labels = [str(label) for label in fitted.model.predict(X)]
        if escape_formulas:
            labels = [escaped(label) for label in labels]
        yield positive_scores(fitted.model, X, fitted.positive), labels


def _ending(out: Path | None) -> str:
    """Return the format, .csv or .parquet; csv for a device or a pipe without one of these extensions."""
    if out is None or (out.suffix not in ENDINGS and is_special(out)):
        return ".csv"
    if out.suffix not in ENDINGS:
        raise DataError(f"the output file must end in .csv or .parquet; got {out.name!r}")
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
