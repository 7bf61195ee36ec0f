"""Estimators in scikit-learn's manner."""

from rocmax.estimators.buffered import CBRClassifier, OAMClassifier
from rocmax.estimators.composed import BreakEvenClassifier, FBetaClassifier, GMeanClassifier, PrecisionAtKClassifier
from rocmax.estimators.cross_validated import PartialAUCClassifierCV
from rocmax.estimators.linear import AUCClassifier, PartialAUCClassifier
from rocmax.estimators.minibatch import MiniBatchClassifier
from rocmax.estimators.path import PartialAUCPath, partial_auc_path
from rocmax.estimators.stochastic import ASAMClassifier, PSAMClassifier, SOLAMClassifier
from rocmax.estimators.threshold import FPRThresholdClassifier

__all__ = [
    "ASAMClassifier",
    "AUCClassifier",
    "BreakEvenClassifier",
    "CBRClassifier",
    "FBetaClassifier",
    "FPRThresholdClassifier",
    "GMeanClassifier",
    "MiniBatchClassifier",
    "OAMClassifier",
    "PSAMClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPath",
    "PrecisionAtKClassifier",
    "SOLAMClassifier",
    "partial_auc_path",
]
