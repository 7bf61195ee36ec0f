"""Files that appear whole or not at all: every file that rocmax writes is written here."""

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

# The name is short, so that every name that the file system takes for the output has room for its part.
_PART = re.compile(r"\.rocmax-(\d+)-[0-9a-f]{8}\.part")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_BUFFER = 1 << 20
_parts: set[Path] = set()


def check_output(path: str | Path) -> None:
    """Raise OSError if a file cannot be written to a path, before any work is done for it.

    Parameters
    ----------
    path : str or Path
        The file: a new one, an old one to replace, a link to one, or a special file.
    """
    path = Path(path)
    found = _found(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a directory; a file is needed")
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
            part.touch(exist_ok=False)  # the only sure way to know: rights, read-only disks, folders of the system
        except OSError as error:
            reason = f"no file can be made in {target.parent} ({error.strerror})"
            raise type(error)(f"{path} cannot be written: {reason}") from None


def same_file(first: str | Path, second: str | Path) -> bool:
    """Whether two paths lead to one file, through links of both kinds; neither needs to exist."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def check_not_input(path: str | Path, inputs: Iterable[str | Path]) -> None:
    """Raise ValueError if a file to write is one of those that are read.

    Parameters
    ----------
    path : str or Path
        The file to write.
    inputs : iterable of str or Path
        The files that are read.
    """
    for other in inputs:
        if same_file(path, other):
            same = "an input too" if Path(path) == Path(other) else f"the same file as the input {other}"
            raise ValueError(f"the output {path} is {same}; give another name")


def is_special(path: str | Path) -> bool:
    """Whether a path leads to what is written to directly: a device, a FIFO, an open file such as ``/dev/stdout``."""
    path = Path(path)
    found = _found(path)
    return _descriptor(path) is not None or (found is not None and not stat.S_ISREG(found.st_mode))


@contextmanager
def output_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name at the end, and is removed after an error.

    The file that had the name before stays until then; the new one keeps its mode, and its owner where that is allowed.
    The target of a link is replaced, not the link. A special file is written to directly.

    Parameters
    ----------
    path : str or Path
        The file.

    Yields
    ------
    binary file
        Where to write the content.
    """
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
        part.replace(target)


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all, as :func:`output_file` does."""
    with output_file(path) as file:
        file.write(content)


def append_line(path: str | Path, line: str) -> None:
    """Add a line to a file, which is made if it is not there; after a line that was cut, a new one begins."""
    with _Raw(path, "a+", Path(path)) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        start = "" if file.read() in (b"", b"\n") else "\n"
        file.write(f"{start}{line}\n".encode())


def remove_parts() -> None:
    """Remove what this process has written halfway: for a handler of signals."""
    for part in list(_parts):
        part.unlink(missing_ok=True)


def remove_stale(folder: Path) -> None:
    """Remove from a folder the parts of processes that were killed."""
    if sys.platform == "win32":  # there, to ask whether a process lives is to interrupt it
        return
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if _PART.fullmatch(entry.name)]
    for name in names:
        pid = int(cast(re.Match[str], _PART.fullmatch(name))[1])
        if not _lives(pid) and not _locked(folder / name):
            (folder / name).unlink(missing_ok=True)


class _Raw(io.FileIO):
    """A file whose errors name the output that the user gave."""

    def __init__(self, file: Any, mode: str, path: Path, opener: Any = None) -> None:
        self.path = path
        super().__init__(file, mode, opener=opener)

    def write(self, content: Any, /) -> int:
        with self.named():
            return cast(int, super().write(content))

    @contextmanager
    def named(self) -> Iterator[None]:
        """Put the name of the output into errors of the system."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None


def _found(path: Path) -> os.stat_result | None:
    """Return what is known of the file that a path leads to, None if there is none."""
    number = _descriptor(path)
    try:
        return os.stat(path) if number is None else os.fstat(number)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}") from None


def _descriptor(path: Path) -> int | None:
    """Return the number of an open file that a path stands for, such as ``/dev/stdout``."""
    text = os.path.abspath(path)
    match = _DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match else _STREAMS.get(text)


def _check_rights(path: Path, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if not mode & 0o222:  # the system lets root write here, and root may not mean it
        raise PermissionError(f"{path} is write-protected (mode {mode:04o}); remove it, or give another name")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{path} belongs to another user, or is protected: it cannot be written")


def _check_sticky(path: Path, target: Path, found: os.stat_result) -> None:
    """Raise PermissionError if the folder lets only the owner of a file replace it, as /tmp does."""
    folder = target.parent.stat()
    if sys.platform != "win32" and folder.st_mode & stat.S_ISVTX:
        user = os.geteuid()
        if user not in (0, found.st_uid, folder.st_uid):
            raise PermissionError(f"{path} belongs to another user, and {target.parent} lets only that one replace it")


@contextmanager
def _part_beside(target: Path) -> Iterator[Path]:
    """Give a name that no file has; a file of that name is removed at the end, whatever happens."""
    part = target.parent / f".rocmax-{os.getpid()}-{secrets.token_hex(4)}.part"
    _parts.add(part)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        _parts.discard(part)


@contextmanager
def _create(part: Path, target: Path, path: Path) -> Iterator[BinaryIO]:
    """Open a new part with the rights of the file that it will replace; locked, so that it is not taken for stale."""
    old = _found(target)
    # A new file obeys the umask; one that replaces a private file is never readable by others.
    mode = 0o666 if old is None else 0o600
    raw = _Raw(part, "x", path, opener=lambda name, flags: os.open(name, flags, mode))
    with _buffered(raw) as file:
        if sys.platform != "win32":
            with suppress(OSError):  # some file systems have no locks
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
            if part.stat().st_gid != old.st_gid:  # another group gets the rights of everybody
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
    """Give a buffer before a file; after an error what is still in it is not written."""
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
    """Whether a process holds a part open, perhaps on another machine; True if that cannot be told."""
    try:
        with part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
