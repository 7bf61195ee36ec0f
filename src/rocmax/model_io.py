"""Model files, saved and loaded with skops, so that loading executes no code from the file."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import io
import json
import sys
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import sklearn
from scipy import sparse

import rocmax
from rocmax._docstrings import publish
from rocmax._files import beyond_limit, unpack_limit, write_file
from rocmax._support import need

# Increased when earlier versions must not read the file.
FORMAT = 3
# Public modules of the classes in models: estimators, their components, and the state of streaming methods between
# batches. A file refers to a class by one of these modules, never by the private module that defines it.
_HOMES = (
    "rocmax",
    "rocmax.boosted",
    "rocmax.costs",
    "rocmax.ensemble",
    "rocmax.kernel",
    "rocmax.losses",
    "rocmax.measures",
    "rocmax.penalties",
    "rocmax.solvers",
    "rocmax.online",
    "rocmax.papers",
)
# Sparse rows in models; skops reads them as arrays, and the private module of their class in SciPy does not matter.
_SPARSE = ("csr_array", "csr_matrix")
# Types that skops does not know to be safe: they store names and types of columns, and select columns of a frame.
_HARMLESS = ("numpy.dtype", "sklearn.compose._column_transformer.make_column_selector")
# Adapters of array libraries in scikit-learn. A search for all estimators, as in skops, imports them, and with them the
# libraries that are installed: PyTorch and Dask alone take longer than a fit to a small table.
_ADAPTERS = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch"))


class ModelFileError(ValueError):
    """Error about a model file that cannot be saved or loaded."""


class _UnpackLimitError(ValueError):
    """Error about a file whose decompressed size exceeds the limit."""


def save(model: Any, path: str | Path, *, about: dict[str, Any] | None = None) -> None:
    """Save a fitted model to a file that :func:`load` reads without executing code from it.

    The file is written atomically.

    Parameters
    ----------
    model : estimator
        Fitted estimator of rocmax or scikit-learn, or a pipeline of them.
    path : str or Path
        Model file. By convention, its name ends in ``.rocmax``.
    about : dict, default=None
        Metadata to save with the model: numbers, strings, and lists and dicts of them.

    Raises
    ------
    ModelFileError
        If the model contains objects of other packages, which :func:`load` does not accept.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import rocmax
    >>> model = rocmax.AUCClassifier().fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> with TemporaryDirectory() as folder:
    ...     rocmax.save(model, Path(folder, "model.rocmax"))
    ...     again = rocmax.load(Path(folder, "model.rocmax"))
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    sio = _skops()
    try:
        content = sio.dumps(model, compression=zipfile.ZIP_DEFLATED)
    except (TypeError, NotImplementedError) as error:
        raise ModelFileError(f"{type(model).__name__} contains a value that cannot be saved: {error}") from error
    foreign = [name for name in sio.get_untrusted_types(data=content) if not _is_ours(name)]
    if foreign:
        raise ModelFileError(
            "the model must consist of types of rocmax, and of scikit-learn types that skops considers safe; got "
            + ", ".join(foreign)
        )
    header = {
        "format": FORMAT,
        "rocmax": rocmax.__version__,
        "scikit-learn": sklearn.__version__,
        "about": about or {},
    }
    header["sha256"] = _checksum(json.loads(json.dumps(header)), content)
    buffer = io.BytesIO()  # writing an archive requires seeking, which devices do not support
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("rocmax.json", json.dumps(header, indent=1))
        archive.writestr("model.skops", content)
    write_file(path, buffer.getvalue())


def load(path: str | Path, *, max_bytes: int | None = None) -> Any:
    """Load a model saved by :func:`save`.

    Only types of rocmax and scikit-learn are created. If the file contains other types or is not a model, an error is
    raised before any object is created.

    Parameters
    ----------
    path : str or Path
        Model file.
    max_bytes : int, default=None
        Maximum decompressed size of the file. If None, the limit is 256 MiB, or 100 times the size of the file if that
        is larger.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is not a model, was modified, contains types of other packages, has another format
        version, or its decompressed size exceeds ``max_bytes``.
    """
    return load_with_facts(path, max_bytes=max_bytes)[0]


def load_with_facts(path: str | Path, *, max_bytes: int | None = None) -> tuple[Any, dict[str, Any]]:
    """Load a model and its metadata."""
    sio, path = _skops(), Path(path)
    header, content = _unpack(path, max_bytes)
    _warn_of_version(path, header)
    try:
        unknown = sio.get_untrusted_types(data=content)
        foreign = [name for name in unknown if not _is_ours(name)]
        if foreign:
            raise ModelFileError(
                f"{path} was not loaded: it must contain only types of rocmax and scikit-learn; got "
                + ", ".join(foreign)
            )
        _check_sparse(content)
        model = sio.loads(content, trusted=unknown)
    except ModelFileError:
        raise
    except Exception as error:  # skops can raise any error for a modified file
        raise ModelFileError(f"{path} is damaged or was modified: {type(error).__name__}: {error}") from error
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{path} must contain a model; got a value of type {type(model).__name__}")
    return model, header["about"]


def trusted_types() -> list[str]:
    """Return the names of the types in models of rocmax that skops does not know to be safe.

    :func:`load` accepts these types and no others. Other programs that load models with skops ask for such a list.

    Returns
    -------
    list of str
        Names of classes, with their modules. None of them runs code from a file when it is loaded.

    Examples
    --------
    >>> import rocmax
    >>> "rocmax.AUCClassifier" in rocmax.trusted_types()
    True

    MLflow takes the list when a model is saved, or logged with ``mlflow.sklearn.log_model``::

        mlflow.sklearn.save_model(model, "folder", skops_trusted_types=rocmax.trusted_types())

    skops itself takes it when a model is loaded::

        skops.io.load("model.skops", trusted=rocmax.trusted_types())
    """
    ours = [f"{home}.{name}" for home in _HOMES for name in dir(importlib.import_module(home))]
    numbers = [f"numpy.{name}" for name in dir(np)]
    rows = [f"{getattr(sparse, name).__module__}.{name}" for name in _SPARSE]
    return sorted({*_HARMLESS, *rows, *filter(_is_ours, [*ours, *numbers])})


def _check_sparse(content: bytes) -> None:
    """Raise ValueError if sparse rows have indices out of bounds, with which SciPy would read other memory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            part = archive.read(name)
            if part.startswith(b"PK"):  # archive of arrays, the format of sparse matrices
                sparse.load_npz(io.BytesIO(part)).check_format(full_check=True)
        # Only the loader of such archives is allowed: others could set the indices after the check.
        json.loads(archive.read("schema.json"), object_hook=_check_sparse_node)


def _check_sparse_node(node: dict[str, Any]) -> None:
    loader = node.get("__loader__")
    if node.get("__class__") in _SPARSE and loader != "SparseMatrixNode":
        raise ValueError(f"sparse rows must be stored as by skops 0.15 or later (SparseMatrixNode); got {loader}")


def _unpack(path: Path, max_bytes: int | None) -> tuple[dict[str, Any], bytes]:
    """Return the header and the skops archive, after all checks that are possible without creating objects."""
    compressed = _content(path)
    limit = unpack_limit(len(compressed), max_bytes)
    try:
        members, _ = _read_archive(compressed, limit)
        header, content = json.loads(members["rocmax.json"]), members["model.skops"]
        found = _checksum(header, content) if isinstance(header, dict) else ""
    except _UnpackLimitError:
        raise ModelFileError(beyond_limit(path, limit)) from None
    except Exception as error:  # a modified archive can raise many errors
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ModelFileError(f"{path} is not a model file of rocmax: {reason}") from error
    if not isinstance(header, dict) or not isinstance(header.get("about"), dict):
        raise ModelFileError(f"{path} is not a model file of rocmax: its header is damaged")
    _check_format(path, header)
    if header.get("sha256") != found:
        raise ModelFileError(
            f"{path} was modified after it was saved: its checksum does not match; its header, rocmax.json, must not "
            "be edited either. Fit the model again, or restore the file"
        )
    try:
        _check_model_size(_read_archive(content, limit)[0], limit)
    except _UnpackLimitError:
        raise ModelFileError(beyond_limit(path, limit)) from None
    except Exception as error:
        raise ModelFileError(f"{path} is damaged or was modified: {type(error).__name__}: {error}") from error
    return header, content


def _read_archive(content: bytes, limit: int) -> tuple[dict[str, bytes], int]:
    """Return the members of a zip archive and their total decompressed size.

    Raise an error if the size exceeds ``limit``, and the errors of zipfile if the archive is damaged.
    """
    members: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(info.file_size for info in archive.infolist()) > limit:
            raise _UnpackLimitError
        for info in archive.infolist():
            if info.filename in members:
                raise zipfile.BadZipFile(f"member names must be distinct; got {info.filename!r} twice")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"{info.filename!r} must use deflate; got method {info.compress_type}")
            with archive.open(info.filename) as stream:
                # In pieces, because the size that an archive declares may be wrong.
                members[info.filename] = b"".join(iter(lambda: stream.read(1 << 20), b""))
    return members, sum(map(len, members.values()))


def _check_model_size(members: dict[str, bytes], limit: int) -> None:
    """Raise an error if the arrays of a skops archive exceed ``limit``; an array counts for each reference to it."""
    sizes = {name: len(member) for name, member in members.items()}
    for name, member in members.items():
        if member.startswith(b"PK\x03\x04"):  # sparse matrices are nested archives
            sizes[name] += _read_archive(member, limit)[1]
    total, nodes = 0, [json.loads(members["schema.json"])]
    while nodes:
        node: Any = nodes.pop()
        if isinstance(node, dict):
            total += sizes.get(node["file"], 0) if isinstance(node.get("file"), str) else 0
            nodes.extend(node.values())
        elif isinstance(node, list):
            nodes.extend(node)
        if total > limit:
            raise _UnpackLimitError


def _content(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise ModelFileError(f"{path} is a directory; pass a model file")
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error


def _checksum(header: dict[str, Any], content: bytes) -> str:
    """Return the checksum of the header, without the checksum in it, and of the model."""
    described = json.dumps({key: value for key, value in header.items() if key != "sha256"}, sort_keys=True)
    return hashlib.sha256(described.encode() + content).hexdigest()


def _check_format(path: Path, header: dict[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} was saved by rocmax {header.get('rocmax')} in file format {header.get('format')}; rocmax "
            f"{rocmax.__version__} reads format {FORMAT}; fit the model again, or use that version"
        )


def _warn_of_version(path: Path, header: dict[str, Any]) -> None:
    saved = str(header.get("scikit-learn"))
    if saved.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warnings.warn(
            f"{path} was saved with scikit-learn {saved}, but {sklearn.__version__} is installed: results may differ",
            UserWarning,
            stacklevel=3,
        )


def _is_ours(name: str) -> bool:
    """Return whether a type is allowed in models of rocmax; functions and imported names are not."""
    module, _, attribute = name.rpartition(".")
    if name in _HARMLESS or (module.startswith("scipy.sparse.") and attribute in _SPARSE):
        return True
    if module == "numpy":  # types of numbers, by which columns are selected
        scalar = getattr(np, attribute, None)
        return inspect.isclass(scalar) and issubclass(scalar, np.generic)
    if module not in _HOMES:
        return False
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    return inspect.isclass(found) and found.__module__ == module


class _AdapterRefusal:
    """Finder of modules that refuses the adapters of array libraries in the thread that made it."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError for an adapter, which a search for estimators skips; leave other modules to others."""
        if name.startswith(_ADAPTERS) and get_ident() == self._thread:
            raise ImportError(f"{name} is not needed")


@contextmanager
def _without_array_libraries() -> Iterator[None]:
    """Keep scikit-learn's search for estimators from importing array libraries; imports elsewhere do not change."""
    finder = _AdapterRefusal()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _skops() -> Any:
    need("skops")
    with _without_array_libraries():
        return importlib.import_module("skops.io")


publish("rocmax", globals(), ("load", "save", "trusted_types"))
