"""The array types of the package, named once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Bools = NDArray[np.bool_]
# Row numbers as compiled loops take them.
RowNumbers = NDArray[np.int64]
