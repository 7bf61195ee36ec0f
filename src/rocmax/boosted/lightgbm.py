"""Objectives and evaluation metrics for LightGBM's own interface and its interface for scikit-learn."""

from __future__ import annotations

from typing import Any

from rocmax._docstrings import publish
from rocmax.boosted.objective import Objective, TreeEvaluation
from rocmax.losses import Loss
from rocmax.measures import Measure

__all__ = ["evaluation", "objective"]

# Parameters that have no effect with a callable objective, and the values that ask for none.
_IGNORED = {"scale_pos_weight": 1, "is_unbalance": False, "unbalance": False, "unbalanced_sets": False}


def objective(loss: Loss | None = None, *, n_warmup: int = 25) -> Objective:
    """Return an objective for one fit: binary log loss in the first rounds, then a loss on the scores.

    Parameters
    ----------
    loss : Loss, default=None
        A loss with a diagonal curvature, such as :class:`rocmax.losses.WindowPairs`. None charges pairs by a sigmoid of
        their difference, with a soft tail of 5 % of the negatives.
    n_warmup : int, default=25
        Number of rounds of binary log loss at the start, about a quarter of all rounds; 0 for none. A window from the
        first round on would fit the negatives that happen to have the highest scores.

    Returns
    -------
    callable
        The parameter ``objective`` of ``lightgbm.train`` and of ``lightgbm.LGBMClassifier``.

    Notes
    -----
    Labels are 0 and 1. The objective applies the weights of the data set, divided by their mean; LightGBM itself does
    not apply them to a callable. It also ignores ``scale_pos_weight`` and ``is_unbalance``, which are errors here; use
    weights.
    ``boost_from_average`` has no effect: the binary rounds start at the logarithm of the odds instead, a constant that
    the scores of the model do not contain. The same applies to an ``init_score``, which LightGBM does not add to
    predictions. A constant does not change a ranking. Gradients and curvatures of the loss are scaled by a constant, so
    that the curvatures have the mean 0.1 in its first round. For more than 16,384 rows, the loss is computed from 1,024
    bins of the scores of each class.

    The objective counts rounds, so one object is for one fit. ``lightgbm.train`` uses a copy and can be called again
    with the same object. ``lightgbm.cv`` cannot be used, because it trains several models at the same time.

    With the interface for scikit-learn, ``predict_proba`` and ``predict`` return scores for a callable objective.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> from rocmax.boosted.lightgbm import evaluation, objective
    >>> from rocmax.measures import find_measure
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(3000, weights=[0.9], random_state=0)
    >>> data, held_out = lgb.Dataset(X[:2000], y[:2000]), lgb.Dataset(X[2000:], y[2000:])
    >>> params = {"objective": objective(n_warmup=10), "num_leaves": 8, "verbose": -1}
    >>> measure = evaluation(find_measure("partial_auc", max_fpr=0.05))
    >>> model = lgb.train(params, data, 40, valid_sets=[held_out], feval=measure)
    >>> sorted(model.best_score["valid_0"])
    ['partial_auc']
    """
    return Objective(loss, n_warmup, _check_parameters)


def evaluation(measure: str | Measure, *, name: str | None = None) -> TreeEvaluation:
    """Return an evaluation metric.

    Parameters
    ----------
    measure : str or Measure
        A measure, such as ``find_measure("partial_auc", max_fpr=0.05)``, or its name.
    name : str, default=None
        Name in logs and records; None is the name of the measure. Two measures of one kind need different names.

    Returns
    -------
    callable
        The parameter ``feval`` of ``lightgbm.train`` and ``eval_metric`` of ``LGBMClassifier.fit``. LightGBM knows
        whether higher values are better, so early stopping works. Measures of decisions, such as F-beta, are computed
        at the best threshold for the rows.

    Examples
    --------
    >>> from rocmax.boosted.lightgbm import evaluation
    >>> evaluation("roc_auc")([0, 1, 1], [0.1, 0.4, 0.3])
    ('roc_auc', 1.0, True)
    """
    return TreeEvaluation(measure, name, of_lightgbm=True)


def _check_parameters(data: Any) -> None:
    """Raise ValueError for class weights in the parameters of the training set."""
    for name, none in _IGNORED.items():
        given = (data.params or {}).get(name, none)
        if given != none:
            raise ValueError(
                f"{name} must be {none}, because LightGBM ignores it for a callable objective; got {given!r}. Use the "
                f"weights of the data set"
            )


publish("rocmax.boosted.lightgbm", globals(), __all__)
