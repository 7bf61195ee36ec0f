"""Samples of scores whose measures are known."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from rocmax import metrics

# Negatives N(0, 1), positives N(SHIFT, 1): everything about the population is known.
SHIFT, N_POSITIVE, N_NEGATIVE = 1.3, 200, 800


def true_rate(f):
    return norm.sf(norm.isf(f) - SHIFT)


def true_precision(k):
    share = N_POSITIVE / (N_POSITIVE + N_NEGATIVE)
    at = brentq(lambda t: share * norm.sf(t - SHIFT) + (1 - share) * norm.sf(t) - k, -9, 9)
    return share * norm.sf(at - SHIFT) / k


def true_average_precision():
    share = N_POSITIVE / (N_POSITIVE + N_NEGATIVE)

    def precision(tpr):
        fpr = norm.sf(norm.isf(tpr) + SHIFT)
        return share * tpr / (share * tpr + (1 - share) * fpr)

    return quad(precision, 0, 1)[0]


TRUTH = {
    "roc_auc": ({}, norm.cdf(SHIFT / np.sqrt(2))),
    "partial_auc": ({"min_fpr": 0.02, "max_fpr": 0.2}, quad(true_rate, 0.02, 0.2)[0] / 0.18),
    "tpr_at_fpr": ({"max_fpr": 0.1}, true_rate(0.1)),
    "fpr_at_tpr": ({"min_tpr": 0.7}, norm.sf(norm.isf(0.7) + SHIFT)),
    "precision_at_k": ({"k": 0.1}, true_precision(0.1)),
    "break_even_point": ({}, true_precision(N_POSITIVE / (N_POSITIVE + N_NEGATIVE))),
    "average_precision": ({}, true_average_precision()),
    "g_mean": ({}, np.sqrt(norm.cdf(SHIFT / 2) ** 2)),
}


def draw(rng):
    y = np.repeat([0, 1], [N_NEGATIVE, N_POSITIVE])
    return y, rng.normal(size=y.size) + SHIFT * y


def delong_error(y, scores, **options):
    """Return DeLong's standard error of an area: that of the difference to a perfect ranking, which does not vary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few rows
        found = metrics.delong_test(y, scores, y, **options)
    return (found.high - found.low) / (2 * norm.ppf(0.975))
