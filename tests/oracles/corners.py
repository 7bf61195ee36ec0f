"""The partial AUC above a true-positive rate by other routes: loops over pairs, and published definitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from sklearn.metrics import auc, roc_auc_score, roc_curve


def cut(scores, weights, start, stop):
    """Return ``(score, weight)`` of the rows between two cumulative weights, from the highest score downwards."""
    found, top = [], Fraction(0)
    for score, weight in sorted(zip(scores, weights, strict=True), key=lambda row: -row[0]):
        bottom = top + Fraction(weight)
        inside = min(bottom, stop) - max(top, start)
        if inside > 0:
            found.append((score, inside))
        top = bottom
    return found


def mean_over_pairs(y, s, weight, min_fpr, max_fpr, min_tpr, tie=Fraction(1, 2)):
    """Mean over the pairs of a lowest positive and a highest negative of 1 for the right order, ``tie`` for a tie.

    Rates are fractions; a row at a limit counts in part.
    """
    rows = [
        [(float(value), Fraction(float(w))) for value, label, w in zip(s, y, weight, strict=True) if label == which]
        for which in (1, 0)
    ]
    (pos, pos_weight), (neg, neg_weight) = (zip(*side, strict=True) for side in rows)
    m, n = sum(pos_weight), sum(neg_weight)
    lowest = cut(pos, pos_weight, m * min_tpr, m)
    highest = cut(neg, neg_weight, n * min_fpr, n * max_fpr)
    total = sum(v * w * ((p > q) + tie * (p == q)) for p, v in lowest for q, w in highest)
    return float(total / (m * (1 - min_tpr) * n * (max_fpr - min_fpr)))


def isic_2024(y, s, min_tpr=0.8):
    """Score of the ISIC 2024 challenge as published: exchange classes and signs, and take the area up to an FPR."""
    max_fpr = abs(1 - min_tpr)
    fpr, tpr, _ = roc_curve(1 - np.asarray(y), -np.asarray(s), drop_intermediate=False)
    stop = np.searchsorted(fpr, max_fpr, "right")
    end = np.interp(max_fpr, fpr[stop - 1 : stop + 1], tpr[stop - 1 : stop + 1])
    return auc([*fpr[:stop], max_fpr], [*tpr[:stop], end])


def auc_of_selected_rows(y, s, min_tpr, max_fpr):
    """Two-way partial AUC as LibAUC defines it: the AUC of the lowest positives and the highest negatives alone."""
    pos, neg = np.sort(s[y == 1]), np.sort(s[y == 0])[::-1]
    pos, neg = pos[: round(pos.size * (1 - min_tpr))], neg[: round(neg.size * max_fpr)]
    return roc_auc_score(np.repeat([1, 0], [pos.size, neg.size]), np.concatenate((pos, neg)))
