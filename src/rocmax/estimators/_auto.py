"""The default way to a partial AUC: a bounded loss, lowered from a good start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocmax.losses import PartialAUCRamp
from rocmax.losses.anchored import Anchored
from rocmax.metrics import partial_auc_score
from rocmax.operators import Operator
from rocmax.penalties import Unpenalized
from rocmax.solvers import Callback, Descent, Result

Array = NDArray[np.float64]


def refine(
    operator: Operator,
    positive: NDArray[np.bool_],
    weight: Array | None,
    window: tuple[float, float],
    C: float,
    tol: float,
    max_iter: int,
    start: Array,
    callback: Callback | None,
) -> Result:
    """Lower a bounded loss from ``start``; return the start itself unless the training partial AUC rises."""
    anchor = operator.matvec(start)
    scale = float(np.std(anchor)) or 1.0
    start, anchor = start / scale, anchor / scale
    bound = PartialAUCRamp(*window, width=1.0, margin=0.0).bind(positive, weight)
    anchored = Anchored(bound, anchor, 1.0 / C)
    result = Descent(tol, max_iter).solve(operator, anchored, Unpenalized(), start, callback)
    return result
