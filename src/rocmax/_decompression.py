"""Limits on the decompressed size of files, so that a small file cannot fill the memory."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np

from rocmax._messages import Message, Parameter

# Default limit: the larger of LEAST_LIMIT bytes and RATIO times the size of the file. Text tables are rarely
# compressed by a factor of more than 50.
LEAST_LIMIT = 1 << 28
RATIO = 100
# Members are read in pieces because the declared size in an archive may be wrong.
_PIECE = 1 << 20


class UnpackLimitError(ValueError):
    """Error about a file whose decompressed size exceeds the limit."""


def unpack_limit(compressed_size: int, max_bytes: int | None) -> int:
    """Return the maximum decompressed size of a file, in bytes.

    Parameters
    ----------
    compressed_size : int
        Size of the file.
    max_bytes : int or None
        Limit of the user; None for the default, the larger of 256 MiB and 100 times the size of the file.

    Returns
    -------
    int
        The limit.
    """
    if max_bytes is None:
        return max(LEAST_LIMIT, RATIO * compressed_size)
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int | np.integer) or max_bytes < 1:
        raise ValueError(f"max_bytes must be an integer of at least 1, or None; got {max_bytes!r}")
    return int(max_bytes)


def beyond_limit(path: object, limit: int) -> Message:
    """Return the message for a file whose decompressed size exceeds the limit."""
    found = f"{path} must not exceed the limit of {limit:,} bytes decompressed; if you trust it, increase the limit"
    return Message(found, " (", Parameter("max_bytes", ...), ")")


def read_archive(content: bytes, limit: int) -> tuple[dict[str, bytes], int]:
    """Return the members of a zip archive and their total decompressed size.

    Raise UnpackLimitError if the size exceeds ``limit``, and the errors of zipfile if the archive is damaged.
    """
    members: dict[str, bytes] = {}
    total = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(info.file_size for info in archive.infolist()) > limit:
            raise UnpackLimitError
        for info in archive.infolist():
            if info.filename in members:
                raise zipfile.BadZipFile(f"member names must be distinct; got {info.filename!r} twice")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"{info.filename!r} must use deflate; got method {info.compress_type}")
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
    """Return the size of the arrays of a skops archive, which is counted for each reference to an array."""
    sizes = {name: len(member) for name, member in members.items()}
    for name, member in members.items():
        if member.startswith(b"PK\x03\x04"):  # sparse matrices are nested archives
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
