"""Boosted trees for ranking measures, by LightGBM or XGBoost."""

from rocmax._docstrings import publish
from rocmax.boosted.classifier import BoostedClassifier
from rocmax.boosted.trees import TreeModel

__all__ = ["BoostedClassifier"]
# Classes stored in fitted models. Model files refer to them by name, so the names must not change.
_STORED = {"TreeModel": TreeModel}
# The names are exported by the package rocmax.
publish("rocmax", globals(), __all__)
publish("rocmax.boosted", _STORED, _STORED)
