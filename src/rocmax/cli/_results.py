"""Display of the results of fits and comparisons."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rocmax.cli._screen import say, show_table


def show_fit(fitted: Any, out: Path) -> None:
    """Print the result of a fit."""
    from rocmax.workflow.tuning import tuning_text

    facts, result = fitted.facts, fitted.held_out
    rows, classes = facts["rows"], facts["classes"]
    say(f"positive class: {fitted.positive!r} ({classes['positive']} rows); others: {classes['negative']} rows")
    say(f"trained on {rows['train']} rows, {rows['held out']} held out")
    if facts["families"] is not None:
        _show_families(facts["families"], title(facts["measure"], result))
    say(tuning_text(facts["tuning"]))
    value = f"{result['value']:.4f}, 95 % interval {interval(result)}"
    groups = facts.get("held_out_groups")
    where = "the held-out rows" if groups is None else f"the held-out rows of {groups} groups"
    say(f"{title(facts['measure'], result)}: {value}, on {where}")
    if facts["max_fpr"] < 1 or facts["min_tpr"] > 0:
        limit = f"at most {100 * facts['max_fpr']:g} % of false positives"
        if facts["min_tpr"] > 0:
            limit = f"at least {100 * facts['min_tpr']:g} % of true positives"
        # Which rate it is matters only if there are groups.
        limit += "" if groups is None else " among all rows" if facts["rate"] == "row" else " in the mean over groups"
        kept = f" with confidence {facts['confidence']:g}" if facts["confidence"] else ""
        kept += " for independent groups" if kept and groups is not None else ""
        rates = rates_text(facts["at_threshold"], facts["max_fpr"], facts["min_tpr"])
        say(f"threshold for {limit}{kept}: score above 0; {rates} on the held-out rows")
    say(f"model: {out}")


def _show_families(found: dict[str, Any], measure: str) -> None:
    from rocmax.workflow.families import family_rows

    say(f"families: {measure} {family_rows(found)}")
    columns = ["family", "rows", "mean", "standard error", "difference to the best", "its standard error"]
    columns += ["seconds", ""]
    show_table(columns, [_family_row(row) for row in found["table"]])


def _family_row(row: dict[str, Any]) -> list[str]:
    errors = ["-" if row[name] is None else f"{row[name]:.4f}" for name in ("standard_error", "difference_error")]
    best = row["difference"] == 0
    return [
        row["family"],
        f"{row['rows']:,}",
        f"{row['mean']:.4f}",
        errors[0],
        "best" if best else f"{row['difference']:+.4f}",
        "-" if best else errors[1],
        f"{row['seconds']:.2f}",
        "chosen" if row["chosen"] else "",
    ]


def show_comparison(found: Any, splits: int, tune: bool) -> None:
    """Print the result of a comparison."""
    how = "each model tuned on the training rows" if tune else "no model tuned"
    say(f"{found.title} of class {found.positive!r}, {splits} splits, {how}")
    show_table(["model", "mean", "standard error", "p against the best", "seconds"], _comparison_rows(found.table))


def _comparison_rows(table: Any) -> list[list[str]]:
    return [
        [
            str(name),
            f"{row['mean']:.4f}",
            f"{row['standard_error']:.4f}",
            "best" if math.isnan(row["p_value"]) else f"{row['p_value']:.3g}",
            f"{row['seconds']:.2f}",
        ]
        for name, row in table.iterrows()
    ]


def title(name: str, value: dict[str, Any]) -> str:
    """Return the title of a measure, with its range of false-positive rates."""
    from rocmax.measures import pick_measure

    return pick_measure(name, value).title


def rates_text(rates: dict[str, Any], max_fpr: float, min_tpr: float) -> str:
    """Return the rates at a threshold as text, with their limits; a limit of 1 or 0 is none."""
    limit = f" (limit {max_fpr:g})" if max_fpr < 1 else ""
    floor = f" (at least {min_tpr:g})" if min_tpr > 0 else ""
    return f"TPR {rates['tpr']:.4f}{floor}, FPR {rates['fpr']:.4f}{limit}"


def interval(value: dict[str, Any]) -> str:
    """Return a confidence interval as text; without limits if all resamples agree, which is no certainty."""
    if value["high"] - value["low"] < 1e-9:
        return "unknown: too few rows differ"
    return f"[{value['low']:.4f}, {value['high']:.4f}]"
