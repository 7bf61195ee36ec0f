"""Choice of a family of models by cross-validation: linear, additive or boosted trees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from rocmax._progress import part, stage
from rocmax._typing import Array
from rocmax.workflow.models import FAMILIES, need_package

# Maximum number of numeric columns for which an additive model, with six splines for each, is compared.
MAX_SPLINE_COLUMNS = 50
# Difference to the best mean, in standard errors, within which a simpler family is chosen, if all rows are compared.
CLOSE = 1.0
# Difference in standard errors from which a part of the rows decides between two families.
CLEAR = 2.0


def families_for(kinds: dict[str, str] | None) -> tuple[list[str], list[str]]:
    """Return the families that can be fitted to a table, and a note for each of the others.

    Parameters
    ----------
    kinds : dict or None
        Kind of each column; None for sparse matrices.

    Returns
    -------
    families, notes : list of str
        Names from the simplest to the most flexible family, and the notes.
    """
    reasons = {}
    numbers = 0 if kinds is None else sum(kind == "number" for kind in kinds.values())
    if kinds is None:
        reasons["additive"] = "it requires a table with columns, not svmlight data"
    elif numbers > MAX_SPLINE_COLUMNS:
        reasons["additive"] = f"{numbers} numeric columns are too many for the time of a comparison"
    try:
        need_package("boosted")
    except ImportError as error:
        reasons["boosted"] = str(error)
    notes = [f"the family {name} is left out: {reason}" for name, reason in reasons.items()]
    return [name for name in FAMILIES if name not in reasons], notes


def compare_families(
    candidates: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    parts: Sequence[NDArray[np.intp]] | None = None,
) -> dict[str, Any]:
    """Tune each family in the same cross-validation folds and choose one by the scores on the held-out rows.

    A family is represented by the best of its parameters. The parameters are chosen with the same rows, so the means
    are slightly too high; all families have this advantage. Parameters that were chosen without the held-out rows of
    each fold would take as many searches as there are folds.

    The comparison is a race over growing parts of the rows. A part leaves out the families that :func:`still_in`
    decides against, and the next part compares the others, until one is left or there are no more parts. On all rows,
    the simplest family that is nearly as good as the best is chosen, as in :func:`family_table`. On a part of them,
    it is the best: a flexible family gains more from the rows that are not there.

    Parameters
    ----------
    candidates : dict of str to TunedPipeline
        Models by the name of the family, from the simplest to the most flexible. They are fitted.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : ndarray of shape (n_samples,)
        Labels.
    groups : ndarray of shape (n_samples,) or None
        Groups, which are not split between folds.
    parts : sequence of ndarray of int, default=None
        Rows of each part, from the smallest to the largest; None compares all rows.

    Returns
    -------
    dict
        "family", the chosen name; "table", a row for each family, as in :func:`family_table`, with the "rows" of the
        last part on which it was compared, "seconds" on all parts, and the difference to the best on that part;
        "rows", "folds" and "rows in a fold" of the last part.
    """
    parts = [np.arange(y.size)] if parts is None else parts
    names, seconds = list(candidates), dict.fromkeys(candidates, 0.0)
    results: dict[str, dict[str, Any]] = {}
    before: dict[str, Array] = {}
    for number, rows in enumerate(parts, 1):
        X_part, y_part, groups_part = (some_rows(values, rows) for values in (X, y, groups))
        size = f" on {rows.size:,} rows" if len(parts) > 1 else ""
        scores = {}
        for position, name in enumerate(names, 1):
            start = perf_counter()
            with part(f"family {position} of {len(names)}{size}"):
                stage(f"preparing {name}")
                model = candidates[name].fit(X_part, y_part, groups_part)
                scores[name] = np.asarray(model.held_out_scores(X_part, y_part, groups_part))
            seconds[name] += perf_counter() - start
        simple = rows.size == y.size
        table = family_table(scores, seconds, CLOSE if simple else 0.0)
        size_of_folds = {key: candidates[names[0]].tuning_[key] for key in ("folds", "rows in a fold")}
        results |= {row["family"]: {**row, "rows": int(rows.size), "chosen": False} for row in table}
        chosen = next(row["family"] for row in table if row["chosen"])
        names = still_in(scores, before)
        if number == len(parts) or len(names) == 1:
            chosen = chosen if number == len(parts) else names[0]
            break
        before = scores
    results[chosen]["chosen"] = True
    return {
        "family": chosen,
        "table": [results[name] for name in candidates],
        "rows": int(rows.size),
        **size_of_folds,
    }


def still_in(scores: Mapping[str, Array], before: Mapping[str, Array]) -> list[str]:
    """Return the families that a part of the rows does not decide against.

    A family is out if a more flexible one is better by `CLEAR` standard errors of the paired difference: more rows
    favor the more flexible one. It is also out if a simpler one is better by as much, and the lead is no smaller than
    on the part before, so that more rows do not help. A single part never decides against a more flexible family.

    Parameters
    ----------
    scores : dict of str to ndarray
        Score of each fold, by family, from the simplest to the most flexible.
    before : dict of str to ndarray
        The same on the part before, with fewer rows; empty for the first part.

    Returns
    -------
    list of str
        Names, from the simplest to the most flexible family.
    """
    names, out = list(scores), set()
    for simple, flexible in combinations(names, 2):
        lead = scores[flexible] - scores[simple]
        error = _standard_error(lead)
        if error is None or abs(lead.mean()) <= CLEAR * error:
            continue
        if lead.mean() > 0:
            out.add(simple)
        elif simple in before and flexible in before:
            shrinks = lead.mean() > before[flexible].mean() - before[simple].mean()
            out |= set() if shrinks else {flexible}
    return [name for name in names if name not in out]


def some_rows(values: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows, without a copy if they are all; None for None."""
    return values if values is None or rows.size == values.shape[0] else _safe_indexing(values, rows)


def family_table(
    scores: Mapping[str, Any], seconds: Mapping[str, float], errors: float = CLOSE
) -> list[dict[str, Any]]:
    r"""Return the table behind the choice of a family, the simplest that is nearly as good as the best.

    Nearly as good means that the difference of the means is at most its standard error (Breiman et al., 1984,
    section 3.4.3, for pruning trees). The standard error is that of the paired difference to the best over the
    :math:`k` folds, :math:`s / \sqrt{k}`, with the standard deviation :math:`s` of the differences.
    Families are good or bad on the same folds, so it is smaller than the standard error of a mean, and it is the one
    that says whether the difference could be noise.

    Parameters
    ----------
    scores : dict of str to sequence of float
        Score of each fold, by family, from the simplest to the most flexible.
    seconds : dict of str to float
        Time of the fit, by family.
    errors : float, default=1.0
        Difference to the best mean, in its standard errors, that counts as nearly as good.

    Returns
    -------
    list of dict
        For each family: "family", "mean", "standard_error" of the mean, "difference" to the best mean,
        "difference_error", the standard error of the difference, "seconds" and "chosen". The standard errors are None
        for a single fold, and then the simplest family is chosen.
    """
    by_family = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    best = max(by_family, key=lambda name: by_family[name].mean())
    table: list[dict[str, Any]] = []
    for name, values in by_family.items():
        gap = by_family[best] - values
        error = _standard_error(gap)
        close = error is None or bool(gap.mean() <= errors * error)
        table.append(
            {
                "family": name,
                "mean": float(values.mean()),
                "standard_error": _standard_error(values),
                "difference": 0.0 if name == best else float(-gap.mean()),
                "difference_error": error,
                "seconds": round(seconds[name], 3),
                "chosen": close and not any(row["chosen"] for row in table),
            }
        )
    return table


def family_text(found: dict[str, Any] | None) -> str:
    """Return a description of the comparison of families in one line."""
    if found is None:
        return "not compared"
    rows = [f"{row['family']} {row['mean']:.4f} ({row['difference']:+.4f})" for row in found["table"]]
    return f"{', '.join(rows)} {family_rows(found)}; chosen: {found['family']}"


def family_rows(found: dict[str, Any]) -> str:
    """Return the rows and folds of a comparison of families as text."""
    size = f"{found['folds']} folds of at most {found['rows in a fold']} training rows"
    return f"in cross-validation on {found['rows']:,} training rows, in {size}"


def _standard_error(values: NDArray[np.float64]) -> float | None:
    return None if values.size < 2 else float(values.std(ddof=1)) / math.sqrt(values.size)
