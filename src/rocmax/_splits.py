"""Splits that keep groups of rows together."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold

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
