"""Methods that the papers compare with: for reproductions, not for new work."""

from rocmax._docstrings import publish
from rocmax.papers.streams import (
    ASAMClassifier,
    CBRClassifier,
    ConfidenceSteps,
    OAMClassifier,
    ReservoirSteps,
    SaddlePoint,
    SOLAMClassifier,
)
from rocmax.papers.svm import AsymmetricSVC, TwoNormSVC
from rocmax.papers.trees import (
    AUCTreeClassifier,
    GreedyPairClassifier,
    PAUCBoostClassifier,
    RankBoostClassifier,
    Stump,
)

__all__ = [
    "ASAMClassifier",
    "AUCTreeClassifier",
    "AsymmetricSVC",
    "CBRClassifier",
    "GreedyPairClassifier",
    "OAMClassifier",
    "PAUCBoostClassifier",
    "RankBoostClassifier",
    "SOLAMClassifier",
    "TwoNormSVC",
]
# Classes stored in fitted models. Model files refer to them by name, so the names must not change.
_STORED = {
    "ConfidenceSteps": ConfidenceSteps,
    "ReservoirSteps": ReservoirSteps,
    "SaddlePoint": SaddlePoint,
    "Stump": Stump,
}
publish("rocmax.papers", globals(), __all__)
publish("rocmax.papers", _STORED, _STORED)
