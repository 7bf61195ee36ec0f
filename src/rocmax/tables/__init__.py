"""Python API of the ``rocmax`` command: fit a model to a table, choose a threshold, compare models, write reports.

A table is a csv, tsv, parquet or svmlight file (text files may be compressed) or a pandas or polars DataFrame.
"""

from __future__ import annotations

from rocmax._docstrings import publish
from rocmax._support import ParameterError
from rocmax.data import Reading
from rocmax.tables.columns import Column
from rocmax.tables.compare import ModelComparison, compare_models
from rocmax.tables.evaluate import TableEvaluation, evaluate
from rocmax.tables.fit import fit_table, plan_columns
from rocmax.tables.model import (
    PredictionSummary,
    TableModel,
    load_model,
    predict,
    write_predictions,
)
from rocmax.tables.options import Columns, Limits, Running
from rocmax.tables.report import write_report

__all__ = [
    "Column",
    "Columns",
    "Limits",
    "ModelComparison",
    "ParameterError",
    "PredictionSummary",
    "Reading",
    "Running",
    "TableEvaluation",
    "TableModel",
    "compare_models",
    "evaluate",
    "fit_table",
    "load_model",
    "plan_columns",
    "predict",
    "write_predictions",
    "write_report",
]

# The home of Reading is rocmax.data.
publish("rocmax.tables", globals(), [name for name in __all__ if name != "Reading"])
