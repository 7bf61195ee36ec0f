"""Tables by one command: 1,000,000 rows next to LightGBM by hand, 5,000 columns next to logistic regression by hand.

Each side reads the file and runs in a process of its own, with one thread. Models of the long table are measured by the
partial AUC up to FPR 5 % on 200,000 other rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks._shared.results import ONE_THREAD, ROCMAX
from benchmarks.speed.case import Case, Figures

ROWS, TEST_ROWS, MAX_FPR = 1_000_000, 200_000, 0.05
N_NUMBERS, SIZES = 20, (3, 4, 5, 6, 8, 10, 12, 20, 30, 50)
# Candidates of the search by hand, and the rows it uses.
LEAVES, ROUNDS, SEARCHED = (15, 31, 63), tuple(range(50, 301, 50)), 250_000


def generated(n_rows: int, seed: int) -> pd.DataFrame:
    """Return a table with 20 columns of numbers, 10 of categories, missing values, and 3.6 % positives.

    A few columns count alone. The signs of three numbers, and numbers within a category, count together, which no sum
    of functions of single columns has; trees find this in many rows only.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_NUMBERS))
    codes = [np.minimum(rng.geometric(2.0 / size, n_rows) - 1, size - 1) for size in SIZES]
    effects = [np.random.default_rng(i).normal(size=size) for i, size in enumerate(SIZES)]
    score = 0.4 * X[:, 0] - 0.3 * X[:, 1] + 0.3 * np.abs(X[:, 2]) - 0.3 * np.maximum(X[:, 17], 0)
    score += 0.3 * (effects[4][codes[4]] + effects[6][codes[6]])
    score += 0.8 * np.sign(X[:, 3] * X[:, 4] * X[:, 14]) + 0.8 * np.sign(X[:, 5] * X[:, 6] * X[:, 7])
    score += 0.5 * effects[5][codes[5]] * X[:, 8] + 0.5 * np.where(codes[2] == 1, X[:, 9], -X[:, 9])
    positive = score + 1.5 * rng.logistic(size=n_rows) > 5.8
    X[:, 10:15] = np.exp(X[:, 10:15])
    for j in (0, 3, 8, 10, 12, 15, 17, 19):
        X[rng.random(n_rows) < 0.05 + 0.01 * j, j] = np.nan
    found: dict[str, Any] = {f"n{j}": X[:, j].round(4) for j in range(N_NUMBERS)}
    for i, (size, code) in enumerate(zip(SIZES, codes, strict=True)):
        levels = np.array([f"c{i}_{k}" for k in range(size)], dtype=object)
        lacks = rng.random(n_rows) < (0.1 if i % 3 == 0 else 0.0)
        found[f"c{i}"] = np.where(lacks, None, levels[code])
    return pd.DataFrame({**found, "label": np.where(positive, "yes", "no")})


class Used(NamedTuple):
    """CPU seconds and peak memory in MB of a process, and what it printed."""

    seconds: float
    megabytes: float
    text: str


def in_process(*command: Any) -> Used:
    """Run a command with one thread."""
    with tempfile.TemporaryFile("w+") as file:
        child = subprocess.Popen(list(map(str, command)), env={**os.environ, **ONE_THREAD}, stdout=file)
        _, status, used = os.wait4(child.pid, 0)
        if status:
            raise subprocess.CalledProcessError(status, list(map(str, command)))
        file.seek(0)
        return Used(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file.read())


# The search by hand.


def read(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns, text as categories, and the labels."""
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    positive = (frame.pop("label") == "yes").to_numpy()
    return frame.astype({f"c{i}": "category" for i in range(len(SIZES))}), positive


def by_hand(path: Path, test: Path, tuned: bool) -> float:
    """Return the partial AUC of LightGBM, with its defaults or with leaves and rounds chosen in three folds."""
    import lightgbm
    from sklearn.model_selection import StratifiedKFold

    from rocmax.metrics import partial_auc_score

    def fitted(data: Any, leaves: int, rounds: int) -> Any:
        return lightgbm.train({"objective": "binary", "num_leaves": leaves, "verbose": -1}, data, rounds)

    frame, positive = read(path)
    data = lightgbm.Dataset(frame, positive, free_raw_data=False).construct()
    leaves, rounds = 31, 100
    if tuned:
        rows = np.sort(np.random.default_rng(0).permutation(positive.size)[:SEARCHED])
        folds = StratifiedKFold(3, shuffle=True, random_state=0).split(rows, positive[rows])
        folds = [(rows[train], rows[held_out]) for train, held_out in folds]
        found = {}
        for size in LEAVES:
            scores = np.zeros((len(folds), len(ROUNDS)))
            for k, (train, held_out) in enumerate(folds):
                model = fitted(data.subset(train), size, ROUNDS[-1])
                rows, total, first = frame.iloc[held_out], 0.0, 0
                for i, last in enumerate(ROUNDS):
                    step = {"start_iteration": first, "num_iteration": last - first}
                    total, first = total + model.predict(rows, raw_score=True, **step), last
                    scores[k, i] = partial_auc_score(positive[held_out], total, max_fpr=MAX_FPR)
            found |= {(size, last): mean for last, mean in zip(ROUNDS, scores.mean(axis=0), strict=True)}
        leaves, rounds = max(found, key=found.__getitem__)
    model = fitted(data, leaves, rounds)
    table, labels = read(test)
    for name in table.columns[N_NUMBERS:]:
        table[name] = table[name].astype(frame[name].dtype)
    return float(partial_auc_score(labels, model.predict(table), max_fpr=MAX_FPR))


def by_hand_wide(path: Path) -> float:
    """Return the best mean AUC of logistic regression with four values of C in three folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame = pd.read_csv(path)
    labels = frame.pop("label")
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}
    return float(GridSearchCV(model, grid, cv=3, scoring="roc_auc").fit(frame, labels).best_score_)


# Cases.


def of_the_command(path: Path, test: Path, out: Path, model: str) -> tuple[Used, float, str]:
    """Fit by the command line; return what it used, the partial AUC on other rows, and the family."""
    from rocmax.metrics import partial_auc_score
    from rocmax.tables import load_model, predict

    used = in_process(
        ROCMAX, "fit", path, "--target", "label", "--positive", "yes", "--max-fpr", MAX_FPR, "--model", model,
        "--out", out,
    )  # fmt: skip
    fitted = load_model(out)
    scores = predict(fitted, test)["score"].to_numpy()
    return used, float(partial_auc_score(read(test)[1], scores, max_fpr=MAX_FPR)), fitted.family


def measure(kind: str, tuned: bool) -> Figures:
    """Compare the command line with LightGBM by hand."""
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder, f"train.{kind}"), Path(folder, "test.parquet")
        frame = generated(ROWS, 0)
        frame.to_parquet(train) if kind == "parquet" else frame.to_csv(train, index=False)
        del frame
        generated(TEST_ROWS, 1).to_parquet(test)
        ours, score, family = of_the_command(train, test, Path(folder, "model.rocmax"), "auto")
        peer = in_process(sys.executable, "-m", "benchmarks.speed.million", train, test, *(["tuned"] if tuned else []))
    remark = f"partial AUC {score:.4f} ({family}) against {float(peer.text):.4f}; peak {ours.megabytes:,.0f} MB against"
    return Figures(ours.seconds, peer.seconds, ours.megabytes, f"{remark} {peer.megabytes:,.0f} MB")


def measure_wide() -> Figures:
    """Compare the linear model of the command line with logistic regression by hand on many columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5000))
    labels = (X[:, :20].sum(axis=1) + 2 * rng.standard_normal(600) > 4).astype(int)
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "wide.csv"), Path(folder, "model.rocmax")
        pd.DataFrame(X.round(4)).add_prefix("x").assign(label=labels).to_csv(path, index=False)
        limit = ("--target", "label", "--max-fpr", MAX_FPR, "--model", "linear", "--out", out)
        ours = in_process(ROCMAX, "fit", path, *limit)
        peer = in_process(sys.executable, "-m", "benchmarks.speed.million", path)
    return Figures(ours.seconds, peer.seconds, ours.megabytes, f"peak {ours.megabytes:,.0f} MB, reading included")


CASES = [
    Case(
        f"`rocmax fit`, {kind} of {ROWS:,} rows x 30" + ("" if tuned else ", next to defaults"),
        "LightGBM, leaves and rounds tuned in 3 folds" if tuned else "LightGBM with its defaults",
        1.0 if tuned else None,
        partial(measure, kind, tuned),
    )
    for kind, tuned in (("parquet", True), ("parquet", False), ("csv", True))
]
CASES += [Case("`rocmax fit --model linear`, csv of 600 rows x 5,000", "logistic, 4 Cs, 3 folds", 10.0, measure_wide)]

if __name__ == "__main__":
    files = [Path(name) for name in sys.argv[1:3]]
    print(by_hand_wide(*files) if len(files) == 1 else by_hand(*files, "tuned" in sys.argv))
