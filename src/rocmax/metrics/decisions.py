"""Measures of predicted labels."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from rocmax._window import check_beta
from rocmax.metrics.curve import Curve, label_blocks


def f_beta_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""F-beta score of predicted labels, the weighted harmonic mean of precision and recall.

    .. math:: F_\beta = \frac{(1 + \beta^2)\, tp}{\beta^2 m + tp + fp}

    with :math:`tp` of :math:`m` positives and :math:`fp` negatives predicted positive. It equals
    :func:`sklearn.metrics.fbeta_score`, and is 0 if that is undefined because there are no true or predicted positives.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type. One class is sufficient if ``y_pred`` or ``pos_label`` determines the positive class.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    beta : float, default=1.0
        Weight of the recall, above 0.
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
    C. J. van Rijsbergen (1979). Information Retrieval. Butterworths, chapter 7.

    Examples
    --------
    >>> from rocmax.metrics import f_beta_score
    >>> f_beta_score([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    0.8
    """
    return f_beta(label_blocks(y_true, y_pred, sample_weight, pos_label, one_class=True).curve(), beta=beta)


def g_mean_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Geometric mean of the true-positive and the true-negative rate of predicted labels.

    .. math:: \sqrt{\mathrm{TPR} \cdot \mathrm{TNR}}

    Unlike accuracy, it is zero for a model that always predicts the majority class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label. The value is the same for either.

    Returns
    -------
    float
        Between 0 and 1, higher is better.

    References
    ----------
    M. Kubat and S. Matwin (1997). Addressing the curse of imbalanced training sets: one-sided selection.
    ICML, 179-186.

    Examples
    --------
    >>> from rocmax.metrics import g_mean_score
    >>> g_mean_score([0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 1])
    0.5
    """
    return g_mean(label_blocks(y_true, y_pred, sample_weight, pos_label).curve())


def weighted_relative_accuracy(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Weighted relative accuracy (WRAcc) of predicted labels.

    The difference between the precision and the share of positives, times the share of predicted positives:

    .. math::
        P(\hat y = +)\,\bigl(P(y = + \mid \hat y = +) - P(y = +)\bigr)
        = P(y = +)\, P(y = -)\, (\mathrm{TPR} - \mathrm{FPR}).

    This is the unscaled form, between -1/4 and 1/4. Rakotomamonjy (2004, Table 1) uses four times this value,
    ``4c (TPR - FPR) / (1 + c)**2`` with ``c`` negatives per positive, which is between -1 and 1 for balanced classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label. The value is the same for either.

    Returns
    -------
    float
        0 for uninformative predictions, ``P(y = +) P(y = -)`` for perfect predictions.

    References
    ----------
    N. Lavrac, P. Flach and B. Zupan (1999). Rule evaluation measures: a unifying view. ILP, 174-185.

    A. Rakotomamonjy (2004). Optimizing area under ROC curve with SVMs. ROCAI, 71-80.

    Examples
    --------
    >>> from rocmax.metrics import weighted_relative_accuracy
    >>> weighted_relative_accuracy([0, 0, 1, 1], [0, 0, 1, 1])
    0.25
    >>> weighted_relative_accuracy([0, 0, 1, 1], [1, 1, 1, 1])
    0.0
    """
    return relative_accuracy(label_blocks(y_true, y_pred, sample_weight, pos_label).curve())


def f_beta(curve: Curve, *, beta: float) -> float:
    """Compute :func:`f_beta_score` from the curve of two blocks."""
    check_beta(beta)
    square, tp = beta**2, float(curve.tp[1])
    size = square * curve.m + tp + float(curve.fp[1])
    return (1 + square) * tp / size if size > 0 else 0.0


def g_mean(curve: Curve) -> float:
    """Compute :func:`g_mean_score` from the curve of two blocks."""
    tpr, fpr = _rates(curve)
    return math.sqrt(tpr * (1 - fpr))


def relative_accuracy(curve: Curve) -> float:
    """Compute :func:`weighted_relative_accuracy` from the curve of two blocks."""
    tpr, fpr = _rates(curve)
    share = curve.m / (curve.m + curve.n)
    return share * (1 - share) * (tpr - fpr)


def _rates(curve: Curve) -> tuple[float, float]:
    """Return the true- and the false-positive rate of the predictions."""
    return float(curve.tp[1]) / curve.m, float(curve.fp[1]) / curve.n
