"""Test partial AUC of the default fit compared with baselines, each with C chosen on the same inner folds.

One cell is a data set, a seed and a window: rows (at most ``--rows``) are split 2/3 to 1/3, features standardised on
the training part, every method tuned on the same five stratified folds of it and scored on the rest. Scores are kept
in ``results/partial_auc.jsonl``, so an interrupted run goes on where it stopped. ``--only`` names the methods to run,
``--forget`` those whose scores are dropped first, ``--report`` only writes the table.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory
from rocmax import AUCClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.metrics import make_scorer, partial_auc_score

RESULTS = Path(__file__).parents[1] / "results"
CELLS = RESULTS / "partial_auc.jsonl"
WINDOWS = [(0.0, 0.01), (0.0, 0.05), (0.02, 0.05)]
SETS = [
    "pima", "ionosphere", "oil", "yeast_me2", "abalone", "mammography-like", "spambase",
    "letter:A", "letter:K", "letter:O", "letter:Q", "letter:S", "letter:Z",
    "a9a", "adult", "ijcnn1", "cod-rna", "covtype", "covtype:5", "connect-4",
]  # fmt: skip
# A window needs a handful of negatives in the test part.
FEWEST_NEGATIVES = 5


def mammography_like(n_rows: int = 9000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Six skewed features and 2.3 % positives, half of which look like the negatives."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.023).astype(int)
    X = rng.standard_normal((n_rows, 6)) @ rng.standard_normal((6, 6))
    visible = (y == 1) & (rng.random(n_rows) < 0.5)
    X += np.outer(visible, rng.normal(1.5, 0.5, 6))
    return np.sinh(X / 2), y


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return features and labels of a set, or None if its file is absent; ``set:class`` picks a positive class."""
    if name == "mammography-like":
        return mammography_like()
    base, _, positive = name.partition(":")
    path = data_directory() / f"{base}.npz"
    if not path.exists():
        return None
    with np.load(path) as z:
        if "X" in z.files:
            X = z["X"].astype(np.float64)
        else:
            X = sparse.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])).toarray()
        if not positive:
            return X.astype(np.float64), z["y"].astype(int)
        label = int(positive) if positive.isdigit() else ord(positive) - ord("A") + 1
        return X.astype(np.float64), (z["label"] == label).astype(int)


def baselines(window: tuple[float, float]) -> dict[str, object]:
    """Return the baselines and, by their kind, the grid of C."""
    wide, svm = [0.01, 0.1, 1.0, 10.0], [1.0, 100.0]
    return {
        "logistic": (LogisticRegression(max_iter=1000), wide),
        "logistic balanced": (LogisticRegression(max_iter=1000, class_weight="balanced"), wide),
        "linear SVC": (LinearSVC(dual=False), [0.001, 0.01, 0.1, 1.0]),
        "full AUC": (AUCClassifier(), svm),
        "tight": (PartialAUCClassifier(*window, loss="tight", max_iter=40), svm),
        "structural": (PartialAUCClassifier(*window, loss="structural", max_iter=40), svm),
        "CCCP": (PartialAUCClassifier(*window, loss="hinge", max_iter=10), svm),
    }


def split(name: str, seed: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return standardised training and test rows, and their labels."""
    X, y = load(name)
    if y.size > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
    X, X_test, y, y_test = train_test_split(X, y, train_size=2 / 3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test), y, y_test


def cell(name: str, window: tuple[float, float], seed: int, rows: int, methods: list[str]) -> dict[str, object] | None:
    """Score methods on one split; None if the window holds too few negatives of the test part."""
    X, X_test, y, y_test = split(name, seed, rows)
    if (y_test == 0).sum() * (window[1] - window[0]) < FEWEST_NEGATIVES:
        return None
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    scoring = make_scorer("partial_auc", min_fpr=window[0], max_fpr=window[1])
    scores = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # baselines may collapse or stop early, which their scores show
        for method in methods:
            if method == "auto":
                model = PartialAUCClassifierCV(*window, cv=folds)
            else:
                estimator, grid = baselines(window)[method]
                model = GridSearchCV(estimator, {"C": grid}, scoring=scoring, cv=folds)
            decision = model.fit(X, y).decision_function(X_test)
            scores[method] = partial_auc_score(y_test, decision, min_fpr=window[0], max_fpr=window[1])
    return {"set": name, "window": window, "seed": seed, "rows": int(y.size + y_test.size), "scores": scores}


def run(seeds: int, rows: int, jobs: int, methods: list[str]) -> None:
    """Compute the scores that are not there yet."""
    done = {(c["set"], tuple(c["window"]), c["seed"]): c["scores"] for c in read()}
    wanted = []
    for key in product(range(seeds), filter(load_or_say, SETS), WINDOWS):
        seed, name, window = key
        missing = [m for m in methods if m not in done.get((name, window, seed), {})]
        if missing:
            wanted.append((name, window, seed, rows, missing))
    results = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(cell)(*key) for key in wanted)
    with CELLS.open("a") as out:
        for result in results:
            if result is not None:
                out.write(json.dumps(result) + "\n")
                out.flush()


def load_or_say(name: str, said: set[str] = set()) -> bool:  # noqa: B006 - remembers what it has said
    """Return whether the file of a data set is available; print a note once if it is not."""
    base = name.partition(":")[0]
    there = base == "mammography-like" or (data_directory() / f"{base}.npz").exists()
    if not there and name not in said:
        said.add(name)
        print(f"skipped {name}: no {base}.npz in the data directory (set ROCMAX_DATA)")
    return there


def read() -> list[dict]:
    """Return the cells computed so far, each with the scores of all its methods."""
    cells: dict[tuple, dict] = {}
    for line in CELLS.read_text().splitlines() if CELLS.exists() else []:
        c = json.loads(line)
        cells.setdefault((c["set"], *c["window"], c["seed"]), c)["scores"].update(c["scores"])
    return list(cells.values())


def forget(methods: list[str]) -> None:
    """Drop the scores of some methods."""
    cells = read()
    for c in cells:
        c["scores"] = {m: v for m, v in c["scores"].items() if m not in methods}
    CELLS.write_text("".join(json.dumps(c) + "\n" for c in cells))


def report() -> str:
    """Return the table: mean of auto, and its paired difference to each baseline with a standard error."""
    groups: dict[tuple, list[dict]] = {}
    methods = list(baselines(WINDOWS[0]))
    for c in read():
        if not {"auto", *methods} <= c["scores"].keys():
            continue
        groups.setdefault((c["set"], tuple(c["window"])), []).append(c)
    lines = [
        "# Test partial AUC of `PartialAUCClassifierCV` and baselines", "",
        "Mean over seeds for auto; then auto minus each baseline, with the standard error of the paired difference. "
        "**Bold**: auto is behind by more than one standard error.", "",
        "| set | rows | seeds | window | auto | " + " | ".join(methods) + " |",
        "|---" * (5 + len(methods)) + "|",
    ]  # fmt: skip
    behind = dict.fromkeys(methods, 0)
    ahead = dict.fromkeys(methods, 0)
    judged = beaten_by_none = ahead_of_all = 0
    for (name, window), cells in sorted(groups.items(), key=lambda g: (SETS.index(g[0][0]), g[0][1])):
        auto = np.array([c["scores"]["auto"] for c in cells])
        row, worse, better = [], 0, 0
        for method in methods:
            gain = auto - np.array([c["scores"][method] for c in cells])
            error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else np.nan
            text = f"{gain.mean():+.4f} ± {error:.4f}"
            lost, won = gain.mean() < -error, gain.mean() > error
            behind[method] += lost
            ahead[method] += won
            worse, better = worse + lost, better + won
            row.append(f"**{text}**" if lost else text)
        judged += auto.size > 1
        beaten_by_none += auto.size > 1 and worse == 0
        ahead_of_all += better == len(methods)
        window_text = f"[{window[0]:g}, {window[1]:g}]"
        lines.append(
            f"| {name} | {cells[0]['rows']} | {auto.size} | {window_text} | {auto.mean():.4f} | "
            + " | ".join(row)
            + " |"
        )
    n = judged  # a single seed has no standard error
    lines += [
        "",
        f"Of {n} rows with at least two seeds: behind no baseline by more than one standard error in {beaten_by_none}, "
        f"ahead of every baseline by more than one in {ahead_of_all}.",
        "",
    ]
    lines += [f"- against {m}: ahead in {ahead[m]}, behind in {behind[m]} of {n}" for m in methods]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the cells and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000, help="largest number of rows taken of a set")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the table")
    methods = ["auto", *baselines(WINDOWS[0])]
    parser.add_argument("--only", nargs="+", choices=methods, default=methods, help="methods to run")
    parser.add_argument("--forget", nargs="+", choices=methods, default=[], help="methods to run anew")
    args = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    forget(args.forget)
    if not args.report:
        run(args.seeds, args.rows, args.jobs, args.only)
    text = report()
    (RESULTS / "partial_auc.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
