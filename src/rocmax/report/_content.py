"""What a report is made of: models with their scores, and the test rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax.metrics.curve import Blocks


@dataclass(frozen=True)
class Feature:
    """Importance of a feature; ``direction`` is 1 or -1 if larger values raise or lower the score, otherwise 0."""

    name: str
    value: float
    direction: int = 0


@dataclass(frozen=True)
class ReportModel:
    """Model with its scores on the test rows."""

    name: str
    kind: str
    scores: Array
    predicted: NDArray[np.bool_]
    features: list[Feature] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    max_fpr: float | None = None
    feature_value: str = "weight"
    probabilities: Array | None = None
    min_tpr: float | None = None


@dataclass(frozen=True)
class RankedModel:
    """Model with the blocks of ties of its scores, in descending order, and the score of each block."""

    model: ReportModel
    blocks: Blocks
    levels: Array


@dataclass(frozen=True)
class Segment:
    """Part of the test rows, for results by segment."""

    name: str
    rows: NDArray[np.bool_]


@dataclass(frozen=True)
class Change:
    """Difference between the training rows and the test rows in one column."""

    column: str
    what: str
    then: str
    now: str
    size: float
    large: bool


@dataclass(frozen=True)
class TestData:
    """Test rows: classes, the range of rates, a summary of the columns, segments and changes since training.

    Rows of one of the ``groups`` may depend on each other; None if all rows are independent.
    """

    source: str
    positive: NDArray[np.bool_]
    positive_label: str
    window: tuple[float, float]
    columns: list[tuple[str, str, float]]
    seed: int = 0
    negative_label: str | None = None
    min_tpr: float = 0.0
    segment_column: str | None = None
    segments: list[Segment] = field(default_factory=list)
    changes: list[Change] | None = None
    groups: NDArray[Any] | None = None

    __test__ = False  # not a test class of pytest

    @property
    def n_positive(self) -> int:
        """Number of positives."""
        return int(np.count_nonzero(self.positive))

    @property
    def n_negative(self) -> int:
        """Number of negatives."""
        return int(self.positive.size - self.n_positive)
