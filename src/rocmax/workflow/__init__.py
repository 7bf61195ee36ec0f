"""Python API of the ``rocmax`` command: fit a model to a table, choose a threshold, compare models, write reports.

A table is a csv, tsv, parquet or svmlight file (text files may be compressed) or a pandas or polars DataFrame.
"""

from __future__ import annotations

from rocmax._messages import ParameterError
from rocmax._public import set_public_module
from rocmax.workflow.column_plan import Column
from rocmax.workflow.evaluation import Evaluation, evaluate
from rocmax.workflow.fitting import fit_table
from rocmax.workflow.model_comparison import ModelComparison, compare_models
from rocmax.workflow.planning import plan_columns
from rocmax.workflow.prediction import PredictionSummary, predict, write_predictions
from rocmax.workflow.reporting import write_report
from rocmax.workflow.table_model import TableModel, load_model

__all__ = [
    "Column",
    "Evaluation",
    "ModelComparison",
    "ParameterError",
    "PredictionSummary",
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

set_public_module("rocmax.workflow", globals(), __all__)
