"""HTML report of models on one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._atomic import check_not_input, check_output, write_file
from rocmax._packages import need
from rocmax._response import towards
from rocmax._typing import Array
from rocmax._validate import positive_index
from rocmax.data import DataError
from rocmax.report import ReportModel, TestData, render
from rocmax.workflow.evaluation import Scored, score_table
from rocmax.workflow.families import family_text
from rocmax.workflow.table_model import TableModel
from rocmax.workflow.tables import need_tables
from rocmax.workflow.tuning import tuning_text

N_FEATURES = 15
# Number of rows on which the contributions of columns are computed.
N_ROWS = 1_000
WEIGHT, SPREAD, GAIN = "weight", "standard deviation of its contribution", "gain"


def write_report(
    models: TableModel | Sequence[TableModel],
    table: Any,
    out: str | Path,
    *,
    target: str | None = None,
    delimiter: str | None = None,
    max_bytes: int | None = None,
) -> None:
    """Write an HTML report of models on a labeled table, as ``rocmax report`` does.

    The page contains ROC curves, a slider for the limit on the false-positive rate, measures with confidence intervals
    and paired tests. It is self-contained: no other file is loaded.

    Parameters
    ----------
    models : TableModel or sequence of TableModel
        One or more models with the same positive class. The paired tests compare the others with the first.
    table : str, Path or data frame
        A file (csv, tsv, parquet or svmlight, the text ones also compressed), or a DataFrame of pandas or polars.
        Columns are found by name.
    out : str or Path
        The page to write, which appears whole or not at all.
    target : str, default=None
        The column with the labels. None takes the name that it had in the table of the fit.
    delimiter : str, default=None
        What separates the fields of a text table. None takes a comma, or a tab in tsv files.
    max_bytes : int, default=None
        Maximum number of bytes that a compressed file may unpack to, as in :func:`rocmax.data.read_table`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rocmax.workflow import fit_table, write_report
    >>> table = load_breast_cancer(as_frame=True).frame
    >>> model = fit_table(table, target="target", positive=0, max_fpr=0.05, tune=False)
    >>> with TemporaryDirectory() as folder:
    ...     write_report(model, table.iloc[model.held_out_rows], Path(folder, "report.html"))
    """
    need_tables()
    need("jinja2")
    chosen = [models] if isinstance(models, TableModel) else list(models)
    if not chosen:
        raise ValueError("models must have at least one model; got none")
    files = [file for file in (table, *(model.path for model in chosen)) if isinstance(file, str | Path)]
    check_not_input(out, files)
    check_output(out)
    scored = [score_table(model, table, target, delimiter, max_bytes) for model in chosen]
    first = scored[0]
    for other in scored[1:]:
        if not np.array_equal(other.target.is_positive, first.target.is_positive):
            raise DataError(
                f"models must have one positive class; got {first.target.positive!r} and {other.target.positive!r}"
            )
    names = _distinct([entry.fitted.name for entry in scored])
    facts = first.fitted.facts
    page = render(
        [_model(entry, name) for entry, name in zip(scored, names, strict=True)],
        TestData(
            Path(table).name if isinstance(table, str | Path) else "the table",
            first.target.is_positive,
            first.target.positive,
            (facts["min_fpr"], facts["max_fpr"]),
            _columns(first),
            facts["seed"],
            facts.get("min_tpr", 0.0),
        ),
    )
    write_file(out, page.encode())


def _distinct(names: list[str]) -> list[str]:
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _model(entry: Scored, name: str) -> ReportModel:
    about = entry.fitted.facts
    facts = [
        ("fitted", about["fitted"]),
        ("model", about["model"] if about["model"] == entry.fitted.family else f"auto: {entry.fitted.family}"),
        *([("families", family_text(about["families"]))] if about.get("families") else []),
        ("measure", about["measure"]),
        ("rows", f"{about['rows']['train']} to train, {about['rows']['held out']} held out"),
        ("tuning", tuning_text(about["tuning"])),
        ("limit", _limit_text(about)),
        ("confidence", "none" if about["confidence"] is None else f"{about['confidence']:g}"),
        ("seed", str(about["seed"])),
        *((package, version) for package, version in about["versions"].items()),
    ]
    pipeline = getattr(entry.fitted.model, "estimator_", entry.fitted.model)
    features, feature_value = _top_features(entry, pipeline)
    return ReportModel(
        name,
        type(pipeline.named_steps["model"]).__name__,
        entry.scores,
        entry.predicted,
        features,
        facts,
        about["max_fpr"] if about["max_fpr"] < 1 else None,
        feature_value,
        about.get("min_tpr") or None,
    )


def _limit_text(about: dict[str, Any]) -> str:
    limits = [f"TPR >= {100 * about['min_tpr']:g} %"] if about.get("min_tpr") else []
    limits += [f"FPR <= {100 * about['max_fpr']:g} %"] if about["max_fpr"] < 1 else []
    return ", ".join(limits) or "none"


def _top_features(entry: Scored, pipeline: Any) -> tuple[list[tuple[str, float]], str]:
    """Return the most important features of a model, and what their values are.

    They are the weights of a linear model in the direction of the positive class, the spread of the contributions of
    the columns of an additive model, and the gain of trees.
    """
    classifier, table = pipeline.named_steps["model"], pipeline.named_steps["table"]
    if entry.fitted.family == "additive":
        return _largest(list(entry.X.columns), _spreads(pipeline, entry.X.head(N_ROWS))), SPREAD
    if hasattr(classifier, "coef_"):
        values, kind = towards(classifier.coef_[0], positive_index(classifier.classes_, entry.target.positive)), WEIGHT
    elif hasattr(classifier, "feature_importances_"):
        values, kind = classifier.feature_importances_, GAIN
    else:
        return [], WEIGHT
    named = hasattr(table, "transformers_")
    names = (
        [name.partition("__")[2] for name in table.get_feature_names_out()]
        if named
        else [f"feature {i + 1}" for i in range(values.size)]
    )
    return _largest(names, values), kind


def _largest(names: list[str], values: Array) -> list[tuple[str, float]]:
    largest = np.argsort(-np.abs(values), kind="stable")[:N_FEATURES]
    return [(names[i], float(values[i])) for i in largest]


def _spreads(pipeline: Any, X: Any) -> Array:
    """Return the standard deviation of the contribution of each column to the score of an additive model.

    The score with one column set to a constant differs from the score by the contribution of that column.
    """
    scores, first = pipeline.decision_function(X), np.zeros(len(X), dtype=np.intp)
    found = []
    for name in X.columns:
        without = X.assign(**{name: X[name].iloc[first].to_numpy()})
        found.append(np.std(scores - pipeline.decision_function(without)))
    return np.array(found)


def _columns(entry: Scored) -> list[tuple[str, str, float]]:
    features = entry.fitted.facts["features"]
    if features is None:
        return []
    return [(name, kind, float(entry.X[name].isna().mean())) for name, kind in features.items()]
