"""Rows as estimators have them after their checks, for tests of what estimators are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class CheckedRows(NamedTuple):
    """Rows, whether they are positive, and weights."""

    X: Any
    positive: Any
    weight: Any = None
    classes: Any = np.array([False, True])
    positive_index: int = 1
    kept: Any = None
    groups: Any = None

    @property
    def given(self):
        return self.positive

    @property
    def rows(self):
        return np.arange(self.positive.size)

    def bind(self, loss):
        return loss.bind(self.positive, self.weight)
