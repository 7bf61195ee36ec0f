"""Tuning of a model by cross-validation on its training rows, in bounded time for large tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from rocmax._progress import CountedScorer, part, stage
from rocmax._quiet import hushed
from rocmax._response import class_scores
from rocmax._typing import Array
from rocmax.estimators import BoostedClassifier
from rocmax.metrics import make_scorer
from rocmax.workflow.families import compare_families, families_for, some_rows
from rocmax.workflow.measuring import window_measure
from rocmax.workflow.models import WHOLE, make_classifier, make_preprocessing, tuning_grid
from rocmax.workflow.preprocessing import common_levels

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]

# Up to these numbers of rows, 5-fold cross-validation is run twice, or once; above, it has three folds.
FEW_ROWS, MANY_ROWS = 5_000, 20_000
# Above this number of rows, boosted trees are tuned on one split.
MOST_ROWS_IN_FOLDS = 30_000
# Maximum number of training rows per class in a fold, and minimum number of negatives in the FPR range.
MAX_ROWS, MAX_IN_WINDOW = 20_000, 300
# The same for the first rows on which families are compared. Each part has four times as many as the one before, so
# that all parts before the last take at most a third of its time; the third part is the last that is not all rows.
MAX_COMPARED, MAX_COMPARED_IN_WINDOW = 4_000, 40
GROWTH, MOST_PARTS = 4, 3
# Number of values up to which one-hot columns become a dense matrix.
MOST_DENSE_VALUES = 1_000_000


class TunedPipeline(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Model given by name, with preprocessing and tuning on its training rows.

    Both :func:`rocmax.workflow.fit_table` and :func:`rocmax.workflow.compare_models` use this class, so that a name
    refers to the same model in both.

    Parameters
    ----------
    model : str, default="auto"
        Name of the model, as in :func:`rocmax.workflow.models.make_classifier`; or "auto", which compares the families
        of :func:`rocmax.workflow.families.families_for` by cross-validation, and is "linear" without tuning.
    kinds : dict or None, default=None
        Kind of each column; None for sparse matrices.
    window : tuple of float, default=(0.0, 1.0)
        Range of false-positive rates.
    measure : str, default="roc_auc"
        Measure to tune for.
    positive : str, default="1"
        Label of the positive class.
    tune : bool, default=True
        Whether to tune.
    seed : int, default=0
        Seed of the folds and of the classifier.
    min_tpr : float, default=0.0
        Required true-positive rate.

    Attributes
    ----------
    family_ : str
        Name of the model that was fitted: the chosen family for "auto".
    families_ : dict or None
        Comparison of the families, as in :func:`rocmax.workflow.families.compare_families`; None except for "auto".
    pipeline_ : Pipeline
        Preprocessing and classifier, fitted to all training rows.
    tuning_ : dict or None
        Candidates and chosen parameters; None without tuning or if there are too few rows for cross-validation.
    classes_ : ndarray of shape (2,)
        Class labels.
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
        min_tpr: float = 0.0,
    ) -> None:
        self.model = model
        self.kinds = kinds
        self.window = window
        self.measure = measure
        self.positive = positive
        self.tune = tune
        self.seed = seed
        self.min_tpr = min_tpr

    def fit(self, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None) -> TunedPipeline:
        """Choose the family if the model is "auto", tune and fit; groups are not split between folds."""
        if self.model == "auto":
            return self._fit_auto(X, y, groups)
        self.family_ = self.model
        self.families_: dict[str, Any] | None = None
        splits = self._splits(y, groups) if self.tune else []
        classifier = make_classifier(
            self.model, self.window, self.positive, self.seed, self.measure, splits, self.kinds, self.min_tpr
        )
        table = make_preprocessing(self.model, self.kinds, common_levels(X, self.kinds))
        pipeline = Pipeline([("table", table), ("model", classifier)])
        grid = tuning_grid(self.model, classifier)
        self.tuning_: dict[str, Any] | None = None
        self._fold_scores: list[float] | None = None
        if not splits:
            self.pipeline_ = pipeline.fit(X, y)
        elif grid is None:
            stage(f"tuning {self.model} in {len(splits)} folds")
            with part(f"tuning {self.model}"):
                self.pipeline_, self.tuning_, self._fold_scores = fit_self_tuned(pipeline, X, y, splits)
        else:
            # Hide convergence warnings of the search; the final fit still warns.
            quietly = hushed(ConvergenceWarning)
            fits = len(splits) * len(next(iter(grid.values())))
            scorer = CountedScorer(self._scorer(), f"tuning {self.model}", fits)
            self.pipeline_, self.tuning_, self._fold_scores = fit_tuned(pipeline, X, y, splits, scorer, grid, quietly)
        self.classes_ = self.pipeline_.classes_
        return self

    def held_out_scores(self, X: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> list[float]:
        """Return the score of the chosen parameters on the held-out rows of each fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit.
        y : ndarray of shape (n_samples,)
            Their labels.
        groups : ndarray of shape (n_samples,) or None
            Their groups.

        Returns
        -------
        list of float
            Score of each fold of :func:`tuning_splits`.
        """
        if self._fold_scores is not None:
            return self._fold_scores
        rows, classifier = self.pipeline_.named_steps["table"].transform(X), self.pipeline_.named_steps["model"]
        fixed = clone(classifier).set_params(**boosted_parameters(classifier))
        scoring, found = self._scorer(), []
        splits = tuning_splits(y == self.positive, groups, self.window, self.seed, self.min_tpr)
        for number, (train, test) in enumerate(splits, 1):
            fixed.fit(rows[train], y[train])
            found.append(float(scoring(fixed, rows[test], y[test])))
            stage(f"scoring {self.model}: fold {number} of {len(splits)}", number, len(splits))
        return found

    def _splits(self, y: NDArray[Any], groups: NDArray[Any] | None) -> list[Split]:
        if self.model == "boosted":
            return boosted_splits(y == self.positive, groups, self.seed)
        return tuning_splits(y == self.positive, groups, self.window, self.seed, self.min_tpr)

    def _scorer(self) -> Callable[..., float]:
        measure = window_measure(self.measure, self.window, self.min_tpr)
        scorer: Callable[..., float] = make_scorer(measure, pos_label=self.positive)
        return scorer

    def _fit_auto(self, X: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> TunedPipeline:
        """Fit the chosen family; without cross-validation, the linear one."""
        chosen = self._named("linear")
        self.families_ = None
        limits: dict[str, Any] = {"window": self.window, "seed": self.seed, "min_tpr": self.min_tpr}
        parts = compared_parts(y == self.positive, **limits)
        first = parts[0]
        if self.tune and tuning_splits(y[first] == self.positive, some_rows(groups, first), **limits):
            candidates = {name: self._named(name) for name in families_for(self.kinds)[0]}
            self.families_ = compare_families(candidates, X, y, groups, parts)
            chosen = candidates[self.families_["family"]]
        if self.families_ is None or self.families_["rows"] < y.size:
            chosen.fit(X, y, groups)
        self.family_, self.pipeline_, self.classes_ = chosen.model, chosen.pipeline_, chosen.classes_
        self.tuning_ = chosen.tuning_
        return self

    def _named(self, name: str) -> TunedPipeline:
        return TunedPipeline(**{**self.get_params(), "model": name})

    @property
    def pos_label(self) -> str:
        """Label of the positive class."""
        return self.positive

    def decision_function(self, X: Any) -> Array:
        """Return the scores for ``classes_[1]``."""
        return class_scores(self.pipeline_, X, 1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels."""
        result: NDArray[Any] = self.pipeline_.predict(X)
        return result


def tuning_splits(
    positive: NDArray[np.bool_],
    groups: NDArray[Any] | None,
    window: tuple[float, float],
    seed: int,
    min_tpr: float = 0.0,
) -> list[Split]:
    """Return cross-validation folds of the training rows: 5 folds, repeated twice, for few rows, and 3 for many.

    Groups are not split between folds. The training part of a fold is a random subsample if it has more than `MAX_ROWS`
    rows of a class, or more than the number of rows that gives `MAX_IN_WINDOW` negatives in the FPR range, or positives
    above the required TPR, if that is larger. Folds without both classes are removed, so the list may be empty.
    """
    rarest = int(min(positive.sum(), (~positive).sum()))
    n_folds = min(5 if positive.size <= MANY_ROWS else 3, rarest)
    if n_folds < 2:
        return []
    most = max(MAX_ROWS, round(MAX_IN_WINDOW / min(window[1] - window[0], 1 - min_tpr)))
    rng, found = np.random.default_rng(seed), []
    for repeat in range(2 if positive.size <= FEW_ROWS else 1):
        for train, test in _folds(positive, groups, n_folds, (seed + repeat) % 2**32):
            kept = _at_most(most, train, positive, rng)
            if 0 < positive[kept].sum() < kept.size and 0 < positive[test].sum() < test.size:
                found.append((kept, test))
    return found


def boosted_splits(positive: NDArray[np.bool_], groups: NDArray[Any] | None, seed: int) -> list[Split]:
    """Return the folds in which boosted trees are tuned, with all rows; groups are not split between folds.

    There are five folds for few rows and three for many, as by default in :class:`rocmax.BoostedClassifier`; for more
    than `MOST_ROWS_IN_FOLDS`, there is one held-out quarter.
    """
    n_rows, rarest = positive.size, int(min(positive.sum(), (~positive).sum()))
    n_folds = 4 if n_rows > MOST_ROWS_IN_FOLDS else 3 if n_rows > MANY_ROWS else 5
    if rarest < 2:
        return []
    found = _folds(positive, groups, min(n_folds, rarest), seed)
    kept = [split for split in found if all(0 < positive[part].sum() < part.size for part in split)]
    return kept[:1] if n_rows > MOST_ROWS_IN_FOLDS else kept


def compared_parts(
    positive: NDArray[np.bool_], window: tuple[float, float], seed: int, min_tpr: float = 0.0
) -> list[Rows]:
    """Return the growing parts of the rows on which families are compared; the last one is usually all rows.

    In the first part, a class has at most `MAX_COMPARED` rows, or enough for `MAX_COMPARED_IN_WINDOW` negatives in the
    FPR range or positives above the required TPR; each other part has `GROWTH` times as many. A part with more than
    half of the rows is replaced by all rows. After `MOST_PARTS` such parts, the time of the comparison is bounded, and
    all rows are not compared.
    """
    most = max(MAX_COMPARED, round(MAX_COMPARED_IN_WINDOW / min(window[1] - window[0], 1 - min_tpr)))
    rng = np.random.default_rng(seed)
    found: list[Rows] = []
    for i in range(MOST_PARTS):
        rows = _at_most(most * GROWTH**i, np.arange(positive.size), positive, rng)
        if 2 * rows.size > positive.size:
            return [*found, np.arange(positive.size)]
        found.append(rows)
    return found


def _at_most(most: int, rows: Rows, positive: NDArray[np.bool_], rng: np.random.Generator) -> Rows:
    """Return the rows, with a random subsample of a class that has more than ``most``."""
    parts = [rows[positive[rows] == side] for side in (True, False)]
    kept = [rng.choice(part, most, replace=False) if part.size > most else part for part in parts]
    return np.sort(np.concatenate(kept))


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
) -> tuple[Pipeline, dict[str, Any], list[float]]:
    """Choose the best parameters of a grid by cross-validation and fit the pipeline to all rows.

    The search runs within the context ``while_searching``; the final fit does not. Return the fitted pipeline, the
    result of the search, and the score of the chosen parameters in each fold.
    """
    table, classifier = clone(pipeline.named_steps["table"]), clone(pipeline.named_steps["model"])
    rows = dense_if_small(table.fit_transform(X))
    with while_searching or nullcontext():
        search = GridSearchCV(classifier, grid, scoring=scoring, cv=splits, refit=False, error_score="raise").fit(
            rows, labels
        )
    classifier.set_params(**search.best_params_).fit(rows, labels)
    facts = {"chosen": search.best_params_, "tried": grid, "score": float(search.best_score_), **_size(splits)}
    by_fold = [float(search.cv_results_[f"split{i}_test_score"][search.best_index_]) for i in range(len(splits))]
    return Pipeline([("table", table), ("model", classifier)]), facts, by_fold


def dense_if_small(rows: Any) -> Any:
    """Return one-hot columns as a dense matrix if it is small: solvers then take a fraction of the time."""
    small = scipy.sparse.issparse(rows) and rows.shape[0] * rows.shape[1] <= MOST_DENSE_VALUES
    return rows.toarray() if small else rows


def fit_self_tuned(
    pipeline: Pipeline, X: Any, labels: NDArray[Any], splits: list[Split]
) -> tuple[Pipeline, dict[str, Any], list[float] | None]:
    """Fit a pipeline whose classifier is tuned in its own fit.

    Return it, the result of the tuning, and the score of the chosen parameters in each fold, if it is known.
    """
    classifier = pipeline.named_steps["model"]
    classifier.fit(dense_if_small(pipeline.named_steps["table"].fit_transform(X)), labels)
    classifier.set_params(cv=None)  # do not save the folds, which are large, with the model
    if isinstance(classifier, BoostedClassifier):
        return pipeline, {**_boosted_facts(classifier), **_size(splits)}, None
    best = int(classifier.scores_.mean(axis=0).argmax())
    by_fold: list[float] = classifier.scores_[:, best].tolist()
    facts = {
        "chosen": {"C": classifier.C_},
        "tried": {"C": classifier.Cs_.tolist()},
        "starts": list(classifier.starts_),
        "score": float(np.mean(by_fold)),
        **_size(splits),
    }
    return pipeline, facts, by_fold


def boosted_parameters(classifier: BoostedClassifier) -> dict[str, Any]:
    """Return the parameters that boosted trees have chosen."""
    return {
        "objective": str(classifier.used_objective_),
        "max_leaf_nodes": int(classifier.max_leaf_nodes_),
        "learning_rate": float(classifier.learning_rate_),
        "n_estimators": int(classifier.n_estimators_),
    }


def _boosted_facts(classifier: BoostedClassifier) -> dict[str, Any]:
    results = classifier.cv_results_
    return {
        "chosen": boosted_parameters(classifier),
        "tried": {name: sorted(set(results[name])) for name in ("objective", "max_leaf_nodes")},
        "score": float(max(results["mean_score"])),
        "scored by": "a smooth relative of the measure",
    }


def tuning_text(found: dict[str, Any] | None) -> str:
    """Return a description of the result of tuning."""
    if found is None:
        return "not tuned"
    chosen = ", ".join(
        f"{name}={value if isinstance(value, str) else format(value, 'g')}" for name, value in found["chosen"].items()
    )
    starts = f", starting from {'; '.join(found['starts'])}" if "starts" in found else ""
    size = f"{found['folds']} folds of at most {found['rows in a fold']} training rows"
    measure = f" by {found['scored by']}" if "scored by" in found else ""
    rows = f" on {found['held-out rows']:,} training rows" if "held-out rows" in found else ""
    return f"tuned in {size}: {chosen}{starts} ({found['score']:.4f} in cross-validation{rows}{measure})"


def _size(splits: list[Split]) -> dict[str, int]:
    held_out = np.unique(np.concatenate([test for _, test in splits])).size
    return {
        "folds": len(splits),
        "rows in a fold": max(train.size for train, _ in splits),
        "held-out rows": int(held_out),
    }
