"""Fits and measures on dask collections, on any ``dask.distributed`` cluster.

Each worker keeps its own rows, labels and scores. The driver holds the weights, the cuts and histograms of scores, so
its memory and the bytes that cross the network in a round do not depend on the number of rows.
"""

from __future__ import annotations

from rocmax._docstrings import publish
from rocmax.dask.boosted import DaskBoostedClassifier
from rocmax.dask.estimators import DaskAUCClassifier, DaskPartialAUCClassifier
from rocmax.dask.metrics import Estimate, fpr_at_tpr, partial_auc_score, roc_auc_score, tpr_at_fpr

__all__ = [
    "DaskAUCClassifier",
    "DaskBoostedClassifier",
    "DaskPartialAUCClassifier",
    "Estimate",
    "fpr_at_tpr",
    "partial_auc_score",
    "roc_auc_score",
    "tpr_at_fpr",
]

publish("rocmax.dask", globals(), __all__)
