"""Model files: saved and loaded by skops, so that loading runs nothing from the file."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import sklearn

import rocmax
from rocmax._atomic import write_file

# Changes when older files can no longer be read.
FORMAT = 1
# What `rocmax fit` keeps with a model, and the other commands need.
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
# Where the classes that models are made of live: estimators, and what a stream keeps between its batches.
_HOMES = (
    "rocmax.estimators.",
    "rocmax.gram.",
    "rocmax.kernels.",
    "rocmax.losses.",
    "rocmax.samplers.",
    "rocmax.solvers.",
    "rocmax.streaming.",
)


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
        The file, ``model.rocmax`` by custom.
    about : dict, optional
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
        "about": about or {},
    }
    buffer = io.BytesIO()  # an archive is written by positions, which a device does not have
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("rocmax.json", json.dumps(header, indent=1))
        archive.writestr("model.skops", content)
    write_file(path, buffer.getvalue())


def load(path: str | Path) -> Any:
    """Load a model that :func:`save` wrote.

    Only types of rocmax and scikit-learn are made; a file with others, or that is not a model, is refused before
    anything in it is built.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is not a model, was changed, holds foreign types or is of another version.
    """
    return load_with_facts(path)[0]


def load_with_facts(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Load a model and what was saved with it."""
    sio, path = _skops(), Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a directory; give a model file")
    if not path.exists():
        raise ModelFileError(f"{path} does not exist")
    header, content = _unpack(path)
    _check_version(path, header)
    try:
        unknown = sio.get_untrusted_types(data=content)
        foreign = [name for name in unknown if not _is_ours(name)]
        if foreign:
            raise ModelFileError(
                f"{path} was not loaded: it holds types that are neither rocmax's nor scikit-learn's: "
                + ", ".join(foreign)
            )
        return sio.loads(content, trusted=unknown), header["about"]
    except ModelFileError:
        raise
    except Exception as error:  # whatever skops meets in a file that was changed
        raise ModelFileError(f"{path} is damaged or was changed: {type(error).__name__}: {error}") from error


def load_fitted(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Load a model that ``rocmax fit`` saved and its facts; raise ModelFileError if it was saved without them."""
    model, about = load_with_facts(path)
    if not about.keys() >= FACTS:
        raise ModelFileError(
            f"{path} was not saved by `rocmax fit` but from Python: it does not say which columns it needs and which "
            "class is positive. Use it in Python: rocmax.load"
        )
    return model, about


def _unpack(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            header, content = json.loads(archive.read("rocmax.json")), archive.read("model.skops")
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError, zlib.error) as error:
        raise ModelFileError(f"{path} is not a model file that rocmax saved: {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get("about"), dict):
        raise ModelFileError(f"{path} is not a model file that rocmax saved: its header is damaged")
    return header, content


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
    """Whether a type is a class that rocmax's models are made of; functions and imported names are not built."""
    if name == "numpy.dtype":
        return True
    module, _, attribute = name.rpartition(".")
    if not name.startswith(_HOMES):
        return False
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    return inspect.isclass(found) and found.__module__ == module


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(f"saving and loading models needs skops: pip install 'rocmax[cli]' ({error})") from error
    return skops.io
