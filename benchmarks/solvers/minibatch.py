"""Mini-batch training next to the certified batch solution: test measure against CPU time, and passes to come close.

Each set is split 2/3 to 1/3 and standardized. The batch solution minimizes the same convex loss with ``C = 10`` to a
relative gap of 1e-3. A curve has one point for each fit: mini-batches with parts of the rows, then with one to five
passes over all of them; the batch solver stopped after some iterations. The curves are kept in
``results/minibatch.jsonl``, from which ``examples/plot_minibatch_time.py`` draws a picture. The last part is one pass
over a million rows next to one epoch of ``SGDClassifier`` on the same rows. ``--sets`` chooses some of the sets;
``--speed`` runs the last part alone.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import load_real, synthetic
from benchmarks._shared.results import RESULTS, cpu_time, interleaved, markdown, publish
from rocmax import MiniBatchClassifier
from rocmax.measures import pick_measure
from rocmax.operators import as_operator
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, SmoothedNewton

SETS = ["letter", "a9a", "ijcnn1", "cod-rna", "covtype"]
MEASURES = ("f_beta", "precision_at_k", "partial_auc")
# Rows of a batch; for 2PMB half of them are positives.
BATCH = 500
METHODS: dict[str, dict[str, Any]] = {
    "1PMB": {"batch_size": BATCH},
    "2PMB": {"batch_size": BATCH // 2, "reservoir_size": BATCH // 2},
}
PARTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
PASSES = (1, 2, 3, 4, 5)
ITERATIONS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120)
CLOSE = 0.01


class Point(NamedTuple):
    """One fit: passes, or iterations of the batch solver; its CPU seconds; its measure on the test rows."""

    effort: float
    seconds: float
    score: float


class Task(NamedTuple):
    """A split of a set, and a measure to train for."""

    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray
    measure: str

    def model(self, **options: Any) -> MiniBatchClassifier:
        """Return a model for this measure, not fitted."""
        return MiniBatchClassifier(self.measure, k=float(self.y.mean()), random_state=0, **options)


def batch(task: Task, max_iter: int) -> tuple[Point, bool, bool]:
    """Run the batch solver; return what it reached, and whether it is done and whether it ended at zero weights."""
    model = task.model()
    measure, positive = pick_measure(task.measure, model.get_params()), task.y == 1
    loss = measure.convex_loss().bind(positive)
    kind = SmoothedNewton if loss.has_curvature else OCAS

    def fit() -> Any:
        result = kind(1e-3, max_iter).solve(as_operator(task.X), loss, SquaredL2(10.0))
        model.coef_ = result.w[np.newaxis, :]
        model.intercept_ = -np.array([measure.threshold(task.X @ result.w, positive)])
        return result

    seconds, result = cpu_time(fit)
    model.classes_, model.n_features_in_ = np.array([0, 1]), task.X.shape[1]
    point = Point(result.n_iter, seconds, model.score(task.X_test, task.y_test))
    return point, result.converged, not result.w.any()


def mini_batches(task: Task, **options: Any) -> Iterator[Point]:
    """Yield a point for each amount of rows."""
    rows = np.random.default_rng(0).permutation(task.y.size)
    for amount in (*PARTS, *PASSES):
        part = rows[: int(amount * rows.size)] if amount < 1 else slice(None)
        model, X, y = task.model(max_iter=max(1, int(amount)), **options), task.X[part], task.y[part]
        seconds, _ = cpu_time(lambda model=model, X=X, y=y: model.fit(X, y))
        yield Point(amount, seconds, model.score(task.X_test, task.y_test))


def compare(name: str) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Return the rows of the table and the curves of one set, or none if its file is absent."""
    data = load_real(name)
    if data is None:
        return [], []
    split = train_test_split(data.X, data.y, train_size=2 / 3, stratify=data.y, random_state=0)
    rows, curves = [], []
    for measure in MEASURES:
        task = Task(*split, measure)
        goal, _, collapsed = batch(task, 500)
        path = [point for point, done, _ in (batch(task, n) for n in ITERATIONS if n < goal.effort) if not done]
        by_method = {"batch": [*path, goal], **{m: list(mini_batches(task, **o)) for m, o in METHODS.items()}}
        curves += [
            {"set": name, "rows": data.y.size, "measure": measure, "method": m, "effort": e, "seconds": s, "score": v}
            for m, points in by_method.items()
            for e, s, v in points
        ]
        shown = f"{goal.score:.4f}{' (w = 0)' if collapsed else ''}"
        row = [name, str(data.y.size), measure, shown, f"{goal.seconds:.2f}"]
        for method in METHODS:
            row += summary(by_method[method], goal)
        rows.append(row)
        print(" | ".join(row), flush=True)
    return rows, curves


def summary(points: list[Point], goal: Point) -> list[str]:
    """Return the passes to come and stay close to the batch solution, difference and time then, the last difference."""
    last = f"{points[-1].score - goal.score:+.4f}"
    far = [point.score < goal.score - CLOSE for point in points]
    if far[-1]:
        return ["not in 5", "", "", last]
    close = points[len(far) - far[::-1].index(True)] if any(far) else points[0]
    ratio = f"{close.seconds / goal.seconds:.2f}"
    return [f"{close.effort:g}", f"{close.score - goal.score:+.4f}", ratio, last]


def speed(n_rows: int) -> str:
    """Compare one pass with one epoch of ``SGDClassifier``."""
    data = synthetic(n_rows, 50)
    calls = {"SGDClassifier": lambda: SGDClassifier(max_iter=1, tol=None, random_state=0).fit(data.X, data.y)}
    for measure in ("partial_auc", "roc_auc", "precision_at_k", "f_beta"):
        calls[measure] = lambda measure=measure: MiniBatchClassifier(measure, max_iter=1, random_state=0).fit(
            data.X, data.y
        )
    times = interleaved(calls, 9)
    base = times["SGDClassifier"]
    rows = [[name, f"{seconds:.2f}", f"{seconds / base:.2f}"] for name, seconds in times.items()]
    return markdown(["one pass", "s, CPU", "x SGDClassifier"], rows)


def main() -> None:
    """Run the comparisons and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=SETS)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the speed comparison")
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    header = ["set", "rows", "measure", "batch", "s"]
    for method in METHODS:
        header += [f"{method}: passes", "difference", "time / batch", "after 5"]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a collapse is marked in the table
        sections: list[str] = []
        if not args.speed:
            parts = [compare(name) for name in args.sets]
            table = [row for rows, _ in parts for row in rows]
            lines = [json.dumps(point) for _, points in parts for point in points]
            if args.sets == SETS:
                (RESULTS / "minibatch.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
            sections += [
                f"Test measure of the certified batch solution and its CPU seconds. For mini-batches of {BATCH} rows "
                f"(1PMB) and of {BATCH // 2} positives and {BATCH // 2} negatives (2PMB): passes until the test "
                f"measure is at most {CLOSE} below that and stays there (down to a sixteenth of the rows), the "
                "difference then, the CPU time of so many passes relative to the batch solver's, and the difference "
                "after five passes. Rows are those of the whole set.",
                markdown(header, table),
            ]
        sections += [f"One pass over {args.rows:,} rows of 50 features, in turns:", speed(args.rows)]
    publish(
        "minibatch", "Mini-batch training next to the batch solution", sections, quick=args.speed or args.sets != SETS
    )


if __name__ == "__main__":
    main()
