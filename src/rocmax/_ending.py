"""How the program ends: signals, closed pipes, standard output that cannot be written."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from rocmax._atomic import remove_parts

# What a shell reports of a program that SIGPIPE ended.
BROKEN_PIPE = 141
# What writing to a stream, which has no name, can give.
STREAM_ERRORS = (errno.EBADF, errno.EFBIG, errno.EIO, errno.ENOSPC)


def run(program: Callable[[], int]) -> NoReturn:
    """Run a program and exit with its code; files half written are removed when a signal ends it.

    Parameters
    ----------
    program : callable
        Returns the exit code.
    """
    _open_closed_streams()
    _catch_signals()
    code: int | str | None
    try:
        sys.exit(program())
    except BrokenPipeError:
        _drop_stdout()
        code = BROKEN_PIPE
    except OSError as error:
        if error.errno not in STREAM_ERRORS:
            raise
        code = _refused_by_stdout(error)
    except SystemExit as stop:
        code = _exit_code(stop)
    sys.exit(code)


def error_text(error: BaseException) -> str:
    """Return what a user is told about an error."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    place = error.filename or ("standard output" if error.errno in STREAM_ERRORS else None)
    return error.strerror if place is None else f"{place}: {error.strerror}"


def _open_closed_streams() -> None:
    """Fill the numbers of closed standard streams, so that no output file is opened under one of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _catch_signals() -> None:
    """Remove files half written, and exit with 128 plus its number, when a signal ends the program."""
    for number in _signals():
        # One that is ignored stays so: nohup, and jobs in the background.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _exit_code(stop: SystemExit) -> int | str | None:
    """Write what is left in the buffer of standard output; return the code to exit with."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    except OSError as error:
        if stop.code == 0:
            return _refused_by_stdout(error)
        _drop_stdout()
        return stop.code
    # The parser of the command line turns a broken pipe into an exit.
    if isinstance(stop.__context__, BrokenPipeError):
        _drop_stdout()
        return BROKEN_PIPE
    if stop.code == 128 + signal.SIGINT:
        _tell("Interrupted")
    return stop.code


def _signals() -> list[int]:
    names = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _end(number: int, frame: FrameType | None) -> NoReturn:
    remove_parts()
    for other in _signals():
        if signal.getsignal(other) is _end:
            signal.signal(other, _end_now)
    sys.exit(128 + number)


def _end_now(number: int, frame: FrameType | None) -> NoReturn:
    """End without tidying up: the user has asked again."""
    remove_parts()
    os._exit(128 + number)


def _refused_by_stdout(error: OSError) -> int:
    _drop_stdout()
    _tell(f"Error: {error_text(error)}")
    return 1


def _tell(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")


def _drop_stdout() -> None:
    """Direct standard output to nowhere, so that the interpreter does not fail on it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
