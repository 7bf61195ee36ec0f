"""``rocmax fit``: learn from a table, choose a threshold, measure on rows set aside, save."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.utils import _safe_indexing

import rocmax
from rocmax.cli._warned import hushed
from rocmax.data import DataError, read_columns, read_table
from rocmax.data.errors import check_columns
from rocmax.estimators import FPRThresholdClassifier
from rocmax.estimators.threshold import order_statistic
from rocmax.metrics import make_scorer
from rocmax.workflow.evaluation import window_measure
from rocmax.workflow.tables import Target, column_kinds, make_model, make_target, tuning_grid
from rocmax.workflow.tuning import fit_tuned, fit_window, tuning_splits


@dataclass(frozen=True)
class Training:
    """A file read for training."""

    X: Any
    target: Target
    groups: NDArray[Any] | None
    left_out: list[str]
    notes: list[str]


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    window: tuple[float, float]
    measure: str
    model: str
    confidence: float | None
    test_share: float
    seed: int
    tune: bool = True


class Fitted(NamedTuple):
    """A fitted model, the rows that it has not seen, and what tuning chose."""

    model: Any
    test: NDArray[np.intp]
    tuning: dict[str, Any] | None


def read_training(
    path: Path,
    target: str | None,
    positive: str | None,
    drop: list[str],
    group: str | None,
    delimiter: str | None,
    zero_based: bool,
    max_bytes: int | None = None,
) -> Training:
    """Read features, labels and groups, and say what was left out."""
    names = read_columns(path, delimiter=delimiter)
    if names is None:
        if drop or group:
            raise DataError(f"{path} is an svmlight file: its columns have no names to drop or to group by")
        X, y = read_table(path, target=target, zero_based=zero_based, max_bytes=max_bytes)
        return Training(X, make_target(_given(y), positive), None, [], [])
    if target is None:
        raise DataError(f"name the column with the labels: --target, one of {', '.join(map(repr, names[:20]))}")
    check_columns(path, [target, *drop, *([group] if group else [])], names)
    unwanted = {target, *drop}
    wanted = [name for name in names if name not in unwanted]
    X, y = read_table(path, target=target, columns=wanted, delimiter=delimiter, max_bytes=max_bytes)
    groups = None
    if group is not None and group in X:
        groups = _groups(path, X[group])
    elif group is not None:
        groups = _groups(path, read_table(path, columns=[group], delimiter=delimiter, max_bytes=max_bytes).X[group])
    kinds = column_kinds(X.drop(columns=[group]) if group in X else X)
    left_out = [str(name) for name in X.columns if name not in kinds and name != group]
    X = X[list(kinds)]
    if not kinds:
        raise DataError(f"{path} has no column to learn from: {', '.join(map(repr, wanted)) or 'all are dropped'}")
    return Training(
        X, make_target(_given(y), positive, f"column {target!r}"), groups, left_out, _notes(X, kinds, left_out)
    )


def fit(training: Training, options: Options) -> Fitted:
    """Fit on some rows and choose the threshold on the others."""
    labels, positive = training.target.labels, training.target.positive
    train, test = _split(training, options)
    if options.confidence is not None:
        # Too few negatives are refused before the long work.
        order_statistic(int((~training.target.is_positive[test]).sum()), options.window[1], 1 - options.confidence)
    model, tuning = _fit_rows(training, options, train)
    if options.window != (0.0, 1.0):
        model = FPRThresholdClassifier(
            model, options.window[1], confidence=options.confidence, cv="prefit", pos_label=positive
        ).fit(_safe_indexing(training.X, test), labels[test])
    return Fitted(model, test, tuning)


def _fit_rows(training: Training, options: Options, train: NDArray[np.intp]) -> tuple[Any, dict[str, Any] | None]:
    """Fit the model, tuned if that was asked for and there are rows enough; return what was chosen too."""
    target, window, measure = training.target, options.window, options.measure
    X, labels = _safe_indexing(training.X, train), target.labels[train]
    model = make_model(options.model, training.X, window, target.positive, options.seed)
    groups = None if training.groups is None else training.groups[train]
    splits = tuning_splits(target.is_positive[train], groups, window, options.seed) if options.tune else []
    if not splits:
        return model.fit(X, labels), None
    if options.model == "auto" and measure == "partial_auc" and window != (0.0, 1.0):
        return fit_window(model, X, labels, splits, window, target.positive)
    scoring = make_scorer(window_measure(measure, window), pos_label=target.positive)
    # Values that are not chosen need not converge; the fit that is kept warns.
    quietly = hushed(ConvergenceWarning)
    return fit_tuned(model, X, labels, splits, scoring, tuning_grid(options.model), quietly)


def facts(training: Training, options: Options, target: str | None, fitted: Fitted, zero_based: bool) -> dict:
    """Return what is saved with a model, so that the other commands need not be told again."""
    model, test = fitted.model, fitted.test
    sparse = not hasattr(training.X, "columns")
    return {
        "target": target,
        "positive": training.target.positive,
        "negative": training.target.negative,
        "features": None if sparse else column_kinds(training.X),
        "n_features": int(training.X.shape[1]),
        "zero_based": zero_based,
        "min_fpr": options.window[0],
        "max_fpr": options.window[1],
        "measure": options.measure,
        "model": options.model,
        "confidence": options.confidence,
        "threshold": getattr(model, "threshold_", None),
        "violation_bound": None if options.confidence is None else model.violation_bound_,
        "tuning": fitted.tuning,
        "seed": options.seed,
        "rows": {"train": int(training.target.labels.size - test.size), "held out": int(test.size)},
        "versions": {"rocmax": rocmax.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__},
        "fitted": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def tuning_text(found: dict[str, Any] | None) -> str:
    """Say what tuning chose, and on how many rows."""
    if found is None:
        return "not tuned"
    chosen = ", ".join(f"{name}={value:g}" for name, value in found["chosen"].items())
    starts = f", starting from {'; '.join(found['starts'])}" if "starts" in found else ""
    size = f"{found['folds']} folds of at most {found['rows in a fold']} training rows"
    return f"tuned in {size}: {chosen}{starts} ({found['score']:.4f} on the rows left out)"


def _split(training: Training, options: Options) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    positive = training.target.is_positive
    fewest = int(min(positive.sum(), (~positive).sum()))
    if fewest < 4:
        raise DataError(f"a test share takes at least 4 rows of each class; the smaller one has {fewest}")
    if training.groups is None:
        train, test = train_test_split(
            np.arange(positive.size), test_size=options.test_share, stratify=positive, random_state=options.seed
        )
        return train, test
    folds = max(2, round(1 / options.test_share))
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=options.seed)
    train, test = next(splitter.split(positive, positive, training.groups))
    for part in (train, test):
        if positive[part].all() or not positive[part].any():
            raise DataError("the groups leave one class out of the training or the test rows; there are too few groups")
    return train, test


def _notes(X: Any, kinds: dict[str, str], left_out: list[str]) -> list[str]:
    notes = [f"left out {name!r}: dates are not used" for name in left_out]
    for name, kind in kinds.items():
        if kind == "text" and (distinct := X[name].nunique()) > max(20, 0.5 * len(X)):
            notes.append(f"{name!r} is text with {distinct} values in {len(X)} rows: an identifier? (--drop {name})")
    return notes


def _groups(path: Path, column: Any) -> NDArray[Any]:
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(
            f"{path}: column {column.name!r} needs a group in each row; {missing.size} of {column.size} rows have none "
            f"(the first is row {missing[0] + 1} after the header): fill them in, or leave these rows out"
        )
    return column.astype(str).to_numpy()


def _given(y: NDArray[Any] | None) -> NDArray[Any]:
    if y is None:
        raise DataError("the file has no labels")
    return y
