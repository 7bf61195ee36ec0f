"""Linear classifiers fitted to all training rows."""

from rocmax._docstrings import publish
from rocmax.linear.auc import AUCClassifier
from rocmax.linear.decisions import BreakEvenClassifier, FBetaClassifier, GMeanClassifier, PrecisionAtKClassifier
from rocmax.linear.partial_auc import PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.linear.path import PartialAUCPath, partial_auc_path
from rocmax.linear.score import ScoreClassifier

__all__ = [
    "AUCClassifier",
    "BreakEvenClassifier",
    "FBetaClassifier",
    "GMeanClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPath",
    "PrecisionAtKClassifier",
    "ScoreClassifier",
    "partial_auc_path",
]

# The names are exported by the package rocmax.
publish("rocmax", globals(), __all__)
