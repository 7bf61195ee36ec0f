"""Linear classifiers fitted to batches, pairs or single rows of a stream."""

from rocmax.estimators.online._batches import StreamState
from rocmax.estimators.online._leader import Leader

# What fitted models keep besides their weights.
__all__ = ["Leader", "StreamState"]
