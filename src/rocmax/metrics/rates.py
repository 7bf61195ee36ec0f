"""Rates at a threshold: intervals, rates over time, and a test whether later rows resemble earlier ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import binomtest, hypergeom, t
from sklearn.utils import check_random_state

from rocmax._support import Bools, check_rate


@dataclass(frozen=True)
class PeriodRules:
    """Numbers of the statistics over time."""

    # Periods of a chart: the shortest calendar unit that gives no more is taken.
    most: int = 12
    # Periods of the calibration rows, and of the test rows, whose values predict that of a later period: few periods
    # have more rows each. benchmarks/results/forward.md has the coverage.
    judged: int = 3
    # Permutations of groups: the standard error of a p-value of 0.05 is then 0.005.
    permutations: int = 1999


RULES = PeriodRules()
# Calendar units of periods, the shortest first.
UNITS = ("D", "W", "M", "3M", "Y")


# Intervals of rates.


def wilson(count: float, total: float) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of a proportion."""
    z = float(ndtri(0.975))
    share, scale = count / total, 1 + z**2 / total
    center = (share + z**2 / (2 * total)) / scale
    half = z / scale * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    return max(0.0, float(center - half)), min(1.0, float(center + half))


def worth_rows(hits: Bools, groups: NDArray[Any]) -> float:
    """Return the number of independent rows whose share of hits varies as much as that of these rows.

    It is the number of rows divided by the ratio of the variance of the share over groups and over rows, the design
    effect, and the number of groups if no or all rows are hits, which say nothing of that variance.
    """
    number = np.unique(groups, return_inverse=True)[1]
    n_groups, share = int(number.max()) + 1, float(hits.mean())
    if share in (0.0, 1.0) or n_groups < 2:
        return float(n_groups)
    deviations = np.bincount(number, hits - share)
    by_groups = n_groups / (n_groups - 1) * float(deviations @ deviations)
    return hits.size / max(1.0, by_groups / (hits.size * share * (1 - share)))


def rate_interval(hits: Bools, groups: NDArray[Any] | None = None) -> tuple[float, float, float]:
    """Return the 95 % confidence interval of a rate and the number of independent rows behind it.

    It is exact (Clopper and Pearson) if the rows are independent; with groups, it is approximate.
    """
    if groups is not None:
        size = worth_rows(hits, groups)
        return *wilson(float(hits.mean()) * size, size), size
    interval = binomtest(int(hits.sum()), hits.size).proportion_ci(0.95, method="exact")
    return float(interval.low), float(interval.high), float(hits.size)


# Rates over time.


@dataclass(frozen=True)
class PeriodRates:
    """Rates of the rows of one period at a threshold.

    ``fpr`` and ``tpr`` have the "rate", the ends "low" and "high" of its 95 % confidence interval, and the number "n"
    of rows of the class; they are None without such rows.
    """

    name: str
    rows: int
    flagged: int
    fpr: dict[str, float] | None
    tpr: dict[str, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Return the rates as plain values."""
        return asdict(self)


def rates_by_period(
    times: NDArray[Any], flagged: Bools, positive: Bools, groups: NDArray[Any] | None = None
) -> list[PeriodRates]:
    """Return the rates in each period: days, weeks, months, quarters or years; parts of equal size for numbers."""
    names, code = periods_of(times)
    found = []
    for number, name in enumerate(names):
        rows = code == number
        rates: list[dict[str, float] | None] = []
        for side in (rows & ~positive, rows & positive):
            hits = flagged[side]
            if not hits.size:
                rates.append(None)
                continue
            low, high, _ = rate_interval(hits, None if groups is None else groups[side])
            rates.append({"rate": float(hits.mean()), "low": low, "high": high, "n": int(hits.size)})
        found.append(PeriodRates(name, int(rows.sum()), int(flagged[rows].sum()), *rates))
    return found


def periods_of(times: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the periods with rows, in order, and the number of the period of each row."""
    for unit in UNITS if times.dtype.kind == "M" else ():
        starts, code = np.unique(calendar(times, unit), return_inverse=True)
        if starts.size <= RULES.most:
            return [_period_name(start, unit) for start in starts], code
    distinct, place, counts = np.unique(times, return_inverse=True, return_counts=True)
    # Equal times are in one period, that of the middle of their ranks.
    middle = (np.cumsum(counts) - counts / 2) / times.size
    _, first, code = np.unique((RULES.most * middle).astype(int), return_index=True, return_inverse=True)
    names = [f"from {str(distinct[i])[:10] if times.dtype.kind == 'M' else format(distinct[i], 'g')}" for i in first]
    return names, code[place]


def calendar(times: NDArray[Any], unit: str) -> NDArray[Any]:
    """Return the period of the calendar of each time; weeks begin on Mondays, and so are three days late in NumPy."""
    return (times + np.timedelta64(3 if unit == "W" else 0, "D")).astype(f"datetime64[{unit}]")


def _period_name(start: Any, unit: str) -> str:
    if unit == "3M":
        year, month = str(start).split("-")
        return f"{year} Q{(int(month) + 2) // 3}"
    return str(start.astype("datetime64[D]") - 3 if unit == "W" else start)


def prediction_interval(values: ArrayLike) -> tuple[float, float]:
    """Return the interval that contains the value of one more period with probability 0.95.

    It is that of Student's t: the values of periods are independent draws of one normal distribution.
    """
    found = np.asarray(values, dtype=np.float64)
    half = float(t.ppf(0.975, found.size - 1) * found.std(ddof=1) * np.sqrt(1 + 1 / found.size))
    return float(found.mean() - half), float(found.mean() + half)


def exchangeability_test(
    earlier: ArrayLike,
    later: ArrayLike,
    rate: float,
    *,
    groups: tuple[NDArray[Any], NDArray[Any]] | None = None,
    random_state: Any = 0,
) -> float:
    r"""Test whether the highest scores of two samples are spread over them as chance would spread them.

    The rows whose scores are among the highest ``rate`` of both samples together are counted in the later one. If the
    rows are exchangeable, this number has a hypergeometric distribution, whatever the scores are and however they are
    tied, so the p-value is exact; it is twice that of the smaller tail. With groups, whole groups are exchangeable, and
    the p-value comes from random permutations of the groups.

    A limit on a false-positive rate holds on later rows if the negatives are exchangeable with those that the threshold
    was chosen on.

    Parameters
    ----------
    earlier, later : array-like of shape (n_samples,)
        Scores of one class, those of the rows that the threshold was chosen on and of later rows.
    rate : float
        Share of the scores that count as high, such as the limit on the false-positive rate.
    groups : tuple of two arrays, default=None
        Group of each row of both samples. Rows of a group that is in both count as two groups.
    random_state : int, RandomState instance or None, default=0
        Seed of the permutations.

    Returns
    -------
    float
        The p-value.

    References
    ----------
    R. A. Fisher (1935). The Design of Experiments, section 2. The exact test of a fourfold table with fixed margins.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax.metrics import exchangeability_test
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=1000), rng.normal(size=500)
    >>> round(exchangeability_test(before, after, 0.05), 2)
    0.17
    >>> exchangeability_test(before, after + 0.5, 0.05) < 0.001
    True
    """
    check_rate("rate", rate)
    parts = [np.asarray(part, dtype=np.float64) for part in (earlier, later)]
    if not all(part.ndim == 1 and part.size for part in parts):
        raise ValueError(f"earlier and later must have scores; got shapes {parts[0].shape} and {parts[1].shape}")
    n, scores = len(parts[1]), np.concatenate(parts)
    levels, counts = np.unique(-scores, return_counts=True)
    above = np.cumsum(counts)
    # All rows with one of the highest scores: as many as the rate allows, but at least those with the highest one.
    cut = -levels[max(0, int(np.searchsorted(above, np.ceil(rate * scores.size), side="right")) - 1)]
    high = scores >= cut
    if groups is None:
        spread = hypergeom(scores.size, int(high.sum()), n)
        count = int(high[-n:].sum())
        return float(min(1.0, 2 * min(spread.cdf(count), spread.sf(count - 1))))
    # Groups of both samples, each with its rows and its high scores.
    code = [np.unique(part, return_inverse=True)[1] for part in groups]
    n_groups = [int(part.max()) + 1 for part in code]
    number = np.concatenate([code[0], code[1] + n_groups[0]])
    rows, hits = np.bincount(number), np.bincount(number, high)
    excess = hits - high.mean() * rows
    found, rng = excess[n_groups[0] :].sum(), check_random_state(random_state)
    drawn = np.array([rng.permutation(excess)[: n_groups[1]].sum() for _ in range(RULES.permutations)])
    # Rounding errors of sums in another order do not count.
    slack = 1e-9 * np.abs(excess).sum()
    tails = [1 + np.count_nonzero(sign * drawn >= sign * found - slack) for sign in (1, -1)]
    return float(min(1.0, 2 * min(tails) / (1 + RULES.permutations)))
