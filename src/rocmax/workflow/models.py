"""Models by name."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from rocmax._packages import need
from rocmax._response import class_scores
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax.data import DataError
from rocmax.estimators import AUCClassifier, BoostedClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.workflow.preprocessing import Levels, additive_preprocessing, preprocessing, text_places, tree_preprocessing

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
