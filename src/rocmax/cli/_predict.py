"""``rocmax predict``: a score and a label for each row, in order, in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rocmax._atomic import atomic_path
from rocmax.cli._measure import features_of
from rocmax.data import DataError, iter_batches, read_columns
from rocmax.data._errors import check_columns
from rocmax.model_io import load_with_facts
from rocmax.tabular import positive_scores

BATCH_SIZE = 50_000
SCHEMA = pa.schema([("score", pa.float64()), ("label", pa.string())])


def predict(
    model_path: Path,
    data_path: Path,
    out: Path | None,
    delimiter: str | None,
    advance: Callable[[int], None],
    max_bytes: int | None = None,
) -> int:
    """Score a file; return the number of rows."""
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise DataError(f"the output needs a name that ends in .csv or .parquet; got {out.name!r}")
    batches = _scored(model_path, data_path, delimiter, max_bytes)
    if out is None:
        return _write(batches, sys.stdout.buffer, ".csv", advance)
    with atomic_path(out) as part:
        return _write(batches, part, out.suffix, advance)


def _scored(model_path: Path, data_path: Path, delimiter: str | None, max_bytes: int | None) -> Iterator[Any]:
    model, about = load_with_facts(model_path, max_bytes=max_bytes)
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
        yield pa.record_batch([pa.array(positive_scores(model, X, about["positive"])), pa.array(labels)], schema=SCHEMA)


def _writer(where: Any, ending: str) -> Any:
    if ending == ".parquet":
        return pyarrow.parquet.ParquetWriter(where, SCHEMA)
    return pyarrow.csv.CSVWriter(where, SCHEMA, write_options=pyarrow.csv.WriteOptions(quoting_style="needed"))


def _write(batches: Iterator[Any], where: Any, ending: str, advance: Callable[[int], None]) -> int:
    rows = 0
    first = next(batches)  # before anything is written, so that a bad file leaves nothing on standard output
    with _writer(where, ending) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)
            rows += batch.num_rows
            advance(batch.num_rows)
    return rows
