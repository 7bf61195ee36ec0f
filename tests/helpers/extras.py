"""Modules that need an optional package when they are imported, not when they are used."""

from importlib.util import find_spec

# Losses for networks are classes of PyTorch, so nothing of theirs is there without it.
NEEDS = {f"rocmax.backends.{name}": "torch" for name in ("torch", "_soft_tables", "_sorted_tensors", "_tensor_inputs")}


def can_be_imported(module: str) -> bool:
    """Tell whether the optional package of a module is installed."""
    return module not in NEEDS or find_spec(NEEDS[module]) is not None
