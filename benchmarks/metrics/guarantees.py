"""How often a threshold with a guarantee breaks its limit, with independent rows and with groups of dependent rows.

``python -m benchmarks.metrics.guarantees [--samples 1000]`` writes benchmarks/results/guarantees.md. Scores are normal
within each class, so that the rates of a threshold on new rows are known. The rule for groups is compared with the rule
for independent rows, which is right only for independent rows. Figures are kept in ``results/guarantees.jsonl``, so an
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from rocmax import FPRThresholdClassifier, TPRThresholdClassifier

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
        result: Array = X[:, 0]
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


def work(name: str, *job: Any) -> list[float]:
    """Return the figures of one line."""
    return end_to_end(*job) if name == "end to end" else violations(name, *job)


def main() -> None:
    """Simulate what is not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000, help="samples of each case")
    n_samples = parser.parse_args().samples
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
    found, seconds = kept("guarantees", jobs, work)
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
        f"`python -m benchmarks.metrics.guarantees --samples {n_samples}`: {n_samples} samples of each setting. All "
        "figures are percentages. A violation is a threshold whose error rate on new rows, which is known, is above "
        "the limit; `allowed` is 1 - confidence. The error rate is the false-positive rate, or the share of missed "
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
