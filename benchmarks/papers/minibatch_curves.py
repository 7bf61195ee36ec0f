"""Mini-batches after Kar, Narasimhan and Jain (2014): Figures 1 to 3 and Table 1, as a protocol on available sets.

Five splits, 70 % for training, a tenth of which chooses the step length of 1PMB and 2PMB, that of projected subgradient
and the C of the cutting plane. Buffers of 500 rows, 1PMB and 2PMB as printed (uniform mean of the iterates, one fixed
sample of positives in a pass). ``curve``: test measure against CPU time; every point is a fit of its own. Partial AUC
[0, 0.1] with the tight loss, and the precision at the number of positives (PRBEP) with its structural loss. ``sizes``:
partial AUC for several buffer sizes, step length chosen for each. Finished curves are kept in
``minibatch_curves.jsonl``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import RESULTS, cpu_time, markdown, publish
from benchmarks.papers.algorithm1 import load
from rocmax import MiniBatchClassifier
from rocmax.losses import BreakEven, PartialAUCTight
from rocmax.metrics import break_even_point, partial_auc_score
from rocmax.operators import as_operator
from rocmax.penalties import L2Ball, SquaredL2
from rocmax.solvers import CuttingPlane, ProjectedSubgradient

SETS = ("letter", "ijcnn1", "cod-rna", "covtype", "a9a")
N_SPLITS, MAX_FPR, BUFFER, EPS, MAX_ROWS = 5, 0.1, 500, 1e-4, 10_000
MEASURES = {
    "partial_auc": ("1PMB", "2PMB", "projected subgradient", "Algorithm 1"),
    "break_even_point": ("1PMB", "2PMB", "Algorithm 1"),
}
TITLES = {"partial_auc": "partial AUC [0, 0.1]", "break_even_point": "precision at k"}
RATES, CS, SHARES = (1e-3, 1e-2, 1e-1, 1.0, 10.0), (1e-2, 1.0, 1e2, 1e4), (1e-2, 1e-1, 1.0)
# Parts of a pass, passes, and iterations of the batch methods; the tuning takes the second number.
PASSES, TUNING_PASSES = (0.125, 0.5, 1, 2, 5, 10), 2
PLANES, TUNING_PLANES = (1, 2, 3, 5, 8, 12, 20, 30, 50, 100), 50
STEPS, TUNING_STEPS = (1, 2, 5, 10, 20, 50, 100), 50
SIZE_SETS, SIZES, SIZE_PASSES = ("letter", "ijcnn1"), (100, 200, 500, 1000, 2000, 5000), 5
# What the paper's text prints, on KDD Cup 2008: percent, seconds.
PAPER = (
    ("partial AUC [0, 0.1]", "1PMB", "64.81", "0.03"),
    ("partial AUC [0, 0.1]", "cutting plane", "62.52", "0.39"),
    ("F-measure", "1PMB", "35.92", "12"),
    ("F-measure", "cutting plane", "35.25", "150"),
)


class Task(NamedTuple):
    """The rows of a split and the measure."""

    X: np.ndarray
    y: np.ndarray
    held: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    measure: str
    seed: int

    def score(self, w: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> float:
        """Return the measure on some rows."""
        X, y = rows
        if self.measure == "partial_auc":
            return float(partial_auc_score(y, X @ w, max_fpr=MAX_FPR))
        return float(break_even_point(y, X @ w))


def task(name: str, measure: str, seed: int) -> Task | None:
    data = load(name)
    if data is None:
        return None
    X, y = (part[:MAX_ROWS] for part in data)
    train, test = train_test_split(np.arange(y.size), train_size=0.7, stratify=y, random_state=seed)
    fit, held = train_test_split(train, test_size=0.1, stratify=y[train], random_state=seed)
    return Task(X[fit], y[fit], (X[held], y[held]), (X[test], y[test]), measure, seed)


# One method: the weights for an effort (passes or iterations) and a parameter


def mini_batches(job: Task, method: str, size: int) -> Callable[[float, float], np.ndarray]:
    two = {"reservoir_size": size, "positives": "fixed"} if method == "2PMB" else {}
    order = np.random.default_rng(job.seed).permutation(job.y.size)

    def fit(effort: float, rate: float) -> np.ndarray:
        rows = order[: int(effort * order.size)] if effort < 1 else slice(None)
        model = MiniBatchClassifier(
            job.measure,
            max_fpr=MAX_FPR,
            max_iter=max(1, int(effort)),
            batch_size=size,
            learning_rate=rate,
            average="uniform",
            fit_intercept=False,
            random_state=job.seed,
            **two,
        )
        return model.fit(job.X[rows], job.y[rows]).coef_[0]

    return fit


def cutting_plane(job: Task) -> Callable[[float, float], np.ndarray]:
    loss = (PartialAUCTight(max_fpr=MAX_FPR) if job.measure == "partial_auc" else BreakEven()).bind(job.y)
    operator = as_operator(job.X)
    return lambda effort, C: CuttingPlane(EPS, int(effort)).solve(operator, loss, SquaredL2(C)).w


def subgradient(job: Task, radius: float) -> Callable[[float, float], np.ndarray]:
    loss, operator = PartialAUCTight(max_fpr=MAX_FPR).bind(job.y), as_operator(job.X)
    ball = L2Ball(radius)
    return lambda effort, share: ProjectedSubgradient(EPS, int(effort), share * radius).solve(operator, loss, ball).w


def best(job: Task, fit: Callable[[float, float], np.ndarray], effort: float, grid: tuple[float, ...]) -> float:
    """Return the parameter with the best score on the validation rows."""
    return max(grid, key=lambda value: job.score(fit(effort, value), job.held))


def points(job: Task, method: str) -> list[list[float]]:
    """Return effort, CPU seconds and test score of each point of a curve, with the chosen parameter."""
    if method in ("1PMB", "2PMB"):
        fit, grid, tuning, efforts = mini_batches(job, method, BUFFER), RATES, TUNING_PASSES, PASSES
    else:
        fit, grid, tuning, efforts = cutting_plane(job), CS, TUNING_PLANES, PLANES
    if method == "projected subgradient":
        # As in KDD 2013: the radius is the norm of the weights of the cutting plane.
        radius = float(np.linalg.norm(fit(tuning, best(job, fit, tuning, grid)))) or 1.0
        fit, grid, tuning, efforts = subgradient(job, radius), SHARES, TUNING_STEPS, STEPS
    value = best(job, fit, tuning, grid)
    found = []
    for effort in efforts:
        seconds, w = cpu_time(lambda effort=effort: fit(effort, value))
        found.append([effort, round(seconds, 4), job.score(w, job.test), value])
    return found


def curve(name: str, measure: str, method: str, seed: int) -> list[list[float]] | None:
    job = task(name, measure, seed)
    return None if job is None else points(job, method)


def sizes(name: str, method: str, seed: int) -> list[list[float]] | None:
    """Return size, CPU seconds and test score of each buffer size, with the chosen step length."""
    job = task(name, "partial_auc", seed)
    if job is None:
        return None
    found = []
    for size in SIZES:
        fit = mini_batches(job, method, size)
        rate = best(job, fit, TUNING_PASSES, RATES)
        seconds, w = cpu_time(lambda fit=fit, rate=rate: fit(SIZE_PASSES, rate))
        found.append([size, round(seconds, 4), job.score(w, job.test), rate])
    return found


def work(part: str, *job: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return (curve if part == "curve" else sizes)(*job)


# The page


def runs(found: dict[Any, Any], *key: Any) -> np.ndarray:
    """Return the points of all splits: split, point, (effort, seconds, score, parameter)."""
    return np.array([found[(*key, seed)] for seed in range(N_SPLITS)])


def present(found: dict[Any, Any]) -> list[str]:
    return [name for name in SETS if ("curve", name, "partial_auc", "1PMB", 0) in found]


def spread(values: np.ndarray) -> str:
    return f"{100 * values.mean():.2f} ± {100 * values.std(ddof=1):.2f}"


def table1(found: dict[Any, Any]) -> str:
    """Return the last score and its time, and the time until a curve stays within a point of Algorithm 1's last."""
    rows = []
    for measure, methods in MEASURES.items():
        for name in present(found):
            goal = runs(found, "curve", name, measure, "Algorithm 1")[:, -1, 2].mean()
            for method in methods:
                curves = runs(found, "curve", name, measure, method)
                mean, time = curves[:, :, 2].mean(axis=0), curves[:, :, 1].mean(axis=0)
                near = [i for i in range(mean.size) if (mean[i:] >= goal - 0.01).all()]
                reached = f"{time[near[0]]:.3f}" if near else "not reached"
                cells = (TITLES[measure], name, method, spread(curves[:, -1, 2]))
                rows.append((*cells, f"{time[-1]:.3f}", reached))
    header = ("measure", "set", "method", "test, percent", "s", "s to within a point of Algorithm 1")
    return markdown(header, rows)


def collapses(found: dict[Any, Any]) -> str:
    """Return on how many splits Algorithm 1 ends with the score of its first iterate, zero weights."""
    counts = {}
    for measure in MEASURES:
        for name in present(found):
            scores = runs(found, "curve", name, measure, "Algorithm 1")[:, :, 2]
            counts[f"{TITLES[measure]} on {name}"] = int((scores[:, -1] == scores[:, 0]).sum())
    return ", ".join(f"{text} ({n} of {N_SPLITS} splits)" for text, n in counts.items() if n) or "on no split"


def size_table(found: dict[Any, Any]) -> str:
    rows = []
    for name in SIZE_SETS:
        for method in ("1PMB", "2PMB"):
            if ("sizes", name, method, 0) in found:
                scores = runs(found, "sizes", name, method)[:, :, 2]
                rows.append((name, method, *(spread(scores[:, i]) for i in range(len(SIZES)))))
    return markdown(("set", "method", *(f"s = {size:,}" for size in SIZES)), rows)


def draw_curves(found: dict[Any, Any]) -> None:
    from matplotlib.figure import Figure

    names = present(found)
    figure = Figure(figsize=(3.1 * len(names), 5.6), layout="constrained")
    grid = figure.subplots(2, len(names), squeeze=False)
    for panels, (measure, methods) in zip(grid, MEASURES.items(), strict=True):
        for axes, name in zip(panels, names, strict=True):
            for method in methods:
                mean = runs(found, "curve", name, measure, method).mean(axis=0)
                color = f"C{MEASURES['partial_auc'].index(method)}"
                axes.plot(mean[:, 1], mean[:, 2], marker="o", markersize=3, color=color, label=method)
            axes.set(xscale="log", title=name, xlabel="s, CPU")
        panels[0].set_ylabel(TITLES[measure])
    grid[0, 0].legend(fontsize=7)
    figure.savefig(RESULTS / "minibatch_curves.png", dpi=100)


def draw_sizes(found: dict[Any, Any]) -> None:
    from matplotlib.figure import Figure

    names = [name for name in SIZE_SETS if ("sizes", name, "1PMB", 0) in found]
    figure = Figure(figsize=(4.2 * len(names), 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for method, marker in (("1PMB", "o"), ("2PMB", "s")):
            scores = runs(found, "sizes", name, method)[:, :, 2]
            axes.errorbar(
                SIZES, scores.mean(axis=0), scores.std(axis=0, ddof=1), marker=marker, capsize=3, label=method
            )
        axes.set(xscale="log", title=name, xlabel="buffer size s", ylabel=TITLES["partial_auc"])
        axes.legend()
    figure.savefig(RESULTS / "minibatch_buffers.png", dpi=100)


def main() -> None:
    seeds = range(N_SPLITS)
    pairs = [(measure, method) for measure, methods in MEASURES.items() for method in methods]
    jobs: list[tuple[Any, ...]] = [("curve", name, *pair, seed) for name in SETS for pair in pairs for seed in seeds]
    jobs += [("sizes", name, method, seed) for name in SIZE_SETS for method in ("1PMB", "2PMB") for seed in seeds]
    with threadpool_limits(1):
        found, seconds = kept("minibatch_curves", jobs, work)
    if not present(found):
        return
    draw_curves(found)
    draw_sizes(found)
    text = (
        f"Mean ± standard deviation over {N_SPLITS} splits of 70 %; standardized features; {MAX_ROWS:,} rows at "
        "random; letter: Q, covtype: class 5 against the rest. A tenth of the training rows chooses the "
        f"step length ({', '.join(f'{rate:g}' for rate in RATES)}, by {TUNING_PASSES} passes), the first step of "
        f"projected subgradient ({', '.join(f'{share:g}' for share in SHARES)} times the radius, which is the norm of "
        f"the weights of Algorithm 1; {TUNING_STEPS} steps) and C of Algorithm 1 ({', '.join(f'{C:g}' for C in CS)}; "
        f"{TUNING_PLANES} iterations, eps = {EPS:g}). Last points: {PASSES[-1]} passes, {STEPS[-1]} steps, "
        f"{PLANES[-1]} iterations. The sets of the paper's Appendix H, its numbers of passes and its grids are not in "
        "the available text."
    )
    paper = markdown(("measure", "method", "percent", "s"), PAPER)
    sections = [
        running_time(seconds),
        text,
        "## Figures 1 and 2: measure against time\n\n![Test measure against CPU time](minibatch_curves.png)",
        "## Table 1\n\nCPU seconds of one fit, without the tuning. Where zero weights minimize the loss, Algorithm 1 "
        f"can end there, and then ranks at random: {collapses(found)}."
        f"\n\n{table1(found)}\n\nThe paper's set, KDD Cup 2008, is not available. Its text prints:\n\n{paper}",
        f"## Figure 3: buffer sizes\n\nTest partial AUC [0, 0.1] in percent after {SIZE_PASSES} passes; the paper's "
        "set (PPI) is not available. The paper: robust to the size until long buffers leave few steps, 2PMB more so."
        f"\n\n{size_table(found)}\n\n![Test partial AUC by buffer size](minibatch_buffers.png)",
    ]
    publish("minibatch_curves", "Mini-batches after Kar, Narasimhan and Jain (2014)", sections)


if __name__ == "__main__":
    main()
