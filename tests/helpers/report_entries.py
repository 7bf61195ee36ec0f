"""Models and rows for the tests of the report."""

from __future__ import annotations

import numpy as np

from helpers.tables import SCRIPT
from rocmax.report import ReportModel, TestData


def entries(n_models=2, n_rows=5000, window=(0.0, 0.05)):
    rng = np.random.default_rng(0)
    positive = rng.random(n_rows) < 0.1
    models = []
    for i in range(n_models):
        scores = rng.normal(size=n_rows) + (1 + 0.3 * i) * positive
        models.append(
            ReportModel(
                f"model {SCRIPT} {i}", "Linear", scores, scores > 2, [(SCRIPT, 1.0), ("b", -0.5)], [("seed", "0")], 0.05
            )
        )
    return models, TestData(SCRIPT, positive, SCRIPT, window, [(SCRIPT, "number", 0.1)])
