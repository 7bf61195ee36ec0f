"""Mini-batch training next to the certified batch solution: test measure and CPU time after one and five passes.

Each set is split 2/3 to 1/3 and standardised. The batch models have ``C = 10`` and a relative gap of 1e-3. The last
part is one pass over a million rows next to one epoch of ``SGDClassifier`` on the same rows. ``--sets`` chooses some of
the sets; ``--speed`` runs the last part alone.
"""

from __future__ import annotations

import argparse
import warnings

from _data import load_real, synthetic
from _measure import cpu_time, interleaved, markdown, publish
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from rocmax import FBetaClassifier, MiniBatchClassifier, PartialAUCClassifier, PrecisionAtKClassifier

SETS = ["letter", "a9a", "ijcnn1", "cod-rna", "covtype"]
RESERVOIR = 500


def compare(name: str) -> list[list[str]]:
    """Return the rows of one set, or none if its file is absent."""
    data = load_real(name)
    if data is None:
        return []
    X, X_test, y, y_test = train_test_split(data.X, data.y, train_size=2 / 3, stratify=data.y, random_state=0)
    k = float(y.mean())
    batch = {
        "f_beta": FBetaClassifier(loss="convex", C=10),
        "precision_at_k": PrecisionAtKClassifier(k, "convex", C=10),
        "partial_auc": PartialAUCClassifier(loss="tight", C=10),
    }
    rows = []
    for measure, model in batch.items():
        seconds, _ = cpu_time(lambda model=model: model.fit(X, y))
        goal = model.score(X_test, y_test)
        collapsed = "" if model.coef_.any() else " (w = 0)"
        row = [name, str(y.size), measure, f"{goal:.4f}{collapsed}", f"{seconds:.2f}"]
        for reservoir in (None, RESERVOIR):
            for passes in (1, 5):
                online = MiniBatchClassifier(measure, k=k, passes=passes, reservoir_size=reservoir, random_state=0)
                seconds, _ = cpu_time(lambda online=online: online.fit(X, y))
                row += [f"{online.score(X_test, y_test) - goal:+.4f}", f"{seconds:.2f}"]
        rows.append(row)
        print(" | ".join(row), flush=True)
    return rows


def speed(n_rows: int) -> str:
    """Compare one pass with one epoch of ``SGDClassifier``."""
    data = synthetic(n_rows, 50)
    calls = {"SGDClassifier": lambda: SGDClassifier(max_iter=1, tol=None, random_state=0).fit(data.X, data.y)}
    for measure in ("partial_auc", "auc", "precision_at_k", "f_beta"):
        calls[measure] = lambda measure=measure: MiniBatchClassifier(measure, passes=1, random_state=0).fit(
            data.X, data.y
        )
    times = interleaved(calls, 3)
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
    for method in ("1PMB", "2PMB"):
        for passes in ("1 pass", "5 passes"):
            header += [f"{method} {passes}, difference", "s"]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a collapse is marked in the table
        sections: list[str] = []
        if not args.speed:
            table = [row for name in args.sets for row in compare(name)]
            sections += [
                f"CPU seconds; 2PMB keeps {RESERVOIR} positives; differences to the batch model.",
                markdown(header, table),
            ]
        sections += [f"One pass over {args.rows:,} rows of 50 features, in turns:", speed(args.rows)]
    publish("minibatch", "Mini-batch training next to the batch solution", sections, quick=args.speed)


if __name__ == "__main__":
    main()
