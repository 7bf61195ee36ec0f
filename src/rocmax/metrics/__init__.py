"""Performance measures of rankings and of predicted labels, with scorers, confidence intervals and paired tests.

Every measure takes ``sample_weight`` (a row of weight ``v`` counts as ``v`` copies, and a row of weight zero is
ignored) and ``pos_label`` (default: the larger label, as in scikit-learn). Tied scores form one step of the ROC curve,
so results do not depend on the order of the rows.
"""

from __future__ import annotations

from sklearn.metrics import roc_auc_score

from rocmax._docstrings import publish
from rocmax.metrics.rates import exchangeability_test
from rocmax.metrics.scores import (
    average_precision_score,
    break_even_point,
    f_beta_score,
    fpr_at_tpr,
    g_mean_score,
    make_scorer,
    partial_auc_score,
    positive_scores,
    precision_at_k,
    tpr_at_fpr,
    weighted_relative_accuracy,
)
from rocmax.metrics.uncertainty import Comparison, bootstrap_interval, bootstrap_test, delong_interval, delong_test

__all__ = [
    "Comparison",
    "average_precision_score",
    "bootstrap_interval",
    "bootstrap_test",
    "break_even_point",
    "delong_interval",
    "delong_test",
    "exchangeability_test",
    "f_beta_score",
    "fpr_at_tpr",
    "g_mean_score",
    "make_scorer",
    "partial_auc_score",
    "positive_scores",
    "precision_at_k",
    "roc_auc_score",
    "tpr_at_fpr",
    "weighted_relative_accuracy",
]

publish("rocmax.metrics", globals(), __all__)
