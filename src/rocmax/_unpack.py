"""How far compressed files may unpack, so that a small file cannot fill the memory."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np

from rocmax._messages import Message, Parameter

# Without a limit from the user: this many bytes, or this many times the size of the file if that is more. Tables of
# text rarely shrink to less than a fiftieth.
LEAST_LIMIT = 1 << 28
RATIO = 100
# Members are read in pieces, because the size that an archive declares may be false.
_PIECE = 1 << 20


class UnpackLimitError(ValueError):
    """A file that unpacks to more than is allowed."""


def unpack_limit(packed_size: int, max_bytes: int | None) -> int:
    """Return how many bytes a file may unpack to.

    Parameters
    ----------
    packed_size : int
        Size of the file.
    max_bytes : int or None
        The limit if the user gave one; None for the default, 256 MiB or 100 times the size of the file.

    Returns
    -------
    int
        The limit.
    """
    if max_bytes is None:
        return max(LEAST_LIMIT, RATIO * packed_size)
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int | np.integer) or max_bytes < 1:
        raise ValueError(f"max_bytes needs an integer of at least 1, or None; got {max_bytes!r}")
    return int(max_bytes)


def beyond_limit(path: object, limit: int) -> Message:
    """Say that a file unpacks to too much, and what to do about it."""
    found = f"{path} unpacks to more than {limit:,} bytes, the limit for this file; if you trust it, raise the limit"
    return Message(found, " (", Parameter("max_bytes", ...), ")")


def read_archive(content: bytes, limit: int) -> tuple[dict[str, bytes], int]:
    """Return the members of a zip archive and the bytes that they unpack to, with those of archives inside.

    Raises UnpackLimitError if that is more than ``limit``, and what zipfile raises for a damaged archive.
    """
    members: dict[str, bytes] = {}
    total = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(info.file_size for info in archive.infolist()) > limit:
            raise UnpackLimitError
        for info in archive.infolist():
            if info.filename in members:
                raise zipfile.BadZipFile(f"two members are named {info.filename!r}")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"{info.filename!r} is compressed by method {info.compress_type}, not deflate")
            members[info.filename] = _read_member(archive, info.filename)
            total += len(members[info.filename])
    return members, total


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    pieces = []
    with archive.open(name) as stream:
        while piece := stream.read(_PIECE):
            pieces.append(piece)
    return b"".join(pieces)


def model_size(members: dict[str, bytes], limit: int) -> int:
    """Return the bytes of the arrays that a skops archive builds: each time that one is named it is read again."""
    sizes = {name: len(member) for name, member in members.items()}
    for name, member in members.items():
        if member.startswith(b"PK\x03\x04"):  # sparse matrices are archives themselves
            sizes[name] += read_archive(member, limit)[1]
    total, nodes = 0, [json.loads(members["schema.json"])]
    while nodes:
        node: Any = nodes.pop()
        if isinstance(node, dict):
            total += sizes.get(node["file"], 0) if isinstance(node.get("file"), str) else 0
            nodes.extend(node.values())
        elif isinstance(node, list):
            nodes.extend(node)
        if total > limit:
            raise UnpackLimitError
    return total
