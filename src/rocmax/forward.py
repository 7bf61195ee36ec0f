"""Splits forward in time: training rows come before the rows that they are judged on."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import _num_samples

from rocmax._docstrings import publish
from rocmax._support import Bools, Index

__all__ = ["ForwardSplit"]

UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def check_gap(gap: Any) -> Any:
    """Return a gap as a number or as a NumPy time span; raise ValueError for anything else, and for less than zero."""
    if gap is None:
        return 0
    if isinstance(gap, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h|d|w)?", gap.strip())
        if found is None:
            raise ValueError(
                f"gap must be a number and a unit, such as 30d (s, min, h, d or w), or a number; got {gap!r}"
            )
        try:
            gap = datetime.timedelta(**{UNITS[found[2]]: float(found[1])}) if found[2] else float(found[1])
        except OverflowError:
            raise ValueError(f"gap must be a time span of at most a million years; got {gap!r}") from None
    if isinstance(gap, (datetime.timedelta, np.timedelta64)):
        gap = np.timedelta64(gap).astype("timedelta64[us]")
    elif isinstance(gap, bool) or not isinstance(gap, Real) or not math.isfinite(gap):
        raise ValueError(f"gap must be a number, a time span, or text such as 30d; got {gap!r}")
    if not gap >= type(gap)(0):  # also for a time span that is not known
        raise ValueError(f"gap must be at least 0; got {gap}")
    return gap


def gap_value(gap: Any) -> float | str:
    """Return a gap as a number, or as text with the unit s."""
    found = check_gap(gap)
    seconds = found / np.timedelta64(1, "s") if isinstance(found, np.timedelta64) else None
    return float(found) if seconds is None else f"{np.format_float_positional(seconds, trim='-')}s"


def check_times(times: Any, name: str = "time") -> NDArray[Any]:
    """Return times as numbers or dates; raise an error for other values, and for missing ones."""
    found = np.asarray(times)
    if found.dtype == object:  # dates, perhaps with a time zone
        zoned = [getattr(value, "tzinfo", None) is not None for value in found]
        try:
            found = np.array(
                [
                    value.astimezone(datetime.UTC).replace(tzinfo=None) if has else value
                    for value, has in zip(found, zoned, strict=True)
                ],
                dtype="datetime64[us]",
            )
        except (TypeError, ValueError):
            found = found.astype(str)
    if found.ndim != 1 or found.dtype.kind not in "iufM":
        got = f"{found.ravel()[0]!s}" if found.size else "no values"
        raise ValueError(
            f"{name} must have one number or date for each row (text becomes dates with pandas.to_datetime); got {got}"
        )
    found = found.astype("datetime64[us]") if found.dtype.kind == "M" else found.astype(np.float64)
    bad = np.flatnonzero(np.isnat(found) if found.dtype.kind == "M" else ~np.isfinite(found))
    if bad.size:
        raise ValueError(f"{name} must be known for each row; got {found[bad[0]]} in row {bad[0]}")
    return found


def time_text(time: Any) -> str:
    """Return a time as text: a number, or a date without the digits that are zero."""
    if not isinstance(time, np.datetime64):
        return f"{time:.15g}"
    return next(str(short) for unit in ("D", "s", "us") if (short := time.astype(f"M8[{unit}]")) == time)


@dataclass(frozen=True)
class Dependence:
    """What splits respect: groups, which are never split, and times, so that training rows come before the others.

    ``gap`` is the time that passes until the label of a row is known, in the unit of the times.
    """

    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    gap: Any = 0

    def __post_init__(self) -> None:
        # NumPy counts time spans as integers.
        is_span = isinstance(self.gap, np.timedelta64)
        if self.times is not None and self.gap and (self.times.dtype.kind == "M") != is_span:
            needed = "a time span, such as 30d, as the times are dates"
            needed = "a number, as the times are numbers" if is_span else needed
            got = gap_value(self.gap) if is_span else f"{self.gap:g}"
            raise ValueError(f"gap must be {needed}; got {got}")

    @classmethod
    def of(cls, groups: Any) -> Dependence:
        """Return groups, which may be None, as an object of this class."""
        return groups if isinstance(groups, cls) else cls(groups)

    @property
    def shape(self) -> tuple[int]:
        """Number of rows, as that of an array."""
        known = self.groups if self.times is None else self.times
        return (0 if known is None else known.size,)

    def __getitem__(self, rows: Any) -> Dependence:
        """Return the groups and times of some rows."""
        parts = (None if values is None else values[rows] for values in (self.groups, self.times))
        return replace(self, **dict(zip(("groups", "times"), parts, strict=True)))

    def blocks(self, shares: Sequence[float]) -> Index:
        """Return the number of the block of each row: blocks follow each other in time, with such shares of the rows.

        Equal times are in one block, so that the shares are not met exactly.
        """
        assert self.times is not None
        distinct, place, counts = np.unique(self.times, return_inverse=True, return_counts=True)
        if distinct.size < len(shares):
            raise ValueError(
                f"a split into {len(shares)} periods requires at least as many different times; got {distinct.size}"
            )
        before = np.concatenate([[0], np.cumsum(counts)]) / self.times.size
        starts = [0]
        for number, share in enumerate(np.cumsum(shares)[:-1], 1):
            nearest = int(np.abs(before - share).argmin())
            starts.append(min(max(nearest, starts[-1] + 1), distinct.size - (len(shares) - number)))
        found: Index = np.searchsorted(starts[1:], place, side="right")
        return found

    def known_before(self, candidates: Bools, later: Bools) -> Index:
        """Return the candidates whose labels are known when the later rows begin, and whose groups are not in these."""
        assert self.times is not None
        start = self.times[later].min()
        kept = candidates & (self.times < start) & (self.times <= start - self.gap)
        if self.groups is not None:
            kept &= ~np.isin(self.groups, self.groups[later])
        return np.flatnonzero(kept)

    def latest(self, candidates: Bools, size: int) -> Bools:
        """Return about as many of the latest candidates as given, without a part of rows with equal times."""
        assert self.times is not None
        distinct, counts = np.unique(self.times[candidates], return_counts=True)
        if distinct.size < 2:
            return np.zeros_like(candidates)
        place = int(np.abs(np.cumsum(counts[::-1]) - size).argmin())
        result: Bools = candidates & (self.times >= distinct[max(distinct.size - 1 - place, 1)])
        return result

    def periods(self, sizes: Sequence[int]) -> list[Index]:
        """Return the rows of consecutive periods: training rows, then about as many rows as the given sizes.

        The rows of each period are known when the next one begins, and have no group of a later period.
        """
        rest, later, found = np.ones(self.shape[0], dtype=bool), np.zeros(self.shape[0], dtype=bool), []
        for size in reversed(sizes):
            part = self.latest(rest, size)
            found.append(np.flatnonzero(part))
            later |= part
            kept = np.zeros_like(rest)
            if part.any():
                kept[self.known_before(rest & ~part, later)] = True
            rest = kept
        return [np.flatnonzero(rest), *found[::-1]]

    def forward(self, n_splits: int, test_size: float | None = None) -> list[tuple[Index, Index]]:
        """Return splits with expanding training rows; the test rows of each follow those of the split before.

        A long gap may leave no training row in the first splits.
        """
        share = 1 / (n_splits + 1) if test_size is None else test_size
        block = self.blocks([1 - n_splits * share, *[share] * n_splits])
        tests = [block == number for number in range(1, n_splits + 1)]
        return [(self.known_before(block < number, test), np.flatnonzero(test)) for number, test in enumerate(tests, 1)]


class ForwardSplit(BaseCrossValidator):  # type: ignore[misc]  # scikit-learn has no types
    """Splits forward in time, with expanding training rows.

    The rows are ordered by time and divided into ``n_splits + 1`` periods. Each split tests on one period, from the
    second on, and trains on what was known before it: rows of earlier periods whose time is at least ``gap`` before the
    first test row. Rows with equal times are in one period.

    With groups, the training rows of a split have no row of a group that is among its test rows.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits.
    gap : float, timedelta or str, default=None
        Time until the label of a row is known. A number if the times are numbers; otherwise a time span or text such as
        "30d", with the unit s, min, h, d or w.
    time : str or array-like of shape (n_samples,), default=None
        Time of each row, a number or a date: a column of the data frame that is split, or the values. None takes the
        order of the rows as their times.
    test_size : float, default=None
        Fraction of the rows in each test period. None divides the rows into periods of about equal size.

    See Also
    --------
    rocmax.tables.fit_table : Fits forward in time with ``Columns(time=...)``.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax import ForwardSplit
    >>> day = np.array([3, 1, 2, 4, 4, 3])
    >>> for train, test in ForwardSplit(2, time=day, gap=2).split(np.zeros((6, 1))):
    ...     print(train, test)
    [1] [0 5]
    [1 2] [3 4]

    Labels come after two days here: on day 3, those of day 1 are known, and on day 4 those of days 1 and 2.

    >>> from sklearn.datasets import make_classification
    >>> from rocmax import PartialAUCClassifierCV
    >>> X, y = make_classification(n_samples=600, random_state=0)
    >>> PartialAUCClassifierCV(0.0, 0.1, cv=ForwardSplit(3)).fit(X, y).scores_.shape[0]
    3
    """

    __metadata_request__split = {"groups": True}  # noqa: RUF012  # as scikit-learn reads it

    def __init__(self, n_splits: int = 5, *, gap: Any = None, time: Any = None, test_size: float | None = None) -> None:
        self.n_splits = n_splits
        self.gap = gap
        self.time = time
        self.test_size = test_size

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, default=None
            Ignored.

        Returns
        -------
        int
            The number of splits.
        """
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Index, Index]]:
        """Yield the training rows and the test rows of each split, the earliest test rows first.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to split; a data frame if ``time`` is the name of a column.
        y : object, default=None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Group of each row.

        Yields
        ------
        train : ndarray of int
            Places of the training rows.
        test : ndarray of int
            Places of the test rows.
        """
        n_splits: Any = self.n_splits
        share: Any = self.test_size
        if not isinstance(n_splits, int | np.integer) or isinstance(n_splits, bool) or n_splits < 1:
            raise ValueError(f"n_splits must be an integer of at least 1; got {n_splits!r}")
        if share is not None and not (isinstance(share, float | np.floating) and 0 < share * n_splits < 1):
            raise ValueError(
                f"test_size must be above 0, and below 1 after {n_splits} splits, which need training rows; "
                f"got {share!r}"
            )
        n_rows = _num_samples(X)
        times = self._times(X)
        depends = Dependence(None if groups is None else np.asarray(groups), times, check_gap(self.gap))
        for name, values in (("time", depends.times), ("groups", depends.groups)):
            if values is not None and values.shape[0] != n_rows:
                raise ValueError(f"{name} must have a value for each of the {n_rows} rows; got {values.shape[0]}")
        for number, (train, test) in enumerate(depends.forward(int(n_splits), None if share is None else float(share))):
            if not train.size:
                start = time_text(times[test].min())
                raise ValueError(
                    f"each split must have training rows; got none in split {number}, before {start}"
                    f" with a gap of {self.gap or 0}{' and groups' if groups is not None else ''}"
                )
            yield train, test

    def _times(self, X: Any) -> NDArray[Any]:
        if self.time is None:
            return np.arange(_num_samples(X), dtype=np.float64)
        if not isinstance(self.time, str):
            return check_times(self.time)
        if not hasattr(X, "columns"):
            raise ValueError(
                f"time must be an array with a value for each row, as X has no columns; got the name {self.time!r}"
            )
        if self.time not in X.columns:
            raise ValueError(f"time must be a column of X; got {self.time!r}")
        return check_times(X[self.time], f"column {self.time!r}")


publish("rocmax", globals(), __all__)
