"""Displays, which follow the scikit-learn API: they store arrays and draw them in ``plot``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._docstrings import publish
from rocmax._support import Array, check_floor, check_window
from rocmax._validation import named_pos_label
from rocmax.metrics.curve import Curve, score_blocks
from rocmax.metrics.scores import find_metric, positive_scores
from rocmax.metrics.uncertainty import check_level, resamples, tail_share

if TYPE_CHECKING:
    from rocmax.linear.path import PartialAUCPath


# Colors of Okabe and Ito, which color-blind readers can distinguish; the dashes distinguish them in grayscale.
STYLES = (
    ("#D55E00", "solid"),
    ("#0072B2", (0, (5, 2))),
    ("#009E73", (0, (1, 1))),
    ("#CC79A7", (0, (5, 1.5, 1, 1.5))),
)


@dataclass(frozen=True)
class RocLayout:
    """Places in the axes of ROC curves, as fractions of the axes.

    The inset is below the diagonal, where no curve is that is better than chance, with its tick labels below it and on
    its right. The legend is above the inset or, without one, in the corner.
    """

    inset: tuple[float, float, float, float] = (0.45, 0.08, 0.44, 0.34)
    right: float = 0.98
    gap: float = 0.02
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


def _broken(label: str) -> str:
    """Return a label of a legend in lines; a measure at its end is on a line of its own."""
    name, bracket, measure = label.rpartition(" (")
    if len(label) <= LAYOUT.characters or not bracket:
        return fill(label, LAYOUT.characters)
    return f"{fill(name, LAYOUT.characters)}\n({measure}"


def _label_inset(inset: Any) -> None:
    """Set tick labels of an inset that stay below and on the right of it."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    low, high = inset.get_xlim()
    middle = (low * high) ** 0.5 if inset.get_xscale() == "log" else (low + high) / 2
    inset.xaxis.set_major_locator(FixedLocator([low, middle, high]))
    inset.xaxis.set_major_formatter(FixedFormatter([f"{value:.2g}" for value in (low, middle, high)]))
    inset.xaxis.set_minor_locator(NullLocator())
    for label, side in zip(inset.get_xticklabels(), ("left", "center", "right"), strict=True):
        label.set_horizontalalignment(side)
    inset.yaxis.tick_right()
    inset.locator_params(axis="y", nbins=4)
    inset.tick_params(labelsize="x-small")


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

    Use :meth:`from_predictions`, :meth:`from_estimator` or :meth:`from_cv_results` to create a display.

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
        min_fpr, max_fpr, min_tpr
        pos_label : object, default=None
            Label of the positive class. If None, that of the estimators is used; if they have none, the larger label.
            Different labels are an error.
        name : str, default="mean of the folds"
            Name of the curve.
        ax
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

        The legend and the inset are in the lower right of the axes, the inset below the diagonal.

        Parameters
        ----------
        ax
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
        self.lines_ = self._draw(ax, [_broken(self._label(curve, measure)) for curve in self.curves])
        left, bottom, _, height = LAYOUT.inset
        small = min(self.max_fpr - self.min_fpr, 1 - self.min_tpr) <= 1 / 3
        room = all(np.interp(left, *self._lower_end(curve)) > bottom + height for curve in self.curves)
        self.inset_ = self._enlarge(ax, scale) if inset or (inset is None and small and room) else None
        lowest = LAYOUT.gap if self.inset_ is None else bottom + height + LAYOUT.gap
        place = {"loc": "lower right", "bbox_to_anchor": (LAYOUT.right, lowest), "borderaxespad": 0.0}
        ax.legend(**place, edgecolor="none", framealpha=0.8, fontsize="small", borderpad=0.2, labelspacing=0.25)
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

    def _enlarge(self, ax: Any, scale: str) -> Any:
        """Draw the range again in an inset, and a frame around the range."""
        inset = ax.inset_axes(LAYOUT.inset)
        self._draw(inset, [curve.name for curve in self.curves])
        start, bottom, top = self.min_fpr, *self._heights_in_range()
        if scale == "log":
            steps = min(curve.fpr[curve.fpr > 0].min() for curve in self.curves)
            start = max(start, min(steps, self.max_fpr / 10))
            inset.set_xscale("log")
        inset.set(xlim=(start, self.max_fpr), ylim=(bottom, top))
        _label_inset(inset)
        ax.indicate_inset((start, bottom, self.max_fpr - start, top - bottom), edgecolor="0.4", alpha=1.0)
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
    n = LAYOUT.n_grid
    return np.unique(np.concatenate((np.linspace(0, 1, n + 1), np.geomspace(max_fpr / 100, max_fpr, n // 2))))


def _heights(curve: Curve, grid: Array) -> Array:
    """Return the TPR at each rate, interpolated linearly through ties; at a vertical step, its upper end."""
    fpr, tpr = curve.fp / curve.n, curve.tp / curve.m
    last = np.append(np.diff(fpr) > 0, True)
    result: Array = np.interp(grid, fpr[last], tpr[last])
    return result


# Display of a regularization path.


# Colors of Okabe and Ito. Only as many features have a color and a label; the others are gray.
_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_NAMED = len(_COLORS)


@dataclass(eq=False, repr=False, kw_only=True)
class PartialAUCPathDisplay:
    """Regularization path: weights by radius, and partial AUC by number of features.

    Parameters
    ----------
    radii : ndarray of shape (n_radii,)
        Radii of the norm constraint.
    coefs : ndarray of shape (n_radii, n_features)
        Weights for each radius.
    n_used : ndarray of shape (n_radii,)
        Number of features, or of groups, in each model.
    partial_auc : dict of str to ndarray of shape (n_radii,)
        Partial AUC of each model, by name of the data set.
    unit : str, default="features"
        Unit of ``n_used``: "features" or "groups".
    feature_names : ndarray, default=None
        Names of the features.

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
    >>> from rocmax import PartialAUCPathDisplay, partial_auc_path
    >>> X, y = make_classification(400, 20, class_sep=2.0, random_state=0)
    >>> display = PartialAUCPathDisplay.from_path(partial_auc_path(X, y, max_fpr=0.2, radii=[0.1, 1.0]))
    >>> display.n_used.tolist()[0], list(display.partial_auc)
    (0, ['training rows'])
    """

    radii: Array
    coefs: Array
    n_used: NDArray[np.intp]
    partial_auc: dict[str, Array]
    unit: str = "features"
    feature_names: NDArray[Any] | None = None

    @classmethod
    def from_path(
        cls,
        path: PartialAUCPath,
        X: Any = None,
        y: ArrayLike | None = None,
        name: str = "held-out rows",
        axes: Any = None,
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
        name : str, default="held-out rows"
            Name of these rows.
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
            partial_auc[name] = path.score(X, y)
        groups = path.constraint == "group"
        return cls(
            radii=path.radii,
            coefs=path.coefs,
            n_used=path.n_groups if groups else path.n_features,
            partial_auc=partial_auc,
            unit="groups" if groups else "features",
            feature_names=path.feature_names,
        ).plot(axes)

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
        left, right = axes
        self._draw_weights(left)
        self._draw_scores(right)
        self.axes_ = np.array([left, right], dtype=object)
        self.figure_ = left.figure
        return self

    def _draw_weights(self, axes: Any) -> None:
        largest = np.abs(self.coefs).max(axis=0)
        used = np.flatnonzero(largest)
        named = used[np.argsort(-largest[used], kind="stable")][:_NAMED]
        others = np.setdiff1d(used, named)
        if others.size:
            axes.plot(self.radii, self.coefs[:, others], color="0.8", linewidth=0.7, zorder=1)
        for number, i in enumerate(named):
            label = f"feature {i}" if self.feature_names is None else str(self.feature_names[i])
            axes.plot(self.radii, self.coefs[:, i], color=_COLORS[number], label=label, zorder=2)
        positive = self.radii[self.radii > 0]
        if positive.size:
            axes.set_xscale("symlog", linthresh=float(positive[0]))
            axes.set_xticks([0.0, *_decades(float(positive[0]), float(self.radii[-1]))])
            axes.minorticks_off()
            axes.set_xlim(0.0, float(self.radii[-1]))
        axes.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
        axes.set(xlabel="radius", ylabel="weight", title="Weights")
        if named.size:
            axes.legend(frameon=False, fontsize="small")
        axes.spines[["top", "right"]].set_visible(False)

    def _draw_scores(self, axes: Any) -> None:
        order = np.argsort(self.n_used, kind="stable")
        # The last rows are the held-out ones: solid, in the first color.
        for (name, scores), (color, dashes) in zip(
            self.partial_auc.items(), STYLES[len(self.partial_auc) - 1 :: -1], strict=False
        ):
            best = int(np.argmax(scores))
            label = f"{name} (best {scores[best]:.3f}, {self.n_used[best]:,} {self.unit})"
            axes.plot(
                self.n_used[order], scores[order], color=color, linestyle=dashes, marker="o", markersize=4, label=label
            )
        most = int(self.n_used.max(initial=0))
        if most > 50:
            axes.set_xscale("symlog", linthresh=10)
            ticks = [0, *(int(count) for count in _decades(10, most))]
            axes.set_xticks(ticks, labels=[f"{count:,}" for count in ticks])
        axes.set_xlim(left=0)
        axes.set(xlabel=f"number of {self.unit}", ylabel="partial AUC", title=f"Partial AUC by number of {self.unit}")
        axes.legend(frameon=False, fontsize="small")
        axes.spines[["top", "right"]].set_visible(False)


def _decades(low: float, high: float) -> Array:
    """Return the ticks from ``low`` to ``high``: powers of ten, or both ends if there are fewer than two.

    Below ``low`` the axis is linear, and a label there would overlap with that of zero.
    """
    decades = 10.0 ** np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1)
    return decades if decades.size > 1 else np.unique([low, high])


# Display of the convergence of a fit.


@dataclass(eq=False, repr=False)
class ConvergenceDisplay:
    """Objective of a fit and its certified lower bound over the iterations of the solver.

    Use :meth:`from_estimator` to create a display.

    Parameters
    ----------
    passes : ndarray
        Number of passes over the data.
    objective : ndarray
        Value of the objective.
    bound : ndarray
        Lower bound on the minimum of the objective; NaN or infinite if there is none.
    name : str, default=""
        Name of the fit.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the plot.
    figure_ : matplotlib.figure.Figure
        Figure of the plot.
    """

    passes: Array
    objective: Array
    bound: Array
    name: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Plot the trace of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with the attribute ``trace_``.
        ax

        Returns
        -------
        ConvergenceDisplay
            The display, after plotting.
        """
        trace = getattr(estimator, "trace_", None)
        if not trace:
            raise ValueError(
                f"estimator must be fitted and have the attribute trace_; got {type(estimator).__name__} without it"
            )
        passes, objective, bound = (
            np.array([float(getattr(step, key)) for step in trace]) for key in ("passes", "objective", "bound")
        )
        return cls(passes, objective, bound, type(estimator).__name__).plot(ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Plot the display.

        Parameters
        ----------
        ax

        Returns
        -------
        ConvergenceDisplay
            The display, after plotting.
        """
        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        ax.plot(self.passes, self.objective, color=STYLES[0][0], marker=".", label="objective")
        known = np.isfinite(self.bound)
        if known.any():
            best = np.maximum.accumulate(self.bound[known])
            ax.plot(
                self.passes[known], best, color=STYLES[1][0], marker=".", linestyle=STYLES[1][1], label="lower bound"
            )
            ax.fill_between(self.passes[known], best, self.objective[known], color="0.5", alpha=0.12, linewidth=0)
        ax.set(xlabel="Passes over the data", ylabel="Objective", title=self.name)
        ax.legend(frameon=False)
        return self


__all__ = ["ConvergenceDisplay", "PartialAUCPathDisplay", "PartialROCDisplay", "RocBand"]

publish("rocmax.displays", globals(), __all__)
