"""The strength of a model, by cross-validation on the training rows, in a time that large tables do not stretch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from rocmax.estimators import PartialAUCClassifierCV

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]

# Up to so many rows five folds are drawn twice, once, and above that three.
FEW_ROWS, MANY_ROWS = 5_000, 20_000
# A fold learns from so many rows of each class, and from so many negatives in the window if that takes more.
MAX_ROWS, MAX_IN_WINDOW = 20_000, 300


class Tuned(NamedTuple):
    """A fitted pipeline, and what was found on the way to it."""

    model: Pipeline
    facts: dict[str, Any]


def tuning_splits(
    positive: NDArray[np.bool_], groups: NDArray[Any] | None, window: tuple[float, float], seed: int
) -> list[Split]:
    """Return folds of the training rows: five drawn twice for few rows, three for many.

    Rows of one group stay together. A training part has at most `MAX_ROWS` rows of each class, or as many as put
    `MAX_IN_WINDOW` negatives into the window; the rows beyond that are left out at random. A fold that lacks a class is
    left out, so that the list may be empty.
    """
    rarest = int(min(positive.sum(), (~positive).sum()))
    n_folds = min(5 if positive.size <= MANY_ROWS else 3, rarest)
    if n_folds < 2:
        return []
    most = max(MAX_ROWS, round(MAX_IN_WINDOW / (window[1] - window[0])))
    rng, found = np.random.default_rng(seed), []
    for repeat in range(2 if positive.size <= FEW_ROWS else 1):
        for train, test in _folds(positive, groups, n_folds, (seed + repeat) % 2**32):
            parts = [train[positive[train] == side] for side in (True, False)]
            if all(part.size for part in parts) and 0 < positive[test].sum() < test.size:
                kept = [rng.choice(part, most, replace=False) if part.size > most else part for part in parts]
                found.append((np.sort(np.concatenate(kept)), test))
    return found


def _folds(positive: NDArray[np.bool_], groups: NDArray[Any] | None, n_folds: int, seed: int) -> list[Split]:
    if groups is None:
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(positive, positive))
    n_folds = min(n_folds, np.unique(groups).size)
    if n_folds < 2:
        return []
    return list(StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed).split(positive, positive, groups))


def fit_tuned(
    pipeline: Pipeline,
    X: Any,
    labels: NDArray[Any],
    splits: list[Split],
    scoring: Callable[..., float],
    grid: Any,
    while_searching: AbstractContextManager[Any] | None = None,
) -> Tuned:
    """Fit a pipeline of preprocessing and classifier whose parameters are the best of a grid, then on all rows.

    The fits of the search, which end before the last one begins, run within ``while_searching``.
    """
    table, classifier = clone(pipeline.named_steps["table"]), clone(pipeline.named_steps["model"])
    rows = table.fit_transform(X)
    with while_searching or nullcontext():
        search = GridSearchCV(classifier, grid, scoring=scoring, cv=splits, refit=False).fit(rows, labels)
    classifier.set_params(**search.best_params_).fit(rows, labels)
    facts = {"chosen": search.best_params_, "tried": grid, "score": float(search.best_score_), **_size(splits)}
    return Tuned(Pipeline([("table", table), ("model", classifier)]), facts)


def fit_window(
    pipeline: Pipeline, X: Any, labels: NDArray[Any], splits: list[Split], window: tuple[float, float], positive: str
) -> Tuned:
    """Fit a pipeline whose classifier is the partial-AUC one that finds its start and its strength by itself."""
    model = clone(pipeline).set_params(model=PartialAUCClassifierCV(*window, cv=splits, pos_label=positive))
    classifier = model.fit(X, labels).named_steps["model"]
    classifier.set_params(cv=None)  # the folds are large, and are not to be saved with the model
    facts = {
        "chosen": {"C": classifier.C_},
        "tried": {"C": classifier.Cs_.tolist()},
        "starts": list(classifier.starts_),
        "score": float(classifier.scores_.mean(axis=0).max()),
        **_size(splits),
    }
    return Tuned(model, facts)


def _size(splits: list[Split]) -> dict[str, int]:
    return {"folds": len(splits), "rows in a fold": max(train.size for train, _ in splits)}
