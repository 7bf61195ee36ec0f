"""Missing values and unknown categories of a table, compared with the training table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rocmax.workflow.preprocessing import MISSING

# A share has moved if the difference is larger than this, and than this number of standard errors.
MOVED, ERRORS = 0.05, 4.0
MAX_NAMED = 5
TITLES = {"missing": "missing values", "unknown": "unknown categories"}


def known_levels(model: Any, kinds: dict[str, str] | None) -> dict[str, set[str]]:
    """Return the categories that a model knows, by column."""
    pipeline = getattr(model, "estimator_", model)
    names = [name for name, kind in (kinds or {}).items() if kind == "text"]
    if not names:
        return {}
    encoder = pipeline.named_steps["table"].named_transformers_["texts"].steps[-1][1]
    return {name: set(levels) - {MISSING} for name, levels in zip(names, encoder.categories_, strict=True)}


@dataclass
class Shares:
    """Counts of missing values and unknown categories by column.

    Parameters
    ----------
    levels : dict of str to set of str
        Known categories of text columns.
    """

    levels: dict[str, set[str]]
    rows: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    def add(self, X: Any) -> Shares:
        """Count the values of some rows."""
        self.rows += X.shape[0]
        if not hasattr(X, "columns"):
            return self
        for name, count in zip(X.columns, X.isna().to_numpy().sum(axis=0).tolist(), strict=True):
            self.missing[name] = self.missing.get(name, 0) + count
        for name, levels in self.levels.items():
            known = X[name].dropna()
            self.unknown[name] = self.unknown.get(name, 0) + int(np.count_nonzero(~known.isin(levels)))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the shares of the rows, as plain values; columns without such values are left out."""
        found = {
            kind: {name: count / self.rows for name, count in getattr(self, kind).items() if count}
            for kind in ("missing", "unknown")
        }
        return {"rows": self.rows, **found}

    def moved(self, training: dict[str, Any]) -> list[tuple[str, str, float, float]]:
        """Return the kind of value, the column, and its share in training and here, where the shares differ."""
        found = []
        for kind in TITLES:
            for name, count in getattr(self, kind).items():
                then, now = training[kind].get(name, 0.0), count / self.rows
                if _moved(now, self.rows, then, training["rows"]):
                    found.append((kind, name, then, now))
        return found

    def warnings(self, training: dict[str, Any] | None) -> list[str]:
        """Return a warning for each kind of value whose share differs from that of the training table."""
        moved = [] if training is None else self.moved(training)
        found = []
        for kind, title in TITLES.items():
            named = [f"{name!r} {now:.1%} (training: {then:.1%})" for of, name, then, now in moved if of == kind]
            if named:
                more = f" and {len(named) - MAX_NAMED} more columns" if len(named) > MAX_NAMED else ""
                found.append(f"the share of {title} differs from training: {', '.join(named[:MAX_NAMED])}{more}")
        return found


def _moved(share: float, rows: int, before: float, rows_before: int) -> bool:
    pooled = (share * rows + before * rows_before) / (rows + rows_before)
    error = math.sqrt(pooled * (1 - pooled) * (1 / rows + 1 / rows_before))
    return abs(share - before) > max(MOVED, ERRORS * error)
