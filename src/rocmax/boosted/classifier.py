"""Boosted trees, tuned for the measure."""

from __future__ import annotations

import sys
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rocmax._folds import FOLD_RULES, Split, check_splits, given_splits, most_folds, search_folds
from rocmax._rounding import score_error
from rocmax._support import Array, need
from rocmax._threads import engine_threads
from rocmax._validation import (
    TrainingSet,
    check_choice,
    check_number,
    check_rows,
    direction,
    positive_index,
    random_source,
    towards,
)
from rocmax.base import Decision, MeasureParameterMixin
from rocmax.boosted.categories import FROM_DTYPE, Categories, check_table, encode_categories
from rocmax.boosted.engines import ENGINES, TreeSettings
from rocmax.boosted.search import (
    AUTO,
    RULES,
    Candidate,
    Folds,
    Plan,
    choose,
    selection_score,
    untried,
    window_loss,
)
from rocmax.boosted.trees import TreeModel
from rocmax.explain import Contributions, column_names
from rocmax.measures import Measure
from rocmax.thresholds import calibrated, fit_calibration

# Largest absolute value for XGBoost, which computes in single precision, and largest ratio of weights.
_LARGEST_SINGLE = 1e37


def check_limits(data: TrainingSet, engine: str) -> None:
    """Raise ValueError if values or weights do not fit into the single precision of the engines."""
    if engine == "xgboost":
        values = data.X.data if sparse.issparse(data.X) else data.X
        present = values[~np.isnan(values)]
        largest = float(np.abs(present).max()) if present.size else 0.0
        if largest > _LARGEST_SINGLE:
            raise ValueError(
                f'absolute values in X must be at most {_LARGEST_SINGLE:g} with engine="xgboost"; got {largest:.3g}'
            )
    if data.weight is not None:
        mean, least = float(data.weight.mean()), float(data.weight.min())
        if least < mean / _LARGEST_SINGLE:
            raise ValueError(
                f"sample_weight must be zero or at least {1 / _LARGEST_SINGLE:g} times its mean, because the engines "
                f"compute in single precision; got a mean of {mean:.3g} and a least value of {least:.3g}. Use zero to "
                "leave out a row"
            )


def directions(given: Any, n_features: int, names: NDArray[Any] | None, categorical: list[int]) -> list[int] | None:
    """Return the direction of each feature from the parameter ``monotonic_cst``, or None without constraints."""
    if given is None:
        return None
    if isinstance(given, dict):
        known = [] if names is None else list(names)
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"monotonic_cst must have names of columns of X as keys; got {unknown[0]!r}")
        given = [given.get(name, 0) for name in known]
    found = np.asarray(given)
    if found.shape != (n_features,) or not np.isin(found, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst must have a value -1, 0 or 1 for each of {n_features} features; got {given!r}")
    constrained = [i for i in categorical if found[i]]
    if constrained:
        raise ValueError(
            f"monotonic_cst must be 0 for categorical columns; got {found[constrained[0]]} for column {constrained[0]}"
        )
    return [int(value) for value in found]


# Scores of the logistic loss are log-odds.
_LOG_ODDS: dict[str, Any] = {"method": "sigmoid", "slope": 1.0, "intercept": 0.0}


def _has_probabilities(model: BoostedClassifier) -> bool:
    if not hasattr(model, "models_"):
        return model.objective != "window" or model._tunes()
    # Models of earlier versions have no calibration.
    if getattr(model, "calibration_", None) is None:
        raise AttributeError(
            "predict_proba requires held-out scores or the logistic loss: fit the model again with a parameter to tune "
            '(max_leaf_nodes, n_estimators or objective "auto") and at least 40 rows, or with objective="binary"'
        )
    return True


class HeldOutScores(Decision):
    """Mixin of classifiers of tables whose threshold and probabilities are chosen on held-out scores.

    They take categories and missing values.
    """

    threshold_: float
    calibration_: dict[str, Any] | None
    cv: Any
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row minus the threshold; positive values indicate ``classes_[1]``.

        Parameters
        ----------
        X

        Returns
        -------
        decision_values
        """
        scores = self._scores(self.encode(X)) - self.threshold_
        return towards(scores, positive_index(self.classes_, self.pos_label))

    def encode(self, X: Any) -> Any:
        """Return rows as the models take them: numbers, with codes for categories and NaN for unknown ones.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_features)
            The validated rows.
        """
        categories = getattr(self, "categories_", {})
        return check_rows(self, encode_categories(X, categories), dense=not self.takes_sparse, allow_missing=True)

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return the scores of encoded rows; high scores indicate the positive class."""

    def _probabilities(self, X: Any) -> Array:
        scores = self._scores(self.encode(X))
        assert self.calibration_ is not None
        share = calibrated(self.calibration_, scores)
        columns = [1.0 - share, share]
        return np.column_stack(columns if positive_index(self.classes_, self.pos_label) == 1 else columns[::-1])

    def _decision_error(self, X: Any, decision: Array) -> Array:
        return score_error(np.abs(decision) + abs(self.threshold_))

    def _folds(self, data: TrainingSet) -> list[Split]:
        """Return the folds; none if a class has fewer than two rows or there are too few rows."""
        if self.cv is not None:
            return given_splits(data, self.cv)
        if most_folds(data.positive) < 2 or data.positive.size < RULES.least_rows:
            return []
        return check_splits(search_folds(data.positive, random_source(self.random_state), data.kept_groups), data)


class BoostedClassifier(MeasureParameterMixin, HeldOutScores, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Boosted trees of LightGBM or XGBoost, tuned for the measure by cross-validation.

    The defaults need no tuning by the user:

    1. For each size of the trees, ensembles are grown on the training part of each fold. The size and the number of
       trees are those with the highest held-out score. The score is a smooth relative of the measure: for the partial
       AUC, the partial AUC up to ``max_fpr``, or up to 0.1 if ``max_fpr`` is smaller, because scores of a narrow window
       depend on few rows; the AUC for the AUC and the G-mean; the average precision for the other measures.
    2. With ``objective="auto"`` and a measure of low false-positive rates, the same trees are grown with an objective
       for the top of the ranking: after a quarter of the rounds, the logistic loss is replaced by a sigmoid of the
       score differences of positives and negatives, in which the negatives count less the lower they rank. It is used
       if its held-out score is higher. Above a true-positive rate, the positives count less the higher they rank.
    3. ``n_models`` ensembles with different seeds, each tree on a random 80 % of the rows and columns, are fitted to
       all rows. The score is their mean.

    The threshold is chosen as in the other classifiers for the measure, on the held-out scores of the folds: scores of
    the training rows of trees are too good. Without cross-validation, the training scores are used.

    ``predict_proba`` is calibrated on the same held-out scores, by a logistic function or, with at least 1000 held-out
    rows of each class, a centered isotonic regression. Without cross-validation, it is the probability of the engine
    for the logistic loss, which is too certain for trees that fit the training rows closely; scores of the window
    objective then have no probabilities. ``predict`` uses ``threshold_``, not a probability of 0.5.

    Trees do not need standardized features. Missing values (NaN) and categorical columns are handled by the engine.

    Parameters
    ----------
    measure : str or Measure, default="partial_auc"
        Measure to train for: "roc_auc", "partial_auc", "tpr_at_fpr", "precision_at_k",
        "break_even_point", "average_precision", "f_beta" or "g_mean". An object of :mod:`rocmax.measures` has its own
        parameters.
    min_fpr : ...
        Used by "partial_auc".
    max_fpr : ...
        Used by "partial_auc"; also the limit of "tpr_at_fpr".
    min_tpr : ...
        Used by "partial_auc".
    k : ...
        Used by "precision_at_k". A number is converted to a fraction of the training rows for the choice of the
        threshold.
    beta : ...
        Used by "f_beta".
    engine : {"lightgbm", "xgboost"}, default="lightgbm"
        Library that grows the trees: ``pip install 'rocmax[boost]'`` for LightGBM, ``'rocmax[xgboost]'`` for XGBoost.
    objective : {"auto", "binary", "window"}, default="auto"
        Objective of the trees: the logistic loss, the window objective, or the one with the higher held-out score.
    max_leaf_nodes : "auto" or int, default="auto"
        Largest number of leaves of a tree, at least 2. "auto" tries 6 and 31.
    learning_rate : "auto" or float, default="auto"
        Factor of each tree, above 0. "auto" takes 0.1 in the search and, for at most 30,000 rows and with
        ``n_estimators="auto"``, half of it and 1.6 times the number of rounds for the models.
    n_estimators : "auto" or int, default="auto"
        Number of rounds, each of which adds a tree to each model. "auto" chooses it by cross-validation: at most 250
        with a learning rate of 0.1, and in inverse proportion for others.
    min_samples_leaf : int, default=20
        Smallest number of rows in a leaf. Used by LightGBM; XGBoost has a limit on the sum of the curvatures instead.
    n_models : int, default=3
        Number of models that are averaged: the knob for speed. Predictions take a time in proportion to it, and so does
        the last step of a fit; 1 takes the least, and ranks somewhat worse. A single model for which nothing is tuned
        uses all rows and columns for each tree.
    cv : int, cross-validation generator or iterable, default=None
        Cross-validation splits. None takes five stratified folds for at most 20,000 rows, three for at most 30,000 and
        one held-out quarter for more; fewer folds if a class has fewer than five rows, and none for fewer than 40 rows.
        With ``groups``, the folds of None and of an int keep groups together, and other splits must do so.
    categorical_features : "from_dtype", None or array-like of int, bool or str, default="from_dtype"
        Columns of categories, by position, name or mask. "from_dtype" takes the columns of a data frame with a
        categorical data type. A category that does not occur in the training rows is treated as a missing value.
    monotonic_cst : dict or array-like of int of shape (n_features,), default=None
        Direction of the effect of each feature on the score for the positive class: 1 increasing, -1 decreasing, 0 any.
        A dict maps names of features to directions.
    n_jobs : int, default=None
        Number of threads of the engine; -1 for all cores that the process may use. None takes one thread for each
        2,000,000 values of `X`, so one for a small table, up to these cores; the variable ``OMP_NUM_THREADS`` and
        limits by threadpoolctl are respected. The fitted trees do not depend on it.
    random_state, pos_label, verbose

    Attributes
    ----------
    models_ : list of TreeModel
        The fitted ensembles.
    threshold_ : float
        Threshold of the score.
    calibration_ : dict or None
        The function from scores to probabilities: ``"method"`` and its values. None if there is none.
    max_leaf_nodes_ : int
        Largest number of leaves of a tree.
    learning_rate_ : float
        Learning rate.
    n_estimators_ : int
        Number of rounds of each model.
    used_objective_ : {"binary", "window"}
        Objective of the models.
    cv_results_ : dict of lists
        Result of the cross-validation, one entry for each size and objective: ``"max_leaf_nodes"``, ``"objective"``,
        ``"n_estimators"`` (the best number of rounds at the learning rate of the search), ``"mean_score"``,
        ``"std_score"`` and ``"n_folds"``. The window objective is tried on two folds, and on the next ones as long as
        it is ahead of the logistic loss; if it is not, its mean score is that of the logistic loss plus the difference.
        Empty lists without cross-validation.
    categories_ : dict
        Categories of each categorical column, by position.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the total gain of the splits.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    PartialAUCClassifierCV : Linear classifier for the partial AUC.

    Notes
    -----
    A sample weight multiplies the loss of a row. Only the ratios of the weights matter: the engine gets them divided by
    their mean, because its limits on the curvature in a leaf are for weights of about one. A weight is therefore not a
    number of copies of the row. In addition, ``min_samples_leaf``, the folds and the random subsets count rows.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import BoostedClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = BoostedClassifier(max_fpr=0.1, max_leaf_nodes=6, n_models=1, random_state=0).fit(X, y)
    >>> model.used_objective_ in ("binary", "window")
    True
    >>> model.contributions(X[:2]).values.shape
    (2, 20)
    """

    takes_sparse = True
    models_: list[TreeModel]

    def __init__(
        self,
        measure: str | Measure = "partial_auc",
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        min_tpr: float = 0.0,
        k: float = 0.1,
        beta: float = 1.0,
        engine: str = "lightgbm",
        objective: str = AUTO,
        max_leaf_nodes: int | str = AUTO,
        learning_rate: float | str = AUTO,
        n_estimators: int | str = AUTO,
        min_samples_leaf: int = 20,
        n_models: int = 3,
        cv: Any = None,
        categorical_features: Any = FROM_DTYPE,
        monotonic_cst: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.measure = measure
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.min_tpr = min_tpr
        self.k = k
        self.beta = beta
        self.engine = engine
        self.objective = objective
        self.max_leaf_nodes = max_leaf_nodes
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.n_models = n_models
        self.cv = cv
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> BoostedClassifier:
        """Tune and fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; NaN is a missing value.
        y
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, of which only the ratios matter.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer. No group is in both parts of a split, and folds by default or by
            number are those of :class:`~sklearn.model_selection.StratifiedGroupKFold`.

        Returns
        -------
        self
        """
        data, _ = self.fit_and_score(X, y, sample_weight, groups)
        self._warn_if_constant(data.X, self._scores)
        return self

    def fit_and_score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> tuple[TrainingSet, Array]:
        """Tune and fit the model, for other estimators; return the training rows and the held-out scores.

        The scores are those by which the threshold was chosen: of the held-out rows, fold by fold, from models that
        were not fitted to them, and without cross-validation of the training rows.
        """
        self._check_parameters()
        need(self.engine)
        data, categories = check_table(self, X, y, sample_weight, groups)
        check_limits(data, self.engine)
        self.classes_, self.categories_ = data.classes, categories
        measure = self._make_measure().as_fraction(data.positive.size)
        plan = self._plan(data, categories, measure)
        splits = self._splits(data)
        folds = Folds(data, splits, plan, selection_score(measure)) if splits else None
        self.cv_results_: dict[str, list[Any]] = {
            name: [] for name in ("max_leaf_nodes", "objective", "n_estimators", "mean_score", "std_score", "n_folds")
        }
        wanted = (self.max_leaf_nodes, self.n_estimators, self.objective)
        if folds is None:
            chosen = untried(*wanted, plan.max_rounds)
        else:
            chosen = choose(folds, plan, *wanted, measure, self._record)
        self._refit(data, plan, chosen)
        if folds is None:
            scores, rows = self._scores(data.X), slice(None)
        else:
            scores, rows = folds.held_out(chosen), folds.held_out_rows()
        weight = None if data.weight is None else data.weight[rows]
        self.threshold_ = measure.threshold(scores, data.positive[rows], weight)
        if folds is None:
            self.calibration_ = dict(_LOG_ODDS) if self.used_objective_ == "binary" else None
        else:
            self.calibration_ = fit_calibration(scores, data.positive[rows], weight)
        return data, scores

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, calibrated on held-out rows; they rank as the decision values do.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        return self._probabilities(X)

    def contributions(self, X: Any) -> Contributions:
        """Return the contribution of each feature to the decision value of each row (SHAP values).

        Parameters
        ----------
        X

        Returns
        -------
        rocmax.explain.Contributions
            SHAP values of the engine, averaged over the models. The reference is the mean decision value of the
            training rows as the engine counts them in the leaves: rows (LightGBM) or their curvatures (XGBoost).
        """
        rows = self.encode(X)
        threads = self._prediction_threads(rows)
        found: Array = np.mean([model.contributions(rows, threads) for model in self.models_], axis=0)
        found[:, -1] -= self.threshold_
        found *= direction(positive_index(self.classes_, self.pos_label))
        return Contributions(found[:, :-1], found[:, -1], column_names(self, rows), X)

    @property
    def feature_importances_(self) -> Array:
        """Share of each feature in the total gain of the splits."""
        gain = np.sum([model.importances() for model in self.models_], axis=0)
        return np.asarray(gain / (gain.sum() or 1.0))

    def boosters(self) -> list[Any]:
        """Return the ensembles as boosters of the engine, for tools that explain, plot or convert trees.

        The mean of their raw scores for the rows of :meth:`encode`, minus ``threshold_``, is the decision value; with
        ``pos_label=classes_[0]``, it has the opposite sign. Explanations are averaged alike.

        Returns
        -------
        list of lightgbm.Booster or xgboost.Booster
            One for each of ``n_models``. They are shared with this object: do not train them further.
        """
        check_is_fitted(self, "models_")
        return [model.booster() for model in self.models_]

    def _scores(self, X: Any) -> Array:
        threads = self._prediction_threads(X)
        return np.asarray(np.mean([model.predict(X, threads) for model in self.models_], axis=0))

    def _prediction_threads(self, X: Any) -> int | None:
        return engine_threads(self.n_jobs, X.shape[0] * self.n_estimators_)

    def _remedy(self) -> str:
        if self.engine == "lightgbm":
            return (
                f"No tree has a split: a leaf must have at least min_samples_leaf={self.min_samples_leaf} rows. "
                "Decrease it, use more rows, or check that the features differ between the classes."
            )
        return "No tree has a split: use more rows, or check that the features differ between the classes."

    def _plan(self, data: TrainingSet, categories: Categories, measure: Measure) -> Plan:
        rate = RULES.rate if self.learning_rate == AUTO else float(self.learning_rate)
        most = max(1, round(RULES.most_shrinkage / rate)) if self.n_estimators == AUTO else int(self.n_estimators)
        columns = sorted(categories)
        names = getattr(self, "feature_names_in_", None)
        monotonic = directions(self.monotonic_cst, self.n_features_in_, names, columns)
        threads = engine_threads(self.n_jobs, int(data.X.nnz if sparse.issparse(data.X) else data.X.size))
        subsample = self.n_models > 1 or self._tunes()
        settings = TreeSettings(self.engine, columns, monotonic, self.min_samples_leaf, threads, rate, subsample)
        return Plan(settings, most, int(random_source(self.random_state).randint(2**30)), window_loss(measure))

    def _record(self, tried: Candidate) -> None:
        size, objective, mean = tried.max_leaf_nodes, tried.objective, tried.score
        row = (size, objective, tried.n_rounds, mean, float(np.std(tried.scores)), len(tried.scores))
        for values, value in zip(self.cv_results_.values(), row, strict=True):
            values.append(value)
        if self.verbose:
            sys.stderr.write(
                f"{type(self).__name__}: {size} leaves, {objective} objective: held-out score {mean:.4f} after "
                f"{tried.n_rounds} rounds\n"
            )

    def _refit(self, data: TrainingSet, plan: Plan, chosen: Candidate) -> None:
        """Fit the models to all rows."""
        fine = self.learning_rate == self.n_estimators == AUTO and data.positive.size <= FOLD_RULES.all_folds
        usual, many = RULES.finer_rounds
        rounds = many if self._make_measure().name == "average_precision" else usual
        finer, more = (RULES.finer, rounds) if fine else (1, 1.0)
        rate = plan.settings.learning_rate / finer
        plan = plan._replace(settings=plan.settings._replace(learning_rate=rate))
        warm_up = None if chosen.warm_up is None else finer * chosen.warm_up
        self.max_leaf_nodes_, self.learning_rate_ = chosen.max_leaf_nodes, rate
        self.used_objective_, self.n_estimators_ = chosen.objective, max(1, round(more * chosen.n_rounds))
        rows = plan.data(data)
        self.models_ = []
        for i in range(self.n_models):
            grown = plan.start(rows, chosen.max_leaf_nodes, warm_up, 1000 + i)
            grown.grow(self.n_estimators_)
            self.models_.append(grown.model())
            if self.verbose:
                sys.stderr.write(f"{type(self).__name__}: fitted model {i + 1} of {self.n_models}\n")

    def _splits(self, data: TrainingSet) -> list[Split]:
        """Return the folds; none if there is nothing to choose or a class has fewer than two rows."""
        return self._folds(data) if self._tunes() else []

    def _tunes(self) -> bool:
        """Return whether there is something to choose."""
        return AUTO in (self.max_leaf_nodes, self.n_estimators, self.objective)

    def _check_parameters(self) -> None:
        self._check_measure()
        check_choice("engine", self.engine, ENGINES)
        check_choice("objective", self.objective, (AUTO, "binary", "window"))
        for name in ("min_samples_leaf", "n_models"):
            check_number(name, getattr(self, name), above=0, integer=True)
        for name, above, integer in (
            ("max_leaf_nodes", 1, True),
            ("learning_rate", 0.0, False),
            ("n_estimators", 0, True),
        ):
            value = getattr(self, name)
            if not (isinstance(value, str) and value == AUTO):
                check_number(f'{name} other than "auto"', value, above=above, integer=integer)
