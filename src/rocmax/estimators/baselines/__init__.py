"""Baseline methods from the literature."""

from rocmax.estimators.baselines._stumps import Stump

# Class stored in fitted models.
__all__ = ["Stump"]
