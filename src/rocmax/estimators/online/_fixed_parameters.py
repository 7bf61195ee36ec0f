"""Check that parameters do not change between calls of ``partial_fit``."""

from __future__ import annotations

from typing import Any


def fixed_parameters(estimator: Any, free: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters that must not change: all except ``free``."""
    return {name: value for name, value in estimator.get_params(deep=False).items() if name not in free}


def check_unchanged(estimator: Any, fixed: dict[str, Any]) -> None:
    """Raise ValueError if a parameter has changed since the first call of ``partial_fit``."""
    for name, value in fixed.items():
        given = getattr(estimator, name)
        if given is not value and given != value:
            raise ValueError(
                f"{name} must stay {value!r} between calls of partial_fit; got {given!r}. Use fit to train a new model"
            )
