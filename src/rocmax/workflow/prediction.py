"""``rocmax predict``: a score and a label for each row, in order, in bounded memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rocmax._atomic import is_special, output_file
from rocmax.data import DataError, iter_batches, read_columns
from rocmax.data.errors import check_columns
from rocmax.model_io import load_fitted
from rocmax.workflow.evaluation import features_of
from rocmax.workflow.tables import positive_scores

BATCH_SIZE = 50_000
ENDINGS = (".csv", ".parquet")
# What makes a spreadsheet compute a cell: OWASP's list for CSV injection, with the wide forms of the signs.
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
SCHEMA = pa.schema([("score", pa.float64()), ("label", pa.string())])


def predict(
    model_path: Path,
    data_path: Path,
    out: Path | None,
    escape_formulas: bool,
    delimiter: str | None,
    advance: Callable[[int], None],
    max_bytes: int | None = None,
) -> int:
    """Score a file; return the number of rows."""
    ending = _ending(out)
    batches = _scored(model_path, data_path, escape_formulas, delimiter, max_bytes)
    first = next(batches)  # before anything is opened, so that a bad file leaves nothing in a pipe
    with output_file(out) if out is not None else nullcontext(sys.stdout.buffer) as file:
        return _write(chain([first], batches), file, ending, advance)


def escaped(label: str) -> str:
    """Return a label that no spreadsheet takes for a formula; numbers stay as written."""
    return "'" + label if label.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(label) else label


def _ending(out: Path | None) -> str:
    """Return the format, .csv or .parquet; a device or a pipe without either ending gets csv."""
    if out is None or (out.suffix not in ENDINGS and is_special(out)):
        return ".csv"
    if out.suffix not in ENDINGS:
        raise DataError(f"the output needs a name that ends in .csv or .parquet; got {out.name!r}")
    return out.suffix


def _scored(
    model_path: Path, data_path: Path, escape_formulas: bool, delimiter: str | None, max_bytes: int | None
) -> Iterator[Any]:
    model, about = load_fitted(model_path, max_bytes=max_bytes)
    names = read_columns(data_path, delimiter=delimiter)
    if names is None:
        if about["features"] is not None:
            raise DataError(f"{model_path} was fitted to named columns, and {data_path} is an svmlight file")
        options: dict[str, Any] = {"n_features": about["n_features"], "zero_based": about["zero_based"]}
    else:
        features = features_of(model_path, about, data_path)
        check_columns(data_path, list(features), names)
        options = {"columns": list(features), "types": features, "delimiter": delimiter}
    for X, _ in iter_batches(data_path, batch_size=BATCH_SIZE, **options):
        labels = [str(label) for label in model.predict(X)]
        if escape_formulas:
            labels = [escaped(label) for label in labels]
        yield pa.record_batch([pa.array(positive_scores(model, X, about["positive"])), pa.array(labels)], schema=SCHEMA)


def _writer(where: Any, ending: str) -> Any:
    if ending == ".parquet":
        return pyarrow.parquet.ParquetWriter(where, SCHEMA)
    return pyarrow.csv.CSVWriter(where, SCHEMA, write_options=pyarrow.csv.WriteOptions(quoting_style="needed"))


def _write(batches: Iterable[Any], file: BinaryIO, ending: str, advance: Callable[[int], None]) -> int:
    rows = 0
    with _writer(file, ending) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
            advance(batch.num_rows)
    return rows
