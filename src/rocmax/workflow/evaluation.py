"""``rocmax evaluate``: what a model reaches on rows with labels."""

from __future__ import annotations

from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax.data import DataError, read_columns, read_table
from rocmax.data.errors import check_columns
from rocmax.measures import Measure, measure_names, pick_measure
from rocmax.metrics.bootstrap import estimate_measures
from rocmax.metrics.registry import METRICS
from rocmax.model_io import load_fitted
from rocmax.workflow.tables import Target, known_target, positive_scores

# Parameters of measures that the workflow knows: the window of false-positive rates.
WINDOW = ("min_fpr", "max_fpr")
N_RESAMPLES = 1000


class Scored(NamedTuple):
    """A model on a test file."""

    name: str
    model: Any
    about: dict[str, Any]
    target: Target
    scores: NDArray[np.float64]
    predicted: NDArray[np.bool_]
    X: Any


def score_file(
    model_path: Path, data_path: Path, target: str | None, delimiter: str | None, max_bytes: int | None = None
) -> Scored:
    """Load a model and score a file with labels."""
    model, about = load_fitted(model_path, max_bytes=max_bytes)
    target = target or about["target"]
    names = read_columns(data_path, delimiter=delimiter)
    if names is None:
        shape = {"n_features": about["n_features"], "zero_based": about["zero_based"]}
        X, y = read_table(data_path, **shape, max_bytes=max_bytes)
        if about["features"] is not None:
            raise DataError(f"{model_path} was fitted to named columns, and {data_path} is an svmlight file")
    else:
        features = features_of(model_path, about, data_path)
        check_columns(data_path, [*features, *([target] if target else [])], names)
        columns: dict[str, Any] = {"columns": list(features), "types": features}
        X, y = read_table(data_path, target=target, **columns, delimiter=delimiter, max_bytes=max_bytes)
    if y is None:
        raise DataError(f"name the column with the labels of {data_path}: --target")
    labels = known_target(y, about["positive"], about["negative"], f"column {target!r}" if target else "the target")
    predicted = model.predict(X) == about["positive"]
    return Scored(model_path.stem, model, about, labels, positive_scores(model, X, about["positive"]), predicted, X)


def features_of(model_path: Path, about: dict[str, Any], data_path: Path) -> dict[str, Any]:
    """Return the columns that a model needs, with their kinds."""
    if about["features"] is None:
        raise DataError(f"{model_path} was fitted to an svmlight file, and {data_path} has named columns")
    return about["features"]


def window_measure_names() -> list[str]:
    """Return the measures of scores that need no parameter but the window of false-positive rates.

    Measures of decisions are left out, because tuning compares scores.
    """
    return [
        name
        for name in measure_names()
        if not METRICS[name].takes_labels
        and all(key in WINDOW or default is not Parameter.empty for key, default in METRICS[name].parameters.items())
    ]


def window_measure(name: str, window: tuple[float, float]) -> Measure:
    """Return a measure, on the window if it has one."""
    return pick_measure(name, dict(zip(WINDOW, window, strict=True)))


def measured(name: str, about: dict[str, Any], positive: Any, scores: Any) -> dict[str, Any]:
    """Return a measure of the scores with its interval."""
    return all_measured([name], about, positive, scores)[name]


def all_measured(names: list[str], about: dict[str, Any], positive: Any, scores: Any) -> dict[str, dict[str, Any]]:
    """Return measures of the scores with their intervals, by name."""
    measures = [window_measure(name, (about["min_fpr"], about["max_fpr"])) for name in names]
    found = estimate_measures(
        [(measure, {}) for measure in measures], positive, scores, n_resamples=N_RESAMPLES, random_state=about["seed"]
    )
    return {
        measure.name: {**estimate._asdict(), **{key: measure.params[key] for key in WINDOW if key in measure.params}}
        for measure, estimate in zip(measures, found, strict=True)
    }


def evaluation(scored: Scored) -> dict[str, Any]:
    """Return all measures of a model on a test file, and what its threshold does there."""
    positive, predicted, about = scored.target.is_positive, scored.predicted, scored.about
    names = [about["measure"], *(name for name in window_measure_names() if name != about["measure"])]
    if about["max_fpr"] == 1.0:
        # Without a limit, measures of the window say nothing that the AUC does not.
        names = [name for name in names if "max_fpr" not in METRICS[name].parameters]
    tp, fp = int(np.sum(positive & predicted)), int(np.sum(~positive & predicted))
    return {
        "model": scored.name,
        "positive": scored.target.positive,
        "rows": {"positive": int(positive.sum()), "negative": int((~positive).sum())},
        "measures": all_measured(names, about, positive, scored.scores),
        "threshold": {
            "max_fpr": about["max_fpr"] if about["max_fpr"] < 1 else None,
            "tp": tp,
            "fp": fp,
            "tpr": tp / int(positive.sum()),
            "fpr": fp / int((~positive).sum()),
            "precision": tp / (tp + fp) if tp + fp else None,
        },
    }
