"""State of a fit in a file, from which an interrupted fit continues."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rocmax._atomic import check_output, write_file
from rocmax._typing import Array
from rocmax.data.disk import checksum
from rocmax.sharded.objective import ShardedOperator
from rocmax.sharded.vectors import Coefficients, Space
from rocmax.solvers import SmoothedNewton
from rocmax.solvers.base import Cuts, Result, Solver

# Cuts in a checkpoint; older ones are seldom active.
_KEPT = 60
# Sums over workers are added in any order: bounds on the relative errors of sums, and of terms that cancel each other.
_ROUNDING, _CANCELLATION = 1e-9, 1e-14
# Features with means beyond this multiple of their scale have too few digits for random scores.
_FARTHEST = 1e10
_ARRAYS = ("settings", "data", "completed", "ended", "w", "gradients", "offsets")
_FIELDS = ("objective", "gap", "n_iter", "converged", "message")
Run = Callable[[Any, Any, Array | None], Result]


class Checkpoint:
    """Results of the completed stages of a fit, and weights and cuts of the current one, saved after each gradient.

    The file is replaced atomically, so that it is complete at all times. It contains the parameters, numbers that
    identify the data, and a checksum; a file with other ones is an error.

    Parameters
    ----------
    path : str or Path
        The file.
    settings : str
        Description of the parameters.
    """

    def __init__(self, path: Any, settings: str) -> None:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"checkpoint must be a path or None; got {path!r}")
        check_output(Path(path))
        self._path, self._settings = Path(path), settings
        self._data = np.empty(0)
        self._completed: list[Result] = []
        self._stage = 0
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
        self._data, errors = _description(space)
        if not self._path.exists():
            return
        try:
            # NumPy would read an array, and regard any other file as a pickle.
            if not zipfile.is_zipfile(self._path):
                raise ValueError("it has another format")
            with np.load(self._path, allow_pickle=False) as saved:
                content = {name: saved[name] for name in _ARRAYS}
                if int(saved["checksum"]) != _checksum(content):
                    raise ValueError("its checksum differs, so it was changed")
                completed = json.loads(str(content["ended"]))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"checkpoint must be a file written by a fit; got {self._path}: {error}") from error
        data = content["data"]
        same = data.shape == self._data.shape and bool((np.abs(data - self._data) <= errors).all())
        if str(content["settings"]) != self._settings or not same:
            raise ValueError(
                f"checkpoint must be of the same data and parameters; got {self._path}, which is of other ones. "
                "Remove the file, or use another one"
            )
        self._completed = [
            Result(w, **fields, trace=[]) for w, fields in zip(content["completed"], completed, strict=True)
        ]
        self._w = content["w"] if content["w"].size else None
        self._gradients, self._offsets = list(content["gradients"]), content["offsets"].tolist()

    def run(self, run: Run, operator: ShardedOperator, solver: Solver | None, w0: Array | None) -> Result:
        """Run the next stage, or return its result if it was completed before the interruption.

        Parameters
        ----------
        run : callable
            Returns the result, given an operator, a solver and a start.
        operator : ShardedOperator
            The rows; their products with coefficients are saved.
        solver : Solver
            The solver; :class:`~rocmax.solvers.SmoothedNewton` continues from the saved cuts. None if the function
            uses none.
        w0 : ndarray
            Start of a fit that was not interrupted.
        """
        self._stage += 1
        if self._stage <= len(self._completed):
            return self._completed[self._stage - 1]
        if self._w is not None:
            w0 = self._w
            if isinstance(solver, SmoothedNewton) and self._offsets:
                cuts = Cuts(np.array(self._gradients), np.array(self._offsets), [None] * len(self._offsets))
                solver = replace(solver, cuts=cuts)
        result = run(_Recorder(operator, self), solver, w0)
        self._completed.append(result)
        self._w, self._gradients, self._offsets = None, [], []
        self._write()
        return result

    def save(self, w: Array) -> None:
        """Save the weights of the current stage."""
        self._w = w
        self._write()

    def add(self, gradient: Array, offset: float) -> None:
        """Add a cut of the loss to what is saved next."""
        self._gradients, self._offsets = [*self._gradients, gradient][-_KEPT:], [*self._offsets, offset][-_KEPT:]

    def remove(self) -> None:
        """Remove the file after a complete fit."""
        self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        ended = [{name: getattr(result, name) for name in _FIELDS} for result in self._completed]
        state: Any = {
            "settings": np.array(self._settings),
            "data": self._data,
            "completed": np.array([result.w for result in self._completed]),
            "ended": np.array(json.dumps(ended, default=float)),
            "w": np.empty(0) if self._w is None else self._w,
            "gradients": np.array(self._gradients),
            "offsets": np.array(self._offsets),
        }
        stream = io.BytesIO()
        np.savez(stream, **state, checksum=np.array(_checksum(state)))
        write_file(self._path, stream.getvalue())


class _Recorder:
    """Operator that saves weights and cuts: coefficients come with the weights, those of a cut with its value."""

    def __init__(self, operator: ShardedOperator, checkpoint: Checkpoint) -> None:
        self._operator, self._checkpoint = operator, checkpoint
        self.shape = operator.shape
        self.zero_scores, self.matvec, self.rows = operator.zero_scores, operator.matvec, operator.rows
        self.save = checkpoint.save

    def rmatvec(self, c: Coefficients) -> Array:
        """Return ``X.T @ c`` and save the weights and the cut."""
        gradient = self._operator.rmatvec(c)
        w = c.terms[0].scores.w
        if c.value is not None:
            self._checkpoint.add(gradient, c.value - float(gradient @ w))
        self.save(w)
        return gradient


def _checksum(state: dict[str, Any]) -> int:
    """Return a checksum of the arrays of a file: cuts with other offsets would give a false bound."""
    return checksum(*(np.asarray(state[name]) for name in _ARRAYS))


def _description(space: Space) -> tuple[Array, Array]:
    """Return numbers that identify the data, in one pass over the rows, and bounds on their rounding errors.

    The numbers are counts, scales and means of the features, means of the positives, and the means of cosine and sine
    of random scores in each class. Features that are far from zero, relative to their scale, have fewer digits.
    """
    centre = space.mean / space.scale
    draws = np.where(np.abs(centre) < _FARTHEST, np.random.default_rng(0).normal(size=space.n_features), 0.0)
    answers = space.ask((), "fingerprint", *space.raw(draws))
    waves = (np.sum([part for part, _ in answers], axis=0) / [[space.n], [space.m]]).ravel()
    sums = np.sum([part for _, part in answers], axis=0) / space.m / space.scale
    counts = np.array([space.n_positive, space.n_negative, space.m, space.n])
    digits = _ROUNDING + _CANCELLATION * np.abs(centre)
    blurred = _ROUNDING + _CANCELLATION * float(np.abs(draws * centre).sum())
    scale = np.where(np.isfinite(space.scale), space.scale, 0.0)
    errors = [
        _ROUNDING * counts,
        digits * scale,
        digits * (1.0 + np.abs(centre)),
        digits * (1.0 + np.abs(sums)),
        np.full(waves.size, blurred),
    ]
    return np.concatenate([counts, scale, centre, sums, waves]), np.concatenate(errors)
