"""Compilation of loops with numba: cache on disk, notice during compilation, and dispatch by argument type."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from numba import njit, typeof, types
from numba.extending import overload

# Sums may be reordered to use vector instructions; infinities and NaN are handled correctly.
_FAST = {"fastmath": {"reassoc", "contract", "nsz"}}


_WRITTEN: dict[Callable[..., Any], frozenset[str]] = {}


_READY: dict[tuple[Any, ...], Callable[..., Any]] = {}


_COMPILING = threading.Lock()


def run(loop: Callable[..., Any], *args: Any) -> Any:
    """Call a loop; compile it first if there is no compiled version for the types of the arguments.

    Arrays that a loop only reads are declared read-only, so that the compiled version also accepts memory-mapped
    arrays.
    """
    kinds = (loop, *map(typeof, args))
    compiled = _READY.get(kinds)
    if compiled is None:
        names, written = loop.__code__.co_varnames, _WRITTEN[loop]
        pairs = zip(names, kinds[1:], strict=False)
        signature = tuple(kind if name in written else _read_only(kind) for name, kind in pairs)
        with _COMPILING:
            compiled = _READY.get((loop, *signature)) or _compile(loop, signature)
            _READY[(loop, *signature)] = _READY[kinds] = compiled
    return compiled(*args)


def _compile(loop: Callable[..., Any], signature: tuple[types.Type, ...]) -> Callable[..., Any]:
    notice = threading.Timer(1.0, _say_compiling)
    notice.daemon = True
    notice.start()
    # With an explicit signature, arguments are converted instead of triggering another compilation for their exact
    # types.
    try:
        found: Callable[..., Any] = njit([signature], cache=True, nogil=True, **_FAST)(loop)
        return found
    except RuntimeError as error:
        if "locator" not in str(error):
            raise
        # There is no writable cache directory: the loop is compiled in each process.
        result: Callable[..., Any] = njit([signature], nogil=True, **_FAST)(loop)
        return result
    finally:
        notice.cancel()


def _say_compiling() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("rocmax: compiling a loop for this machine; this is done once and takes a few seconds\n")
        sys.stderr.flush()


def _read_only(kind: types.Type) -> types.Type:
    if isinstance(kind, types.Array):
        return kind.copy(readonly=True)
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_read_only(part) for part in kind])
    return kind


def _loop(*written: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a loop that writes to the named arrays."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _WRITTEN[function] = frozenset(written)
        return function

    return register


def _either(first: Callable[..., Any], second: Callable[..., Any], is_first: Callable[[Any], bool]) -> Any:
    """Return an operation that compiles to one of two functions, depending on the type of its first argument."""

    def operation(*_: Any) -> Any:
        raise NotImplementedError("for compiled code only")

    @overload(operation, jit_options=_FAST, strict=False)  # type: ignore[untyped-decorator]  # numba has no types
    def choose(kind: Any, *_: Any) -> Callable[..., Any]:
        return first if is_first(kind) else second

    return operation


def _on_rows(dense: Callable[..., Any], csr: Callable[..., Any]) -> Any:
    return _either(dense, csr, lambda kind: isinstance(kind, types.Array))


def _on_covariance(diagonal: Callable[..., Any], full: Callable[..., Any]) -> Any:
    return _either(diagonal, full, lambda kind: kind.ndim == 1)
