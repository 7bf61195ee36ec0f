"""Parameters by name, as scikit-learn's estimators have them, for objects that do not change."""

from __future__ import annotations

import inspect
from typing import Any, Self


class Parameters:
    """``get_params`` and ``with_params`` for an object whose attributes have the names of its constructor's parameters.

    Losses, penalties and solvers are immutable: they can be shared, hashed and used as default values. So there is
    no ``set_params``; :meth:`with_params` returns a new object.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list the parameters of parts as well, as ``part__name``.

        Returns
        -------
        dict
            Names and values.
        """
        params = {name: getattr(self, name) for name in _names(type(self))}
        if deep:
            for name, part in list(params.items()):
                if hasattr(part, "get_params") and not isinstance(part, type):
                    params |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return params

    def with_params(self, **params: Any) -> Self:
        """Return an object with some parameters replaced.

        Parameters
        ----------
        **params : dict
            New values; ``part__name`` is the parameter ``name`` of the part ``part``.

        Returns
        -------
        object
            A new object of the same type, checked as a new one is.
        """
        own = self.get_params(deep=False)
        return type(self)(**(own | replaced(type(self).__name__, own, params)))


def replaced(owner: str, current: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return new values for parameters, nested names resolved.

    Parameters
    ----------
    owner : str
        Name of the class, for messages.
    current : dict
        The parameters of the object and their values.
    params : dict
        New values by name, perhaps nested ones such as ``loss__max_fpr``.

    Returns
    -------
    dict
        New values by plain names: a part whose parameters were given is replaced by a new one.
    """
    plain = {name: value for name, value in params.items() if "__" not in name}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        part, mark, rest = name.partition("__")
        if part not in current:
            raise ValueError(f"{owner} has no parameter {part!r}; it has {', '.join(sorted(current)) or 'none'}")
        if mark:
            nested.setdefault(part, {})[rest] = value
    for name, values in nested.items():
        part = plain.get(name, current[name])
        if not hasattr(part, "with_params"):
            raise ValueError(f"{name}={part!r} of {owner} has no parameters; got {', '.join(sorted(values))} for it")
        plain[name] = part.with_params(**values)
    return plain


def _names(cls: type) -> list[str]:
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return []
    listed = list(inspect.signature(cls).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in listed):
        raise TypeError(f"{cls.__name__} must name its parameters; its constructor takes *args or **kwargs")
    return [parameter.name for parameter in listed]
