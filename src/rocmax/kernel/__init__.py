"""Kernel machines: exact and approximate feature maps, and the ROC-SVM."""

from rocmax._docstrings import publish
from rocmax.kernel.maps import ExactKernelMap, Kernel, KMeansNystroem
from rocmax.kernel.rocsvc import ROCSVC

__all__ = ["ROCSVC", "ExactKernelMap", "KMeansNystroem"]
# Classes stored in fitted models. Model files refer to them by name, so the names must not change.
_STORED = {"Kernel": Kernel}
# The names are exported by the package rocmax.
publish("rocmax", globals(), __all__)
publish("rocmax.kernel", _STORED, _STORED)
