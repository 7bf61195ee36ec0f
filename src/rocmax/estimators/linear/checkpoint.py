"""State of a fit in a file, from which an interrupted fit continues."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._atomic import write_file
from rocmax._typing import Array
from rocmax.sharded.objective import ShardedOperator
from rocmax.sharded.vectors import Coefficients, Space
from rocmax.solvers import SmoothedNewton
from rocmax.solvers.base import Cuts, Solver

# Cuts in a checkpoint; older ones are seldom active.
_KEPT = 60


class Checkpoint:
    """Weights and cuts of a fit, saved after each pass that computes a gradient.

    The file is replaced atomically, so that it is complete at all times. It contains a fingerprint of the data and the
    parameters; a file with another fingerprint is an error.

    Parameters
    ----------
    path : Path
        The file.
    settings : str
        Description of the parameters.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self._path, self._settings, self._fingerprint = path, settings, ""
        self._w: Array | None = None
        self._gradients: list[Array] = []
        self._offsets: list[float] = []

    def check(self, space: Space) -> None:
        """Read the file if it exists; raise ValueError if it belongs to other data or parameters.

        Parameters
        ----------
        space : Space
            The data, with the mean and the scale of the features.
        """
        numbers = np.concatenate([space.mean, space.scale, [space.n_positive, space.n_negative, space.m, space.n]])
        # Sums over workers are added in any order.
        rounded = [f"{value:.9e}" for value in numbers]
        self._fingerprint = hashlib.sha256(" ".join([self._settings, *rounded]).encode()).hexdigest()
        if not self._path.exists():
            return
        try:
            with np.load(self._path, allow_pickle=False) as saved:
                content = {name: saved[name] for name in ("fingerprint", "w", "gradients", "offsets")}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"checkpoint must be a file written by a fit; got {self._path}: {error}") from error
        if str(content["fingerprint"]) != self._fingerprint:
            raise ValueError(
                f"checkpoint must be of the same data and parameters; got {self._path}, which is of other ones. "
                "Remove the file, or use another one"
            )
        self._w = content["w"]
        self._gradients, self._offsets = list(content["gradients"]), content["offsets"].tolist()

    def resume(self, operator: ShardedOperator, solver: Solver, w0: Array | None) -> tuple[Any, Solver, Array | None]:
        """Return an operator that saves the state, and the solver and the start from which the fit continues."""
        recorder = _Recorder(operator, self)
        if self._w is None:
            return recorder, solver, w0
        if isinstance(solver, SmoothedNewton):
            cuts = Cuts(np.array(self._gradients), np.array(self._offsets), [None] * len(self._offsets))
            solver = replace(solver, cuts=cuts)
        return recorder, solver, self._w

    def add(self, w: Array, gradient: Array, offset: float) -> None:
        """Save weights, and the cut of the loss at these weights."""
        self._w = w
        self._gradients, self._offsets = [*self._gradients, gradient][-_KEPT:], [*self._offsets, offset][-_KEPT:]
        stream = io.BytesIO()
        state: Any = {"w": w, "gradients": np.array(self._gradients), "offsets": np.array(self._offsets)}
        np.savez(stream, fingerprint=np.array(self._fingerprint), **state)
        write_file(self._path, stream.getvalue())

    def remove(self) -> None:
        """Remove the file after a complete fit."""
        self._path.unlink(missing_ok=True)


class _Recorder:
    """Operator that saves each cut: coefficients of a cut come with the value of the loss and the weights."""

    def __init__(self, operator: ShardedOperator, checkpoint: Checkpoint) -> None:
        self._operator, self._checkpoint = operator, checkpoint
        self.shape = operator.shape
        self.zero_scores, self.matvec, self.rows = operator.zero_scores, operator.matvec, operator.rows

    def rmatvec(self, c: Coefficients) -> Array:
        """Return ``X.T @ c`` and save the cut."""
        gradient = self._operator.rmatvec(c)
        if c.value is not None:
            w = c.terms[0].scores.w
            self._checkpoint.add(w, gradient, c.value - float(gradient @ w))
        return gradient
