"""Linear classifiers trained on batches, pairs or single rows of a stream."""

from rocmax.estimators.online._batches import StreamState
from rocmax.estimators.online._leader import Leader

# Classes stored in fitted models.
__all__ = ["Leader", "StreamState"]
