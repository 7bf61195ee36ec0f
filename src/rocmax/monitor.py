r"""Watch the limits of a fitted model while rows and labels arrive: sequential tests and a small state.

A rate of one in a hundred cannot be read off a batch, and a test that is repeated after every batch raises a false
alarm sooner or later. The tests here hold at all times together: the probability that a limit which holds is ever
called broken is at most one minus the confidence, however often one looks.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, logsumexp, xlog1py, xlogy
from scipy.stats import binom

from rocmax._docstrings import publish
from rocmax._support import Array, Index
from rocmax._validation import check_range
from rocmax.limits import PERIODS
from rocmax.metrics.rates import calendar
from rocmax.thresholds import ScoreCuts, first_alerts, order_statistic, precise_cuts, rows_needed

__all__ = ["Monitor", "Proposal", "Verdict", "audit_size", "rate_interval"]


@dataclass(frozen=True)
class MonitorRules:
    """Numbers of the tests. The medians are those of ``benchmarks/metrics/monitoring.py``."""

    # Bets, by the relative excess of the rate over the limit that each is made for. Between 20 % and 10 times the
    # limit, a factor of 1.3 apart: the median of the labels until a doubled rate is noticed depends little on either.
    least_excess: float = 0.2
    largest_excess: float = 10.0
    n_bets: int = 16
    # Share of the evidence that is collected from the first batch on; the rest is for changes at a later time. It
    # costs a tenth of a factor of e at the start, and makes a change after years as visible as one after weeks.
    first: float = 0.9
    # Batches are told apart by this many leading binary digits of their number: 64 batches singly, then pairs up to
    # 128, and so on, which keeps the state small and dates a change to three percent of its age.
    digits: int = 6
    # A limit is said to hold if, with the stated confidence, the rate is below this multiple of it; for a floor, if the
    # misses are, and the rate is not below the floor divided by it.
    tolerance: float = 2.0
    # Histograms of the scores, for new thresholds: bins in each doubling of the distance to the threshold, from
    # 2^-24 to 2^24, and stretches of batches with a histogram each, merged where they are short for their age. A
    # threshold is an end of a bin, at most 1/8 farther from the present one than the rows require.
    bins: int = 8
    doublings: int = 24
    stretches: int = 10
    # Alerts per day are counted as if a day had so many rows, more than there are, with the same small probability.
    cells: float = 1e9


RULES = MonitorRules()
# Version of the state; another one is refused.
VERSION = 2

# What is counted in each period, by the knowledge about a row; `ended` are hours, days, weeks or months that are over.
_BY_LABEL = ("flagged_positive", "flagged_negative", "passed_positive", "passed_negative")
COUNTS = ("rows", "flagged", *_BY_LABEL, "ended", "ended_flagged")
LIMITS = ("max_fpr", "min_tpr", "min_precision", "capacity")


def _edges() -> Array:
    """Return the ends of the bins of scores; the present threshold, 0, is one of them."""
    steps = np.arange(RULES.bins) / RULES.bins
    above = np.ldexp(1.0 + steps, np.arange(-RULES.doublings, RULES.doublings)[:, None]).ravel()
    return np.concatenate([-above[::-1], [0.0], above])


# A row is in bin i if its score is above the end before and at most the i-th end.
EDGES = _edges()
PASSED = int(np.searchsorted(EDGES, 0.0)) + 1  # bins of rows that are not flagged


def rate_interval(n: int, hits: int, confidence: float = 0.95) -> tuple[float, float]:
    r"""Return an interval for a rate that holds at all times together: a confidence sequence.

    With ``s`` hits among ``n``, it consists of all rates ``p`` with
    :math:`B(s + \frac12, n - s + \frac12) / B(\frac12, \frac12) \le p^s (1 - p)^{n - s} / (1 - \text{confidence})`,
    the mixture of likelihood ratios of Robbins (1970). If the rate changes, it covers the mean rate so far.

    Parameters
    ----------
    n : int
        Number of rows.
    hits : int
        Number of rows with the event.
    confidence : float, default=0.95
        Probability that the interval contains the rate after every row, between 0 and 1.

    Returns
    -------
    tuple of float
        Lower and upper end.

    Examples
    --------
    >>> from rocmax.monitor import rate_interval
    >>> low, high = rate_interval(10_000, 100)
    >>> round(low, 4), round(high, 4)
    (0.0066, 0.0145)
    """
    if not 0 <= hits <= n:
        raise ValueError(f"hits must be between 0 and n; got {hits} of {n}")
    _check_share("confidence", confidence)
    top = betaln(hits + 0.5, n - hits + 0.5) - betaln(0.5, 0.5) + np.log(1.0 - confidence)

    def excess(p: float) -> float:
        return float(top - xlogy(hits, p) - xlog1py(n - hits, -p))

    middle = hits / n if n else 0.5
    tiny = np.finfo(float).tiny
    low = 0.0 if excess(tiny) < 0.0 else brentq(excess, tiny, middle) if hits else 0.0
    high = 1.0 if hits == n else brentq(excess, middle, 1.0 - np.finfo(float).epsneg)
    return float(low), float(high)


def _audited_interval(audit: float, caught: int, missed: int, confidence: float) -> tuple[float, float]:
    """Return a confidence sequence for the true-positive rate if rows that were not flagged are sampled for labels.

    It consists of the rates that no bet of one half of the level refutes, in either direction.
    """
    level = np.log((1.0 - confidence) / 2.0)

    def too_low(rate: float) -> float:
        return float(_log_wealth(rate / audit, 1.0 - rate, missed, caught) + level)

    def too_high(rate: float) -> float:
        return float(_log_wealth(1.0 - rate, rate / audit, caught, missed) + level)

    ends = 1e-9, 1.0 - 1e-9
    low = 0.0 if too_high(ends[0]) < 0.0 else brentq(too_high, *ends)
    high = 1.0 if too_low(ends[1]) < 0.0 else brentq(too_low, *ends)
    return float(low), float(high)


def _log_wealth(gain: float, loss: float, n_gain: float, n_loss: float) -> float:
    """Return the logarithm of the mean wealth over the bets, from the first row on."""
    won, lost = bets(gain, loss)
    return float(logsumexp(n_gain * won + n_loss * lost) - np.log(RULES.n_bets))


@lru_cache(256)
def bets(gain: float, loss: float) -> tuple[Array, Array]:
    """Return the logarithms of what the bets multiply the wealth by with a gain and with a loss."""
    excess = np.geomspace(RULES.least_excess, RULES.largest_excess, RULES.n_bets)
    # With a probability of loss / (gain + loss) of a gain, the mean is zero; a bet is made for a multiple of it.
    share = np.minimum(excess * loss / gain, 0.99)
    return np.log1p(share * gain / loss), np.log1p(-share)


def _log_evidence(gain: float, loss: float, n_gain: Array, n_loss: Array, numbers: Array) -> float:
    r"""Return the logarithm of the evidence that a mean is above zero.

    The terms of the mean are ``gain`` (``n_gain`` of them in each period) and ``-loss``. A bet of the share ``b`` of
    the wealth multiplies it by :math:`1 + b\,\text{gain} / \text{loss}` or :math:`1 - b`, so a wealth of 1 has an
    expectation of at most 1 at all times if the mean is at most zero, and exceeds 1 / level with a probability of at
    most ``level`` (Ville). The evidence is the mean wealth over bets and first periods, with the weight of periods that
    are still to come as it was.
    """
    won, lost = bets(gain, loss)
    wealth = n_gain[:, None] * won + n_loss[:, None] * lost
    since = np.cumsum(wealth[::-1], axis=0)[::-1]
    weights = start_weights(numbers)
    top = max(float(since.max()), 0.0)
    waiting = 1.0 - min(float(weights.sum()), 1.0 - 1e-15)
    return top + math.log(float(weights @ np.exp(since - top).mean(axis=1)) + waiting * math.exp(-top))


def start_weights(numbers: Array) -> Array:
    """Return the weight of a start in each period; ``numbers`` are those of their first batches, from 0 on.

    A later start at batch ``k`` has a share of 1 / (k (k + 1)); that of batches within a period belongs to the period
    that follows, whose number is known in advance.
    """
    before = np.concatenate([[0.0], numbers[:-1]])
    later = 1.0 / (before + 1.0) - 1.0 / (numbers + 1.0)
    return np.where(numbers == 0, RULES.first, (1.0 - RULES.first) * later)


@dataclass(frozen=True)
class Verdict:
    """What is known about one limit.

    Attributes
    ----------
    limit : str
        Name of the limit, as in :class:`Monitor`.
    value : float
        The limit.
    status : {"holds", "broken", "not enough labels"}
        "broken" is said wrongly with a probability of at most one minus the confidence, over all times together.
        "holds" means that there is no such evidence and that, with the confidence, the rate is below twice the limit;
        for a floor, that less than twice as many rows as allowed are missed, and the rate is above half of the floor.
    rate, low, high : float
        The rate so far and a confidence sequence for it; NaN without rows.
    n : int
        Number of rows that the rate is computed from.
    evidence : float
        The largest evidence so far that the limit is broken; from 1 / (1 - confidence) on, it is.
    since : str or None
        Label of the batch since which the limit is probably broken.
    """

    limit: str
    value: float
    status: str
    rate: float
    low: float
    high: float
    n: int
    evidence: float
    since: str | None


@dataclass(frozen=True)
class Proposal:
    """A new threshold for a limit that is broken.

    Attributes
    ----------
    limit : str
        Name of the limit, as in :class:`Monitor`.
    threshold : float or None
        Rows with a score above it keep the limit, on the scale on which the present threshold is 0; None if there are
        too few labels for one.
    n : int
        Number of rows since the change that it is computed from.
    needed : int
        The least number of them that can give a threshold.
    promise : str
        What it guarantees, with the confidence of the monitor, if rows go on to be as they have been since the change.
    """

    limit: str
    threshold: float | None
    n: int
    needed: int
    promise: str


@dataclass
class _Period:
    """Counts of consecutive batches."""

    number: int
    first: str
    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))


@dataclass
class _Stretch:
    """Histograms of the scores of consecutive batches: of rows without label, negatives and positives."""

    number: int
    bins: Index


@dataclass
class Tally:
    """Rows of a batch, or of a piece of one: histograms of their scores, and alerts by hour, day, week or month."""

    bins: Index = field(default_factory=lambda: np.zeros((3, EDGES.size + 1), dtype=np.int64))
    calendar: Counter[int] = field(default_factory=Counter)

    def add(self, scores: Any, y: Any = None, times: Any = None, per: str | None = None) -> Index:
        """Count rows and return the bins of their scores; raise ValueError for values that cannot be counted."""
        scores = np.asarray(scores, dtype=float)
        if scores.ndim != 1:
            raise ValueError(f"scores must have one dimension; got shape {scores.shape}")
        if np.isnan(scores).any():
            raise ValueError(f"scores must not be NaN; got {int(np.isnan(scores).sum())} of {scores.size}")
        labels = np.full(scores.size, np.nan) if y is None else np.asarray(y, dtype=float)
        if labels.shape != scores.shape:
            raise ValueError(f"y must have one value for each score; got shape {labels.shape} for {scores.size} scores")
        wrong = labels[~(np.isnan(labels) | (labels == 0) | (labels == 1))]
        if wrong.size:
            raise ValueError(f"y must be 1, 0 or NaN; got {wrong[0]:g}")
        if per is not None:
            self._count_alerts(scores > 0, times, per)
        place: Index = np.searchsorted(EDGES, scores)
        row = np.nan_to_num(labels, nan=-1.0).astype(np.intp) + 1
        self.bins += np.bincount(row * self.bins.shape[1] + place, minlength=self.bins.size).reshape(self.bins.shape)
        return place

    def _count_alerts(self, flagged: Any, times: Any, per: str) -> None:
        when = np.asarray([] if times is None else times, dtype="datetime64[ns]")
        if when.shape != flagged.shape or np.isnat(when).any():
            raise ValueError(f"a capacity per {per} requires the time of each row: times=..., a date for each score")
        periods, place = np.unique(calendar(when, PERIODS[per]).astype(np.int64), return_inverse=True)
        self.calendar.update(dict(zip(periods.tolist(), np.bincount(place, flagged).astype(int).tolist(), strict=True)))

    @property
    def counts(self) -> list[int]:
        """The counts of a period, without those of the calendar."""
        negative, positive = self.bins[1:]
        by_label = [rows[part].sum() for part in _SIDES for rows in (positive, negative)]
        return [int(count) for count in (self.bins.sum(), self.bins[:, PASSED:].sum(), *by_label, 0, 0)]


_SIDES = (slice(PASSED, None), slice(PASSED))


class Monitor:
    r"""Watch the limits of a classifier while rows and labels arrive, in batches of any size.

    Each limit has a test by betting (Waudby-Smith and Ramdas 2024) whose evidence may be looked at after every batch.
    With ``labeled="alerts"``, only flagged rows are reviewed. The false-positive rate can still be watched: a row is
    flagged and negative with a probability of at most ``max_fpr`` times the share of negatives, so the false alarms
    among *all* rows are counted. If a share :math:`\pi` of the rows is positive, a rate is noticed only above
    ``max_fpr`` :math:`/ (1 - \pi)`. Missed positives are seen in an audit only: a random sample of the rows that were
    not flagged. Alerts that wait for their label count as right.

    Parameters
    ----------
    max_fpr : float, default=None
        Limit on the false-positive rate.
    min_tpr : float, default=None
        Floor on the true-positive rate. With ``labeled="alerts"``, it requires an ``audit``.
    min_precision : float, default=None
        Floor on the share of positives among flagged rows.
    capacity : float, default=None
        Limit on the flagged rows: their share of the rows if it is below 1 and, with ``per``, their mean number in each
        hour, day, week or month.
    per : {"hour", "day", "week", "month"}, default=None
        What the capacity is for. Only hours and so on that are over count, and rows of an earlier one that come late
        count in the one that has begun.
    confidence : float, default=0.95
        Probability that a limit which holds is never called broken.
    labeled : {"all", "alerts"}, default="all"
        Which rows get labels, sooner or later: all of them, independently of their score, or flagged ones and, with
        ``audit``, a sample of the others.
    audit : float, default=None
        Probability with which each row that is not flagged is sampled for a label.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.monitor import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(max_fpr=0.01)
    >>> for day in range(30):
    ...     flagged = rng.random(500) < (0.005 if day < 15 else 0.03)
    ...     _ = monitor.update(np.where(flagged, 1.0, -1.0), np.zeros(500), label=f"day {day}")
    >>> verdict = monitor.verdicts()[0]
    >>> verdict.status, verdict.since
    ('broken', 'day 15')
    """

    def __init__(
        self,
        max_fpr: float | None = None,
        *,
        min_tpr: float | None = None,
        min_precision: float | None = None,
        capacity: float | None = None,
        per: str | None = None,
        confidence: float = 0.95,
        labeled: str = "all",
        audit: float | None = None,
    ) -> None:
        self.max_fpr, self.min_tpr, self.min_precision, self.capacity = max_fpr, min_tpr, min_precision, capacity
        self.per, self.confidence, self.labeled, self.audit = per, confidence, labeled, audit
        self._check_parameters()
        self.n_batches = 0
        self._periods: list[_Period] = []
        self._stretches: list[_Stretch] = []
        # Label of the last batch, and the hour, day, week or month that has begun, with its alerts so far.
        self._last = ""
        self._begun: list[int] = []
        # The largest evidence of each limit, and the label of the batch with which it was called broken.
        self._largest: dict[str, float] = {}
        self._broken: dict[str, str] = {}

    def update(self, scores: Any, y: Any = None, *, label: str | None = None, times: Any = None) -> int:
        """Count a batch of rows.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Scores minus the threshold: rows above 0 are flagged.
        y : array-like of shape (n_samples,), default=None
            1 for positive, 0 for negative rows, NaN where the label is not known yet. None means that none is known.
        label : str, default=None
            Name of the batch in verdicts, such as a date. None takes its number.
        times : array-like of shape (n_samples,), default=None
            Dates of the rows, which a capacity ``per`` hour, day, week or month requires.

        Returns
        -------
        int
            The number of the batch, for labels that come later.
        """
        tally = Tally()
        tally.add(scores, y, times, self.per)
        return self.count(tally, label)

    def count(self, tally: Tally, label: str | None = None) -> int:
        """Count a batch of rows, given its tally."""
        number = self.n_batches
        self._last = str(number) if label is None else str(label)
        if not self._periods or starts_period(number):
            self._periods.append(_Period(number, self._last))
        counts = [*tally.counts[:-2], *self._ended(tally.calendar)]
        period = self._periods[-1]
        period.counts = [a + b for a, b in zip(period.counts, counts, strict=True)]
        self._stretches.append(_Stretch(number, tally.bins.copy()))
        self.n_batches += 1
        if len(self._stretches) > RULES.stretches:
            self._merge()
        self._look()
        return number

    def add_labels(self, batch: int, scores: Any, y: Any) -> None:
        """Count labels of rows that were in an earlier batch without them.

        Parameters
        ----------
        batch : int
            Number of the batch, as returned by :meth:`update`.
        scores : array-like of shape (n_samples,)
            Scores of the rows with new labels, minus the threshold.
        y : array-like of shape (n_samples,)
            1 for positive and 0 for negative rows.
        """
        if not 0 <= batch < self.n_batches:
            raise ValueError(f"batch must be the number of a batch, from 0 to {self.n_batches - 1}; got {batch}")
        tally = Tally()
        place = tally.add(scores, y)
        if tally.bins[0].any():
            raise ValueError(f"y must be 0 or 1 for each row; got {tally.bins[0].sum()} rows without a label")
        self.settle(np.full(place.size, batch), place, np.asarray(y, dtype=np.intp))

    def settle(self, batches: Index, place: Index, y: Index) -> None:
        """Count labels of rows whose batches and bins of scores are given."""
        periods = np.array([period.number for period in self._periods])
        added = np.zeros((periods.size, len(_BY_LABEL)), dtype=np.int64)
        column = np.where(place >= PASSED, 0, 2) + (1 - y)
        np.add.at(added, (np.searchsorted(periods, batches, side="right") - 1, column), 1)
        table = np.array([period.counts for period in self._periods])
        table[:, 2:6] += added
        known = table[:, 2] + table[:, 3], table[:, 4] + table[:, 5]
        wrong = (known[0] > table[:, 1]) | (known[1] > table[:, 0] - table[:, 1])
        if wrong.any():
            raise ValueError(
                f"batch {periods[wrong][0]} has fewer rows than labels: the rows were not in it, or their labels were "
                "counted"
            )
        starts = [stretch.number for stretch in self._stretches]
        of_stretch = np.searchsorted(starts, batches, side="right") - 1
        for number, stretch in enumerate(self._stretches):
            own = of_stretch == number
            np.add.at(stretch.bins, (y[own] + 1, place[own]), 1)
            np.subtract.at(stretch.bins[0], place[own], 1)
        for period, counts in zip(self._periods, table.tolist(), strict=True):
            period.counts = counts
        self._look()

    @property
    def last_label(self) -> str:
        """Name of the last batch; empty before the first."""
        return self._last

    def verdicts(self) -> list[Verdict]:
        """Return what is known about each limit.

        Returns
        -------
        list of Verdict
            One for each limit that was given.
        """
        return [self._verdict(name, value) for name, value in self._limits().items()]

    def proposals(self) -> list[Proposal]:
        """Return a new threshold for each limit that is broken, from the rows since the change.

        Returns
        -------
        list of Proposal
            One for each limit that is broken, each on its own: a threshold for one of them may break another one.
        """
        return [self._proposal(name, value) for name, value in self._limits().items() if name in self._broken]

    def history(self, limit: str, most: int = 120) -> list[dict[str, Any]]:
        """Return what was known about a limit after some of the batches, with the labels of today.

        Parameters
        ----------
        limit : str
            Name of the limit.
        most : int, default=120
            Number of entries.

        Returns
        -------
        list of dict
            "label" of the last batch, "rate" since the entry before, "mean", "low" and "high", the rate since the start
            with a confidence sequence, and "evidence".
        """
        test = self._test(limit, self._limits()[limit])
        ends = np.unique(np.linspace(1, len(self._periods), most).astype(int))
        names = [*(period.first for period in self._periods), self._last]
        numbers, found, before = self._numbers(), [], 0
        for end in ends.tolist():
            mean, low, high = self._rates(limit, test, slice(end))
            evidence = _log_evidence(test.gain, test.loss, test.n_gain[:end], test.n_loss[:end], numbers[:end])
            entry = {"label": names[-1 if end == ends[-1] else end - 1], "evidence": math.exp(min(evidence, 700.0))}
            entry |= {"rate": self._rates(limit, test, slice(before, end))[0], "mean": mean, "low": low, "high": high}
            found.append(entry)
            before = end
        return found

    def to_json(self) -> str:
        """Return the state as JSON, without any row.

        Returns
        -------
        str
            The text.
        """
        state = {
            "version": VERSION,
            "parameters": self._parameters(),
            "batches": self.n_batches,
            "last": self._last,
            "begun": self._begun,
            "periods": [[period.number, period.first, *period.counts] for period in self._periods],
            "stretches": [[stretch.number, *map(_packed, stretch.bins)] for stretch in self._stretches],
            "largest": self._largest,
            "broken": self._broken,
        }
        return json.dumps(state, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """Return the monitor whose state is given.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        Monitor
            It goes on where the other one was.
        """
        try:
            state = json.loads(text)
            version = state["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"this is not the state of a monitor: {error!r}") from error
        if version != VERSION:
            raise ValueError(f"the state must have version {VERSION}; got {version!r}. Start a new monitor")
        try:
            monitor = cls(**state["parameters"])
            monitor.n_batches = _whole(state["batches"])
            monitor._last, monitor._begun = str(state["last"]), [int(each) for each in state["begun"]]
            monitor._periods = [_read_period(*period) for period in state["periods"]]
            monitor._stretches = [
                _Stretch(_whole(number), np.array([_unpacked(*each) for each in packed]))
                for number, *packed in state["stretches"]
            ]
            monitor._largest = {name: float(state["largest"][name]) for name in monitor._limits() if monitor.n_batches}
            monitor._broken = {name: str(label) for name, label in state["broken"].items()}
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the state of the monitor is damaged: {error!r}") from error
        return monitor

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*LIMITS, "per", "confidence", "labeled", "audit")}

    def _limits(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None}

    def _check_parameters(self) -> None:
        if not self._limits():
            raise ValueError("a limit is required: max_fpr, min_tpr, min_precision or capacity")
        for name, value in self._limits().items():
            if name != "capacity" or self.per is None:
                _check_share(name, value)
        _check_share("confidence", self.confidence)
        if self.per is not None and (self.per not in PERIODS or not isinstance(self.capacity, int | float)):
            raise ValueError(
                f"per must be one of {', '.join(PERIODS)}, with a capacity; got {self.per!r} and {self.capacity!r}"
            )
        if self.per is not None and not 0.0 < float(self.capacity or 0.0) < RULES.cells:
            raise ValueError(f"capacity must be a number of rows above 0; got {self.capacity!r}")
        if self.labeled not in ("all", "alerts"):
            raise ValueError(f"labeled must be 'all' or 'alerts'; got {self.labeled!r}")
        if self.audit is not None:
            if self.audit != 1.0:
                _check_share("audit", self.audit)
            if self.labeled == "all":
                raise ValueError("audit requires labeled='alerts': if all rows get labels, none has to be sampled")
        if self.min_tpr is not None and self.labeled == "alerts" and self.audit is None:
            raise ValueError(
                "min_tpr requires labels of rows that were not flagged: labeled='all', or audit=... with the "
                "probability with which such a row is sampled for a label"
            )

    def _ended(self, calendar: Mapping[int, int]) -> tuple[int, int]:
        """Return how many hours, days, weeks or months a batch has ended, and the alerts in them."""
        ended = alerts = 0
        for number in sorted(calendar):
            begun = self._begun or [number, 0]
            if number > begun[0]:
                ended, alerts, begun = ended + number - begun[0], alerts + begun[1], [number, 0]
            self._begun = [begun[0], begun[1] + calendar[number]]
        return ended, alerts

    def _merge(self) -> None:
        """Merge the two neighboring stretches that are the shortest for their age."""
        ends = np.append([stretch.number for stretch in self._stretches[1:]], self.n_batches)
        starts = np.array([stretch.number for stretch in self._stretches[:-1]])
        first = int(np.argmin((ends[1:] - starts) / (self.n_batches - starts)))
        self._stretches[first].bins += self._stretches.pop(first + 1).bins

    def _numbers(self) -> Array:
        return np.array([period.number for period in self._periods], dtype=float)

    def _look(self) -> None:
        """Compute the evidence with what is known now."""
        numbers, counts = self._numbers(), self._counts()
        for name, value in self._limits().items():
            test = self._test(name, value, counts)
            evidence = _log_evidence(test.gain, test.loss, test.n_gain, test.n_loss, numbers)
            self._largest[name] = max(evidence, self._largest.get(name, 0.0))
            if self._largest[name] >= -np.log1p(-self.confidence):
                self._broken.setdefault(name, self._last)

    def _counts(self) -> dict[str, Array]:
        table = np.array([period.counts for period in self._periods], dtype=float).reshape(-1, len(COUNTS))
        return dict(zip(COUNTS, table.T, strict=True))

    def _test(self, name: str, value: float, counts: dict[str, Array] | None = None) -> _Test:
        """Return the gains and losses of the bets against a limit in each period."""
        count = self._counts() if counts is None else counts
        wrong, right = count["flagged_negative"], count["flagged_positive"]
        # Alerts that wait for their label count as right, so that the order in which labels arrive does not matter. In
        # the rates they are left out, with as many of the other rows.
        unsettled = count["flagged"] - wrong
        settled = (wrong + right) / np.maximum(count["flagged"], 1.0)
        if name == "max_fpr":
            if self.labeled == "all":
                return _Test(1.0 - value, value, wrong, count["passed_negative"], value)
            seen = np.where(count["flagged"] > 0, np.floor(settled * count["rows"]), count["rows"])
            return _Test(1.0 - value, value, wrong, count["rows"] - wrong, value, seen=seen - wrong)
        if name == "capacity" and self.per is not None:
            share, alerts = value / RULES.cells, count["ended_flagged"]
            return _Test(1.0 - share, share, alerts, RULES.cells * count["ended"] - alerts, share, RULES.cells)
        if name == "capacity":
            return _Test(1.0 - value, value, count["flagged"], count["rows"] - count["flagged"], value)
        if name == "min_precision":
            return _Test(value, 1.0 - value, wrong, unsettled, 1.0 - value, seen=right)
        missed = count["passed_positive"]
        if self.labeled == "all":
            return _Test(value, 1.0 - value, missed, right, 1.0 - value)
        assert self.audit is not None
        return _Test(value / self.audit, 1.0 - value, missed, unsettled, 1.0 - value, seen=right)

    def _verdict(self, name: str, value: float) -> Verdict:
        test = self._test(name, value)
        rate, low, high = self._rates(name, test, slice(None))
        broken, floor = name in self._broken, name.startswith("min")
        least = max(1.0 - RULES.tolerance * (1.0 - value), value / RULES.tolerance)
        known = low >= least if floor else high <= RULES.tolerance * value
        status = "broken" if broken else "holds" if known else "not enough labels"
        since = self._periods[_change(test)].first if broken else None
        n = round(float(test.n_gain.sum() + test.known.sum()) / test.scale)
        return Verdict(
            name, value, status, rate, low, high, n, math.exp(min(self._largest.get(name, 0.0), 700.0)), since
        )

    def _rates(self, name: str, test: _Test, periods: slice) -> tuple[float, float, float]:
        """Return the rate in some periods and a confidence sequence for it."""
        hits, n = int(test.n_gain[periods].sum()), int((test.n_gain + test.known)[periods].sum())
        if not n:
            return np.nan, np.nan, np.nan
        if name == "min_tpr" and self.audit is not None:
            caught = self.audit * (n - hits)
            return caught / (hits + caught), *_audited_interval(self.audit, n - hits, hits, self.confidence)
        low, high = rate_interval(n, hits, self.confidence)
        if name.startswith("min"):
            return 1.0 - hits / n, 1.0 - high, 1.0 - low
        return hits / n * test.scale, low * test.scale, high * test.scale

    def _proposal(self, name: str, value: float) -> Proposal:
        """Return a threshold at which a limit that is broken holds, on the rows since the change."""
        period = self._periods[_change(self._test(name, value))]
        own = [stretch.bins for stretch in self._stretches if stretch.number >= period.number]
        unknown, negative, positive = np.sum(own, axis=0) if own else np.zeros((3, EDGES.size + 1), dtype=np.int64)
        delta, rows = 1.0 - self.confidence, unknown + negative + positive
        if name == "min_precision":
            return self._precise(value, negative, positive)
        share, counts, promise = value, negative, f"at most {100 * value:g} % of the negatives are above it"
        if name == "capacity":
            counts, promise = rows, f"at most {100 * value:g} % of the rows are above it"
            if self.per is not None:
                share, promise = self._share_of_rows(period.number, value)
        elif name == "min_tpr":
            share, counts, promise = 1.0 - value, positive, f"at least {100 * value:g} % of the positives are above it"
            if self.audit is not None:
                # With the probability of the audit, a positive is in the sample, whether it was flagged or not.
                counts = np.append(counts[:PASSED], np.random.default_rng(0).binomial(counts[PASSED:], self.audit))
        elif self.labeled == "alerts":
            # An alert that waits for its label counts as false, and rows that were not flagged as below all others.
            counts = np.append(np.zeros(PASSED, dtype=np.int64), (unknown + negative)[PASSED:])
            counts[0] = rows.sum() - counts.sum()
            promise = f"at most {100 * value:g} % of all rows are negatives above it"
        n, needed = int(counts.sum()), rows_needed(share, delta) if share < 1.0 else 0
        if not needed or n < needed:
            return Proposal(name, None, n, needed, promise)
        k, _ = order_statistic(n, share, delta)
        if name == "min_tpr":
            place = EDGES.size - int(np.searchsorted(np.cumsum(counts[::-1]), k)) - 1
            threshold = min(0.0, EDGES[place]) if place >= 0 else None
        else:
            place = int(np.searchsorted(np.cumsum(counts), k))
            threshold = max(0.0, EDGES[place]) if place < EDGES.size else None
        return Proposal(name, None if threshold is None else float(threshold), n, needed, promise)

    def _share_of_rows(self, start: int, value: float) -> tuple[float, str]:
        """Return what share of the rows a number per hour, day, week or month is since a batch, and the promise."""
        since = np.sum([period.counts for period in self._periods if period.number >= start], axis=0)
        each = since[0] / since[6] if since[6] else np.inf
        text = f"{value:g} of {each:,.0f} rows a {self.per}" if since[6] else f"{value:g} a {self.per}, of unknown rows"
        return min(1.0, value / each), f"on average, at most {text} are above it"

    def _precise(self, value: float, negative: Index, positive: Index) -> Proposal:
        """Return a threshold above the present one for the precision, by the tests of :func:`precise_cuts`."""
        tp, fp = (np.cumsum(counts[:PASSED:-1], dtype=float) for counts in (positive, negative))
        cuts = ScoreCuts(EDGES[: PASSED - 1 : -1], tp, fp)
        delta = 1.0 - self.confidence
        kept = np.flatnonzero(precise_cuts(cuts, value, delta))
        threshold = float(cuts.values[kept[-1]]) if kept.size else None
        promise = f"at least {100 * value:g} % of the rows above it are positive"
        return Proposal("min_precision", threshold, int(tp[-1] + fp[-1]), first_alerts(value, delta)[0], promise)


@dataclass(frozen=True)
class _Test:
    """Bets against a limit: what one wins and loses, and how often, in each period."""

    gain: float
    loss: float
    n_gain: Array
    n_loss: Array
    limit: float
    # Rows that the rate is for: 1, or those of an hour, day, week or month.
    scale: float = 1.0
    # What the rate is computed from in place of `n_loss`, where some rows wait for their labels.
    seen: Array | None = None

    @property
    def known(self) -> Array:
        """Rows without the event that the rate is computed from."""
        return self.n_loss if self.seen is None else self.seen


def starts_period(number: int) -> bool:
    """Return whether a new period begins with a batch: its number has zeros only after the leading digits."""
    return number % (1 << max(number.bit_length() - RULES.digits, 0)) == 0


def _change(test: _Test) -> int:
    """Return the period in which the rate most probably rose above the limit."""
    hits, n = (np.cumsum(counts[::-1])[::-1] for counts in (test.n_gain, test.n_gain + test.n_loss))
    zero = test.loss / (test.gain + test.loss)
    rate = np.maximum(hits / np.maximum(n, 1.0), zero)
    likelihood = xlogy(hits, rate / zero) + xlogy(n - hits, (1.0 - rate) / (1.0 - zero))
    return int(np.argmax(likelihood))


def _check_share(name: str, value: Any) -> None:
    check_range(name, value, 0.0, 1.0, "above 0 and below 1", open_ends=True)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"a count must be an integer of at least 0; got {value!r}")
    return value


def _read_period(number: Any, first: Any, *counts: Any) -> _Period:
    if len(counts) != len(COUNTS):
        raise ValueError(f"a period must have {len(COUNTS)} counts; got {len(counts)}")
    return _Period(_whole(number), str(first), [_whole(count) for count in counts])


def _packed(counts: Index) -> list[int]:
    """Return counts without the zeros between them, of which there are minus the number at their place."""
    own = np.flatnonzero(counts)
    found: list[int] = []
    for gap, count in zip(np.diff(own, prepend=-1) - 1, counts[own], strict=True):
        found += [-int(gap), int(count)] if gap else [int(count)]
    return found


def _unpacked(*packed: int) -> Index:
    result, place = np.zeros(EDGES.size + 1, dtype=np.int64), 0
    for count in packed:
        if count < 0:
            place -= count
            continue
        if place > EDGES.size:
            raise ValueError(f"a histogram must have {EDGES.size + 1} counts; got more")
        result[place] = _whole(count)
        place += 1
    return result


def audit_size(
    min_tpr: float, tpr: float, n_positives: int, *, power: float = 0.8, confidence: float = 0.95, after: int = 0
) -> float:
    """Return the share of the rows that are not flagged to label at random, to notice a lower true-positive rate.

    The power is that of one look after the positives have come, on 4,000 samples with a fixed seed; looks in between
    can only add to it.

    Parameters
    ----------
    min_tpr : float
        Floor on the true-positive rate.
    tpr : float
        Rate below the floor that is to be noticed.
    n_positives : int
        Number of positive rows, flagged or not, within which it is to be noticed.
    power : float, default=0.8
        Probability of noticing it.
    confidence : float, default=0.95
        Confidence of the monitor.
    after : int, default=0
        Number of batches before the rate falls.

    Returns
    -------
    float
        Probability with which each row that is not flagged has to be sampled, the ``audit`` of :class:`Monitor`.

    Raises
    ------
    ValueError
        If even the labels of all rows would be too few.

    Examples
    --------
    >>> from rocmax.monitor import audit_size
    >>> round(audit_size(0.9, 0.8, n_positives=1000), 2)
    0.16
    """
    for name, share in (("min_tpr", min_tpr), ("tpr", tpr), ("power", power), ("confidence", confidence)):
        _check_share(name, share)
    if not tpr < min_tpr:
        raise ValueError(f"tpr must be below the floor of {min_tpr:g}; got {tpr:g}")
    numbers = np.arange(after + 1, dtype=float)
    goal = -np.log1p(-confidence) - np.log(start_weights(numbers)[-1])
    rng = np.random.default_rng(0)
    caught, luck = rng.binomial(n_positives, tpr, 4000), rng.random(4000)

    def noticed(audit: float) -> float:
        seen = binom.ppf(luck, n_positives - caught, audit)
        won, lost = bets(min_tpr / audit, 1.0 - min_tpr)
        wealth = logsumexp(np.outer(seen, won) + np.outer(caught, lost), axis=1) - np.log(RULES.n_bets)
        return float(np.mean(wealth >= goal))

    if noticed(1.0) < power:
        raise ValueError(
            f"a true-positive rate of {tpr:g} cannot be noticed with probability {power:g} within {n_positives:,} "
            f"positives, even if all rows get labels; got a probability of {noticed(1.0):.2f}. Use more positives or a "
            "lower rate"
        )
    grid = np.geomspace(1e-4, 1.0, 100)
    return float(grid[bisect_left(grid, True, key=lambda audit: noticed(float(audit)) >= power)])


publish("rocmax.monitor", globals(), ("Monitor", "Proposal", "Verdict", "audit_size", "rate_interval"))
