"""Areas under the ROC curve and under a part of it."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rocmax._typing import Array
from rocmax._window import check_floor, check_region, check_window, window_end
from rocmax.metrics.curve import Curve, score_blocks


def partial_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    standardize: bool = False,
    normalize: bool = True,
    definition: Literal["area", "count"] = "area",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Area under a part of the ROC curve, as a fraction of the largest possible area.

    The part is limited by two false-positive rates, ``a = min_fpr`` and ``b = max_fpr``, and by the true-positive rate
    ``t = min_tpr``. With the empirical ROC curve drawn with straight lines between its points (a block of tied scores
    is one line), the ``"area"`` is

    .. math:: \frac{1}{(b-a)(1-t)} \int_a^b \max(\mathrm{TPR}(f) - t, 0)\, df,

    which is exact also if ``a`` or ``b`` falls inside a step, or if the curve crosses ``t`` on a line. The ``"count"``
    uses whole rows instead: the negatives of rank ``j_a < j <= j_b`` from the top, with ``j_a = floor(n a)`` and
    ``j_b = ceil(n b)``, and the ``ceil(m (1 - t))`` positives with the lowest scores. It is the fraction of their pairs
    in which the positive has the higher score. If ``n a``, ``n b`` and ``m t`` are integers and no positive is tied
    with a negative, both definitions are equal.

    With ``t = 0`` this is the mean TPR on the range of false-positive rates. With ``a = 0`` and ``b = 1`` it is the
    area above a true-positive rate, which equals the area left of the false-positive rate ``1 - t`` after exchanging
    the classes and the sign of the scores. With ``a = 0`` and both other limits it is the two-way partial AUC.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=1.0
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.
    standardize : bool, default=False
        Whether to standardize the area as proposed by McClish: 1 for a perfect ranking and 0.5 for the diagonal, in
        every region. With ``min_fpr=0`` and ``min_tpr=0`` this equals ``sklearn.metrics.roc_auc_score(max_fpr=...)``.
        Only available for ``definition="area"``.
    normalize : bool, default=True
        Whether to divide the area by ``(b - a) (1 - t)``, the area of a perfect ranking. If False, the value is the
        area itself; only available for ``definition="area"`` and without ``standardize``.
    definition : {"area", "count"}, default="area"
        Definition of the score, see above. A tied pair counts one half in an area over whole steps and zero in a count,
        where the inequality is strict.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row. A count ranks the rows by cumulative weight; a row at ``j_a``, at ``j_b`` or at
        the last of the lowest positives may count in part.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.

    Returns
    -------
    float
        Between 0 and 1, higher is better. Without ``min_tpr``, an uninformative score has the area ``(a + b) / 2``, or
        0.5 if standardized.

    Notes
    -----
    In other words, the area is the mean over the pairs of one of the ``m (1 - t)`` lowest positives and one of the
    ``n b`` highest negatives (without the ``n a`` highest) of 1 if the positive has the higher score, of one half if
    the scores are equal, and of 0 otherwise, where a row at a limit counts in part. This is exact unless one block of
    tied scores has rows of both classes and contains a limit. The area then follows the straight line of the block,
    which is the expected curve over random orders of its rows.

    The score of the ISIC 2024 challenge, the area above 80 % TPR without division, between 0 and 0.2, is
    ``partial_auc_score(y_true, y_score, min_tpr=0.8, normalize=False)``.

    References
    ----------
    D. K. McClish (1989). Analyzing a portion of the ROC curve. Medical Decision Making 9, 190-195.

    Y. Jiang, C. E. Metz and R. M. Nishikawa (1996). A receiver operating characteristic partial area index for highly
    sensitive diagnostic tests. Radiology 201, 745-750. The area above a true-positive rate.

    H. Narasimhan and S. Agarwal (2017). Support vector algorithms for optimizing the partial area under the
    ROC curve. Neural Computation 29, 1919-1963. Equation 2 is the count.

    H. Yang, K. Lu, X. Lyu and F. Hu (2019). Two-way partial AUC and its properties. Statistical Methods in
    Medical Research 28, 184-195.

    Examples
    --------
    >>> from rocmax.metrics import partial_auc_score
    >>> y = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> s = [9.9, 8.7, 3.3, 2.1, 7.6, 5.3, 4.9, 4.4, 0.8]
    >>> partial_auc_score(y, s, max_fpr=0.2)
    0.5
    >>> round(partial_auc_score(y, s, max_fpr=0.2, standardize=True), 4)
    0.7222
    >>> round(partial_auc_score(y, s, min_tpr=0.5), 4)
    0.2
    >>> round(partial_auc_score(y, s, min_tpr=0.5, normalize=False), 4)
    0.1
    """
    return partial_auc(
        score_blocks(y_true, y_score, sample_weight, pos_label).curve(),
        min_fpr=min_fpr,
        max_fpr=max_fpr,
        min_tpr=min_tpr,
        standardize=standardize,
        normalize=normalize,
        definition=definition,
    )


def two_way_partial_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    min_tpr: float,
    max_fpr: float,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Area under the ROC curve above a true-positive rate and left of a false-positive rate, as a fraction.

    This measure is for applications that require both a high detection rate and few false alarms. With ``t = min_tpr``
    and ``b = max_fpr``, it is

    .. math:: \frac{1}{(1-t)\, b} \int_0^b \max(\mathrm{TPR}(f) - t, 0)\, df,

    which is :func:`partial_auc_score` with these two limits.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two classes, of any type.
    y_score : array-like of shape (n_samples,)
        Higher means more likely positive.
    min_tpr : float
        Lower limit on the true-positive rate, at least 0 and below 1.
    max_fpr : float
        Right edge of the region, ``0 < max_fpr <= 1``.
    sample_weight : array-like of shape (n_samples,), default=None
        Number of copies of each row.
    pos_label : int, float, bool or str, default=None
        Label of the positive class. None takes the larger label.

    Returns
    -------
    float
        1 for a perfect ranking, 0 if the curve does not enter the region.

    References
    ----------
    H. Yang, K. Lu, X. Lyu and F. Hu (2019). Two-way partial AUC and its properties. Statistical Methods in
    Medical Research 28, 184-195.

    Examples
    --------
    >>> from rocmax.metrics import two_way_partial_auc_score
    >>> y, s = [0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 7, 4, 5, 6, 8]
    >>> two_way_partial_auc_score(y, s, min_tpr=0.5, max_fpr=0.5)
    0.5
    """
    curve = score_blocks(y_true, y_score, sample_weight, pos_label).curve()
    return two_way_partial_auc(curve, min_tpr=min_tpr, max_fpr=max_fpr)


def partial_auc(
    curve: Curve,
    *,
    min_fpr: float = 0.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    standardize: bool = False,
    normalize: bool = True,
    definition: Literal["area", "count"] = "area",
) -> float:
    """Compute :func:`partial_auc_score` from the curve."""
    check_window(min_fpr, max_fpr, any_width=definition == "area")
    check_floor(min_tpr)
    if standardize and not normalize:
        raise ValueError("standardize=True requires normalize=True; got normalize=False")
    if definition == "count":
        if standardize or not normalize:
            wrong = "standardize=True" if standardize else "normalize=False"
            raise ValueError(f'{wrong} requires definition="area"; got definition="count"')
        return _ordered_pairs(curve, min_fpr, max_fpr, min_tpr)
    if definition != "area":
        raise ValueError(f'definition must be "area" or "count"; got {definition!r}')
    area = _area(curve, min_fpr, max_fpr, floor=min_tpr)
    largest = (max_fpr - min_fpr) * (1 - min_tpr)
    if standardize:
        left = max(min_fpr, min_tpr)
        diagonal = max(max_fpr - left, 0.0) * ((left - min_tpr) + (max_fpr - min_tpr)) / 2
        return 0.5 * (1 + (area - diagonal) / (largest - diagonal))
    return area / largest if normalize else area


def two_way_partial_auc(curve: Curve, *, min_tpr: float, max_fpr: float) -> float:
    """Compute :func:`two_way_partial_auc_score` from the curve."""
    check_region(min_tpr, max_fpr)
    return partial_auc(curve, min_tpr=min_tpr, max_fpr=max_fpr)


def roc_auc(curve: Curve) -> float:
    """Return the area under the whole curve."""
    return _area(curve, 0.0, 1.0)


def _ordered_pairs(curve: Curve, min_fpr: float, max_fpr: float, min_tpr: float) -> float:
    """Return the fraction of correctly ordered pairs in the region; ties count as incorrect."""
    start = math.floor(window_end(curve.n, min_fpr))
    # Fractional weights can sum to less than the next integer.
    stop = min(math.ceil(window_end(curve.n, max_fpr)), curve.n)
    lowest = curve.m if min_tpr == 0 else min(math.ceil(window_end(curve.m, 1 - min_tpr)), curve.m)
    inside = np.diff(np.clip(curve.fp, start, stop))
    above = np.maximum(curve.tp[:-1] - (curve.m - lowest), 0.0)
    return float(inside @ (above / lowest)) / (stop - start)


def _area(curve: Curve, start: float, stop: float, floor: float = 0.0) -> float:
    """Return the area between the curve and the height ``floor`` for rates from ``start`` to ``stop``."""
    fpr, tpr = curve.fp / curve.n, curve.tp / curve.m
    # On a vertical step, use the upper end at the left end of the window and the lower end at its right end.
    first = int(np.searchsorted(fpr, start, "right"))
    last = int(np.searchsorted(fpr, stop, "left"))
    x = np.concatenate(([start], fpr[first:last], [stop]))
    y = np.concatenate(([_between(fpr, tpr, first, start)], tpr[first:last], [_between(fpr, tpr, last, stop)]))
    if y[0] < floor:
        cut = int(np.searchsorted(y, floor))
        if cut == y.size:
            return 0.0
        x = np.concatenate(([_between(y, x, cut, floor)], x[cut:]))
        y = np.concatenate(([floor], y[cut:]))
    return float(np.trapezoid(y - floor, x))


def _between(x: Array, y: Array, i: int, at: float) -> float:
    """Return the height at ``at`` of the line from point ``i - 1`` to point ``i``, which must differ in ``x``."""
    return float(y[i - 1] + (y[i] - y[i - 1]) * ((at - x[i - 1]) / (x[i] - x[i - 1])))
