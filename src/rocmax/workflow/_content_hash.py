"""Hash of the content of an object: the same in every process, different if any part of the content differs."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import joblib
import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_CODE = (types.FunctionType, types.MethodType, functools.partial, types.CodeType, type)
_NAMED = (types.BuiltinFunctionType, types.ModuleType, np.ufunc, np.dtype)


def content_key(value: Any) -> str:
    """Return a hash of the content of an object.

    The hash includes the class, the parameters and the attributes of estimators; the type, the shape and the bytes of
    arrays; and the names of functions and classes with the version of their package. For functions and classes of a
    script, or of a package without a version, it includes their code and the functions and constants that the code
    uses. Mutable global variables, such as lists, are not included.

    Parameters
    ----------
    value : object
        Number, string, container, array, function, estimator, scorer, or any object that can be pickled.

    Returns
    -------
    str
        The hash.

    Raises
    ------
    TypeError
        If the content of a value cannot be determined.
    """
    return _Walk().digest(value)


class _Walk:
    """Traversal of an object that visits each part once, so that cycles terminate."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        # ids are memory addresses, so all visited objects must stay alive until the end.
        self._alive: list[Any] = []

    def digest(self, value: Any) -> str:
        """Return the hash of a value."""
        if isinstance(value, _PLAIN):
            return _hash(type(value).__name__, repr(value))
        if id(value) in self._met and not isinstance(value, np.generic | tuple | frozenset):
            return _hash("met", str(self._met[id(value)]))
        self._met[id(value)] = len(self._met)
        self._alive.append(value)
        return _hash(type(value).__qualname__, *self._parts(value))

    def _parts(self, value: Any) -> Iterator[str]:
        if isinstance(value, np.ndarray | np.generic):
            yield from self._array(np.asarray(value))
        elif type(value) in (list, tuple):
            yield from map(self.digest, value)
        elif type(value) is dict:
            # In insertion order, which can matter.
            for key, entry in value.items():
                yield from (self.digest(key), self.digest(entry))
        elif type(value) in (set, frozenset):
            yield from sorted(_Walk().digest(entry) for entry in value)
        elif isinstance(value, _CODE):
            yield from self._code(value)
        elif isinstance(value, _NAMED):
            yield getattr(value, "__module__", None) or ""
            yield str(value) if isinstance(value, np.dtype) else value.__name__
        elif hasattr(value, "get_params") or _is_open(value):
            yield self.digest(type(value))
            # Include attributes: a frozen estimator keeps its fitted state.
            for name, entry in sorted({**vars(value), **_parameters(value)}.items()):
                yield from (name, self.digest(entry))
        else:
            yield _pickled(value)

    def _array(self, array: Any) -> Iterator[str]:
        yield from (array.dtype.str, repr(array.dtype), str(array.shape))
        if array.dtype.hasobject:
            yield from map(self.digest, array.ravel().tolist())
        else:
            yield hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

    def _code(self, value: Any) -> Iterator[str]:
        if isinstance(value, functools.partial):
            parts: tuple[Any, ...] = (value.func, value.args, value.keywords)
        elif isinstance(value, types.MethodType):
            parts = (value.__self__, value.__func__)
        elif isinstance(value, types.CodeType):
            parts = (value.co_name, value.co_code, value.co_consts, value.co_names, value.co_varnames)
        else:
            parts = (value.__module__, value.__qualname__, _version(value.__module__))
            if parts[-1] is None:
                parts += self._of_function(value) if isinstance(value, types.FunctionType) else _of_class(value)
        yield from map(self.digest, parts)

    def _of_function(self, function: types.FunctionType) -> tuple[Any, ...]:
        names = sorted(set(_names(function.__code__)) & function.__globals__.keys())
        used = {name: function.__globals__[name] for name in names}
        used = {name: entry for name, entry in used.items() if isinstance(entry, (*_PLAIN, tuple, *_CODE))}
        cells = [_content(cell) for cell in function.__closure__ or ()]
        return function.__code__, function.__defaults__, function.__kwdefaults__, cells, used


def _of_class(kind: type) -> tuple[Any, ...]:
    members = [_function(entry) for _, entry in sorted(vars(kind).items())]
    return kind.__bases__, [entry for entry in members if isinstance(entry, _CODE)], _source(kind)


def _function(member: Any) -> Any:
    """Return the function that a member of a class wraps, or the member itself."""
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    return member.fget if isinstance(member, property) else member


def _source(kind: type) -> Any:
    """Return the source code of a class, or its plain attributes if there is no source code."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return {name: entry for name, entry in sorted(vars(kind).items()) if isinstance(entry, _PLAIN)}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty cell: a function that refers to itself while it is being defined
        return None


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals that a code object, or one nested in it, may use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@functools.cache
def _version(module: str) -> str | None:
    """Return the version of the package of a module, or None if it has no version."""
    package = module.partition(".")[0]
    if package == "__main__":
        return None
    if package in sys.stdlib_module_names:
        return sys.version
    version = getattr(sys.modules.get(package), "__version__", None)
    return version if isinstance(version, str) else None


def _parameters(value: Any) -> dict[str, Any]:
    return value.get_params(deep=False) if hasattr(value, "get_params") else {}


def _is_open(value: Any) -> bool:
    """Return whether the content of an object consists of its attributes only."""
    methods: tuple[Callable[..., Any], ...] = (object.__reduce__, object.__reduce_ex__, object.__getstate__)
    kind = type(value)
    same = (kind.__reduce__, kind.__reduce_ex__, kind.__getstate__)
    return hasattr(value, "__dict__") and not hasattr(kind, "__slots__") and same == methods


def _pickled(value: Any) -> str:
    try:
        result: str = joblib.hash(value)
        return result
    except Exception as error:  # pickling an unknown object can raise any error
        raise TypeError(
            f"the content of {value!r}, a {type(value).__qualname__}, cannot be identified across runs: {error}"
        ) from error


def _hash(*parts: str) -> str:
    # The lengths distinguish parts whose concatenation would be the same.
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()
