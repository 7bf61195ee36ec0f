"""SVM-pAUC by Algorithm 1 as published, on pima, and what Table 4 of the later paper has no rows for.

``table2``: pima [0.1, 0.2] after Narasimhan and Agarwal (KDD 2013), Table 2: ten splits, ``C`` by five folds and a
refit as there, or by one held-out third without a refit.
``exact``: partial AUC [0.02, 0.05] of the exact minimum of the tight loss (``solver="certified"``) and of the naive
surrogate by Algorithm 1, chosen as in Narasimhan and Agarwal (2017), Appendix B.2: two thirds of the rows for training,
a third of them to choose ``C``; the fitted model of the chosen ``C`` is kept. The table itself: ``papers/table4.py``.
Figures are kept one by one in ``algorithm1.jsonl``, so a run can go on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory, load_real, standardize
from benchmarks._shared.results import RESULTS, markdown, publish, with_error
from rocmax import AUCClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.metrics import make_scorer, partial_auc_score

EPS, MAX_ITER = 1e-4, 100
WIDE = tuple(10.0**power for power in range(-5, 5))
# Rows of each set, for training and test together, where there are more.
MAX_ROWS = {"ijcnn1": 40_000, "cod-rna": 100_000, "covtype": 100_000}
LOSS = {"SVM-pAUC (tight)": "tight", "naive (structural)": "structural"}
PUBLISHED2 = {"SVM-pAUC (tight)": 60.94, "naive (structural)": 48.72, "SVM-AUC": 62.03}
SETS = ("ijcnn1", "letter")
EXACT = (("SVM-pAUC (tight)", "exact"), ("naive (structural)", "Algorithm 1"))
# The paper does not name its positive classes; Q gives its figure for SVM-AUC, 5 is a guess.
POSITIVE = {"letter": 17, "covtype": 5}


class Job(NamedTuple):
    """One fit: table, set, method, solver or way to tune, seed of the split."""

    table: str
    data: str
    method: str
    way: str
    seed: int


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return standardized rows, at random if there are too many; letter is Q, covtype class 5 against the rest."""
    if name not in POSITIVE:
        data = load_real(name)
        if data is None:
            return None
        X, y = data.X, data.y
    else:
        path = data_directory() / f"{name}.npz"
        if not path.exists():
            return None
        with np.load(path) as z:
            X, y = standardize(z["X"].astype(np.float64)), (z["label"] == POSITIVE[name]).astype(np.int64)
    rows = np.random.default_rng(0).permutation(y.size)[: MAX_ROWS.get(name)]
    return X[rows], y[rows]


def fit_held_out(X: np.ndarray, y: np.ndarray, window: tuple[float, float], job: Job) -> Any:
    """Choose ``C`` on a third of the rows and keep the model that was fitted on the rest."""
    solver = "certified" if job.way == "exact" else "cutting_plane"
    split = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=job.seed)
    if job.method in LOSS:
        tol = 1e-3 if solver == "certified" else EPS
        return PartialAUCClassifierCV(
            *window, LOSS[job.method], Cs=WIDE, cv=split, solver=solver, tol=tol, max_iter=MAX_ITER
        ).fit(X, y)
    fit, held = next(split.split(X, y))
    best = (-1.0, None)
    for C in WIDE:
        model = AUCClassifier(C=C, solver=solver, tol=EPS, max_iter=MAX_ITER).fit(X[fit], y[fit])
        score = window_score(model, X[held], y[held], window)
        if score > best[0]:
            best = (score, model)
    model = best[1]
    model.C_ = model.C
    return model


def fit_folds(X: np.ndarray, y: np.ndarray, window: tuple[float, float], job: Job) -> Any:
    """Choose ``C`` by five folds, from the values of KDD 2013, and refit on all rows."""
    if job.method in LOSS:
        model: Any = PartialAUCClassifier(*window, LOSS[job.method], solver="cutting_plane", tol=EPS, max_iter=MAX_ITER)
    else:
        model = AUCClassifier(solver="cutting_plane", tol=EPS, max_iter=MAX_ITER)
    scorer = make_scorer("partial_auc", min_fpr=window[0], max_fpr=window[1])
    search = GridSearchCV(model, {"C": [1e-3, 1e-2, 1e-1, 1.0, 1e2]}, scoring=scorer, cv=5).fit(X, y)
    search.C_ = search.best_params_["C"]
    return search


def window_score(model: Any, X: np.ndarray, y: np.ndarray, window: tuple[float, float]) -> float:
    return float(partial_auc_score(y, model.decision_function(X), min_fpr=window[0], max_fpr=window[1]))


def run(job: Job, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the test partial AUC, the chosen ``C`` and the seconds of one split."""
    window = (0.02, 0.05) if job.table == "exact" else (0.1, 0.2)
    train, test = train_test_split(np.arange(y.size), train_size=2 / 3, stratify=y, random_state=job.seed)
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if job.way == "five folds":
            model = fit_folds(X[train], y[train], window, job)
        else:
            model = fit_held_out(X[train], y[train], window, job)
    seconds = time.perf_counter() - start
    return {"score": window_score(model, X[test], y[test], window), "C": model.C_, "seconds": round(seconds, 2)}


def jobs(table: str, name: str) -> Iterator[Job]:
    if table == "exact":
        yield from (Job(table, name, *method, seed) for method in EXACT for seed in range(5))
    else:
        for method in PUBLISHED2:
            for way in ("five folds", "held out"):
                yield from (Job(table, name, method, way, seed) for seed in range(10))


def collect(table: str, names: tuple[str, ...], fit: bool) -> dict[Job, dict[str, float]]:
    """Run what is missing, unless ``fit`` is False, and return all figures."""
    path = RESULTS / "algorithm1.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    done = {Job(*entry[:5]): entry[5] for entry in map(json.loads, lines)}
    wanted = {}
    for name in names:
        data = None
        for job in jobs(table, name):
            if job not in done and not fit:
                continue
            if job not in done:
                data = data or load(name)
                if data is None:
                    print(f"skipped {name}: no {name}.npz in the data directory (set ROCMAX_DATA)")
                    break
                done[job] = run(job, *data)
                with path.open("a") as file:
                    file.write(json.dumps([*job, done[job]]) + "\n")
                print(*job, done[job], flush=True)
            wanted[job] = done[job]
    return wanted


def summary(figures: dict[Job, dict[str, float]], scale: float) -> Iterator[tuple[Job, np.ndarray, str, str, str]]:
    """Yield a job of each group, its scores, their mean and standard error, the chosen ``C`` and the seconds."""
    groups: dict[Job, list[dict[str, float]]] = {}
    for job, figure in figures.items():
        groups.setdefault(job._replace(seed=0), []).append(figure)
    for job, found in groups.items():
        scores = scale * np.array([figure["score"] for figure in found])
        digits = 4 if scale == 1 else 2
        text = with_error(scores, digits)
        Cs = sorted(figure["C"] for figure in found)
        yield job, scores, text, f"{Cs[0]:g} to {Cs[-1]:g}", f"{np.mean([f['seconds'] for f in found]):.1f}"


def exact(fit: bool) -> tuple[str, float]:
    """Return the section on the exact minimum and the naive surrogate, and the seconds that its fits took."""
    figures = collect("exact", SETS, fit)
    rows = [
        (job.data, job.method, job.way, str(scores.size), text, Cs, seconds)
        for job, scores, text, Cs, seconds in summary(figures, 1.0)
    ]
    header = ("set", "loss", "solver", "splits", "here (± s.e.)", "chosen C", "s per split")
    text = (
        "## The exact minimum, and the naive surrogate\n\nTest partial AUC [0.02, 0.05], mean and standard error over "
        f"the splits of two thirds, standardized rows; {MAX_ROWS['ijcnn1']:,} rows of ijcnn1 at random; letter: Q. `C` "
        f"from 1e-5 to 1e4. Algorithm 1: eps = {EPS:g}, at most {MAX_ITER} iterations. Exact: the certified minimum to "
        "a relative gap of 1e-3. Table 4 of Narasimhan and Agarwal (2017), on all rows: `table4.md`."
    )
    return "\n\n".join([text, markdown(header, rows)]), total(figures)


def table2(fit: bool) -> tuple[str, float]:
    """Return the section for Table 2 of KDD 2013 and the seconds that its fits took."""
    figures = collect("table2", ("pima",), fit)
    rows = [
        (job.method, job.way, text, f"{paper:.2f}", with_error(scores - paper, 2, "+"), Cs)
        for job, scores, text, Cs, _ in summary(figures, 100.0)
        for paper in [PUBLISHED2[job.method]]
    ]
    text = (
        "## Narasimhan and Agarwal (KDD 2013), Table 2\n\nTest partial AUC [0.1, 0.2] on pima in percent, mean and "
        f"standard error over 10 splits of two thirds, by Algorithm 1, eps = {EPS:g}, at most {MAX_ITER} iterations. "
        "Five folds: `C` from 1e-3, 1e-2, 0.1, 1, 100 by five folds of the training rows and a refit, as in the paper. "
        "Held out: `C` from 1e-5 to 1e4 on a third of the training rows, without a refit."
    )
    header = ("method", "choice of C", "here (± s.e.)", "paper", "difference (± s.e.)", "chosen C")
    return "\n\n".join([text, markdown(header, rows)]), total(figures)


def total(figures: dict[Job, dict[str, float]]) -> float:
    return sum(figure["seconds"] for figure in figures.values())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-fits", action="store_true", help="write the page from the figures kept so far")
    fit = not parser.parse_args(arguments).no_fits
    work: list[Callable[[bool], tuple[str, float]]] = [table2, exact]
    sections, seconds = zip(*(part(fit) for part in work), strict=True)
    note = f"Running time of all fits, one thread: {sum(seconds) / 60:.1f} minutes."
    publish("algorithm1", "SVM-pAUC by Algorithm 1, as published", [note, *sections])


if __name__ == "__main__":
    main()
