"""Iterations and training times of Algorithm 1 after Narasimhan and Agarwal (2017), Figures 6 to 9.

Two thirds of at most 5,000 rows for training. ``figure8``: iterations for windows [0, beta] by beta and C.
``figure9``: iterations for windows [alpha, alpha + length]. ``times``: CPU seconds of one fit and of the choice of C,
as in Figures 6 and 7. The paper's sets for these figures (PPI, drug discovery, KDD Cup 2008) are not available; letter
(Q against the rest) and the test part of KDD Cup 2006 take their place. Finished fits are kept in ``iterations.jsonl``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import load_real
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import RESULTS, cpu_time, markdown, publish
from benchmarks.papers.algorithm1 import load, window_score
from rocmax import AUCClassifier, PartialAUCClassifier
from rocmax.losses import PartialAUCTight
from rocmax.operators import as_operator
from rocmax.papers import GreedyPairClassifier, PAUCBoostClassifier
from rocmax.penalties import SquaredL2
from rocmax.solvers import CuttingPlane

EPS, MAX_ITER, N_SPLITS, N_TIMED, MAX_ROWS = 1e-4, 500, 5, 3, 5_000
SETS = ("letter", "kddcup06_test")
BETAS, CS = (0.05, 0.1, 0.2, 0.5, 1.0), (0.01, 0.1, 1.0)
ALPHAS, LENGTHS, C9 = (0.0, 0.1, 0.3, 0.5), (0.05, 0.1, 0.2, 0.5), 1.0
WIDE = tuple(10.0**power for power in range(-5, 5))
WINDOWS = {"Figure 6": (0.0, 0.1), "Figure 7": (0.02, 0.05)}


def training_rows(name: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    data = load(name) if name == "letter" else load_real(name)
    if data is None:
        return None
    X, y = (part[:MAX_ROWS] for part in data[-2:])
    train, _ = train_test_split(np.arange(y.size), train_size=2 / 3, stratify=y, random_state=seed)
    return X[train], y[train]


def iterations(figure: str, name: str, seed: int) -> dict[str, list[float]] | None:
    """Return iterations and whether the tolerance was reached, for each window and C of a figure."""
    rows = training_rows(name, seed)
    if rows is None:
        return None
    if figure == "figure8":
        cells = [((0.0, beta), C) for beta in BETAS for C in CS]
    else:
        cells = [((a, a + length), C9) for a in ALPHAS for length in LENGTHS if a + length <= 1]
    operator, found = as_operator(rows[0]), {}
    for window, C in cells:
        loss = PartialAUCTight(*window).bind(rows[1])
        result = CuttingPlane(EPS, MAX_ITER).solve(operator, loss, SquaredL2(C))
        found[key(window, C)] = [result.n_iter, float(result.converged)]
    return found


def key(window: tuple[float, float], C: float) -> str:
    return f"[{window[0]:g}, {window[1]:g}] {C:g}"


def cell(found: list[dict[str, list[float]]], window: tuple[float, float], C: float) -> str:
    counts, reached = np.array([run[key(window, C)] for run in found]).T
    stopped = int((reached == 0).sum())
    return f"{counts.mean():.0f} ± {counts.std(ddof=1):.0f}" + (f" ({stopped} at the limit)" if stopped else "")


# Times


def methods(window: tuple[float, float]) -> dict[str, Callable[[float], Any]]:
    """Return each method as a function of C, or of anything if it has nothing to choose."""
    limits: dict[str, Any] = {"solver": "cutting_plane", "tol": EPS, "max_iter": 100}
    ours: dict[str, Callable[[float], Any]] = {
        "SVM-pAUC, Algorithm 1": lambda C: PartialAUCClassifier(*window, "tight", C=C, **limits),
        "SVM-AUC, Algorithm 1": lambda C: AUCClassifier(C=C, **limits),
        "tight, certified": lambda C: PartialAUCClassifier(*window, "tight", C=C),
        "auto": lambda C: PartialAUCClassifier(*window, C=C),
        "pAUCBoost, 100 rounds": lambda _: PAUCBoostClassifier(*window, n_estimators=100),
        "greedy pairs": lambda _: GreedyPairClassifier(*window, n_steps=100),
    }
    if window[0] > 0:
        ours["SVM-pAUC dc, Algorithm 1"] = lambda C: PartialAUCClassifier(*window, "hinge", C=C, **limits)
    return ours


UNTUNED = ("pAUCBoost, 100 rounds", "greedy pairs")


def timed(figure: str, method: str, seed: int) -> list[float] | None:
    """Return CPU seconds of a fit with the chosen C, and of the choice of C on a third of the training rows."""
    rows = training_rows("letter", seed)
    if rows is None:
        return None
    X, y = rows
    make = methods(WINDOWS[figure])[method]
    fit, held = next(StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed).split(X, y))
    best, choice = (-1.0, 1.0), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for C in () if method in UNTUNED else WIDE[3:] if "dc" in method else WIDE:
            seconds, model = cpu_time(lambda C=C: make(C).fit(X[fit], y[fit]))
            choice += seconds
            best = max(best, (window_score(model, X[held], y[held], WINDOWS[figure]), C))
        seconds, _ = cpu_time(lambda: make(best[1]).fit(X, y))
    return [seconds, choice]


# The page


def figure8(found: dict[Any, Any]) -> str:
    rows = []
    for name in SETS:
        runs = [found["figure8", name, seed] for seed in range(N_SPLITS) if ("figure8", name, seed) in found]
        rows += [(name, f"{beta:g}", *(cell(runs, (0.0, beta), C) for C in CS)) for beta in BETAS if runs]
    text = (
        "## Figure 8: iterations by beta and C\n\nWindow [0, beta], tight loss; beta = 1 is the full AUC. The paper: "
        "iterations often increase as beta falls, and increase with C. Its values are not in numbers."
    )
    return f"{text}\n\n{markdown(('set', 'beta', *(f'C = {C:g}' for C in CS)), rows)}\n\n![Iterations](iterations.png)"


def figure9(found: dict[Any, Any]) -> str:
    rows = []
    for name in SETS:
        runs = [found["figure9", name, seed] for seed in range(N_SPLITS) if ("figure9", name, seed) in found]
        for length in LENGTHS if runs else ():
            cells = [cell(runs, (a, a + length), C9) if a + length <= 1 else "-" for a in ALPHAS]
            rows.append((name, f"{length:g}", *cells))
    text = (
        f"## Figure 9: iterations by alpha and length\n\nWindow [alpha, alpha + length], C = {C9:g}. The paper, on KDD "
        "Cup 2008: more iterations for shorter windows, and more as the window moves to the right."
    )
    return f"{text}\n\n{markdown(('set', 'length', *(f'alpha = {a:g}' for a in ALPHAS)), rows)}"


def times(found: dict[Any, Any]) -> str:
    rows = []
    for figure, window in WINDOWS.items():
        for method in methods(window):
            runs = np.array([found[job] for job in found if job[:2] == (figure, method)])
            if runs.size:
                fit, choice = runs.mean(axis=0)
                tuning = "-" if method in UNTUNED else f"{choice:.2f}"
                rows.append((figure, f"[{window[0]:g}, {window[1]:g}]", method, f"{fit:.2f}", tuning))
    text = (
        f"## Figures 6 and 7: seconds with and without the choice of C\n\nCPU seconds on letter, {N_TIMED} splits: one "
        "fit with the chosen C on all training rows; the fits of all C, 1e-5 to 1e4 (dc: from 1e-2), on two thirds of "
        "them. Algorithm 1 stops after at most 100 iterations. The paper: SVM-AUC is the fastest, dc takes longer "
        "than SVM-pAUC, the other methods take as long or longer."
    )
    return f"{text}\n\n{markdown(('paper', 'window', 'method', 'fit', 'choice of C'), rows)}"


def draw(found: dict[Any, Any]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    for line, name in zip(figure.subplots(2, 2), SETS, strict=True):
        runs = {part: [found[job] for job in found if job[:2] == (part, name)] for part in ("figure8", "figure9")}
        for C in CS:
            counts = [np.mean([run[key((0.0, beta), C)][0] for run in runs["figure8"]]) for beta in BETAS]
            line[0].plot(BETAS, counts, marker="o", label=f"C = {C:g}")
        for alpha in ALPHAS:
            lengths = [length for length in LENGTHS if alpha + length <= 1]
            counts = [np.mean([run[key((alpha, alpha + x), C9)][0] for run in runs["figure9"]]) for x in lengths]
            line[1].plot(lengths, counts, marker="o", label=f"alpha = {alpha:g}")
        line[0].set(title=f"{name}: [0, beta]", xlabel="beta", ylabel="iterations", xscale="log")
        line[1].set(title=f"{name}: [alpha, alpha + length], C = {C9:g}", xlabel="length", xscale="log")
        for axes, ticks in zip(line, (BETAS, LENGTHS), strict=True):
            axes.set(xticks=ticks, xticklabels=ticks, ylim=(0, None))
            axes.minorticks_off()
            axes.legend()
    figure.savefig(RESULTS / "iterations.png", dpi=90)


def work(part: str, what: str, seed: int) -> Any:
    return iterations(part, what, seed) if part in ("figure8", "figure9") else timed(part, what, seed)


def main() -> None:
    jobs = [(part, name, seed) for name in SETS for part in ("figure8", "figure9") for seed in range(N_SPLITS)]
    jobs += [(part, method, seed) for part in WINDOWS for method in methods(WINDOWS[part]) for seed in range(N_TIMED)]
    with threadpool_limits(1):
        found, seconds = kept("iterations", jobs, work)
    if all(("figure9", name, 0) in found for name in SETS):
        draw(found)
    text = (
        f"eps = {EPS:g}, at most {MAX_ITER} iterations; mean ± standard deviation over {N_SPLITS} splits. "
        "letter: 3,333 training rows, 16 features; KDD Cup 2006 (its test part): 927 rows, 116 features."
    )
    title = "Algorithm 1: iterations and times after Narasimhan and Agarwal (2017), Figures 6 to 9"
    publish("iterations", title, [running_time(seconds), text, figure8(found), figure9(found), times(found)])


if __name__ == "__main__":
    main()
