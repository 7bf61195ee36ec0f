"""``rocmax report``: a page about models on one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rocmax._atomic import write_file
from rocmax._response import towards
from rocmax._validate import positive_index
from rocmax.data import DataError
from rocmax.report import ReportModel, TestData, render
from rocmax.workflow.evaluation import Scored, score_file
from rocmax.workflow.fitting import tuning_text

N_FEATURES = 15


def write(
    models: list[Path],
    data: Path,
    target: str | None,
    delimiter: str | None,
    out: Path,
    max_bytes: int | None = None,
) -> None:
    """Score the table with every model and write the page."""
    scored = [score_file(path, data, target, delimiter, max_bytes) for path in models]
    first = scored[0]
    for other in scored[1:]:
        if not np.array_equal(other.target.is_positive, first.target.is_positive):
            raise DataError(
                f"the models disagree on the positive class: {first.target.positive!r}, {other.target.positive!r}"
            )
    names = _distinct([entry.name for entry in scored])
    page = render(
        [_model(entry, name) for entry, name in zip(scored, names, strict=True)],
        TestData(
            data.name,
            first.target.is_positive,
            first.target.positive,
            (first.about["min_fpr"], first.about["max_fpr"]),
            _columns(first),
            first.about["seed"],
        ),
    )
    write_file(out, page.encode())


def _distinct(names: list[str]) -> list[str]:
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _model(entry: Scored, name: str) -> ReportModel:
    about = entry.about
    facts = [
        ("fitted", about["fitted"]),
        ("model", about["model"]),
        ("measure", about["measure"]),
        ("rows", f"{about['rows']['train']} to train, {about['rows']['held out']} held out"),
        ("tuning", tuning_text(about["tuning"])),
        ("limit", "none" if about["max_fpr"] == 1 else f"FPR <= {100 * about['max_fpr']:g} %"),
        ("confidence", "none" if about["confidence"] is None else f"{about['confidence']:g}"),
        ("seed", str(about["seed"])),
        *((package, version) for package, version in about["versions"].items()),
    ]
    pipeline = getattr(entry.model, "estimator_", entry.model)
    return ReportModel(
        name,
        type(pipeline.named_steps["model"]).__name__,
        entry.scores,
        entry.predicted,
        _top_features(pipeline, entry.target.positive),
        facts,
        about["max_fpr"] if about["max_fpr"] < 1 else None,
    )


def _top_features(pipeline: Any, positive: str) -> list[tuple[str, float]]:
    """Return the largest weights of a linear model, in the direction of the positive class."""
    classifier, table = pipeline.named_steps["model"], pipeline.named_steps["table"]
    if not hasattr(classifier, "coef_"):
        return []
    weights = towards(classifier.coef_[0], positive_index(classifier.classes_, positive))
    named = hasattr(table, "transformers_")
    names = (
        [name.partition("__")[2] for name in table.get_feature_names_out()]
        if named
        else [f"feature {i + 1}" for i in range(weights.size)]
    )
    largest = np.argsort(-np.abs(weights), kind="stable")[:N_FEATURES]
    return [(names[i], float(weights[i])) for i in largest]


def _columns(entry: Scored) -> list[tuple[str, str, float]]:
    if entry.about["features"] is None:
        return []
    return [(name, kind, float(entry.X[name].isna().mean())) for name, kind in entry.about["features"].items()]
