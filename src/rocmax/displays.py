"""Displays, which follow the scikit-learn API: they store arrays and draw them in ``plot``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rocmax._docstrings import publish
from rocmax._support import Array, check_floor, check_window
from rocmax._validation import named_pos_label
from rocmax.metrics.curve import Curve, score_blocks
from rocmax.metrics.scores import best_tpr, partial_auc, positive_scores
from rocmax.metrics.uncertainty import check_level, resamples, tail_share

if TYPE_CHECKING:
    from rocmax.linear.path import PartialAUCPath


# Colors of Okabe and Ito, which color-blind readers can distinguish; the dashes distinguish four curves in grayscale.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES = ("solid", "dashed", "dotted", "dashdot")


@dataclass(frozen=True)
class RocLayout:
    """Places and sizes in ROC curves.

    The inset is below the diagonal, where no curve is that is better than chance, with its tick labels below it and on
    its right. The legend is above the inset or, without one, in the corner.
    """

    # Left end, bottom, width and height, as fractions of the axes.
    inset: tuple[float, float, float, float] = (0.45, 0.08, 0.44, 0.34)
    # Characters of a line of the legend: about half of the width of a figure of matplotlib's size.
    characters: int = 34
    # Points of a band over all rates; half as many are within the range.
    n_grid: int = 400


LAYOUT = RocLayout()


def new_axes(*shape: int, size: tuple[float, float] = (6.4, 6.0)) -> Any:
    """Return the axes of a new figure; raise ImportError with instructions if matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"displays require matplotlib: pip install 'rocmax[plot]' ({error})") from error
    return plt.subplots(*shape, figsize=size, layout="constrained")[1]


# Display of ROC curves with a range of rates.


class RocBand(NamedTuple):
    """ROC curve of a model, with a confidence band on a grid of false-positive rates."""

    name: str
    fpr: Array
    tpr: Array
    grid: Array
    low: Array
    high: Array


@dataclass(eq=False, repr=False)
class PartialROCDisplay:
    """ROC curves with confidence bands and a range of rates, which is shaded and enlarged in an inset.

    The range is limited by two false-positive rates, by a true-positive rate, or by both, which is a corner.

    Use :meth:`from_predictions` or :meth:`from_estimator` to create a display.

    Parameters
    ----------
    curves : list of RocBand
        Curves of the models.
    min_fpr, max_fpr, min_tpr
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

    curves: list[RocBand]
    _: KW_ONLY
    min_fpr: float = 0.0
    max_fpr: float = 1.0
    min_tpr: float = 0.0
    pos_label: Any = None

    def __post_init__(self) -> None:
        check_window(self.min_fpr, self.max_fpr)
        check_floor(self.min_tpr)

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
        y_true
        y_score : array-like of shape (n_samples,) or dict of str to array-like
            Scores of one model, or a dict with the scores of several models by name.
        min_fpr, max_fpr, min_tpr
        n_resamples : int, default=500
            Number of resamples of the stratified bootstrap for the bands; 0 for no bands.
        confidence_level : float, default=0.95
            Pointwise confidence level of the bands.
        random_state : int, Generator, default=None
            Seed of the bootstrap.
        sample_weight, pos_label
        name : str, default="model"
            Name of the model if there is only one.
        ax
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

    def plot(
        self,
        ax: Any = None,
        *,
        inset: bool | None = None,
        measure: str | None = "partial_auc",
    ) -> PartialROCDisplay:
        """Plot the display.

        The legend and the inset are in the lower right of the axes, the inset below the diagonal.

        Parameters
        ----------
        ax
        inset : bool, default=None
            Whether to enlarge the range in an inset. If None, it is enlarged if it is at most a third of either axis
            and there is room below the curves.
        measure : {"partial_auc", "tpr_at_fpr"} or None, default="partial_auc"
            Measure in the legend: the partial AUC in the range (pAUC; the AUC if the range is the whole curve), the
            true-positive rate at ``max_fpr``, or none.

        Returns
        -------
        PartialROCDisplay
            The display, after plotting.
        """
        if measure not in ("partial_auc", "tpr_at_fpr", None):
            raise ValueError(f'measure must be "partial_auc", "tpr_at_fpr" or None; got {measure!r}')
        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        positive = "" if self.pos_label is None else f" of {self.pos_label}"
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="False-positive rate", ylabel=f"True-positive rate{positive}")
        ax.set_aspect("equal")
        if not self._is_whole:
            ax.fill_between(
                (self.min_fpr, self.max_fpr), self.min_tpr, 1.0, color="0.5", alpha=0.13, linewidth=0, zorder=0
            )
        ax.plot([0, 1], [0, 1], color="0.75", linewidth=1, zorder=0)
        self.lines_ = self._draw(ax, [fill(self._label(curve, measure), LAYOUT.characters) for curve in self.curves])
        left, bottom, _, height = LAYOUT.inset
        small = min(self.max_fpr - self.min_fpr, 1 - self.min_tpr) <= 1 / 3
        room = all(np.interp(left, *_bounds(curve)[:2]) > bottom + height for curve in self.curves)
        self.inset_ = self._enlarge(ax) if inset or (inset is None and small and room) else None
        lowest = 0.0 if self.inset_ is None else bottom + height
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, lowest)}
        ax.legend(**place, edgecolor="none", framealpha=0.8, fontsize="small", borderpad=0.2, labelspacing=0.25)
        return self

    def _label(self, curve: RocBand, measure: str | None) -> str:
        """Return the name of a curve with its measure."""
        if measure is None:
            return curve.name
        if measure == "tpr_at_fpr":
            value = best_tpr(Curve(curve.fpr, curve.tpr), max_fpr=self.max_fpr)
            return f"{curve.name} (TPR {value:.3f} at FPR {self.max_fpr:g})"
        value = partial_auc(
            Curve(curve.fpr, curve.tpr), min_fpr=self.min_fpr, max_fpr=self.max_fpr, min_tpr=self.min_tpr
        )
        return f"{curve.name} ({'AUC' if self._is_whole else 'pAUC'} {value:.3f})"

    @property
    def _is_whole(self) -> bool:
        return (self.min_fpr, self.max_fpr, self.min_tpr) == (0.0, 1.0, 0.0)

    def _draw(self, ax: Any, labels: list[str]) -> list[Any]:
        lines = []
        for number, (curve, label) in enumerate(zip(self.curves, labels, strict=True)):
            color, dashes = COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]
            lines += ax.plot(curve.fpr, curve.tpr, color=color, linestyle=dashes, linewidth=1.8, label=label)
            if curve.low.size:
                ax.fill_between(curve.grid, curve.low, curve.high, color=color, alpha=0.15, linewidth=0)
        return lines

    def _enlarge(self, ax: Any) -> Any:
        """Draw the range again in an inset, and a frame around the range."""
        inset = ax.inset_axes(LAYOUT.inset)
        self._draw(inset, [curve.name for curve in self.curves])
        low, high = self.min_fpr, self.max_fpr
        bottom, top = self._heights_in_range()
        inset.set(xlim=(low, high), ylim=(bottom, top))
        # Tick labels that stay below the inset and on the right of it.
        inset.set_xticks([low, (low + high) / 2, high], [f"{rate:.2g}" for rate in (low, (low + high) / 2, high)])
        for label, side in zip(inset.get_xticklabels(), ("left", "center", "right"), strict=True):
            label.set_horizontalalignment(side)
        inset.yaxis.tick_right()
        inset.locator_params(axis="y", nbins=4)
        inset.tick_params(labelsize="x-small")
        ax.indicate_inset((low, bottom, high - low, top - bottom), edgecolor="0.4", alpha=1.0)
        return inset

    def _heights_in_range(self) -> tuple[float, float]:
        """Return a range of true-positive rates that fits the curves and bands in the range of false-positive rates."""
        if self.min_tpr > 0:
            return self.min_tpr, 1.0
        bounds = [_bounds(curve) for curve in self.curves]
        lowest = min(np.interp(self.min_fpr, fpr, low) if self.min_fpr > 0 else 0.0 for fpr, low, _ in bounds)
        highest = max(np.interp(self.max_fpr, fpr, high) for fpr, _, high in bounds)
        margin = 0.05 * (highest - lowest)
        return max(0.0, float(lowest - margin)), min(1.0, float(highest + margin)) or 1.0


def _bounds(curve: RocBand) -> tuple[Array, Array, Array]:
    """Return rates, and the lower and upper ends of the band there; without a band, the curve itself."""
    return (curve.grid, curve.low, curve.high) if curve.low.size else (curve.fpr, curve.tpr, curve.tpr)


def _grid(max_fpr: float) -> Array:
    """Return the false-positive rates of a band: evenly spaced, and denser within the range."""
    n = LAYOUT.n_grid
    return np.unique(np.concatenate((np.linspace(0, 1, n + 1), np.geomspace(max_fpr / 100, max_fpr, n // 2))))


def _heights(curve: Curve, grid: Array) -> Array:
    """Return the TPR at each rate, interpolated linearly through ties; at a vertical step, its upper end."""
    fpr, tpr = curve.fp / curve.n, curve.tp / curve.m
    last = np.append(np.diff(fpr) > 0, True)
    result: Array = np.interp(grid, fpr[last], tpr[last])
    return result


# Display of a regularization path.


@dataclass(eq=False, repr=False)
class PartialAUCPathDisplay:
    """Regularization path: weights by radius, and partial AUC by number of features.

    Parameters
    ----------
    path : PartialAUCPath
        Path returned by :func:`rocmax.partial_auc_path`.
    partial_auc : dict of str to ndarray of shape (n_radii,)
        Partial AUC of each model, by name of the data set.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        Figure of the plot.
    axes_ : ndarray of matplotlib axes
        The two axes of the plot.

    See Also
    --------
    rocmax.partial_auc_path : computes a path.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import partial_auc_path
    >>> from rocmax.displays import PartialAUCPathDisplay
    >>> X, y = make_classification(400, 20, class_sep=2.0, random_state=0)
    >>> display = PartialAUCPathDisplay.from_path(partial_auc_path(X, y, max_fpr=0.2, radii=[0.1, 1.0]))
    >>> list(display.partial_auc)
    ['training rows']
    """

    path: PartialAUCPath
    partial_auc: dict[str, Array]

    @classmethod
    def from_path(
        cls, path: PartialAUCPath, X: Any = None, y: ArrayLike | None = None, axes: Any = None
    ) -> PartialAUCPathDisplay:
        """Plot a path, with the partial AUC on held-out rows if they are given.

        Parameters
        ----------
        path : PartialAUCPath
            Path returned by :func:`rocmax.partial_auc_path`.
        X : array-like, default=None
            Held-out rows on which to compute the partial AUC. On the training rows it rises with the number of
            features, so it does not say which model to choose.
        y : array-like, default=None
            Classes of these rows.
        axes : sequence of two matplotlib axes, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        PartialAUCPathDisplay
            The display, after plotting.
        """
        if (X is None) != (y is None):
            raise ValueError(f"X and y must be given together; got {'y' if X is None else 'X'} only")
        partial_auc = {"training rows": path.partial_auc}
        if X is not None and y is not None:
            partial_auc["held-out rows"] = path.score(X, y)
        return cls(path, partial_auc).plot(axes)

    def plot(self, axes: Any = None) -> PartialAUCPathDisplay:
        """Plot both panels.

        Parameters
        ----------
        axes : sequence of two matplotlib axes, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        PartialAUCPathDisplay
            The display, with ``figure_`` and ``axes_``.
        """
        if axes is None:
            axes = new_axes(1, 2, size=(10.5, 4.4))
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = self.axes_[0].figure
        self._draw_weights(self.axes_[0])
        self._draw_scores(self.axes_[1])
        for each in self.axes_:
            if each.get_legend_handles_labels()[0]:
                each.legend(frameon=False, fontsize="small")
            each.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_weights(self, axes: Any) -> None:
        path = self.path
        largest = np.abs(path.coefs).max(axis=0)
        used = np.argsort(-largest, kind="stable")[: np.count_nonzero(largest)]
        # Only as many features as there are colors have a label; the others are gray.
        named, others = used[: len(COLORS)], used[len(COLORS) :]
        if others.size:
            axes.plot(path.radii, path.coefs[:, others], color="0.8", linewidth=0.7, zorder=1)
        for color, i in zip(COLORS, named, strict=False):
            label = f"feature {i}" if path.feature_names is None else str(path.feature_names[i])
            axes.plot(path.radii, path.coefs[:, i], color=color, label=label, zorder=2)
        axes.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
        axes.set_xscale("log", nonpositive="mask")  # without the radius 0, at which all weights are 0
        axes.set(xlim=tuple(path.radii[[1, -1]]) if path.radii.size > 2 else None)
        axes.set(xlabel="radius", ylabel="weight", title="Weights")

    def _draw_scores(self, axes: Any) -> None:
        unit = "groups" if self.path.constraint == "group" else "features"
        counts = self.path.n_groups if unit == "groups" else self.path.n_features
        order = np.argsort(counts, kind="stable")
        # The last rows are the held-out ones: solid, in the first color.
        for number, (name, scores) in enumerate(reversed(self.partial_auc.items())):
            best = int(np.argmax(scores))
            label = f"{name} (best {scores[best]:.3f}, {counts[best]:,} {unit})"
            style = {"color": COLORS[number], "linestyle": DASHES[number], "marker": "o", "markersize": 4}
            axes.plot(counts[order], scores[order], **style, label=label)
        if counts.max() > 50:
            axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(left=0)
        axes.set(xlabel=f"number of {unit}", ylabel="partial AUC", title=f"Partial AUC by number of {unit}")


__all__ = ["PartialAUCPathDisplay", "PartialROCDisplay", "RocBand"]

publish("rocmax.displays", globals(), __all__)
