"""From a table with mixed columns to a model: labels, preprocessing and the models known by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from rocmax._response import class_scores
from rocmax.data import DataError
from rocmax.estimators import AUCClassifier, PartialAUCClassifier

MODELS = ("auto", "auc", "logistic", "svm", "lightgbm")
# Pairs of labels of which the second is the positive one beyond doubt.
_CLEAR = (
    ("0", "1"),
    ("-1", "1"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("negative", "positive"),
    ("neg", "pos"),
)
MISSING = "(missing)"
MAX_CATEGORIES = 50


class Target(NamedTuple):
    """Labels as text, and which of the two counts."""

    labels: NDArray[Any]
    positive: str
    negative: str

    @property
    def is_positive(self) -> NDArray[np.bool_]:
        """Whether each row is of the positive class."""
        return self.labels == self.positive


class UnclearTargetError(DataError):
    """Labels among which the positive class has to be named."""


def make_target(values: NDArray[Any], positive: str | None, name: str = "the target") -> Target:
    """Find the positive class among the labels; with more than two, a named one against the rest."""
    labels = as_text(values)
    distinct, counts = np.unique(labels, return_counts=True)
    listed = ", ".join(f"{label!r} ({count})" for label, count in zip(distinct[:10], counts[:10], strict=True))
    listed += f", ... ({distinct.size} in all)" if distinct.size > 10 else ""
    if distinct.size < 2:
        raise DataError(f"{name} needs two values; got one class only: {listed}")
    if positive is None:
        pair = [label for label in _CLEAR if {text.lower() for text in distinct} == set(label)]
        if distinct.size > 2 or not pair:
            raise UnclearTargetError(f"{name} has the values {listed}; name the positive one with --positive")
        positive = next(text for text in distinct if text.lower() == pair[0][1])
    chosen = [text for text in distinct if text == positive] or [
        text for text in distinct if text.lower() == positive.lower()
    ]
    if not chosen:
        raise DataError(f"{name} has no value {positive!r}; its values are {listed}")
    if len(chosen) > 1:
        choices = ", ".join(map(repr, chosen))
        raise DataError(f"{name} has no value {positive!r}, but {choices}, which differ in case; name one exactly")
    rest = [str(text) for text in distinct if text != chosen[0]]
    negative = rest[0] if len(rest) == 1 else f"not {chosen[0]}"
    return Target(np.where(labels == chosen[0], chosen[0], negative), str(chosen[0]), negative)


def known_target(values: NDArray[Any], positive: str, negative: str, name: str = "the target") -> Target:
    """Read labels for a model that knows its classes already."""
    labels = as_text(values)
    if negative != f"not {positive}":
        strange = sorted(set(labels.tolist()) - {positive, negative})
        if strange:
            raise DataError(
                f"{name} has labels that the model does not know: {strange[:5]}; {[negative, positive]} are"
            )
    target = Target(np.where(labels == positive, positive, negative), positive, negative)
    if target.is_positive.all() or not target.is_positive.any():
        got = f"one class only: {str(target.labels[0])!r} ({labels.size} rows)"
        raise DataError(f"{name} needs rows of both classes, {positive!r} and {negative!r}; got {got}")
    return target


def as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Write labels as text; numbers exactly, and whole ones without a point."""
    if values.dtype.kind == "f":
        distinct, place = np.unique(values, return_inverse=True)
        texts = [np.format_float_positional(value, trim="-") for value in distinct + 0.0]  # -0 is 0
        return np.array(texts, dtype=object)[place]
    return np.array([str(value) for value in values.tolist()], dtype=object)


def column_kinds(X: Any) -> dict[str, str]:
    """Kind of each column that a model can use, "number" or "text"; dates are not among them."""
    kinds = {}
    for name, dtype in X.dtypes.items():
        if dtype.kind == "f":
            kinds[name] = "number"
        elif dtype.kind != "M" and str(dtype) in ("str", "object", "string", "large_string"):
            first = X[name].dropna()
            if first.empty or isinstance(first.iloc[0], str):
                kinds[name] = "text"
    return kinds


def preprocessing(X: Any) -> Any:
    """Return transformers: imputed and standardised numbers, one-hot text; a sparse matrix is scaled only."""
    if scipy.sparse.issparse(X):
        return MaxAbsScaler().set_output(transform="default")
    kinds = column_kinds(X)
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    texts = [name for name, kind in kinds.items() if kind == "text"]
    number_steps = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    text_steps = make_pipeline(
        # Older versions of pandas have None in text; an empty text is missing too, as in a csv file and in ONNX.
        *(SimpleImputer(missing_values=none, strategy="constant", fill_value=MISSING) for none in (np.nan, None, "")),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES),
    )
    transformer = ColumnTransformer([("numbers", number_steps, numbers), ("texts", text_steps, texts)])
    # One-hot columns are sparse, which data frames do not take, whatever output scikit-learn was asked for.
    return transformer.set_output(transform="default")


def make_classifier(name: str, window: tuple[float, float], positive: str, seed: int) -> Any:
    """Return the classifier known by a name; ``window`` is (0, 1) where there is no limit on the FPR."""
    if name == "auto":
        if window == (0.0, 1.0):
            return AUCClassifier(pos_label=positive)
        return PartialAUCClassifier(*window, pos_label=positive)
    if name == "auc":
        return AUCClassifier(pos_label=positive)
    if name == "logistic":
        return LogisticRegression(max_iter=1000)
    if name == "svm":
        return LinearSVC(dual="auto", random_state=seed)
    if name == "lightgbm":
        return _lightgbm(seed)
    raise ValueError(f"model needs to be one of {', '.join(MODELS)}; got {name!r}")


def make_model(name: str, X: Any, window: tuple[float, float], positive: str, seed: int) -> Pipeline:
    """Return preprocessing and classifier in one."""
    return Pipeline([("table", preprocessing(X)), ("model", make_classifier(name, window, positive, seed))])


def tuning_grid(name: str) -> dict[str, list[Any]]:
    """Values of the classifier's main parameter to choose from by inner validation: as many for every model."""
    if name == "lightgbm":
        return {"num_leaves": [7, 15, 31, 63, 127]}
    return {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}


def positive_scores(model: Any, X: Any, positive: str) -> NDArray[np.float64]:
    """Return scores in the direction of the positive class."""
    return class_scores(model, X, int(model.classes_[1] == positive))


def _lightgbm(seed: int) -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise ImportError(f"the model lightgbm needs that package: pip install 'rocmax[boost]' ({error})") from error
    return LGBMClassifier(random_state=seed, verbose=-1, n_jobs=1)
