"""Costs of single cases: what alerts and misses cost, the cheapest thresholds, and what a model saves."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _num_samples

from rocmax._docstrings import publish
from rocmax._rounding import DUST, join_ties
from rocmax._support import Array, Bools, Message, Parameter, ParameterError
from rocmax._validation import check_range
from rocmax.measures import below
from rocmax.metrics.curve import group_numbers
from rocmax.metrics.uncertainty import check_level, n_independent, tail_share


@dataclass(frozen=True)
class Costs:
    """What a decision costs: a number for all rows, or the name of a column with the cost of each row.

    An alert costs ``review``, whether it is right or not, and a false alarm ``false_alarm`` in addition. A positive
    that is not flagged costs ``miss``, and a negative that is not flagged nothing. See :doc:`/costs`.

    Parameters
    ----------
    false_alarm : float or str, default=0.0
        What a false alarm costs beside its review.
    miss : float or str, default=None
        What a positive costs that is not flagged, such as the amount of a fraud; it must be given.
    review : float or str, default=0.0
        What it costs to look at an alert.

    Examples
    --------
    >>> from rocmax.costs import Costs
    >>> Costs(false_alarm=5, miss="amount", review=1).columns
    ['amount']
    """

    false_alarm: float | str = 0.0
    miss: float | str | None = None
    review: float | str = 0.0

    @property
    def columns(self) -> list[str]:
        """Names of the columns with costs."""
        return list(dict.fromkeys(value for value in self.to_dict().values() if isinstance(value, str)))

    def to_dict(self) -> dict[str, float | str]:
        """Return the costs as plain values, for JSON."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value if isinstance(value, str) else float(value) for name, value in found.items()}

    def check(self) -> None:
        """Raise ParameterError if a cost is neither a number of at least 0 nor the name of a column."""
        if self.miss is None:
            raise ParameterError("costs require what a miss costs: ", Parameter("cost_miss", ...))
        for each in fields(self):
            value = getattr(self, each.name)
            if not isinstance(value, str):
                needed = "a number of at least 0, or the name of a column"
                check_range(f"cost_{each.name}", value, 0.0, math.nextafter(math.inf, 0.0), needed)

    def of(self, X: Any) -> CaseCosts:
        """Return the costs of rows; raise ValueError with the column and the row if one of them is no cost.

        Parameters
        ----------
        X

        Returns
        -------
        CaseCosts
            An array for each kind of cost.
        """
        n_rows = _num_samples(X)
        return CaseCosts(*(_column(X, each.name, getattr(self, each.name), n_rows) for each in fields(self)))


def _column(X: Any, name: str, given: float | str, n_rows: int) -> Array:
    """Return one kind of cost of each row."""
    if not isinstance(given, str):
        return np.full(n_rows, float(given))
    if not hasattr(X, "columns") or given not in X.columns:
        known = ", ".join(map(repr, X.columns[:10])) if hasattr(X, "columns") else "no columns"
        needed = f" must be a number or a column of the rows; got {given!r}, known: {known}"
        raise ValueError(Message(Parameter(f"cost_{name}"), needed))
    values = np.asarray(X[given], dtype=object)
    found = np.array([_number(value) for value in values])
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            Message(
                f"column {given!r}, which is ",
                Parameter(f"cost_{name}"),
                f", must have a number of at least 0 in each row; got {values[row]} in row {row + 1} after the header"
                f"{'' if wrong.size == 1 else f', and {wrong.size - 1:,} more rows'}",
            )
        )
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


class CaseCosts(NamedTuple):
    """Costs of rows, one array for each kind."""

    false_alarm: Array
    miss: Array
    review: Array

    def some(self, rows: Any) -> CaseCosts:
        """Return the costs of some rows."""
        return CaseCosts(*(values[rows] for values in self))

    def check(self, positive: Bools) -> None:
        """Raise ValueError if one of the two decisions is never better than the other."""
        if not (self.miss > self.review)[positive].any():
            raise ValueError("a miss must cost more than a review in some positive rows; it does in none of them")
        if not (self.false_alarm + self.review)[~positive].any():
            raise ValueError(
                "the costs of false alarms and reviews must be above 0 in some negative rows; got 0 in all of them"
            )

    def gain(self, positive: Bools) -> Array:
        """Return what an alert saves in each row; negative for a loss."""
        return np.where(positive, self.miss - self.review, -(self.false_alarm + self.review))

    def spent(self, positive: Bools, flagged: Bools) -> Array:
        """Return what the decisions cost in each row."""
        return np.where(positive, self.miss, 0.0) - np.where(flagged, self.gain(positive), 0.0)

    def weight(self, positive: Bools) -> Array:
        """Return what a wrong decision costs more than the right one in each row, the weight for training.

        A positive whose review costs more than its miss is better not flagged; its weight is 0.
        """
        gain = self.gain(positive)
        return np.where(positive, np.maximum(gain, 0.0), -gain)

    def log_odds(self) -> Array:
        """Return the logarithm of the odds of a positive above which an alert pays in each row."""
        least = np.maximum(1e-12 * (self.false_alarm + self.miss + self.review), 1e-300)
        alert, right = self.false_alarm + self.review, self.miss - self.review
        found: Array = np.log(np.maximum(alert, least)) - np.log(np.maximum(right, least))
        return found


def cheapest_threshold(scores: Array, gain: Array, lowest: float = -math.inf) -> float:
    """Return the cheapest threshold of at least ``lowest``, the highest of equal ones; alerts save ``gain``."""
    values, block = np.unique(-join_ties(scores), return_inverse=True)
    n_allowed = int(np.count_nonzero(-values > lowest))
    saved = np.append(0.0, np.cumsum(np.bincount(block, gain, values.size))[:n_allowed])
    n_accepted = int(np.flatnonzero(saved >= saved.max() - DUST * np.abs(gain).sum())[0])
    if n_accepted == n_allowed and math.isfinite(lowest):
        return lowest
    return below(-values, n_accepted)


class CostEstimate(NamedTuple):
    """Mean cost per row of decisions, the part of it that they save, and 95 % intervals.

    ``savings`` are a share of the cost of the better of two constant decisions: to flag no row, ``none``, and to flag
    all rows, ``all``.
    """

    cost: float
    cost_low: float
    cost_high: float
    savings: float
    savings_low: float
    savings_high: float
    none: float
    all: float


def expected_cost(
    case: CaseCosts,
    positive: Bools,
    flagged: Bools,
    *,
    groups: Any = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> CostEstimate:
    r"""Mean cost per row of decisions, and their savings, with bootstrap intervals.

    .. math:: \text{savings} = 1 - \frac{\text{cost}}{\min(\text{cost if none is flagged},\ \text{cost if all are})}

    It is 1 if nothing is lost, 0 for the better constant decision (and if that costs nothing), and negative for
    decisions that are worse. The intervals are those of :func:`rocmax.metrics.bootstrap_interval`: positives and
    negatives are resampled separately, each row with its costs; with groups, groups with positives only, with negatives
    only and with both.

    Parameters
    ----------
    case : CaseCosts
        Costs of the rows, from :meth:`Costs.of`.
    positive, flagged : ndarray of bool of shape (n_samples,)
        Whether each row is positive, and whether it is flagged.
    groups
    n_resamples : int, default=1000
        Number of resamples.
    confidence_level
    random_state : int, numpy.random.Generator or None, default=None
        Seed or generator of the resamples.

    Returns
    -------
    CostEstimate
        The cost, the savings and their intervals.

    References
    ----------
    A. C. Bahnsen, D. Aouada and B. Ottersten (2015). Example-dependent cost-sensitive decision trees. Expert Systems
    with Applications 42, 6609-6619 (savings).

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.costs import Costs, expected_cost
    >>> positive, flagged = np.arange(100) < 20, np.arange(100) % 30 < 10
    >>> found = expected_cost(Costs(false_alarm=2, miss=10).of(positive), positive, flagged, random_state=0)
    >>> found.cost, found.none, found.all
    (1.6, 2.0, 1.6)
    >>> found.savings
    0.0
    """
    check_level(confidence_level)
    every = np.ones(positive.size, dtype=bool)
    costs = np.column_stack([case.spent(positive, rows) for rows in (flagged, ~every, every)])
    number = group_numbers(groups, None, positive)
    if number is None:
        kind = positive.astype(np.intp)
    else:
        sides = [np.bincount(number, side) > 0 for side in (positive, ~positive)]
        costs = np.column_stack([np.bincount(number, column) for column in costs.T])
        kind = sides[0] + 2 * sides[1]
    rng, drawn = np.random.default_rng(random_state), np.zeros((n_resamples, 3))
    for each in np.unique(kind):
        distinct, counts = np.unique(costs[kind == each], axis=0, return_counts=True)
        drawn += _resampled(distinct, counts, n_resamples, rng)
    tail = tail_share(confidence_level, n_independent(positive, every, number))
    found = costs.sum(axis=0, keepdims=True) / positive.size
    of_cost, of_savings = (np.quantile(values, (tail, 1 - tail)) for values in (drawn[:, 0], _savings(drawn)))
    cost, none, flag_all = found[0].tolist()
    ends = (of_cost / positive.size).tolist()
    return CostEstimate._make([cost, *ends, *_savings(found).tolist(), *of_savings.tolist(), none, flag_all])


def _savings(costs: Array) -> Array:
    """Return the savings for costs of the decisions, of flagging none and of flagging all, in columns."""
    base = costs[:, 1:].min(axis=1)
    found: Array = 1.0 - np.divide(costs[:, 0], base, out=np.ones(base.size), where=base > 0)
    return found


def _resampled(values: Array, counts: Any, n_resamples: int, rng: np.random.Generator) -> Array:
    """Return sums of resampled rows; ``counts`` rows have each of the values."""
    total = int(counts.sum())
    if values.shape[0] <= total // 20:
        found: Array = rng.multinomial(total, counts / total, size=n_resamples) @ values
        return found
    rows = np.repeat(np.arange(values.shape[0]), counts)
    return np.array([values[rows[rng.integers(total, size=total)]].sum(axis=0) for _ in range(n_resamples)])


__all__ = ["CaseCosts", "CostEstimate", "Costs", "expected_cost"]

publish("rocmax.costs", globals(), __all__)
