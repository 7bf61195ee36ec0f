"""Access to the parameters of immutable objects by name, as in scikit-learn's estimators."""

from __future__ import annotations

import inspect
from typing import Any, Self


class Parameters:
    """Mixin with ``get_params`` and ``with_params``; each constructor parameter must be stored under its name.

    Losses, penalties and solvers are immutable: they can be shared, hashed and used as default values. Therefore there
    is no ``set_params``; :meth:`with_params` returns a new object.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of nested objects, as ``part__name``.

        Returns
        -------
        dict
            Parameter names mapped to their values.
        """
        params = {name: getattr(self, name) for name in _names(type(self))}
        if deep:
            for name, part in list(params.items()):
                if hasattr(part, "get_params") and not isinstance(part, type):
                    params |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return params

    def with_params(self, **params: Any) -> Self:
        """Return a copy with some parameters replaced.

        Parameters
        ----------
        **params : dict
            New values; ``part__name`` is the parameter ``name`` of the nested object ``part``.

        Returns
        -------
        object
            A new, validated object of the same type.
        """
        own = self.get_params(deep=False)
        return type(self)(**(own | replaced(type(self).__name__, own, params)))


def replaced(owner: str, current: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return new parameter values with nested names resolved.

    Parameters
    ----------
    owner : str
        Name of the class, used in error messages.
    current : dict
        The parameters of the object mapped to their values.
    params : dict
        New values by name. Names may be nested, such as ``loss__max_fpr``.

    Returns
    -------
    dict
        New values by top-level name: a nested object is replaced by a copy with the new parameters.
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
