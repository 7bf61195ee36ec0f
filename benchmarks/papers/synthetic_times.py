"""Running times on Gaussian data after Narasimhan and Agarwal (KDD 2013), section 7.3, Figures 2 and 3.

A tenth of the rows are positives from N(mu, Sigma), the others negatives from N(-mu, Sigma); mu is uniform on {-1, 1}^d
and Sigma has a Wishart distribution. The paper does not state its parameters; here they are d degrees of freedom and
the identity, chosen among three settings because the number of calls then depends on beta. ``figure2``: time of the
most violated constraint and number of calls, tight and structural loss. ``figure3``: seconds of Algorithm 1, of the
projected subgradient method until it reaches the same loss in the ball of the same norm, and of the package's solvers
for both problems. ``figure3_l1``: the same with the L1 norm, where Algorithm 1 solves linear programs. Finished runs
are kept in ``synthetic_times.jsonl``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import linprog
from threadpoolctl import threadpool_limits

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import RESULTS, cpu_time, markdown, publish
from rocmax.losses import PartialAUCStructural, PartialAUCTight
from rocmax.operators import as_operator
from rocmax.penalties import Ball, L1Ball, L2Ball, SquaredL2
from rocmax.solvers import CuttingPlane, Progress, ProjectedSubgradient, ProximalBundle, SmoothedNewton

EPS = 0.01
LOSSES = {"tight": PartialAUCTight, "structural": PartialAUCStructural}
# Figure 2: rows, features and C of the paper, which has 10 sets.
SIZE2, BETAS2, N_SETS2 = (100_000, 100), (0.05, 0.1, 0.2, 0.5, 1.0), 3
# Figure 3: the paper states neither its sizes nor its values of C in the text.
SIZES3, BETAS3, CS3, N_SETS3 = ((5_000, 10), (5_000, 200)), (0.1, 0.5), (0.1, 1.0, 10.0), 3
# Its eps and first step for L1; a smaller C has zero weights.
EPS_L1, FIRST_STEP_L1, CS_L1, MAX_PLANES_L1 = 0.1, 0.01, (1.0, 10.0), 100
MAX_PLANES, MAX_STEPS = 300, 300


class ReachedError(Exception):
    """The loss that was asked for is reached."""


def gaussian(n_rows: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one data set of section 7.3."""
    rng = np.random.default_rng(seed)
    covariance = stats.wishart(df=n_features, scale=np.eye(n_features)).rvs(random_state=rng)
    mean = rng.choice([-1.0, 1.0], n_features)
    y = (np.arange(n_rows) < n_rows // 10).astype(np.int64)
    noise = rng.standard_normal((n_rows, n_features)) @ np.linalg.cholesky(covariance).T
    return noise + np.where(y[:, np.newaxis] == 1, mean, -mean), y


def violated_constraint(size: tuple[int, int], seed: int) -> dict[str, list[float]]:
    """Return milliseconds of a call, number of calls and seconds of Algorithm 1 for each loss and beta."""
    X, y = gaussian(*size, seed)
    operator, found = as_operator(X), {}
    for name, loss_of in LOSSES.items():
        for beta in BETAS2:
            loss = loss_of(max_fpr=beta).bind(y)
            seconds, result = cpu_time(
                lambda loss=loss: CuttingPlane(EPS, MAX_PLANES).solve(operator, loss, SquaredL2())
            )
            scores = X @ result.w
            call = min(cpu_time(lambda loss=loss, s=scores: loss.value_and_gradient(s))[0] for _ in range(5))
            found[f"{name} {beta:g}"] = [1000 * call, result.n_iter, seconds]
    return found


def until(level: float) -> Callable[[Progress], None]:
    """Return a callback that ends a run at a loss of at most ``level``."""

    def callback(progress: Progress) -> None:
        if progress.objective <= level:
            raise ReachedError

    return callback


def steps_to_loss(solver: Any, operator: Any, loss: Any, ball: Ball, level: float) -> tuple[float, float]:
    """Return seconds and 1 if the loss was reached, else 0."""

    def run() -> float:
        try:
            result = solver.solve(operator, loss, ball, callback=until(level))
        except ReachedError:
            return 1.0
        return float(result.objective <= level)

    return cpu_time(run)


def race(size: tuple[int, int], seed: int) -> dict[str, list[float]]:
    """Return seconds of the four methods, and whether each reached its goal, for each beta and C."""
    X, y = gaussian(*size, seed)
    operator, found = as_operator(X), {}
    for beta in BETAS3:
        loss = PartialAUCTight(max_fpr=beta).bind(y)
        for C in CS3:
            penalty = SquaredL2(C)
            planes, result = cpu_time(
                lambda p=penalty, loss=loss: CuttingPlane(EPS, MAX_PLANES).solve(operator, loss, p)
            )
            norm = float(np.linalg.norm(result.w))
            level = (result.objective - penalty.value(result.w)) / C
            subgradient = ProjectedSubgradient(1e-9, MAX_STEPS, norm / 10)
            theirs, reached = steps_to_loss(subgradient, operator, loss, L2Ball(norm), level)
            bundle, near = steps_to_loss(ProximalBundle(1e-9, MAX_STEPS), operator, loss, L2Ball(norm), level)
            newton = SmoothedNewton(min(C * EPS / result.objective, 0.5))
            ours, exact = cpu_time(lambda p=penalty, loss=loss, s=newton: s.solve(operator, loss, p))
            goals = [float(result.converged), reached, near, float(exact.converged)]
            found[f"{beta:g} {C:g}"] = [planes, theirs, bundle, ours, *goals]
    return found


def l1_planes(X: np.ndarray, loss: Any, C: float) -> tuple[np.ndarray, float, bool]:
    """Return weights and loss of the cutting plane for ``|w|_1 + C R(w)``, and whether it reached ``EPS_L1``."""
    d = X.shape[1]
    cost = np.append(np.ones(2 * d), C)
    w, slack, rows, offsets = np.zeros(d), 0.0, [], []
    for _ in range(MAX_PLANES_L1):
        scores = X @ w
        value, coefficients = loss.value_and_gradient(scores)
        if value - slack <= EPS_L1:
            return w, value, True
        gradient = X.T @ coefficients
        rows.append(np.concatenate([gradient, -gradient, [-1.0]]))
        offsets.append(coefficients @ scores - value)
        solution = linprog(cost, np.array(rows), np.array(offsets), bounds=(0, None), method="highs").x
        w, slack = solution[:d] - solution[d : 2 * d], solution[-1]
    return w, loss.value_and_gradient(X @ w)[0], False


def race_l1(size: tuple[int, int], seed: int) -> dict[str, list[float]]:
    """Return seconds of the three methods with the L1 norm, and whether each reached its goal, for each beta and C."""
    X, y = gaussian(*size, seed)
    operator, found = as_operator(X), {}
    for beta in BETAS3:
        loss = PartialAUCTight(max_fpr=beta).bind(y)
        for C in CS_L1:
            planes, (w, level, converged) = cpu_time(lambda C=C, loss=loss: l1_planes(X, loss, C))
            ball = L1Ball(float(np.abs(w).sum()))
            subgradient = ProjectedSubgradient(1e-9, MAX_STEPS, FIRST_STEP_L1 * ball.radius)
            theirs, reached = steps_to_loss(subgradient, operator, loss, ball, level)
            bundle, near = steps_to_loss(ProximalBundle(1e-9, MAX_STEPS), operator, loss, ball, level)
            found[f"{beta:g} {C:g}"] = [planes, theirs, bundle, float(converged), reached, near]
    return found


PARTS = {"figure2": violated_constraint, "figure3": race, "figure3_l1": race_l1}


def work(part: str, n_rows: int, n_features: int, seed: int) -> dict[str, list[float]]:
    return PARTS[part]((n_rows, n_features), seed)


def spread(values: np.ndarray, digits: int) -> str:
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def figure2(found: list[dict[str, list[float]]]) -> str:
    rows = []
    for beta in BETAS2:
        cells = [f"{beta:g}"]
        for column, digits in ((0, 2), (1, 0), (2, 2)):
            cells += [spread(np.array([run[f"{name} {beta:g}"][column] for run in found]), digits) for name in LOSSES]
        rows.append(cells)
    measured = ("ms per call", "calls", "s in all")
    header = ("beta", *(f"{name}: {what}" for what in measured for name in LOSSES))
    text = (
        f"## Figure 2: the most violated constraint\n\nWindow [0, beta], {SIZE2[0]:,} rows, {SIZE2[1]} features "
        f"(as in the paper), C = 1, eps = {EPS:g}; mean ± standard deviation over {N_SETS2} sets (paper: 10). One "
        "call is one "
        "evaluation of the loss and its subgradient from given scores, CPU time, without the products with the data. "
        "The degrees of freedom and the scale of the Wishart matrix, which the paper does not state, were chosen among "
        "three settings, because the number of calls then depends on beta. "
        "The paper's figure (its curves are not in numbers): for tight the time of a call falls with beta, for "
        "structural it is constant; calls increase as beta falls, more slowly for tight."
    )
    return f"{text}\n\n{markdown(header, rows)}\n\n![Time of a call and number of calls](synthetic_times.png)"


def race_rows(groups: dict[str, list[dict[str, list[float]]]], part: str, Cs: tuple[float, ...], n: int) -> Any:
    """Yield the rows of a table: seconds of ``n`` methods, with the number of sets on which a goal was missed."""
    for size in SIZES3:
        found = groups[f"{part} {size[1]}"]
        for beta in BETAS3:
            for C in Cs:
                runs = np.array([run[f"{beta:g} {C:g}"] for run in found])
                missed = (runs[:, n:] == 0).sum(axis=0)
                cells = (spread(runs[:, i], 2) + (f" ({missed[i]} not reached)" if missed[i] else "") for i in range(n))
                yield (f"{size[1]}", f"{beta:g}", f"{C:g}", *cells)


def figure3(groups: dict[str, list[dict[str, list[float]]]]) -> str:
    methods = ("Algorithm 1", "projected subgradient", "ProximalBundle", "SmoothedNewton")
    text = (
        f"## Figure 3: seconds to the same loss\n\nTight loss, L2, {SIZES3[0][0]:,} rows, CPU seconds, mean ± standard "
        f"deviation over {N_SETS3} sets (paper: 10). Algorithm 1 with eps = {EPS:g}, at most {MAX_PLANES} iterations. "
        "The projected subgradient method as in the paper: the norm of Algorithm 1's weights as radius, first step a "
        f"tenth of it, until the loss is at most that of Algorithm 1, at most {MAX_STEPS} steps. `ProximalBundle`: the "
        "same problem and goal. `SmoothedNewton`: the penalized problem to the gap C eps that Algorithm 1 guarantees. "
        "The paper: with L2, projected subgradient is faster than cutting planes on low-dimensional data for small "
        "beta and large C. Its curves are not in numbers."
    )
    table = markdown(("features", "beta", "C", *methods), race_rows(groups, "figure3", CS3, 4))
    text_l1 = (
        f"L1: eps = {EPS_L1:g} and a first step of a hundredth of the radius, as in the paper; each iteration of "
        f"Algorithm 1, at most {MAX_PLANES_L1}, solves a linear program (HiGHS). If they do not suffice, the loss of "
        "the last one is the goal of the others. The paper: with L1, projected subgradient is faster than cutting "
        "planes even on high-dimensional data."
    )
    table_l1 = markdown(("features", "beta", "C", *methods[:3]), race_rows(groups, "figure3_l1", CS_L1, 3))
    return f"{text}\n\n{table}\n\n{text_l1}\n\n{table_l1}"


def draw(found: list[dict[str, list[float]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    for axes, column, label in zip(figure.subplots(1, 2), (0, 1), ("ms per call", "calls"), strict=True):
        for name, marker in zip(LOSSES, "os", strict=True):
            values = np.array([[run[f"{name} {beta:g}"][column] for beta in BETAS2] for run in found])
            axes.errorbar(BETAS2, values.mean(axis=0), values.std(axis=0, ddof=1), marker=marker, label=name, capsize=3)
        axes.set(xscale="log", xlabel="beta", ylabel=label, ylim=(0, None), xticks=BETAS2, xticklabels=BETAS2)
        axes.minorticks_off()
        axes.legend()
    figure.savefig(RESULTS / "synthetic_times.png", dpi=100)


def main() -> None:
    jobs = [("figure2", *SIZE2, seed) for seed in range(N_SETS2)]
    races = ("figure3", "figure3_l1")
    jobs += [(part, *size, seed) for part in races for size in SIZES3 for seed in range(N_SETS3)]
    with threadpool_limits(1):
        found, seconds = kept("synthetic_times", jobs, work)
    groups: dict[str, list[dict[str, list[float]]]] = {}
    for (part, _, n_features, _), run in found.items():
        groups.setdefault(f"{part} {n_features}", []).append(run)
    draw(groups["figure2 100"])
    title = "Running times after Narasimhan and Agarwal (KDD 2013), section 7.3"
    publish("synthetic_times", title, [running_time(seconds), figure2(groups["figure2 100"]), figure3(groups)])


if __name__ == "__main__":
    main()
