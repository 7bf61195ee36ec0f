"""Measures of one point of the ROC curve or of the top-ranked rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rocmax._window import check_rate, top_weight
from rocmax.metrics.curve import DUST, Curve, score_blocks


def tpr_at_fpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    max_fpr: float,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Largest true-positive rate of a threshold whose false-positive rate is at most ``max_fpr``.

    .. math:: \max_t \{ \mathrm{TPR}(t) : \mathrm{FPR}(t) \le \text{max\_fpr} \}

    The rate is attained by an actual threshold: there is no interpolation, tied scores are on the same side of the
    threshold, and the threshold above all scores (both rates 0) is included.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    max_fpr : float
        Limit on the false-positive rate, from 0 to 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    References
    ----------
    J. Neyman and E. S. Pearson (1933). On the problem of the most efficient tests of statistical hypotheses.
    Philosophical Transactions of the Royal Society A 231, 289-337.

    Examples
    --------
    >>> from rocmax.metrics import tpr_at_fpr
    >>> tpr_at_fpr([0, 0, 0, 0, 1, 1], [1, 2, 3, 5, 4, 6], max_fpr=0.2)
    0.5
    """
    return best_tpr(score_blocks(y_true, y_score, sample_weight, pos_label).curve(), max_fpr=max_fpr)


def fpr_at_tpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    min_tpr: float,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Smallest false-positive rate of a threshold whose true-positive rate is at least ``min_tpr``.

    .. math:: \min_t \{ \mathrm{FPR}(t) : \mathrm{TPR}(t) \ge \text{min\_tpr} \}

    There is no interpolation, as in :func:`tpr_at_fpr`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    min_tpr : float
        Required true-positive rate, from 0 to 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.

    Returns
    -------
    float
        Between 0 and 1; **lower** is better.

    References
    ----------
    J. Neyman and E. S. Pearson (1933). On the problem of the most efficient tests of statistical hypotheses.
    Philosophical Transactions of the Royal Society A 231, 289-337.

    Examples
    --------
    >>> from rocmax.metrics import fpr_at_tpr
    >>> fpr_at_tpr([0, 0, 0, 0, 1, 1], [1, 2, 3, 5, 4, 6], min_tpr=0.9)
    0.25
    """
    return best_fpr(score_blocks(y_true, y_score, sample_weight, pos_label).curve(), min_tpr=min_tpr)


def precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: float,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Share of positives among the ``k`` highest scores.

    .. math:: \frac{1}{k} \sum_{\text{top } k} 1[y = \text{positive}]

    Rows tied at the cutoff count in proportion: the value is the expectation over a random order of tied rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    k : int or float
        Number of rows as an int (of copies, if there are weights), or fraction of all rows, above 0 and at most 1, as a
        float: ``k=1`` is the top row, ``k=1.0`` all rows. If a fraction is not an integer number of rows, the last row
        counts in part.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.

    Returns
    -------
    float
        Between 0 and 1, higher is better; a perfect ranking reaches ``min(1, m / k)`` with ``m`` positives.

    References
    ----------
    T. Joachims (2005). A support vector method for multivariate performance measures. ICML, 377-384.

    Examples
    --------
    >>> from rocmax.metrics import precision_at_k
    >>> y, s = [1, 0, 1, 0, 0], [5, 4, 3, 3, 1]
    >>> precision_at_k(y, s, k=2)
    0.5
    >>> precision_at_k(y, s, k=3)  # one place for two tied rows, a positive and a negative
    0.5
    """
    return top_precision(score_blocks(y_true, y_score, sample_weight, pos_label).curve(), k=k)


def break_even_point(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Precision-recall break-even point: the precision among as many top rows as there are positives.

    With ``m`` positives, the precision is ``tp / k`` and the recall ``tp / m``, which are equal at ``k = m``. Ties at
    the cutoff count in proportion, as in :func:`precision_at_k`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    References
    ----------
    T. Joachims (2005). A support vector method for multivariate performance measures. ICML, 377-384.

    Examples
    --------
    >>> from rocmax.metrics import break_even_point
    >>> break_even_point([1, 1, 0, 0], [4, 2, 3, 1])
    0.5
    """
    return break_even(score_blocks(y_true, y_score, sample_weight, pos_label).curve())


def best_tpr(curve: Curve, *, max_fpr: float) -> float:
    """Compute :func:`tpr_at_fpr` from the curve."""
    check_rate("max_fpr", max_fpr)
    last = np.searchsorted(curve.fp, curve.n * max_fpr * (1 + DUST), "right") - 1
    return float(curve.tp[last]) / curve.m


def best_fpr(curve: Curve, *, min_tpr: float) -> float:
    """Compute :func:`fpr_at_tpr` from the curve."""
    check_rate("min_tpr", min_tpr)
    first = np.searchsorted(curve.tp, curve.m * min_tpr * (1 - DUST), "left")
    return float(curve.fp[first]) / curve.n


def top_precision(curve: Curve, *, k: float) -> float:
    """Compute :func:`precision_at_k` from the curve."""
    count = top_weight(k, curve.n + curve.m)
    return float(np.interp(count, curve.fp + curve.tp, curve.tp)) / count


def break_even(curve: Curve) -> float:
    """Compute :func:`break_even_point` from the curve."""
    return float(np.interp(curve.m, curve.fp + curve.tp, curve.tp)) / curve.m
