"""Choice of the size of the trees, the number of rounds and the objective by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score

from rocmax._typing import Array, Bools
from rocmax._validate import TrainingSet
from rocmax.backends.boosting import DATA, TreeData, Trees, TreeSettings, window_objective
from rocmax.estimators._splits import Split
from rocmax.measures import Measure
from rocmax.metrics.areas import partial_auc, roc_auc
from rocmax.metrics.curve import score_blocks

# Held-out score of a candidate: labels, scores, weights.
Score = Callable[[Bools, Array, "Array | None"], float]

# The partial AUC is averaged over these fractions of the largest false-positive rate: a mean over several windows
# depends on more rows than the window itself, and selects about as well.
_WINDOW_SHARES = (0.1, 0.2, 0.5, 1.0)
_LEAST_WINDOW = 0.1
# Rounds between two evaluations, and rounds without a better score after which a candidate is given up.
STEP, _PATIENCE = 20, 100


def selection_score(measure: Measure) -> Score:
    """Return the score by which candidates are compared: a smooth relative of the measure.

    For the partial AUC and the TPR at an FPR, it is the mean of the partial AUC from 0 to 0.1, 0.2, 0.5 and 1 times the
    largest FPR, or 0.1 if that is larger. For the AUC and the G-mean, it is the AUC; for the precision at k, the
    break-even point and F-beta, the average precision.
    """
    if measure.name in ("partial_auc", "tpr_at_fpr"):
        top = max(_LEAST_WINDOW, float(measure.params["max_fpr"]))
        return lambda y, s, w: _mean_partial_auc(y, s, w, top)
    if measure.name in ("roc_auc", "g_mean"):
        return lambda y, s, w: float(roc_auc(score_blocks(y, s, w, True).curve()))
    return lambda y, s, w: float(average_precision_score(y, s, sample_weight=w))


def _mean_partial_auc(y: Bools, scores: Array, weight: Array | None, top: float) -> float:
    curve = score_blocks(y, scores, weight, True).curve()
    return float(
        np.mean(
            [
                partial_auc(curve, min_fpr=0.0, max_fpr=share * top, standardize=False, definition="area")
                for share in _WINDOW_SHARES
            ]
        )
    )


class Plan(NamedTuple):
    """What is fixed for all candidates: engine, columns, learning rate and limits."""

    engine: str
    categorical: list[int]
    monotonic: list[int] | None
    n_jobs: int | None
    learning_rate: float
    max_rounds: int
    subsample: bool
    seed: int

    def data(self, data: TrainingSet, rows: Any = slice(None)) -> TreeData:
        """Return some rows of the training set in the format of the engine."""
        weight = None if data.weight is None else data.weight[rows]
        return DATA[self.engine](
            data.X[rows], data.positive[rows], weight, self.categorical, self.monotonic, self.n_jobs
        )

    def start(self, rows: TreeData, max_leaf_nodes: int, warm_up: int | None, seed: int) -> Trees:
        """Return an ensemble without trees, for the logistic loss or, with ``warm_up``, the window objective."""
        objective = None if warm_up is None else window_objective(rows.positive, rows.weight, warm_up)
        settings = TreeSettings(max_leaf_nodes, self.learning_rate, seed, self.subsample)
        return rows.start(settings, objective)


@dataclass
class Candidate:
    """Size of the trees and objective, with held-out scores by number of rounds.

    Parameters
    ----------
    max_leaf_nodes : int
        Largest number of leaves of a tree.
    warm_up : int or None
        Rounds of the logistic loss before those of the window objective; None for the logistic loss only.
    """

    max_leaf_nodes: int
    warm_up: int | None = None
    rounds: list[int] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)
    held_out: list[Array] = field(default_factory=list)

    @property
    def objective(self) -> str:
        """Name of the objective."""
        return "binary" if self.warm_up is None else "window"

    @property
    def means(self) -> list[float]:
        """Mean score over the folds, by number of rounds."""
        return [float(np.mean(scores)) for scores in self.scores]

    @property
    def best(self) -> int:
        """Index of the best number of rounds."""
        return int(np.argmax(self.means))

    @property
    def score(self) -> float:
        """Mean score of the best number of rounds."""
        return self.means[self.best]

    @property
    def n_rounds(self) -> int:
        """Best number of rounds."""
        return self.rounds[self.best]


class Folds:
    """The folds of a search; the bins of the features are computed once for all candidates."""

    def __init__(self, data: TrainingSet, splits: list[Split], plan: Plan, score: Score) -> None:
        self._data, self._splits, self._plan, self._score = data, splits, plan, score
        self._train = [plan.data(data, train) for train, _ in splits]
        self.growth = float(np.mean([data.positive.size / train.size for train, _ in splits]))

    def try_out(self, candidate: Candidate, max_rounds: int, only_last: bool = False) -> Candidate:
        """Fit a candidate to all folds, up to a number of rounds or until its score no longer improves."""
        plan = self._plan
        trees = [
            plan.start(rows, candidate.max_leaf_nodes, candidate.warm_up, plan.seed + k)
            for k, rows in enumerate(self._train)
        ]
        held_out = [np.zeros(test.size) for _, test in self._splits]
        done = 0
        while done < max_rounds and not (candidate.rounds and done - candidate.n_rounds >= _PATIENCE):
            step = min(max_rounds if only_last else STEP, max_rounds - done)
            if not self._grow(trees, held_out, step) and candidate.rounds:
                break
            done += step
            candidate.rounds.append(done)
            candidate.scores.append([self._score_of(k, scores) for k, scores in enumerate(held_out)])
            if candidate.best == len(candidate.rounds) - 1:
                candidate.held_out = [scores.copy() for scores in held_out]
        return candidate

    def _grow(self, trees: list[Trees], held_out: list[Array], step: int) -> bool:
        """Add rounds to the ensembles of all folds and to the held-out scores; return whether a tree was added."""
        grown = False
        for ensemble, scores, (_, test) in zip(trees, held_out, self._splits, strict=True):
            first = ensemble.n_rounds
            ensemble.grow(step)
            scores += ensemble.scores(self._data.X[test], first)
            grown |= ensemble.n_rounds > first
        return grown

    def _score_of(self, k: int, scores: Array) -> float:
        test = self._splits[k][1]
        weight = None if self._data.weight is None else self._data.weight[test]
        return self._score(self._data.positive[test], scores, weight)

    def held_out_rows(self) -> Any:
        """Return the held-out rows of all folds, in the order of the held-out scores."""
        return np.concatenate([test for _, test in self._splits])
