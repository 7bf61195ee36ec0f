"""Choice of a family of models by cross-validation: linear, additive or boosted trees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._progress import part, stage
from rocmax.workflow.models import FAMILIES, need_package

# Maximum number of numeric columns for which an additive model, with six splines for each, is compared.
MAX_SPLINE_COLUMNS = 50
# Difference to the best mean, in standard errors, within which a simpler family is chosen.
CLOSE = 1.0


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
    candidates: Mapping[str, Any], X: Any, y: NDArray[Any], groups: NDArray[Any] | None
) -> dict[str, Any]:
    """Tune each family in the same cross-validation folds and choose one by the scores on the held-out rows.

    A family is represented by the best of its parameters. The parameters are chosen with the same rows, so the means
    are slightly too high; all families have this advantage. Parameters that were chosen without the held-out rows of
    each fold would take as many searches as there are folds.

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

    Returns
    -------
    dict
        "family", the chosen name; "table", a row for each family, as in :func:`family_table`; "rows" that were used,
        "folds" and "rows in a fold".
    """
    scores, seconds = {}, {}
    for number, (name, model) in enumerate(candidates.items(), 1):
        start = perf_counter()
        with part(f"family {number} of {len(candidates)}"):
            stage(f"preparing {name}")
            scores[name] = model.fit(X, y, groups).held_out_scores(X, y, groups)
        seconds[name] = perf_counter() - start
    table = family_table(scores, seconds)
    size = {key: candidates["linear"].tuning_[key] for key in ("folds", "rows in a fold")}
    chosen = next(row["family"] for row in table if row["chosen"])
    return {"family": chosen, "table": table, "rows": int(y.size), **size}


def family_table(scores: Mapping[str, Sequence[float]], seconds: Mapping[str, float]) -> list[dict[str, Any]]:
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
        close = error is None or bool(gap.mean() <= CLOSE * error)
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
    size = f"{found['folds']} folds of at most {found['rows in a fold']} training rows"
    rule = "the simplest within one standard error of the best"
    return f"{', '.join(rows)} in {size}; chosen: {found['family']}, {rule}"


def _standard_error(values: NDArray[np.float64]) -> float | None:
    return None if values.size < 2 else float(values.std(ddof=1)) / math.sqrt(values.size)
