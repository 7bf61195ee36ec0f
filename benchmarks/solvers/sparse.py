"""Sparse models: what they keep and what that costs, and how fast they are fitted.

``selection``: test partial AUC [0, 0.1] of L2, elastic-net and L1 models on thrombin and leukemia over 10 splits, with
the share of the features they keep (after Narasimhan and Agarwal 2013, Table 3). ``groups``: a synthetic set with 17
groups of which 5 matter (after its Table 4). ``passes``: passes over the data to a certified
gap of 1e-3, next to the projected subgradient method of the paper with its published first steps, and with the
automatic one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, stats
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks._shared.data import data_directory, load_real, synthetic
from benchmarks._shared.results import RESULTS, markdown, publish
from rocmax import PartialAUCClassifier, partial_auc_path
from rocmax.losses import PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import Ball, GroupBall, L1Ball, L2Ball, SquaredL2
from rocmax.solvers import Progress, ProjectedSubgradient, ProximalBundle, SmoothedNewton

MAX_FPR = 0.1
PENALTIES = {
    "L2": {"constraint": "l2"},
    "elastic net, 0.001": {"constraint": "elasticnet", "l1_ratio": 0.001},
    "elastic net, 0.1": {"constraint": "elasticnet", "l1_ratio": 0.1},
    "L1": {"constraint": "l1"},
}
# Narasimhan and Agarwal (KDD 2013), Table 3, KDD Cup 2001 (thrombin): partial AUC and share of features.
PAPER = {
    "L2": "77.20 (100)",
    "elastic net, 0.001": "77.52 (41.6)",
    "elastic net, 0.1": "71.93 (27.6)",
    "L1": "66.22 (10.0)",
}
TOL, GAP, N_RADII, MAX_ITER = 5e-3, 1e-3, 7, 100


# Selection


def load_sparse(name: str) -> tuple[Any, np.ndarray] | None:
    """Return a set as it is stored, sparse ones as CSR, standardized if dense; None if its file is absent."""
    path = data_directory() / f"{name}.npz"
    if not path.exists():
        print(f"skipped {name}: no {path.name} in the data directory (set ROCMAX_DATA)")
        return None
    with np.load(path) as z:
        y = z["y"].astype(np.int64)
        if "X" not in z.files:
            return sparse.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])), y
        X = z["X"].astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def three_parts(y: np.ndarray, seed: int) -> list[np.ndarray]:
    """Split into three equal parts, each with its share of positives: train, validation, test."""
    return [test for _, test in StratifiedKFold(3, shuffle=True, random_state=seed).split(np.zeros((y.size, 1)), y)]


def path_scores(
    X: Any, y: np.ndarray, train: np.ndarray, held: np.ndarray, params: dict, radii: Any
) -> tuple[Any, Any]:
    path = partial_auc_path(
        X[train], y[train], max_fpr=MAX_FPR, radii=radii, n_radii=N_RADII, tol=TOL, max_iter=MAX_ITER, **params
    )
    return path, path.score(X[held], y[held])


def chosen_by_validation(X: Any, y: np.ndarray, params: dict, seed: int) -> tuple[float, int]:
    """Fit on one third, choose the radius on the next, measure on the last: partial AUC and number of features."""
    train, validation, test = three_parts(y, seed)
    path, scores = path_scores(X, y, train, validation, params, None)
    best = int(np.argmax(scores))  # the first, and sparsest, of equals
    return float(path.score(X[test], y[test])[best]), int(path.n_features[best])


def chosen_by_folds(X: Any, y: np.ndarray, params: dict, seed: int) -> tuple[float, int]:
    """Hold out a third; choose the radius by three folds of the rest."""
    train, test = next(StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed).split(X, y))
    radii = partial_auc_path(
        X[train], y[train], max_fpr=MAX_FPR, n_radii=N_RADII, tol=TOL, max_iter=MAX_ITER, **params
    ).radii[1:]
    total = np.zeros(radii.size)
    for a, b in StratifiedKFold(3, shuffle=True, random_state=seed).split(X[train], y[train]):
        total += path_scores(X, y, train[a], train[b], params, radii)[1][1:]
    radius = float(radii[np.argmax(total)])
    model = PartialAUCClassifier(max_fpr=MAX_FPR, loss="tight", radius=radius, tol=TOL, **params)
    model.fit(X[train], y[train])
    return model.score(X[test], y[test]), int(np.count_nonzero(model.coef_))


def selection(n_splits: int) -> str:
    """Return the table of both sets; finished splits are kept in a file, so that a run can be resumed."""
    path = RESULTS / "sparse_selection.jsonl"
    done = {tuple(row[:3]): row[3:] for row in map(json.loads, path.read_text().splitlines())} if path.exists() else {}
    sections = []
    for name, protocol in (("thrombin", chosen_by_validation), ("leukemia", chosen_by_folds)):
        data = load_sparse(name)
        if data is None:
            continue
        X, y = data
        for seed in range(n_splits):
            for label, params in PENALTIES.items():
                if (name, label, seed) not in done:
                    done[name, label, seed] = protocol(X, y, params, seed)
                    with path.open("a") as file:
                        file.write(json.dumps([name, label, seed, *done[name, label, seed]]) + "\n")
                    print(name, seed, label, *done[name, label, seed], flush=True)
        results = {label: np.array([done[name, label, seed] for seed in range(n_splits)]) for label in PENALTIES}
        sections.append(selection_table(name, X.shape, results))
    return "\n\n".join(sections)


def selection_table(name: str, shape: tuple[int, int], results: dict[str, np.ndarray]) -> str:
    rows = []
    reference = results["L2"][:, 0]
    for label, values in results.items():
        scores, kept = values.T
        difference = scores - reference
        p = float(stats.wilcoxon(difference).pvalue) if difference.any() else 1.0
        spread = f"{100 * difference.mean():+.2f} ± {100 * difference.std(ddof=1) / np.sqrt(scores.size):.2f}"
        share = f"{100 * (kept / results['L2'][:, 1]).mean():.1f} %"
        cells = [
            label,
            f"{100 * scores.mean():.2f}",
            spread if label != "L2" else "",
            f"{p:.2f}" if label != "L2" else "",
        ]
        rows.append([*cells, f"{kept.mean():.0f}", share] + ([PAPER[label]] if name == "thrombin" else []))
    header = ["constraint", "test partial AUC", "minus L2 (± s.e.)", "Wilcoxon p", "features", "of L2's"]
    header += ["paper: partial AUC (% of features)"] if name == "thrombin" else []
    title = f"## {name}, {shape[0]} x {shape[1]}, {len(reference)} splits"
    return f"{title}\n\n{markdown(header, rows)}"


# Groups


def grouped_sample(seed: int, n_rows: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return 17 groups of 4 to 15 features, a tenth of the rows positive by a score of the first 5 groups."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 16, 17)
    label = np.repeat(np.arange(17), sizes)
    X = rng.standard_normal((n_rows, label.size))
    direction = np.where(label < 5, rng.standard_normal(label.size), 0.0)
    for group in range(5):
        direction[label == group] /= np.linalg.norm(direction[label == group])
    score = X @ direction + 0.5 * rng.standard_normal(n_rows)
    return X, (score > np.quantile(score, 0.9)).astype(np.int64), label


def groups_table(n_sets: int) -> str:
    rows = []
    for seed in range(n_sets):
        X, y, label = grouped_sample(seed)
        train, validation, test = three_parts(y, seed)
        cells = [str(seed)]
        for params in ({"constraint": "l2"}, {"constraint": "group", "groups": label}):
            path, scores = path_scores(X, y, train, validation, params, None)
            error = partial_auc_error(y[validation])
            # The smallest model within one standard error of the best: the usual choice where sparsity is wanted.
            best = int(np.flatnonzero(scores >= scores.max() - error)[0])
            used = sorted(set(label[path.coefs[best] != 0].tolist()))
            cells += [f"{100 * path.score(X[test], y[test])[best]:.2f}", str(len(used))]
        rows.append([*cells, "yes" if used == [0, 1, 2, 3, 4] else f"no: {used}"])
    header = [
        "set",
        "L2: test partial AUC",
        "groups",
        "group: test partial AUC",
        "groups ",
        "the 5 that matter, no other",
    ]
    return markdown(header, rows)


def partial_auc_error(y: np.ndarray) -> float:
    """Return a rough standard error of a partial AUC of about 0.8: that of a share among the positives."""
    return float(np.sqrt(0.8 * 0.2 / y.sum()))


# Passes


class Problem(NamedTuple):
    """A loss over a ball; ``paper_step`` is the first step of the paper's experiments, a share of the radius."""

    name: str
    X: np.ndarray
    loss: Any
    ball: Ball
    paper_step: float


def problems(quick: bool) -> Iterator[Problem]:
    """Yield balls that hold the solution of the penalized problem (L2), or half of its norm, as in the paper."""
    sets = [load_real("letter")] + ([] if quick else [synthetic(20_000, 100)])
    for data in filter(None, sets):
        d = data.X.shape[1]
        for window in ((0.0, 0.1), (0.0, 1.0)):
            bound = PartialAUCTight(*window).bind(data.y)
            for C in (1.0, 100.0):
                w = SmoothedNewton().solve(as_operator(data.X), bound, SquaredL2(C)).w
                if np.linalg.norm(w) < 1e-9:
                    continue  # collapsed: there is no radius to take from it
                label = np.arange(d) // 5
                group = GroupBall(1.0, label, d).value(w)
                name = f"{data.name} [{window[0]:g}, {window[1]:g}] C={C:g}"
                yield Problem(f"{name} L2", data.X, bound, L2Ball(float(np.linalg.norm(w))), 0.1)
                yield Problem(f"{name} L1", data.X, bound, L1Ball(0.5 * float(np.abs(w).sum())), 0.01)
                yield Problem(f"{name} group", data.X, bound, GroupBall(0.5 * group, label, d), 0.01)


class _EnoughError(Exception):
    pass


def subgradient_passes(problem: Problem, step: float | str, level: float, limit: int) -> tuple[int | None, int | None]:
    """Return the passes until the loss is at the level, and until the method's own certificate says so."""
    trace: list[Progress] = []

    def watch(progress: Progress) -> None:
        trace.append(progress)
        if progress.objective <= level and progress.objective - progress.bound <= GAP * progress.objective:
            raise _EnoughError

    try:
        solver = ProjectedSubgradient(tol=1e-12, max_iter=limit // 2, learning_rate=step)
        solver.solve(as_operator(problem.X), problem.loss, problem.ball, None, watch)
    except _EnoughError:
        return first(trace, level), trace[-1].passes
    return first(trace, level), None


def first(trace: list[Progress], level: float) -> int | None:
    return next((progress.passes for progress in trace if progress.objective <= level), None)


def passes_table(quick: bool, limit: int) -> str:
    rows, ratios = [], {"paper's step": [], "automatic step": []}
    for problem in problems(quick):
        ours = ProximalBundle(GAP).solve(as_operator(problem.X), problem.loss, problem.ball)
        assert ours.converged, problem.name
        n = ours.trace[-1].passes
        level = max(ours.objective, (ours.objective - ours.gap) / (1 - GAP))
        cells = [
            problem.name,
            f"{problem.ball.radius:.3g}",
            f"{ours.objective:.4f}",
            f"{first(ours.trace, level)} / {n}",
        ]
        for key, step in (("paper's step", problem.paper_step * problem.ball.radius), ("automatic step", "auto")):
            reached, certified = subgradient_passes(problem, step, level, limit)
            ratios[key].append((certified or limit) / n)
            shown = [f"> {limit}" if value is None else str(value) for value in (reached, certified)]
            cells += [" / ".join(shown), f"{'> ' if certified is None else ''}{ratios[key][-1]:.1f}"]
        rows.append(cells)
        print(*cells, sep=" | ", flush=True)
    header = [
        "problem",
        "radius",
        "loss",
        "ProximalBundle",
        "subgradient, paper's step",
        "ratio",
        "automatic step",
        "ratio ",
    ]
    summary = [
        f"- {key}: at least 5 times the passes of ProximalBundle, certified, on {sum(r >= 5 for r in values)} "
        f"of {len(values)} problems; median ratio {np.median(values):.1f}, least {min(values):.1f}"
        for key, values in ratios.items()
    ]
    return markdown(header, rows) + "\n\n" + "\n".join(summary)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer splits and sets, a few minutes")
    parser.add_argument("--only", choices=("selection", "groups", "passes"), nargs="*", help="parts to run")
    args = parser.parse_args(argv)
    quick = args.quick
    parts = {
        "selection": ("Test partial AUC [0, 0.1] and features kept", lambda: selection(2 if quick else 10)),
        "groups": ("17 groups of which 5 matter", lambda: groups_table(2 if quick else 10)),
        "passes": (
            "Passes to the certified loss / to the own certificate, gap 1e-3",
            lambda: passes_table(quick, 500 if quick else 1000),
        ),
    }
    with threadpool_limits(1):
        for name, (title, run) in parts.items():
            if not args.only or name in args.only:
                table = run()
                print(table, flush=True)
                publish(f"sparse_{name}", title, [table], quick)


if __name__ == "__main__":
    main()
