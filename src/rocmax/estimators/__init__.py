"""Estimators in scikit-learn's manner."""

from rocmax.estimators.asymmetric import AsymmetricSVC
from rocmax.estimators.boosting import PAUCBoostClassifier, RankBoostClassifier
from rocmax.estimators.buffered import CBRClassifier, OAMClassifier
from rocmax.estimators.composed import FBetaClassifier, GMeanClassifier
from rocmax.estimators.cross_validated import PartialAUCClassifierCV
from rocmax.estimators.kernel import ROCSVC, TwoNormSVC
from rocmax.estimators.kernel_map import ExactKernelMap
from rocmax.estimators.leader import FollowTheLeaderClassifier
from rocmax.estimators.linear import AUCClassifier, PartialAUCClassifier
from rocmax.estimators.minibatch import MiniBatchClassifier
from rocmax.estimators.path import PartialAUCPath, partial_auc_path
from rocmax.estimators.rivals import GreedyPairClassifier
from rocmax.estimators.stochastic import ASAMClassifier, PSAMClassifier, SOLAMClassifier
from rocmax.estimators.threshold import FPRThresholdClassifier
from rocmax.estimators.top import BreakEvenClassifier, PrecisionAtKClassifier
from rocmax.estimators.trees import AUCTreeClassifier

__all__ = [
    "ROCSVC",
    "ASAMClassifier",
    "AUCClassifier",
    "AUCTreeClassifier",
    "AsymmetricSVC",
    "BreakEvenClassifier",
    "CBRClassifier",
    "ExactKernelMap",
    "FBetaClassifier",
    "FPRThresholdClassifier",
    "FollowTheLeaderClassifier",
    "GMeanClassifier",
    "GreedyPairClassifier",
    "MiniBatchClassifier",
    "OAMClassifier",
    "PAUCBoostClassifier",
    "PSAMClassifier",
    "PartialAUCClassifier",
    "PartialAUCClassifierCV",
    "PartialAUCPath",
    "PrecisionAtKClassifier",
    "RankBoostClassifier",
    "SOLAMClassifier",
    "TwoNormSVC",
    "partial_auc_path",
]
