"""Readers of csv, tsv, parquet and svmlight files, plain or compressed, and of data frames, whole or in batches.

Features have the same types for every format, so that batches agree with each other and with the whole file: float64
with NaN for missing values for numbers and booleans, strings for text, and dates. Svmlight files give CSR matrices.
"""

from __future__ import annotations

from rocmax._public import set_public_module
from rocmax.data._conversion import Table
from rocmax.data._read import iter_batches, read_columns, read_table
from rocmax.data._row_store import RowStore
from rocmax.data._table_source import TableSource
from rocmax.data.errors import DataError

__all__ = ["DataError", "RowStore", "Table", "TableSource", "iter_batches", "read_columns", "read_table"]

set_public_module("rocmax.data", globals(), __all__)
