"""F1 on test rows: ``FBetaClassifier`` next to logistic regression with the best threshold on the training rows.

Five 2/3-1/3 splits of at most ``--rows`` rows of each set; both get their ``C`` from the same three folds. Scores are
kept in ``results/f_measure.jsonl``, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from _measure import markdown, publish
from partial_auc import SETS, load_or_say, split
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

from rocmax import FBetaClassifier

CELLS = Path(__file__).resolve().parent / "results" / "f_measure.jsonl"


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
    """Return the test F1 of both on one split."""
    X, X_test, y, y_test = split(name, seed, rows)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y))
    models = {
        "logistic": (BestThreshold(max_iter=1000), [0.01, 0.1, 1.0, 10.0]),
        "F1": (FBetaClassifier(tol=1e-2), [1.0, 10.0, 100.0]),
    }
    scores = {}
    for method, (model, grid) in models.items():
        search = GridSearchCV(model, {"C": grid}, scoring="f1", cv=folds).fit(X, y)
        scores[method] = float(f1_score(y_test, search.predict(X_test)))
    return {"set": name, "seed": seed, "rows": rows, "scores": scores}


def report(cells: list[dict]) -> str:
    """Return the table."""
    rows, ahead, behind = [], 0, 0
    names = [name for name in SETS if any(c["set"] == name for c in cells)]
    for name in names:
        pairs = np.array([[c["scores"]["F1"], c["scores"]["logistic"]] for c in cells if c["set"] == name])
        gain = pairs[:, 0] - pairs[:, 1]
        error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else np.nan
        ahead, behind = ahead + (gain.mean() > error), behind + (gain.mean() < -error)
        mean = pairs.mean(axis=0)
        rows.append([name, str(gain.size), f"{mean[0]:.4f}", f"{mean[1]:.4f}", f"{gain.mean():+.4f} ± {error:.4f}"])
    table = markdown(["set", "seeds", "FBetaClassifier", "logistic, best threshold", "difference"], rows)
    return f"{table}\n\nAhead by more than one standard error in {ahead}, behind in {behind} of {len(names)} sets."


def main() -> None:
    """Run the splits that are missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000)
    args = parser.parse_args()
    cells = [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []
    done = {(c["set"], c["seed"]) for c in cells}
    with threadpool_limits(1), warnings.catch_warnings(), CELLS.open("a") as out:
        warnings.simplefilter("ignore")
        for seed in range(args.seeds):
            for name in filter(load_or_say, SETS):
                if (name, seed) not in done:
                    cells.append(cell(name, seed, args.rows))
                    out.write(json.dumps(cells[-1]) + "\n")
                    out.flush()
    publish("f_measure", "F1 on test rows", [report(cells)])


if __name__ == "__main__":
    main()
