"""Estimators in scikit-learn's manner."""

from rocmax.estimators.buffered import CBRClassifier, OAMClassifier
from rocmax.estimators.cross_validated import PartialAUCClassifierCV
from rocmax.estimators.linear import AUCClassifier, PartialAUCClassifier
from rocmax.estimators.stochastic import ASAMClassifier, PSAMClassifier, SOLAMClassifier

__all__ = [
    "ASAMClassifier",
    "AUCClassifier",
    "CBRClassifier",
    "OAMClassifier",
    "PSAMClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "SOLAMClassifier",
]
