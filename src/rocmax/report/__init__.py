"""Self-contained HTML report from arrays: a verdict, sliders, curves, results by segment, and tests."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rocmax._files import check_output, write_file
from rocmax._support import Array, check_floor, check_window, need
from rocmax._validation import class_scores, direction, named_pos_label, positive_index
from rocmax.base import MeasureMixin
from rocmax.metrics.curve import group_numbers
from rocmax.report.page import LAYOUT, Alert, Change, Feature, Reconciled, ReportModel, Segment, TestData
from rocmax.report.sections import view
from rocmax.thresholds import FPRThresholdClassifier, TPRThresholdClassifier

__all__ = [
    "Alert",
    "Change",
    "Feature",
    "Reconciled",
    "ReportModel",
    "Segment",
    "TestData",
    "features_of",
    "page_and_card",
    "render",
]


def render(models: list[ReportModel], data: TestData) -> str:
    """Return the HTML page.

    The page has no links to other files and loads nothing. Text from the user (names of files and columns, labels) is
    escaped.
    """
    return page_and_card(models, data)[0]


def page_and_card(models: list[ReportModel], data: TestData) -> tuple[str, str]:
    """Return the HTML page, and the model card as Markdown; both escape text from the user."""
    found, templates = view(models, data), environment()
    page, card = (templates.get_template(name).render(**found) for name in ("report.html.j2", "card.md.j2"))
    return page, card


def environment() -> Any:
    """Return the templates of pages; they escape all text."""
    jinja2 = need("jinja2")
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("rocmax.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(data=_as_data, md=_as_markdown)
    return found


def _as_data(value: Any) -> Any:
    """Return JSON that cannot close the enclosing script element."""
    import markupsafe

    text = json.dumps(value, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return markupsafe.Markup(text)


def _as_markdown(value: Any) -> Any:
    """Return one line of text in which neither HTML nor Markdown has a meaning."""
    import markupsafe

    escaped = str(markupsafe.escape(" ".join(str(value).split())))
    return markupsafe.Markup(re.sub(r"([\\`*_\[\]|~])|#(?!\d+;)", r"\\\g<0>", escaped))


class CallableReport(ModuleType):
    """Type of this module, which is a function, too: ``rocmax.report(model, X, y)``."""

    def __call__(
        self,
        model: Any,
        X: Any,
        y: Any,
        out: str | Path | None = None,
        *,
        pos_label: Any = None,
        min_fpr: float | None = None,
        max_fpr: float | None = None,
        min_tpr: float | None = None,
        random_state: int = 0,
        groups: Any = None,
    ) -> str:
        """Return the HTML report of a fitted classifier of rocmax, scikit-learn, LightGBM or XGBoost on test rows.

        Parameters
        ----------
        model : estimator, TableModel or dict of str to them
            Fitted binary classifier with ``decision_function`` or ``predict_proba``, or a
            :class:`rocmax.tables.TableModel`; or several, by name, of which the others are compared with the first.
        X : array-like of shape (n_samples, n_features)
            Test rows.
        y : array-like of shape (n_samples,)
            Their classes.
        out : str or Path, default=None
            File to write. None writes none.
        pos_label : int, float, bool or str, default=None
            Label of the positive class. None takes the ``pos_label`` of the models; if they have none, the larger
            label. Different labels are an error.
        min_fpr : ...
            None takes that of the first model if it has one, otherwise 0.
        max_fpr : ...
            None takes that of the first model if it has one, otherwise 1.
        min_tpr : ...
            None takes that of the first model if it has one, otherwise 0.
        random_state : int, default=0
            Seed of the resamples of confidence intervals.
        groups

        Returns
        -------
        str
            The page.

        Examples
        --------
        >>> import rocmax
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = make_classification(random_state=0)
        >>> page = rocmax.report(LogisticRegression().fit(X[:50], y[:50]), X[50:], y[50:], max_fpr=0.2)
        >>> page[:15]
        '<!doctype html>'
        """
        need("jinja2")
        models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
        if not models:
            raise ValueError("model must have at least one classifier; got none")
        given = {"min_fpr": min_fpr, "max_fpr": max_fpr, "min_tpr": min_tpr}
        low, high, floor = _limits(next(iter(models.values())), given)
        if out is not None:
            check_output(out)
        y = np.asarray(y)
        classes = np.unique(y)
        if classes.size != 2:
            raise ValueError(f"y must have two classes; got {classes.size}")
        index = positive_index(classes, named_pos_label(models.values(), pos_label))
        positive = y == classes[index]
        entries = [_entry(name, fitted, X, classes[index]) for name, fitted in models.items()]
        data = TestData(
            "the test rows",
            positive,
            str(classes[index]),
            (low, high),
            _columns(X),
            random_state,
            negative_label=str(classes[1 - index]),
            min_tpr=floor,
            groups=group_numbers(groups, None, y),
        )
        page = render(entries, data)
        if out is not None:
            write_file(out, page.encode())
        return page


def _limits(model: Any, given: dict[str, Any]) -> list[float]:
    """Return the range of false-positive rates and the lower limit on the TPR; those not given are the model's."""
    final = _final(model)
    own = final._make_measure() if isinstance(final, MeasureMixin) else final
    limits = [
        getattr(own, name, default) if given[name] is None else given[name]
        for name, default in (("min_fpr", 0.0), ("max_fpr", 1.0), ("min_tpr", 0.0))
    ]
    check_window(*limits[:2], any_width=True)
    check_floor(limits[2])
    return [float(limit) for limit in limits]


def _entry(name: str, model: Any, X: Any, positive: Any) -> ReportModel:
    known = np.asarray(getattr(model, "classes_", []))
    if positive not in known.tolist():
        raise ValueError(
            f"model must be a fitted classifier with the class {str(positive)!r}; got {name} with {known.tolist()}"
        )
    index = int(np.flatnonzero(known == positive)[0])
    scores = class_scores(model, X, index)
    probabilities = model.predict_proba(X)[:, index].astype(np.float64) if hasattr(model, "predict_proba") else None
    features, kind = features_of(model, X, index)
    return ReportModel(
        name,
        type(_final(model)).__name__,
        scores,
        np.asarray(model.predict(X)) == positive,
        features,
        feature_value=kind,
        probabilities=probabilities,
        max_fpr=_promised(model, positive, FPRThresholdClassifier, "max_fpr"),
        min_tpr=_promised(model, positive, TPRThresholdClassifier, "min_tpr"),
    )


def _promised(model: Any, positive: Any, kind: Any, limit: str) -> float | None:
    """Return the limit that the threshold of a model was chosen for, if the model is of the kind that has it."""
    final = _final(model)
    return float(getattr(final, limit)) if isinstance(final, kind) and final.positive_class_ == positive else None


def _final(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return getattr(model, "steps", [(None, model)])[-1][1]


def features_of(model: Any, X: Any, index: int) -> tuple[list[Feature], str]:
    """Return the weights or importances of the last step, if it has any, and what they are."""
    if hasattr(model, "facts"):  # a TableModel, whose pipeline has labels as text, in its own order
        index, model = int(model.model.classes_[1] == model.positive), model.model
    # A threshold does not change the weights.
    model = getattr(model, "estimator_", model)
    final = _final(model)
    if hasattr(final, "coef_"):
        weights, kind = direction(index) * np.ravel(final.coef_), "weight"
    elif hasattr(final, "feature_importances_"):
        weights, kind = np.asarray(final.feature_importances_, dtype=np.float64), "gain"
    else:
        return [], "weight"
    names = _names(model, X, weights)
    largest = np.argsort(-np.abs(weights), kind="stable")[: LAYOUT.n_features]
    sign = np.sign(weights) if kind == "weight" else np.zeros(weights.size)
    return [Feature(names[i], float(weights[i]), int(sign[i])) for i in largest], kind


def _names(model: Any, X: Any, weights: Array) -> list[str]:
    if hasattr(model, "steps") and len(model.steps) > 1 and hasattr(model, "feature_names_in_"):
        try:
            names = list(map(str, model[:-1].get_feature_names_out()))
        except (AttributeError, ValueError):
            names = []
    else:
        names = list(map(str, getattr(X, "columns", [])))
    return names if len(names) == weights.size else [f"feature {i + 1}" for i in range(weights.size)]


def _columns(X: Any) -> list[tuple[str, str, float]]:
    if not hasattr(X, "iloc"):
        return []
    kinds = {name: "number" if dtype.kind in "fiub" else "text" for name, dtype in X.dtypes.items()}
    return [(str(name), kind, float(X[name].isna().mean())) for name, kind in kinds.items()]


sys.modules[__name__].__class__ = CallableReport
