"""Model files: saved and loaded by skops, so that loading runs nothing from the file."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import io
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import sklearn
from scipy import sparse

import rocmax
from rocmax._atomic import write_file
from rocmax._packages import need
from rocmax._public import set_public_module
from rocmax._unpack import UnpackLimitError, beyond_limit, model_size, read_archive, unpack_limit

# Changes when older files can no longer be read.
FORMAT = 2
# What `rocmax fit` and rocmax.workflow keep with a model, and the later steps need.
FACTS = frozenset(
    [
        "target",
        "positive",
        "negative",
        "features",
        "n_features",
        "zero_based",
        "min_fpr",
        "max_fpr",
        "measure",
        "model",
        "confidence",
        "tuning",
        "seed",
        "rows",
        "versions",
        "fitted",
    ]
)
# Public modules of the classes that models are made of: estimators, their parts, and what a stream keeps between its
# batches. A file names a class by one of these, never by the file that defines it.
_HOMES = (
    "rocmax",
    "rocmax.estimators",
    "rocmax.kernels",
    "rocmax.losses",
    "rocmax.measures",
    "rocmax.penalties",
    "rocmax.solvers",
    "rocmax.streaming",
)
# Rows that a model keeps; skops reads them as arrays, whatever private module of SciPy their class is in.
_SPARSE = ("csr_array", "csr_matrix")


class ModelFileError(ValueError):
    """A model file that is refused; the message says why."""


def save(model: Any, path: str | Path, *, about: dict[str, Any] | None = None) -> None:
    """Save a fitted model to a file that :func:`load` reads without executing anything from it.

    The file is written whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted estimator of rocmax or scikit-learn, or a pipeline of them.
    path : str or Path
        The file. Its name ends in ``.rocmax`` by custom.
    about : dict, default=None
        Facts to keep with the model: numbers, strings, lists and dicts of them.

    Raises
    ------
    ModelFileError
        If the model holds objects of other packages, which :func:`load` would refuse.

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
        raise ModelFileError(f"{type(model).__name__} holds a value that cannot be saved: {error}") from error
    foreign = [name for name in sio.get_untrusted_types(data=content) if not _is_ours(name)]
    if foreign:
        raise ModelFileError(
            "only types of rocmax, and those of scikit-learn that skops holds to be safe, are saved; the model holds "
            + ", ".join(foreign)
        )
    header = {
        "format": FORMAT,
        "rocmax": rocmax.__version__,
        "scikit-learn": sklearn.__version__,
        "sha256": hashlib.sha256(content).hexdigest(),
        "about": about or {},
    }
    buffer = io.BytesIO()  # an archive is written by positions, which a device does not have
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("rocmax.json", json.dumps(header, indent=1))
        archive.writestr("model.skops", content)
    write_file(path, buffer.getvalue())


def load(path: str | Path, *, max_bytes: int | None = None) -> Any:
    """Load a model that :func:`save` wrote.

    Only types of rocmax and scikit-learn are made; a file with others, or that is not a model, is refused before
    anything in it is built.

    Parameters
    ----------
    path : str or Path
        The file.
    max_bytes : int, default=None
        The file is refused if it unpacks to more than this. None stands for 256 MiB, or 100 times the size of the
        file if that is more.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is not a model, was changed, holds foreign types, is of another version or
        unpacks to more than ``max_bytes``.
    """
    return load_with_facts(path, max_bytes=max_bytes)[0]


def load_with_facts(path: str | Path, *, max_bytes: int | None = None) -> tuple[Any, dict[str, Any]]:
    """Load a model and what was saved with it."""
    sio, path = _skops(), Path(path)
    header, content = _unpack(path, max_bytes)
    _check_version(path, header)
    try:
        unknown = sio.get_untrusted_types(data=content)
        foreign = [name for name in unknown if not _is_ours(name)]
        if foreign:
            raise ModelFileError(
                f"{path} was not loaded: it holds types that are neither rocmax's nor scikit-learn's: "
                + ", ".join(foreign)
            )
        _check_sparse(content)
        model = sio.loads(content, trusted=unknown)
    except ModelFileError:
        raise
    except Exception as error:  # whatever skops meets in a file that was changed
        raise ModelFileError(f"{path} is damaged or was changed: {type(error).__name__}: {error}") from error
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{path} holds no model, but a value of type {type(model).__name__}")
    return model, header["about"]


def load_fitted(path: str | Path, *, max_bytes: int | None = None) -> tuple[Any, dict[str, Any]]:
    """Load a model of ``rocmax fit`` or `rocmax.workflow` and its facts; raise ModelFileError if it has none."""
    model, about = load_with_facts(path, max_bytes=max_bytes)
    if not about.keys() >= FACTS:
        raise ModelFileError(
            f"{path} was not saved by `rocmax fit` or rocmax.workflow: it does not say which columns it needs and "
            "which class is positive. Use it in Python: rocmax.load"
        )
    return model, about


def _check_sparse(content: bytes) -> None:
    """Raise ValueError if sparse rows have indices outside their matrix, with which SciPy would read foreign memory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            part = archive.read(name)
            if part.startswith(b"PK"):  # an archive of arrays, which is how sparse matrices are saved
                sparse.load_npz(io.BytesIO(part)).check_format(full_check=True)


def _unpack(path: Path, max_bytes: int | None) -> tuple[dict[str, Any], bytes]:
    """Return the header and the skops archive, which is checked as far as that goes without building anything."""
    packed = _content(path)
    limit = unpack_limit(len(packed), max_bytes)
    try:
        members, _ = read_archive(packed, limit)
        header, content = json.loads(members["rocmax.json"]), members["model.skops"]
    except UnpackLimitError:
        raise ModelFileError(beyond_limit(path, limit)) from None
    except Exception as error:  # an archive that was changed fails in many ways
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ModelFileError(f"{path} is not a model file that rocmax saved: {reason}") from error
    if not isinstance(header, dict) or not isinstance(header.get("about"), dict):
        raise ModelFileError(f"{path} is not a model file that rocmax saved: its header is damaged")
    # Files of earlier versions have no checksum.
    if header.get("sha256", (found := hashlib.sha256(content).hexdigest())) != found:
        raise ModelFileError(f"{path} was changed after it was saved: its checksum is another")
    try:
        model_size(read_archive(content, limit)[0], limit)
    except UnpackLimitError:
        raise ModelFileError(beyond_limit(path, limit)) from None
    except Exception as error:
        raise ModelFileError(f"{path} is damaged or was changed: {type(error).__name__}: {error}") from error
    return header, content


def _content(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise ModelFileError(f"{path} is a directory; give a model file")
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error


def _check_version(path: Path, header: dict[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} was saved by rocmax {header.get('rocmax')} in file format {header.get('format')}; this is rocmax "
            f"{rocmax.__version__}, which reads format {FORMAT}: fit the model again, or use that version"
        )
    saved = str(header.get("scikit-learn"))
    if saved.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warnings.warn(
            f"{path} was saved with scikit-learn {saved}, and this is {sklearn.__version__}: results may differ",
            UserWarning,
            stacklevel=3,
        )


def _is_ours(name: str) -> bool:
    """Whether a type is one that rocmax's models are made of; functions and imported names are not built."""
    module, _, attribute = name.rpartition(".")
    if name == "numpy.dtype" or (module.startswith("scipy.sparse.") and attribute in _SPARSE):
        return True
    if module not in _HOMES:
        return False
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    return inspect.isclass(found) and found.__module__ == module


def _skops() -> Any:
    need("skops")
    import skops.io

    return skops.io


set_public_module("rocmax", globals(), ("load", "save"))
