"""Models by name, the choice of a family, and tuning by cross-validation on the training rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from inspect import Parameter
from itertools import combinations
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
from sklearn.utils import _safe_indexing

from rocmax._folds import FOLD_RULES, close_to_best, folds, most_folds, search_folds, standard_error
from rocmax._support import Array, CountedScorer, hushed, need, part, stage
from rocmax._validation import class_scores, positive_index
from rocmax.boosted.classifier import BoostedClassifier
from rocmax.data import DataError
from rocmax.linear.auc import AUCClassifier
from rocmax.linear.partial_auc import PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.measures import Measure, measure_names, pick_measure
from rocmax.metrics import make_scorer
from rocmax.metrics.scores import METRICS
from rocmax.metrics.uncertainty import estimate_with_delong, interval_notes
from rocmax.tables.preprocess import (
    Levels,
    additive_preprocessing,
    common_levels,
    preprocessing,
    text_places,
    tree_preprocessing,
)

# Measures of the workflow: those computed from scores on a range of rates, with intervals.


# Parameters of measures that the workflow sets: the range of false-positive rates, and the required TPR.
WINDOW = ("min_fpr", "max_fpr")
LIMITS = (*WINDOW, "min_tpr")
N_RESAMPLES = 1000


def window_measure_names() -> list[str]:
    """Return the names of score measures without required parameters other than the range of false-positive rates.

    Threshold-based measures are left out because tuning uses scores.
    """
    return [
        name
        for name in measure_names()
        if not METRICS[name].takes_labels
        and all(key in WINDOW or default is not Parameter.empty for key, default in METRICS[name].parameters.items())
    ]


def window_measure(name: str, window: tuple[float, float], min_tpr: float = 0.0) -> Measure:
    """Return a measure, with the range of false-positive rates and the required TPR if it has them."""
    return pick_measure(name, dict(zip(LIMITS, (*window, min_tpr), strict=True)))


def usable_groups(groups: Any, positive: Any) -> tuple[Any, list[str]]:
    """Return the groups of labeled rows; None and a note if a class has too few of them for an interval."""
    if groups is None:
        return None, []
    counts = {name: np.unique(groups[side]).size for name, side in (("positive", positive), ("negative", ~positive))}
    few = [f"{name} rows of one group only" for name, count in counts.items() if count < 2]
    if not few:
        return groups, []
    return None, [f"{' and '.join(few)}: the confidence intervals are for independent rows and can be too narrow"]


def measured(
    names: list[str], about: dict[str, Any], positive: Any, scores: Any, groups: Any = None
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the values of measures with their confidence intervals, by name, and notes about too narrow ones.

    Groups are independent or, without groups, rows.
    """
    window = about["min_fpr"], about["max_fpr"]
    measures = [window_measure(name, window, about.get("min_tpr", 0.0)) for name in names]
    options: dict[str, Any] = {"n_resamples": N_RESAMPLES, "random_state": about["seed"], "groups": groups}
    found = estimate_with_delong([(measure, {}) for measure in measures], positive, scores, **options)
    by_name = {
        measure.name: {"value": each.value, "low": each.low, "high": each.high}
        | {key: measure.params[key] for key in LIMITS if key in measure.params}
        for measure, each in zip(measures, found, strict=True)
    }
    return by_name, interval_notes((m.title, each.caution) for m, each in zip(measures, found, strict=True))


# Models by name.


# Families of models among which "auto" chooses, from the simplest to the most flexible.
FAMILIES = ("linear", "additive", "boosted")
MODELS = ("auto", *FAMILIES, "auc", "logistic", "svm", "lightgbm")
# Optional packages that models require.
PACKAGES = {"boosted": "lightgbm", "lightgbm": "lightgbm"}
# Range of false-positive rates without a limit.
WHOLE = (0.0, 1.0)
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
    window: tuple[float, float],
    positive: str,
    seed: int,
    measure: str = "partial_auc",
    folds: list[tuple[NDArray[Any], NDArray[Any]]] | None = None,
    kinds: dict[str, str] | None = None,
    min_tpr: float = 0.0,
) -> Any:
    """Return the classifier for a name.

    Parameters
    ----------
    name : str
        One of `MODELS` except "auto". "linear" is the AUC classifier without a limit on either rate. With a
        limit, it is the partial-AUC classifier; its cross-validated version if the measure is the partial AUC and folds
        are given. "additive" is the same classifier on spline features.
    window : tuple of float
        Range of false-positive rates; (0, 1) for no limit.
    positive : str
        Label of the positive class.
    seed : int
        Seed of the random draws of a fit.
    measure : str, default="partial_auc"
        Measure to optimize.
    folds : list or None, default=None
        Folds of the training rows for tuning. If None, the classifier is not tuned; "boosted" then has the parameters
        of "lightgbm".
    kinds : dict or None, default=None
        Kind of each column; None for sparse matrices.
    min_tpr : float, default=0.0
        Required true-positive rate; 0 for no limit.

    Returns
    -------
    estimator
        Unfitted classifier.
    """
    limits: dict[str, Any] = {"min_fpr": window[0], "max_fpr": window[1], "min_tpr": min_tpr}
    if name in ("linear", "additive") and (*window, min_tpr) != (*WHOLE, 0.0):
        if measure == "partial_auc" and folds:
            return PartialAUCClassifierCV(**limits, cv=folds, pos_label=positive)
        return PartialAUCClassifier(**limits, pos_label=positive)
    if name in ("linear", "additive", "auc"):
        return AUCClassifier(pos_label=positive)
    if name == "logistic":
        return LogisticRegression(max_iter=1000)
    if name == "svm":
        return LinearSVC(dual="auto", random_state=seed)
    if name in ("boosted", "lightgbm"):
        need_package(name)
        tuned = name == "boosted" and bool(folds)
        return BoostedClassifier(
            measure,
            **limits,
            cv=folds if tuned else None,
            categorical_features=text_places(kinds) or None,
            random_state=seed,
            pos_label=positive,
            **({} if tuned else LIGHTGBM),
        )
    raise ValueError(f"model must be one of {', '.join(MODELS[1:])}; got {name!r}")


def check_table(name: str, kinds: dict[str, str] | None) -> None:
    """Raise DataError if a model cannot be fitted to a table with columns of these kinds."""
    if name == "additive" and kinds is None:
        raise DataError("the model additive requires a table with columns; got svmlight data")


def make_preprocessing(name: str, kinds: dict[str, str] | None, levels: Levels | None = None) -> Any:
    """Return the preprocessing for a model by name, with the categories of text columns if they are known."""
    check_table(name, kinds)
    if name == "additive" and kinds is not None:
        return additive_preprocessing(kinds, levels)
    return tree_preprocessing(kinds, levels) if name in PACKAGES else preprocessing(kinds, levels)


def make_model(
    name: str, kinds: dict[str, str] | None, window: tuple[float, float], positive: str, seed: int
) -> Pipeline:
    """Return a pipeline of the preprocessing and an untuned classifier."""
    classifier = make_classifier(name, window, positive, seed, kinds=kinds)
    return Pipeline([("table", make_preprocessing(name, kinds)), ("model", classifier)])


def need_package(name: str) -> None:
    """Raise ImportError if the package that a model requires is missing."""
    if name in PACKAGES:
        need(PACKAGES[name])


def tuning_grid(name: str, classifier: Any) -> dict[str, list[Any]] | None:
    """Return the grid of the classifier's main parameter, with five values, or None if it tunes itself."""
    if name == "boosted" or isinstance(classifier, PartialAUCClassifierCV):
        return None
    if name == "lightgbm":
        return {"max_leaf_nodes": [7, 15, 31, 63, 127]}
    return {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}


def positive_scores(model: Any, X: Any, positive: str) -> Array:
    """Return scores in the direction of the positive class."""
    return class_scores(model, X, positive_index(model.classes_, positive))


# Choice of a family of models by cross-validation: linear, additive or boosted trees.


# Maximum number of numeric columns for which an additive model, with six splines for each, is compared.
MAX_SPLINE_COLUMNS = 50
# Difference to the best mean, in standard errors, within which a simpler family is chosen, if all rows are compared.
CLOSE = 1.0
# Difference in standard errors from which a part of the rows decides between two families.
CLEAR = 2.0


def families_for(kinds: dict[str, str] | None) -> tuple[list[str], list[str]]:
    """Return the families that can be fitted to a table, and a note for each of the others.

    Parameters
    ----------
    kinds : dict or None
        Kind of each column; None for sparse matrices.

    Returns
    -------
    families, notes : list of str
        Names from the simplest to the most flexible family, and the notes.
    """
    reasons = {}
    numbers = 0 if kinds is None else sum(kind == "number" for kind in kinds.values())
    if kinds is None:
        reasons["additive"] = "it requires a table with columns, not svmlight data"
    elif numbers > MAX_SPLINE_COLUMNS:
        reasons["additive"] = f"{numbers} numeric columns are too many for the time of a comparison"
    try:
        need_package("boosted")
    except ImportError as error:
        reasons["boosted"] = str(error)
    notes = [f"the family {name} is left out: {reason}" for name, reason in reasons.items()]
    return [name for name in FAMILIES if name not in reasons], notes


def compare_families(
    candidates: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    parts: Sequence[NDArray[np.intp]] | None = None,
) -> dict[str, Any]:
    """Tune each family in the same cross-validation folds and choose one by the scores on the held-out rows.

    A family is represented by the best of its parameters. The parameters are chosen with the same rows, so the means
    are slightly too high; all families have this advantage. Parameters that were chosen without the held-out rows of
    each fold would take as many searches as there are folds.

    The comparison is a race over growing parts of the rows. A part leaves out the families that :func:`still_in`
    decides against, and the next part compares the others, until one is left or there are no more parts. On all rows,
    the simplest family that is nearly as good as the best is chosen, as in :func:`family_table`. On a part of them,
    it is the best: a flexible family gains more from the rows that are not there.

    Parameters
    ----------
    candidates : dict of str to TunedPipeline
        Models by the name of the family, from the simplest to the most flexible. They are fitted.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : ndarray of shape (n_samples,)
        Labels.
    groups : ndarray of shape (n_samples,) or None
        Groups, which are not split between folds.
    parts : sequence of ndarray of int, default=None
        Rows of each part, from the smallest to the largest; None compares all rows.

    Returns
    -------
    dict
        "family", the chosen name; "table", a row for each family, as in :func:`family_table`, with the "rows" of the
        last part on which it was compared, "seconds" on all parts, and the difference to the best on that part;
        "rows", "folds" and "rows in a fold" of the last part.
    """
    parts = [np.arange(y.size)] if parts is None else parts
    names, seconds = list(candidates), dict.fromkeys(candidates, 0.0)
    results: dict[str, dict[str, Any]] = {}
    before: dict[str, Array] = {}
    for number, rows in enumerate(parts, 1):
        X_part, y_part, groups_part = (some_rows(values, rows) for values in (X, y, groups))
        size = f" on {rows.size:,} rows" if len(parts) > 1 else ""
        scores = {}
        for position, name in enumerate(names, 1):
            start = perf_counter()
            with part(f"family {position} of {len(names)}{size}"):
                stage(f"preparing {name}")
                model = candidates[name].fit(X_part, y_part, groups_part)
                scores[name] = np.asarray(model.held_out_scores(X_part, y_part, groups_part))
            seconds[name] += perf_counter() - start
        simple = rows.size == y.size
        table = family_table(scores, seconds, CLOSE if simple else 0.0)
        size_of_folds = {key: candidates[names[0]].tuning_[key] for key in ("folds", "rows in a fold")}
        results |= {row["family"]: {**row, "rows": int(rows.size), "chosen": False} for row in table}
        chosen = next(row["family"] for row in table if row["chosen"])
        names = still_in(scores, before)
        if number == len(parts) or len(names) == 1:
            chosen = chosen if number == len(parts) else names[0]
            break
        before = scores
    results[chosen]["chosen"] = True
    return {
        "family": chosen,
        "table": [results[name] for name in candidates],
        "rows": int(rows.size),
        **size_of_folds,
    }


def still_in(scores: Mapping[str, Array], before: Mapping[str, Array]) -> list[str]:
    """Return the families that a part of the rows does not decide against.

    A family is out if a more flexible one is better by `CLEAR` standard errors of the paired difference: more rows
    favor the more flexible one. It is also out if a simpler one is better by as much, and the lead is no smaller than
    on the part before, so that more rows do not help. A single part never decides against a more flexible family.

    Parameters
    ----------
    scores : dict of str to ndarray
        Score of each fold, by family, from the simplest to the most flexible.
    before : dict of str to ndarray
        The same on the part before, with fewer rows; empty for the first part.

    Returns
    -------
    list of str
        Names, from the simplest to the most flexible family.
    """
    names, out = list(scores), set()
    for simple, flexible in combinations(names, 2):
        lead = scores[flexible] - scores[simple]
        if lead.size < 2 or abs(lead.mean()) <= CLEAR * standard_error(lead):
            continue
        if lead.mean() > 0:
            out.add(simple)
        elif simple in before and flexible in before:
            shrinks = lead.mean() > before[flexible].mean() - before[simple].mean()
            out |= set() if shrinks else {flexible}
    return [name for name in names if name not in out]


def some_rows(values: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows, without a copy if they are all; None for None."""
    return values if values is None or rows.size == values.shape[0] else _safe_indexing(values, rows)


def family_table(
    scores: Mapping[str, Any], seconds: Mapping[str, float], errors: float = CLOSE
) -> list[dict[str, Any]]:
    r"""Return the table behind the choice of a family, the simplest that is nearly as good as the best.

    Nearly as good means that the difference of the means is at most its standard error (Breiman et al., 1984,
    section 3.4.3, for pruning trees). The standard error is that of the paired difference to the best over the
    :math:`k` folds, :math:`s / \sqrt{k}`, with the standard deviation :math:`s` of the differences.
    Families are good or bad on the same folds, so it is smaller than the standard error of a mean, and it is the one
    that says whether the difference could be noise.

    Parameters
    ----------
    scores : dict of str to sequence of float
        Score of each fold, by family, from the simplest to the most flexible.
    seconds : dict of str to float
        Time of the fit, by family.
    errors : float, default=1.0
        Difference to the best mean, in its standard errors, that counts as nearly as good.

    Returns
    -------
    list of dict
        For each family: "family", "mean", "standard_error" of the mean, "difference" to the best mean,
        "difference_error", the standard error of the difference, "seconds" and "chosen". The standard errors are None
        for a single fold, and then the simplest family is chosen.
    """
    by_family = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    best = max(by_family, key=lambda name: by_family[name].mean())
    by_fold = np.column_stack(list(by_family.values()))
    chosen = list(by_family)[0 if len(by_fold) == 1 else close_to_best(by_fold, errors)[0]]
    table: list[dict[str, Any]] = []
    for name, values in by_family.items():
        gap = by_family[best] - values
        table.append(
            {
                "family": name,
                "mean": float(values.mean()),
                "standard_error": _error(values),
                "difference": 0.0 if name == best else float(-gap.mean()),
                "difference_error": _error(gap),
                "seconds": round(seconds[name], 3),
                "chosen": name == chosen,
            }
        )
    return table


def family_text(found: dict[str, Any] | None) -> str:
    """Return a description of the comparison of families in one line."""
    if found is None:
        return "not compared"
    rows = [f"{row['family']} {row['mean']:.4f} ({row['difference']:+.4f})" for row in found["table"]]
    return f"{', '.join(rows)} {family_rows(found)}; chosen: {found['family']}"


def family_rows(found: dict[str, Any]) -> str:
    """Return the rows and folds of a comparison of families as text."""
    size = f"{found['folds']} folds of at most {found['rows in a fold']} training rows"
    return f"in cross-validation on {found['rows']:,} training rows, in {size}"


def _error(values: Array) -> float | None:
    return None if values.size < 2 else float(standard_error(values))


# Tuning of a model by cross-validation on its training rows, in bounded time for large tables.


Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]

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

    Parameters
    ----------
    model : str, default="linear"
        Name of the model, as in :func:`rocmax.tables.tune.make_classifier`.
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
    pipeline_ : Pipeline
        Preprocessing and classifier, fitted to all training rows.
    tuning_ : dict or None
        Candidates and chosen parameters; None without tuning or if there are too few rows for cross-validation.
    classes_ : ndarray of shape (2,)
        Class labels.
    """

    def __init__(
        self,
        model: str = "linear",
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
        """Tune and fit; groups are not split between folds."""
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


class BestFamily(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The family of :func:`families_for` with the best cross-validated scores; without tuning, the linear one.

    Parameters
    ----------
    pipeline : TunedPipeline
        What the families have in common; its model is replaced by each of them.

    Attributes
    ----------
    chosen_ : TunedPipeline
        The chosen family, fitted to all training rows.
    families_ : dict or None
        Comparison of the families, as in :func:`compare_families`; None if they were not compared.
    classes_ : ndarray of shape (2,)
        Class labels.
    """

    def __init__(self, pipeline: TunedPipeline) -> None:
        self.pipeline = pipeline

    def fit(self, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None) -> BestFamily:
        """Compare the families and fit the chosen one; groups are not split between folds."""
        common = self.pipeline
        self.chosen_ = self._named("linear")
        self.families_: dict[str, Any] | None = None
        limits: dict[str, Any] = {"window": common.window, "seed": common.seed, "min_tpr": common.min_tpr}
        parts = compared_parts(y == common.positive, **limits)
        first = parts[0]
        if common.tune and tuning_splits(y[first] == common.positive, some_rows(groups, first), **limits):
            candidates = {name: self._named(name) for name in families_for(common.kinds)[0]}
            self.families_ = compare_families(candidates, X, y, groups, parts)
            self.chosen_ = candidates[self.families_["family"]]
        if self.families_ is None or self.families_["rows"] < y.size:
            self.chosen_.fit(X, y, groups)
        self.classes_ = self.chosen_.classes_
        return self

    def _named(self, name: str) -> TunedPipeline:
        return TunedPipeline(**{**self.pipeline.get_params(), "model": name})

    @property
    def pos_label(self) -> str:
        """Label of the positive class."""
        return self.pipeline.positive

    def decision_function(self, X: Any) -> Array:
        """Return the scores for ``classes_[1]``."""
        return self.chosen_.decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels."""
        return self.chosen_.predict(X)


def tuned_model(name: str, **options: Any) -> TunedPipeline | BestFamily:
    """Return a model by its name, so that a name refers to the same model in a fit and in a comparison.

    Parameters
    ----------
    name : str
        One of `MODELS`.
    **options : object
        Parameters of :class:`TunedPipeline`.
    """
    return BestFamily(TunedPipeline(**options)) if name == "auto" else TunedPipeline(name, **options)


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
    if most_folds(positive, groups) < 2:
        return []
    n_folds = FOLD_RULES.n_folds(positive.size)
    most = max(MAX_ROWS, round(MAX_IN_WINDOW / min(window[1] - window[0], 1 - min_tpr)))
    rng, found = np.random.default_rng(seed), []
    for repeat in range(2 if positive.size <= FOLD_RULES.twice else 1):
        for train, test in folds(positive, n_folds, (seed + repeat) % 2**32, groups):
            kept = _at_most(most, train, positive, rng)
            if 0 < positive[kept].sum() < kept.size and 0 < positive[test].sum() < test.size:
                found.append((kept, test))
    return found


def boosted_splits(positive: NDArray[np.bool_], groups: NDArray[Any] | None, seed: int) -> list[Split]:
    """Return the folds in which boosted trees are tuned, with all rows; groups are not split between folds.

    They are those of :class:`rocmax.BoostedClassifier` by default.
    """
    if most_folds(positive, groups) < 2:
        return []
    found = search_folds(positive, seed, groups)
    return [split for split in found if all(0 < positive[part].sum() < part.size for part in split)]


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
