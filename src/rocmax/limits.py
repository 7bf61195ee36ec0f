"""What a model promises: limits on rates, on precision and on the number of alerts, and which of them go together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rocmax._docstrings import publish
from rocmax._support import Message, Parameter, ParameterError
from rocmax._validation import check_choice, check_range

if TYPE_CHECKING:
    from rocmax.costs import Costs

# Periods of a capacity, by NumPy's units; another value of `per` is the name of a column.
PERIODS = {"hour": "h", "day": "D", "week": "W", "month": "M"}
# Limits that only a higher threshold keeps, in the order of messages.
ON_ALERTS = ("max_fpr", "min_precision", "capacity")


@dataclass(frozen=True)
class Limits:
    """What a model is trained for: a measure, and limits that its threshold keeps.

    The limit on the false-positive rate, the floor on precision and the capacity require a high threshold, and the
    lowest that keeps all of them is chosen. A floor on the true-positive rate requires a low one; if both cannot be
    had, the error names the nearest limits that can. See :doc:`/thresholds`.

    Parameters
    ----------
    max_fpr : float, default=None
        Limit on the false-positive rate; None or 1 for no limit.
    confidence : float, default=None
        Probability with which all limits are kept on new rows, above 0 and below 1. None gives no guarantee.
    min_fpr : float, default=0.0
        Lower end of the window of false-positive rates, for training only.
    min_tpr : float, default=0.0
        Required true-positive rate; 0 for no limit. The threshold then just reaches it. With ``max_fpr`` and none of
        the limits below, :func:`rocmax.tables.fit_table` trains for the corner of both, and says whether ``max_fpr`` is
        kept, too.
    measure : str, default=None
        Measure to tune for and to report: "roc_auc", "partial_auc", "tpr_at_fpr", "break_even_point" or
        "average_precision". None takes the partial AUC with a limit, and the AUC without.
    rate : {"row", "group"}, default="row"
        Which rate a limit is for, if there are groups: that of all rows, or the mean over the groups of the rate in
        each, as in :class:`rocmax.FPRThresholdClassifier`. Precision has the rate of all rows only.
    min_precision : float, default=0.0
        Required precision, the share of positives among the alerts; 0 for no limit. Unlike the two rates, it depends on
        the share of positives among the rows: if positives become rarer, so do right alerts.
    capacity : float, default=None
        Largest number of alerts: below 1, a share of the rows; from 1 on, a number per period, with ``per``.
    per : str or sequence of str, default=()
        "hour", "day", "week" or "month" is the period of ``capacity``, and requires a column of times. Any other value
        is the name of a column: each of its values has a threshold of its own, which keeps the limits among its rows.
        With ``confidence``, all of them hold together. Rows with another value, or none, get the highest threshold.
    block : Limits, default=None
        Stricter limits on alerts for a second threshold. Rows above it are to be blocked, and rows between the two are
        to be reviewed.
    costs : Costs, default=None
        What decisions cost. The threshold is then the cheapest that keeps the limits, which can be ``max_fpr`` and
        ``capacity``. Without limits, each row has a threshold for its own costs, if that is cheaper.

    Examples
    --------
    >>> from rocmax import Limits
    >>> Limits(min_tpr=0.9, max_fpr=0.2, confidence=0.95).measure is None
    True
    >>> Limits(max_fpr=0.05, min_precision=0.3, capacity=200, per=("day", "country")).column
    'country'
    """

    max_fpr: float | None = None
    confidence: float | None = None
    min_fpr: float = 0.0
    min_tpr: float = 0.0
    measure: str | None = None
    rate: str = "row"
    min_precision: float = 0.0
    capacity: float | None = None
    per: str | Sequence[str] = ()
    block: Limits | None = None
    costs: Costs | None = None

    @property
    def window(self) -> tuple[float, float]:
        """Range of false-positive rates."""
        return self.min_fpr, 1.0 if self.max_fpr is None else self.max_fpr

    @property
    def on_alerts(self) -> dict[str, float]:
        """Limits that only a higher threshold keeps, by name."""
        values = {"max_fpr": self.window[1], "min_precision": self.min_precision, "capacity": self.capacity}
        return {name: float(value) for name, value in values.items() if value and (name, value) != ("max_fpr", 1.0)}

    @property
    def extended(self) -> bool:
        """Whether there are costs, or a limit other than those on the two rates."""
        return bool(self.min_precision or self.capacity or self.per or self.block or self.costs)

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.window != (0.0, 1.0) or self.min_tpr > 0 or bool(self.on_alerts)

    @property
    def period(self) -> str | None:
        """The period of the capacity."""
        return next((name for name in _names(self.per) if name in PERIODS), None)

    @property
    def column(self) -> str | None:
        """The column whose values have thresholds of their own."""
        return next((name for name in _names(self.per) if name not in PERIODS), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as plain values, for JSON; those that are not set are left out."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found |= {"per": list(_names(self.per))}
        found |= {name: None if found[name] is None else found[name].to_dict() for name in ("block", "costs")}
        unset = {**_DEFAULTS, "max_fpr": 1.0}
        return {name: value for name, value in found.items() if value not in (None, []) and value != unset[name]}


_DEFAULTS = {each.name: each.default for each in fields(Limits)}


def _names(per: Any) -> tuple[Any, ...]:
    if per is None:
        return ()
    return tuple(per) if isinstance(per, list | tuple) else (per,)


def checked(limits: Limits) -> Limits:
    """Return limits with numbers; raise ParameterError if they are invalid or incompatible."""
    (min_fpr, max_fpr), min_tpr = limits.window, limits.min_tpr
    for name, value in (("min_fpr", min_fpr), ("max_fpr", max_fpr)):
        check_range(name, value, 0.0, 1.0, "a number from 0 to 1")
    low, limit = Parameter("min_fpr"), Parameter("max_fpr", ...)
    if not min_fpr < max_fpr:
        found = f"; got {min_fpr:g} and {max_fpr:g}"
        raise ParameterError(Message(low, " must be less than ", Parameter("max_fpr"), found))
    if min_fpr > 0 and max_fpr == 1.0:
        raise ParameterError(Message(low, " requires a limit: ", limit, f", above {min_fpr:g} and below 1"))
    for name in ("min_tpr", "min_precision"):
        check_range(name, getattr(limits, name), 0.0, math.nextafter(1.0, 0.0), "a number of at least 0 and below 1")
    if limits.confidence is not None:
        check_range("confidence", limits.confidence, 0.0, 1.0, "a number above 0 and below 1", open_ends=True)
    check_choice("rate", limits.rate, ("row", "group"))
    if limits.rate == "group" and limits.min_precision > 0:
        only = " must be ", Parameter("rate", "row"), " with ", Parameter("min_precision")
        raise ParameterError(Message(Parameter("rate"), *only, ", a share of the alerts; got 'group'"))
    _check_capacity(limits)
    known = replace(limits, min_fpr=float(min_fpr), max_fpr=float(max_fpr), min_tpr=float(min_tpr))
    known = replace(known, min_precision=float(limits.min_precision), per=_names(limits.per))
    if limits.costs is not None:
        _check_costs(known, limits.costs)
    return known if limits.block is None else replace(known, block=_checked_block(limits))


def _check_capacity(limits: Limits) -> None:
    """Raise ParameterError for a capacity without what it counts, and for a wrong ``per``."""
    capacity, period, names = limits.capacity, limits.period, _names(limits.per)
    if not all(isinstance(name, str) and name for name in names) or len(names) - (period is not None) > 1:
        raise ParameterError(
            Message(Parameter("per"), f" must be a period, a column, or one of each; got {limits.per!r}")
        )
    if capacity is not None:
        check_range("capacity", capacity, 0.0, math.inf, "a number above 0 and below infinity", open_ends=True)
    given = Parameter("capacity", capacity or ...)
    if period is not None and (capacity is None or capacity < 1):
        need = " requires a number of alerts of at least 1: ", Parameter("capacity", ...)
        end = "" if capacity is None else f"; got {capacity:g}, a share of the rows, which has no period"
        raise ParameterError(Message(Parameter("per", period), *need, end))
    if capacity is not None and capacity >= 1 and period is None:
        need = f" is a number of alerts, which requires a period ({', '.join(PERIODS)}): ", Parameter("per", "day")
        raise ParameterError(Message(given, *need, "; a share of the rows is below 1"))
    if limits.column is not None and not limits.limited:
        raise ParameterError(Message(Parameter("per", limits.column), " requires a limit: ", Parameter("max_fpr", ...)))


def _check_costs(limits: Limits, costs: Costs) -> None:
    """Raise ParameterError for costs that are none, or with limits that not every higher threshold keeps."""
    from rocmax.costs import Costs  # needs scikit-learn, which losses do not

    if not isinstance(costs, Costs):
        raise ParameterError(Message(Parameter("costs"), f" must be Costs; got {costs!r}"))
    costs.check()
    for name in ("min_tpr", "min_precision", "block"):
        if getattr(limits, name):
            only = " must not be given with costs, which choose the threshold; limits can be ", Parameter("max_fpr")
            raise ParameterError(Message(Parameter(name), *only, " and ", Parameter("capacity")))
    if limits.column is not None:
        raise ParameterError(Message(Parameter("per", limits.column), " must not be given with costs"))


def _checked_block(limits: Limits) -> Limits:
    """Return the limits of the second threshold; raise ParameterError if they are not limits on alerts."""
    names, block = "max_fpr, min_precision or capacity", limits.block
    if not isinstance(block, Limits):
        raise ParameterError(Message(Parameter("block"), f" must be Limits with {names}; got {block!r}"))
    rest = sorted(name for name in block.to_dict() if name not in ON_ALERTS)
    if rest or not block.on_alerts:
        got = ", ".join(rest) or "no limit"
        raise ParameterError(Message(Parameter("block"), f" must have {names}, and nothing else; got {got}"))
    counted = block.capacity is not None and block.capacity >= 1
    return replace(checked(replace(block, per=(limits.period or ()) if counted else ())), per=())


__all__ = ["Limits"]

# The name is exported by the packages rocmax and rocmax.tables.
publish("rocmax", globals(), __all__)
