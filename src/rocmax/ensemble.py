"""Ensembles of different models, weighted for the measure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import gen_batches

from rocmax._docstrings import publish
from rocmax._folds import Split, close_to_best
from rocmax._support import Array, Bools, Index
from rocmax._threads import engine_threads
from rocmax._validation import CHECKING, TrainingSet, check_number, direction, positive_index, random_source
from rocmax.base import MeasureParameterMixin
from rocmax.boosted.categories import FROM_DTYPE, Categories, check_table
from rocmax.boosted.classifier import BoostedClassifier, HeldOutScores
from rocmax.boosted.search import selection_score
from rocmax.explain import Contributions, column_names, contributions, fill
from rocmax.features import SplineFeatures
from rocmax.forest import Forest, grow_forest
from rocmax.measures import Measure
from rocmax.operators import moments
from rocmax.thresholds import fit_calibration


@dataclass(frozen=True)
class EnsembleRules:
    """Numbers of the choice of weights and of the additive member.

    They were chosen on splits that benchmarks/results/ensemble.md does not report.
    """

    # Members added in turn, each the one with which the mean of the ranks scores best.
    steps: int = 5
    # The weights are the mean of those that are behind the best ones by at most so many standard errors.
    n_errors: float = 1.0
    # At least so many trees are grown in each fold, as the held-out scores of fewer have too many ties.
    least_trees: int = 100
    # Values of a score between which its rank is interpolated; a tenth of them gives the slope beyond the outermost.
    knots: int = 100
    # The additive member is fitted to at most so many rows, and scores so many at a time: splines take memory.
    most_rows: int = 100_000
    # Contributions to a score get the slope of its rank from the reference to the score, or to a point that is farther
    # away by this share of the range of the scores: rounding makes slopes of shorter ways useless.
    least_way: float = 1e-6


RULES = EnsembleRules()


class Rows(NamedTuple):
    """Training rows of all members, with the folds, in which a member must score the rows that it was not fitted to.

    Without folds, the only one has all rows on both sides.
    """

    X: Array
    positive: Bools
    weight: Array | None
    categories: Categories
    folds: list[Split]
    tuned: bool
    measure: Measure
    seed: int
    threads: int | None

    def some(self, rows: Index) -> tuple[Array, Bools, Array | None]:
        """Return the values, labels and weights of some rows."""
        return self.X[rows], self.positive[rows], None if self.weight is None else self.weight[rows]

    def held_out(self, score: Callable[[Index, Array], Array]) -> Array:
        """Return the scores of the held-out rows; ``score`` gets training rows and the values of held-out ones."""
        return np.concatenate([score(train, self.X[test]) for train, test in self.folds])


Fitted = tuple[Any, Array]


class EnsembleClassifier(MeasureParameterMixin, HeldOutScores, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Weighted mean of the ranks of different models, with weights for the measure.

    Models that err on different rows rank better together. The members are

    - "boosted": :class:`BoostedClassifier`, and "xgboost", the same with the engine XGBoost;
    - "extra_trees": extremely randomized trees, grown until the leaves are pure, as
      :class:`~sklearn.ensemble.ExtraTreesClassifier` does by default. Each fold grows a part of them for its held-out
      scores. Of more than 10,000 rows, each tree gets a bootstrap sample of 10,000;
    - "additive": logistic regression on :class:`SplineFeatures` of the numbers and one-hot columns of the categories.

    All members are fitted in the same folds. The score of a member becomes the log-odds of its rank among the scores of
    the held-out rows,

    .. math:: \log \frac{r - 1/2}{n - r + 1/2}, \quad r = 1, \dots, n,

    interpolated between 100 of them, so that the score of a new row depends on no other new row. The weights are
    found by greedy selection with replacement: in five steps, the member is added with which the mean of the ranks has
    the highest held-out score, a smooth relative of the measure as in :class:`BoostedClassifier`. These means, and the
    equally weighted ones of some of the members, are the candidates. The weights are the average over all candidates
    that are at most one standard error of the paired difference behind the best, which depends less on chance than the
    best alone. Members without weight are dropped.

    The threshold and the probabilities are chosen on the held-out scores, as for :class:`BoostedClassifier`. With fewer
    than 40 rows there are no folds: the members have equal weights, and the scores of the training rows are used.

    Missing values (NaN) and categorical columns are handled by all members. Sparse rows are not supported.

    Parameters
    ----------
    measure : str or Measure, default="partial_auc"
        Measure to train for, as in :class:`BoostedClassifier`.
    min_fpr : ...
        Used by "partial_auc".
    max_fpr : ...
        Used by "partial_auc"; also the limit of "tpr_at_fpr".
    min_tpr : ...
        Used by "partial_auc".
    k : ...
        Used by "precision_at_k". A number is converted to a fraction of the training rows.
    beta : ...
        Used by "f_beta".
    members : list of str or dict, default=("boosted", "extra_trees", "additive")
        Names of the members, or a dict with the weight of each, which is then not chosen.
    boosted : BoostedClassifier, default=None
        Boosted trees of the members "boosted" and "xgboost", whose measure, engine, folds, categories, threads and
        seed are replaced; None for the defaults.
    n_trees : int, default=500
        Number of extremely randomized trees.
    cv : int, cross-validation generator or iterable, default=None
        Cross-validation splits. None takes five stratified folds for at most 20,000 rows, three for at most 30,000 and
        one held-out quarter for more; fewer folds if a class has fewer than five rows, and none for fewer than 40 rows.
        With ``groups``, the folds of None and of an int keep groups together, and other splits must do so.
    categorical_features : "from_dtype", None or array-like of int, bool or str, default="from_dtype"
        Columns of categories, as in :class:`BoostedClassifier`.
    n_jobs : int, default=None
        Number of threads, as in :class:`BoostedClassifier`.
    random_state, pos_label, verbose

    Attributes
    ----------
    members_ : dict
        The fitted members with a weight above zero, by name.
    weights_ : dict
        Weight of each of these members; the sum is 1.
    rank_tables_ : dict
        Scores of each of these members and the log-odds of their ranks, an array of shape (2, n_knots).
    threshold_ : float
        Threshold of the score.
    calibration_ : dict
        The function from scores to probabilities: ``"method"`` and its values.
    cv_results_ : dict of lists
        The candidates: ``"weights"``, ``"mean_score"``, and ``"scores"`` of the folds. Empty lists if nothing was
        chosen.
    fold_scores_ : ndarray of shape (n_folds,)
        The measure on the held-out rows of each fold, with the chosen weights and threshold.
    categories_ : dict
        Categories of each categorical column, by position.
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    BoostedClassifier : The member with the best scores on most tables, alone: fits and predictions are faster.

    Notes
    -----
    A weight is not a number of copies of the row: folds, random splits and the knots of splines count rows.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel (2006). Extremely randomized trees. Machine Learning 63, 3-42.
    R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes (2004). Ensemble selection from libraries of models. ICML.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import EnsembleClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = EnsembleClassifier(max_fpr=0.1, n_trees=100, random_state=0).fit(X, y)
    >>> set(model.weights_) <= {"boosted", "extra_trees", "additive"}
    True
    >>> round(sum(model.weights_.values()), 9)
    1.0
    """

    takes_sparse = False

    def __init__(
        self,
        measure: str | Measure = "partial_auc",
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        min_tpr: float = 0.0,
        k: float = 0.1,
        beta: float = 1.0,
        members: Any = ("boosted", "extra_trees", "additive"),
        boosted: Any = None,
        n_trees: int = 500,
        cv: Any = None,
        categorical_features: Any = FROM_DTYPE,
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
        self.members = members
        self.boosted = boosted
        self.n_trees = n_trees
        self.cv = cv
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> EnsembleClassifier:
        """Fit the members and choose their weights.

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
        self._check_parameters()
        data, self.categories_ = check_table(self, X, y, sample_weight, groups, dense=True)
        self.classes_ = data.classes
        rows = self._rows(data)
        fitted = {name: self._fit_member(name, rows) for name in self.members}
        tables = {name: rank_table(rows, scores) for name, (_, scores) in fitted.items()}
        ranks = {name: log_odds(tables[name], scores) for name, (_, scores) in fitted.items()}
        weights = self._choose_weights(rows, ranks)
        self.weights_ = {name: weight for name, weight in weights.items() if weight > 0}
        self.members_ = {name: fitted[name][0] for name in self.weights_}
        self.rank_tables_ = {name: tables[name] for name in self.weights_}
        scores = _mean(ranks, self.weights_)
        _, positive, weight = rows.some(np.concatenate([test for _, test in rows.folds]))
        self.threshold_ = rows.measure.threshold(scores, positive, weight)
        self.calibration_ = fit_calibration(scores, positive, weight)
        self.fold_scores_ = np.array(judged(rows, scores - self.threshold_, _measured(rows.measure)))
        self._warn_if_constant(rows.X, self._scores)
        return self

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
        r"""Return the contribution of each column to the decision value of each row.

        The decision value is :math:`\sum_m w_m T_m(s_m) - t`, with the weights :math:`w_m`, the scores :math:`s_m` of
        the members, the log-odds :math:`T_m` of their ranks and the threshold :math:`t`. What the columns :math:`j` add
        to the score of a member, :math:`c_{mj}`, has the sum :math:`s_m - r_m`, with a reference :math:`r_m`. It is
        multiplied by the slope of the log-odds between the reference and the score:

        .. math:: \sum_m w_m \frac{T_m(s_m) - T_m(r_m)}{s_m - r_m} \, c_{mj}.

        Where a score is within a millionth of the range of its reference, the slope is that of the next millionth, and
        what is missing is shared out in proportion. With ``pos_label=classes_[0]``, all signs are reversed.

        Parameters
        ----------
        X

        Returns
        -------
        rocmax.explain.Contributions
            The reference is :math:`\sum_m w_m T_m(r_m) - t`. For boosted trees, :math:`c_{mj}` are SHAP values, and for
            the additive member, weights times differences to the mean training row. For extremely randomized trees,
            each split on the path of a row adds the change of the share of positives to its column: these are not
            Shapley values.
        """
        rows = self.encode(X)
        threads = engine_threads(self.n_jobs, rows.size)
        values, reference = np.zeros(rows.shape), np.full(rows.shape[0], -self.threshold_)
        for name, weight in shares(self.weights_).items():
            table, member = self.rank_tables_[name], self.members_[name]
            parts, start = raw_contributions(member, rows, threads)
            scores, at_start = raw_scores(member, rows, threads), log_odds(table, start)
            parts *= slopes(table, start, scores)[:, np.newaxis]
            values += weight * fill(parts, log_odds(table, scores) - at_start)
            reference += weight * at_start
        sign = direction(positive_index(self.classes_, self.pos_label))
        return Contributions(sign * values, sign * reference, column_names(self, rows), X)

    def _scores(self, X: Any) -> Array:
        threads = engine_threads(self.n_jobs, X.size)
        ranks = {
            name: log_odds(self.rank_tables_[name], raw_scores(member, X, threads))
            for name, member in self.members_.items()
        }
        return _mean(ranks, self.weights_)

    def _fit_member(self, name: str, rows: Rows) -> Fitted:
        if name == "extra_trees":
            fitted = fit_forest(rows, self.n_trees)
        elif name == "additive":
            fitted = fit_additive(rows)
        else:
            given = BoostedClassifier() if self.boosted is None else clone(self.boosted)
            # With the seed, folds and trees are those of the boosted classifier alone.
            own = {"engine": ENGINES[name], "n_jobs": self.n_jobs, "random_state": self.random_state}
            fitted = fit_boosted(rows, given.set_params(**own))
        self._report(f"fitted {name}")
        return fitted

    def _choose_weights(self, rows: Rows, ranks: dict[str, Array]) -> dict[str, float]:
        """Return the weights that are given or chosen; equal weights without folds."""
        self.cv_results_: dict[str, list[Any]] = {"weights": [], "mean_score": [], "scores": []}
        given = dict(self.members) if isinstance(self.members, Mapping) else dict.fromkeys(ranks, 1.0)
        if isinstance(self.members, Mapping) or not rows.tuned or len(ranks) == 1:
            return shares(given)
        score = selection_score(rows.measure)
        tried = [
            (weights, judged(rows, _mean(ranks, weights), score))
            for weights in candidate_weights(list(ranks), lambda each: judged(rows, _mean(ranks, each), score))
        ]
        self.cv_results_ = {
            "weights": [weights for weights, _ in tried],
            "mean_score": [float(np.mean(scores)) for _, scores in tried],
            "scores": [scores for _, scores in tried],
        }
        close = close_to_best(np.transpose([scores for _, scores in tried]), RULES.n_errors)
        kept = [weights for (weights, _), is_close in zip(tried, close, strict=True) if is_close]
        chosen = {name: float(np.mean([weights[name] for weights in kept])) for name in ranks}
        self._report("weights " + ", ".join(f"{name} {weight:g}" for name, weight in chosen.items()))
        return chosen

    def _rows(self, data: TrainingSet) -> Rows:
        everything = np.arange(data.positive.size)
        splits = self._folds(data)
        weight = None if data.weight is None else data.weight / data.weight.mean()
        measure = self._make_measure().as_fraction(data.positive.size)
        seed = int(random_source(self.random_state).randint(2**30))
        return Rows(
            X=data.X,
            positive=data.positive,
            weight=weight,
            categories=self.categories_,
            folds=splits or [(everything, everything)],
            tuned=bool(splits),
            measure=measure,
            seed=seed,
            threads=engine_threads(self.n_jobs, data.X.size),
        )

    def _report(self, text: str) -> None:
        if self.verbose:
            sys.stderr.write(f"{type(self).__name__}: {text}\n")

    def _check_parameters(self) -> None:
        self._check_measure()
        check_number("n_trees", self.n_trees, above=0, integer=True)
        known = (*ENGINES, "extra_trees", "additive")
        names = [] if isinstance(self.members, str) else list(self.members)
        if not names or len(set(names)) < len(names) or not set(names) <= set(known):
            raise ValueError(f"members must be distinct names of {', '.join(known)}; got {self.members!r}")
        if isinstance(self.members, Mapping):
            for name, weight in self.members.items():
                check_number(f"the weight of {name}", weight, above=0.0)
        if self.boosted is not None and not isinstance(self.boosted, BoostedClassifier):
            raise ValueError(f"boosted must be a BoostedClassifier or None; got {type(self.boosted).__name__}")


# Members. Each function returns the fitted model and the scores of the held-out rows, fold by fold.

# Engines of the members with boosted trees.
ENGINES = {"boosted": "lightgbm", "xgboost": "xgboost"}


def fit_boosted(rows: Rows, model: BoostedClassifier) -> Fitted:
    """Fit boosted trees, which are scored in their own search if there is something to tune."""
    given = {
        "measure": rows.measure,
        "cv": rows.folds if rows.tuned else None,
        "categorical_features": sorted(rows.categories) or None,
        "pos_label": True,
    }
    _, scores = model.set_params(**given).fit_and_score(rows.X, rows.positive, rows.weight)
    model.set_params(cv=None)  # do not save the folds, which are large, with the model
    if rows.tuned and not model.cv_results_["mean_score"]:
        one = clone(model).set_params(n_models=1)

        def score(train: Index, X: Array) -> Array:
            one.fit_and_score(*rows.some(train))
            return raw_scores(one, X)

        scores = rows.held_out(score)
    return model, scores


def fit_forest(rows: Rows, n_trees: int) -> Fitted:
    """Grow a forest on all rows, and a part of the trees in each fold."""
    part = max(-(-n_trees // len(rows.folds)), min(n_trees, RULES.least_trees))

    def grown(train: Index, n_trees: int) -> Forest:
        return grow_forest(*rows.some(train), n_trees, rows.seed, rows.threads)

    scores = rows.held_out(lambda train, X: grown(train, part).predict(X, rows.threads))
    return grown(np.arange(rows.positive.size), n_trees), scores


def fit_additive(rows: Rows) -> Fitted:
    """Fit a logistic regression on splines of the numbers and one-hot columns of the categories."""
    numbers = [place for place in range(rows.X.shape[1]) if place not in rows.categories]
    parts = [
        ("numbers", make_pipeline(SplineFeatures(), StandardScaler()), numbers),
        ("categories", OneHotEncoder(handle_unknown="ignore"), sorted(rows.categories)),
    ]
    table = ColumnTransformer([part for part in parts if part[2]]).set_output(transform="default")
    rng = np.random.default_rng(rows.seed)

    def fitted(train: Index) -> Any:
        if train.size > RULES.most_rows:
            train = np.sort(rng.choice(train, RULES.most_rows, replace=False))
        X, positive, weight = rows.some(train)
        with CHECKING:
            features = clone(table)
            made = features.fit_transform(X)
            model = LogisticRegression(max_iter=1000).fit(made, positive, weight)
        model._feature_means_ = moments(made, weight)[0]
        return Pipeline([("table", features), ("model", model)])

    return fitted(np.arange(rows.positive.size)), rows.held_out(lambda train, X: raw_scores(fitted(train), X))


def raw_scores(member: Any, X: Array, threads: int | None = None) -> Array:
    """Return the scores of a member."""
    if isinstance(member, Forest):
        return member.predict(X, threads)
    if isinstance(member, BoostedClassifier):
        return member.decision_function(X) + member.threshold_
    with CHECKING:
        return np.concatenate([member.decision_function(X[rows]) for rows in gen_batches(X.shape[0], RULES.most_rows)])


def raw_contributions(member: Any, X: Array, threads: int | None = None) -> tuple[Array, Array]:
    """Return what each column adds to the scores of a member, and the scores without it."""
    if isinstance(member, Forest):
        return member.contributions(X, threads)
    with CHECKING:
        parts = [contributions(member, X[rows]) for rows in gen_batches(X.shape[0], RULES.most_rows)]
    reference = np.concatenate([part.reference for part in parts])
    return np.concatenate([part.values for part in parts]), reference + getattr(member, "threshold_", 0.0)


# Ranks.


def rank_table(rows: Rows, scores: Array) -> Array:
    """Return scores of held-out rows, ascending, and the log-odds of their ranks, evenly spaced in these."""
    weight = rows.some(np.concatenate([test for _, test in rows.folds]))[2]
    knots, place = np.unique(scores, return_inverse=True)
    mass = np.bincount(place, weight).astype(np.float64)
    odds = logit((np.cumsum(mass) - mass / 2) / mass.sum())
    kept = np.arange(knots.size)
    if knots.size > RULES.knots:
        kept = np.unique(np.searchsorted(odds, np.linspace(odds[0], odds[-1], RULES.knots)))
    return np.array([knots[kept], odds[kept]])


def end_slopes(table: Array) -> Array:
    """Return the slopes of a table below the first and above the last of its scores."""
    n_knots = table.shape[1]
    if n_knots == 1:
        return np.zeros(2)
    step = max(1, n_knots // 10)
    rise = table[:, [step, -1]] - table[:, [0, -1 - step]]
    return np.asarray(rise[1] / rise[0])


def log_odds(table: Array, scores: Array) -> Array:
    """Return the log-odds of the ranks of scores: interpolated in a table, and linear beyond it."""
    knots, odds = table
    below, above = end_slopes(table)
    beyond = below * np.minimum(scores - knots[0], 0.0) + above * np.maximum(scores - knots[-1], 0.0)
    return np.asarray(np.interp(scores, knots, odds) + beyond)


def slopes(table: Array, start: Array, scores: Array) -> Array:
    """Return the mean slopes of the log-odds of ranks on the ways from references to scores."""
    least = RULES.least_way * (np.ptp(table[0]) + np.abs(start))
    way = np.where(np.abs(scores - start) > least, scores - start, np.where(least > 0, least, 1.0))
    return np.asarray((log_odds(table, start + way) - log_odds(table, start)) / way)


# Weights.


def candidate_weights(names: list[str], judge: Callable[[dict[str, float]], list[float]]) -> list[dict[str, float]]:
    """Return the weights to compare: equal ones of some of the members, and those of each step of greedy selection."""
    found = [dict(zip(names, each, strict=True)) for each in product((0.0, 1.0), repeat=len(names)) if any(each)]
    counts = dict.fromkeys(names, 0.0)
    for _ in range(RULES.steps):
        added = [{**counts, name: counts[name] + 1} for name in names]
        counts = max(added, key=lambda each: float(np.mean(judge(each))))
        found.append(counts)
    return list({tuple(each.values()): each for each in map(shares, found)}.values())


def shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights with a sum of 1."""
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def judged(rows: Rows, scores: Array, score: Callable[[Bools, Array, Array | None], float]) -> list[float]:
    """Return the score of the held-out rows of each fold."""
    found, end = [], 0
    for _, test in rows.folds:
        _, positive, weight = rows.some(test)
        found.append(score(positive, scores[end : end + test.size], weight))
        end += test.size
    return found


def _measured(measure: Measure) -> Callable[[Bools, Array, Array | None], float]:
    return lambda positive, decision, weight: measure.score(positive, decision, sample_weight=weight, pos_label=True)


def _mean(ranks: Mapping[str, Array], weights: Mapping[str, float]) -> Array:
    total = sum(weights.values())
    return np.asarray(sum(weight * ranks[name] for name, weight in weights.items() if weight > 0) / total)


__all__ = ["EnsembleClassifier"]
# Classes stored in fitted models. Model files refer to them by name, so the names must not change.
_STORED = {"Forest": Forest}
# The name is exported by the package rocmax.
publish("rocmax", globals(), __all__)
publish("rocmax.ensemble", _STORED, _STORED)
