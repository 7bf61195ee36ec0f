"""Choice of the starting point and the strength of the partial-AUC fit by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from rocmax._folds import close_to_best, is_behind
from rocmax._support import Array, counted
from rocmax._validation import TrainingSet
from rocmax.linear.base import LinearScoreClassifier
from rocmax.linear.refine import SUBGROUP_STRENGTH, Labels, Solutions, StartSpec, WindowRefinement, weighted_spread
from rocmax.metrics import partial_auc_score
from rocmax.operators import as_operator
from rocmax.solvers import Progress, Result

# Comparison of models by held-out scores, taking standard errors into account.


def agreement(weights: Array, data: TrainingSet) -> float:
    """Return the mean correlation between the scores of linear models; 0 if one has zero weights, 1 for one model."""
    if not weights.any(axis=1).all():
        return 0.0
    if len(weights) == 1:
        return 1.0
    scores = [as_operator(data.X).matvec(w) for w in weights]
    covariance = np.cov(scores, aweights=data.weight)
    spread = np.sqrt(np.diag(covariance))
    if not spread.all():
        return 0.0
    correlation = covariance / np.outer(spread, spread)
    return float(correlation[np.triu_indices(len(weights), 1)].mean())


# Cross-validation folds of the partial-AUC fit: starting points, paths from them, and their selection.


@dataclass
class Fold:
    """One split: fit on the training rows, score on the held-out rows."""

    data: TrainingSet
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    window: tuple[float, float, float]
    tol: float
    max_iter: int

    def starts(
        self, specs: list[StartSpec], groups: dict[int, Labels], similar: Solutions
    ) -> tuple[list[float], list[Array]]:
        """Return the held-out partial AUC and the weights of each starting point.

        Zero weights score 0, not the partial AUC of a random ranking, which can exceed that of proper models.
        """
        refinement = self._refinement(similar)
        here = {
            size: refinement.regrouped(groups[size][self.train], size) for size in {s.n_groups for s in specs} - {0}
        }
        starts = [refinement.start_of(spec, here) for spec in specs]
        weights = [refinement.weights(start) for start in starts]
        return self._unless_zero(weights), weights

    def path(self, starts: Array, Cs: Array) -> tuple[list[float], list[Array], int]:
        """Return the held-out partial AUC and the weights along the path, and the largest number of iterations."""
        refinement = self._refinement()
        results = refinement.path(refinement.mean_start(starts), Cs)
        models = [result.w for result in results]
        return self._scores(models), models, max(result.n_iter for result in results)

    def fits(self, models: list[LinearScoreClassifier]) -> tuple[list[float], list[Result], list[float]]:
        """Return the held-out partial AUC, the result and the standard deviation of the training scores of each model.

        Zero weights score 0, as in :meth:`starts`.
        """
        part = self._part()
        results = [model._minimize(part, None, None) for model in models]
        operator = as_operator(part.X)
        spreads = [weighted_spread(operator.matvec(result.w), part.weight) for result in results]
        return self._unless_zero([result.w for result in results]), results, spreads

    def _refinement(self, similar: Solutions | None = None) -> WindowRefinement:
        return WindowRefinement(self._part(), self.window, self.tol, self.max_iter, similar)

    def _part(self) -> TrainingSet:
        weight = self.data.weight
        return self.data._replace(
            X=self.data.X[self.train],
            positive=self.data.positive[self.train],
            weight=None if weight is None else weight[self.train],
        )

    def _unless_zero(self, models: list[Array]) -> list[float]:
        """Return the held-out partial AUC of each model; 0 for zero weights."""
        return [score if w.any() else 0.0 for score, w in zip(self._scores(models), models, strict=True)]

    def _scores(self, models: list[Array]) -> list[float]:
        """Return the held-out partial AUC of each model."""
        positive, operator = self.data.positive[self.test], as_operator(self.data.X[self.test])
        low, high, floor = self.window
        weight = None if self.data.weight is None else self.data.weight[self.test]
        return [
            partial_auc_score(
                positive, operator.matvec(w), min_fpr=low, max_fpr=high, min_tpr=floor, sample_weight=weight
            )
            for w in models
        ]


class Route:
    """Path over the values of C from the mean of some starting points, in all folds.

    An index that is repeated in ``starts`` counts that many times.
    """

    def __init__(
        self, starts: NDArray[np.intp], parallel: Parallel, folds: list[Fold], weights: Array, Cs: Array
    ) -> None:
        self.starts = starts
        pairs = list(zip(folds, weights, strict=True))
        paths = parallel(delayed(Fold.path)(fold, w[starts], Cs) for fold, w in counted("path over C, fold", pairs))
        self.scores = np.array([scores for scores, _, _ in paths])
        self._models = [models for _, models, _ in paths]
        self.n_iter = max(n_iter for _, _, n_iter in paths)
        self.best = int(np.argmax(self.scores.mean(axis=0)))
        # Smaller values within one standard error: a stronger penalty is the simpler model.
        self.averaged = close_to_best(self.scores[:, : self.best + 1])

    @property
    def best_scores(self) -> Array:
        """Held-out partial AUC of the best value of C."""
        return self.scores[:, self.best]

    def model(self) -> Array:
        """Return the mean, over the folds, of the models close to the best."""
        result: Array = np.mean([models[k] for models in self._models for k in self.averaged], axis=0)
        return result


def mean_result(fits: list[tuple[Result, float]]) -> Result:
    """Return the mean of the models of the folds, each scaled to unit standard deviation of its scores.

    The model of a single fold is returned unchanged. Objective and gap are means, too.
    """
    results = [result for result, _ in fits]
    w = results[0].w if len(fits) == 1 else np.mean([result.w / spread for result, spread in fits], axis=0)
    objective, gap = (float(np.mean([getattr(result, name) for result in results])) for name in ("objective", "gap"))
    trace = [Progress(objective, objective - gap, sum(result.trace[-1].passes for result in results))]
    # The result of a fold that did not converge, if there is one, explains the state of the mean.
    state = min(results, key=lambda result: result.converged)
    n_iter = max(result.n_iter for result in results)
    return Result(w, objective, gap, n_iter, state.converged, state.message, trace)


# Choice of starting points of the partial-AUC fit by their held-out scores; hopeless ones are dropped early.


# Classifiers and the full AUC depend on all rows.
CLASSIFIERS = (
    *(StartSpec("logistic", C) for C in (0.01, 0.1, 1.0, 10.0)),
    *(StartSpec("balanced", C) for C in (0.01, 0.1, 1.0, 10.0)),
    *(StartSpec("svc", C) for C in (0.001, 0.01, 0.1, 1.0)),
)
SAFE = (*CLASSIFIERS, StartSpec("auc", 100.0))
# Losses on the window depend on few rows.
TIGHT = tuple(StartSpec("tight", C) for C in (0.01, 1.0, 100.0))
# Above a true-positive rate, where the tight loss counts more, small values of C are of little use.
TIGHT_ABOVE = tuple(StartSpec("tight", C) for C in (1.0, 10.0, 100.0))
HINGE = (StartSpec("hinge", 100.0),)
# Minimum mean correlation between the scores of the models that the folds fit from such a start. If the models differ,
# their mean can be much worse than each of them on held-out rows.
_AGREEMENT = 0.9
# Maximum distance from the best starting point, in standard errors, of the starting points that are averaged. It is
# less than 1 because with many starting points, some are close to the best by chance.
_CLOSE = 0.5
# Above a true-positive rate: largest distance of the tight loss from the best other starting point, in standard errors,
# and its weight relative to all others together if it is better than them.
_TIGHT_BEHIND, _TIGHT_WEIGHT = 1.5, 2
# A start is dropped after the first fold if its score is below this part of that of the best safe start, or lower by
# more than this number of standard errors. It is dropped after a number of folds if it was behind in each of them, and
# after half of the folds if it is behind by more than a number of standard errors, which is larger for a safe start.
_FAR_BEHIND, _FAR_BEHIND_ERRORS = 0.5, 3.0
_TRIAL = 3
_BEHIND, _SAFE_BEHIND = 1.0, 2.0


def group_specs(groups: dict[int, Labels]) -> list[StartSpec]:
    """Return a starting point for each cluster of positives."""
    return [StartSpec(f"group {k + 1} of {size}", SUBGROUP_STRENGTH, k, size) for size in groups for k in range(size)]


class StartTrials:
    """Held-out scores (folds x starts) and weights of starting points in all folds.

    Scores are NaN in the folds that follow after a start was dropped.
    """

    def __init__(self, parallel: Parallel, folds: list[Fold], groups: dict[int, Labels], similar: Solutions) -> None:
        self._parallel, self._folds, self._groups, self._similar = parallel, folds, groups, similar
        self.specs: list[StartSpec] = []
        self.scores = np.empty((len(folds), 0))
        self.weights = np.empty((len(folds), 0, folds[0].data.X.shape[1]))

    def add(self, specs: Sequence[StartSpec], race: bool = False) -> None:
        """Fit starting points in all folds; in a race, drop those that are behind the best after half of the folds."""
        left, n_folds = self._extend(specs), len(self._folds)
        half = n_folds // 2 if race and n_folds // 2 >= _TRIAL else n_folds
        self._fit(range(half), left)
        if half < n_folds:
            scores = self.scores[:half, left]
            best = scores[:, scores.mean(axis=0).argmax()]
            self._fit(range(half, n_folds), [left[i] for i in np.flatnonzero(~is_behind(scores, best, _SAFE_BEHIND))])

    def add_promising(self, specs: Sequence[StartSpec]) -> None:
        """Fit starting points, and drop those with zero weights or behind the best present one in the first folds."""
        best = self.scores[:, int(np.nanargmax(self.scores.mean(axis=0)))]
        left = self._extend(specs)
        for batch in self._batches():
            if left:
                self._fit(batch, left)
            done = batch[-1] + 1
            scores, level = self.scores[:done, left], best[:done, np.newaxis]
            behind = (scores < (level if done >= _TRIAL else self._hopeless(level))).all(axis=0)
            if done > _TRIAL:
                behind |= is_behind(scores, best[:done], _BEHIND)
            zero = ~self.weights[:done, left].any(axis=2).all(axis=0)
            left = [left[i] for i in np.flatnonzero(~behind & ~zero)]

    def _batches(self) -> Iterator[range]:
        """Split the folds: the first one, those up to the end of the trial, up to half of all, the others."""
        n_folds = len(self._folds)
        ends = sorted({0, 1, min(_TRIAL, n_folds), max(min(_TRIAL, n_folds), n_folds // 2), n_folds})
        return (range(start, stop) for start, stop in pairwise(ends))

    def _hopeless(self, level: Array) -> Array:
        """Return the score below which a start is dropped, from those of the best start in the first folds.

        A partial AUC ``p`` is the mean of one number in [0, 1] for each of ``m`` positives: its variance due to the
        sample of positives is at most ``p (1 - p) / m``.
        """
        n_positives = [np.count_nonzero(fold.data.positive[fold.test]) for fold in self._folds[: len(level)]]
        error = np.sqrt(level * (1.0 - level) / np.maximum(n_positives, 1)[:, np.newaxis])
        result: Array = np.maximum(_FAR_BEHIND * level, level - _FAR_BEHIND_ERRORS * error)
        return result

    def _extend(self, specs: Sequence[StartSpec]) -> list[int]:
        """Make room for starting points, and return their columns."""
        self.specs += specs
        n_folds, _, n_features = self.weights.shape
        self.scores = np.hstack([self.scores, np.full((n_folds, len(specs)), np.nan)])
        self.weights = np.concatenate([self.weights, np.zeros((n_folds, len(specs), n_features))], axis=1)
        return list(range(len(self.specs) - len(specs), len(self.specs)))

    def _fit(self, batch: range, columns: list[int]) -> None:
        specs = [self.specs[k] for k in columns]
        text = f"{len(specs)} starting points, fold"
        fits = self._parallel(
            delayed(Fold.starts)(self._folds[i], specs, self._groups, self._similar) for i in counted(text, batch)
        )
        for i, (scores, weights) in zip(batch, fits, strict=True):
            self.scores[i, columns], self.weights[i, columns] = scores, weights

    def means(self) -> dict[str, float]:
        """Return the mean held-out score of each start, over the folds in which it was fitted."""
        names = [f"{spec.kind}, C={spec.C:g}" for spec in self.specs]
        return dict(zip(names, np.nanmean(self.scores, axis=0).tolist(), strict=True))

    def choices(self, data: TrainingSet, with_tight: bool = False) -> list[NDArray[np.intp]]:
        """Return the starting points to average, and those for clusters, if they are better than all others.

        Starts on few rows must agree across the folds. An index that is repeated counts that many times.
        """
        usable = [
            k
            for k, spec in enumerate(self.specs)
            if not np.isnan(self.scores[:, k]).any() and (spec in SAFE or self._agree(k, data))
        ]
        of_all = np.array([k for k in usable if self.specs[k].n_groups == 0], dtype=np.intp)
        means = self.scores.mean(axis=0)
        of_groups = np.array(
            [k for k in usable if self.specs[k].n_groups > 0 and means[k] > means[of_all].max()], dtype=np.intp
        )
        chosen = self._with_tight(of_all) if with_tight else self._close(of_all)
        return [chosen, self._close(of_groups)] if of_groups.size else [chosen]

    def _with_tight(self, starts: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the starts to average, repeated so that the tight loss has its weight; see :meth:`choices`."""
        is_tight = np.array([self.specs[k] in TIGHT_ABOVE for k in starts])
        tight, others = starts[is_tight], starts[~is_tight]
        if not tight.size:
            return self._close(others)
        best = [part[np.argmax(self.scores[:, part].mean(axis=0))] for part in (tight, others)]
        tight, others = self._close(tight), self._close(others)
        if 0 not in close_to_best(self.scores[:, best], _TIGHT_BEHIND):
            return others
        of_tight, of_others = self.scores[:, best].mean(axis=0)
        times = (_TIGHT_WEIGHT if of_tight > of_others else 1) * others.size
        return np.concatenate([np.repeat(tight, times), np.repeat(others, tight.size)])

    def _close(self, starts: NDArray[np.intp]) -> NDArray[np.intp]:
        return starts[close_to_best(self.scores[:, starts], _CLOSE)]

    def _agree(self, k: int, data: TrainingSet) -> bool:
        return agreement(self.weights[:, k], data) >= _AGREEMENT
