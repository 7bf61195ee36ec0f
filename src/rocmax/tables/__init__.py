"""Python API of the ``rocmax`` command: fit a model to a table, choose a threshold, compare models, write reports.

A table is a csv, tsv, parquet or svmlight file (text files may be compressed) or a pandas or polars DataFrame.
"""

from __future__ import annotations

from rocmax._docstrings import publish
from rocmax._support import ParameterError
from rocmax.costs import Costs
from rocmax.data import Reading
from rocmax.limits import Limits
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
from rocmax.tables.monitor import MonitorReport, monitor_table
from rocmax.tables.options import Columns, Running, Watching
from rocmax.tables.plan import RowPlan, plan
from rocmax.tables.report import write_report

__all__ = [
    "Column",
    "Columns",
    "Costs",
    "Limits",
    "ModelComparison",
    "MonitorReport",
    "ParameterError",
    "PredictionSummary",
    "Reading",
    "RowPlan",
    "Running",
    "TableEvaluation",
    "TableModel",
    "Watching",
    "compare_models",
    "evaluate",
    "fit_table",
    "load_model",
    "monitor_table",
    "plan",
    "plan_columns",
    "predict",
    "write_predictions",
    "write_report",
]

# The home of Reading is rocmax.data, that of Costs rocmax.costs, and that of Limits is rocmax.
publish("rocmax.tables", globals(), [name for name in __all__ if name not in ("Costs", "Limits", "Reading")])
