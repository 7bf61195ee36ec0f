"""Slow oracles for the losses, written to be checked against the papers, not to be fast.

Two layers. The first enumerates: every ordering of a tiny sample, every subset of its negatives, exactly
as the papers define the surrogates, for whole windows ``j_a < j <= j_b`` and no weights. The second
loops over pairs: exact windows ``(a, b]`` that may cut a negative in two, weights as numbers of copies.
The tests tie the second layer to the first, and the losses to both.

Papers: "000" is Narasimhan and Agarwal, Support vector algorithms for optimizing the partial area under the
ROC curve; "003" is the KDD 2013 paper on the tight surrogate by the same authors.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import linprog

# Layer 1: enumeration, straight from the definitions.


def ordering_objective(pos, neg, order, j_a, j_b):
    """``Delta(pi*, pi) - w.(phi(S, pi*) - phi(S, pi))`` for one ordering (000 Eq. 6, 11, 17; pi* = 0).

    ``order`` lists the examples from the top: numbers below ``len(pos)`` are positives, the others negatives.
    Both terms carry the factor ``1 / (m (j_b - j_a))``.
    """
    m = len(pos)
    place = {example: position for position, example in enumerate(order)}

    def pi(i, j):
        return 1 if place[i] > place[m + j] else 0

    ranked = [example - m for example in order if example >= m]
    mistakes = sum(pi(i, ranked[j - 1]) for i in range(m) for j in range(j_a + 1, j_b + 1))
    features = sum(pi(i, j) * (pos[i] - neg[j]) for i in range(m) for j in range(len(neg)))
    return (mistakes - features) / (m * (j_b - j_a))


def best_ordering(pos, neg, j_a, j_b):
    """Maximum of the objective over all orderings of these examples."""
    return max(ordering_objective(pos, neg, o, j_a, j_b) for o in permutations(range(len(pos) + len(neg))))


def structural_by_enumeration(pos, neg, j_a, j_b):
    """000 Eq. 11: all orderings of all examples."""
    return best_ordering(pos, neg, j_a, j_b)


def tight_by_enumeration(pos, neg, j_a, j_b):
    """000 Eq. 18: all subsets of ``j_b`` negatives, and all orderings of the positives and that subset."""
    return max(best_ordering(pos, subset, j_a, j_b) for subset in combinations(neg, j_b))


def hinge_by_definition(pos, neg, j_a, j_b):
    """000 Eq. 9: the pairwise hinge on the negatives ranked ``j_a + 1`` to ``j_b``."""
    ranked = sorted(neg, reverse=True)[j_a:j_b]
    return sum(max(0.0, 1 - (s - z)) for s in pos for z in ranked) / (len(pos) * (j_b - j_a))


def error_by_definition(pos, neg, j_a, j_b):
    """000 Eq. 16: the share of pairs in the window with the positive not above the negative."""
    ranked = sorted(neg, reverse=True)[j_a:j_b]
    return sum(s <= z for s in pos for z in ranked) / (len(pos) * (j_b - j_a))


def over_subsets_of_positives(value, pos, neg, j_a, j_b, size):
    """The largest ``value(subset, neg, j_a, j_b)`` over all subsets of ``size`` positives.

    For a loss that falls with the scores of the positives these are the lowest ones: the two-way window TPR >= 1 -
    size/m of Yang et al. 2021, with the worst positives in place of a window of true-positive rates.
    """
    return max(value(list(subset), neg, j_a, j_b) for subset in combinations(pos, size))


# Layer 2: loops over pairs, with exact windows and weights.

BEFORE, INSIDE, AFTER = range(3)


class Sample:
    """Scores by class, in exact positions: the negatives as pieces cut at the ends of the window.

    ``pieces`` is a list of ``(row, score, length, place)`` in descending order of score. A negative of
    weight ``v`` covers an interval of length ``v`` of the ranks; ``(a, b]`` cuts it into the parts before,
    inside and after the window. Positions are fractions, so whole ends are met exactly. ``positives`` are those of
    the lowest scores with a share ``1 - min_tpr`` of the weight, the last of them in part.
    """

    def __init__(self, scores, y, weight=None, min_fpr=0.0, max_fpr=1.0, min_tpr=0.0):
        self.scores = [float(s) for s in scores]
        self.weight = [1.0] * len(self.scores) if weight is None else [float(v) for v in weight]
        rows = [k for k in range(len(self.scores)) if self.weight[k] > 0]
        self.positives = [(k, self.scores[k], self.weight[k]) for k in rows if y[k]]
        self.negatives = [(k, self.scores[k], self.weight[k]) for k in rows if not y[k]]
        self.every_positive = list(self.positives)
        self.m = sum(Fraction(v) for _, _, v in self.positives) * (1 - Fraction(str(min_tpr)))
        if min_tpr:
            self.positives = self._lowest()
        self.n = sum(Fraction(v) for _, _, v in self.negatives)
        # str(0.07) is the rate that was meant; the float is a little off.
        self.a = self.n * Fraction(str(min_fpr))
        self.b = self.n * Fraction(str(max_fpr))
        self.pieces = self._cut()
        self.pairs_in_window = float(self.m * (self.b - self.a))

    def _lowest(self):
        left, kept = self.m, []
        for row, s, v in sorted(self.positives, key=lambda item: item[1]):
            length = min(Fraction(v), left)
            if length > 0:
                kept.append((row, s, float(length)))
            left -= length
        return kept

    def _cut(self):
        pieces = []
        top = Fraction(0)
        for row, z, v in sorted(self.negatives, key=lambda item: -item[1]):
            bottom = top + Fraction(v)
            ends = ((Fraction(0), self.a), (self.a, self.b), (self.b, self.n))
            for place, (left, right) in enumerate(ends):
                length = min(bottom, right) - max(top, left)
                if length > 0:
                    pieces.append((row, z, float(length), place))
            top = bottom
        return pieces

    def total(self, terms, pairs=None):
        """Value and gradient from terms ``(positive row, negative row, value, slope)``.

        ``slope`` is the derivative in ``z_j - s_i``. Rows of a class with the same score then share what they got, in
        proportion to weight: which of them is cut by the window's end is no property of the sample.
        """
        pairs = self.pairs_in_window if pairs is None else pairs
        gradient = np.zeros(len(self.scores))
        values = []
        for i, j, value, slope in terms:
            values.append(value)
            gradient[i] -= slope
            gradient[j] += slope
        for members in (self.every_positive, self.negatives):
            for level in {score for _, score, _ in members}:
                tied = [row for row, score, _ in members if score == level]
                pool = sum(gradient[row] for row in tied)
                mass = sum(self.weight[row] for row in tied)
                for row in tied:
                    gradient[row] = pool * self.weight[row] / mass
        return math.fsum(values) / pairs, gradient / pairs


def _over_window(sample, function):
    """Sum of ``function(s_i - z_j) -> (value, slope in z_j - s_i)`` over the pairs in the window."""
    terms = []
    for i, s, v in sample.positives:
        for j, z, length, place in sample.pieces:
            if place == INSIDE:
                value, slope = function(s - z)
                terms.append((i, j, v * length * value, v * length * slope))
    return sample.total(terms)


def _hinge(margin):
    def function(t):
        # A pair exactly on the kink is inactive.
        return (margin - t, 1.0) if margin - t > 0 else (0.0, 0.0)

    return function


def _squared_hinge(t):
    return ((1 - t) ** 2, 2 * (1 - t)) if 1 - t > 0 else (0.0, 0.0)


def ramp_step(t, width, margin):
    """The step of the ramp loss at ``t``, and its slope in ``-t``."""
    half = width / 2
    u = (t - (half if margin is None else margin)) / half
    if u <= -1:
        return 1.0, 0.0
    if u <= 0:
        return 1 - (1 + u) ** 2 / 2, (1 + u) / half
    if u <= 1:
        return (1 - u) ** 2 / 2, (1 - u) / half
    return 0.0, 0.0


def pairwise_hinge(scores, y, weight=None):
    """Mean over all pairs of ``(1 - (s_i - s_j))_+`` (000 Eq. 4)."""
    return _over_window(Sample(scores, y, weight), _hinge(1.0))


def pairwise_squared_hinge(scores, y, weight=None):
    """Mean over all pairs of ``(1 - (s_i - s_j))_+^2``."""
    return _over_window(Sample(scores, y, weight), _squared_hinge)


def partial_auc_hinge(scores, y, weight=None, min_fpr=0.0, max_fpr=0.1, min_tpr=0.0):
    """The pairwise hinge on the pairs in the window (000 Eq. 9)."""
    return _over_window(Sample(scores, y, weight, min_fpr, max_fpr, min_tpr), _hinge(1.0))


def window_pairs(
    scores, y, weight=None, surrogate="sigmoid", min_fpr=0.0, max_fpr=0.1, soft_tail=False, scale=1.0, min_tpr=0.0
):
    """A charge of pairs on a window, or on all pairs with the weights ``min(1, b / rank)``."""
    sample = Sample(scores, y, weight, min_fpr, max_fpr, 0.0 if soft_tail else min_tpr)

    def charge(t):
        if surrogate == "squared_hinge":
            value, slope = _squared_hinge(t / scale)
        else:
            q = 1 / (1 + math.exp(t / scale)) if t < 700 * scale else 0.0
            value, slope = q, q * (1 - q)
        return value, slope / scale

    if not soft_tail:
        return _over_window(sample, charge)
    positives = lowest_tail_weights(sample, min_tpr)
    terms = [
        (i, j, v * u * charge(s - z)[0], v * u * charge(s - z)[1])
        for i, s, v in positives
        for j, z, u in soft_tail_weights(sample)
    ]
    return sample.total(terms, sum(v for _, _, v in positives) * sum(u for _, _, u in soft_tail_weights(sample)))


def soft_tail_weights(sample):
    """Return ``(row, score, weight)`` of the negatives: the integral of ``min(1, b / t)`` over the ranks of each."""
    return falling_weights(sample.negatives, float(sample.b))


def lowest_tail_weights(sample, min_tpr):
    """Return ``(row, score, weight)`` of the positives, ranked from the lowest score."""
    mirrored = [(row, -s, v) for row, s, v in sample.positives]
    return [(row, -s, v) for row, s, v in falling_weights(mirrored, float(sample.m) * (1 - min_tpr))]


def falling_weights(members, b):
    """Return ``(row, score, weight)``: the integral of ``min(1, b / t)`` over the ranks of each, from the top."""
    top, found = 0.0, []
    for row, z, v in sorted(members, key=lambda item: -item[1]):
        bottom = top + v
        inside = max(min(bottom, b) - top, 0.0)
        start = max(top, b)
        found.append((row, z, inside + (b * math.log(bottom / start) if bottom > start else 0.0)))
        top = bottom
    return found


def window_pairs_curvature(scores, y, weight=None, **params):
    """The diagonal of the Hessian for constant weights, by differences of the gradient of each pair."""
    scale, surrogate = params.get("scale", 1.0), params["surrogate"]
    floor, soft_tail = params.get("min_tpr", 0.0), params.get("soft_tail")
    sample = Sample(scores, y, weight, params.get("min_fpr", 0.0), params["max_fpr"], 0.0 if soft_tail else floor)
    positives = sample.positives
    if soft_tail:
        positives, negatives = lowest_tail_weights(sample, floor), soft_tail_weights(sample)
    else:
        negatives = [(row, z, length) for row, z, length, place in sample.pieces if place == INSIDE]
    diagonal = np.zeros(len(sample.scores))
    for i, s, v in positives:
        for j, z, u in negatives:
            t = (s - z) / scale
            q = 1 / (1 + math.exp(t))
            bend = {"sigmoid": q * (1 - q), "squared_hinge": 2.0 * (t < 1)}[surrogate]
            diagonal[[i, j]] += v * u * bend / scale**2
    return diagonal / (sum(v for _, _, v in positives) * sum(u for _, _, u in negatives))


def partial_auc_ramp(scores, y, weight=None, min_fpr=0.0, max_fpr=0.1, width=1.0, margin=None, min_tpr=0.0):
    """The ramp step on the pairs in the window."""
    sample = Sample(scores, y, weight, min_fpr, max_fpr, min_tpr)
    return _over_window(sample, lambda t: ramp_step(t, width, margin))


def _best_prefix(sample, places):
    """For each positive the best ``r``: the largest sum of the first pieces (000 Eq. 19 and 20).

    A piece inside the window counts ``1 - (s_i - z_j)``, one outside ``0 - (s_i - z_j)``. Cutting within a
    piece gains nothing, since a piece has one sign. Of equal sums the shortest prefix is taken.
    """
    terms = []
    for i, s, v in sample.positives:
        best, running, best_prefix, prefix = 0.0, 0.0, [], []
        for j, z, length, place in sample.pieces:
            if place in places:
                value = length * ((1.0 if place == INSIDE else 0.0) - (s - z))
                running += value
                prefix.append((i, j, v * value, v * length))
                if running > best:
                    best, best_prefix = running, list(prefix)
        terms += best_prefix
    return sample.total(terms)


def partial_auc_tight(scores, y, weight=None, min_fpr=0.0, max_fpr=0.1, min_tpr=0.0):
    """The tight structural surrogate: prefixes end at ``b`` (000 Eq. 18 with 19 and 20)."""
    return _best_prefix(Sample(scores, y, weight, min_fpr, max_fpr, min_tpr), (BEFORE, INSIDE))


def partial_auc_structural(scores, y, weight=None, min_fpr=0.0, max_fpr=0.1, min_tpr=0.0):
    """The looser structural surrogate: prefixes run through all negatives (000 Eq. 11)."""
    return _best_prefix(Sample(scores, y, weight, min_fpr, max_fpr, min_tpr), (BEFORE, INSIDE, AFTER))


def partial_auc(scores, y, weight=None, min_fpr=0.0, max_fpr=1.0, tie=0.5, min_tpr=0.0):
    """Share of the pairs in the window with the positive above; a tied pair counts ``tie``."""
    sample = Sample(scores, y, weight, min_fpr, max_fpr, min_tpr)
    return _over_window(sample, lambda t: (1.0 if t > 0 else tie if t == 0 else 0.0, 0.0))[0]


def zero_margin_terms(scores, y, weight=None, min_fpr=0.0, max_fpr=0.1, place=BEFORE):
    """``1/(m (b - a)) sum (z_j - s_i)_+`` over the negatives before or after the window.

    Before it, this is eta of 000 Theorem 7; after it, the extra term of 003 Theorems 1 and 2.
    """
    sample = Sample(scores, y, weight, min_fpr, max_fpr)
    terms = [
        (i, j, v * length * max(0.0, z - s), 0.0)
        for i, s, v in sample.positives
        for j, z, length, where in sample.pieces
        if where == place
    ]
    return sample.total(terms)[0]


def tight_lower_bound(scores, y, weight=None, min_fpr=0.0, max_fpr=0.1):
    """Left side of 000 Theorem 7: hinge plus eta over the positives below every negative before the window.

    The sum of the hinge runs over the window (a misprint in the paper has it run over the ranks before).
    """
    sample = Sample(scores, y, weight, min_fpr, max_fpr)
    last_before = min((z for _, z, _, place in sample.pieces if place == BEFORE), default=math.inf)
    margins = {BEFORE: 0.0, INSIDE: 1.0}
    terms = [
        (i, j, v * length * max(0.0, margins[place] - (s - z)), 0.0)
        for i, s, v in sample.positives
        if s < last_before
        for j, z, length, place in sample.pieces
        if place in margins
    ]
    return sample.total(terms)[0]


# Losses of decisions: one affine function of the scores for each labeling.


def labellings(size):
    """Every vector of ``size`` zeros and ones, one to a row."""
    return np.arange(2**size)[:, None] >> np.arange(size) & 1


def contingency_by_enumeration(y, measure):
    """Errors and coefficients of ``max over labellings of 1 - measure(tp, fp) + (1/m) sum_i (ybar_i - y_i) s_i``.

    Joachims 2005, Eq. 4 with labels in {0, 1}; the loss at ``s`` is ``(errors + coefficients @ s).max()``.
    """
    y = np.asarray(y, dtype=int)
    m, n = int(y.sum()), int((1 - y).sum())
    every = labellings(y.size)
    errors = [1.0 - measure(int(bar @ y), int(bar @ (1 - y)), m, n) for bar in every]
    return np.array(errors), (every - y) / m


def contingency_tables(scores, y, measure, weight=None, parts=0):
    """Values and slopes in a common shift of all tables: ``value + slope * shift``, one row for each ``tp``.

    The best ``tp`` positives and ``fp`` negatives are labeled. A weight is a number of copies: positions are the ends
    of rows, and for ``parts > 0`` also that many positions in between, in equal distances.
    """
    scores, y = np.asarray(scores, dtype=float), np.asarray(y, dtype=bool)
    weight = np.ones(scores.size) if weight is None else np.asarray(weight, dtype=float)
    sides = []
    for rows in (y & (weight > 0), ~y & (weight > 0)):
        order = np.flatnonzero(rows)[np.argsort(-scores[rows])]
        ends = np.append(0.0, np.cumsum(weight[order]))
        sums = np.append(0.0, np.cumsum(weight[order] * scores[order]))
        position = np.union1d(ends, np.linspace(0.0, ends[-1], parts)) if parts else ends
        sides.append((position, np.interp(position, ends, sums), ends[-1], sums[-1]))
    (tp, gain, m, all_positives), (fp, cost, n, _) = sides
    error = 1.0 - measure(tp[:, None], fp[None, :], m, n)
    return error + (gain[:, None] - all_positives + cost[None, :]) / m, (tp[:, None] + fp[None, :] - m) / m


def at_best_shift(value, slope):
    """Minimum over ``b`` of the maximum over tables of ``value + slope * b``, as a linear program in (level, b)."""
    value, slope = np.ravel(value), np.ravel(slope)
    found = linprog([1.0, 0.0], np.column_stack([-np.ones(value.size), slope]), -value, bounds=[(None, None)] * 2)
    if found.status != 0:
        raise AssertionError(found.message)
    return float(found.fun)


def top_reference(y, k, weight=None):
    """The mean over all best labellings of weight ``k``, in units of weight: what precision at k is compared with."""
    y = np.asarray(y, dtype=bool)
    weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=float)
    m, n = weight[y].sum(), weight[~y].sum()
    return weight * np.where(y, min(1.0, k / m), max(0.0, (k - m) / n))


def top_by_enumeration(y, k, reference):
    """Errors and coefficients of precision at a whole ``k``: all labellings with ``k`` positives.

    "best": the factor ``1 / min(k, m)`` and the mean over the best labellings (Kar, Narasimhan, Jain 2015), here as
    a mean over an enumeration; "positives": the factor ``1 / m`` and the positives themselves (Joachims 2005).
    """
    y = np.asarray(y, dtype=int)
    m = int(y.sum())
    every = labellings(y.size)
    every = every[every.sum(1) == k]
    tp = every @ y
    best = every[tp == tp.max()].mean(0)
    compared, scale = (best, 1.0 / min(k, m)) if reference == "best" else (y, 1.0 / m)
    return 1.0 - tp / k, scale * (every - compared)


def top_by_linear_program(scores, y, k, weight=None, reference="best"):
    """Precision at a weight ``k`` that may take parts of rows: a linear program in the labeled part of each row."""
    scores, y = np.asarray(scores, dtype=float), np.asarray(y, dtype=bool)
    weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=float)
    m = weight[y].sum()
    best = reference == "best"
    scale = 1.0 / min(k, m) if best else 1.0 / m
    compared = top_reference(y, k, weight) if best else weight * y
    found = linprog(
        y / k - scale * scores, A_eq=np.ones((1, y.size)), b_eq=[k], bounds=list(zip(0 * weight, weight, strict=True))
    )
    if found.status != 0:
        raise AssertionError(found.message)
    return 1.0 - float(found.fun) - scale * float(compared @ scores)


def top_by_filling(scores, y, k, weight=None):
    """The linear program with the reference "best", to full precision: the best rows first, until ``k`` is full."""
    y = np.asarray(y, dtype=bool)
    weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=float)
    scale = 1.0 / min(k, weight[y].sum())
    gains = [(scale * s - p / k, v) for s, p, v in zip(scores, y, weight, strict=True)]
    room, value = k, 1.0 - scale * float(top_reference(y, k, weight) @ scores)
    for gain, v in sorted(gains, reverse=True):
        value += gain * min(v, room)
        room -= min(v, room)
    return value


# Soft measures of decisions


def soft_step(u):
    """The step of a soft threshold, case by case."""
    if u <= -1:
        return 0.0
    if u <= 0:
        return (1 + u) ** 2 / 2
    if u <= 1:
        return 1 - (1 - u) ** 2 / 2
    return 1.0


def soft_table(scores, y, theta, width, weight=None):
    """Soft weight of the positives and of the negatives above a threshold."""
    weight = [1.0] * len(scores) if weight is None else weight
    table = {True: 0.0, False: 0.0}
    for s, label, v in zip(scores, y, weight, strict=True):
        table[bool(label)] += v * soft_step((s - theta) / (width / 2))
    return table[True], table[False]


def soft_error(scores, y, theta, width, measure, weight=None):
    """One minus a measure of the soft table at a threshold."""
    weight = [1.0] * len(scores) if weight is None else weight
    m = sum(v for label, v in zip(y, weight, strict=True) if label)
    return 1.0 - measure(*soft_table(scores, y, theta, width, weight), m, sum(weight) - m)


def bin_means(scores, y, weight, edges):
    """Scores with each replaced by the weighted mean of its class in its bin."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    means = np.empty(len(y))
    for i in range(len(y)):
        cell = _bin(scores[i], edges)
        members = [k for k in range(len(y)) if y[k] == y[i] and _bin(scores[k], edges) == cell]
        means[i] = sum(weight[k] * scores[k] for k in members) / sum(weight[k] for k in members)
    return means


def bin_ends(scores, y, weight, edges):
    """Scores, labels and weights of two rows for each row, at the ends of its bin, with the same mean."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    rows = []
    for s, label, w in zip(scores, y, weight, strict=True):
        low, high = edges[_bin(s, edges)], edges[_bin(s, edges) + 1]
        share = (s - low) / (high - low)
        rows += [(low, label, w * (1 - share)), (high, label, w * share)]
    rows = [row for row in rows if row[2] > 0]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def _bin(score, edges):
    return max(k for k in range(len(edges) - 1) if edges[k] <= score)
