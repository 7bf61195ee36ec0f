"""Kernel machines and baselines next to the papers' tables.

``table2``: ten-fold AUC on the sets of Rakotomamonjy (2004), best over a grid, as in its Table 2.
``table4``: partial AUC [0.02, 0.05] of the baselines in Narasimhan and Agarwal (2017), Table 4.
``spectf``: RankBoost on the set whose figure in Table 2 has no spread, by rounds and ways to split.
``speed``: an exact fit on all pairs of 5,000 x 20 rows next to scikit-learn's ``SVC``.
``defaults``: ten-fold AUC of ``ROCSVC`` with its default C, with the paper's C = 1, and of ``SVC``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ParameterGrid, StratifiedKFold, StratifiedShuffleSplit, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory, load_real, standardize
from benchmarks._shared.kept import running_time
from benchmarks._shared.results import RESULTS, cpu_time, markdown, publish
from rocmax import ROCSVC, AUCClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.metrics import partial_auc_score
from rocmax.papers import AUCTreeClassifier, GreedyPairClassifier, RankBoostClassifier, TwoNormSVC

SIGMAS = (1.0, 2.0, 4.0, 8.0, 16.0)
GAMMAS = [1 / (2 * sigma**2) for sigma in SIGMAS]
GRIDS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ROC-SVM, m=10": (
        lambda **p: ROCSVC(reduction="sum", margin=0.01, n_neighbors=10, tol=1e-2, **p),
        {"C": [1e-3, 1e-2, 1e-1, 1.0], "gamma": GAMMAS},
    ),
    "ROC-SVM, all pairs": (
        lambda **p: ROCSVC(reduction="sum", margin=0.01, tol=1e-2, **p),
        {"C": [1e-6, 1e-5, 1e-4, 1e-3], "gamma": GAMMAS},
    ),
    "2-norm SVM": (TwoNormSVC, {"C": [0.01, 0.1, 1.0, 10.0, 100.0], "gamma": GAMMAS}),
    "RankBoost": (RankBoostClassifier, {"n_estimators": [10, 30, 100, 300]}),
    "AUC tree": (AUCTreeClassifier, {"max_depth": [2, 3, 5, None], "min_samples_leaf": [1, 5, 20]}),
}
# Rakotomamonjy (2004), Table 2; its text has the set wdbc where the table has wpbc.
PAPER2 = {
    "wpbc": ("73.77 ± 16.12", "77.29 ± 15.7", "80.4 ± 8.0", "59.3 ± 16.2"),
    "credit": ("88.57 ± 14.90", "92.05 ± 11.1", "94.5 ± 2.9", "-"),
    "ionosphere": ("95.85 ± 3.58", "98.7 ± 1.8", "98.0 ± 3.3", "89.7 ± 6.7"),
    "pima": ("83.01 ± 4.23", "83.9 ± 4.1", "84.8 ± 6.5", "76.7 ± 6.0"),
    "spectf": ("77.45 ± 12.15", "86.0 ± 7.9", "93.4", "-"),
}
COLUMN = {"ROC-SVM, m=10": 0, "ROC-SVM, all pairs": 0, "2-norm SVM": 1, "RankBoost": 2, "AUC tree": 3}
# The follow-up time is one of the columns of the original wpbc file; it says much about recurrence.
WITH_TIME = ", with time"
SETS = ("wdbc", "wpbc", "wpbc" + WITH_TIME, "credit", "ionosphere", "pima", "spectf")

# Narasimhan and Agarwal (2017), Table 4.
WINDOW = {"min_fpr": 0.02, "max_fpr": 0.05}
PAPER4 = {
    "SVM-pAUC (tight), Algorithm 1": {"a9a": 0.2739, "ijcnn1": 0.6131, "letter": 0.5208},
    "SVM-pAUC dc (hinge)": {"a9a": 0.3650, "ijcnn1": 0.6798, "letter": 0.5182},
    "SVM-AUC": {"a9a": 0.4338, "ijcnn1": 0.4750, "letter": 0.4455},
    "greedy pairs": {"a9a": 0.3417, "ijcnn1": 0.1201, "letter": 0.2888},
}
TRAIN_ROWS, N_SPLITS = 4000, 3
NOTE = (
    "Results are kept in `kernels.json` one by one, so this page can come from several "
    "runs; `--fresh` computes all of them again. Each line of the table of speeds is side by side in one run."
)


class Cache:
    """Figures that were worked out before and the CPU seconds they took, so that a run can go on where it stopped."""

    def __init__(self, name: str, fresh: bool) -> None:
        self._path = RESULTS / f"{name}.json"
        self._known = {} if fresh or not self._path.exists() else json.loads(self._path.read_text())
        self._read: set[str] = set()

    def get(self, key: str, work: Callable[[], Any]) -> Any:
        """Return a figure; work it out and keep it if it is new."""
        if key not in self._known:
            seconds, figure = cpu_time(work)
            self._known[key] = [figure, round(seconds, 2)]
            self._path.write_text(json.dumps(self._known, indent=1) + "\n")
        self._read.add(key)
        return self._known[key][0]

    def running_time(self) -> str:
        """Return the sentence on the CPU time of all figures that were read."""
        times = [self._known[key][1] for key in self._read]
        text, missing = running_time(sum(filter(None, times))), times.count(None)
        return f"{text} The time of {missing} of {len(times)} figures was not kept." if missing else text


# Table 2 of Rakotomamonjy (2004)


def ten_fold(name: str, make: Callable[..., ClassifierMixin], parameters: dict[str, Any], seed: int = 0) -> list[float]:
    """Return the AUC of each fold; features are standardized on the training rows."""
    X, y, _ = raw(name)
    found = []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y):
        scaler = StandardScaler().fit(X[train])
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(**parameters).fit(scaler.transform(X[train]), y[train])
        found.append(float(roc_auc_score(y[test], model.decision_function(scaler.transform(X[test])))))
    return found


def raw(name: str) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return a set as it is stored, with its finer labels."""
    with np.load(data_directory() / f"{name.removesuffix(WITH_TIME)}.npz") as z:
        X, y = z["X"].astype(np.float64), z["y"].astype(np.int64)
        if name.endswith(WITH_TIME):
            X = np.column_stack([X, z["time"]])
        return X, y, z["label"] if "label" in z.files else None


def best_of_grid(name: str, method: str, jobs: int) -> dict[str, Any]:
    make, grid = GRIDS[method]
    points = list(ParameterGrid(grid))
    folds = Parallel(jobs)(delayed(ten_fold)(name, make, point) for point in points)
    best = int(np.argmax([np.mean(f) for f in folds]))
    return {"mean": 100 * np.mean(folds[best]), "sd": 100 * np.std(folds[best], ddof=1), "at": points[best]}


def table2(cache: Cache, jobs: int) -> str:
    """Return the table of ten-fold AUCs."""
    names = [name for name in SETS if (data_directory() / f"{name.removesuffix(WITH_TIME)}.npz").exists()]
    rows = []
    for name in names:
        for method in GRIDS:
            got = cache.get(f"table2 {name} {method}", lambda n=name, m=method: best_of_grid(n, m, jobs))
            print(name, method, got, flush=True)
            at = ", ".join(f"{key} {value:.3g}" for key, value in got["at"].items() if value is not None)
            paper = PAPER2.get(name.removesuffix(WITH_TIME), ("-",) * 4)[COLUMN[method]]
            rows.append(
                (name, method, f"{got['mean']:.2f} ± {got['sd']:.2f}", paper, minus(got["mean"], got["sd"], paper), at)
            )
    text = (
        "Ten-fold AUC in percent, mean ± standard deviation over the folds, best over the grid. Difference: here minus "
        "paper, with its standard error from the deviations over the ten folds, here and where the paper has one.\n\n"
    )
    header = ("set", "method", "here", "paper", "difference (± s.e.)", "best at")
    return "## Rakotomamonjy (2004), Table 2\n\n" + text + markdown(header, rows)


def minus(mean: float, deviation: float, paper: str) -> str:
    """Return a ten-fold mean minus that of the paper, a text like "73.77 ± 16.12", with the standard error."""
    if paper == "-":
        return "-"
    theirs, _, spread = paper.partition(" ± ")
    error = np.hypot(deviation, float(spread or 0)) / np.sqrt(10)
    return f"{mean - float(theirs):+.2f} ± {error:.2f}"


def spectf() -> str:
    """Return RankBoost's AUC on spectf, on the split that comes with it and on five shuffles into ten folds."""
    if not (data_directory() / "spectf.npz").exists():
        return ""
    with np.load(data_directory() / "spectf.npz") as z:
        X, y, given = z["X"].astype(np.float64), z["y"], z["split"] == 0
    rows = []
    for rounds in (5, 10, 20, 30, 50, 100):
        model = RankBoostClassifier(rounds).fit(X[given], y[given])
        on_split = 100 * roc_auc_score(y[~given], model.decision_function(X[~given]))
        folds = [100 * np.array(ten_fold("spectf", RankBoostClassifier, {"n_estimators": rounds}, s)) for s in range(5)]
        means = [f.mean() for f in folds]
        spread = np.mean([f.std(ddof=1) for f in folds])
        rows.append((f"{rounds}", f"{on_split:.1f}", f"{min(means):.1f} to {max(means):.1f}", f"{spread:.1f}"))
        print(rows[-1], flush=True)
    text = (
        "AUC in percent. Given split: 80 rows for training, 187 for the test. Ten folds: lowest and highest mean of "
        "five shuffles, and the standard deviation over the folds. Paper: 93.4, without a spread."
    )
    header = ("rounds", "given split", "ten folds", "deviation over the folds")
    return "## RankBoost on spectf\n\n" + text + "\n\n" + markdown(header, rows)


# Table 4 of Narasimhan and Agarwal (2017)


def baselines(rounds: int) -> dict[str, list[Any]]:
    """Return the candidates of each method, of which a held-out part of the training rows chooses one."""
    Cs = [10.0**power for power in range(-2, 3)]
    return {
        "SVM-AUC": [AUCClassifier(C=C) for C in Cs],
        "RankBoost": [RankBoostClassifier(rounds)],
        "greedy pairs": [GreedyPairClassifier(n_steps=100, **WINDOW)],
        "SVM-pAUC (tight), Algorithm 1": [
            PartialAUCClassifierCV(
                loss="tight",
                Cs=[10.0**power for power in range(-5, 5)],
                cv=StratifiedShuffleSplit(1, test_size=0.3, random_state=0),
                solver="cutting_plane",
                tol=1e-4,
                max_iter=100,
                **WINDOW,
            )
        ],
        "structural, exact": [PartialAUCClassifier(loss="structural", C=C, max_iter=50, **WINDOW) for C in Cs],
        "SVM-pAUC dc (hinge)": [PartialAUCClassifier(loss="hinge", C=C, max_iter=30, **WINDOW) for C in Cs],
    }


def split_score(name: str, method: str, seed: int) -> float:
    """Return the test partial AUC on one random split."""
    if name == "letter":
        X, _, label = raw(name)
        X, y = standardize(X), (label == 17).astype(np.int64)
    else:
        _, X, y = load_real(name)
    train, test = train_test_split(np.arange(y.size), train_size=0.7, stratify=y, random_state=seed)
    train = np.random.default_rng(seed).permutation(train)[:TRAIN_ROWS]
    candidates = baselines(100 if name == "letter" else 25)[method]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if len(candidates) > 1:
            fit, held = train_test_split(train, train_size=0.7, stratify=y[train], random_state=seed)
            found = [
                partial_auc_score(y[held], model.fit(X[fit], y[fit]).decision_function(X[held]), **WINDOW)
                for model in candidates
            ]
            candidates = [candidates[int(np.argmax(found))]]
        model = candidates[0].fit(X[train], y[train])
    return float(partial_auc_score(y[test], model.decision_function(X[test]), **WINDOW))


def table4(cache: Cache) -> str:
    """Return the table of partial AUCs."""
    rows = []
    for name in ("a9a", "ijcnn1", "letter"):
        if not (data_directory() / f"{name}.npz").exists():
            continue
        for method in baselines(1):
            scores = [
                cache.get(f"table4 {name} {method} {s}", lambda s=s, n=name, m=method: split_score(n, m, s))
                for s in range(N_SPLITS)
            ]
            paper = f"{PAPER4[method][name]:.4f}" if method in PAPER4 else "-"
            rows.append((name, method, f"{np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f}", paper))
            print(rows[-1], flush=True)
    text = (
        f"Test partial AUC [0.02, 0.05], mean ± standard deviation over {N_SPLITS} random splits, 70 % for training, "
        f"of which {TRAIN_ROWS:,} rows at random are used. `C` is chosen on 30 % of them. letter: Q against the rest; "
        "Narasimhan and Agarwal (2017) does not name its letter. SVM-pAUC is the tight surrogate of its sections 4 "
        "and 5, by Algorithm 1 (eps = 1e-4, at most 100 iterations, `C` from 1e-5 to 1e4, no refit); structural, "
        "exact: the certified minimum of the naive surrogate of section 3. With more rows: `algorithm1.md`; pAUCBoost: "
        "`published_rivals.md`."
    )
    return (
        "## Narasimhan and Agarwal (2017), Table 4\n\n"
        + text
        + "\n\n"
        + markdown(("set", "method", "here", "paper"), rows)
    )


# Speed


def quickest(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU time of three fits, and a fitted model."""
    return min((cpu_time(fit) for _ in range(3)), key=lambda pair: pair[0])


def svc_gap(model: SVC, X: np.ndarray, y: np.ndarray) -> float:
    """Return the relative duality gap of scikit-learn's machine."""
    scores, multipliers = model.decision_function(X), model.dual_coef_[0]
    half_norm = 0.5 * float(multipliers @ (scores[model.support_] - model.intercept_[0]))
    objective = half_norm + model.C * float(np.maximum(1 - (2 * y - 1) * scores, 0).sum())
    return (objective - (float(np.abs(multipliers).sum()) - half_norm)) / objective


def speed() -> str:
    """Return CPU seconds of an exact fit on all pairs, and of ``SVC``, on the same rows."""
    rows = []
    for share in (0.5, 0.1):
        X, y = make_classification(5000, 20, n_informative=10, weights=[1 - share], random_state=0)
        X = standardize(X)
        for C in (1.0, 10.0, 100.0):
            with threadpool_limits(1):
                theirs, svc = quickest(lambda C=C, X=X, y=y: SVC(C=C).fit(X, y))
                theirs_gap = svc_gap(svc, X, y)
                ours, model = quickest(lambda C=C, X=X, y=y: ROCSVC(C=C).fit(X, y))
                alike, _ = quickest(lambda C=C, X=X, y=y, tol=theirs_gap: ROCSVC(C=C, tol=tol).fit(X, y))
            gaps = f"{theirs_gap:.1e}", f"{model.dual_gap_ / model.objective_:.1e}"
            times = f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.1f}", f"{alike:.2f}", f"{alike / theirs:.1f}"
            rows.append((f"{share:.0%}", f"{C:g}", *times, *gaps))
            print(rows[-1], flush=True)
    text = (
        "CPU seconds on 5,000 x 20 rows, one thread, least of repeats; `SVC(C=C)` next to `ROCSVC(C=C)` on all pairs, "
        "with their other defaults; `C` is the weight of a row in both. Both have a tolerance of 1e-3 by default, on "
        "different things, so the gaps say what it comes to: "
        "objective minus dual objective, relative to the objective. Alike: `ROCSVC` with the gap of `SVC` as "
        "its tolerance."
    )
    header = ("positives", "C", "SVC", "ROCSVC", "ratio", "alike", "ratio alike", "gap of SVC", "gap of ROCSVC")
    return "## Speed\n\n" + text + "\n\n" + markdown(header, rows)


# The default of C


def defaults(cache: Cache) -> str:
    """Return ten-fold AUC and CPU time of the default, of the paper's C = 1 and of ``SVC``, on sets of any kind."""
    methods = {"ROCSVC()": ROCSVC, "ROCSVC(reduction='sum')": partial(ROCSVC, reduction="sum"), "SVC()": SVC}
    rows = []
    for name in (*SETS, "oil", "yeast_me2"):
        if not (data_directory() / f"{name.removesuffix(WITH_TIME)}.npz").exists():
            continue
        for method, make in methods.items():
            seconds, folds = cache.get(
                f"defaults {name} {method}", partial(cpu_time, partial(ten_fold, name, make, {}))
            )
            mean, spread = 100 * np.mean(folds), 100 * np.std(folds, ddof=1)
            rows.append((name, method, f"{mean:.2f} ± {spread:.2f}", f"{seconds:.2f}"))
            print(rows[-1], flush=True)
    text = "Ten-fold AUC in percent, mean ± standard deviation over the folds, and CPU seconds of the ten fits.\n\n"
    return "## Defaults\n\n" + text + markdown(("set", "estimator", "AUC", "CPU s"), rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["speed", "defaults", "table2", "spectf", "table4"])
    parser.add_argument("--fresh", action="store_true", help="forget figures worked out before")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    cache = Cache("kernels", options.fresh)
    work = {
        "speed": lambda: cache.get("section speed", speed),
        "defaults": lambda: defaults(cache),
        "table2": lambda: table2(cache, options.jobs),
        "spectf": lambda: cache.get("section spectf", spectf),
        "table4": lambda: table4(cache),
    }
    sections = [work[part]() for part in options.parts]
    publish("kernels", "Kernel machines and baselines", [cache.running_time(), NOTE, *sections])


if __name__ == "__main__":
    main()
