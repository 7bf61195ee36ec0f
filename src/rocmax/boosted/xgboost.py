"""Objectives and evaluation metrics for XGBoost's own interface and its interface for scikit-learn."""

from __future__ import annotations

from rocmax._docstrings import publish
from rocmax.boosted.objective import Objective, TreeEvaluation
from rocmax.losses import Loss
from rocmax.measures import Measure

__all__ = ["evaluation", "objective"]


def objective(loss: Loss | None = None, *, n_warmup: int = 25) -> Objective:
    """Return an objective for one fit: binary log loss in the first rounds, then a loss on the scores.

    Parameters
    ----------
    loss, n_warmup
        As in :func:`rocmax.boosted.lightgbm.objective`.

    Returns
    -------
    callable
        The parameter ``obj`` of ``xgboost.train`` and ``objective`` of ``xgboost.XGBClassifier``.

    Notes
    -----
    Labels are 0 and 1. The objective applies the weights of the ``DMatrix``, divided by their mean; XGBoost itself does
    not apply them to a callable. It also ignores ``scale_pos_weight``, without an error because the objective cannot
    see it; use weights. In ``xgboost.train``, ``base_score`` is a constant in all scores, not a probability; the binary
    rounds start at the logarithm of the odds whatever it is, and a constant does not change a ranking. Gradients and
    curvatures of the loss are scaled by a constant, so that the curvatures have the mean 0.1 in its first round.

    The objective counts rounds, so one object is for one fit: make a new one for each. ``xgboost.cv`` cannot be used,
    because it trains several models at the same time.

    Examples
    --------
    >>> import xgboost as xgb
    >>> from rocmax.boosted.xgboost import evaluation, objective
    >>> from rocmax.measures import find_measure
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(3000, weights=[0.9], random_state=0)
    >>> data, held_out = xgb.DMatrix(X[:2000], y[:2000]), xgb.DMatrix(X[2000:], y[2000:])
    >>> measure = evaluation(find_measure("partial_auc", max_fpr=0.05))
    >>> found = {}
    >>> model = xgb.train({"max_depth": 3, "disable_default_eval_metric": True}, data, 40, obj=objective(n_warmup=10),
    ...                   custom_metric=measure, evals=[(held_out, "test")], evals_result=found, verbose_eval=False)
    >>> sorted(found["test"])
    ['partial_auc']
    """
    return Objective(loss, n_warmup)


def evaluation(measure: str | Measure, *, name: str | None = None) -> TreeEvaluation:
    """Return an evaluation metric.

    Parameters
    ----------
    measure, name
        As in :func:`rocmax.boosted.lightgbm.evaluation`.

    Returns
    -------
    callable
        The parameter ``custom_metric`` of ``xgboost.train`` and ``eval_metric`` of ``xgboost.XGBClassifier``. XGBoost
        minimizes metrics of unknown names: for early stopping, pass ``maximize=True`` to ``xgboost.train`` or to
        ``xgboost.callback.EarlyStopping``. Measures of decisions, such as F-beta, are computed at the best threshold
        for the rows.

    Examples
    --------
    >>> from rocmax.boosted.xgboost import evaluation
    >>> evaluation("roc_auc")([0, 1, 1], [0.1, 0.4, 0.3])
    1.0
    """
    return TreeEvaluation(measure, name, of_lightgbm=False)


publish("rocmax.boosted.xgboost", globals(), __all__)
