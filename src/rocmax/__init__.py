"""rocmax: train classifiers for what they are judged by."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocmax.displays import (
        ConvergenceDisplay,
        PartialAUCPathDisplay,
        PartialROCDisplay,
    )
    from rocmax.estimators import (
        ROCSVC,
        ASAMClassifier,
        AsymmetricSVC,
        AUCClassifier,
        AUCTreeClassifier,
        BoostedClassifier,
        BreakEvenClassifier,
        CBRClassifier,
        ExactKernelMap,
        FBetaClassifier,
        FollowTheLeaderClassifier,
        FPRThresholdClassifier,
        GMeanClassifier,
        GreedyPairClassifier,
        MiniBatchClassifier,
        OAMClassifier,
        PartialAUCClassifier,
        PartialAUCClassifierCV,
        PartialAUCPath,
        PAUCBoostClassifier,
        PrecisionAtKClassifier,
        PSAMClassifier,
        RankBoostClassifier,
        ScoreClassifier,
        SOLAMClassifier,
        SplineFeatures,
        TPRThresholdClassifier,
        TwoNormSVC,
        partial_auc_path,
    )
    from rocmax.kernels.nystroem import (
        KMeansNystroem,
    )
    from rocmax.model_io import (
        load,
        save,
        trusted_types,
    )
    from rocmax.workflow.comparison import (
        compare,
    )

__version__ = "0.1.0"

_MODULE_OF = {
    "ASAMClassifier": "rocmax.estimators",
    "AUCClassifier": "rocmax.estimators",
    "AUCTreeClassifier": "rocmax.estimators",
    "AsymmetricSVC": "rocmax.estimators",
    "BoostedClassifier": "rocmax.estimators",
    "BreakEvenClassifier": "rocmax.estimators",
    "CBRClassifier": "rocmax.estimators",
    "ConvergenceDisplay": "rocmax.displays",
    "ExactKernelMap": "rocmax.estimators",
    "FBetaClassifier": "rocmax.estimators",
    "FPRThresholdClassifier": "rocmax.estimators",
    "FollowTheLeaderClassifier": "rocmax.estimators",
    "GMeanClassifier": "rocmax.estimators",
    "GreedyPairClassifier": "rocmax.estimators",
    "KMeansNystroem": "rocmax.kernels.nystroem",
    "MiniBatchClassifier": "rocmax.estimators",
    "OAMClassifier": "rocmax.estimators",
    "PAUCBoostClassifier": "rocmax.estimators",
    "PSAMClassifier": "rocmax.estimators",
    "PartialAUCClassifier": "rocmax.estimators",
    "PartialAUCClassifierCV": "rocmax.estimators",
    "PartialAUCPath": "rocmax.estimators",
    "PartialAUCPathDisplay": "rocmax.displays",
    "PartialROCDisplay": "rocmax.displays",
    "PrecisionAtKClassifier": "rocmax.estimators",
    "ROCSVC": "rocmax.estimators",
    "RankBoostClassifier": "rocmax.estimators",
    "SOLAMClassifier": "rocmax.estimators",
    "ScoreClassifier": "rocmax.estimators",
    "SplineFeatures": "rocmax.estimators",
    "TPRThresholdClassifier": "rocmax.estimators",
    "TwoNormSVC": "rocmax.estimators",
    "compare": "rocmax.workflow.comparison",
    "data": "rocmax.data",
    "displays": "rocmax.displays",
    "load": "rocmax.model_io",
    "losses": "rocmax.losses",
    "measures": "rocmax.measures",
    "metrics": "rocmax.metrics",
    "operators": "rocmax.operators",
    "partial_auc_path": "rocmax.estimators",
    "penalties": "rocmax.penalties",
    "report": "rocmax.report",
    "save": "rocmax.model_io",
    "solvers": "rocmax.solvers",
    "trusted_types": "rocmax.model_io",
    "workflow": "rocmax.workflow",
}

__all__ = [
    "ROCSVC",
    "ASAMClassifier",
    "AUCClassifier",
    "AUCTreeClassifier",
    "AsymmetricSVC",
    "BoostedClassifier",
    "BreakEvenClassifier",
    "CBRClassifier",
    "ConvergenceDisplay",
    "ExactKernelMap",
    "FBetaClassifier",
    "FPRThresholdClassifier",
    "FollowTheLeaderClassifier",
    "GMeanClassifier",
    "GreedyPairClassifier",
    "KMeansNystroem",
    "MiniBatchClassifier",
    "OAMClassifier",
    "PAUCBoostClassifier",
    "PSAMClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPath",
    "PartialAUCPathDisplay",
    "PartialROCDisplay",
    "PrecisionAtKClassifier",
    "RankBoostClassifier",
    "SOLAMClassifier",
    "ScoreClassifier",
    "SplineFeatures",
    "TPRThresholdClassifier",
    "TwoNormSVC",
    "__version__",
    "compare",
    "data",
    "displays",
    "load",
    "losses",
    "measures",
    "metrics",
    "operators",
    "partial_auc_path",
    "penalties",
    "report",
    "save",
    "solvers",
    "trusted_types",
    "workflow",
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
