"""Search of the boosted trees: candidates, their order, and the choice of size, rounds and objective."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from rocmax._folds import FOLD_RULES, Split, check_splits, most_folds, search_folds, standard_error
from rocmax._support import Array, Bools
from rocmax._validation import TrainingSet
from rocmax.boosted.engines import DATA, TreeData, Trees, TreeSettings, window_objective
from rocmax.losses import Loss, WindowPairs
from rocmax.measures import CornerMeasure, Measure
from rocmax.metrics.curve import score_blocks
from rocmax.metrics.scores import partial_auc, roc_auc

# Choice of the size of the trees, the number of rounds and the objective by cross-validation.


# Held-out score of a candidate: labels, scores, weights.
Score = Callable[[Bools, Array, "Array | None"], float]

# The partial AUC is averaged over these fractions of the largest false-positive rate: a mean over several windows
# depends on more rows than the window itself, and selects about as well.
_WINDOW_SHARES = (0.1, 0.2, 0.5, 1.0)
_LEAST_WINDOW = 0.1
# Above a true-positive rate, it is averaged over ranges of the rates that are larger by these factors, as few positives
# are above the rate.
_FLOOR_MULTIPLES = (1, 2, 5)
# Rounds between two evaluations, evaluations in a moving average, and rounds without a better score after which a
# candidate is dropped.
_STEP, _AVERAGED, _PATIENCE = 10, 5, 100
# Distance from the best score, in standard errors, within which the logloss decides.
_CLOSE = 0.25


def selection_score(measure: Measure) -> Score:
    """Return the score by which candidates are compared: a smooth relative of the measure.

    For the partial AUC and the TPR at an FPR, it is the mean of the partial AUC from 0 to 0.1, 0.2, 0.5 and 1 times the
    largest FPR, or 0.1 if that is larger. Above a TPR, it is the mean over 1, 2 and 5 times the range of TPRs. For the
    AUC and the G-mean, it is the AUC; for the precision at k, the
    break-even point and F-beta, the average precision.
    """
    if has_floor(measure):
        return lambda y, s, w: _mean_above_tpr(y, s, w, measure)
    if isinstance(measure, CornerMeasure):
        top = max(_LEAST_WINDOW, float(measure.max_fpr))
        return lambda y, s, w: _mean_partial_auc(y, s, w, top)
    if measure.name in ("roc_auc", "g_mean"):
        return lambda y, s, w: float(roc_auc(score_blocks(y, s, w, True).curve()))
    return lambda y, s, w: float(average_precision_score(y, s, sample_weight=w))


def has_floor(measure: Measure) -> TypeGuard[CornerMeasure]:
    """Return whether a measure is the partial AUC above a true-positive rate."""
    return isinstance(measure, CornerMeasure) and measure.min_tpr > 0


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


def _mean_above_tpr(y: Bools, scores: Array, weight: Array | None, measure: CornerMeasure) -> float:
    curve = score_blocks(y, scores, weight, True).curve()
    limit, height = max(_LEAST_WINDOW, measure.max_fpr), 1.0 - measure.min_tpr
    floors = [max(0.0, 1.0 - multiple * height) for multiple in _FLOOR_MULTIPLES]
    return float(np.mean([partial_auc(curve, max_fpr=limit, min_tpr=floor) for floor in floors]))


class Plan(NamedTuple):
    """What is fixed for all candidates: engine, columns, learning rate, limits and the loss of the window objective."""

    engine: str
    categorical: list[int]
    monotonic: list[int] | None
    min_samples_leaf: int
    n_jobs: int | None
    learning_rate: float
    max_rounds: int
    subsample: bool
    seed: int
    loss: Loss | None = None

    def data(self, data: TrainingSet, rows: Any = slice(None)) -> TreeData:
        """Return some rows of the training set in the format of the engine."""
        weight = None if data.weight is None else data.weight[rows]
        return DATA[self.engine](
            data.X[rows],
            data.positive[rows],
            weight,
            categorical=self.categorical,
            monotonic=self.monotonic,
            min_samples_leaf=self.min_samples_leaf,
            n_jobs=self.n_jobs,
        )

    def start(self, rows: TreeData, max_leaf_nodes: int, warm_up: int | None, seed: int) -> Trees:
        """Return an ensemble without trees, for the logistic loss or, with ``warm_up``, the window objective."""
        objective = None if warm_up is None else window_objective(rows.positive, rows.weight, warm_up, self.loss)
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
    losses: list[float] = field(default_factory=list)
    held_out: list[list[NDArray[np.float32]]] = field(default_factory=list)

    @property
    def objective(self) -> str:
        """Name of the objective."""
        return "binary" if self.warm_up is None else "window"

    @property
    def means(self) -> Array:
        """Mean score over the folds, by number of rounds, as a moving average over neighboring numbers of rounds."""
        return _moving_average(np.mean(self.scores, axis=1))

    @property
    def score(self) -> float:
        """Largest mean score."""
        return float(self.means.max())

    @property
    def best_rounds(self) -> int:
        """Number of rounds with the largest mean score."""
        return self.rounds[int(self.means.argmax())]


class Choice(NamedTuple):
    """A candidate and the position of its number of rounds."""

    candidate: Candidate
    step: int

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return self.candidate.rounds[self.step]

    @property
    def scores(self) -> list[float]:
        """Held-out score of each fold."""
        return self.candidate.scores[self.step]

    @property
    def held_out(self) -> Array:
        """Held-out scores of the rows of all folds."""
        return np.concatenate(self.candidate.held_out[self.step]).astype(np.float64)


def best_choice(tried: list[Candidate]) -> Choice:
    """Return the size and number of rounds with the largest score; among those nearly as good, the lowest logloss.

    Nearly as good means that the difference to the largest score is at most a quarter of the standard error of the
    paired difference over the folds. The score depends on the top of the ranking only, the logloss on all rows.
    """
    top = max(tried, key=lambda candidate: candidate.score)
    best = np.asarray(top.scores[int(top.means.argmax())])
    found, lowest = Choice(top, int(top.means.argmax())), np.inf
    for candidate in tried:
        losses = _moving_average(np.asarray(candidate.losses))
        for step, (mean, scores) in enumerate(zip(candidate.means, candidate.scores, strict=True)):
            error = standard_error(best - scores)
            if top.score - mean <= _CLOSE * error and losses[step] < lowest:
                found, lowest = Choice(candidate, step), losses[step]
    return found


def _moving_average(values: Array) -> Array:
    half = _AVERAGED // 2
    return np.convolve(np.pad(values, half, mode="edge"), np.full(_AVERAGED, 1 / _AVERAGED), mode="valid")


class Folds:
    """The folds of a search; the bins of the features are computed once for all candidates."""

    def __init__(self, data: TrainingSet, splits: list[Split], plan: Plan, score: Score) -> None:
        self._data, self._splits, self._plan, self._score = data, splits, plan, score
        self._train = [plan.data(data, train) for train, _ in splits]
        self.n_training_rows = max(train.size for train, _ in splits)
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
        while done < max_rounds and not (candidate.rounds and done - candidate.best_rounds >= _PATIENCE):
            step = min(max_rounds if only_last else _STEP, max_rounds - done)
            if not self._grow(trees, held_out, step) and candidate.rounds:
                break
            done += step
            candidate.rounds.append(done)
            candidate.scores.append([self._score_of(k, scores) for k, scores in enumerate(held_out)])
            candidate.losses.append(float(np.mean([self._loss_of(k, scores) for k, scores in enumerate(held_out)])))
            # In single precision, to save memory: there is one entry for each number of rounds.
            candidate.held_out.append([scores.astype(np.float32) for scores in held_out])
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

    def _loss_of(self, k: int, scores: Array) -> float:
        """Return the logloss of held-out scores."""
        test = self._splits[k][1]
        losses = np.logaddexp(0.0, np.where(self._data.positive[test], -scores, scores))
        return float(np.average(losses, weights=None if self._data.weight is None else self._data.weight[test]))

    def held_out_rows(self) -> Any:
        """Return the held-out rows of all folds, in the order of the held-out scores."""
        return np.concatenate([test for _, test in self._splits])


# Candidates that the boosted trees choose from, and the defaults that depend on the number of rows.


AUTO = "auto"
# Sizes of trees to try, and the size and number of rounds without cross-validation.
_SIZES, _SIZE, _ROUNDS = (6, 15, 31, 63), 31, 200
# Fewer rows than this cannot be split by a tree of LightGBM, whose leaves have at least 20 rows.
_LEAST_ROWS = 40
# Learning rate of the search. If all folds are used, the models have half the rate and twice the number of rounds.
_SEARCH_RATE = 0.1
# Upper limit of the total shrinkage, learning rate times number of rounds.
_MOST_SHRINKAGE = 25.0
# Largest FPR for which the window objective, which concentrates on the top 5 % of the negatives, is tried.
_WINDOW_LIMIT, _WINDOW_FPR = 0.1, 0.05
# The window objective starts after this share of the rounds that the logistic loss needs, and has this multiple of
# them at most.
_WARM_UP, _WINDOW_ROUNDS = 0.25, 2.0


def search_rate(learning_rate: float | str) -> float:
    """Return the learning rate of the search."""
    return _SEARCH_RATE if learning_rate == AUTO else float(learning_rate)


def refinement(learning_rate: float | str, n_estimators: int | str, n_rows: int) -> int:
    """Return the factor between the learning rates of the search and of the models."""
    return 2 if learning_rate == n_estimators == AUTO and n_rows <= FOLD_RULES.all_folds else 1


def most_rounds(rate: float) -> int:
    """Return the largest number of rounds to try."""
    return max(1, round(_MOST_SHRINKAGE / rate))


def default_splits(data: TrainingSet, rng: np.random.RandomState) -> list[Split]:
    """Return stratified folds, fewer for more rows; none if there are too few rows. Groups are not split."""
    if most_folds(data.positive) < 2 or data.positive.size < _LEAST_ROWS:
        return []
    return check_splits(search_folds(data.positive, rng, data.kept_groups), data)


def untried(max_leaf_nodes: int | str, n_estimators: int | str, objective: str, most: int) -> Choice:
    """Return the choice without cross-validation."""
    size = _SIZE if max_leaf_nodes == AUTO else int(max_leaf_nodes)
    rounds = min(_ROUNDS, most) if n_estimators == AUTO else int(n_estimators)
    candidate = Candidate(size, max(1, round(_WARM_UP * rounds)) if objective == "window" else None)
    candidate.rounds = [rounds]
    return Choice(candidate, 0)


def choose(
    folds: Folds,
    plan: Plan,
    max_leaf_nodes: int | str,
    n_estimators: int | str,
    objective: str,
    measure: Measure,
    report: Callable[[Choice], None],
) -> Choice:
    """Return the best size of the trees, number of rounds and objective.

    Parameters
    ----------
    folds : Folds
        The folds.
    plan : Plan
        What is fixed for all candidates.
    max_leaf_nodes, n_estimators, objective
        Parameters of the classifier.
    measure : Measure
        The measure.
    report : callable
        Called with the best choice of each candidate that was tried.

    Returns
    -------
    Choice
        The best candidate and its number of rounds.
    """
    fixed = n_estimators != AUTO
    tried = []
    for size in _sizes(folds, plan) if max_leaf_nodes == AUTO else (int(max_leaf_nodes),):
        tried.append(folds.try_out(Candidate(size), plan.max_rounds, fixed))
        report(best_choice(tried[-1:]))
    best = best_choice(tried)
    if objective == "binary" or (objective == AUTO and not _is_narrow(measure)):
        return best
    warm_up = max(1, round(_WARM_UP * best.n_rounds))
    most = plan.max_rounds if fixed else round(_WINDOW_ROUNDS * best.n_rounds)
    # The scores of the window objective are not log-odds, so its logloss decides nothing.
    candidate = folds.try_out(Candidate(best.candidate.max_leaf_nodes, warm_up), most, fixed)
    window = Choice(candidate, int(candidate.means.argmax()))
    report(window)
    return window if objective == "window" or candidate.score > max(other.score for other in tried) else best


def _sizes(folds: Folds, plan: Plan) -> tuple[int, ...]:
    """Return the sizes of trees to try, without those that give the same trees as a smaller size.

    A leaf of LightGBM has at least ``min_samples_leaf`` rows, so that the rows limit the number of leaves.
    """
    if plan.engine != "lightgbm":
        return _SIZES
    most_leaves = folds.n_training_rows // plan.min_samples_leaf
    return _SIZES[: bisect_left(_SIZES, most_leaves) + 1]


def window_loss(measure: Measure) -> Loss | None:
    """Return the loss of the window objective above a true-positive rate; None for the default."""
    if not has_floor(measure):
        return None
    limit = _WINDOW_FPR if _is_low(measure) else 1.0
    return WindowPairs("sigmoid", max_fpr=limit, soft_tail=True, scale=2.0, min_tpr=measure.min_tpr)


def _is_narrow(measure: Measure) -> bool:
    """Return whether a measure depends on low false-positive or high true-positive rates only."""
    return has_floor(measure) or _is_low(measure)


def _is_low(measure: Measure) -> bool:
    """Return whether a measure depends on low false-positive rates only."""
    return isinstance(measure, CornerMeasure) and measure.max_fpr <= _WINDOW_LIMIT
