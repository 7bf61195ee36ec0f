"""Search of the boosted trees: candidates, their order, and the choice of size, rounds and objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from sklearn.metrics import average_precision_score

from rocmax._folds import Split
from rocmax._support import Array, Bools
from rocmax._validation import TrainingSet
from rocmax.boosted.engines import DATA, GrowingTrees, TreeData, TreeSettings
from rocmax.boosted.objective import TreeObjective
from rocmax.losses import Loss, WindowPairs
from rocmax.measures import CornerMeasure, Measure
from rocmax.metrics.curve import score_blocks
from rocmax.metrics.scores import partial_auc, roc_auc

AUTO = "auto"
# Held-out score of a candidate: labels, scores, weights.
Score = Callable[[Bools, Array, "Array | None"], float]


@dataclass(frozen=True)
class BoostedRules:
    """Numbers of the search; benchmarks/results/boosted_ablation.md has what the rules gain."""

    # Sizes of trees to try, and the size and number of rounds without cross-validation.
    sizes: tuple[int, ...] = (6, 31)
    default_size: int = 31
    default_rounds: int = 200
    # Fewer rows than this cannot be split by a tree of LightGBM, whose leaves have at least 20 rows.
    least_rows: int = 40
    # Learning rate of the search, and the largest product of learning rate and number of rounds. If all folds are used,
    # the models divide the rate by one number and multiply the rounds by the other: fewer than for the same sum of
    # steps, which loses nothing because the models learn from more rows. The second multiple is that for the average
    # precision, to which more rounds do no harm.
    rate: float = 0.1
    most_shrinkage: float = 25.0
    finer: int = 2
    finer_rounds: tuple[float, float] = (1.6, 2.2)
    # Rounds between two evaluations, and rounds without a better score after which a candidate is dropped.
    step: int = 10
    patience: int = 70
    # The score is the partial AUC up to at least this FPR: a narrower window has few rows and selects worse. Above a
    # TPR it is averaged over ranges of TPRs larger by these factors, because few positives are above the TPR.
    least_window: float = 0.1
    floor_multiples: tuple[int, ...] = (1, 2, 5)
    # Largest FPR for which the window objective, which concentrates on this share of the negatives, is tried.
    window_limit: float = 0.1
    window_share: float = 0.05
    # It starts after this share of the rounds that the logistic loss needs, and has at most this multiple of them. It
    # is tried on so many folds, and on the next ones as long as it is ahead of the logistic loss. (For the sizes, which
    # take less time, two folds decide too badly.)
    warm_up: float = 0.25
    window_rounds: float = 1.5
    first_folds: int = 2


RULES = BoostedRules()


def selection_score(measure: Measure) -> Score:
    """Return the score by which candidates are compared: a smooth relative of the measure.

    For the partial AUC and the TPR at an FPR, it is the partial AUC up to that FPR, or up to 0.1 if that is larger.
    Above a TPR, it is the mean over 1, 2 and 5 times the range of TPRs. For the AUC and the G-mean, it is the AUC; for
    the precision at k, the break-even point and F-beta, the average precision, which is its own score.
    """
    if isinstance(measure, CornerMeasure):
        return lambda y, s, w: _corner_score(y, s, w, measure)
    if measure.name in ("roc_auc", "g_mean"):
        return lambda y, s, w: float(roc_auc(score_blocks(y, s, w, True).curve()))
    return lambda y, s, w: float(average_precision_score(y, s, sample_weight=w))


def has_floor(measure: Measure) -> TypeGuard[CornerMeasure]:
    """Return whether a measure is the partial AUC above a true-positive rate."""
    return isinstance(measure, CornerMeasure) and measure.min_tpr > 0


def _corner_score(y: Bools, scores: Array, weight: Array | None, measure: CornerMeasure) -> float:
    curve = score_blocks(y, scores, weight, True).curve()
    limit, height = max(RULES.least_window, float(measure.max_fpr)), 1.0 - measure.min_tpr
    multiples = RULES.floor_multiples if has_floor(measure) else (1,)
    floors = [max(0.0, 1.0 - multiple * height) for multiple in multiples]
    return float(np.mean([partial_auc(curve, max_fpr=limit, min_tpr=floor) for floor in floors]))


class Plan(NamedTuple):
    """What is fixed for all candidates: parameters of the trees, seed, limit of the rounds, window objective's loss."""

    settings: TreeSettings
    max_rounds: int
    seed: int
    loss: Loss | None

    def data(self, data: TrainingSet, rows: Any = slice(None)) -> TreeData:
        """Return some rows of the training set in the format of the engine."""
        weight = None if data.weight is None else data.weight[rows]
        return DATA[self.settings.engine](data.X[rows], data.positive[rows], weight, self.settings)

    def start(self, rows: TreeData, max_leaf_nodes: int, warm_up: int | None, seed: int) -> GrowingTrees:
        """Return an ensemble without trees, for the logistic loss or, with ``warm_up``, the window objective."""
        objective = None if warm_up is None else TreeObjective(rows.positive, rows.weight, warm_up, self.loss)
        return rows.start(max_leaf_nodes, self.seed + seed, objective)


@dataclass
class Candidate:
    """Size of the trees and objective, with the number of rounds that has the largest mean score over the folds.

    ``warm_up`` is the number of rounds of the logistic loss before those of the window objective; None for the logistic
    loss only. ``scores`` and ``trees`` are those of the folds on which it was tried.
    """

    max_leaf_nodes: int
    warm_up: int | None = None
    n_rounds: int = 0
    score: float = -np.inf
    scores: list[float] = field(default_factory=list)
    trees: list[GrowingTrees] = field(default_factory=list)

    @property
    def objective(self) -> str:
        """Name of the objective."""
        return "binary" if self.warm_up is None else "window"


class Folds:
    """The folds of a search; the bins of the features are computed once for all candidates."""

    def __init__(self, data: TrainingSet, splits: list[Split], plan: Plan, score: Score) -> None:
        self._data, self._splits, self._plan, self._score = data, splits, plan, score
        self._train = [plan.data(data, train) for train, _ in splits]

    def try_out(self, candidate: Candidate, rounds: list[int], rival: Candidate | None = None) -> Candidate:
        """Fit a candidate to all folds, until its score no longer improves; it is evaluated after these rounds.

        With a rival, the folds after the first ones come one by one, as long as the candidate is ahead of it. If it is
        not, its score is that of the rival plus the difference.
        """
        n_folds = len(self._splits)
        first = n_folds if rival is None else min(RULES.first_folds, n_folds)
        curves = self._curves(candidate, range(first), rounds, RULES.patience)
        for k in range(first, n_folds):
            if rival is None or curves.mean(axis=1).max() <= np.mean(rival.scores[:k]):
                break
            curves = np.hstack([curves, self._curves(candidate, range(k, k + 1), rounds[: len(curves)], rounds[-1])])
        best, n_tried = int(curves.mean(axis=1).argmax()), curves.shape[1]
        candidate.n_rounds, candidate.scores = rounds[best], curves[best].tolist()
        candidate.score = float(np.mean(candidate.scores))
        if rival is not None and n_tried < n_folds:
            # Not above that of the rival by a rounding error.
            candidate.score = rival.score + min(0.0, candidate.score - float(np.mean(rival.scores[:n_tried])))
        return candidate

    def _curves(self, candidate: Candidate, numbers: range, rounds: list[int], patience: int) -> Array:
        """Fit a candidate to some folds; return the held-out score of each fold after the rounds, in rows.

        There are fewer rows if the best mean is followed by ``patience`` rounds.
        """
        start, shape = self._plan.start, (candidate.max_leaf_nodes, candidate.warm_up)
        trees = [start(self._train[k], *shape, k) for k in numbers]
        held_out = [np.zeros(self._splits[k][1].size) for k in numbers]
        candidate.trees += trees
        curves: list[list[float]] = []
        for done, wanted in pairwise([0, *rounds]):
            for k, ensemble, scores in zip(numbers, trees, held_out, strict=True):
                first = ensemble.n_rounds
                ensemble.grow(wanted - done)
                scores += ensemble.scores(self._data.X[self._splits[k][1]], first)
            curves.append([self._score_of(k, scores) for k, scores in zip(numbers, held_out, strict=True)])
            if wanted - rounds[int(np.mean(curves, axis=1).argmax())] >= patience:
                break
        return np.array(curves)

    def held_out(self, candidate: Candidate) -> Array:
        """Return the scores of the held-out rows of all folds."""
        scores = [
            ensemble.scores(self._data.X[test], 0, candidate.n_rounds)
            for ensemble, (_, test) in zip(candidate.trees, self._splits, strict=True)
        ]
        return np.concatenate(scores)

    def _score_of(self, k: int, scores: Array) -> float:
        test = self._splits[k][1]
        weight = None if self._data.weight is None else self._data.weight[test]
        return self._score(self._data.positive[test], scores, weight)

    def held_out_rows(self) -> Any:
        """Return the held-out rows of all folds, in the order of the held-out scores."""
        return np.concatenate([test for _, test in self._splits])


def untried(max_leaf_nodes: int | str, n_estimators: int | str, objective: str, most: int) -> Candidate:
    """Return the choice without cross-validation."""
    size = RULES.default_size if max_leaf_nodes == AUTO else int(max_leaf_nodes)
    rounds = min(RULES.default_rounds, most) if n_estimators == AUTO else int(n_estimators)
    return Candidate(size, max(1, round(RULES.warm_up * rounds)) if objective == "window" else None, rounds)


def choose(
    folds: Folds,
    plan: Plan,
    max_leaf_nodes: int | str,
    n_estimators: int | str,
    objective: str,
    measure: Measure,
    report: Callable[[Candidate], None],
) -> Candidate:
    """Return the best size of the trees, number of rounds and objective; ``report`` gets each candidate tried."""

    def tried(candidate: Candidate, most: int, rival: Candidate | None = None) -> Candidate:
        rounds = [*range(RULES.step, most, RULES.step), most] if n_estimators == AUTO else [most]
        report(folds.try_out(candidate, rounds, rival))
        return candidate

    sizes = RULES.sizes if max_leaf_nodes == AUTO else (int(max_leaf_nodes),)
    best = max((tried(Candidate(size), plan.max_rounds) for size in sizes), key=lambda candidate: candidate.score)
    if objective == "binary" or (objective == AUTO and not _is_narrow(measure)):
        return best
    warm_up = max(1, round(RULES.warm_up * best.n_rounds))
    most = plan.max_rounds if n_estimators != AUTO else round(RULES.window_rounds * best.n_rounds)
    window = tried(Candidate(best.max_leaf_nodes, warm_up), most, best if objective == AUTO else None)
    return window if objective == "window" or window.score > best.score else best


def window_loss(measure: Measure) -> Loss | None:
    """Return the loss of the window objective above a true-positive rate; None for the default."""
    if not has_floor(measure):
        return None
    limit = RULES.window_share if _is_low(measure) else 1.0
    return WindowPairs("sigmoid", max_fpr=limit, soft_tail=True, scale=2.0, min_tpr=measure.min_tpr)


def _is_narrow(measure: Measure) -> bool:
    """Return whether a measure depends on low false-positive or high true-positive rates only."""
    return has_floor(measure) or _is_low(measure)


def _is_low(measure: Measure) -> bool:
    """Return whether a measure depends on low false-positive rates only."""
    return isinstance(measure, CornerMeasure) and measure.max_fpr <= RULES.window_limit
