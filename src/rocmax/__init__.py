"""rocmax: train classifiers for what they are judged by."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocmax.boosted import (
        BoostedClassifier,
    )
    from rocmax.displays import (
        ConvergenceDisplay,
        PartialAUCPathDisplay,
        PartialROCDisplay,
    )
    from rocmax.features import (
        SplineFeatures,
    )
    from rocmax.kernel import (
        ROCSVC,
        ExactKernelMap,
        KMeansNystroem,
    )
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
    from rocmax.model_io import (
        load,
        save,
        trusted_types,
    )
    from rocmax.online import (
        FollowTheLeaderClassifier,
        MiniBatchClassifier,
        PSAMClassifier,
    )
    from rocmax.tables.compare import (
        compare,
    )
    from rocmax.thresholds import (
        FPRThresholdClassifier,
        TPRThresholdClassifier,
    )

__version__ = "0.1.0"

_MODULE_OF = {
    "AUCClassifier": "rocmax.linear",
    "BoostedClassifier": "rocmax.boosted",
    "BreakEvenClassifier": "rocmax.linear",
    "ConvergenceDisplay": "rocmax.displays",
    "ExactKernelMap": "rocmax.kernel",
    "FBetaClassifier": "rocmax.linear",
    "FPRThresholdClassifier": "rocmax.thresholds",
    "FollowTheLeaderClassifier": "rocmax.online",
    "GMeanClassifier": "rocmax.linear",
    "KMeansNystroem": "rocmax.kernel",
    "MiniBatchClassifier": "rocmax.online",
    "PSAMClassifier": "rocmax.online",
    "PartialAUCClassifier": "rocmax.linear",
    "PartialAUCClassifierCV": "rocmax.linear",
    "PartialAUCPath": "rocmax.linear",
    "PartialAUCPathDisplay": "rocmax.displays",
    "PartialROCDisplay": "rocmax.displays",
    "PrecisionAtKClassifier": "rocmax.linear",
    "ROCSVC": "rocmax.kernel",
    "ScoreClassifier": "rocmax.linear",
    "SplineFeatures": "rocmax.features",
    "TPRThresholdClassifier": "rocmax.thresholds",
    "compare": "rocmax.tables.compare",
    "load": "rocmax.model_io",
    "partial_auc_path": "rocmax.linear",
    "save": "rocmax.model_io",
    "trusted_types": "rocmax.model_io",
}
# Packages that are loaded when they are used. `report` is a function and a package: the module can be called.
_MODULES = [
    "boosted",
    "data",
    "displays",
    "features",
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
    "ConvergenceDisplay",
    "ExactKernelMap",
    "FBetaClassifier",
    "FPRThresholdClassifier",
    "FollowTheLeaderClassifier",
    "GMeanClassifier",
    "KMeansNystroem",
    "MiniBatchClassifier",
    "PSAMClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPath",
    "PartialAUCPathDisplay",
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


def __getattr__(name: str) -> Any:
    # scikit-learn takes over a second to import and loads pandas where it is installed, so nothing is imported
    # before it is used.
    if name in _MODULES:
        return importlib.import_module(f"rocmax.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rocmax' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
