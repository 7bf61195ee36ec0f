"""Page of a monitor: what holds, what is broken since when, how the rates and the evidence went, and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rocmax._support import Array, Index
from rocmax.monitor import Monitor, Proposal, Verdict
from rocmax.report.page import Axes

# Scores and columns that are distributed differently from the first batch.


@dataclass(frozen=True)
class DriftRules:
    """From where on a distribution counts as another one."""

    # The first columns, of tables with many, and the rows of the first batches that later ones are compared with; a
    # batch of a tenth of them sets the bins.
    columns: int = 50
    least_rows: int = 1000
    # Population stability index: 0.2 is the usual convention, and four times its mean without a change is no chance.
    index: float = 0.2
    noise: float = 4.0


RULES = DriftRules()


@dataclass
class Drift:
    """Histograms of scores and columns: of the first batches, until they have enough rows, and of the present one.

    Numbers are divided at the deciles of the first batch, and text at the categories that are the most frequent in it.
    """

    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[str, Index] = field(default_factory=dict)

    def following(self) -> Drift:
        """Return the histograms for the next batch."""
        return Drift(self.columns)

    def add(self, X: Any, scores: Array) -> None:
        """Count rows; the first ones of the first batch set the bins."""
        named = {"score": scores} | {name: X[name] for name in getattr(X, "columns", [])[: RULES.columns]}
        if not self.columns and 10 * scores.size >= RULES.least_rows:
            self.columns = {name: _bins(values) for name, values in named.items()}
        for name, bins in self.columns.items():
            found = _histogram(bins, named[name])
            self.counts[name] = self.counts.get(name, np.zeros_like(found)) + found

    def settled(self) -> Drift:
        """Return the histograms, with the present batch among the first ones if these have too few rows."""
        for name, found in self.counts.items():
            first = self.columns[name].setdefault("counts", [0] * found.size)
            if sum(first) < RULES.least_rows:
                self.columns[name]["counts"] = (found + first).tolist()
                self.counts[name] = np.zeros_like(found)
        return self

    def texts(self) -> list[str]:
        """Return the columns whose distribution differs, with their population stability index."""
        texts = []
        for name, found in self.counts.items():
            now, before = found + 0.5, np.array(self.columns[name]["counts"]) + 0.5
            n, m = found.sum(), sum(self.columns[name]["counts"])
            p, q = now / now.sum(), before / before.sum()
            index = float(np.sum((p - q) * np.log(p / q)))
            if n and index > max(RULES.index, RULES.noise * (p.size - 1) * (1 / n + 1 / m)):
                what = "the score" if name == "score" else name
                texts.append(
                    f"{what}: distributed differently from the first batches (population stability index {index:.2f})"
                )
        return texts


def _bins(values: Any) -> dict[str, Any]:
    """Return the ends of bins of numbers, or the categories that are bins."""
    if np.asarray(values).dtype.kind == "f":
        known = np.asarray(values)[~np.isnan(values)]
        ends = np.quantile(known, np.arange(1, 10) / 10) if known.size else np.zeros(0)
        return {"ends": np.unique([float(f"{end:.4g}") for end in ends]).tolist()}
    return {"levels": values.value_counts().index[:9].tolist()}


def _histogram(bins: Mapping[str, Any], values: Any) -> Index:
    """Return the number of rows in each bin, of other categories, and without a value."""
    kinds = bins.get("ends", bins.get("levels"))
    if "ends" in bins:
        place = np.searchsorted(kinds, np.nan_to_num(values))
    else:
        place = (
            values.map({level: number for number, level in enumerate(kinds)}).fillna(len(kinds)).to_numpy(dtype=np.intp)
        )
    missing = np.isnan(values) if "ends" in bins else values.isna()
    place = np.where(missing, len(kinds) + 1, place)
    return np.bincount(place, minlength=len(kinds) + 2)


# The page.

TITLES = {
    "max_fpr": "false-positive rate",
    "min_tpr": "true-positive rate",
    "min_precision": "precision",
    "capacity": "alerts",
}


def _amount(verdict: Verdict, monitor: Monitor, value: float) -> str:
    """Return a rate as text, in percent, or as a number per hour, day, week or month."""
    if np.isnan(value):
        return "-"
    if verdict.limit == "capacity" and monitor.per is not None:
        return f"{value:.4g} a {monitor.per}"
    return f"{100 * value:.3g} %"


def _interval(verdict: Verdict, monitor: Monitor) -> str:
    if np.isnan(verdict.low):
        return "-"
    low, _, unit = _amount(verdict, monitor, verdict.low).partition(" ")
    return f"{low} to {_amount(verdict, monitor, verdict.high).removesuffix(unit)}{unit}"


def _limit_text(verdict: Verdict, monitor: Monitor) -> str:
    least = "at least" if verdict.limit.startswith("min") else "at most"
    return f"{TITLES[verdict.limit]} {least} {_amount(verdict, monitor, verdict.value)}"


def _status_text(verdict: Verdict) -> str:
    """Return what is known about a limit in words."""
    if verdict.status == "broken":
        return f"broken since about {verdict.since}"
    return {"holds": "holds", "not enough labels": "not enough labels yet"}[verdict.status]


def verdict_rows(monitor: Monitor) -> list[dict[str, str]]:
    """Return a row of a table for each limit."""
    return [
        {
            "limit": _limit_text(verdict, monitor),
            "result": _status_text(verdict),
            "rate": _amount(verdict, monitor, verdict.rate),
            "at all times": _interval(verdict, monitor),
            "rows": f"{verdict.n:,}",
            "evidence": f"{verdict.evidence:.3g}",
        }
        for verdict in monitor.verdicts()
    ]


def proposal_texts(monitor: Monitor, threshold: float) -> list[str]:
    """Return the proposed thresholds in words; ``threshold`` is the present one."""
    return [_proposal_text(each, monitor.confidence, threshold) for each in monitor.proposals()]


def _proposal_text(proposal: Proposal, confidence: float, threshold: float) -> str:
    if proposal.threshold is None:
        few = proposal.n < proposal.needed
        why = f"it takes at least {proposal.needed:,}" if few else "no bin of scores suffices"
        return f"no new threshold for the {TITLES[proposal.limit]} yet: {proposal.n:,} rows since the change, and {why}"
    return (
        f"new threshold for the {TITLES[proposal.limit]}: score above {threshold + proposal.threshold!r}; "
        f"{proposal.promise}, with confidence {confidence:g}, if rows stay as the {proposal.n:,} since the change"
    )


def history_page(name: str, monitor: Monitor, changes: list[str], threshold: float) -> str:
    """Return the HTML page, which loads nothing."""
    from rocmax.report import environment

    page: str = (
        environment()
        .get_template("monitor.html.j2")
        .render(
            name=name,
            n_batches=monitor.n_batches,
            last=monitor.last_label,
            rows=verdict_rows(monitor),
            proposals=proposal_texts(monitor, threshold),
            changes=changes,
            confidence=f"{100 * monitor.confidence:g}",
            level=f"{100 - 100 * monitor.confidence:.4g}",
            evidence=f"{1 / (1 - monitor.confidence):.4g}",
            plots=[plot for verdict in monitor.verdicts() for plot in _plots(verdict, monitor)],
        )
    )
    return page


def _plots(verdict: Verdict, monitor: Monitor) -> list[dict[str, Any]]:
    """Return the plots of a rate with its confidence sequence, and of the evidence against its limit."""
    history = monitor.history(verdict.limit)
    column = {
        name: np.array([entry[name] for entry in history]) for name in ("rate", "mean", "low", "high", "evidence")
    }
    x, n = np.arange(1.0, len(history) + 1), len(history)
    ends = (0.5, n + 0.5)
    plain = verdict.limit == "capacity" and monitor.per is not None
    unit = f"a {monitor.per}" if plain else "%"
    seen = column["high"][np.isfinite(column["mean"])]
    values = np.concatenate([column["rate"], column["mean"], [verdict.value]])
    # The intervals of the first batches are wide; the axis ends where those of later ones are.
    middle = float(np.median(seen)) if seen.size else 0.0
    top = 1.1 * max(float(np.nanmax(values)), min(middle, 5.0 * float(np.nanmax(values))), 1e-12)
    bottom = 0.0
    if verdict.limit.startswith("min"):
        lows = column["low"][np.isfinite(column["mean"])]
        bottom = max(0.0, min(float(np.nanmin(values)), float(np.median(lows)) if lows.size else 1.0) - 0.05)
        top = 1.0
    title = _limit_text(verdict, monitor)
    rates = Axes(
        title[:1].upper() + title[1:], "Batches", f"Rate ({unit})", ends, (bottom, top), plain_x=True, plain_y=plain
    )
    logs = np.log10(np.maximum(column["evidence"], 1e-300))
    goal = float(np.log10(1.0 / (1.0 - monitor.confidence)))
    heights = (min(0.0, float(logs.min())) - 0.2, max(goal, float(logs.max())) + 0.3)
    proof = replace(rates, title="Evidence against it", y_label="Evidence (logarithm)", y_range=heights, plain_y=True)
    places = np.unique(np.linspace(0, 0.9 * (n - 1), min(n, 4)).astype(int))
    labels = [(float(x[i]), history[i]["label"]) for i in places]
    return [
        _plot(
            rates,
            labels,
            x,
            verdict.value,
            [(column["rate"], "3 3", 1), (column["mean"], "", 0)],
            (column["low"], column["high"]),
        ),
        _plot(proof, labels, x, goal, [(logs, "", 0)]),
    ]


def _plot(
    axes: Axes, labels: list[tuple[float, str]], x: Array, level: float, lines: list[Any], band: Any = None
) -> dict[str, Any]:
    """Return a plot of lines over the batches, with a dotted level."""

    def inside(values: Array) -> tuple[Array, Array]:
        known = np.isfinite(values)
        return x[known], np.clip(values[known], *axes.y_range)

    frame = axes.frame()
    frame["x_ticks"] = [(axes.at(at, axes.y_range[0])[0], text[:16]) for at, text in labels]
    drawn = [
        {"d": axes.line(*inside(values)), "dash": dash, "color": color, "name": axes.y_label}
        for values, dash, color in lines
        if np.isfinite(values).any()
    ]
    area = None
    if band is not None and np.isfinite(band[0]).any():
        (places, low), (_, high) = map(inside, band)
        area = axes.area(places, low, high)
    guess = [*axes.at(axes.x_range[0], level), *axes.at(axes.x_range[1], level)]
    return {**frame, "lines": drawn, "area": area, "guess": guess}
