"""``rocmax compare``: models on the same splits."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rocmax._atomic import write_file
from rocmax.metrics import make_scorer
from rocmax.workflow.comparison import compare
from rocmax.workflow.evaluation import window_measure
from rocmax.workflow.fitting import Training
from rocmax.workflow.tables import make_model, tuning_grid


def run(
    training: Training,
    names: list[str],
    window: tuple[float, float],
    measure: str,
    splits: int,
    jobs: int,
    resume: Path | None,
    seed: int,
    advance: Callable[[int], None],
) -> Any:
    """Return the table of the comparison."""
    positive = training.target.positive
    return compare(
        {name: make_model(name, training.X, window, positive, seed) for name in names},
        training.X,
        training.target.labels,
        scoring=make_scorer(window_measure(measure, window), pos_label=positive),
        param_grids={name: {f"model__{key}": values for key, values in tuning_grid(name).items()} for name in names},
        n_splits=splits,
        groups=training.groups,
        random_state=seed,
        n_jobs=jobs,
        store=resume,
        progress=advance,
    )


def write(table: Any, out: Path) -> None:
    """Write the table, one column for each split's score."""
    scores = table["scores"].apply(list)
    wide = table.drop(columns="scores")
    for number in range(len(scores.iloc[0])):
        wide[f"split_{number + 1}"] = [values[number] for values in scores]
    write_file(out, wide.to_csv(index_label="model", lineterminator="\n").encode())


def as_json(table: Any) -> list[dict[str, Any]]:
    """Return the table as plain values; no number is None."""
    return [
        {"model": name, **{key: None if isinstance(v, float) and math.isnan(v) else v for key, v in row.items()}}
        for name, row in table.to_dict(orient="index").items()
    ]


def rows(table: Any) -> list[list[str]]:
    """Return the table as text."""
    return [
        [
            str(name),
            f"{row['mean']:.4f}",
            f"{row['standard_error']:.4f}",
            "best" if math.isnan(row["p_value"]) else f"{row['p_value']:.3g}",
            f"{row['seconds']:.2f}",
        ]
        for name, row in table.iterrows()
    ]
