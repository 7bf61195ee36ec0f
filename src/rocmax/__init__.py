"""rocmax: train classifiers for what they are judged by."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocmax.comparison import compare
    from rocmax.estimators import AUCClassifier, FPRThresholdClassifier, PartialAUCClassifier, PartialAUCClassifierCV
    from rocmax.model_io import load, save
    from rocmax.roc_display import ConvergenceDisplay, PartialROCDisplay

__version__ = "0.1.0"

_MODULE_OF = {
    "AUCClassifier": "rocmax.estimators",
    "ConvergenceDisplay": "rocmax.roc_display",
    "FPRThresholdClassifier": "rocmax.estimators",
    "PartialAUCClassifier": "rocmax.estimators",
    "PartialAUCClassifierCV": "rocmax.estimators",
    "PartialROCDisplay": "rocmax.roc_display",
    "compare": "rocmax.comparison",
    "data": "rocmax.data",
    "load": "rocmax.model_io",
    "losses": "rocmax.losses",
    "metrics": "rocmax.metrics",
    "save": "rocmax.model_io",
    "solvers": "rocmax.solvers",
}

__all__ = [
    "AUCClassifier",
    "ConvergenceDisplay",
    "FPRThresholdClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialROCDisplay",
    "__version__",
    "compare",
    "data",
    "load",
    "losses",
    "metrics",
    "save",
    "solvers",
]


def __getattr__(name: str) -> Any:
    # scikit-learn takes over a second to import and loads pandas where it is installed, so nothing is imported
    # before it is used.
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rocmax' has no attribute {name!r}")
    module = importlib.import_module(_MODULE_OF[name])
    return module if _MODULE_OF[name] == f"rocmax.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
