"""Estimators in scikit-learn's manner."""

from rocmax.estimators.cross_validated import PartialAUCClassifierCV
from rocmax.estimators.linear import AUCClassifier, PartialAUCClassifier
from rocmax.estimators.threshold import FPRThresholdClassifier

__all__ = ["AUCClassifier", "FPRThresholdClassifier", "PartialAUCClassifier", "PartialAUCClassifierCV"]
