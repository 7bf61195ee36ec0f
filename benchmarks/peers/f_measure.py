"""F1 on test rows: ``FBetaClassifier`` next to logistic regression with the best threshold on the training rows.

Five 2/3-1/3 splits of at most ``--rows`` rows of each set, twice: both with default parameters, and both tuned on the
same three folds by F1, logistic regression its ``C`` and ``FBetaClassifier`` the ``C`` of the logistic regression that
it starts from, over the same values. Scores are kept in ``results/f_measure.jsonl``, so that an interrupted run goes
on.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks._shared.results import markdown, publish
from benchmarks._shared.tables import SETS, load_or_say, split
from rocmax import FBetaClassifier

CELLS = Path(__file__).resolve().parents[1] / "results" / "f_measure.jsonl"
GRID = [0.01, 0.1, 1.0, 10.0]
# Title of a table, and the scores that it compares.
TABLES = {
    "Tuned": ("FBetaClassifier, tuned", "logistic, tuned"),
    "As they are": ("FBetaClassifier", "logistic"),
}


class BestThreshold(LogisticRegression):
    """Logistic regression that predicts at the threshold with the best F1 on its training rows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> BestThreshold:
        """Fit, and move the intercept."""
        super().fit(X, y)
        scores = self.decision_function(X)
        order = np.argsort(-scores)
        found = 2 * np.cumsum(y[order]) / (y.sum() + np.arange(1, y.size + 1))
        ends = np.append(np.diff(scores[order]) < 0, True)  # tied rows pass together
        best = int(np.argmax(np.where(ends, found, -1.0)))
        below = scores[order[min(best + 1, y.size - 1)]]
        self.intercept_ = self.intercept_ - (scores[order[best]] + below) / 2
        return self


def cell(name: str, seed: int, rows: int) -> dict:
    """Return the test F1 of all on one split."""
    X, X_test, y, y_test = split(name, seed, rows)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y))
    logistic, ours = BestThreshold(max_iter=1000), FBetaClassifier()
    models = {
        "logistic": logistic,
        "logistic, tuned": GridSearchCV(logistic, {"C": GRID}, scoring="f1", cv=folds),
        "FBetaClassifier": ours,
        "FBetaClassifier, tuned": GridSearchCV(ours, {"start_C": GRID}, scoring="f1", cv=folds),
    }
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops early is scored as it is
        scores = {method: float(f1_score(y_test, model.fit(X, y).predict(X_test))) for method, model in models.items()}
    return {"set": name, "seed": seed, "rows": rows, "scores": scores}


def report(cells: list[dict], ours: str, baseline: str) -> str:
    """Return a table of two methods."""
    rows, ahead, behind, same = [], 0, 0, 0
    names = [name for name in SETS if any(c["set"] == name for c in cells)]
    for name in names:
        pairs = np.array([[c["scores"][ours], c["scores"][baseline]] for c in cells if c["set"] == name])
        gain = pairs[:, 0] - pairs[:, 1]
        error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else np.nan
        # One split that differs has a mean of exactly one standard error, but for rounding.
        ahead, behind = ahead + (gain.mean() > error + 1e-12), behind + (gain.mean() < -error - 1e-12)
        same += not gain.any()
        mean = pairs.mean(axis=0)
        rows.append([name, str(gain.size), f"{mean[0]:.4f}", f"{mean[1]:.4f}", f"{gain.mean():+.4f} ± {error:.4f}"])
    table = markdown(["set", "splits", ours, f"{baseline}, best threshold", "difference"], rows)
    return (
        f"{table}\n\nAhead by more than one standard error in {ahead}, behind in {behind} of {len(names)} sets; "
        f"the same on every split in {same}."
    )


def main() -> None:
    """Run the splits that are missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    cells = [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []
    done = {(c["set"], c["seed"]) for c in cells}
    wanted = [
        (name, seed, args.rows)
        for seed in range(args.seeds)
        for name in filter(load_or_say, SETS)
        if (name, seed) not in done
    ]
    with CELLS.open("a") as out:
        for found in Parallel(n_jobs=args.jobs, return_as="generator_unordered")(delayed(cell)(*key) for key in wanted):
            cells.append(found)
            out.write(json.dumps(found) + "\n")
            out.flush()
    sections = [f"## {title}\n\n{report(cells, *methods)}" for title, methods in TABLES.items()]
    intro = f"Standard errors are those of the paired difference over {args.seeds} splits of at most {args.rows} rows."
    publish("f_measure", "F1 on test rows", [intro, *sections])


if __name__ == "__main__":
    main()
