"""Newton systems of kernel machines, solved with the block of the Gram matrix of the rows with free multipliers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

from rocmax._typing import Array, Index
from rocmax.kernels._linear_systems import solve_system

Slope = Callable[[Array], Array]

# A block of the Gram matrix is copied if it has at most the first fraction of the rows. It is replaced if required rows
# are missing, or if less than the second fraction of its rows is required.
_CUT, _KEEP = 0.6, 0.8
# Gaussian elimination can replace conjugate gradients up to _MAX_DENSE rows; its cost is about that of one iteration of
# conjugate gradients per _ROWS_PER_STEP rows.
_MAX_DENSE, _ROWS_PER_STEP = 1600, 12
# Conjugate gradients: maximum number of iterations without elimination, and relative tolerance of the residual.
_CG_STEPS, _CG_RTOL = 60, 0.3


class GramSystem:
    r"""Solve :math:`(I + S K) p = r` where the slope ``S`` is zero outside a subset of the rows.

    The system is symmetric in the inner product defined by ``K``. The solution, and every iterate of conjugate
    gradients from zero, is a multiple of ``r`` plus a vector supported on these rows. Given ``K r``, only the block of
    ``K`` for these rows is required.

    Parameters
    ----------
    gram : ndarray
        Symmetric matrix ``K``.

    Attributes
    ----------
    rows : ndarray of int
        Rows of the current block.
    products : float
        Number of products with ``K``; a product with a block counts as the fraction of ``K`` in the block.
    """

    def __init__(self, gram: Array) -> None:
        self._gram = gram
        self.rows, self._block = np.arange(gram.shape[0]), gram
        self._buffer = np.empty(0)
        # Conjugate gradients become slower during a run, so they are not used again once elimination was faster.
        self._direct = False
        self.products = 0.0

    def product(self, vector: Array) -> Array:
        """Return ``K @ vector``."""
        self.products += 1.0
        return _times(self._gram, vector)

    def cover(self, moving: Index) -> Index:
        """Prepare the block of ``K`` for a set of rows that contains ``moving``; return these rows."""
        held = bool(np.isin(moving, self.rows, assume_unique=True).all())
        if held and moving.size >= _KEEP * self.rows.size:
            return self.rows
        n_samples = self._gram.shape[0]
        if moving.size > _CUT * n_samples:
            self.rows, self._block = np.arange(n_samples), self._gram
            return self.rows
        # Reuse of memory is much faster than a new allocation.
        if self._buffer.size < moving.size**2:
            self._buffer = np.empty(moving.size**2)
        self.rows, self._block = moving, self._buffer[: moving.size**2].reshape(moving.size, moving.size)
        for place, row in zip(self._block, moving, strict=True):
            np.take(self._gram[row], moving, out=place, mode="clip")
        return self.rows

    def solve(self, slope: Slope, right: Array, right_scores: Array) -> tuple[Array, Array]:
        """Return ``p`` and ``K p``, given ``K r`` and the slope on the rows of the last call of :meth:`cover`."""
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
        options = {"overwrite_a": True, "transposed": True, "check_finite": False}
        return solve_system(system, -slope(edge), self._gram, **options)

    def _by_gradients(self, slope: Slope, edge: Array, corner: float) -> tuple[float, Array] | None:
        """Return the factor of the right-hand side and the vector on the rows; None if elimination is faster."""
        can_eliminate = edge.size <= _MAX_DENSE
        step, left = np.zeros(edge.size + 1), np.append(np.zeros(edge.size), 1.0)
        way, way_scores, size = left.copy(), np.append(edge, corner), corner
        # A right-hand side of zero norm is rounding error: there is no direction to follow.
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
        """Return the product with the Gram matrix of the rows, bordered by the right-hand side (last entry)."""
        self.products += (edge.size / self._gram.shape[0]) ** 2
        out = np.empty(vector.size)
        out[:-1] = _times(self._block, vector[:-1]) + vector[-1] * edge
        out[-1] = float(edge @ vector[:-1]) + corner * vector[-1]
        return out


def _times(matrix: Array, vector: Array) -> Array:
    # A symmetric product reads only half of the matrix, and its speed is limited by memory access.
    return np.asarray(blas.dsymv(1.0, matrix.T, vector))
