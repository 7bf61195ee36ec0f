"""Newton steps from sampled pairs of rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dposv
from scipy.sparse.linalg import LinearOperator, cg

from rocmax._typing import Array
from rocmax.losses.base import Pairs
from rocmax.operators import Operator

# Above this number of features, the Newton system is solved by conjugate gradients instead of Cholesky.
_MAX_DENSE = 2000


def newton_direction(operator: Operator, pairs: Pairs, C: float, gradient: Array, is_sample: bool) -> Array:
    """Solve ``(I + C H) p = -gradient``, with ``H`` given by weighted pairs of rows."""
    if pairs.weight.size == 0:
        return -gradient
    d = gradient.size
    difference = operator.rows(pairs.first) - operator.rows(pairs.second)
    weight = C * pairs.weight
    if d > _MAX_DENSE:
        system = LinearOperator(
            (d, d), matvec=lambda v: v + difference.T @ (weight * (difference @ v)), dtype=np.float64
        )
        value: Array = cg(system, -gradient, rtol=0.1, maxiter=30)[0]
        return value
    root = np.sqrt(weight).astype(difference.dtype)
    if sparse.issparse(difference):
        difference = sparse.diags_array(root) @ difference
        hessian = (difference.T @ difference).toarray().astype(np.float64)
    else:
        difference *= root[:, None]
        hessian = (difference.T @ difference).astype(np.float64, copy=False)
    # A sample misses directions in which few rows vary; the ridge keeps steps along them short.
    hessian.flat[:: d + 1] += 1.0 + (1e-3 * float(hessian.trace()) / d if is_sample else 0.0)
    _, step, failed = dposv(hessian, -gradient)
    if failed:
        # Rounding error made the matrix indefinite, because the features differ too much in scale; use its diagonal.
        step = -gradient / hessian.diagonal()
    result: Array = step
    return result
