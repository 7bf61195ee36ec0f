"""Text of a fitted tree ensemble: reading, and checking before a library builds a model from it.

LightGBM and XGBoost read models in C++ and trust them. A model with an index out of range can end the process or read
other memory, so that the text of a model file must be checked first, here, without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocmax.backends._lightgbm_text import read_lightgbm, shorten_lightgbm
from rocmax.backends._trees import Trees
from rocmax.backends._xgboost_text import read_xgboost

MAX_TEXT = 2**27
_READERS: dict[str, Callable[[str, int], Trees]] = {"lightgbm": read_lightgbm, "xgboost": read_xgboost}
_FIELDS = {"engine": str, "n_features": int, "text": str}


def shorten_text(engine: str, text: str) -> str:
    """Return the text of a model without the parts that predictions do not need.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost"}
        Library that wrote the text.
    text : str
        Text of the model.

    Returns
    -------
    str
        Text that the library still reads.
    """
    return shorten_lightgbm(text) if engine == "lightgbm" else text


def read_trees(engine: str, text: str, n_features: int) -> Trees:
    """Return the trees of a model.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost"}
        Library that wrote the text.
    text : str
        Text of the model, as returned by :func:`shorten_text`.
    n_features : int
        Number of features.

    Returns
    -------
    Trees
        The trees.

    Raises
    ------
    ValueError
        If the text is not a valid model with ``n_features`` features.
    """
    if engine not in _READERS:
        raise ValueError(f"engine must be one of {', '.join(_READERS)}; got {engine[:40]!r}")
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1; got {n_features}")
    if len(text) > MAX_TEXT:
        raise ValueError(f"the text of a model must have at most {MAX_TEXT:,} characters; got {len(text):,}")
    try:
        return _READERS[engine](text, n_features)
    except ValueError as error:
        raise ValueError(f"the {engine} trees are damaged: {error}") from None


def check_tree_model(state: Any) -> None:
    """Check the state of a tree model that comes from a file.

    Parameters
    ----------
    state : dict
        The fields ``engine``, ``text`` and ``n_features``.

    Raises
    ------
    ValueError
        If fields are absent, of another type, or if the text is not a valid model.
    """
    if not isinstance(state, dict) or state.keys() != _FIELDS.keys():
        raise ValueError(f"a tree model must have the fields {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if type(state[name]) is not kind:
            raise ValueError(
                f"{name} of a tree model must be of type {kind.__name__}; got {type(state[name]).__name__}"
            )
    read_trees(state["engine"], state["text"], state["n_features"])
