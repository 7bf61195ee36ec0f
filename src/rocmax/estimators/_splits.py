"""Cross-validation splits given by a user."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from rocmax._validate import CHECKING, TrainingSet

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def given_splits(data: TrainingSet, cv: Any) -> list[Split]:
    """Return training and held-out rows, as indices of the rows with non-zero weight.

    The indices of given splits refer to all rows, including those with zero weight.
    """
    place = np.full(data.given.size, -1)
    place[data.rows] = np.arange(data.rows.size)
    with CHECKING:
        splitter = check_cv(cv, data.given, classifier=True)
        splits = list(splitter.split(np.zeros((data.given.size, 1)), data.given))
    return [tuple(part[part >= 0] for part in (place[train], place[test])) for train, test in splits]
