"""Display of a regularization path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocmax._typing import Array
from rocmax.displays._figure import STYLES, new_axes

if TYPE_CHECKING:
    from rocmax.estimators.linear.regularization_path import PartialAUCPath


# Colors of Okabe and Ito. Only as many features have a color and a label; the others are gray.
_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_NAMED = len(_COLORS)


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

    def __init__(
        self,
        *,
        radii: Array,
        coefs: Array,
        n_used: NDArray[np.intp],
        partial_auc: dict[str, Array],
        unit: str = "features",
        feature_names: NDArray[Any] | None = None,
    ) -> None:
        self.radii = radii
        self.coefs = coefs
        self.n_used = n_used
        self.partial_auc = partial_auc
        self.unit = unit
        self.feature_names = feature_names

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
