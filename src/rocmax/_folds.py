"""Splits of rows: folds given by a user, folds and held-out parts by groups, and their checks."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from rocmax._validation import CHECKING, TrainingSet, check_groups

# Splits that keep groups of rows together.


# Largest number of folds from which a held-out part is put together: shares are then met to a twentieth.
MOST_FOLDS = 20


def split_groups(
    positive: NDArray[np.bool_], groups: NDArray[Any], share: float, random_state: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return training and held-out rows; no group is split, and both parts have about the same share of positives.

    The held-out part is some of the folds of a stratified split by groups, as many as give the share.
    """
    n_positive = int(np.count_nonzero(positive))
    most = min(MOST_FOLDS, np.unique(groups).size, n_positive, positive.size - n_positive)
    if most < 2:
        raise ValueError(f"a split by groups requires at least two groups and two rows of each class; got {most}")
    ratio = min(max(Fraction(share).limit_denominator(most), Fraction(1, most)), Fraction(most - 1, most))
    n_folds, n_held_out = ratio.denominator, ratio.numerator
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state).split(positive, positive, groups)
    held_out = np.zeros(positive.size, dtype=bool)
    for _, test in list(folds)[:n_held_out]:
        held_out[test] = True
    for part in (held_out, ~held_out):
        if len(set(positive[part].tolist())) < 2:
            raise ValueError(
                "both the training and the held-out rows must have both classes; there are too few groups with rows of "
                "each class"
            )
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


# Cross-validation splits: given by a user, by groups, and their checks.


Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def with_groups(data: TrainingSet, groups: Any) -> TrainingSet:
    """Return the training set with the group of each given row, for its splits; ``groups`` may be None."""
    return data if groups is None else data._replace(groups=check_groups(groups, data.given.size))


def given_splits(data: TrainingSet, cv: Any) -> list[Split]:
    """Return training and held-out rows, as indices of the rows with non-zero weight; groups are not split.

    The indices of given splits refer to all rows, including those with zero weight.
    """
    place = np.full(data.given.size, -1)
    place[data.rows] = np.arange(data.rows.size)
    with CHECKING:
        if data.groups is not None and isinstance(cv, Integral):
            splitter = StratifiedGroupKFold(int(cv))
        else:
            splitter = check_cv(cv, data.given, classifier=True)
        groups = data.groups if _takes_groups(splitter) else None
        splits = list(splitter.split(np.zeros((data.given.size, 1)), data.given, groups))
    if data.groups is not None:
        _check_groups(splits, data.groups, "the given splits" if isinstance(cv, Iterable) else type(cv).__name__)
    kept = [tuple(part[part >= 0] for part in (place[train], place[test])) for train, test in splits]
    return check_splits(kept, data)


def group_folds(data: TrainingSet, n_folds: int, rng: np.random.RandomState, n_repeats: int = 1) -> list[Split]:
    """Return folds of the rows with non-zero weight, stratified by class, in which no group is split.

    There are fewer folds if the rows of a class belong to fewer groups.
    """
    assert data.groups is not None
    groups = data.groups[data.rows]
    fewest = min(np.unique(groups[data.positive == side]).size for side in (True, False))
    if fewest < 2:
        raise ValueError(
            "the rows of each class must belong to at least two groups for cross-validation; the rows of one class "
            "belong to one group only"
        )
    folds = StratifiedGroupKFold(min(n_folds, fewest), shuffle=True, random_state=rng)
    with CHECKING:
        splits = [split for _ in range(n_repeats) for split in folds.split(data.positive, data.positive, groups)]
    return check_splits(splits, data)


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
