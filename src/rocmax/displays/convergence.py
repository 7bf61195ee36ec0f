"""Display of the convergence of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocmax._typing import Array
from rocmax.displays._figure import STYLES, new_axes


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

    def __init__(self, passes: Array, objective: Array, bound: Array, name: str = "") -> None:
        self.passes = passes
        self.objective = objective
        self.bound = bound
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Plot the trace of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with the attribute ``trace_``.
        ax : matplotlib.axes.Axes, default=None
            Axes to plot on. If None, a new figure is created.

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
        ax : matplotlib.axes.Axes, default=None
            Axes to plot on. If None, a new figure is created.

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
