"""Array type aliases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Bools = NDArray[np.bool_]
# Row indices for compiled loops.
RowNumbers = NDArray[np.int64]
