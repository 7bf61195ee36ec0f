"""Registry of the measures by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rocmax.measures.base import Measure
from rocmax.measures.decisions import (
    BreakEvenPointMeasure,
    FBetaMeasure,
    GMeanMeasure,
    PrecisionAtKMeasure,
    WeightedRelativeAccuracyMeasure,
)
from rocmax.measures.ranking import (
    FPRAtTPRMeasure,
    PartialAUCMeasure,
    ROCAUCMeasure,
    TPRAtFPRMeasure,
    TwoWayPartialAUCMeasure,
)
from rocmax.metrics.registry import find_metric, named_metric

_KINDS: dict[str, type[Measure]] = {
    kind.name: kind
    for kind in (
        ROCAUCMeasure,
        PartialAUCMeasure,
        TwoWayPartialAUCMeasure,
        TPRAtFPRMeasure,
        FPRAtTPRMeasure,
        PrecisionAtKMeasure,
        BreakEvenPointMeasure,
        FBetaMeasure,
        GMeanMeasure,
        WeightedRelativeAccuracyMeasure,
    )
}


def measure_names(*, trainable: bool = False) -> list[str]:
    """Return the names of the measures.

    Parameters
    ----------
    trainable : bool, default=False
        Whether to return only the measures that have a loss for training.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> from rocmax.measures import measure_names
    >>> [name for name in measure_names() if name not in measure_names(trainable=True)]
    ['fpr_at_tpr', 'weighted_relative_accuracy']
    """
    return [name for name, kind in _KINDS.items() if kind.trainable or not trainable]


def find_measure(measure: str | Measure | Callable[..., float], **params: Any) -> Measure:
    """Return a measure by its name.

    Parameters
    ----------
    measure : str, Measure or callable
        One of :func:`measure_names`, with or without the suffix ``_score``; or a measure, which is returned unchanged;
        or a function of :mod:`rocmax.metrics`.
    **params
        Parameters of the measure, those of the function in :mod:`rocmax.metrics`, with its defaults.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    ValueError
        If the measure or a parameter is unknown, or if a parameter without a default is missing. The message lists the
        valid names.

    Examples
    --------
    >>> from rocmax.measures import find_measure
    >>> find_measure("tpr_at_fpr", max_fpr=0.01).title
    'TPR at FPR <= 0.01'
    """
    metric, filled = find_metric(measure, params)
    return measure if isinstance(measure, Measure) else _KINDS[metric.name](**filled)


def pick_measure(
    measure: str | Measure | Callable[..., float], offered: Mapping[str, Any], *, to_train: bool = False
) -> Measure:
    """Return a measure by its name, with the applicable subset of the given parameters.

    This is for callers with one set of parameters for all measures, such as estimators and the command line.

    Parameters
    ----------
    measure : str, Measure or callable
        One of :func:`measure_names`, with or without the suffix ``_score``; or a measure, which is returned unchanged;
        or a function of :mod:`rocmax.metrics`. A ``Measure`` keeps its own parameters.
    offered : mapping of str to object
        Values of parameters; those that the measure does not have are ignored.
    to_train : bool, default=False
        Whether to raise ValueError for a measure that has no loss for training.

    Returns
    -------
    Measure
        The measure.

    Examples
    --------
    >>> from rocmax.measures import pick_measure
    >>> pick_measure("precision_at_k", {"max_fpr": 0.1, "k": 0.05})
    PrecisionAtKMeasure(k=0.05)
    """
    if isinstance(measure, Measure):
        if to_train:
            measure.check_trainable()
        return measure
    metric = named_metric(measure)
    if to_train:
        # Checked before the parameters, which may be missing for a measure without a loss.
        _KINDS[metric.name].check_trainable()
    return find_measure(measure, **{name: offered[name] for name in metric.parameters if name in offered})
