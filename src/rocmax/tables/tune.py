"""Models by name, the choice of a family, and tuning by cross-validation on the training rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from rocmax._folds import (
    FOLD_RULES,
    Groups,
    folds,
    has_times,
    most_folds,
    search_folds,
    some_rows,
    standard_error,
)
from rocmax._support import Array, Bools, Index, hushed, need, part, stage
from rocmax._validation import class_scores
from rocmax.boosted.classifier import BoostedClassifier
from rocmax.data import DataError
from rocmax.ensemble import EnsembleClassifier
from rocmax.linear.auc import AUCClassifier
from rocmax.linear.partial_auc import PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.metrics import make_scorer
from rocmax.operators import moments
from rocmax.tables.options import Limits, window_measure
from rocmax.tables.preprocess import (
    Levels,
    additive_preprocessing,
    common_levels,
    preprocessing,
    text_places,
    tree_preprocessing,
)


@dataclass(frozen=True)
class TuningRules:
    """How much of a table is used for tuning and for the choice of a family, so that the time is bounded."""

    # Maximum number of training rows per class in a fold, and minimum number of negatives in the FPR range.
    max_rows: int = 20_000
    max_in_window: int = 300
    # Maximum number of training rows in a search of boosted trees; the model is fitted to all rows.
    max_searched: int = 200_000
    # The same for the first rows on which families are compared. Each part has four times as many as the one before, so
    # that all parts before the last take at most a third of its time. From the third part on, two families are left.
    max_compared: int = 4_000
    max_compared_in_window: int = 40
    rows_ratio: int = 4
    parts_of_all: int = 2
    # Tables with more rows are prepared in blocks of so many, by a preprocessing that is fitted to so many: medians,
    # knots and standard deviations have errors of 0.3 %.
    block: int = 100_000
    # Difference in standard errors from which a part of the rows decides between two families: about 95 %.
    clear: float = 2.0
    # Ends of the false-positive rates up to which linear models are trained for the average precision.
    precision_window: tuple[float, float] = (0.02, 0.5)
    # Number of values up to which one-hot columns become a dense matrix, which solvers go through faster.
    most_dense_values: int = 1_000_000
    # Maximum number of numeric columns for which an additive model, with six splines for each, is compared.
    max_spline_columns: int = 50


RULES = TuningRules()
NO_LIMIT = Limits(measure="roc_auc")

# Models by name.


# Families of models among which "auto" chooses, from the simplest to the most flexible.
FAMILIES = ("linear", "additive", "boosted", "ensemble")
MODELS = ("auto", *FAMILIES, "auc", "logistic", "svm", "lightgbm")
# Optional packages that models require.
PACKAGES = dict.fromkeys(("boosted", "ensemble", "lightgbm"), "lightgbm")
# Members of the ensemble.
MEMBERS = ("boosted", "extra_trees", "additive")
# The defaults of LightGBM's classifier.
LIGHTGBM: dict[str, Any] = {
    "objective": "binary",
    "max_leaf_nodes": 31,
    "learning_rate": 0.1,
    "n_estimators": 100,
    "n_models": 1,
}


def make_classifier(
    name: str,
    limits: Limits,
    positive: str,
    seed: int,
    splits: list[Split] | None = None,
    kinds: dict[str, str] | None = None,
) -> Any:
    """Return the unfitted classifier for a name, one of `MODELS` except "auto".

    "linear", and "additive", which has spline features, is the AUC classifier without a limit on either rate, and the
    partial-AUC classifier with one; its cross-validated version if the measure is the partial AUC and there are folds
    to tune it in. Without folds, "boosted" has the parameters of "lightgbm", also as a member of "ensemble", whose
    weights are then equal.
    """
    window: dict[str, Any] = {"min_fpr": limits.window[0], "max_fpr": limits.window[1], "min_tpr": limits.min_tpr}
    if name in ("linear", "additive") and limits.limited:
        if limits.measure == "partial_auc" and splits:
            return PartialAUCClassifierCV(**window, cv=splits, pos_label=positive)
        return PartialAUCClassifier(**window, pos_label=positive)
    if name in ("linear", "additive", "auc"):
        return AUCClassifier(pos_label=positive)
    if name == "logistic":
        return LogisticRegression(max_iter=1000)
    if name == "svm":
        return LinearSVC(dual="auto", random_state=seed)
    need_package(name)
    tuned = name != "lightgbm" and bool(splits)
    given: dict[str, Any] = {
        **window,
        "cv": splits if tuned else None,
        "categorical_features": text_places(kinds) or None,
        "random_state": seed,
        "pos_label": positive,
    }
    if name == "ensemble":
        untuned: dict[str, Any] = {"members": dict.fromkeys(MEMBERS, 1.0), "boosted": BoostedClassifier(**LIGHTGBM)}
        return EnsembleClassifier(str(limits.measure), **given, **({} if tuned else untuned))
    return BoostedClassifier(str(limits.measure), **given, **({} if tuned else LIGHTGBM))


def ranked_for(limits: Limits, positive: Bools) -> Limits:
    """Return the limits with the range of false-positive rates in which linear models are trained.

    The average precision depends on the top of the ranking. Its range has as many negatives as there are positives: the
    partial AUC there is better for it than the losses of the break-even point, and than the AUC.
    """
    if limits.measure != "average_precision" or limits.limited:
        return limits
    low, high = RULES.precision_window
    return replace(limits, max_fpr=float(np.clip(positive.sum() / (~positive).sum(), low, high)))


def check_table(name: str, kinds: dict[str, str] | None) -> None:
    """Raise DataError if a model cannot be fitted to a table with columns of these kinds."""
    if name in ("additive", "ensemble") and kinds is None:
        raise DataError(f"the model {name} requires a table with columns; got svmlight data")


def make_preprocessing(name: str, kinds: dict[str, str] | None, levels: Levels | None) -> Any:
    """Return the preprocessing for a model by name, with the categories of text columns."""
    if name == "additive" and kinds is not None:
        return additive_preprocessing(kinds, levels)
    return tree_preprocessing(kinds, levels) if name in PACKAGES else preprocessing(kinds, levels)


def need_package(name: str) -> None:
    """Raise ImportError if the package that a model requires is missing."""
    if name in PACKAGES:
        need(PACKAGES[name])


def tuning_grid(name: str, classifier: Any) -> dict[str, list[Any]] | None:
    """Return the grid of the classifier's main parameter, with five values, or None if it tunes itself."""
    if name in ("boosted", "ensemble") or isinstance(classifier, PartialAUCClassifierCV):
        return None
    if name == "lightgbm":
        return {"max_leaf_nodes": [7, 15, 31, 63, 127]}
    return {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}


# Choice of a family of models by cross-validation: linear, additive, boosted trees or an ensemble of these.


def families_for(kinds: dict[str, str] | None, n_rows: int) -> tuple[list[str], list[str]]:
    """Return the families that can be fitted to a table, the simplest first, and a note for each of the others."""
    reasons = {}
    numbers = 0 if kinds is None else sum(kind == "number" for kind in kinds.values())
    if kinds is None:
        reasons["additive"] = "it requires a table with columns, not svmlight data"
    elif numbers > RULES.max_spline_columns:
        reasons["additive"] = f"{numbers} numeric columns are too many for the time of a comparison"
    if kinds is None:
        reasons["ensemble"] = reasons["additive"]
    elif n_rows > FOLD_RULES.five:
        # It doubles the time, and its gain is known for up to 5,000 rows (benchmarks/results/ensemble.md).
        reasons["ensemble"] = f"{n_rows:,} rows are too many for the time of a comparison"
    try:
        need_package("boosted")
    except ImportError as error:
        reasons["boosted"] = reasons["ensemble"] = str(error)
    notes = [f"the family {name} is left out: {reason}" for name, reason in reasons.items()]
    return [name for name in FAMILIES if name not in reasons], notes


def compare_families(
    candidates: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    groups: Groups,
    parts: Sequence[Index] | None = None,
) -> dict[str, Any]:
    """Tune each family in the same cross-validation folds; choose the one with the best scores on the held-out rows.

    A family is represented by the best of its parameters. The parameters are chosen with the same rows, so the means
    are slightly too high; all families have this advantage. Parameters that were chosen without the held-out rows of
    each fold would take as many searches as there are folds.

    The comparison is a race over growing ``parts`` of the rows; None compares all rows at once. A part leaves out the
    families that :func:`still_in` decides against, and the next part compares the others, until one is left or there
    are no more parts. After `TuningRules.parts_of_all` parts, the most flexible family and the best of the others go
    on. The best mean on the last part is chosen: to prefer a simpler family within a standard error of it costs more on
    new rows than it saves (benchmarks/results/family_choice.md).

    Return the chosen "family", a "table" as in :func:`family_table`, with the "rows" of the last part on which each
    family was compared and "seconds" on all parts, and "rows", "folds" and "rows in a fold" of the last part.
    """
    parts = [np.arange(y.size)] if parts is None else parts
    names, seconds, last = list(candidates), dict.fromkeys(candidates, 0.0), dict.fromkeys(candidates, 0.0)
    results: dict[str, dict[str, Any]] = {}
    before: dict[str, Array] = {}
    for number, rows in enumerate(parts, 1):
        X_part, y_part, groups_part = (some_rows(values, rows) for values in (X, y, groups))
        size = f" on {rows.size:,} rows" if len(parts) > 1 else ""
        scores = {}
        for position, name in enumerate(names, 1):
            start = perf_counter()
            known = [last[each] for each in names[position - 1 :]]
            left = _time_left(sum(known) * rows.size / parts[number - 2].size) if all(known) else ""
            with part(f"family {position} of {len(names)}{size}{left}"):
                stage(f"preparing {name}")
                model = candidates[name].fit(X_part, y_part, groups_part)
                scores[name] = np.asarray(model.held_out_scores(X_part, y_part, groups_part))
            last[name] = perf_counter() - start
            seconds[name] += last[name]
        results |= {row["family"]: row | {"rows": int(rows.size)} for row in family_table(scores, seconds)}
        size_of_folds = {key: candidates[names[0]].tuning_[key] for key in ("folds", "rows in a fold")}
        names = still_in(scores, before)
        if len(names) == 1:
            break
        if number >= RULES.parts_of_all:
            names = [max(names[:-1], key=lambda name: scores[name].mean()), names[-1]]
        before = scores
    best = names[0] if len(names) == 1 else max(scores, key=lambda name: scores[name].mean())
    for name, row in results.items():
        row["chosen"] = name == best
    table = [results[name] for name in candidates]
    return {"family": best, "table": table, "rows": int(rows.size), **size_of_folds}


def _time_left(seconds: float) -> str:
    """Return how long some rows take, estimated from fewer rows, as text."""
    return f", about {round(seconds) // 60}:{round(seconds) % 60:02} left"


def still_in(scores: Mapping[str, Array], before: Mapping[str, Array]) -> list[str]:
    """Return the families that a part of the rows does not decide against, the simplest first.

    A family is out if a more flexible one is better by `TuningRules.clear` standard errors of the paired difference:
    more rows favor the more flexible one. It is also out if a simpler one is better by as much, and the lead is no
    smaller than ``before``, on fewer rows, so that more rows do not help. The first part never decides against a more
    flexible family.
    """
    names, out = list(scores), set()
    for simple, flexible in combinations(names, 2):
        lead = scores[flexible] - scores[simple]
        if lead.size < 2 or abs(lead.mean()) <= RULES.clear * standard_error(lead):
            continue
        if lead.mean() > 0:
            out.add(simple)
        elif simple in before and flexible in before:
            shrinks = lead.mean() > before[flexible].mean() - before[simple].mean()
            out |= set() if shrinks else {flexible}
    return [name for name in names if name not in out]


def family_table(scores: Mapping[str, Any], seconds: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the table behind the choice of a family, from the scores of each fold.

    The "difference_error" is the standard error of the paired difference to the best family over the folds. Families
    are good or bad on the same folds, so it is smaller than the standard error of a mean, and it is the one that says
    whether the difference could be noise. The standard errors are None for a single fold.
    """
    by_family = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    best = max(by_family, key=lambda name: by_family[name].mean())
    return [
        {
            "family": name,
            "mean": float(values.mean()),
            "standard_error": _error(values),
            "difference": 0.0 if name == best else float((values - by_family[best]).mean()),
            "difference_error": _error(by_family[best] - values),
            "seconds": round(seconds[name], 3),
            "chosen": name == best,
        }
        for name, values in by_family.items()
    ]


def family_text(found: dict[str, Any]) -> str:
    """Return a description of the comparison of families in one line."""
    rows = [f"{row['family']} {row['mean']:.4f} ({row['difference']:+.4f})" for row in found["table"]]
    return f"{', '.join(rows)} {family_rows(found)}; chosen: {found['family']}"


def family_rows(found: dict[str, Any]) -> str:
    """Return the rows and folds of a comparison of families as text."""
    size = f"{found['folds']} folds of at most {found['rows in a fold']} training rows"
    return f"in cross-validation on {found['rows']:,} training rows, in {size}"


def _error(values: Array) -> float | None:
    return None if values.size < 2 else float(standard_error(values))


# Tuning of a model by cross-validation on its training rows, in bounded time for large tables.


Split = tuple[Index, Index]


class TunedPipeline(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Model given by name, with preprocessing and tuning on its training rows.

    ``pipeline_`` is fitted to all training rows, which took ``seconds_``; ``tuning_`` has the candidates and the chosen
    parameters, None without tuning or if there are too few rows for cross-validation. ``kinds`` is the kind of each
    column, None for sparse matrices.
    """

    def __init__(
        self,
        model: str = "linear",
        *,
        kinds: dict[str, str] | None = None,
        limits: Limits = NO_LIMIT,
        positive: str = "1",
        tune: bool = True,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.kinds = kinds
        self.limits = limits
        self.positive = positive
        self.tune = tune
        self.seed = seed

    def fit(self, X: Any, y: NDArray[Any], groups: Groups = None) -> TunedPipeline:
        """Tune and fit; groups are not split between folds."""
        start = perf_counter()
        splits = self._splits(y, groups) if self.tune else []
        limits = ranked_for(self.limits, y == self.positive)
        classifier = make_classifier(self.model, limits, self.positive, self.seed, splits, self.kinds)
        table = make_preprocessing(self.model, self.kinds, common_levels(X, self.kinds))
        pipeline = Pipeline([("table", table), ("model", classifier)])
        grid = tuning_grid(self.model, classifier)
        self.tuning_: dict[str, Any] | None = None
        self._fold_scores: list[float] | None = None
        if not splits:
            _fit(classifier, prepared(table, X, classifier), y)
            self.pipeline_ = pipeline
        elif grid is None:
            stage(f"tuning {self.model} in {len(splits)} folds")
            with part(f"tuning {self.model}"):
                self.pipeline_, self.tuning_, self._fold_scores = fit_self_tuned(pipeline, X, y, splits)
        else:
            fits = len(splits) * len(next(iter(grid.values())))
            scorer = _counted(self._scorer(), f"tuning {self.model}", fits)
            self.pipeline_, self.tuning_, self._fold_scores = fit_tuned(pipeline, X, y, splits, scorer, grid)
        self.classes_, self.seconds_ = self.pipeline_.classes_, perf_counter() - start
        return self

    def held_out_scores(self, X: Any, y: NDArray[Any], groups: Groups) -> list[float]:
        """Return the score of the chosen parameters on the held-out rows of each fold of :func:`tuning_splits`.

        The rows, labels and groups are those of the fit.
        """
        if self._fold_scores is not None:
            return self._fold_scores
        rows, classifier = self.pipeline_.named_steps["table"].transform(X), self.pipeline_.named_steps["model"]
        fixed = with_choices(classifier)
        scoring, found = self._scorer(), []
        splits = tuning_splits(y == self.positive, groups, self.limits, self.seed)
        for number, (train, test) in enumerate(splits, 1):
            fixed.fit(rows[train], y[train])
            found.append(float(scoring(fixed, rows[test], y[test])))
            stage(f"scoring {self.model}: fold {number} of {len(splits)}", number, len(splits))
        return found

    def _splits(self, y: NDArray[Any], groups: Groups) -> list[Split]:
        if self.model == "boosted":
            return boosted_splits(y == self.positive, groups, self.seed)
        return tuning_splits(y == self.positive, groups, self.limits, self.seed)

    def _scorer(self) -> Callable[..., float]:
        scorer: Callable[..., float] = make_scorer(window_measure(self.limits), pos_label=self.positive)
        return scorer

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


class BestFamily(TunedPipeline):
    """The family of :func:`families_for` with the best cross-validated scores; without tuning, the linear one.

    After ``fit``, ``model_`` is the name of the family, and ``families_`` the comparison as in
    :func:`compare_families`, None if the families were not compared.
    """

    def fit(self, X: Any, y: NDArray[Any], groups: Groups = None) -> BestFamily:
        """Compare the families and fit the chosen one; groups are not split between folds."""
        chosen = self._named("linear")
        self.families_: dict[str, Any] | None = None
        parts = compared_parts(y == self.positive, self.limits, self.seed)
        first = parts[0]
        if self.tune and tuning_splits(y[first] == self.positive, some_rows(groups, first), self.limits, self.seed):
            candidates = {name: self._named(name) for name in families_for(self.kinds, y.size)[0]}
            self.families_ = compare_families(candidates, X, y, groups, parts)
            chosen = candidates[self.families_["family"]]
        if self.families_ is None:
            chosen.fit(X, y, groups)
        elif self.families_["rows"] < y.size:
            (row,) = (each for each in self.families_["table"] if each["chosen"])
            with part(f"{chosen.model} on all rows{_time_left(chosen.seconds_ * y.size / row['rows'])}"):
                chosen.fit(X, y, groups)
        self.model_, self.pipeline_, self.tuning_ = chosen.model, chosen.pipeline_, chosen.tuning_
        self.classes_ = chosen.classes_
        return self

    def _named(self, name: str) -> TunedPipeline:
        return TunedPipeline(**{**self.get_params(), "model": name})


def tuned_model(name: str, **options: Any) -> TunedPipeline:
    """Return a model by its name, with the parameters of :class:`TunedPipeline`.

    A name thus refers to the same model in a fit and in a comparison.
    """
    return BestFamily(name, **options) if name == "auto" else TunedPipeline(name, **options)


def _counted(scorer: Callable[..., float], text: str, total: int) -> Callable[..., float]:
    """Return a scorer that reports each call, to count the fits of a search."""
    done = 0

    def score(*args: Any, **kwargs: Any) -> float:
        nonlocal done
        value = scorer(*args, **kwargs)
        done += 1
        stage(f"{text}: fit {done} of {total}", done, total)
        return value

    return score


def tuning_splits(positive: Bools, groups: Groups, limits: Limits, seed: int) -> list[Split]:
    """Return cross-validation folds of the training rows: 5 folds, repeated twice, for few rows, and 3 for many.

    Groups are not split between folds; with times, the folds go forward, and are not repeated. The training part of a
    fold is a random subsample if it has more rows of a class than `TuningRules` allows. Folds without both classes are
    removed, so the list may be empty.
    """
    if most_folds(positive, groups) < 2:
        return []
    n_folds = FOLD_RULES.n_folds(positive.size)
    most = _most_rows(RULES.max_rows, RULES.max_in_window, limits)
    rng, found = np.random.default_rng(seed), []
    for repeat in range(2 if positive.size <= FOLD_RULES.twice and not has_times(groups) else 1):
        for train, test in folds(positive, n_folds, (seed + repeat) % 2**32, groups):
            found.append((_at_most(most, train, positive, rng), test))
    return _with_both_classes(found, positive)


def boosted_splits(positive: Bools, groups: Groups, seed: int) -> list[Split]:
    """Return the folds in which boosted trees are tuned, with a bounded number of training rows."""
    if most_folds(positive, groups) < 2:
        return []
    rng, most = np.random.default_rng(seed), RULES.max_searched
    splits = [
        (train if train.size <= most else np.sort(rng.choice(train, most, replace=False)), test)
        for train, test in search_folds(positive, seed, groups)
    ]
    return _with_both_classes(splits, positive)


def compared_parts(positive: Bools, limits: Limits, seed: int) -> list[Index]:
    """Return the growing parts of the rows on which families are compared; the last one is all rows.

    A part with more than half of the rows is replaced by all rows.
    """
    most = _most_rows(RULES.max_compared, RULES.max_compared_in_window, limits)
    rng, every = np.random.default_rng(seed), np.arange(positive.size)
    found: list[Index] = []
    while 2 * (rows := _at_most(most, every, positive, rng)).size <= positive.size:
        found.append(rows)
        most *= RULES.rows_ratio
    return [*found, every]


def _most_rows(most: int, in_window: int, limits: Limits) -> int:
    """Return a number of rows of a class that gives enough of them in the FPR range, and above the required TPR."""
    return max(most, round(in_window / min(limits.window[1] - limits.window[0], 1 - limits.min_tpr)))


def _at_most(most: int, rows: Index, positive: Bools, rng: np.random.Generator) -> Index:
    """Return the rows, with a random subsample of a class that has more than ``most``."""
    sides = [rows[positive[rows] == side] for side in (True, False)]
    kept = [rng.choice(side, most, replace=False) if side.size > most else side for side in sides]
    return np.sort(np.concatenate(kept))


def _with_both_classes(splits: list[Split], positive: Bools) -> list[Split]:
    return [split for split in splits if all(0 < positive[rows].sum() < rows.size for rows in split)]


def fit_tuned(
    pipeline: Pipeline,
    X: Any,
    labels: NDArray[Any],
    splits: list[Split],
    scoring: Callable[..., float],
    grid: Any,
) -> tuple[Pipeline, dict[str, Any], list[float]]:
    """Choose the best parameters of a grid by cross-validation and fit the pipeline to all rows.

    The search hides convergence warnings; the final fit does not. Return the fitted pipeline, the result of the search,
    and the score of the chosen parameters in each fold.
    """
    table, classifier = clone(pipeline.named_steps["table"]), clone(pipeline.named_steps["model"])
    rows = prepared(table, X, classifier)
    with hushed(ConvergenceWarning):
        search = GridSearchCV(classifier, grid, scoring=scoring, cv=splits, refit=False, error_score="raise").fit(
            rows, labels
        )
    _fit(classifier.set_params(**search.best_params_), rows, labels)
    found = {"chosen": search.best_params_, "tried": grid, "score": float(search.best_score_), **_size(splits)}
    by_fold = [float(search.cv_results_[f"split{i}_test_score"][search.best_index_]) for i in range(len(splits))]
    return Pipeline([("table", table), ("model", classifier)]), found, by_fold


def _fit(classifier: Any, rows: Any, labels: NDArray[Any], weight: Array | None = None) -> None:
    """Fit a classifier; those of scikit-learn get the means to which contributions refer."""
    classifier.fit(rows, labels, **({} if weight is None else {"sample_weight": weight}))
    if not hasattr(classifier, "contributions"):
        classifier._feature_means_ = moments(rows, weight)[0]


def prepared(table: Any, X: Any, classifier: Any) -> Any:
    """Fit the preprocessing, and return the rows for a classifier.

    Small one-hot columns become a dense matrix: solvers then take a fraction of the time. Many rows are prepared in
    blocks; those of a linear model are of single precision.
    """
    n_rows, size = X.shape[0], RULES.block
    if n_rows <= size or scipy.sparse.issparse(X):
        rows = table.fit_transform(X)
        small = scipy.sparse.issparse(rows) and rows.shape[0] * rows.shape[1] <= RULES.most_dense_values
        return rows.toarray() if small else rows
    table.fit(X.iloc[np.linspace(0, n_rows - 1, size, dtype=np.intp)])
    dtype = np.float64 if isinstance(classifier, BoostedClassifier | EnsembleClassifier) else np.float32
    blocks = (table.transform(X.iloc[i : i + size]).astype(dtype, copy=False) for i in range(0, n_rows, size))
    first = next(blocks)
    if scipy.sparse.issparse(first):
        return scipy.sparse.vstack([first, *blocks], format="csr")
    rows = np.empty((n_rows, first.shape[1]), dtype)
    for i, block in enumerate(chain([first], blocks)):
        rows[i * size : (i + 1) * size] = block
    return rows


def fit_self_tuned(
    pipeline: Pipeline, X: Any, labels: NDArray[Any], splits: list[Split]
) -> tuple[Pipeline, dict[str, Any], list[float] | None]:
    """Fit a pipeline whose classifier is tuned in its own fit.

    Return it, the result of the tuning, and the score of the chosen parameters in each fold, if it is known.
    """
    classifier, by_fold = pipeline.named_steps["model"], list[float]()
    classifier.fit(prepared(pipeline.named_steps["table"], X, classifier), labels)
    classifier.set_params(cv=None)  # do not save the folds, which are large, with the model
    if isinstance(classifier, BoostedClassifier):
        results = classifier.cv_results_
        found = {
            "chosen": boosted_parameters(classifier),
            "tried": {name: sorted(set(results[name])) for name in ("objective", "max_leaf_nodes")},
            "score": float(max(results["mean_score"])),
            "scored by": "a smooth relative of the measure",
        }
        return pipeline, {**found, **_size(splits)}, None
    if isinstance(classifier, EnsembleClassifier):
        by_fold = classifier.fold_scores_.tolist()
        found = {"chosen": classifier.weights_, "tried": {"members": list(MEMBERS)}, "score": float(np.mean(by_fold))}
        return pipeline, {**found, **_size(splits)}, by_fold
    best = int(classifier.scores_.mean(axis=0).argmax())
    by_fold = classifier.scores_[:, best].tolist()
    found = {
        "chosen": {"C": classifier.C_},
        "tried": {"C": classifier.Cs_.tolist()},
        "starts": [classifier.start_],
        "score": float(np.mean(by_fold)),
    }
    return pipeline, {**found, **_size(splits)}, by_fold


def with_choices(classifier: Any) -> Any:
    """Return an unfitted classifier with the parameters that a fitted one has chosen."""
    if isinstance(classifier, PartialAUCClassifierCV):
        window = {name: getattr(classifier, name) for name in ("min_fpr", "max_fpr", "min_tpr", "pos_label")}
        # C = 0 is the starting point; the smallest C stays near to it.
        return PartialAUCClassifier(**window, C=classifier.C_ or min(classifier.Cs))
    chosen: dict[str, Any] = boosted_parameters(classifier) if isinstance(classifier, BoostedClassifier) else {}
    if isinstance(classifier, EnsembleClassifier):
        trees = classifier.members_.get("boosted")
        chosen = {"members": classifier.weights_, "boosted": None if trees is None else with_choices(trees)}
    return clone(classifier).set_params(**chosen)


def fitted_again(
    pipeline: Pipeline, X: Any, labels: NDArray[Any], splits: list[Split], weight: Array | None = None
) -> Pipeline:
    """Return the pipeline with the parameters that a fitted one has chosen, fitted to other rows or with weights.

    The mean of the models of several folds remains one; ``splits`` are its folds.
    """
    table, fitted = clone(pipeline.named_steps["table"]), pipeline.named_steps["model"]
    averaged = isinstance(fitted, PartialAUCClassifierCV) and bool(splits)
    classifier = with_choices(fitted)
    if averaged:
        classifier = clone(fitted).set_params(Cs=(fitted.C_ or min(fitted.Cs),), cv=splits)
    _fit(classifier, prepared(table, X, classifier), labels, weight)
    if averaged:
        classifier.set_params(cv=None)  # as in `fit_self_tuned`
    return Pipeline([("table", table), ("model", classifier)])


def boosted_parameters(classifier: BoostedClassifier) -> dict[str, Any]:
    """Return the parameters that boosted trees have chosen."""
    return {
        "objective": str(classifier.used_objective_),
        "max_leaf_nodes": int(classifier.max_leaf_nodes_),
        "learning_rate": float(classifier.learning_rate_),
        "n_estimators": int(classifier.n_estimators_),
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
