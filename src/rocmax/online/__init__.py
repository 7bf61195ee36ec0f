"""Linear classifiers trained on batches, pairs or single rows of a stream."""

from rocmax._docstrings import publish
from rocmax.online.base import Memory
from rocmax.online.follow_the_leader import FollowTheLeaderClassifier, Leader
from rocmax.online.minibatch import MiniBatchClassifier, StreamState
from rocmax.online.psam import PairSteps, PSAMClassifier
from rocmax.online.sampling import Buffer, Reservoir

__all__ = ["FollowTheLeaderClassifier", "MiniBatchClassifier", "PSAMClassifier"]
# Classes stored in fitted models. Model files refer to them by name, so the names must not change.
_STORED = {
    "Memory": Memory,
    "Leader": Leader,
    "StreamState": StreamState,
    "PairSteps": PairSteps,
    "Buffer": Buffer,
    "Reservoir": Reservoir,
}
# The names are exported by the package rocmax.
publish("rocmax", globals(), __all__)
publish("rocmax.online", _STORED, _STORED)
