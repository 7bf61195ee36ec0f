"""rocmax: train classifiers for what they are judged by."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocmax.estimators import (
        ROCSVC,
        AsymmetricSVC,
        AUCClassifier,
        AUCTreeClassifier,
        BreakEvenClassifier,
        ExactKernelMap,
        FBetaClassifier,
        GMeanClassifier,
        GreedyPairClassifier,
        MiniBatchClassifier,
        PartialAUCClassifier,
        PartialAUCClassifierCV,
        PAUCBoostClassifier,
        PrecisionAtKClassifier,
        RankBoostClassifier,
        TwoNormSVC,
        partial_auc_path,
    )
    from rocmax.plots import PartialAUCPathDisplay

__version__ = "0.1.0"

_MODULE_OF = {
    "ROCSVC": "rocmax.estimators",
    "AUCTreeClassifier": "rocmax.estimators",
    "AsymmetricSVC": "rocmax.estimators",
    "ExactKernelMap": "rocmax.estimators",
    "GreedyPairClassifier": "rocmax.estimators",
    "PAUCBoostClassifier": "rocmax.estimators",
    "RankBoostClassifier": "rocmax.estimators",
    "TwoNormSVC": "rocmax.estimators",
    "AUCClassifier": "rocmax.estimators",
    "BreakEvenClassifier": "rocmax.estimators",
    "FBetaClassifier": "rocmax.estimators",
    "GMeanClassifier": "rocmax.estimators",
    "MiniBatchClassifier": "rocmax.estimators",
    "PartialAUCClassifier": "rocmax.estimators",
    "PartialAUCClassifierCV": "rocmax.estimators",
    "PrecisionAtKClassifier": "rocmax.estimators",
    "PartialAUCPathDisplay": "rocmax.plots",
    "losses": "rocmax.losses",
    "metrics": "rocmax.metrics",
    "partial_auc_path": "rocmax.estimators",
    "penalties": "rocmax.penalties",
    "plots": "rocmax.plots",
    "solvers": "rocmax.solvers",
}

__all__ = [
    "ROCSVC",
    "AUCClassifier",
    "AUCTreeClassifier",
    "AsymmetricSVC",
    "BreakEvenClassifier",
    "ExactKernelMap",
    "FBetaClassifier",
    "GMeanClassifier",
    "GreedyPairClassifier",
    "MiniBatchClassifier",
    "PAUCBoostClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPathDisplay",
    "PrecisionAtKClassifier",
    "RankBoostClassifier",
    "TwoNormSVC",
    "__version__",
    "losses",
    "metrics",
    "partial_auc_path",
    "penalties",
    "plots",
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
