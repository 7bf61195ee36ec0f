"""Comparison of estimators on one data set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import has_fit_parameter

from rocmax._atomic import append_line, check_output
from rocmax._packages import need
from rocmax._public import set_public_module
from rocmax._validate import check_target, one_majority_warning, random_source, warn_if_majority
from rocmax.metrics import make_scorer
from rocmax.metrics.scorer import MeasureScorer
from rocmax.workflow._content_hash import content_key

Split = tuple[NDArray[np.intp], NDArray[np.intp]]

# Start of each line of a store.
_LINE_START = b'{"key": '


def compare(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    scoring: Any,
    param_grids: Mapping[str, Any] | None = None,
    n_splits: int = 10,
    test_size: float = 0.3,
    inner_cv: int = 3,
    groups: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """Compare estimators on the same repeated random splits.

    Every split uses the same test rows for all estimators. An estimator with a grid is tuned for the same measure by
    inner cross-validation on the training rows. For each estimator, the result has the mean score over the splits, its
    standard error, and the p-value of the paired Wilcoxon signed-rank test against the estimator with the best mean.

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators to compare, by name.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Two classes, of any type.
    scoring : str, Measure or callable
        A measure or its name, as in :func:`rocmax.metrics.make_scorer`; or a scorer, for example
        ``make_scorer("partial_auc", max_fpr=0.1, pos_label="fraud")``, for which higher is better. All estimators are
        scored for one positive class: the ``pos_label`` of the scorer or of the estimators that have one. Different
        labels are an error.
    param_grids : dict of str to dict, default=None
        Parameter grids by name, as in ``GridSearchCV``. An estimator without a grid is not tuned.
    n_splits : int, default=10
        Number of random splits, stratified by class (or by group, if there are groups).
    test_size : float, default=0.3
        Fraction of the rows in each test set.
    inner_cv : int, default=3
        Number of folds of the inner cross-validation.
    groups : array-like of shape (n_samples,), default=None
        Group of each row. A group is never in both the training and the test rows of a split. The groups of the
        training rows are passed to an estimator without a grid if its ``fit`` accepts ``groups``.
    random_state : int, RandomState instance or None, default=0
        Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
        global generator is never used.
    n_jobs : int, default=None
        Number of fits that run in parallel, as in joblib: None means 1, -1 all processors.
    store : str or Path, default=None
        File of results, with one line for each fit. Fits whose results are in the file are skipped, so that an
        interrupted comparison can be resumed. Results of other data or settings in the file are ignored. A result is
        identified by the data, the split, all parameters of the estimator, its grid, the scorer and the versions of
        their packages; functions and classes of a script are identified by their code.
    progress : callable, default=None
        Called with 1 after each fit.

    Returns
    -------
    pandas.DataFrame
        Indexed by name, best mean first: ``mean``, ``standard_error``, ``p_value`` (NaN for the best),
        ``seconds`` (mean time of a fit, including tuning) and ``scores`` (list, one per split).

    Notes
    -----
    The test sets of different splits overlap, so the p-values are smaller than those of independent samples: use them
    as a ranking only. :func:`rocmax.metrics.delong_test` compares two models on one test set.

    References
    ----------
    J. Demsar (2006). Statistical comparisons of classifiers over multiple data sets. JMLR 7, 1-30.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from rocmax import AUCClassifier, compare
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> models = {"auc": AUCClassifier(), "logistic": LogisticRegression()}
    >>> table = compare(models, X, y, scoring="roc_auc", n_splits=3)
    >>> sorted(table.index), list(table.columns)
    (['auc', 'logistic'], ['mean', 'standard_error', 'p_value', 'seconds', 'scores'])
    """
    need("pandas")
    if not estimators:
        raise ValueError("estimators must have at least one entry; got none")
    unknown = set(param_grids or {}) - set(estimators)
    if unknown:
        raise ValueError(f"the names in param_grids must be names of estimators; got {sorted(unknown)}")
    scoring = scoring if callable(scoring) else make_scorer(scoring)
    X, y = indexable(X, y)
    y = np.asarray(y)
    ours = isinstance(scoring, MeasureScorer)
    if ours:
        scoring = scoring.for_estimators(estimators.values())
    splits = list(_splits(y, groups, n_splits, test_size, random_state))
    tasks = [
        _Task(name, estimator, (param_grids or {}).get(name), number, split, scoring, inner_cv)
        for number, split in enumerate(splits)
        for name, estimator in estimators.items()
    ]
    with one_majority_warning(scoring.pos_label if ours else None):
        if ours and scoring.pos_label is None:
            labels, classes, index = check_target(y, None)
            warn_if_majority("compare", classes, *np.bincount(labels == classes[index], minlength=2))
        return _table(list(estimators), _run(tasks, X, y, groups, n_jobs, store, progress), n_splits)


class _Task:
    """One estimator on one split."""

    def __init__(
        self, name: str, estimator: Any, grid: Any, number: int, split: Split, scoring: Any, inner_cv: int
    ) -> None:
        self.name, self.estimator, self.grid, self.number = name, estimator, grid, number
        self.split, self.scoring, self.inner_cv = split, scoring, inner_cv

    def key(self, data: str) -> str:
        """Return the key of the result; ``data`` is the hash of rows, classes and groups."""
        # The clone is the estimator that is fitted.
        settings = (clone(self.estimator), self.grid, self.scoring, self.inner_cv, self.split)
        try:
            return content_key((data, settings))
        except TypeError as error:
            raise TypeError(f"{self.name!r} cannot be saved in a store: {error}. Use store=None") from error

    def run(self, X: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> tuple[float, float]:
        """Fit, with tuning if there is a grid; return the score on the test rows and the time in seconds."""
        train, test = self.split
        rows, labels = _safe_indexing(X, train), y[train]
        start = perf_counter()
        if self.grid is None:
            known = {} if groups is None else {"groups": groups[train]}
            takes_groups = has_fit_parameter(self.estimator, "groups")
            model = clone(self.estimator).fit(rows, labels, **(known if takes_groups else {}))
        elif groups is None:
            folds = StratifiedKFold(self.inner_cv)
            model = GridSearchCV(self.estimator, self.grid, scoring=self.scoring, cv=folds).fit(rows, labels)
        else:
            model = GridSearchCV(
                self.estimator, self.grid, scoring=self.scoring, cv=StratifiedGroupKFold(self.inner_cv)
            ).fit(rows, labels, groups=groups[train])
        seconds = perf_counter() - start
        best = getattr(model, "best_estimator_", model)
        return float(self.scoring(best, _safe_indexing(X, test), y[test])), seconds


def _splits(y: NDArray[Any], groups: Any, n_splits: int, test_size: float, random_state: Any) -> Iterator[Split]:
    seed = random_source(random_state)
    if groups is None:
        yield from StratifiedShuffleSplit(n_splits, test_size=test_size, random_state=seed).split(y, y)
        return
    for train, test in GroupShuffleSplit(n_splits, test_size=test_size, random_state=seed).split(y, y, groups):
        if np.unique(y[train]).size < 2 or np.unique(y[test]).size < 2:
            raise ValueError("each split by groups must have both classes; got one class only (too few groups)")
        yield train, test


def _run(
    tasks: list[_Task],
    X: Any,
    y: NDArray[Any],
    groups: Any,
    n_jobs: int | None,
    store: str | Path | None,
    progress: Callable[[int], None] | None,
) -> list[tuple[str, int, float, float]]:
    """Run the tasks whose results are not in the store."""
    groups = None if groups is None else np.asarray(groups)
    keys, known = _keys(tasks, (X, y, groups), store), ({} if store is None else read_store(store))
    # Results of this run are indexed by task: two estimators with the same key are fitted separately.
    done = {i: known[key] for i, key in enumerate(keys) if key in known}
    todo = [i for i in range(len(tasks)) if i not in done]
    if progress is not None:
        progress(len(tasks) - len(todo))
    jobs = (delayed(tasks[i].run)(X, y, groups) for i in todo)
    for i, (score, seconds) in zip(todo, Parallel(n_jobs=n_jobs, return_as="generator")(jobs), strict=True):
        done[i] = (score, seconds)
        if store is not None:
            line = {
                "key": keys[i],
                "model": tasks[i].name,
                "split": tasks[i].number,
                "score": score,
                "seconds": seconds,
            }
            append_line(store, json.dumps(line))
        if progress is not None:
            progress(1)
    return [(task.name, task.number, *done[i]) for i, task in enumerate(tasks)]


def _keys(tasks: list[_Task], data: tuple[Any, ...], store: str | Path | None) -> list[str]:
    """Return the keys of the tasks, or an empty list if there is no store."""
    if store is None:
        return []
    named = joblib.hash(data)
    return [task.key(named) for task in tasks]


def read_store(store: str | Path) -> dict[str, tuple[float, float]]:
    """Return the results in a store; empty if the file does not exist.

    Parameters
    ----------
    store : str or Path
        File of results.

    Returns
    -------
    dict of str to tuple of float
        Score and seconds by key.

    Raises
    ------
    ValueError
        If the file was not written by :func:`compare`.
    """
    path = Path(store)
    check_output(path)
    if not path.exists():
        return {}
    if not path.is_file():
        raise ValueError(f"the file of results must be a regular file; got {path}")
    known = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.startswith(_LINE_START) and not _LINE_START.startswith(line.rstrip()):
                raise ValueError(
                    f"the file of results must be new or written by compare; got {path}, whose line {number} is "
                    "not a result"
                )
            try:
                entry = json.loads(line)
                known[entry["key"]] = (entry["score"], entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue  # incomplete line of a run that was killed; the fit is repeated
    return known


def _table(names: list[str], results: list[tuple[str, int, float, float]], n_splits: int) -> Any:
    pd = need("pandas")
    scores = {name: np.full(n_splits, np.nan) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for name, number, score, time in results:
        scores[name][number] = score
        seconds[name].append(time)
    best = max(names, key=lambda name: scores[name].mean())
    rows = {
        name: {
            "mean": scores[name].mean(),
            "standard_error": scores[name].std(ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.nan,
            "p_value": np.nan if name == best else _wilcoxon(scores[best] - scores[name]),
            "seconds": float(np.mean(seconds[name])),
            "scores": scores[name].tolist(),
        }
        for name in names
    }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values("mean", ascending=False, kind="stable")


def _wilcoxon(differences: NDArray[np.float64]) -> float:
    # With zeros, which the test drops, SciPy before 1.15 uses the normal approximation even for a few splits.
    differences = differences[differences != 0]
    if differences.size == 0:
        return 1.0
    return float(wilcoxon(differences).pvalue)


set_public_module("rocmax", globals(), ("compare",))
