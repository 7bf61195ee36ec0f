"""The contract of a loss, continued: what is refused, and that the message names what was got."""

import numpy as np
import pytest

from helpers.loss_cases import every_loss
from rocmax.losses import (
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
    PartialAUCTight,
)


@every_loss
@pytest.mark.parametrize(
    ("y", "weight", "missing"),
    [
        ([1, 1, 1], None, "negative"),
        ([0, 0, 0], None, "positive"),
        ([False, False], None, "positive"),
        ([1, 0, 0], [0.0, 1.0, 1.0], "positive"),
        ([1, 1, 0], [1.0, 1.0, 0.0], "negative"),
        ([1, 0], [0.0, 0.0], "positive"),
        ([], None, "positive"),
    ],
)
def test_one_class_is_refused(case, y, weight, missing):
    with pytest.raises(ValueError, match=rf"one class.*no {missing}"):
        case.loss.bind(y, weight)


@pytest.mark.parametrize(
    ("y", "got"),
    [
        ([-1, 1, 1], "-1"),
        ([0, 1, 2], "2"),
        ([0.5, 1.0], "0.5"),
        ([0.0, 1.0, np.nan], "nan"),
        (["no", "yes"], "yes"),
        ([[0, 1], [1, 0]], r"\(2, 2\)"),
    ],
)
def test_other_labels_are_refused(y, got):
    for loss in (PairwiseHinge(), PartialAUCTight(), PartialAUCRamp()):
        with pytest.raises(ValueError, match=got):
            loss.bind(y)


@pytest.mark.parametrize(
    ("weight", "got"),
    [
        ([1.0, -0.5, 1.0], "-0.5"),
        ([1.0, np.nan, 1.0], "nan"),
        ([1.0, np.inf, 1.0], "inf"),
        ([1.0, 1.0], r"\(2,\)"),
        ([1.0, 1.0, 1.0, 1.0], r"\(4,\)"),
        ([[1.0], [1.0], [1.0]], r"\(3, 1\)"),
        (2.0, r"\(\)"),
    ],
)
def test_bad_weights_are_refused(weight, got):
    for loss in (PairwiseHinge(), PairwiseSquaredHinge(), PartialAUCTight(), PartialAUCRamp()):
        with pytest.raises(ValueError, match=rf"sample_weight.*{got}"):
            loss.bind([1, 0, 0], weight)


@every_loss
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, 2.0], r"shape \(3,\).*got.*\(2,\)"),
        ([1.0, 2.0, 3.0, 4.0], r"shape \(3,\).*got.*\(4,\)"),
        ([[1.0, 2.0, 3.0]], r"shape \(3,\).*got.*\(1, 3\)"),
        (1.0, r"shape \(3,\).*got.*\(\)"),
        ([np.nan, 0.0, 0.0], "NaN"),
        ([0.0, 0.0, np.nan], "NaN"),
        ([np.inf, 0.0, 0.0], "infinity"),
        ([0.0, -np.inf, 0.0], "infinity"),
        ([np.inf, np.inf, 0.0], "infinity"),
    ],
)
def test_bad_scores_are_refused(case, scores, message):
    bound = case.loss.bind([1, 0, 0])
    with pytest.raises(ValueError, match=message):
        bound.value_and_gradient(scores)


@pytest.mark.parametrize("cls", [PartialAUCTight, PartialAUCStructural, PartialAUCHinge, PartialAUCRamp])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.3, 0.3),
        (0.5, 0.2),
        (-0.1, 0.5),
        (0.0, 1.1),
        (0.0, 0.0),
        (1.0, 1.0),
        (np.nan, 0.5),
        (0.0, np.nan),
        (0, 10),
    ],
)
def test_bad_windows_are_refused(cls, low, high):
    with pytest.raises(ValueError, match=rf"min_fpr=.*{low}.*max_fpr=.*{high}"):
        cls(min_fpr=low, max_fpr=high).bind([1, 0])


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf])
def test_bad_widths_are_refused(width):
    with pytest.raises(ValueError, match=rf"width.*{width}"):
        PartialAUCRamp(width=width).bind([1, 0])
