"""Modules that need an optional package when they are imported, not when they are used."""

from importlib.util import find_spec

# Losses for networks are classes of PyTorch, so nothing of theirs is there without it.
NEEDS = {"rocmax.torch": "torch"}


def can_be_imported(module: str) -> bool:
    """Tell whether the optional package of a module is installed."""
    return module not in NEEDS or find_spec(NEEDS[module]) is not None
