"""Candidates that the boosted trees choose from, and the defaults that depend on the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from rocmax._validate import CHECKING, TrainingSet
from rocmax.estimators._splits import Split
from rocmax.estimators.boosted._search import Candidate, Folds, Plan
from rocmax.measures import Measure

AUTO = "auto"
# Sizes of trees to try, and the size and number of rounds without cross-validation.
_SIZES, _SIZE, _ROUNDS = (6, 15, 31, 63), 31, 200
# Up to this number of rows: five folds, small steps. Up to the second: three folds. Above: one held-out part.
_FEW_ROWS, _MANY_ROWS = 10_000, 30_000
_HELD_OUT_SHARE = 0.25
_SMALL_STEP, _LARGE_STEP = 0.05, 0.1
# Upper limit of the total shrinkage, learning rate times number of rounds.
_MOST_SHRINKAGE = 25.0
# Largest FPR for which the window objective, which concentrates on the top 5 % of the negatives, is tried.
_WINDOW_LIMIT = 0.1
# The window objective starts after this share of the rounds that the logistic loss needs, and has this multiple of
# them at most.
_WARM_UP, _WINDOW_ROUNDS = 0.25, 2.0


def default_learning_rate(n_rows: int) -> float:
    """Return the learning rate for a number of rows."""
    return _SMALL_STEP if n_rows <= _FEW_ROWS else _LARGE_STEP


def most_rounds(learning_rate: float) -> int:
    """Return the largest number of rounds to try."""
    return max(1, round(_MOST_SHRINKAGE / learning_rate))


def default_splits(data: TrainingSet, rng: np.random.RandomState) -> list[Split]:
    """Return stratified folds, fewer for more rows; none if a class has fewer than two rows."""
    n_rows, rarest = data.positive.size, int(min(data.positive.sum(), (~data.positive).sum()))
    if rarest < 2:
        return []
    if n_rows > _MANY_ROWS:
        folds: Any = StratifiedShuffleSplit(1, test_size=_HELD_OUT_SHARE, random_state=rng)
    else:
        folds = StratifiedKFold(min(5 if n_rows <= _FEW_ROWS else 3, rarest), shuffle=True, random_state=rng)
    with CHECKING:
        return list(folds.split(data.positive, data.positive))


def untried(max_leaf_nodes: int | str, n_estimators: int | str, objective: str, most: int) -> Candidate:
    """Return the candidate without cross-validation."""
    size = _SIZE if max_leaf_nodes == AUTO else int(max_leaf_nodes)
    rounds = min(_ROUNDS, most) if n_estimators == AUTO else int(n_estimators)
    candidate = Candidate(size, max(1, round(_WARM_UP * rounds)) if objective == "window" else None)
    candidate.rounds, candidate.scores = [rounds], [[np.nan]]
    return candidate


def choose(
    folds: Folds,
    plan: Plan,
    max_leaf_nodes: int | str,
    n_estimators: int | str,
    objective: str,
    measure: Measure,
    report: Callable[[Candidate], None],
) -> Candidate:
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
        Called with each candidate that was tried.

    Returns
    -------
    Candidate
        The best candidate.
    """
    fixed = n_estimators != AUTO
    tried = []
    for size in _SIZES if max_leaf_nodes == AUTO else (int(max_leaf_nodes),):
        tried.append(folds.try_out(Candidate(size), plan.max_rounds, fixed))
        report(tried[-1])
    best = max(tried, key=lambda candidate: candidate.score)
    if objective == "binary" or (objective == AUTO and not _is_narrow(measure)):
        return best
    warm_up = max(1, round(_WARM_UP * best.n_rounds))
    most = plan.max_rounds if fixed else round(_WINDOW_ROUNDS * best.n_rounds)
    window = folds.try_out(Candidate(best.max_leaf_nodes, warm_up), most, fixed)
    report(window)
    return window if objective == "window" or window.score > best.score else best


def _is_narrow(measure: Measure) -> bool:
    """Return whether a measure depends on low false-positive rates only."""
    return measure.name in ("partial_auc", "tpr_at_fpr") and float(measure.params["max_fpr"]) <= _WINDOW_LIMIT
