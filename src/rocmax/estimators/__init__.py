"""Estimators in scikit-learn's manner."""

from rocmax.estimators.cross_validated import PartialAUCClassifierCV
from rocmax.estimators.linear import AUCClassifier, PartialAUCClassifier
from rocmax.estimators.path import PartialAUCPath, partial_auc_path

__all__ = ["AUCClassifier", "PartialAUCClassifier", "PartialAUCClassifierCV", "PartialAUCPath", "partial_auc_path"]
