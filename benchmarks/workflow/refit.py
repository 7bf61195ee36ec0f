"""Whether a fit to all rows, with a threshold from cross-fitted scores, is better than one without the held-out rows.

``python -m benchmarks.workflow.refit`` writes benchmarks/results/refit.md. A cell is a set, a seed and a model: at most
2,000 rows (two thirds of a smaller set) are given to ``fit_table`` with a limit and no confidence, once without and
once with ``refit``; both models are judged on at most 20,000 other rows. Seeds 0 and 1 served to choose between
variants of the refit, the others are reported. Figures are kept in ``results/refit.jsonl``.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, wilcoxon
from sklearn.model_selection import train_test_split

from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from benchmarks.peers.boosted import load
from rocmax._threads import using_threads
from rocmax.metrics import delong_interval, partial_auc_score, tpr_at_fpr
from rocmax.tables import Columns, Limits
from rocmax.tables.fit import check_fit, enough_rows, fit_training, refitted
from rocmax.tables.read import read_training

SETS = ("abalone", "adult", "bank-full", "german-credit", "higgs_small", "ijcnn1", "pima", "spambase", "telco-churn")
# Trees take most of the time.
MODELS = {"linear": SETS, "boosted": ("abalone", "german-credit", "pima")}
MAX_FPR, ROWS, TEST_ROWS = 0.05, 2_000, 20_000
CHOICE, REPORT = (0, 1), (2, 3, 4)
KINDS = ("held out", "refit")
FIGURES = ("fpr", "tpr", "partial AUC", "TPR at the limit")


def work(name: str, seed: int, model: str) -> dict[str, Any]:
    """Return the figures of a cell on other rows, by the kind of fit."""
    X, labels = load(name)
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    table = table.astype({column: object for column in table.columns if table[column].dtype == "category"})
    table = table.assign(target_of_the_set=np.asarray(labels).astype(int))
    y = table["target_of_the_set"].to_numpy()
    train, test = train_test_split(
        np.arange(y.size), train_size=min(ROWS, y.size * 2 // 3), stratify=y, random_state=seed
    )
    if test.size > TEST_ROWS:
        test, _ = train_test_split(test, train_size=TEST_ROWS, stratify=y[test], random_state=seed)
    found, positive = {}, y[test] == 1
    settings = check_fit(Limits(MAX_FPR), model=model, test_size=None, random_state=seed, tune=True, refit=True)
    with warnings.catch_warnings(), using_threads(1):
        warnings.simplefilter("ignore")  # starting points that stop early
        training = read_training(table.iloc[train], Columns(target="target_of_the_set", positive=1))
        # What fit_table does; the model before the refit is the one without it.
        before = fit_training(training, settings, lambda note: None)
        for kind, fitted in zip(KINDS, (before, refitted(training, settings, before)), strict=True):
            scores = fitted.positive_scores(table.iloc[test])
            values = (
                (scores > 0)[~positive].mean(),
                (scores > 0)[positive].mean(),
                partial_auc_score(positive, scores, max_fpr=MAX_FPR),
                tpr_at_fpr(positive, scores, max_fpr=MAX_FPR),
            )
            found[kind] = dict(zip(FIGURES, map(float, values), strict=True))
    return found


def by_model(cells: dict[Any, Any], seeds: tuple[int, ...]) -> list[list[str]]:
    """Return the rows of the summary."""
    rows = []
    for model in MODELS:
        chosen = [found for (_, seed, of), found in cells.items() if of == model and seed in seeds]
        values = {kind: {name: np.array([c[kind][name] for c in chosen]) for name in FIGURES} for kind in KINDS}
        for kind in KINDS:
            one, ratio = values[kind], values[kind]["fpr"] / MAX_FPR
            pauc = one["partial AUC"] - values["held out"]["partial AUC"]
            better = "" if kind == "held out" else f"{np.mean(pauc > 0):.0%}"
            p_value = "" if kind == "held out" else f"{wilcoxon(pauc).pvalue:.2g}"
            means = [f"{one[name].mean():.4f}" for name in ("TPR at the limit", "tpr")]
            spread = [f"{np.abs(ratio - 1).mean():.3f}", f"{np.mean(ratio > 1):.0%}", f"{ratio.max():.2f}"]
            start = [model, kind, str(len(chosen)), f"{one['partial AUC'].mean():.4f}", better, p_value]
            rows.append([*start, *means, f"{ratio.mean():.3f}", *spread])
    return rows


def by_set(cells: dict[Any, Any]) -> list[list[str]]:
    """Return the rows of the table of sets."""
    rows = []
    for model, names in MODELS.items():
        for name in names:
            chosen = [found for (of, seed, m), found in cells.items() if (of, m) == (name, model) and seed in REPORT]
            mean = {
                (kind, figure): np.mean([cell[kind][figure] for cell in chosen]) for kind in KINDS for figure in FIGURES
            }
            rows.append(
                [name, model]
                + [f"{mean[kind, 'partial AUC']:.4f}" for kind in KINDS]
                + [f"{mean[kind, 'fpr'] / MAX_FPR:.2f}" for kind in KINDS]
            )
    return rows


def widths() -> list[list[str]]:
    """Return the widths of intervals on as many rows as are enough, for normal scores."""
    rng, rows = np.random.default_rng(0), []
    for max_fpr in (0.01, 0.05):
        m, n = enough_rows(Limits(max_fpr, confidence=0.95))
        y = np.repeat([1, 0], [m, n])
        for auc in (0.7, 0.8, 0.9, 0.95):
            scores = rng.normal(size=y.size) + np.sqrt(2) * norm.ppf(auc) * y
            ends = [delong_interval(y, scores, **window) for window in ({"max_fpr": max_fpr}, {})]
            value = partial_auc_score(y, scores, max_fpr=max_fpr)
            shown = [f"{high - low:.4f}" for low, high in ends]
            rows.append([f"{max_fpr:g}", f"{m:,}", f"{n:,}", f"{auc:g}", f"{value:.3f}", *shown])
    return rows


def main() -> None:
    """Run the missing cells and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choice", action="store_true", help="print the cells of the choice only")
    options = parser.parse_args()
    seeds = CHOICE if options.choice else REPORT
    jobs = [(name, seed, model) for model, names in MODELS.items() for seed in seeds for name in names]
    head = ["model", "fit", "cells", "partial AUC", "better", "p", "TPR at the limit", "TPR", "FPR / limit"]
    head += ["distance to 1", "above the limit", "largest"]
    if options.choice:
        print(markdown(head, by_model(kept("refit", jobs, work)[0], CHOICE)))
        return
    cells, seconds = kept("refit", jobs, work)
    about = (
        f"`python -m benchmarks.workflow.refit`: means over sets and the seeds {REPORT[0]} to {REPORT[-1]}, at most "
        f"{ROWS:,} rows given to the fit, a quarter of them held out; figures on at most {TEST_ROWS:,} other rows. "
        "Better: share of cells in which the partial AUC is higher than that of the model without the held-out rows; "
        "p: Wilcoxon's paired test of that difference. TPR and FPR are those at the saved threshold."
    )
    sections = [running_time(seconds), about, markdown(head, by_model(cells, REPORT)), "## By set", "Means over seeds."]
    by_name = ["set", "model", "partial AUC, held out", "refit", "FPR / limit, held out", "refit"]
    sections += [
        markdown(by_name, by_set(cells)),
        "## Intervals on as many held-out rows as are enough",
        "Normal scores; a limit with a confidence of 95 %. Widths of 95 % intervals.",
        markdown(["limit", "positives", "negatives", "AUC", "partial AUC", "its width", "width of the AUC"], widths()),
    ]
    title = f"A fit to all rows at the end, limit {MAX_FPR:.0%} on the false-positive rate, no confidence"
    publish("refit", title, sections)


if __name__ == "__main__":
    main()
