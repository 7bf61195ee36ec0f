"""Splits of rows into folds and held-out parts, and comparisons of held-out scores over the folds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv, train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object

from rocmax._support import Array, Bools
from rocmax._validation import CHECKING, TrainingSet, check_groups
from rocmax.forward import Dependence

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class FoldRules:
    """Numbers of rows that decide on the default folds: more rows need fewer, as held-out scores have smaller errors.

    Attributes
    ----------
    twice : int
        Up to this number of rows, the folds of a table are drawn twice.
    five : int
        Up to this number of rows there are five folds, above it three, which take half the time. All models of a table
        have the same folds, so that families are compared on the same rows.
    all_folds : int
        Up to this number of rows, searches that fit hundreds of trees to all rows use each fold, above it one of four:
        more than 7,500 held-out rows rank their candidates.
    """

    twice: int = 5_000
    five: int = 20_000
    all_folds: int = 30_000

    def n_folds(self, n_rows: int) -> int:
        """Return the number of folds."""
        return 5 if n_rows <= self.five else 3


FOLD_RULES = FoldRules()


# Groups of rows, with or without their times.
Groups = NDArray[Any] | Dependence | None


def most_folds(positive: Bools, groups: Groups = None) -> int:
    """Return the largest possible number of folds: that of the rows of the rarer class, or of its groups or times."""
    depends = Dependence.of(groups)
    values = depends.groups if depends.times is None else depends.times
    if values is None:
        return int(min(positive.sum(), (~positive).sum()))
    return min(np.unique(values[positive == side]).size for side in (True, False))


def folds(positive: Bools, n_folds: int, random_state: Any, groups: Groups = None, n_repeats: int = 1) -> list[Split]:
    """Return shuffled folds, stratified by class, in which no group is split; with times, folds forward in time.

    There are fewer if a class has fewer rows or groups. With groups or times, a fold may lack a class; see
    `check_splits`.
    """
    most, depends = most_folds(positive, groups), Dependence.of(groups)
    groups = depends.groups
    if depends.times is not None and most >= 2:
        return depends.forward(min(n_folds, most - 1))
    if most < 2:
        needed = "have at least two rows" if groups is None else "belong to at least two groups"
        raise ValueError(f"each class must {needed} for cross-validation; got {most} of one class")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(min(n_folds, most), shuffle=True, random_state=random_state)
    with CHECKING:
        return [split for _ in range(n_repeats) for split in splitter.split(positive, positive, groups)]


def has_times(groups: Groups) -> bool:
    """Return whether the times of the rows are known."""
    return Dependence.of(groups).times is not None


def search_folds(positive: Bools, random_state: Any, groups: Groups = None) -> list[Split]:
    """Return the default folds of a search with all rows in each fit: five, three, or one of four; see `FoldRules`."""
    if positive.size > FOLD_RULES.all_folds:
        # Of folds forward in time, the last one has the most training rows.
        return folds(positive, 4, random_state, groups)[slice(-1, None) if has_times(groups) else slice(1)]
    return folds(positive, FOLD_RULES.n_folds(positive.size), random_state, groups)


def some_rows(values: Any, rows: Any) -> Any:
    """Return some rows, without a copy if they are all; None for None."""
    if values is None or rows.size == values.shape[0]:
        return values
    return values[rows] if isinstance(values, Dependence) else _safe_indexing(values, rows)


def held_out_split(labels: NDArray[Any], share: float, random_state: Any, groups: NDArray[Any] | None = None) -> Split:
    """Return training and held-out rows; no group is split, and both parts have about the same share of each class.

    With groups, the held-out part is some of the folds of a stratified split, as many as give the share.
    """
    if groups is None:
        rows = np.arange(labels.size)
        with CHECKING:
            train, test = train_test_split(rows, test_size=share, stratify=labels, random_state=random_state)
        return train, test
    classes, counts = np.unique(labels, return_counts=True)
    # Twenty folds meet a share to a twentieth.
    most = min(20, np.unique(groups).size, *counts.tolist())
    if most < 2:
        raise ValueError(f"a split by groups requires at least two groups and two rows of each class; got {most}")
    ratio = min(max(Fraction(share).limit_denominator(most), Fraction(1, most)), Fraction(most - 1, most))
    n_folds, n_held_out = ratio.denominator, ratio.numerator
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)
    with CHECKING:
        found = list(splitter.split(labels, labels, groups))
    test = np.sort(np.concatenate([test for _, test in found[:n_held_out]]))
    train = np.setdiff1d(np.arange(labels.size), test)
    if any(np.unique(labels[part]).size < classes.size for part in (train, test)):
        raise ValueError(
            "both the training and the held-out rows must have both classes; there are too few groups with rows of "
            "each class"
        )
    return train, test


# Cross-validation splits that a user gives, and checks of splits.


def with_groups(data: TrainingSet, groups: Any) -> TrainingSet:
    """Return the training set with the group of each given row, for its splits; ``groups`` may be None."""
    return data if groups is None else data._replace(groups=check_groups(groups, data.given.size))


def cv_splitter(cv: Any, labels: NDArray[Any], groups: NDArray[Any] | None) -> Any:
    """Return the splitter for a parameter ``cv``; a number of folds, five for None, does not split groups."""
    if groups is not None and (cv is None or isinstance(cv, Integral)):
        return StratifiedGroupKFold(5 if cv is None else int(cv))
    return check_cv(cv, labels, classifier=True)


def given_splits(data: TrainingSet, cv: Any) -> list[Split]:
    """Return training and held-out rows, as indices of the rows with non-zero weight; groups are not split.

    The indices of given splits refer to all rows, including those with zero weight.
    """
    place = np.full(data.given.size, -1)
    place[data.rows] = np.arange(data.rows.size)
    with CHECKING:
        splitter = cv_splitter(cv, data.given, data.groups)
        groups = data.groups if _takes_groups(splitter) else None
        splits = list(splitter.split(np.zeros((data.given.size, 1)), data.given, groups))
    if data.groups is not None:
        _check_groups(splits, data.groups, "the given splits" if isinstance(cv, Iterable) else type(cv).__name__)
    kept = [tuple(part[part >= 0] for part in (place[train], place[test])) for train, test in splits]
    return check_splits(kept, data)


def check_splits(splits: list[Split], data: TrainingSet) -> list[Split]:
    """Return the splits; raise ValueError if a part of a split does not have rows of both classes."""
    for number, parts in enumerate(splits):
        for name, rows in zip(("training", "held-out"), parts, strict=True):
            n_positive = int(data.positive[rows].sum())
            if not 0 < n_positive < rows.size:
                few = "" if data.groups is None else "; there are too few groups with rows of both classes"
                raise ValueError(
                    "cv must have rows of both classes with non-zero weight in both parts of each split; got "
                    f"{n_positive} positives among {rows.size} {name} rows of split {number}{few}"
                )
    return splits


def _takes_groups(splitter: Any) -> bool:
    """Return whether a splitter uses groups; those of scikit-learn that do not would warn about them."""
    if not hasattr(splitter, "get_metadata_routing"):
        return True
    return "groups" in get_routing_for_object(splitter).split.requests


def _check_groups(splits: list[Split], groups: NDArray[Any], source: str) -> None:
    """Raise ValueError if rows of a group are in both parts of a split."""
    for number, (train, test) in enumerate(splits):
        both = np.intersect1d(groups[train], groups[test])
        if both.size:
            raise ValueError(
                "with groups, cv must not put rows of one group into both parts of a split; got group "
                f"{both.tolist()[0]!r} in both parts of split {number} of {source}. Use an integer, or a splitter for "
                "groups such as StratifiedGroupKFold"
            )


# Comparisons over the folds. Candidates are good or bad on the same folds, so the standard error of their paired
# differences says whether one could be noise.


def close_to_best(scores: Array, n_errors: float) -> Bools:
    """Return which candidates are behind the best one by at most some standard errors of their difference.

    Candidates are columns, and folds are rows.
    """
    behind = scores[:, [int(scores.mean(axis=0).argmax())]] - scores
    close: Bools = behind.mean(axis=0) <= n_errors * standard_error(behind)
    return close


def standard_error(values: Array) -> Any:
    """Return the standard error of the mean over the first axis, the folds; 0 for a single fold."""
    n_folds = len(values)
    return values.std(axis=0, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(values.shape[1:])
