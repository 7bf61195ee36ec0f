"""Newton systems of kernel machines: only a few rows of them move, and only their part of the Gram matrix is used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from rocmax._typing import Array, Index

Slope = Callable[[Array], Array]

# A part of the Gram matrix is cut out if it has at most this share of the rows; cut anew if it holds rows that are
# missing from it, or if less than this share of its rows move.
_CUT, _KEEP = 0.6, 0.8
# Up to this many rows elimination can take over from conjugate gradients; it costs about as much as one step of them
# for every so many rows.
_MAX_DENSE, _ROWS_PER_STEP = 1600, 12
# Conjugate gradients: most steps where elimination cannot take over, and the size of the rest at which they end.
_CG_STEPS, _CG_RTOL = 60, 0.3


class GramSystem:
    r"""Solve :math:`(I + S K) p = r` with a slope ``S`` that is zero outside some rows.

    The solution is a multiple of ``r`` plus a part on these rows, and so is every iterate of conjugate gradients from
    zero, in the inner product of ``K``, in which the system is symmetric. With ``K r`` at hand they need no more of
    ``K`` than the block of these rows.

    Parameters
    ----------
    gram : ndarray
        The symmetric matrix ``K``.

    Attributes
    ----------
    rows : ndarray of int
        The rows whose block is ready.
    products : float
        Products with ``K``; one with a block counts by its share of ``K``.
    """

    def __init__(self, gram: Array) -> None:
        self._gram = gram
        self.rows, self._block = np.arange(gram.shape[0]), gram
        self._buffer = np.empty(0)
        # Conjugate gradients only get slower as a run goes on, so that it is not worth trying them again.
        self._direct = False
        self.products = 0.0

    def product(self, vector: Array) -> Array:
        """Return ``K @ vector``."""
        self.products += 1.0
        return _times(self._gram, vector)

    def cover(self, moving: Index) -> Index:
        """Return rows that hold all of ``moving``, and have their block of ``K`` ready."""
        held = bool(np.isin(moving, self.rows, assume_unique=True).all())
        if held and moving.size >= _KEEP * self.rows.size:
            return self.rows
        n_samples = self._gram.shape[0]
        if moving.size > _CUT * n_samples:
            self.rows, self._block = np.arange(n_samples), self._gram
            return self.rows
        # Memory that is used again is far cheaper than new memory.
        if self._buffer.size < moving.size**2:
            self._buffer = np.empty(moving.size**2)
        self.rows, self._block = moving, self._buffer[: moving.size**2].reshape(moving.size, moving.size)
        for place, row in zip(self._block, moving, strict=True):
            np.take(self._gram[row], moving, out=place, mode="clip")
        return self.rows

    def solve(self, slope: Slope, right: Array, right_scores: Array) -> tuple[Array, Array]:
        """Return ``p`` and ``K p``, given ``K r`` and the slope on the rows of the last :meth:`cover`."""
        if self.rows.size == 0:
            return right, right_scores
        edge, corner = right_scores[self.rows], float(right @ right_scores)
        found = None if self._direct and edge.size <= _MAX_DENSE else self._by_gradients(slope, edge, corner)
        if found is None:
            self._direct = True
            found = 1.0, self._by_elimination(slope, edge)
        share, part = found
        step = np.zeros(right.size)
        step[self.rows] = part
        return share * right + step, share * right_scores + self.product(step)

    def _by_elimination(self, slope: Slope, edge: Array) -> Array:
        system = slope(self._block)
        system[np.diag_indices(edge.size)] += 1.0
        return np.asarray(linalg.solve(system, -slope(edge), overwrite_a=True, transposed=True, check_finite=False))

    def _by_gradients(self, slope: Slope, edge: Array, corner: float) -> tuple[float, Array] | None:
        """Return the multiple of the right side and the part on the rows; None where elimination is quicker."""
        can_eliminate = edge.size <= _MAX_DENSE
        step, left = np.zeros(edge.size + 1), np.append(np.zeros(edge.size), 1.0)
        way, way_scores, size = left.copy(), np.append(edge, corner), corner
        # A right side without a length is rounding: there is nothing to step along.
        if corner <= 0:
            return None if can_eliminate else (1.0, step[:-1])
        for _ in range(edge.size // _ROWS_PER_STEP if can_eliminate else _CG_STEPS):
            image = way.copy()
            image[:-1] += slope(way_scores[:-1])
            length = size / float(way_scores @ image)
            step += length * way
            left -= length * image
            left_scores = self._bordered(left, edge, corner)
            new = float(left @ left_scores)
            if new <= _CG_RTOL**2 * corner:
                return float(step[-1]), step[:-1]
            way = left + (new / size) * way
            way_scores = left_scores + (new / size) * way_scores
            size = new
        return None if can_eliminate else (float(step[-1]), step[:-1])

    def _bordered(self, vector: Array, edge: Array, corner: float) -> Array:
        """Return the product with the Gram matrix of the rows and the right side; the last entry is of the latter."""
        self.products += (edge.size / self._gram.shape[0]) ** 2
        out = np.empty(vector.size)
        out[:-1] = _times(self._block, vector[:-1]) + vector[-1] * edge
        out[-1] = float(edge @ vector[:-1]) + corner * vector[-1]
        return out


def _times(matrix: Array, vector: Array) -> Array:
    # A symmetric product reads half of the matrix, and memory is what it waits for.
    return np.asarray(blas.dsymv(1.0, matrix.T, vector))
