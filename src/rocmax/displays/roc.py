"""Display of ROC curves with a range of rates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rocmax._response import named_pos_label
from rocmax._typing import Array
from rocmax._window import check_floor, check_window
from rocmax.displays._figure import STYLES, new_axes
from rocmax.displays._inset import Box, LegendText, connectors, frame, label_inset, place, text_size
from rocmax.metrics.bootstrap import check_level, tail_share
from rocmax.metrics.curve import Curve, score_blocks
from rocmax.metrics.registry import find_metric
from rocmax.metrics.resamples import resamples
from rocmax.metrics.scorer import positive_scores

N_GRID = 400


class RocBand(NamedTuple):
    """ROC curve of a model, with a confidence band on a grid of false-positive rates."""

    name: str
    fpr: Array
    tpr: Array
    grid: Array
    low: Array
    high: Array


class PartialROCDisplay:
    """ROC curves with confidence bands and a range of rates, which is shaded and enlarged in an inset.

    The range is limited by two false-positive rates, by a true-positive rate, or by both, which is a corner.

    Use :meth:`from_predictions`, :meth:`from_estimator` or :meth:`from_cv_results` to create a display.

    Parameters
    ----------
    curves : list of RocBand
        Curves of the models.
    min_fpr : float, default=0.0
        Lower end of the range of false-positive rates, at least 0.
    max_fpr : float, default=1.0
        Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
    min_tpr : float, default=0.0
        Lower limit on the true-positive rate, at least 0 and below 1.
    pos_label : int, float, bool or str, default=None
        Label of the positive class, for the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the plot.
    inset_ : matplotlib.axes.Axes or None
        Inset with the enlarged range.
    figure_ : matplotlib.figure.Figure
        Figure of the plot.
    lines_ : list of matplotlib.lines.Line2D
        Lines of the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from rocmax import PartialROCDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(500) % 5 == 0
    >>> scores = {"good": y + rng.normal(size=500), "poor": 0.5 * y + rng.normal(size=500)}
    >>> display = PartialROCDisplay.from_predictions(y, scores, max_fpr=0.1, n_resamples=50, random_state=0)
    >>> [curve.name for curve in display.curves]
    ['good', 'poor']
    """

    def __init__(
        self,
        curves: list[RocBand],
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 1.0,
        min_tpr: float = 0.0,
        pos_label: Any = None,
    ) -> None:
        check_window(min_fpr, max_fpr)
        check_floor(min_tpr)
        self.curves = curves
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.min_tpr = min_tpr
        self.pos_label = pos_label

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | dict[str, ArrayLike],
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 1.0,
        min_tpr: float = 0.0,
        n_resamples: int = 500,
        confidence_level: float = 0.95,
        random_state: int | np.random.Generator | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str = "model",
        ax: Any = None,
        **options: Any,
    ) -> PartialROCDisplay:
        """Plot the curves of one or several models from their scores on the same rows.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Two classes, of any type.
        y_score : array-like of shape (n_samples,) or dict of str to array-like
            Scores of one model, or a dict with the scores of several models by name.
        min_fpr : float, default=0.0
            Lower end of the range of false-positive rates.
        max_fpr : float, default=1.0
            Upper end of the range of false-positive rates.
        min_tpr : float, default=0.0
            Lower limit on the true-positive rate.
        n_resamples : int, default=500
            Number of resamples of the stratified bootstrap for the bands; 0 for no bands.
        confidence_level : float, default=0.95
            Pointwise confidence level of the bands.
        random_state : int, Generator, default=None
            Seed of the bootstrap.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, equivalent to a number of copies.
        pos_label : object, default=None
            Label of the positive class. If None, the larger label is used.
        name : str, default="model"
            Name of the model if there is only one.
        ax : matplotlib.axes.Axes, default=None
            Axes to plot on. If None, a new figure is created.
        **options
            Options passed to :meth:`plot`.

        Returns
        -------
        PartialROCDisplay
            The display, after plotting.
        """
        check_level(confidence_level)
        named = y_score if isinstance(y_score, dict) else {name: y_score}
        rng = np.random.default_rng(random_state)
        curves = []
        for label, scores in named.items():
            blocks = score_blocks(y_true, scores, sample_weight, pos_label)
            grid = _grid(max_fpr)
            drawn = np.array([_heights(draw.curve(), grid) for draw in resamples(blocks, n_resamples, rng)])
            curve = blocks.curve()
            tail = tail_share(confidence_level, min(curve.n, curve.m))
            low, high = np.quantile(drawn, [tail, 1 - tail], axis=0) if n_resamples else np.empty((2, 0))
            curves.append(RocBand(label, curve.fp / curve.n, curve.tp / curve.m, grid, low, high))
        return cls(curves, min_fpr=min_fpr, max_fpr=max_fpr, min_tpr=min_tpr, pos_label=pos_label).plot(ax, **options)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> PartialROCDisplay:
        """Plot the curves of one or several fitted classifiers.

        Parameters
        ----------
        estimator : classifier or dict of str to classifier
            Fitted classifiers with ``decision_function`` or ``predict_proba``.
        X : array-like
            Rows.
        y : array-like of shape (n_samples,)
            Classes of the rows.
        pos_label : object, default=None
            Label of the positive class. If None, that of the estimators is used; if they have none, the larger label.
            Different labels are an error.
        **options
            Options passed to :meth:`from_predictions`.

        Returns
        -------
        PartialROCDisplay
            The display, after plotting.
        """
        named = estimator if isinstance(estimator, dict) else {type(estimator).__name__: estimator}
        pos_label = named_pos_label(named.values(), pos_label)
        scores: dict[str, Any] = {name: positive_scores(model, X, pos_label=pos_label) for name, model in named.items()}
        return cls.from_predictions(y, scores, pos_label=pos_label, **options)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: dict[str, Any],
        X: Any,
        y: ArrayLike,
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 1.0,
        min_tpr: float = 0.0,
        pos_label: Any = None,
        name: str = "mean of the folds",
        ax: Any = None,
        **options: Any,
    ) -> PartialROCDisplay:
        """Plot the mean curve over the folds of ``cross_validate``, with a band of one standard deviation.

        Parameters
        ----------
        cv_results : dict
            Result of ``cross_validate(..., return_estimator=True, return_indices=True)``.
        X : array-like
            Rows passed to ``cross_validate``.
        y : array-like
            Classes passed to ``cross_validate``.
        min_fpr : float, default=0.0
            Lower end of the range of false-positive rates.
        max_fpr : float, default=1.0
            Upper end of the range of false-positive rates.
        min_tpr : float, default=0.0
            Lower limit on the true-positive rate.
        pos_label : object, default=None
            Label of the positive class. If None, that of the estimators is used; if they have none, the larger label.
            Different labels are an error.
        name : str, default="mean of the folds"
            Name of the curve.
        ax : matplotlib.axes.Axes, default=None
            Axes to plot on. If None, a new figure is created.
        **options
            Options passed to :meth:`plot`.

        Returns
        -------
        PartialROCDisplay
            The display, after plotting.
        """
        from sklearn.utils import _safe_indexing

        if "estimator" not in cv_results or "indices" not in cv_results:
            raise ValueError(
                "cv_results must come from cross_validate(..., return_estimator=True, return_indices=True)"
            )
        pos_label = named_pos_label(cv_results["estimator"], pos_label)
        grid, labels, heights = _grid(max_fpr), np.asarray(y), []
        for model, test in zip(cv_results["estimator"], cv_results["indices"]["test"], strict=True):
            scores = positive_scores(model, _safe_indexing(X, test), pos_label=pos_label)
            heights.append(_heights(score_blocks(labels[test], scores, None, pos_label).curve(), grid))
        mean, spread = np.mean(heights, axis=0), np.std(heights, axis=0, ddof=1)
        low, high = np.clip(mean - spread, 0, 1), np.clip(mean + spread, 0, 1)
        curve = RocBand(name, np.append(0.0, grid), np.append(0.0, mean), grid, low, high)
        return cls([curve], min_fpr=min_fpr, max_fpr=max_fpr, min_tpr=min_tpr, pos_label=pos_label).plot(ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        inset: bool | None = None,
        scale: str = "linear",
        measure: str | None = "partial_auc",
    ) -> PartialROCDisplay:
        """Plot the display.

        The legend and the inset are below the curves, within the axes. Lines between the range and the inset are drawn
        only where they cross no curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to plot on. If None, a new figure is created.
        inset : bool, default=None
            Whether to enlarge the range in an inset. If None, it is enlarged if it is at most a third of either axis
            and there is room below the curves.
        scale : {"linear", "log"}, default="linear"
            Scale of the false-positive rates in the inset.
        measure : {"partial_auc", "tpr_at_fpr"} or None, default="partial_auc"
            Measure in the legend: the partial AUC in the range (pAUC; the AUC if the range is the whole curve), the
            true-positive rate at ``max_fpr``, or none.

        Returns
        -------
        PartialROCDisplay
            The display, after plotting.
        """
        if scale not in ("linear", "log"):
            raise ValueError(f'scale must be "linear" or "log"; got {scale!r}')
        if measure not in ("partial_auc", "tpr_at_fpr", None):
            raise ValueError(f'measure must be "partial_auc", "tpr_at_fpr" or None; got {measure!r}')
        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        positive = "" if self.pos_label is None else f" of {self.pos_label}"
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="False-positive rate", ylabel=f"True-positive rate{positive}")
        ax.set_aspect("equal")
        if (self.min_fpr, self.max_fpr, self.min_tpr) != (0.0, 1.0, 0.0):
            ax.fill_between(
                (self.min_fpr, self.max_fpr), self.min_tpr, 1.0, color="0.5", alpha=0.13, linewidth=0, zorder=0
            )
        ax.plot([0, 1], [0, 1], color="0.75", linewidth=1, zorder=0)
        legend = LegendText([self._label(curve, measure) for curve in self.curves], text_size(ax, "small"))
        self.lines_ = self._draw(ax, legend.labels)
        small = min(self.max_fpr - self.min_fpr, 1 - self.min_tpr) <= 1 / 3
        box = None
        if inset or (inset is None and small):
            bands = [self._lower_end(curve) for curve in self.curves]
            box = place(bands, legend.size, text_size(ax, "x-small"), forced=bool(inset))
        self.inset_ = None if box is None else self._enlarge(ax, scale, box)
        ax.legend(**legend.options(box))
        return self

    def _label(self, curve: RocBand, measure: str | None) -> str:
        """Return the name of a curve with its measure."""
        if measure is None:
            return curve.name
        limits = {"min_fpr": self.min_fpr, "max_fpr": self.max_fpr, "min_tpr": self.min_tpr}
        if measure == "tpr_at_fpr":
            limits = {"max_fpr": self.max_fpr}
        found, params = find_metric(measure, limits)
        value = found.from_curve(Curve(curve.fpr, curve.tpr), **params)
        if measure == "tpr_at_fpr":
            return f"{curve.name} (TPR {value:.3f} at FPR {self.max_fpr:g})"
        whole = (self.min_fpr, self.max_fpr, self.min_tpr) == (0.0, 1.0, 0.0)
        return f"{curve.name} ({'AUC' if whole else 'pAUC'} {value:.3f})"

    def _draw(self, ax: Any, labels: list[str]) -> list[Any]:
        lines = []
        for number, (curve, label) in enumerate(zip(self.curves, labels, strict=True)):
            color, dashes = STYLES[number % len(STYLES)]
            lines += ax.plot(curve.fpr, curve.tpr, color=color, linestyle=dashes, linewidth=1.8, label=label)
            if curve.low.size:
                ax.fill_between(curve.grid, curve.low, curve.high, color=color, alpha=0.15, linewidth=0)
        return lines

    def _enlarge(self, ax: Any, scale: str, box: Box) -> Any:
        """Draw the range again in an inset."""
        inset = ax.inset_axes(box)
        self._draw(inset, [curve.name for curve in self.curves])
        start, bottom, top = self.min_fpr, *self._heights_in_range()
        if scale == "log":
            steps = min(curve.fpr[curve.fpr > 0].min() for curve in self.curves)
            start = max(start, min(steps, self.max_fpr / 10))
            inset.set_xscale("log")
        inset.set(xlim=(start, self.max_fpr), ylim=(bottom, top))
        label_inset(inset)
        enlarged = (start, bottom, self.max_fpr - start, top - bottom)
        outlines = [(curve.fpr, curve.tpr) for curve in self.curves]
        outlines += [(curve.grid, end) for curve in self.curves if curve.low.size for end in (curve.low, curve.high)]
        frame(ax, enlarged, connectors(enlarged, box, outlines))
        return inset

    def _lower_end(self, curve: RocBand) -> tuple[Array, Array]:
        return (curve.grid, curve.low) if curve.low.size else (curve.fpr, curve.tpr)

    def _heights_in_range(self) -> tuple[float, float]:
        """Return a range of true-positive rates that fits the curves and bands in the range of false-positive rates."""
        if self.min_tpr > 0:
            return self.min_tpr, 1.0
        ends = np.array([self.min_fpr, self.max_fpr])
        lows, highs = [], []
        for curve in self.curves:
            fpr, low, high = (
                (curve.grid, curve.low, curve.high) if curve.low.size else (curve.fpr, curve.tpr, curve.tpr)
            )
            lows.append(np.interp(ends[0], fpr, low) if ends[0] > 0 else 0.0)
            highs.append(np.interp(ends[1], fpr, high))
        margin = 0.05 * (max(highs) - min(lows))
        top = min(1.0, float(max(highs)) + margin)
        return max(0.0, float(min(lows)) - margin), top or 1.0


def _grid(max_fpr: float) -> Array:
    """Return the false-positive rates of a band: evenly spaced, and denser within the range."""
    return np.unique(np.concatenate((np.linspace(0, 1, N_GRID + 1), np.geomspace(max_fpr / 100, max_fpr, N_GRID // 2))))


def _heights(curve: Curve, grid: Array) -> Array:
    """Return the TPR at each rate, interpolated linearly through ties; at a vertical step, its upper end."""
    fpr, tpr = curve.fp / curve.n, curve.tp / curve.m
    last = np.append(np.diff(fpr) > 0, True)
    result: Array = np.interp(grid, fpr[last], tpr[last])
    return result
