"""The models known by name, and what ``auto`` stands for."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from rocmax._packages import need
from rocmax._response import class_scores
from rocmax._typing import Array
from rocmax.estimators import AUCClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.workflow.preprocessing import preprocessing

# Models of which files can be made: those hold types of rocmax and scikit-learn only.
SAVED_MODELS = ("auto", "auc", "logistic", "svm")
MODELS = (*SAVED_MODELS, "lightgbm")
# Optional packages of models.
PACKAGES = {"lightgbm": "lightgbm"}
# The window of false-positive rates where there is no limit.
WHOLE = (0.0, 1.0)


def make_classifier(
    name: str,
    window: tuple[float, float],
    positive: str,
    seed: int,
    measure: str = "partial_auc",
    folds: list[tuple[NDArray[Any], NDArray[Any]]] | None = None,
) -> Any:
    """Return the classifier that a name stands for.

    Parameters
    ----------
    name : str
        One of `MODELS`. "auto" is the AUC classifier where there is no limit on the false-positive rate; else the
        partial-AUC classifier, the one that tunes itself if the measure is the partial AUC and there are folds.
    window : tuple of float
        The window of false-positive rates; (0, 1) where there is no limit.
    positive : str
        The positive class.
    seed : int
        Seed of what is random in a fit.
    measure : str, default="partial_auc"
        What the model is judged by.
    folds : list, optional
        Folds of the training rows to tune on; without them the classifier is not tuned.
    """
    if name == "auto" and window != WHOLE:
        if measure == "partial_auc" and folds:
            return PartialAUCClassifierCV(*window, cv=folds, pos_label=positive)
        return PartialAUCClassifier(*window, pos_label=positive)
    if name in ("auto", "auc"):
        return AUCClassifier(pos_label=positive)
    if name == "logistic":
        return LogisticRegression(max_iter=1000)
    if name == "svm":
        return LinearSVC(dual="auto", random_state=seed)
    if name == "lightgbm":
        return need("lightgbm").LGBMClassifier(random_state=seed, verbose=-1, n_jobs=1)
    raise ValueError(f"model needs to be one of {', '.join(MODELS)}; got {name!r}")


def make_model(
    name: str, kinds: dict[str, str] | None, window: tuple[float, float], positive: str, seed: int
) -> Pipeline:
    """Return preprocessing and an untuned classifier in one."""
    return Pipeline([("table", preprocessing(kinds)), ("model", make_classifier(name, window, positive, seed))])


def tuning_grid(classifier: Any) -> dict[str, list[Any]] | None:
    """Values of the classifier's main parameter to choose from, five for every model; None if it tunes itself."""
    if isinstance(classifier, PartialAUCClassifierCV):
        return None
    if "num_leaves" in classifier.get_params():
        return {"num_leaves": [7, 15, 31, 63, 127]}
    return {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}


def positive_scores(model: Any, X: Any, positive: str) -> Array:
    """Return scores in the direction of the positive class."""
    return class_scores(model, X, int(model.classes_[1] == positive))
