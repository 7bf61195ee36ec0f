"""The one place that calls scikit-learn's validation."""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted, validate_data

from rocmax._sparse import canonical_csr

# Around calls of scikit-learn that check data. They change the process's filters of warnings for a moment, and before
# Python 3.14 two threads that do so at once can leave the change behind.
CHECKING = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=CHECKING.acquire, after_in_parent=CHECKING.release, after_in_child=CHECKING.release)

_INPUT = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
_DENSE_INPUT = {"dtype": np.float64}
# Squares of values and weights, sums of squares and products of them with C stay within double precision.
_LARGEST, _SMALLEST = 1e100, 1e-100
# Beyond these sizes, squares and the weights that fit such values leave single precision.
_LARGEST_SINGLE, _SMALLEST_SINGLE = 1e15, 1e-15


class TrainingSet(NamedTuple):
    """What a fit works on: rows of non-zero weight, labels as booleans.

    ``given`` are the labels of all rows as they came, and ``rows`` the places of the rows that were kept.
    """

    X: Any
    positive: NDArray[np.bool_]
    weight: NDArray[np.float64] | None
    classes: NDArray[Any]
    positive_index: int
    given: NDArray[np.bool_]
    rows: NDArray[np.intp]


def check_training_set(
    estimator: Any, X: Any, y: Any, sample_weight: Any, pos_label: Any, *, dense: bool = False
) -> TrainingSet:
    """Check data, labels and weights; drop the rows of weight zero; find the positive class."""
    X, given = _check_input(estimator, X, y, dense=dense)
    X = _check_size(estimator, X)
    y, weight, rows = given, None, np.arange(given.shape[0])
    if sample_weight is not None:
        with CHECKING:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        present = weight > 0
        if not present.any():
            raise ValueError(f"sample_weight needs a value above zero; got {weight.size} zeros")
        _check_weight_size(weight[present])
        if not present.all():
            X, y, weight, rows = X[present], y[present], weight[present], rows[present]
    classes, index = find_classes(y, pos_label)
    return TrainingSet(X, y == classes[index], weight, classes, index, given == classes[index], rows)


def _check_input(estimator: Any, X: Any, *y: Any, dense: bool = False, reset: bool = True) -> Any:
    """Check rows, and labels if they are given; sparse rows come back as CSR with sorted columns, each stored once."""
    if not dense and sparse.issparse(X):
        # First, as a sum of finite entries may be infinite.
        X = canonical_csr(X)
    with CHECKING:
        found = validate_data(estimator, X, *y, reset=reset, **(_DENSE_INPUT if dense else _INPUT))
        if y:
            check_classification_targets(found[1])
    return found


def check_target(y: Any, pos_label: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Check labels alone, for estimators that hand the rows on; return them, the classes and the positive one."""
    with CHECKING:
        y = _check_y(y)
        check_classification_targets(y)
    return y, *find_classes(y, pos_label)


def find_classes(y: NDArray[Any], pos_label: Any) -> tuple[NDArray[Any], int]:
    """Return the two classes and the place of the positive one."""
    classes = np.unique(y)
    return classes, positive_index(classes, pos_label)


def positive_index(classes: NDArray[Any], pos_label: Any) -> int:
    """Return the place of the positive class among two."""
    if classes.size > 2:
        raise ValueError(f"Only binary classification is supported. Got {classes.size} classes: {classes[:5].tolist()}")
    if classes.size < 2:
        raise ValueError(
            f"y needs two classes, and got one class: {classes.tolist()} (rows of weight zero do not count)"
        )
    if pos_label is None:
        return 1
    found = np.flatnonzero(classes == pos_label)
    if found.size == 0:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes.tolist()}")
    return int(found[0])


def check_unlabelled(estimator: Any, X: Any) -> Any:
    """Check training rows that need no labels."""
    return _check_size(estimator, _check_input(estimator, X))


def check_rows(estimator: Any, X: Any, *, dense: bool = False) -> Any:
    """Check rows to be scored by a fitted estimator."""
    check_is_fitted(estimator)
    X = _check_input(estimator, X, reset=False, dense=dense)
    return _widened(X, _largest(X)) if X.dtype == np.float32 else X


def _check_size(estimator: Any, X: Any) -> Any:
    """Raise ValueError if the squares of the values leave the range of floating point; widen extreme float32."""
    largest = _largest(X)
    if largest > _LARGEST:
        if sparse.issparse(X):
            column = int(X.indices[np.argmax(np.abs(X.data))])
        else:
            column = int(np.argmax(np.abs(X).max(axis=0)))
        names = getattr(estimator, "feature_names_in_", None)
        name = column if names is None else repr(names[column])
        raise ValueError(
            f"column {name} of X holds values up to {largest:.3g} in size, whose squares overflow; at most "
            f"{_LARGEST:g} is allowed: divide the column by a constant, or standardise the features"
        )
    if 0 < largest < _SMALLEST:
        raise ValueError(
            f"the largest value of X is {largest:.3g} in size, and its square underflows; at least {_SMALLEST:g} is "
            "needed: multiply X by a constant, or standardise the features"
        )
    return _widened(X, largest)


def _largest(X: Any) -> float:
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def _widened(X: Any, largest: float) -> Any:
    """Return rows in double precision if products of them would leave single precision."""
    if X.dtype == np.float32 and largest > 0 and not _SMALLEST_SINGLE <= largest <= _LARGEST_SINGLE:
        return X.astype(np.float64)
    return X


def _check_weight_size(weight: NDArray[np.float64]) -> None:
    low, high = float(weight.min()), float(weight.max())
    if low < _SMALLEST or high > _LARGEST:
        raise ValueError(
            f"sample_weight needs values from {_SMALLEST:g} to {_LARGEST:g}, or zero to leave a row out; got "
            f"{low:.3g} to {high:.3g}. A weight counts as a number of copies of its row: divide by the mean weight"
        )


def check_number(name: str, value: Any, *, above: float, integer: bool = False) -> None:
    """Refuse a parameter that is not a finite number above a limit."""
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds) or not (above < value < np.inf):
        kind = "an integer" if integer else "a finite number"
        raise ValueError(f"{name} needs {kind} > {above:g}; got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a parameter that is not one of the given words."""
    if value not in choices:
        raise ValueError(f"{name} needs one of {', '.join(map(repr, choices))}; got {value!r}")


def random_source(random_state: Any) -> np.random.RandomState:
    """Return the generator that a ``random_state`` stands for; None is a new one, never NumPy's global generator."""
    return np.random.RandomState() if random_state is None else check_random_state(random_state)


class Block(NamedTuple):
    """What one call of ``partial_fit`` works on."""

    X: Any
    positive: NDArray[np.bool_]
    classes: NDArray[Any]
    positive_index: int


def check_block(estimator: Any, X: Any, y: Any, classes: Any, pos_label: Any) -> Block:
    """Check a block of a stream; the first one names both classes, and a later one may hold only one of them."""
    known: NDArray[Any] | None = getattr(estimator, "classes_", None)
    given = known if classes is None else np.unique(classes)
    if given is None:
        raise ValueError("the first call of partial_fit needs classes=[..., ...], as a block may hold only one of them")
    index = positive_index(given, pos_label)
    X, y = _check_input(estimator, X, y, reset=known is None)
    X = _check_size(estimator, X)
    if known is not None and not np.array_equal(given, known):
        raise ValueError(f"classes={given.tolist()} differ from those of the first call, {known.tolist()}")
    strange = np.setdiff1d(y, given)
    if strange.size:
        raise ValueError(f"y holds {strange[:5].tolist()}, which are not among the classes {given.tolist()}")
    return Block(X, y == given[index], given, index)
