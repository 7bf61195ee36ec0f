"""rocmax: train classifiers for what they are judged by."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocmax.boosted import (
        BoostedClassifier,
    )
    from rocmax.displays import (
        PartialROCDisplay,
    )
    from rocmax.features import (
        SplineFeatures,
    )
    from rocmax.forward import (
        ForwardSplit,
    )
    from rocmax.kernel import (
        ROCSVC,
        ExactKernelMap,
        KMeansNystroem,
    )
    from rocmax.limits import (
        Limits,
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
    from rocmax.monitor import (
        Monitor,
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
        LimitThresholdClassifier,
        TPRThresholdClassifier,
    )

__version__ = "0.1.0"

_MODULE_OF = {
    "AUCClassifier": "rocmax.linear",
    "BoostedClassifier": "rocmax.boosted",
    "BreakEvenClassifier": "rocmax.linear",
    "ExactKernelMap": "rocmax.kernel",
    "FBetaClassifier": "rocmax.linear",
    "FPRThresholdClassifier": "rocmax.thresholds",
    "FollowTheLeaderClassifier": "rocmax.online",
    "ForwardSplit": "rocmax.forward",
    "GMeanClassifier": "rocmax.linear",
    "KMeansNystroem": "rocmax.kernel",
    "LimitThresholdClassifier": "rocmax.thresholds",
    "Limits": "rocmax.limits",
    "MiniBatchClassifier": "rocmax.online",
    "Monitor": "rocmax.monitor",
    "PSAMClassifier": "rocmax.online",
    "PartialAUCClassifier": "rocmax.linear",
    "PartialAUCClassifierCV": "rocmax.linear",
    "PartialAUCPath": "rocmax.linear",
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
