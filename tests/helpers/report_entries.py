"""Models and rows for the tests of the report."""

from __future__ import annotations

import numpy as np

from helpers.tables import SCRIPT
from rocmax.report import Change, Feature, ReportModel, Segment, TestData


def entries(n_models=2, n_rows=5000, window=(0.0, 0.05), **options):
    rng = np.random.default_rng(0)
    positive = rng.random(n_rows) < 0.1
    models = []
    for i in range(n_models):
        scores = rng.normal(size=n_rows) + (1 + 0.3 * i) * positive
        features = [Feature(SCRIPT, 1.0, 1), Feature("b", 0.5, -1), Feature("c", 0.2)]
        models.append(
            ReportModel(f"model {SCRIPT} {i}", "Linear", scores, scores > 2, features, [("seed", "0")], 0.05, **options)
        )
    segment = rng.random(n_rows) < 0.3
    data = TestData(
        SCRIPT, positive, SCRIPT, window, [(SCRIPT, "number", 0.1)],
        negative_label=SCRIPT, segment_column=SCRIPT,
        segments=[Segment(SCRIPT, segment), Segment("other", ~segment)],
        changes=[Change(SCRIPT, "mean", SCRIPT, SCRIPT)],
    )  # fmt: skip
    return models, data
