"""Self-contained HTML report from arrays: a verdict, sliders, curves, results by segment, and tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from rocmax._support import need
from rocmax.report.page import Change, Feature, ReportModel, Segment, TestData
from rocmax.report.view import report_classifier, view

__all__ = ["Change", "Feature", "ReportModel", "Segment", "TestData", "render"]


def render(models: list[ReportModel], data: TestData) -> str:
    """Return the HTML page.

    The page has no links to other files and loads nothing. Text from the user (names of files and columns, labels) is
    escaped.
    """
    jinja2 = need("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rocmax.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = _as_data
    result: str = environment.get_template("report.html.j2").render(**view(models, data))
    return result


def _as_data(value: Any) -> Any:
    """Return JSON that cannot close the enclosing script element."""
    import markupsafe

    text = json.dumps(value, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return markupsafe.Markup(text)


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
        return report_classifier(
            render,
            model,
            X,
            y,
            out,
            pos_label=pos_label,
            min_fpr=min_fpr,
            max_fpr=max_fpr,
            min_tpr=min_tpr,
            random_state=random_state,
            groups=groups,
        )


sys.modules[__name__].__class__ = CallableReport
