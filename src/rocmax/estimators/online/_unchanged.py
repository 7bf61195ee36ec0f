"""Parameters that a stream rests on, and that have to stay the same from one ``partial_fit`` to the next."""

from __future__ import annotations

from typing import Any


def fixed_parameters(estimator: Any, free: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters that the state of a stream depends on: all of them but the free ones."""
    return {name: value for name, value in estimator.get_params(deep=False).items() if name not in free}


def check_unchanged(estimator: Any, fixed: dict[str, Any]) -> None:
    """Raise ValueError if a parameter is no longer what it was when the stream began."""
    for name, value in fixed.items():
        given = getattr(estimator, name)
        if given is not value and given != value:
            raise ValueError(
                f"{name} needs to stay {value!r} from batch to batch; got {given!r}. Use fit to start anew"
            )
