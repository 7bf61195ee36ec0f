"""Base class of the measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

from rocmax._typing import Array, Bools
from rocmax.losses import Loss
from rocmax.metrics.registry import METRICS, Metric


class Measure(ABC):
    """Performance measure of a classifier.

    A subclass is a frozen dataclass whose fields are the parameters of the measure. It can be passed to every estimator
    with a parameter ``measure``, to :func:`rocmax.metrics.make_scorer`, and to the bootstrap intervals and tests.

    Attributes
    ----------
    name : str
        Name of the measure.
    trainable : bool
        Whether the measure has losses for training.
    depends_on_class_ratio : bool
        Whether the value depends on the share of positives. If one class is subsampled, weights are then required.
    """

    name: ClassVar[str]
    trainable: ClassVar[bool] = True
    depends_on_class_ratio: ClassVar[bool] = True

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def metric(self) -> Metric:
        """Function that computes the measure; a custom measure returns its own ``Metric``."""
        return METRICS[self.name]

    @property
    @abstractmethod
    def title(self) -> str:
        """Description of the measure, for tables and reports."""

    @property
    def counts_rows(self) -> bool:
        """Whether a parameter is a number of rows, so that the measure depends on the size of the sample."""
        return False

    def as_fraction(self, n_rows: float) -> Measure:
        """Return the measure with numbers of rows converted to fractions of ``n_rows``, for use on parts of a sample.

        Parameters
        ----------
        n_rows : float
            Number of rows of the whole sample, or their total weight.

        Returns
        -------
        Measure
            The measure; itself if no parameter is a number of rows.
        """
        return self

    def score(self, y_true: Any, decision: Any, *, sample_weight: Any = None, pos_label: Any = None) -> float:
        """Return the value of the measure.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, of two classes.
        decision : array-like of shape (n_samples,)
            Scores minus the threshold: a value above 0 predicts the positive class. Ranking measures do not depend on
            the threshold.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of copies of each row.
        pos_label : object, default=None
            The positive class; the larger label if None.

        Returns
        -------
        float
            The value. Higher is better, unless ``metric.greater_is_better`` is False.
        """
        return self.metric.of_decision(y_true, decision, sample_weight, pos_label, **self.params)

    def convex_loss(self) -> Loss:
        """Return the convex loss for the measure, which is invariant to a shift of the scores."""
        raise self._no_loss()

    def soft_loss(self, width: float) -> Loss:
        """Return the bounded loss for the measure, with a step of the given width in the scores."""
        raise self._no_loss()

    def threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float:
        """Return the threshold for the measure, chosen on training scores."""
        raise self._no_loss()

    def score_at_threshold(self, scores: Array, positive: Bools, weight: Array | None = None) -> float | None:
        """Return the score of the row that determines the threshold; None if all rows have to be compared.

        Scores that differ from it by rounding error only are treated as ties. A measure with a :meth:`threshold` of its
        own that is derived from another measure must define this method, too.
        """
        return None

    @classmethod
    def check_trainable(cls) -> None:
        """Raise ValueError if the measure has no loss for training; the message lists the measures that have one."""
        if not cls.trainable:
            raise cls._no_loss()

    @classmethod
    def _no_loss(cls) -> ValueError:
        # Imported here because the registry imports this module.
        from rocmax.measures.registry import measure_names

        names = ", ".join(measure_names(trainable=True))
        return ValueError(
            f"the measure to optimize must be one of {names}; got {cls.name!r}, which has no training loss and is only "
            "available in scorers, intervals and comparisons"
        )
