"""Atomic writing of files; used for every file that rocmax writes."""

from __future__ import annotations

import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

if sys.platform != "win32":
    import fcntl

# Temporary names are short, so that they are valid wherever the name of the output is.
_PART = re.compile(r"\.rocmax-(\d+)-[0-9a-f]{8}\.part")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_BUFFER = 1 << 20
_parts: set[Path] = set()
_stopped_by: list[int] = []


def check_output(path: str | Path) -> None:
    """Raise OSError if a path cannot be written; called before any expensive work.

    Parameters
    ----------
    path : str or Path
        New file, existing file to replace, link to a file, or special file.
    """
    path = Path(path)
    found = _found(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"the output must be a file; got the directory {path}")
    if found is not None and _descriptor(path) is None:
        _check_rights(path, found)
    if is_special(path):
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is not a directory, so {path.name} cannot be written there")
    if found is not None:
        _check_sticky(path, target, found)
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
    """Raise ValueError if an output file is also an input.

    Parameters
    ----------
    path : str or Path
        Output file.
    inputs : iterable of str or Path
        Input files.
    """
    for other in inputs:
        if same_file(path, other):
            same = "" if Path(path) == Path(other) else f", the same file as the input {other}"
            raise ValueError(f"the output must not be an input; got {path}{same}. Give another name")


def is_special(path: str | Path) -> bool:
    """Return whether a path is written directly: a device, a FIFO, or an open file such as ``/dev/stdout``."""
    path = Path(path)
    found = _found(path)
    return _descriptor(path) is not None or (found is not None and not stat.S_ISREG(found.st_mode))


@contextmanager
def output_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, which replaces the file at the end and is removed after an error.

    An existing file is kept until then; the new file has its mode, and its owner if that is permitted. If the path is a
    link, its target is replaced. A special file is written directly.

    Parameters
    ----------
    path : str or Path
        Output file.

    Yields
    ------
    binary file
        File open for writing.
    """
    check_stopped()
    path = Path(path)
    check_output(path)
    if is_special(path):
        with _direct(path) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    remove_stale(target.parent)
    with _part_beside(target) as part:
        with _create(part, target, path) as file:
            yield file
        check_stopped()
        part.replace(target)


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file atomically, with :func:`output_file`."""
    with output_file(path) as file:
        file.write(content)


def append_line(path: str | Path, line: str) -> None:
    """Append a line to a file, which is created if necessary; after an incomplete line, start a new one."""
    with _Raw(path, "a+", Path(path)) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        start = "" if file.read() in (b"", b"\n") else "\n"
        file.write(f"{start}{line}\n".encode())


def stop_writing(code: int) -> None:
    """Remove the temporary files of this process, and complete none from now on; for signal handlers.

    The SystemExit of a handler may be raised where a C library discards it. Later writes therefore raise it again.

    Parameters
    ----------
    code : int
        Exit code.
    """
    _stopped_by.append(code)
    for part in list(_parts):
        part.unlink(missing_ok=True)


def check_stopped() -> None:
    """Raise SystemExit if a signal has ended the writing of files."""
    if _stopped_by:
        raise SystemExit(_stopped_by[0])


def remove_stale(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder."""
    if sys.platform == "win32":  # os.kill(pid, 0) would terminate the process
        return
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if _PART.fullmatch(entry.name)]
    for name in names:
        pid = int(cast(re.Match[str], _PART.fullmatch(name))[1])
        if not _lives(pid) and not _locked(folder / name):
            (folder / name).unlink(missing_ok=True)


class _Raw(io.FileIO):
    """File whose errors contain the path of the output."""

    def __init__(self, file: Any, mode: str, path: Path, opener: Any = None) -> None:
        self.path = path
        super().__init__(file, mode, opener=opener)

    def write(self, content: Any, /) -> int:
        with self.named():
            return cast(int, super().write(content))

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add the path of the output to operating-system errors."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None


def _found(path: Path) -> os.stat_result | None:
    """Return the stat result of a path, with links resolved, or None if there is no file."""
    number = _descriptor(path)
    try:
        return os.stat(path) if number is None else os.fstat(number)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}") from None


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of a path to an open file, such as ``/dev/stdout``, or None for other paths."""
    text = os.path.abspath(path)
    match = _DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match else _STREAMS.get(text)


def _check_rights(path: Path, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if not mode & 0o222:  # root could write here, but probably by mistake
        raise PermissionError(f"{path} is write-protected (mode {mode:04o}); remove it or pass another name")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written: it belongs to another user or is protected")


def _check_sticky(path: Path, target: Path, found: os.stat_result) -> None:
    """Raise PermissionError if only the owner may replace the file in its folder, as in /tmp."""
    folder = target.parent.stat()
    if sys.platform != "win32" and folder.st_mode & stat.S_ISVTX:
        user = os.geteuid()
        if user not in (0, found.st_uid, folder.st_uid):
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


@contextmanager
def _create(part: Path, target: Path, path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file with the permissions of the file to replace, locked to mark it as in use."""
    old = _found(target)
    # A new file follows the umask; a replacement of a private file is never readable by others.
    mode = 0o666 if old is None else 0o600
    raw = _Raw(part, "x", path, opener=lambda name, flags: os.open(name, flags, mode))
    with _buffered(raw) as file:
        if sys.platform != "win32":
            with suppress(OSError):  # some file systems do not support locks
                fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if old is not None:
            _keep_rights(part, old)
        yield file
        file.flush()
        with raw.named():
            os.fsync(raw.fileno())


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


@contextmanager
def _direct(path: Path) -> Iterator[BinaryIO]:
    number = _descriptor(path)
    if number == 1 and sys.stdout is not None:
        sys.stdout.flush()
    with _buffered(_Raw(path if number is None else os.dup(number), "w", path)) as file:
        yield file


@contextmanager
def _buffered(raw: _Raw) -> Iterator[BinaryIO]:
    """Yield a buffered writer of a file; after an error, the buffer is discarded."""
    file = io.BufferedWriter(raw, _BUFFER)
    try:
        yield cast(BinaryIO, file)
        file.flush()
    finally:
        raw.close()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _locked(part: Path) -> bool:
    """Return whether a process, possibly on another machine, has a file open; True if that is unknown."""
    try:
        with part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
