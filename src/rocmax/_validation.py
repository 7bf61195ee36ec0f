"""Validation of rows, labels, weights and parameters, and the direction of scores."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted, validate_data

from rocmax._support import Array, Message, Parameter, ParameterError, stack_level


def canonical_csr(X: Any) -> Any:
    """Return sparse rows as CSR, sorted, without duplicates, with 32-bit indices if possible; the input is kept.

    Duplicate entries are summed, in single precision for float32 and in double precision otherwise. Arrays that are not
    two-dimensional or not of a real data type are returned unchanged: scikit-learn's validation rejects them.
    """
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return X
    if X.format in ("csr", "csc"):
        # A new object that shares the memory: SciPy caches on the object whether the indices are sorted, and the cached
        # value can be out of date.
        X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        try:
            X.check_format(full_check=True)  # with an index out of bounds, compiled loops would read invalid memory
        except ValueError as error:
            raise ValueError(
                f"X must be a sparse matrix with valid indices; got shape {X.shape} with invalid indices: {error}"
            ) from error
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.indices.dtype == np.int32 or max(*rows.shape, rows.nnz) > np.iinfo(np.int32).max:
        return rows
    # As required by liblinear and k-means.
    parts = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(rows)(parts, shape=rows.shape)


# Input validation: all calls of scikit-learn's validation functions are made here.


# Lock for scikit-learn's validation functions. They temporarily change the warning filters of the process; before
# Python 3.14 the change can become permanent if two threads do this at the same time.
CHECKING = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=CHECKING.acquire, after_in_parent=CHECKING.release, after_in_child=CHECKING.release)

# Within these limits, squares of values and weights, their sums and their products with C fit into double precision.
LARGEST = 1e100
WEIGHT_SIZE = "from 1e-100 to 1e+100, or zero to ignore a row"
WEIGHT_ADVICE = "A weight is a number of copies of its row: divide by the mean weight"


class TrainingSet(NamedTuple):
    """Validated training data: rows with non-zero weight and boolean labels.

    ``given`` contains the labels of all input rows, ``kept`` the indices of the rows that were kept, None if all were,
    and ``groups`` the groups of all input rows, if there are any.
    """

    X: Any
    positive: NDArray[np.bool_]
    weight: NDArray[np.float64] | None
    classes: NDArray[Any]
    positive_index: int
    given: NDArray[np.bool_]
    kept: NDArray[np.intp] | None = None
    groups: NDArray[Any] | None = None

    @property
    def rows(self) -> NDArray[np.intp]:
        """Indices of the rows that were kept."""
        return np.arange(self.given.size) if self.kept is None else self.kept

    @property
    def kept_groups(self) -> NDArray[Any] | None:
        """Groups of the rows that were kept."""
        return None if self.groups is None else self.groups[self.rows]

    def bind(self, loss: Any) -> Any:
        """Bind a loss to the labels and weights."""
        return loss.bind(self.positive, self.weight)


def check_training_set(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    pos_label: Any,
    *,
    dense: bool = False,
    allow_missing: bool = False,
) -> TrainingSet:
    """Validate data, labels and weights, drop rows with zero weight and determine the positive class.

    With ``allow_missing``, which is for trees, X may contain NaN, and its values may be of any size.
    """
    X, given = _check_input(estimator, X, y, dense=dense, allow_missing=allow_missing)
    if not allow_missing:
        X = _check_size(estimator, X)
    y, weight, kept = given, None, None
    if sample_weight is not None:
        with CHECKING:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        present = weight > 0
        if not present.any():
            raise ValueError(f"sample_weight must have at least one value > 0; got {weight.size} zeros")
        if extreme_weights(weight).any():
            found = f"{float(weight[present].min()):.3g} to {float(weight.max()):.3g}"
            raise ValueError(f"sample_weight must be {WEIGHT_SIZE}; got {found}. {WEIGHT_ADVICE}")
        if not present.all():
            X, y, weight, kept = X[present], y[present], weight[present], np.flatnonzero(present)
    classes, index = find_classes(y, pos_label)
    positive = y == classes[index]
    if pos_label is None:
        warn_if_majority(type(estimator).__name__, classes, *np.bincount(positive, weight, 2))
    given = positive if kept is None else given == classes[index]
    return TrainingSet(X, positive, weight, classes, index, given, kept)


def _check_input(
    estimator: Any, X: Any, *y: Any, dense: bool = False, reset: bool = True, allow_missing: bool = False
) -> Any:
    """Validate rows and, if given, labels; return sparse rows as CSR with sorted indices and no duplicates."""
    if not dense and sparse.issparse(X):
        # Before the validation, because a sum of finite duplicates can be infinite.
        X = canonical_csr(X)
    options: dict[str, Any] = {"accept_sparse": False if dense else "csr", "reset": reset}
    options["dtype"] = np.float64 if dense else [np.float64, np.float32]
    options["ensure_all_finite"] = "allow-nan" if allow_missing else True
    with CHECKING:
        found = validate_data(estimator, X, *y, **options)
        if y:
            check_classification_targets(found[1])
    X = found[0] if y else found
    if not X.dtype.isnative:
        # NumPy keeps the byte order of a table's columns; compiled loops take that of the machine only.
        X = X.astype(X.dtype.newbyteorder("="))
    return (X, *found[1:]) if y else X


def check_target(y: Any, pos_label: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Validate labels only; return the labels, the classes and the index of the positive class."""
    with CHECKING:
        y = _check_y(y)
        check_classification_targets(y)
    return y, *find_classes(y, pos_label)


def find_classes(y: NDArray[Any], pos_label: Any) -> tuple[NDArray[Any], int]:
    """Return the two classes and the index of the positive class."""
    classes = None
    if y.dtype.kind in "biuf" and y.size:
        # Two numbers are found without sorting or hashing all labels.
        ends = np.array([y.min(), y.max()], dtype=y.dtype)
        classes = ends if ends[0] < ends[1] and ((y == ends[0]) | (y == ends[1])).all() else None
    classes = np.unique(y) if classes is None else classes
    return classes, positive_index(classes, pos_label)


def positive_index(classes: NDArray[Any], pos_label: Any) -> int:
    """Return the index of the positive class in ``classes``."""
    if classes.size > 2:
        raise ValueError(f"Only binary classification is supported. Got {classes.size} classes: {classes[:5].tolist()}")
    if classes.size < 2:
        raise ValueError(
            f"y must have two classes; got one class: {classes.tolist()} (rows with zero weight are ignored)"
        )
    if pos_label is None:
        return 1
    found = np.flatnonzero(classes == pos_label)
    if found.size == 0:
        raise ValueError(f"pos_label must be one of the classes {classes.tolist()}; got {pos_label!r}")
    return int(found[0])


# Positive classes that need no warning in a fit that fits other estimators: stated, or warned about already.
_KNOWN: ContextVar[list[Any] | None] = ContextVar("_KNOWN", default=None)


@contextmanager
def one_majority_warning(pos_label: Any = None) -> Iterator[None]:
    """Make all fits in this context warn once about the positive class, as parts of one fit; not if it is stated."""
    known = _KNOWN.get()
    if known is None:
        token = _KNOWN.set([pos_label])
        try:
            yield
        finally:
            _KNOWN.reset(token)
    else:
        known.append(pos_label)
        yield


def warn_if_majority(name: str, classes: NDArray[Any], n: float, m: float) -> None:
    """Warn if ``classes[1]``, positive as no class was named, is the larger class and labels are not numbers.

    ``n`` and ``m`` are the weights of the negatives and of the positives, and ``name`` is that of the estimator.
    """
    # Sums of the same weights in another order differ by rounding error.
    if classes.dtype.kind in "biufc" or m <= n * (1 + 1e-9):
        return
    known = _KNOWN.get()
    if known is not None:
        if classes[1] in known:
            return
        known.append(classes[1])
    other, positive = classes.tolist()
    text = (
        f"{name}: the positive class is {positive!r}, the larger of the labels, and most rows belong to it. If "
        f"{other!r} is the class to find, set pos_label={other!r}; otherwise, pos_label={positive!r} says so"
    )
    if not (text in _SHOWN and _is_shown_once(text)):
        _SHOWN.add(text)
        warnings.warn(text, UserWarning, stacklevel=stack_level())


# Warnings of this process. Python shows a text once, unless a filter says otherwise, but forgets what it has shown when
# filters change, and scikit-learn sets them anew for each fold of a search.
_SHOWN: set[str] = set()


def _is_shown_once(text: str) -> bool:
    for action, message, category, module, line in warnings.filters:
        # Patterns of Python's own filters are strings.
        matches = re.match(message or "", text) and re.match(module or "", __name__) and not line
        if matches and issubclass(UserWarning, category):
            return action in ("default", "module", "once")
    return True


def check_unlabeled(estimator: Any, X: Any) -> Any:
    """Validate training rows without labels."""
    return _check_size(estimator, _check_input(estimator, X))


def check_rows(estimator: Any, X: Any, *, dense: bool = False, allow_missing: bool = False) -> Any:
    """Validate rows to be scored by a fitted estimator."""
    check_is_fitted(estimator)
    X = _check_input(estimator, X, reset=False, dense=dense, allow_missing=allow_missing)
    if allow_missing:
        return X
    return _widened(X, _largest(X)) if X.dtype == np.float32 else X


def _check_size(estimator: Any, X: Any) -> Any:
    """Raise ValueError if squared values overflow or underflow; convert extreme float32 values to float64."""
    largest = _largest(X)
    if largest > LARGEST:
        if sparse.issparse(X):
            column = int(X.indices[np.argmax(np.abs(X.data))])
        else:
            column = int(np.argmax(np.abs(X).max(axis=0)))
        names = getattr(estimator, "feature_names_in_", None)
        name = column if names is None else repr(names[column])
        raise ValueError(
            f"absolute values in X must be at most {LARGEST:g}, because larger squares overflow; got {largest:.3g} in "
            f"column {name}. Divide the column by a constant, or standardize the features"
        )
    if 0 < largest < 1 / LARGEST:
        raise ValueError(
            f"the largest absolute value in X must be at least {1 / LARGEST:g}, because smaller squares underflow; got "
            f"{largest:.3g}. Multiply X by a constant, or standardize the features"
        )
    return _widened(X, largest)


def _largest(X: Any) -> float:
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def _widened(X: Any, largest: float) -> Any:
    """Convert rows to double precision if products of their values overflow or underflow in single precision."""
    if X.dtype == np.float32 and largest > 0 and not 1e-15 <= largest <= 1e15:
        return X.astype(np.float64)
    return X


def check_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    """Return the group of each row; raise ValueError unless there is one per row, all of one type."""
    found = np.asarray(groups)
    if found.shape != (n_rows,):
        raise ValueError(f"groups must have one value for each of {n_rows} rows; got shape {found.shape}")
    if missing_values(found).any():
        raise ValueError("groups must not have missing values; got NaN or None. Give such rows groups of their own")
    kinds = sorted({type(value).__name__ for value in found.tolist()})
    if len(kinds) > 1:
        raise ValueError(f"groups must be values of one type; got {' and '.join(kinds)}. Convert them to text")
    return found


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or missing in the sense of pandas."""
    # NaN is the value that differs from itself; pandas.NA has no truth value.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def missing_values(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the values that are missing, see :func:`is_missing`."""
    if values.dtype.kind in "OT":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    missing: NDArray[np.bool_] = values != values
    return missing


def extreme_weights(weight: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the weights that are too small or too large, but not zero."""
    found: NDArray[np.bool_] = (weight > 0) & ((weight < 1 / LARGEST) | (weight > LARGEST))
    return found


def check_number(name: str, value: Any, *, above: float, integer: bool = False) -> None:
    """Raise ValueError if a parameter is not a finite number greater than a limit."""
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds) or not (above < value < np.inf):
        kind = "an integer" if integer else "a finite number"
        raise ValueError(f"{name} must be {kind} > {above:g}; got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError if a parameter is not True or False: a text such as "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ParameterError if a parameter is not one of the allowed strings."""
    if value not in choices:
        allowed = ", ".join(map(repr, choices))
        raise ParameterError(Message(Parameter(name), f" must be one of {allowed}; got {value!r}"))


def check_range(
    name: str, value: Any, low: float, high: float, needed: str, *, open_ends: bool = False, integer: bool = False
) -> None:
    """Raise ParameterError if a value is not a number, or integer, between two others."""
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    number = isinstance(value, kinds) and not isinstance(value, bool)
    if not number or not (low < value < high if open_ends else low <= value <= high):
        got = f"{value:g}" if number and not integer else repr(value)
        raise ParameterError(Message(Parameter(name), f" must be {needed}; got {got}"))


def random_source(random_state: Any) -> np.random.RandomState:
    """Return the generator for ``random_state``; None creates a new one and never uses NumPy's global generator."""
    return np.random.RandomState() if random_state is None else check_random_state(random_state)


class Block(NamedTuple):
    """Validated data of one ``partial_fit`` call."""

    X: Any
    positive: NDArray[np.bool_]
    classes: NDArray[Any]
    positive_index: int


def check_block(estimator: Any, X: Any, y: Any, classes: Any, pos_label: Any) -> Block:
    """Validate a block of a stream; the first call must specify both classes, later blocks may contain only one."""
    known: NDArray[Any] | None = getattr(estimator, "classes_", None)
    given = known if classes is None else np.unique(classes)
    if given is None:
        raise ValueError(
            "classes must be given in the first call of partial_fit, as a block may contain only one class; got None"
        )
    index = positive_index(given, pos_label)
    X, y = _check_input(estimator, X, y, reset=known is None)
    X = _check_size(estimator, X)
    if known is not None and not np.array_equal(given, known):
        raise ValueError(f"classes must be those of the first call, {known.tolist()}; got {given.tolist()}")
    strange = np.setdiff1d(y, given)
    if strange.size:
        raise ValueError(f"y must contain only the classes {given.tolist()}; got {strange[:5].tolist()}")
    positive = y == given[index]
    if known is None and pos_label is None:
        warn_if_majority(type(estimator).__name__, given, *np.bincount(positive, minlength=2))
    return Block(X, positive, given, index)


# The positive class of a classifier, and its scores for one class.


def named_pos_label(estimators: Iterable[Any], pos_label: Any = None, caller: str = "pos_label") -> Any:
    """Return the positive class that ``pos_label`` or the estimators name; None if none does, an error if they differ.

    An estimator names a class by its parameter ``pos_label``. A pipeline has that of its last step, and a search or
    another estimator that wraps estimators has theirs.
    """
    first, label = caller, pos_label
    for name, found in (pair for estimator in estimators for pair in _named_by(estimator)):
        if label is None:
            first, label = name, found
        elif found != label:
            raise ValueError(
                f"pos_label must be the same everywhere; got {_text(label)} from {first} and {_text(found)} from "
                f"{name}. Set it in one place only"
            )
    return label


def _named_by(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield the positive classes that an estimator and those in it name, each with the name of the one that does."""
    own = getattr(estimator, "pos_label", None)
    if own is not None:
        yield type(estimator).__name__, own
    for inner in _inside(estimator):
        for name, label in _named_by(inner):
            yield name, _in_classes_of(estimator, inner, label)


def _inside(estimator: Any) -> list[Any]:
    """Return the estimators that determine the output of one that wraps them, fitted ones if there are any."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        return [steps[-1][-1]]
    for name in ("best_estimator_", "final_estimator_", "estimators_", "estimator_", "estimator"):
        found = getattr(estimator, name, None)
        if found is not None:
            return found if isinstance(found, list) else [found]
    return []


def _in_classes_of(outer: Any, inner: Any, label: Any) -> Any:
    """Return the label of a class in the outer estimator: bagging, for example, fits with the codes 0 and 1."""
    known, own = (np.asarray(getattr(model, "classes_", ())) for model in (outer, inner))
    if known.shape == own.shape == (2,) and not np.array_equal(known, own) and label in own.tolist():
        return known[own.tolist().index(label)]
    return label


def _text(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def class_scores(estimator: Any, X: Any, index: int) -> Array:
    """Return scores for ``classes_[index]`` from ``decision_function`` or, if it does not exist, ``predict_proba``.

    NaN and infinite scores are an error: comparisons with NaN are false, so every threshold would seem to reject it.
    """
    if hasattr(estimator, "decision_function"):
        name, scores = "decision_function", towards(estimator.decision_function(X), index)
    else:
        name, scores = "predict_proba", towards(estimator.predict_proba(X), index)
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise ValueError(
            f"{name} of {type(estimator).__name__} must give finite scores; got {bad.size} NaN or infinite values in "
            f"{scores.size} rows, the first is {scores[bad[0]]} in row {bad[0]}. Check the features of these rows and "
            "how the estimator was fitted"
        )
    return scores


def towards(response: NDArray[Any], index: int) -> Array:
    """Convert decision values or probabilities to scores for ``classes_[index]``, or such scores to decision values."""
    if response.ndim == 2:
        return response[:, index].astype(np.float64)
    return direction(index) * response.astype(np.float64, copy=False)


def direction(index: int) -> float:
    """Return the sign that converts decision values (positive: ``classes_[1]``) to scores for ``classes_[index]``."""
    return 1.0 if index == 1 else -1.0
