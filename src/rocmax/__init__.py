"""rocmax: train classifiers for what they are judged by."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocmax.boosted import BoostedClassifier
    from rocmax.displays import PartialROCDisplay
    from rocmax.ensemble import EnsembleClassifier
    from rocmax.features import SplineFeatures
    from rocmax.forward import ForwardSplit
    from rocmax.kernel import ROCSVC, ExactKernelMap, KMeansNystroem
    from rocmax.limits import Limits
    from rocmax.linear import (
        AUCClassifier,
        BreakEvenClassifier,
        FBetaClassifier,
        GMeanClassifier,
        PartialAUCClassifier,
        PartialAUCClassifierCV,
        PartialAUCPath,
        PrecisionAtKClassifier,
        ScoreClassifier,
        partial_auc_path,
    )
    from rocmax.model_io import load, save, trusted_types
    from rocmax.monitor import Monitor
    from rocmax.online import FollowTheLeaderClassifier, MiniBatchClassifier, PSAMClassifier
    from rocmax.tables.compare import compare
    from rocmax.thresholds import FPRThresholdClassifier, LimitThresholdClassifier, TPRThresholdClassifier

__version__ = "0.1.0"

# Where the names are defined. scikit-learn takes over a second to import and loads pandas where it is installed, so
# nothing is imported before it is used.
_NAMES = {
    "boosted": ["BoostedClassifier"],
    "displays": ["PartialROCDisplay"],
    "ensemble": ["EnsembleClassifier"],
    "features": ["SplineFeatures"],
    "forward": ["ForwardSplit"],
    "kernel": ["ROCSVC", "ExactKernelMap", "KMeansNystroem"],
    "limits": ["Limits"],
    "linear": [
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
    ],
    "model_io": ["load", "save", "trusted_types"],
    "monitor": ["Monitor"],
    "online": ["FollowTheLeaderClassifier", "MiniBatchClassifier", "PSAMClassifier"],
    "tables.compare": ["compare"],
    "thresholds": ["FPRThresholdClassifier", "LimitThresholdClassifier", "TPRThresholdClassifier"],
}
# Packages that are loaded when they are used. `report` is a function and a package: the module can be called.
_MODULES = [
    "boosted",
    "data",
    "displays",
    "ensemble",
    "explain",
    "features",
    "forward",
    "kernel",
    "linear",
    "losses",
    "measures",
    "metrics",
    "monitor",
    "online",
    "operators",
    "papers",
    "penalties",
    "report",
    "solvers",
    "tables",
    "thresholds",
]

__all__ = [
    "ROCSVC",
    "AUCClassifier",
    "BoostedClassifier",
    "BreakEvenClassifier",
    "EnsembleClassifier",
    "ExactKernelMap",
    "FBetaClassifier",
    "FPRThresholdClassifier",
    "FollowTheLeaderClassifier",
    "ForwardSplit",
    "GMeanClassifier",
    "KMeansNystroem",
    "LimitThresholdClassifier",
    "Limits",
    "MiniBatchClassifier",
    "Monitor",
    "PSAMClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPath",
    "PartialROCDisplay",
    "PrecisionAtKClassifier",
    "ScoreClassifier",
    "SplineFeatures",
    "TPRThresholdClassifier",
    "__version__",
    "compare",
    "load",
    "partial_auc_path",
    "report",
    "save",
    "trusted_types",
]

if not TYPE_CHECKING:  # a name that does not exist is an error for type checkers

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"rocmax.{name}")
        for module, names in _NAMES.items():
            if name in names:
                return getattr(importlib.import_module(f"rocmax.{module}"), name)
        raise AttributeError(f"module 'rocmax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
