"""Self-contained HTML report from arrays: a verdict, sliders, curves, results by segment, and tests."""

from __future__ import annotations

import json
from typing import Any

from rocmax._packages import need
from rocmax.report._content import Change, Feature, ReportModel, Segment, TestData
from rocmax.report._view import view

__all__ = ["Change", "Feature", "ReportModel", "Segment", "TestData", "render"]


def render(models: list[ReportModel], data: TestData) -> str:
    """Return the HTML page.

    The page has no links to other files and loads nothing. Text from the user (names of files and columns, labels) is
    escaped.

    Parameters
    ----------
    models : list of ReportModel
        Models with their scores on the same rows.
    data : TestData
        Test rows.

    Returns
    -------
    str
        HTML.
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
