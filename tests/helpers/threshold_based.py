"""Samples and measures for the tests of threshold-based classifiers."""

import numpy as np
from scipy.stats import norm

from rocmax import BreakEvenClassifier, FBetaClassifier, PrecisionAtKClassifier
from rocmax.metrics import break_even_point, precision_at_k


def measure(model, y, scores, weight=None):
    """The measure of each model, from scores and labels, by other code than the model's."""
    accepted = scores > 0
    if isinstance(model, PrecisionAtKClassifier):
        return precision_at_k(y, scores, k=model.k, sample_weight=weight)
    if isinstance(model, BreakEvenClassifier):
        return break_even_point(y, scores, sample_weight=weight)
    weight = np.ones(y.size) if weight is None else weight
    tp, fp = weight[accepted & (y == 1)].sum(), weight[accepted & (y == 0)].sum()
    m, n = weight[y == 1].sum(), weight[y == 0].sum()
    if isinstance(model, FBetaClassifier):
        return (1 + model.beta**2) * tp / (model.beta**2 * m + tp + fp)
    return np.sqrt(tp / m * (n - fp) / n)


# Collapse and refusals


def gaussians(share, auc, n=2000, d=3):
    """Unit Gaussians whose best direction has this AUC."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < share).astype(int)
    return rng.standard_normal((n, d)) + y[:, None] * np.sqrt(2 / d) * norm.ppf(auc), y
