r"""Watch the limits of a fitted model while rows and labels arrive: sequential tests and a small state.

A rate of one in a hundred cannot be read off a batch, and a test that is repeated after every batch raises a false
alarm sooner or later. The tests here hold at all times together: the probability that a limit which holds is ever
called broken is at most one minus the confidence, however often one looks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, logsumexp, xlogy

from rocmax._docstrings import publish
from rocmax._support import Array

__all__ = ["Monitor", "Verdict", "rate_interval"]


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
    # A limit is said to hold if, with the stated confidence, the rate is below this multiple of it.
    tolerance: float = 2.0


RULES = MonitorRules()
# Version of the state; another one is refused.
VERSION = 1


# What is counted in each period, by the knowledge about a row.
COUNTS = ("rows", "flagged", "flagged_positive", "flagged_negative", "passed_positive", "passed_negative")


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
        return float(top - xlogy(hits, p) - xlogy(n - hits, 1.0 - p))

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
    started = logsumexp(since - np.log(RULES.n_bets), axis=1, b=weights[:, None])
    return float(np.logaddexp(logsumexp(started), np.log1p(-min(weights.sum(), 1.0 - 1e-15))))


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
        "holds" means that there is no such evidence, and that the rate of errors is below twice the limit, with the
        confidence.
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


@dataclass
class _Period:
    """Counts of consecutive batches."""

    number: int
    first: str
    last: str
    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))


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
    max_alerts : float, default=None
        Limit on the share of flagged rows.
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
        max_alerts: float | None = None,
        confidence: float = 0.95,
        labeled: str = "all",
        audit: float | None = None,
    ) -> None:
        self.max_fpr, self.min_tpr, self.min_precision, self.max_alerts = max_fpr, min_tpr, min_precision, max_alerts
        self.confidence, self.labeled, self.audit = confidence, labeled, audit
        self._check_parameters()
        self.n_batches = 0
        self._periods: list[_Period] = []
        # The largest evidence of each limit, and the label of the batch with which it was called broken.
        self._largest: dict[str, float] = {}
        self._broken: dict[str, str] = {}

    def update(self, scores: Any, y: Any = None, *, label: str | None = None) -> int:
        """Count a batch of rows.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Scores minus the threshold: rows above 0 are flagged.
        y : array-like of shape (n_samples,), default=None
            1 for positive, 0 for negative rows, NaN where the label is not known yet. None means that none is known.
        label : str, default=None
            Name of the batch in verdicts, such as a date. None takes its number.

        Returns
        -------
        int
            The number of the batch, for labels that come later.
        """
        number = self.n_batches
        counts = self._count(scores, y)
        name = str(number) if label is None else str(label)
        if not self._periods or starts_period(number):
            self._periods.append(_Period(number, name, name))
        period = self._periods[-1]
        period.last = name
        period.counts = [a + b for a, b in zip(period.counts, counts, strict=True)]
        self.n_batches += 1
        self._look(name)
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
        counts = self._count(scores, y)
        if sum(counts[2:]) != counts[0]:
            raise ValueError(f"y must be 0 or 1 for each row; got {counts[0] - sum(counts[2:])} rows without a label")
        period = next(period for period in reversed(self._periods) if period.number <= batch)
        added = [0, 0, *counts[2:]]
        total = dict(zip(COUNTS, (a + b for a, b in zip(period.counts, added, strict=True)), strict=True))
        known = {True: total["flagged_positive"] + total["flagged_negative"]}
        known[False] = total["passed_positive"] + total["passed_negative"]
        if known[True] > total["flagged"] or known[False] > total["rows"] - total["flagged"]:
            raise ValueError(
                f"batch {batch} has fewer rows than labels: the rows were not in it, or their labels were counted"
            )
        period.counts = [total[name] for name in COUNTS]
        self._look(self._periods[-1].last)

    def verdicts(self) -> list[Verdict]:
        """Return what is known about each limit.

        Returns
        -------
        list of Verdict
            One for each limit that was given.
        """
        return [self._verdict(name, value) for name, value in self._limits().items()]

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
            "periods": [asdict(period) for period in self._periods],
            "largest": self._largest,
            "broken": self._broken,
        }
        return json.dumps(state, allow_nan=False)

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
            monitor._periods = [_read_period(period) for period in state["periods"]]
            monitor._largest = {name: float(state["largest"][name]) for name in monitor._limits() if monitor.n_batches}
            monitor._broken = {name: str(label) for name, label in state["broken"].items()}
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the state of the monitor is damaged: {error!r}") from error
        return monitor

    def _parameters(self) -> dict[str, Any]:
        names = ("max_fpr", "min_tpr", "min_precision", "max_alerts", "confidence", "labeled", "audit")
        return {name: getattr(self, name) for name in names}

    def _limits(self) -> dict[str, float]:
        names = ("max_fpr", "min_tpr", "min_precision", "max_alerts")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def _check_parameters(self) -> None:
        if not self._limits():
            raise ValueError("a limit is required: max_fpr, min_tpr, min_precision or max_alerts")
        for name, value in self._limits().items():
            _check_share(name, value)
        _check_share("confidence", self.confidence)
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

    def _count(self, scores: Any, y: Any) -> list[int]:
        """Return the counts of rows; raise ValueError if scores or labels are not what they have to be."""
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
        flagged = scores > 0
        cells = [flagged & (labels == 1), flagged & (labels == 0), ~flagged & (labels == 1), ~flagged & (labels == 0)]
        return [scores.size, int(flagged.sum()), *(int(cell.sum()) for cell in cells)]

    def _look(self, label: str) -> None:
        """Compute the evidence with what is known now."""
        for name, value in self._limits().items():
            test = self._test(name, value)
            numbers = np.array([period.number for period in self._periods], dtype=float)
            evidence = _log_evidence(test.gain, test.loss, test.n_gain, test.n_loss, numbers)
            self._largest[name] = max(evidence, self._largest.get(name, 0.0))
            if self._largest[name] >= -np.log1p(-self.confidence):
                self._broken.setdefault(name, label)

    def _test(self, name: str, value: float) -> _Test:
        """Return the gains and losses of the bets against a limit in each period."""
        table = np.array([period.counts for period in self._periods], dtype=float).reshape(-1, len(COUNTS))
        count = dict(zip(COUNTS, table.T, strict=True))
        wrong, right = count["flagged_negative"], count["flagged_positive"]
        # Alerts that wait for their label count as right, so that the order in which labels arrive does not matter.
        unsettled = count["flagged"] - wrong
        if name == "max_fpr":
            others = count["passed_negative"] if self.labeled == "all" else count["rows"] - wrong
            return _Test(1.0 - value, value, wrong, others, value)
        if name == "max_alerts":
            return _Test(1.0 - value, value, count["flagged"], count["rows"] - count["flagged"], value)
        if name == "min_precision":
            return _Test(value, 1.0 - value, wrong, unsettled, 1.0 - value)
        missed = count["passed_positive"]
        if self.labeled == "all":
            return _Test(value, 1.0 - value, missed, right, 1.0 - value)
        assert self.audit is not None
        return _Test(value / self.audit, 1.0 - value, missed, unsettled, 1.0 - value)

    def _verdict(self, name: str, value: float) -> Verdict:
        test = self._test(name, value)
        hits, n = int(test.n_gain.sum()), int(test.n_gain.sum() + test.n_loss.sum())
        rate, low, high = self._rate(name, hits, n)
        broken = name in self._broken
        known = high <= RULES.tolerance * test.limit
        status = "broken" if broken else "holds" if known else "not enough labels"
        if name.startswith("min"):
            rate, low, high = 1.0 - rate, 1.0 - high, 1.0 - low
        since = self._periods[_change(test)].first if broken else None
        return Verdict(name, value, status, rate, low, high, n, float(np.exp(self._largest.get(name, 0.0))), since)

    def _rate(self, name: str, hits: int, n: int) -> tuple[float, float, float]:
        """Return the rate of errors and a confidence sequence for it."""
        if not n:
            return np.nan, np.nan, np.nan
        if name == "min_tpr" and self.audit is not None:
            low, high = _audited_interval(self.audit, n - hits, hits, self.confidence)
            return hits / (hits + self.audit * (n - hits)), 1.0 - high, 1.0 - low
        return hits / n, *rate_interval(n, hits, self.confidence)


@dataclass(frozen=True)
class _Test:
    """Bets against a limit: what one wins and loses, and how often, in each period."""

    gain: float
    loss: float
    n_gain: Array
    n_loss: Array
    limit: float


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
    """Raise ValueError if a parameter is not a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1; got {value!r}")


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"a count must be an integer of at least 0; got {value!r}")
    return value


def _read_period(state: Mapping[str, Any]) -> _Period:
    counts = [_whole(count) for count in state["counts"]]
    if len(counts) != len(COUNTS):
        raise ValueError(f"a period must have {len(COUNTS)} counts; got {len(counts)}")
    return _Period(_whole(state["number"]), str(state["first"]), str(state["last"]), counts)


publish("rocmax.monitor", globals(), ("Monitor", "Verdict", "rate_interval"))
