"""Cross-validation folds of the partial-AUC fit: starting points, paths from them, and their selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from rocmax._progress import counted
from rocmax._typing import Array
from rocmax._validate import TrainingSet
from rocmax.estimators.linear._initial_weights import Solutions, StartSpec
from rocmax.estimators.linear._model_choice import close_to_best
from rocmax.estimators.linear._positive_clusters import Labels
from rocmax.estimators.linear._refinement import WindowRefinement
from rocmax.estimators.linear._standardization import weighted_spread
from rocmax.estimators.linear.base import LinearScoreClassifier
from rocmax.metrics import partial_auc_score
from rocmax.operators import as_operator
from rocmax.solvers import Progress, Result


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

        Parameters
        ----------
        specs : list of StartSpec
            The starting points.
        groups : dict of ndarray
            Clusters of the positives of all rows, by the number of clusters.
        similar : dict
            Solutions on all rows, at which the fits of the classifiers begin.
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

    Parameters
    ----------
    starts : ndarray of int
        Indices of the starting points to average; a repeated one counts that many times.
    parallel : Parallel
        Executor for the folds.
    folds : list of Fold
        The folds.
    weights : ndarray of shape (n_folds, n_starts, n_features)
        Weights of the starting points.
    Cs : ndarray
        Values of C.
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

    Parameters
    ----------
    fits : list of (Result, float)
        One result and the standard deviation of its scores for each fold.
    """
    results = [result for result, _ in fits]
    w = results[0].w if len(fits) == 1 else np.mean([result.w / spread for result, spread in fits], axis=0)
    objective, gap = (float(np.mean([getattr(result, name) for result in results])) for name in ("objective", "gap"))
    trace = [Progress(objective, objective - gap, sum(result.trace[-1].passes for result in results))]
    # The result of a fold that did not converge, if there is one, explains the state of the mean.
    state = min(results, key=lambda result: result.converged)
    n_iter = max(result.n_iter for result in results)
    return Result(w, objective, gap, n_iter, state.converged, state.message, trace)
