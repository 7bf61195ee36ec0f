"""Readers of csv, tsv, parquet and svmlight files, plain or compressed, and of data frames, whole or in batches.

Features have the same types for every format, so that batches agree with each other and with the whole file: float64
with NaN for missing values for numbers and booleans, strings for text, and dates. Svmlight files give CSR matrices.
"""

from __future__ import annotations

from rocmax._docstrings import publish
from rocmax.data.read import DataError, Reading, Table, iter_batches, read_columns, read_table
from rocmax.data.store import RowStore

__all__ = ["DataError", "Reading", "RowStore", "Table", "iter_batches", "read_columns", "read_table"]

publish("rocmax.data", globals(), __all__)
