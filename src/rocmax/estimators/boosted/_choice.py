"""Candidates that the boosted trees choose from, and the defaults that depend on the number of rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from rocmax._validate import CHECKING, TrainingSet
from rocmax.estimators._splits import Split, group_folds
from rocmax.estimators.boosted._search import Candidate, Choice, Folds, Plan, best_choice, has_floor
from rocmax.losses import Loss, WindowPairs
from rocmax.measures import Measure
from rocmax.measures.ranking import CornerMeasure

AUTO = "auto"
# Sizes of trees to try, and the size and number of rounds without cross-validation.
_SIZES, _SIZE, _ROUNDS = (6, 15, 31, 63), 31, 200
# Fewer rows than this cannot be split by a tree of LightGBM, whose leaves have at least 20 rows.
_LEAST_ROWS = 40
# Up to this number of rows: five folds. Up to the second: three folds. Above: one held-out part.
_FEW_ROWS, _MANY_ROWS = 10_000, 30_000
_HELD_OUT_SHARE = 0.25
# Learning rate of the search. Up to `_MANY_ROWS` rows, the models have half the rate and twice the number of rounds.
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
    return 2 if learning_rate == n_estimators == AUTO and n_rows <= _MANY_ROWS else 1


def most_rounds(rate: float) -> int:
    """Return the largest number of rounds to try."""
    return max(1, round(_MOST_SHRINKAGE / rate))


def default_splits(data: TrainingSet, rng: np.random.RandomState) -> list[Split]:
    """Return stratified folds, fewer for more rows; none if there are too few rows. Groups are not split."""
    n_rows, rarest = data.positive.size, int(min(data.positive.sum(), (~data.positive).sum()))
    if rarest < 2 or n_rows < _LEAST_ROWS:
        return []
    n_folds = 5 if n_rows <= _FEW_ROWS else 3
    if data.groups is not None:
        one_part = n_rows > _MANY_ROWS
        return group_folds(data, round(1 / _HELD_OUT_SHARE) if one_part else n_folds, rng)[: 1 if one_part else None]
    if n_rows > _MANY_ROWS:
        folds: Any = StratifiedShuffleSplit(1, test_size=_HELD_OUT_SHARE, random_state=rng)
    else:
        folds = StratifiedKFold(min(n_folds, rarest), shuffle=True, random_state=rng)
    with CHECKING:
        return list(folds.split(data.positive, data.positive))


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
