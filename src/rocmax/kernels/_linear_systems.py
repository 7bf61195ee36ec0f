"""Linear systems with kernel matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from rocmax._typing import Array


def solve_system(system: Array, right: Array, gram: Array, **options: Any) -> Array:
    """Solve a linear system that was made from a kernel matrix; raise ValueError if it is singular.

    Parameters
    ----------
    system : ndarray of shape (n, n)
        Matrix of the system.
    right : ndarray of shape (n,)
        Right-hand side.
    gram : ndarray
        The kernel matrix, for the message of the error.
    **options
        Further arguments of :func:`scipy.linalg.solve`.

    Returns
    -------
    ndarray of shape (n,)
        The solution.
    """
    try:
        return np.asarray(linalg.solve(system, right, **options))
    except linalg.LinAlgError as error:
        raise ValueError(
            "the kernel matrix must have values of similar magnitude, so that linear systems with it can be solved in "
            f"double precision; got values up to {np.abs(gram).max():.3g}. Scale the features"
        ) from error
