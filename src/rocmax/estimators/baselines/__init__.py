"""The methods that the papers compare with."""

from rocmax.estimators.baselines._stumps import Stump

# What fitted models keep besides their weights.
__all__ = ["Stump"]
