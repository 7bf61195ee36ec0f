"""A model tuned by cross-validation on the rows that it is fitted to, in a time that large tables do not stretch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from rocmax._quiet import hushed
from rocmax._response import class_scores
from rocmax._typing import Array
from rocmax.metrics import make_scorer
from rocmax.workflow.measuring import window_measure
from rocmax.workflow.models import WHOLE, make_classifier, tuning_grid
from rocmax.workflow.preprocessing import preprocessing

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]

# Up to these numbers of rows, five folds are drawn twice, and once; above that there are three.
FEW_ROWS, MANY_ROWS = 5_000, 20_000
# Largest number of rows of each class that a fold learns from; more if the window takes more to hold its negatives.
MAX_ROWS, MAX_IN_WINDOW = 20_000, 300


class TunedPipeline(ClassifierMixin, BaseEstimator):
    """A model by name, with its preprocessing, tuned on the rows that it is fitted to.

    This is what :func:`rocmax.workflow.fit_table` fits and :func:`rocmax.workflow.compare_models` compares, so that a
    name means the same model in both.

    Parameters
    ----------
    model : str, default="auto"
        A name, as in :func:`rocmax.workflow.models.make_classifier`.
    kinds : dict or None, default=None
        The kind of each column; None for sparse matrices.
    window : tuple of float, default=(0.0, 1.0)
        The window of false-positive rates.
    measure : str, default="roc_auc"
        The measure to tune for.
    positive : str, default="1"
        The positive class.
    tune : bool, default=True
        Whether to tune.
    seed : int, default=0
        Seed of the folds and of the classifier.

    Attributes
    ----------
    pipeline_ : Pipeline
        Preprocessing and classifier, fitted to all rows.
    tuning_ : dict or None
        What was tried and chosen; None if there was no tuning, or too few rows for folds.
    classes_ : ndarray of shape (2,)
        The classes.
    """

    def __init__(
        self,
        model: str = "auto",
        *,
        kinds: dict[str, str] | None = None,
        window: tuple[float, float] = WHOLE,
        measure: str = "roc_auc",
        positive: str = "1",
        tune: bool = True,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.kinds = kinds
        self.window = window
        self.measure = measure
        self.positive = positive
        self.tune = tune
        self.seed = seed

    def fit(self, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None) -> TunedPipeline:
        """Tune and fit; rows of one group stay together in the folds."""
        splits = tuning_splits(y == self.positive, groups, self.window, self.seed) if self.tune else []
        classifier = make_classifier(self.model, self.window, self.positive, self.seed, self.measure, splits)
        pipeline = Pipeline([("table", preprocessing(self.kinds)), ("model", classifier)])
        grid = tuning_grid(classifier)
        self.tuning_: dict[str, Any] | None = None
        if not splits:
            self.pipeline_ = pipeline.fit(X, y)
        elif grid is None:
            self.pipeline_, self.tuning_ = fit_self_tuned(pipeline, X, y, splits)
        else:
            scoring = make_scorer(window_measure(self.measure, self.window), pos_label=self.positive)
            # Values that are not chosen need not converge; the fit that is kept warns.
            quietly = hushed(ConvergenceWarning)
            self.pipeline_, self.tuning_ = fit_tuned(pipeline, X, y, splits, scoring, grid, quietly)
        self.classes_ = self.pipeline_.classes_
        return self

    def decision_function(self, X: Any) -> Array:
        """Score rows for ``classes_[1]``."""
        return class_scores(self.pipeline_, X, 1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes."""
        result: NDArray[Any] = self.pipeline_.predict(X)
        return result


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
) -> tuple[Pipeline, dict[str, Any]]:
    """Fit a pipeline of preprocessing and classifier whose parameters are the best of a grid, then on all rows.

    The fits of the search, which end before the last one begins, run within ``while_searching``. Returns the fitted
    pipeline and what was tried and chosen.
    """
    table, classifier = clone(pipeline.named_steps["table"]), clone(pipeline.named_steps["model"])
    rows = table.fit_transform(X)
    with while_searching or nullcontext():
        search = GridSearchCV(classifier, grid, scoring=scoring, cv=splits, refit=False).fit(rows, labels)
    classifier.set_params(**search.best_params_).fit(rows, labels)
    facts = {"chosen": search.best_params_, "tried": grid, "score": float(search.best_score_), **_size(splits)}
    return Pipeline([("table", table), ("model", classifier)]), facts


def fit_self_tuned(
    pipeline: Pipeline, X: Any, labels: NDArray[Any], splits: list[Split]
) -> tuple[Pipeline, dict[str, Any]]:
    """Fit a pipeline whose classifier finds its start and its strength by itself; return what it chose too."""
    classifier = pipeline.fit(X, labels).named_steps["model"]
    classifier.set_params(cv=None)  # the folds are large, and are not to be saved with the model
    facts = {
        "chosen": {"C": classifier.C_},
        "tried": {"C": classifier.Cs_.tolist()},
        "starts": list(classifier.starts_),
        "score": float(classifier.scores_.mean(axis=0).max()),
        **_size(splits),
    }
    return pipeline, facts


def tuning_text(found: dict[str, Any] | None) -> str:
    """Say what tuning chose, and on how many rows."""
    if found is None:
        return "not tuned"
    chosen = ", ".join(f"{name}={value:g}" for name, value in found["chosen"].items())
    starts = f", starting from {'; '.join(found['starts'])}" if "starts" in found else ""
    size = f"{found['folds']} folds of at most {found['rows in a fold']} training rows"
    return f"tuned in {size}: {chosen}{starts} ({found['score']:.4f} on the rows left out)"


def _size(splits: list[Split]) -> dict[str, int]:
    return {"folds": len(splits), "rows in a fold": max(train.size for train, _ in splits)}
