"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_place(path: str | Path) -> None:
    """Refuse a place where no file can be written, before any work is done for it."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; a file is needed")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a directory, so {path.name} cannot be written there")


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a new file beside ``path`` to write to; it takes that name at the end, and is removed after an error."""
    check_place(path)
    path = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        # mkstemp makes the file private; give it the rights that an ordinary new file has.
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
