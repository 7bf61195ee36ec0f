"""Checks before a command runs, and the display of its errors."""

from __future__ import annotations

import functools
import importlib
import os
import shlex
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import combinations
from pathlib import Path
from typing import Any, get_type_hints

import typer

from rocmax._atomic import check_not_input, check_output, same_file
from rocmax._exit import error_text
from rocmax._messages import Caution, Parameter, ParameterError, render
from rocmax._packages import need
from rocmax.cli._screen import screen, visible, working
from rocmax.cli._warnings import warnings_shown

# Errors that are shown to the user as one line; any other error is a bug and shows its traceback.
USER_ERRORS = (ValueError, OSError, ImportError, TypeError)
# Options for output files; every other path of a command is an input.
OUTPUTS = {"out": "--out", "resume": "--resume"}
# Parameters of the workflow whose flags have other names; None if there is no flag.
FLAGS = {"n_jobs": "--jobs", "n_splits": "--splits", "random_state": "--seed", "store": "--resume", "types": None}
# Options of the command that runs.
running_flags: ContextVar[set[str]] = ContextVar("running_flags")
# Flags for parameters that are False.
NEGATED = {"day_first": "--month-first"}


def guarded(*packages: str, prints: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Check packages, files and standard output before a command, and convert its errors to a line and an exit code.

    Parameters
    ----------
    *packages : str
        Optional packages that the command imports.
    prints : bool, default=False
        Whether the command always writes to standard output; otherwise, it does so only without ``--out``.

    Returns
    -------
    callable
        Decorator. The exit codes are 1 for invalid data and files, and 2 for invalid options, as in typer.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        flags = _flags(command)

        @functools.wraps(command)
        def run(*args: Any, **options: Any) -> None:
            running_flags.set(flags)
            try:
                with warnings_shown(lambda text: screen.print(f"Warning: {text}")):
                    _import(packages)
                    _check_files(options, prints)
                    command(*args, **options)
            except BrokenPipeError:
                raise
            except ParameterError as error:
                raise typer.BadParameter(visible(render(error, as_flag))) from None
            except USER_ERRORS as error:
                if options.get("verbose"):
                    traceback.print_exc()
                text = error_text(error) if isinstance(error, OSError) else render(error, as_flag)
                screen.print(f"Error: {text}")
                raise typer.Exit(1) from None

        return run

    return decorate


def _import(packages: tuple[str, ...]) -> None:
    """Import what a command needs, which takes seconds, with a status on a terminal; name a package that is missing."""
    with working("starting"):
        for package in packages:
            need(package)
        if "pandas" in packages:
            importlib.import_module("rocmax.workflow")


def as_flag(parameter: Parameter) -> str | None:
    """Return a parameter of the workflow as a flag of the running command; None if the command has no such flag."""
    flag = FLAGS.get(parameter.name, _flag(parameter.name))
    if parameter.value is False:
        flag = NEGATED[parameter.name]
    if flag is None or flag not in running_flags.get():
        return None
    if parameter.value in (None, ..., True, False):
        return flag
    values = parameter.value if isinstance(parameter.value, list) else [parameter.value]
    return " ".join(f"{flag} {shlex.quote(str(value))}" for value in values)


def _flags(command: Callable[..., None]) -> set[str]:
    """Return the options of a command, as they are typed."""
    flags: set[str] = set()
    for name, kind in get_type_hints(command, include_extras=True).items():
        for option in getattr(kind, "__metadata__", ()):
            if isinstance(option, typer.models.OptionInfo):
                # In an annotation, the first name is where the default would be.
                texts = [text for text in (option.default, *(option.param_decls or ())) if isinstance(text, str)]
                flags |= {flag for text in texts or [_flag(name)] for flag in text.split("/")}
    return flags


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def note(text: str) -> None:
    """Print a note of the workflow, or a warning if it is one."""
    screen.print(f"{'Warning' if isinstance(text, Caution) else 'Note'}: {render(text, as_flag)}")


def _check_files(options: dict[str, Any], prints: bool) -> None:
    """Raise an error if an output file is also an input, is written twice, or cannot be written."""
    outputs = [(OUTPUTS[name], path) for name, path in options.items() if name in OUTPUTS and path is not None]
    inputs = list(_paths(value for name, value in options.items() if name not in OUTPUTS))
    if prints or (not outputs and "out" in options):
        _check_stdout(inputs)
    for _, path in outputs:
        check_not_input(path, inputs)
        check_output(path)
    for (first, path), (second, other) in combinations(outputs, 2):
        if same_file(path, other):
            raise ValueError(f"{first} and {second} must be different files; got {other} for both")


def _paths(values: Iterator[Any]) -> Iterator[Path]:
    for value in values:
        if isinstance(value, Path):
            yield value
        elif isinstance(value, list):
            yield from _paths(iter(value))


def _check_stdout(inputs: list[Path]) -> None:
    if sys.stdout is None:
        raise ValueError("standard output must be open; redirect it to a file or to /dev/null")
    try:
        out = os.fstat(sys.stdout.fileno())
    except OSError:  # not an operating-system file, as in tests and notebooks
        return
    for path in inputs:
        if stat.S_ISREG(out.st_mode) and path.exists() and os.path.samestat(out, path.stat()):
            raise ValueError(f"standard output must not be redirected to the input {path}; redirect it to another file")
