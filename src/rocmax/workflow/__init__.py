"""From a table to a model, a threshold, a comparison and a report: what the command ``rocmax`` does, in Python.

A table is a file (csv, tsv, parquet or svmlight, the text ones also compressed) or a DataFrame of pandas or polars.
"""

from __future__ import annotations

from rocmax._messages import ParameterError
from rocmax._public import set_public_module
from rocmax.workflow.evaluation import Evaluation, evaluate
from rocmax.workflow.fitting import fit_table
from rocmax.workflow.model_comparison import ModelComparison, compare_models
from rocmax.workflow.prediction import predict, write_predictions
from rocmax.workflow.reporting import write_report
from rocmax.workflow.table_model import TableModel, load_model

__all__ = [
    "Evaluation",
    "ModelComparison",
    "ParameterError",
    "TableModel",
    "compare_models",
    "evaluate",
    "fit_table",
    "load_model",
    "predict",
    "write_predictions",
    "write_report",
]

set_public_module("rocmax.workflow", globals(), __all__)
