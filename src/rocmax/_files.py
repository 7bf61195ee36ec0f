"""Files that are written whole or not at all, cleanup after signals, and limits on decompressed sizes."""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np

from rocmax._support import Message, Parameter

if sys.platform != "win32":
    import fcntl

# Atomic writing of files; used for every file that rocmax writes.


# Temporary names are short, so that they are valid wherever the name of the output is. Files of `tempfile` would ignore
# the umask, and their names would not say whose they are.
_PART = re.compile(r"\.rocmax-(\d+)-[0-9a-f]{8}\.part")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr")
_parts: set[Path] = set()
_stopped_by: list[int] = []


def check_output(path: str | Path) -> None:
    """Raise OSError if a path cannot be written; called before any expensive work."""
    path = Path(path)
    found = _found(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"the output must be a file; got the directory {path}")
    target = Path(os.path.realpath(path))
    if found is not None and _descriptor(path) is None:
        _check_rights(path, target, found)
    if is_special(path):
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is not a directory, so {path.name} cannot be written there")
    with _part_beside(target) as part:
        try:
            part.touch(exist_ok=False)  # the only reliable check of permissions and read-only file systems
        except OSError as error:
            reason = f"no file can be created in {target.parent} ({error.strerror})"
            raise type(error)(f"{path} cannot be written: {reason}") from None


def same_file(first: str | Path, second: str | Path) -> bool:
    """Return whether two paths refer to the same file, with links resolved; the files need not exist."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def check_not_input(path: str | Path, inputs: Iterable[str | Path]) -> None:
    """Raise ValueError if an output file is also an input."""
    for other in inputs:
        if same_file(path, other):
            same = "" if Path(path) == Path(other) else f", the same file as the input {other}"
            raise ValueError(f"the output must not be an input; got {path}{same}. Give another name")


def is_special(path: str | Path) -> bool:
    """Return whether a path is written directly: a device, a FIFO, or an open file such as ``/dev/stdout``."""
    found = _found(Path(path))
    return _descriptor(path) is not None or (found is not None and not stat.S_ISREG(found.st_mode))


@contextmanager
def output_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, which replaces the file at the end and is removed after an error.

    An existing file is kept until then; the new file has its mode, and its owner if that is permitted. If the path is a
    link, its target is replaced. A special file is written directly.
    """
    check_stopped()
    path = Path(path)
    check_output(path)
    if is_special(path):
        number = _descriptor(path)
        if number == 1 and sys.stdout is not None:
            sys.stdout.flush()
        with _writer(path, path if number is None else os.dup(number), "w") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    _remove_stale(target.parent)
    old = _found(target)
    # A new file follows the umask; the replacement of a private file is private from the start.
    mode = 0o666 if old is None else 0o600
    with _part_beside(target) as part:
        with _writer(path, part, "x", lambda name, flags: os.open(name, flags, mode)) as file:
            if sys.platform != "win32":
                with suppress(OSError):  # some file systems do not support locks
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if old is not None:
                _keep_rights(part, old)
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_stopped()
        part.replace(target)


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file atomically, with :func:`output_file`."""
    with output_file(path) as file:
        file.write(content)


def append_line(path: str | Path, line: str) -> None:
    """Append a line to a file, which is created if necessary; after an incomplete line, start a new one."""
    with _naming(path), open(path, "a+b") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        start = "" if file.read() in (b"", b"\n") else "\n"
        file.write(f"{start}{line}\n".encode())


def check_stopped() -> None:
    """Raise SystemExit if a signal has ended the writing of files."""
    if _stopped_by:
        raise SystemExit(_stopped_by[0])


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Add the path of the output to errors of the operating system that name no file."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def _writer(path: Path, file: Path | int, mode: str, opener: Any = None) -> Iterator[BinaryIO]:
    """Open a file or descriptor for writing to an output; after an error, what is still in the buffer is discarded."""
    with _naming(path), io.FileIO(file, mode, opener=opener) as raw:
        buffered = io.BufferedWriter(raw)
        yield cast(BinaryIO, buffered)
        buffered.flush()


def _found(path: Path) -> os.stat_result | None:
    """Return the stat result of a path, with links resolved, or None if there is no file."""
    number = _descriptor(path)
    try:
        return os.stat(path if number is None else number)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}") from None


def _descriptor(path: str | Path) -> int | None:
    """Return the descriptor of a path to an open file, such as ``/dev/stdout``, or None for other paths."""
    text = os.path.abspath(path)
    match = _DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match else _STREAMS.index(text) if text in _STREAMS else None


def _check_rights(path: Path, target: Path, found: os.stat_result) -> None:
    """Raise PermissionError if a file is protected, or if only its owner may replace it in its folder, as in /tmp."""
    mode = stat.S_IMODE(found.st_mode)
    if not mode & 0o222:  # root could write here, but probably by mistake
        raise PermissionError(f"{path} is write-protected (mode {mode:04o}); remove it or pass another name")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written: it belongs to another user or is protected")
    folder = target.parent.stat()
    if sys.platform != "win32" and stat.S_ISREG(found.st_mode) and folder.st_mode & stat.S_ISVTX:
        if os.geteuid() not in (0, found.st_uid, folder.st_uid):
            raise PermissionError(f"{path} belongs to another user; only the owner can replace it in {target.parent}")


@contextmanager
def _part_beside(target: Path) -> Iterator[Path]:
    """Yield a new temporary name beside the target; a file with this name is always removed at the end."""
    part = target.parent / f".rocmax-{os.getpid()}-{secrets.token_hex(4)}.part"
    _parts.add(part)
    try:
        yield part
    except OSError:
        check_stopped()
        raise
    finally:
        part.unlink(missing_ok=True)
        _parts.discard(part)


def _keep_rights(part: Path, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode)
    new = part.stat()
    if sys.platform != "win32" and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.chown(part, -1, old.st_gid)
            os.chown(part, old.st_uid, -1)
        except PermissionError:
            if part.stat().st_gid != old.st_gid:  # another group gets the permissions of others
                mode = (mode & ~0o070) | ((mode & 0o007) << 3)
    part.chmod(mode)


def _remove_stale(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder, if no process, here or elsewhere, has them open."""
    if sys.platform == "win32":  # os.kill(pid, 0) would terminate the process
        return
    for part in list(folder.glob(".rocmax-*.part")):
        found = _PART.fullmatch(part.name)
        if not found or _lives(int(found[1])):
            continue
        with suppress(OSError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


# Termination of the program: signals, closed pipes, and errors of standard output.


# Errors of writing to a stream, which has no file name.
STREAM_ERRORS = (errno.EBADF, errno.EFBIG, errno.EIO, errno.ENOSPC)


def run(program: Callable[[], int]) -> NoReturn:
    """Run a program and exit with its code; remove incomplete files if a signal terminates it."""
    # The descriptors of closed standard streams are opened, so that no output file gets one of them.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for number in _signals():
        # Keep ignored signals ignored, as for nohup and background jobs.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    code: int | str | None
    try:
        code = program()
        check_stopped()
    except SystemExit as stop:
        # The command-line parser converts a broken pipe to SystemExit. A shell reports 141 for SIGPIPE.
        code = 141 if isinstance(stop.__context__, BrokenPipeError) else stop.code
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and error.errno not in STREAM_ERRORS:
            raise
        code = _stdout_failed(error)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        code = _stdout_failed(error, code)
    if code == 128 + signal.SIGINT:
        _write_stderr("Interrupted")
    sys.exit(code)


def error_text(error: BaseException) -> str:
    """Return the message of an error for the user."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    place = error.filename or ("standard output" if error.errno in STREAM_ERRORS else None)
    return error.strerror if place is None else f"{place}: {error.strerror}"


def _signals() -> list[int]:
    names = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _stop_writing(code: int) -> None:
    """Remove the temporary files of this process, and complete none from now on.

    The SystemExit of a handler may be raised where a C library discards it. Later writes therefore raise it again.
    """
    _stopped_by.append(code)
    for part in list(_parts):
        part.unlink(missing_ok=True)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    _stop_writing(128 + number)
    for other in _signals():
        if signal.getsignal(other) is _end:
            signal.signal(other, _end_now)
    sys.exit(128 + number)


def _end_now(number: int, frame: FrameType | None) -> NoReturn:
    """Exit immediately: this is the second signal."""
    _stop_writing(128 + number)
    os._exit(128 + number)


def _stdout_failed(error: OSError, code: int | str | None = None) -> int | str:
    """Return the exit code after an error of standard output; it is reported unless the program failed before."""
    # The null device keeps the interpreter from failing again at exit.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return 141
    if code:
        return code
    _write_stderr(f"Error: {error_text(error)}")
    return 1


def _write_stderr(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")


# Limits on the decompressed size of files, so that a small file cannot fill the memory.


# Default limit: the larger of LEAST_LIMIT bytes and 100 times the size of the file. Text tables are rarely compressed
# by a factor of more than 50.
LEAST_LIMIT = 1 << 28


def unpack_limit(compressed_size: int, max_bytes: int | None) -> int:
    """Return the maximum decompressed size of a file: that of the user, or the default if it is None."""
    if max_bytes is None:
        return max(LEAST_LIMIT, 100 * compressed_size)
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int | np.integer) or max_bytes < 1:
        raise ValueError(f"max_bytes must be an integer of at least 1, or None; got {max_bytes!r}")
    return int(max_bytes)


def beyond_limit(path: object, limit: int) -> Message:
    """Return the message for a file whose decompressed size exceeds the limit."""
    found = f"{path} must not exceed the limit of {limit:,} bytes decompressed; if you trust it, increase the limit"
    return Message(found, " (", Parameter("max_bytes", ...), ")")
