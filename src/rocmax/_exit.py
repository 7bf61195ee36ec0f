"""Termination of the program: signals, closed pipes, and errors of standard output."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from rocmax._atomic import check_stopped, stop_writing

# Exit code that a shell reports for a program terminated by SIGPIPE.
BROKEN_PIPE = 141
# Errors of writing to a stream, which has no file name.
STREAM_ERRORS = (errno.EBADF, errno.EFBIG, errno.EIO, errno.ENOSPC)


def run(program: Callable[[], int]) -> NoReturn:
    """Run a program and exit with its code; remove incomplete files if a signal terminates it.

    Parameters
    ----------
    program : callable
        Function that returns the exit code.
    """
    _open_closed_streams()
    _catch_signals()
    code: int | str | None
    try:
        code = program()
        check_stopped()
        sys.exit(code)
    except BrokenPipeError:
        _drop_stdout()
        code = BROKEN_PIPE
    except OSError as error:
        if error.errno not in STREAM_ERRORS:
            raise
        code = _report_stdout_error(error)
    except SystemExit as stop:
        code = _exit_code(stop)
    sys.exit(code)


def error_text(error: BaseException) -> str:
    """Return the message of an error for the user."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    place = error.filename or ("standard output" if error.errno in STREAM_ERRORS else None)
    return error.strerror if place is None else f"{place}: {error.strerror}"


def _open_closed_streams() -> None:
    """Open the descriptors of closed standard streams, so that no output file gets one of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _catch_signals() -> None:
    """Install handlers that remove incomplete files and exit with 128 plus the number of the signal."""
    for number in _signals():
        # Keep ignored signals ignored, as for nohup and background jobs.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _exit_code(stop: SystemExit) -> int | str | None:
    """Flush standard output and return the exit code."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    except OSError as error:
        if stop.code == 0:
            return _report_stdout_error(error)
        _drop_stdout()
        return stop.code
    # The command-line parser converts a broken pipe to SystemExit.
    if isinstance(stop.__context__, BrokenPipeError):
        _drop_stdout()
        return BROKEN_PIPE
    if stop.code == 128 + signal.SIGINT:
        _write_stderr("Interrupted")
    return stop.code


def _signals() -> list[int]:
    names = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _end(number: int, frame: FrameType | None) -> NoReturn:
    stop_writing(128 + number)
    for other in _signals():
        if signal.getsignal(other) is _end:
            signal.signal(other, _end_now)
    sys.exit(128 + number)


def _end_now(number: int, frame: FrameType | None) -> NoReturn:
    """Exit immediately: this is the second signal."""
    stop_writing(128 + number)
    os._exit(128 + number)


def _report_stdout_error(error: OSError) -> int:
    _drop_stdout()
    _write_stderr(f"Error: {error_text(error)}")
    return 1


def _write_stderr(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")


def _drop_stdout() -> None:
    """Redirect standard output to the null device, so that the interpreter does not fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
