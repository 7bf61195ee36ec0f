"""Displays, which follow the scikit-learn API: they store arrays and draw them in ``plot``."""

from __future__ import annotations

from rocmax._public import set_public_module
from rocmax.displays.convergence import ConvergenceDisplay
from rocmax.displays.regularization_path import PartialAUCPathDisplay
from rocmax.displays.roc import PartialROCDisplay, RocBand

__all__ = ["ConvergenceDisplay", "PartialAUCPathDisplay", "PartialROCDisplay", "RocBand"]

set_public_module("rocmax.displays", globals(), __all__)
