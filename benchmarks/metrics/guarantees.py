"""How often a threshold with a guarantee breaks its limit: one limit or several, independent rows or groups of them.

``python -m benchmarks.metrics.guarantees [--samples 1000]`` writes benchmarks/results/guarantees.md. Scores are normal
within each class, so that the rates of a threshold on new rows are known. The rule for groups is compared with the rule
for independent rows, which is right only for independent rows. Peer: ``BinaryClassificationController`` of MAPIE (``pip
install mapie``), on the same rows; without MAPIE, what is kept of its figures is used. Figures are kept in
``results/guarantees.jsonl``, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from rocmax import FPRThresholdClassifier, Limits, LimitThresholdClassifier, TPRThresholdClassifier

Array = NDArray[Any]
CLASSIFIERS = {"FPR": (FPRThresholdClassifier, 1.0), "TPR": (TPRThresholdClassifier, -1.0)}
# In the last setting, this share of the groups is large, and their scores are higher by this number.
LARGE_SHARE, LARGE_SHIFT = 0.1, 1.0
# The setting with fitted models, which takes longer, has a fifth of the samples.
FITTED_SHARE = 0.2


class Score(ClassifierMixin, BaseEstimator):
    """Classifier whose score is its only feature."""

    def fit(self, X: Array, y: Array) -> Score:
        """Store the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Array) -> Array:
        """Return the feature."""
        result: Array = np.asarray(X)[:, 0]
        return result


class Setting(NamedTuple):
    """Sizes of the groups of held-out rows of the class, and the part of the variance that a group shares."""

    sizes: Callable[[np.random.Generator], Array]
    shared: float
    large_differ: bool = False


SETTINGS = {
    "1,000 independent rows": Setting(lambda rng: np.ones(1000, dtype=int), 0.0),
    "100 groups of 20, shared 0.3": Setting(lambda rng: np.full(100, 20), 0.3),
    "400 groups of 20, shared 0.3": Setting(lambda rng: np.full(400, 20), 0.3),
    "400 groups of 20, shared 0.95": Setting(lambda rng: np.full(400, 20), 0.95),
    "400 groups of 1 to about 60, shared 0.5": Setting(lambda rng: 1 + rng.poisson(rng.exponential(10, 400)), 0.5),
    "400 groups of 10 and of 50, large ones score higher": Setting(
        lambda rng: np.where(rng.random(400) < LARGE_SHARE, 50, 10), 0.5, True
    ),
}


def true_error(setting: Setting, threshold: float, rate: str) -> float:
    """Return the share of new rows, or the mean share of new groups, above a threshold."""
    plain, higher = norm.sf(threshold), norm.sf(threshold - LARGE_SHIFT)
    if not setting.large_differ:
        return float(plain)
    large = LARGE_SHARE * 50 / (LARGE_SHARE * 50 + (1 - LARGE_SHARE) * 10) if rate == "row" else LARGE_SHARE
    return float((1 - large) * plain + large * higher)


def violations(name: str, limited: str, limit: float, confidence: float, rate: str, n_samples: int) -> list[float]:
    """Return the share of samples with a threshold beyond the limit, its mean error, and both for independent rows."""
    setting = SETTINGS[name]
    seed = list(SETTINGS).index(name), limited == "TPR", round(1000 * limit), round(1000 * confidence), rate == "group"
    rng = np.random.default_rng(list(map(int, seed)))
    make, sign = CLASSIFIERS[limited]
    found: dict[str, list[float]] = {"groups": [], "rows": []}
    for _ in range(n_samples):
        sizes = setting.sizes(rng)
        groups = np.repeat(np.arange(sizes.size), sizes)
        scores = math.sqrt(setting.shared) * rng.normal(size=sizes.size)[groups]
        scores += math.sqrt(1 - setting.shared) * rng.normal(size=groups.size)
        scores += LARGE_SHIFT * setting.large_differ * (sizes[groups] > 10)
        # One row of the other class, far from the threshold; the sign makes errors of positives those of negatives.
        X = sign * np.append(scores, 40.0)[:, np.newaxis]
        y = np.append(np.zeros(scores.size), 1) if limited == "FPR" else np.append(np.ones(scores.size), 0)
        share = limit if limited == "FPR" else 1 - limit
        for by, given in (("groups", np.append(groups, sizes.size)), ("rows", None)):
            options = {"rate": rate} if by == "groups" else {}
            model = make(Score().fit(X, y), share, confidence=confidence, cv="prefit", **options)
            model.fit(X, y, groups=given)
            found[by].append(true_error(setting, sign * model.threshold_, rate))
    return [
        value
        for errors in found.values()
        for value in (float(np.mean(np.array(errors) > limit)), float(np.mean(errors)))
    ]


def end_to_end(n_samples: int) -> list[float]:
    """Return the same for logistic regression on 400 customers with 20 rows each, 30 % of the customers held out."""
    rng = np.random.default_rng(0)
    shift = np.array([1.0, 0.5, 0.0])
    found: dict[str, list[float]] = {"groups": [], "rows": []}
    for _ in range(n_samples):
        groups = np.repeat(np.arange(400), 20)
        y = (rng.random(groups.size) < 0.2).astype(int)
        X = (
            math.sqrt(0.5) * (rng.normal(size=(400, 3))[groups] + rng.normal(size=(groups.size, 3)))
            + y[:, None] * shift
        )
        for by, given in (("groups", groups), ("rows", None)):
            model = FPRThresholdClassifier(LogisticRegression(), 0.05, confidence=0.95, random_state=rng.integers(1000))
            model.fit(X, y, groups=given)
            weights = model.estimator_.coef_[0]
            at = (model.threshold_ - model.estimator_.intercept_[0]) / np.linalg.norm(weights)
            found[by].append(float(norm.sf(at)))
    return [
        value
        for errors in found.values()
        for value in (float(np.mean(np.array(errors) > 0.05)), float(np.mean(errors)))
    ]


# Limits of all kinds, alone and together.


class Case(NamedTuple):
    """Limits, and the rows they are chosen on: number, share of positives, their distance, and what is special."""

    limits: Limits
    n: int = 2000
    share: float = 0.1
    distance: float = 2.0
    special: str = ""


# With 10 % of positives at a distance of 2, the threshold 2.1 has an FPR of 0.018, a precision of 0.74 and
# 6.2 % of alerts; so all limits are reached at about the same threshold.
ALL = {"max_fpr": 0.018, "min_precision": 0.74, "capacity": 0.062}
CASES = {
    "FPR <= 0.05": Case(Limits(max_fpr=0.05)),
    "FPR <= 0.05, ties": Case(Limits(max_fpr=0.05), special="ties"),
    "TPR >= 0.8": Case(Limits(min_tpr=0.8)),
    "precision >= 0.5": Case(Limits(min_precision=0.5)),
    "precision >= 0.5, ties": Case(Limits(min_precision=0.5), special="ties"),
    "precision >= 0.8": Case(Limits(min_precision=0.8)),
    "precision >= 0.1, 2 % of positives": Case(Limits(min_precision=0.1), 5000, 0.02),
    "precision >= 0.5, highest scores are negatives": Case(Limits(min_precision=0.5), 2000, special="outliers"),
    "precision >= 0.3, groups of 10": Case(Limits(min_precision=0.3), special="groups"),
    "precision >= 0.5, held out from a table": Case(Limits(min_precision=0.5), 5000, special="stratified"),
    "alerts <= 0.05": Case(Limits(capacity=0.05)),
    "alerts <= 0.05, groups of 10": Case(Limits(capacity=0.05), special="groups"),
    "FPR <= 0.018 and precision >= 0.74": Case(Limits(max_fpr=0.018, min_precision=0.74)),
    "the same and alerts <= 0.062": Case(Limits(**ALL)),
    "the same, ties": Case(Limits(**ALL), special="ties"),
    "FPR <= 0.1 and precision >= 0.3, groups of 10": Case(Limits(max_fpr=0.1, min_precision=0.3), special="groups"),
    "TPR >= 0.75 and FPR <= 0.14": Case(Limits(min_tpr=0.75, max_fpr=0.14)),
    "TPR >= 0.8, precision >= 0.25, alerts <= 0.25": Case(Limits(min_tpr=0.8, min_precision=0.25, capacity=0.25), 4000),
    "FPR <= 0.05 for each of 5 values": Case(Limits(max_fpr=0.05, per="part"), 4000),
    "precision >= 0.5 for each of 3 values": Case(Limits(min_precision=0.5, per="part"), 6000),
    "FPR <= 0.05, block: precision >= 0.8": Case(Limits(max_fpr=0.05, block=Limits(min_precision=0.8)), 8000),
}
CONFIDENCE = 0.95
# Steps between tied scores; share and scores of negative outliers; differences between values of a column.
STEP, OUTLIERS, OUTLYING, SHIFT = 0.25, 0.005, 6.0, 0.5


def sample(case: Case, rng: np.random.Generator) -> tuple[Any, Array, Array | None]:
    """Return rows with their score as the first column, labels, and groups."""
    y = (rng.random(case.n) < case.share).astype(int)
    scores, groups = rng.normal(size=case.n), None
    if case.special == "groups":
        groups = np.repeat(np.arange(case.n // 10), 10)
        odds = rng.beta(case.share * 3, (1 - case.share) * 3, case.n // 10)
        y = (rng.random(case.n) < odds[groups]).astype(int)
        scores = math.sqrt(0.5) * (scores + rng.normal(size=case.n // 10)[groups])
    scores += case.distance * y
    if case.special == "outliers":
        outlying = rng.random(case.n) < OUTLIERS
        y[outlying], scores[outlying] = 0, OUTLYING + 0.1 * rng.normal(size=np.count_nonzero(outlying))
    if case.special == "ties":
        scores = STEP * np.round(scores / STEP)
    if case.special == "stratified":
        every = held_out_rows(y, rng)
        y, scores = y[every], scores[every]
    if case.limits.column is None:
        return scores[:, np.newaxis], y, groups
    part = rng.integers(number_of_values(case), size=case.n)
    return pd.DataFrame({"score": scores + SHIFT * part, "part": part}), y, groups


def held_out_rows(y: Array, rng: np.random.Generator) -> Array:
    """Return half of the rows of each class."""
    return np.concatenate([rng.permutation(np.flatnonzero(y == side))[: np.sum(y == side) // 2] for side in (0, 1)])


def number_of_values(case: Case) -> int:
    """Return the number of values of the column of a case."""
    return 5 if case.limits.max_fpr is not None else 3


def true_rates(case: Case, threshold: float, part: int = 0) -> dict[str, float]:
    """Return the rates of a threshold on new rows, by the limits on them; the precision is 1 without alerts."""
    at = threshold - SHIFT * part
    if case.special == "ties":
        at = STEP * (math.floor(at / STEP) + 0.5)
    tpr, fpr = float(norm.sf(at - case.distance)), float(norm.sf(at))
    tp, fp = case.share * tpr, (1 - case.share) * fpr
    if case.special == "outliers":
        tp, fp = (1 - OUTLIERS) * tp, (1 - OUTLIERS) * fp + OUTLIERS * float(norm.sf(at, OUTLYING, 0.1))
    precision = tp / (tp + fp) if tp + fp else 1.0
    return {"max_fpr": fpr, "min_tpr": tpr, "min_precision": precision, "capacity": tp + fp}


def is_broken(limits: Limits, rates: dict[str, float]) -> bool:
    """Return whether one of the limits is broken."""
    return rates["min_tpr"] < limits.min_tpr or any(
        rates[name] < value if name == "min_precision" else rates[name] > value
        for name, value in limits.on_alerts.items()
    )


def limit_figures(name: str, n_samples: int) -> list[float]:
    """Return the shares of samples with a broken limit and without a threshold, and the mean TPR without these."""
    case, rng = CASES[name], np.random.default_rng(list(CASES).index(name))
    limits, broken, refused, tprs = replace(case.limits, confidence=CONFIDENCE), 0, 0, []
    for _ in range(n_samples):
        X, y, groups = sample(case, rng)
        try:
            model = LimitThresholdClassifier(Score().fit(X, y), limits, cv="prefit").fit(X, y, groups=groups)
        except ValueError:
            refused += 1
            continue
        if limits.column is None:
            found = [true_rates(case, model.threshold_)]
        else:
            found = [true_rates(case, at, int(part)) for part, at in model.thresholds_.items()]
        wrong = any(is_broken(limits, rates) for rates in found)
        if limits.block is not None:
            wrong = wrong or is_broken(limits.block, true_rates(case, model.block_threshold_))
        broken += wrong
        tprs.append(np.mean([rates["min_tpr"] for rates in found]))
    return [broken / n_samples, refused / n_samples, float(np.mean(tprs))]


# The peer.


N_NEGATIVE, N_POSITIVE, PEER_LIMIT = 1000, 100, 0.01
# Procedures and numbers of thresholds from 1 to 4 in which the peer searches; rocmax has no such settings.
PEERS = [("fixed_sequence", size) for size in (30, 100, 1000)] + [
    (method, size) for method in ("bonferroni_holm", "bonferroni") for size in (30, 100)
]
# A setting takes up to a quarter of a second per sample, so there are fewer of them.
PEER_SHARE = 0.25


def peer_figures(method: str, size: int, n_samples: int) -> list[float] | None:
    """Return the share of violations and the mean TPR at an FPR limit; None without MAPIE."""
    try:
        from mapie.risk_control import BinaryClassificationController
    except ImportError:
        if method != "rocmax":
            print("MAPIE is missing: pip install mapie")
            return None
    rng, found = np.random.default_rng(99), []
    y = np.repeat([0, 1], [N_NEGATIVE, N_POSITIVE])
    for _ in range(n_samples):
        scores = rng.normal(size=y.size) + 2.0 * y
        if method == "rocmax":
            X = scores[:, np.newaxis]
            model = FPRThresholdClassifier(Score().fit(X, y), PEER_LIMIT, confidence=CONFIDENCE, cv="prefit").fit(X, y)
            found.append(model.threshold_)
            continue
        grid = norm.cdf(np.linspace(1, 4, size))
        peer = BinaryClassificationController(
            lambda p: np.column_stack([1 - p, p]),
            "fpr",
            PEER_LIMIT,
            confidence_level=CONFIDENCE,
            list_predict_params=grid,
            fwer_method=method,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer.calibrate(norm.cdf(scores), y)
        best = peer.best_predict_param
        found.append(math.inf if best is None else float(norm.ppf(best)))
    at = np.array(found)
    return [float(np.mean(norm.sf(at) > PEER_LIMIT)), float(np.mean(norm.sf(at - 2.0)))]


def work(name: str, *job: Any) -> list[float] | None:
    """Return the figures of one line."""
    if name in CASES:
        return limit_figures(name, *job)
    if name == "peer":
        return peer_figures(*job)
    return end_to_end(*job) if name == "end to end" else violations(name, *job)


def main() -> None:
    """Simulate what is not there yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000, help="samples of each case with one limit on a rate")
    parser.add_argument("--limit-samples", type=int, default=2000, help="samples of each case with limits of all kinds")
    options = parser.parse_args()
    n_samples, n_limits = options.samples, options.limit_samples
    cases = [(limited, 0.05, 0.95, "row") for limited in CLASSIFIERS] + [
        ("FPR", 0.1, 0.8, "row"),
        ("FPR", 0.05, 0.95, "group"),
    ]
    jobs: list[tuple[Any, ...]] = [
        (name, *case, n_samples)
        for name in SETTINGS
        for case in cases
        if not (name.startswith("1,000") and case[-1] == "group")
    ]
    jobs.append(("end to end", round(FITTED_SHARE * n_samples)))
    n_peer = round(PEER_SHARE * n_limits)
    peers = [("peer", *peer, n_peer) for peer in [("rocmax", 0), *PEERS]]
    found, seconds = kept("guarantees", [*jobs, *((name, n_limits) for name in CASES), *peers], work)
    lines = []
    for job in jobs:
        name, limited, limit, confidence, rate = job[:5] if len(job) > 2 else ("end to end", "FPR", 0.05, 0.95, "row")
        figures = [f"{100 * value:.1f}" if i % 2 == 0 else f"{100 * value:.2f}" for i, value in enumerate(found[job])]
        kept_limit = f"FPR <= {limit:g}" if limited == "FPR" else f"TPR >= {1 - limit:g}"
        lines.append([name, f"{kept_limit}, per {rate}", f"{confidence:g}", f"{100 * (1 - confidence):.0f}", *figures])
    header = ["held-out rows of the class", "limit", "confidence", "allowed", "violations, groups", "mean error"]
    header += ["violations, independent rows", "mean error"]
    publish("guarantees", "Violations of the limits of thresholds with a guarantee", [
        running_time(seconds),
        f"`python -m benchmarks.metrics.guarantees --samples {n_samples} --limit-samples {n_limits}`. All figures are "
        "percentages. A violation is a threshold whose error rate on new rows, which is known, is above the limit; "
        "`allowed` is 1 - confidence.",
        "## Limits of all kinds, alone and together",
        f"`LimitThresholdClassifier` in {n_limits:,} samples of each case, with confidence {CONFIDENCE:g}: at most "
        f"{100 * (1 - CONFIDENCE):.0f} % of the samples may break a limit, of several limits any. A sample is refused "
        "if no threshold keeps the limits with this confidence; the mean TPR is that of the others, and violations are "
        "a share of all samples, as in the guarantee. 2,000 to 8,000 "
        "rows with 10 % of positives, if not said otherwise; their scores are higher by 2 standard deviations. With "
        "`ties`, scores are rounded to a quarter of one. Where the highest scores are negatives, 0.5 % of the rows, "
        "precision first rises as the threshold falls. `held out from a table`: half of the rows of each class. With "
        "groups, half of the variance of the scores is shared, and the share of positives differs between groups. "
        "Weights have no guarantee, so they are refused with a confidence.",
        markdown(
            ["limits", "violations", "refused", "mean TPR"],
            [[name, *(f"{100 * value:.1f}" for value in found[name, n_limits])] for name in CASES],
        ),
        "## Next to MAPIE",
        f"`BinaryClassificationController` of MAPIE with an FPR of at most {100 * PEER_LIMIT:g} %, on the same "
        f"{N_NEGATIVE:,} negatives and {N_POSITIVE} positives in {n_peer} samples, with each procedure against "
        "multiple testing and numbers of candidate thresholds, between the scores 1 and 4. `split_fixed_sequence`, "
        "which takes seconds per sample, is left out.",
        markdown(
            ["procedure", "thresholds", "violations", "mean TPR"],
            [
                ["rocmax" if job[1] == "rocmax" else f"MAPIE, {job[1]}", f"{job[2]:,}" if job[2] else "all"]
                + [f"{100 * value:.1f}" for value in found[job]]
                for job in peers
                if job in found
            ],
        ),
        "## One limit on a rate, with groups",
        f"{n_samples} samples of each setting. The error rate is the false-positive rate, or the share of missed "
        "positives. `groups`: the threshold of `fit(X, y, groups=...)`; `independent rows`: the threshold without "
        "groups, which has a guarantee only in the first setting. `shared` is the part of the variance of the scores "
        "that the rows of a group share. In the last but one setting, a tenth of the groups are large, and their "
        f"scores are higher by {LARGE_SHIFT:g}. `end to end` is logistic regression on 400 customers with 20 rows "
        "each, of whom 30 % are held out, and half of the variance of each feature is shared; "
        f"{round(FITTED_SHARE * n_samples)} samples.",
        markdown(header, lines),
        "A guarantee per row must allow for few large groups that differ from all others, so its threshold is far from "
        "the limit if the sizes are very different; see the mean errors. So it is with few groups: a limit of 5 % at a "
        "confidence of 95 % requires at least 59.",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
