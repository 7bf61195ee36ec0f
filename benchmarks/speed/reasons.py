"""Reasons with every alert, on 1,000,000 rows with 1 % alerts: ``python -m benchmarks.speed.reasons``.

Linear and additive models are compared with predictions without reasons. For trees, what reasons add to the time of
predictions is compared with the SHAP values of the engine for the flagged rows, from rows that are encoded already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from benchmarks._shared.results import interleaved, markdown, publish
from benchmarks.speed.case import Case, Figures, side_by_side
from benchmarks.speed.million import generated

ROWS, TRAINING_ROWS, ALERTS, N_REASONS = 1_000_000, 50_000, 0.01, 3


@cache
def fitted(family: str) -> tuple[Any, Any]:
    """Return a model and a million other rows."""
    from rocmax.tables import Limits, Running, fit_table

    table = generated(TRAINING_ROWS, 0)
    running, tune = Running(threads=1), family == "boosted"
    limits = Limits(capacity=ALERTS)
    model = fit_table(
        table, target="label", positive="yes", limits=limits, model=family, tune=tune, running=running, random_state=0
    )
    return model, generated(ROWS, 1).drop(columns="label")


def next_to_predictions(family: str) -> Figures:
    """Compare predictions with and without reasons."""
    from rocmax.tables import predict

    model, new = fitted(family)

    def remark(found: Any, plain: Any) -> str:
        assert (found["score"] == plain["score"]).all()
        return f"{int(found['reason_1'].notna().sum()):,} rows with {N_REASONS} reasons"

    return side_by_side(
        lambda: predict(model, new, reasons=N_REASONS), lambda: predict(model, new), remark, budget=40.0
    )


def next_to_engine(family: str) -> Figures:
    """Compare what reasons add to the time of predictions with the SHAP values of the engine for the flagged rows."""
    from rocmax.tables import predict

    model, new = fitted(family)
    flagged = new[model.positive_scores(new) > 0]
    pipeline = getattr(model.model, "estimator_", model.model)
    trees, rows = pipeline.named_steps["model"], pipeline.named_steps["table"].transform(flagged)
    encoded, boosters = trees.encode(rows), trees.boosters()
    times = interleaved(
        {
            "with": lambda: predict(model, new, reasons=N_REASONS),
            "without": lambda: predict(model, new),
            "engine": lambda: [booster.predict(encoded, pred_contrib=True, num_threads=1) for booster in boosters],
        },
        repeats=3,
    )
    size = f"{len(boosters)} x {trees.n_estimators_} trees of at most {trees.max_leaf_nodes_} leaves"
    remark = (
        f"{len(flagged):,} rows, {size}; predictions with reasons {times['with']:.2f}, without {times['without']:.2f}"
    )
    return Figures(times["with"] - times["without"], times["engine"], 0.0, remark)


def case(family: str, goal: float) -> Case:
    """Return the comparison of predictions with and without reasons."""
    measure: Callable[[], Figures] = partial(next_to_predictions, family)
    return Case(f"{family}: predictions of {ROWS:,} rows with reasons", "without reasons", goal, measure)


CASES = [
    case("linear", 2.0),
    case("additive", 2.0),
    *(
        Case(f"{family}: what reasons add to predictions of {ROWS:,} rows", "SHAP of the engine", 1.2, measure)
        for family in ("boosted", "lightgbm")
        for measure in [partial(next_to_engine, family)]
    ),
]


def main() -> None:
    """Run the cases and write the page of reasons."""
    from benchmarks.speed.__main__ import in_own_process

    rows = []
    for each in CASES:
        found = in_own_process("reasons", each.name)
        assert found is not None
        seconds, peer, _, remark = found
        ratio = seconds / peer
        goal = "" if each.goal is None else f"{each.goal:g}, {'met' if ratio <= each.goal else 'missed'}"
        rows.append((each.name, each.peer, f"{seconds:.2f}", f"{peer:.2f}", f"{ratio:.2f}", goal, remark))
        print(*rows[-1], sep="; ")
    publish(
        "reasons",
        "What reasons cost",
        [
            "`python -m benchmarks.speed.reasons`: each case in a process of its own, with one thread; both sides take "
            "turns, and the least CPU time of each counts.",
            markdown(("case", "peer", "CPU s", "peer, CPU s", "ratio", "goal", "remarks"), rows),
        ],
    )


if __name__ == "__main__":
    main()
