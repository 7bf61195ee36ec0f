"""What one evaluation of a loss costs, in units of the sorting that no method can avoid.

A loss on a window of false-positive rates has to find the top negatives and order them and the positives: one
``np.partition`` of all scores and one ``np.sort`` of ``m + n * max_fpr`` of them. A loss on all pairs, or on the
contingency table, has to order everything: one ``np.sort`` of the values. ``np.argsort``, what a sort costs that
also says which row is where, is shown beside it. CPU time, one thread, least of several interleaved repeats.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._shared.results import interleaved, markdown, publish
from rocmax.losses import (
    BoundLoss,
    BreakEven,
    Contingency,
    FBeta,
    FreeShift,
    GMean,
    Loss,
    PairwiseHinge,
    PairwiseSquaredHinge,
    PartialAUCHinge,
    PartialAUCRamp,
    PartialAUCStructural,
    PartialAUCTight,
    PrecisionAtK,
)

N_SCORES = 1_000_000
MAX_FPR = 0.05
LIMITS = {"tight [0, 0.05]": 5.0, "F1": 3.0}
WINDOWED = {
    "tight [0, 0.05]": PartialAUCTight(max_fpr=MAX_FPR),
    "tight [0.02, 0.05]": PartialAUCTight(0.02, MAX_FPR),
    "hinge [0.02, 0.05]": PartialAUCHinge(0.02, MAX_FPR),
    "ramp [0, 0.05]": PartialAUCRamp(max_fpr=MAX_FPR),
    "structural [0, 0.05]": PartialAUCStructural(max_fpr=MAX_FPR),
}
FULL = {"pairwise hinge": PairwiseHinge(), "pairwise squared hinge": PairwiseSquaredHinge()}
DECISIONS = {
    "F1": FBeta(),
    "F0.5": FBeta(0.5),
    "F2": FBeta(2.0),
    "F1, scores 0": FBeta(),
    "F1, best shift": FreeShift(FBeta()),
    "G-mean": GMean(),
    "Jaccard, as a function": Contingency(lambda tp, fp, m, n: tp / (m + fp)),
    "precision at 2%": PrecisionAtK(0.02),
    "break-even": BreakEven(),
}
HEADER = ("positives", "loss", "baseline", "baseline ms", "loss ms", "ratio", "requirement")


def make_scores(positives: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian scores, positives 2 higher on average (AUC 0.92), and labels in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(N_SCORES) < positives * N_SCORES
    return rng.standard_normal(N_SCORES) + 2.0 * y, y


def partition_and_sort(scores: np.ndarray, y: np.ndarray) -> None:
    k = round(MAX_FPR * np.count_nonzero(~y))
    np.partition(scores, scores.size - k)
    np.sort(scores[: np.count_nonzero(y) + k])


def evaluation(bound: BoundLoss, scores: np.ndarray) -> Callable[[], object]:
    return lambda: bound.value_and_gradient(scores)


def measure(
    losses: dict[str, Loss], baselines: dict[str, str], positives: float, repeats: int
) -> list[tuple[str, ...]]:
    """Time each loss, and state it in units of its baseline."""
    scores, y = make_scores(positives)
    calls: dict[str, Callable[[], object]] = {
        "partition": lambda: partition_and_sort(scores, y),
        "np.sort": lambda: np.sort(scores),
        "np.argsort": lambda: np.argsort(scores),
    }
    sorts = list(calls)
    for name, loss in losses.items():
        calls[name] = evaluation(loss.bind(y), np.zeros_like(scores) if name.endswith("scores 0") else scores)
    times = interleaved(calls, repeats)
    rows = []
    for name in losses:
        baseline, limit = baselines[name], LIMITS.get(name)
        ratio = times[name] / times[baseline]
        verdict = "" if limit is None else f"< {limit:g} {'PASS' if ratio < limit else 'FAIL'}"
        base_ms, loss_ms = f"{1e3 * times[baseline]:.1f}", f"{1e3 * times[name]:.1f}"
        rows.append((f"{positives:.0%}", name, baseline, base_ms, loss_ms, f"{ratio:.2f}", verdict))
    argsort = times["np.argsort"] / times["np.sort"]
    times_of = (f"{1e3 * times[sort]:.1f}" for sort in sorts[1:])
    return [*rows, (f"{positives:.0%}", "(np.argsort itself)", "np.sort", *times_of, f"{argsort:.2f}", "")]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    quick = parser.parse_args(argv).quick
    with threadpool_limits(1):
        repeats = 5 if quick else 15
        ranking = WINDOWED | FULL
        baselines = {name: "partition" if name in WINDOWED else "np.sort" for name in ranking | DECISIONS}
        rows = [row for positives in (0.1, 0.5) for row in measure(ranking, baselines, positives, repeats)]
        rows += [row for positives in (0.02, 0.5) for row in measure(DECISIONS, baselines, positives, repeats)]
    table = markdown(HEADER, rows)
    print(table)
    publish("loss_cost", "Cost of one loss evaluation, a million scores", [table], quick)


if __name__ == "__main__":
    main()
