"""Test partial AUC of the default fit, next to the papers' methods and to baselines, all tuned on training rows.

One cell is a data set, a seed and a window. Two thirds of the rows, at most ``--rows``, are for training; the other
rows, at most twice ``--rows``, are for the test. Features are standardized on the training rows.

The default and the baselines choose ``C`` on the same five stratified folds. The tight and structural losses and CCCP
are run in three forms: "exact", the certified solver, with ``C`` chosen on these folds; "Algorithm 1" as published,
with ``C`` from 1e-5 to 1e4 chosen on a third of the training rows, and the fitted model of this ``C`` kept; and
"Algorithm 1, refit", which is fitted to all training rows with the ``C`` found in this way. For windows that start at 0
the loss of CCCP is the tight loss, so CCCP is run only for the others.

Scores are kept in ``results/partial_auc.jsonl``, so an interrupted run goes on where it stopped. ``--only`` names the
methods to run, ``--forget`` those whose scores are dropped first, ``--minutes`` limits the time of a run, and
``--report`` only writes the page.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks._shared.results import RESULTS, markdown, publish
from benchmarks._shared.tables import Rows, large_test, load_or_say
from rocmax import AUCClassifier, PartialAUCClassifier, PartialAUCClassifierCV
from rocmax.metrics import make_scorer, partial_auc_score

CELLS = RESULTS / "partial_auc.jsonl"
SEEDS = 5
# Splits on which a rival that is ahead by more than two standard errors is compared again; no rule was chosen on them.
FRESH_SEEDS = range(10, 20)
SECOND_LOOK = (
    "With five splits and equal methods, a difference is below minus two standard errors in 6 % of the comparisons. "
    f"Where auto is behind by that much, it is compared again on {len(FRESH_SEEDS)} other splits, on which no rule was "
    "chosen."
)
Window = tuple[float, float]
WINDOWS: list[Window] = [(0.0, 0.05), (0.02, 0.05)]
# In the order of the run: fast fits first.
COMPARED = [
    "pima", "yeast_me2", "abalone", "mammography-like", "cod-rna", "ijcnn1",
    "letter:A", "letter:K", "letter:O", "letter:Q", "letter:S", "letter:Z",
    "oil", "covtype:5", "covtype", "spambase", "a9a",
]  # fmt: skip
# The range of C of Narasimhan and Agarwal (2017), Appendix B.2, in steps of 10; for CCCP it starts at 1e-2.
WIDE = [10.0**power for power in range(-5, 5)]
LOSSES = {"tight": ("tight", WIDE), "structural": ("structural", WIDE), "CCCP": ("hinge", WIDE[3:])}
FORMS = ("exact", "Algorithm 1", "Algorithm 1, refit")
BASELINES = ("logistic", "logistic balanced", "linear SVC", "full AUC")
METHODS = ["auto", *BASELINES, *LOSSES]


def models(method: str, window: Window, rows: Rows, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield the fitted model of a method, or of each of its forms, with its name."""
    X, y = rows.X, rows.y
    folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    if method == "auto":
        yield method, PartialAUCClassifierCV(*window, cv=folds).fit(X, y)
        return
    name = f"{method}: exact" if method in LOSSES else method
    estimator, grid = untuned(method, window)
    scoring = make_scorer("partial_auc", min_fpr=window[0], max_fpr=window[1])
    yield name, GridSearchCV(estimator, {"C": grid}, scoring=scoring, cv=folds).fit(X, y)
    if method in LOSSES:
        loss, Cs = LOSSES[method]
        options = {"solver": "cutting_plane", "tol": 1e-4, "max_iter": 100}
        third = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
        kept = PartialAUCClassifierCV(*window, loss, Cs=Cs, cv=third, **options).fit(X, y)
        yield f"{method}: Algorithm 1", kept
        yield f"{method}: Algorithm 1, refit", PartialAUCClassifier(*window, loss, C=kept.C_, **options).fit(X, y)


def untuned(method: str, window: Window) -> tuple[Any, list[float]]:
    """Return the estimator of a method that is tuned on the five folds, and its values of C."""
    wide, pairs = [0.01, 0.1, 1.0, 10.0], [1.0, 100.0]
    if method in LOSSES:
        return PartialAUCClassifier(*window, LOSSES[method][0], max_iter=10 if method == "CCCP" else 40), pairs
    return {
        "logistic": (LogisticRegression(max_iter=1000), wide),
        "logistic balanced": (LogisticRegression(max_iter=1000, class_weight="balanced"), wide),
        "linear SVC": (LinearSVC(dual=False), [0.001, 0.01, 0.1, 1.0]),
        "full AUC": (AUCClassifier(), pairs),
    }[method]


def cell(name: str, window: Window, seed: int, rows: int, methods: list[str]) -> dict[str, Any]:
    """Score methods on one split."""
    parts = large_test(name, seed, rows)
    scores, seconds = {}, {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # baselines may collapse or stop early, which their scores show
        for method in methods:
            start = time.process_time()
            for form, model in models(method, window, parts, seed):
                seconds[form] = round(time.process_time() - start, 2)
                decision = model.decision_function(parts.X_test)
                scores[form] = partial_auc_score(parts.y_test, decision, min_fpr=window[0], max_fpr=window[1])
                start = time.process_time()
    sizes = {"rows": parts.y.size, "test_rows": parts.y_test.size}
    return {"set": name, "window": window, "seed": seed, **sizes, "seconds": seconds, "scores": scores}


def forms(method: str, window: Window) -> list[str]:
    """Return the names under which the scores of a method are kept; none if it is not run for the window."""
    if method not in LOSSES:
        return [method]
    return [f"{method}: {form}" for form in FORMS if method != "CCCP" or window[0] > 0]


def run(rows: int, methods: list[str], minutes: float) -> None:
    """Compute the scores that are not there yet, until the time is over; then those of the second look."""
    end = time.process_time() + 60 * minutes
    jobs = product(filter(load_or_say, COMPARED), range(SEEDS), WINDOWS)
    compute([(name, window, seed, methods) for name, seed, window in jobs], rows, end)
    behind = [(name, window, method) for name, window, method, _ in clearly_behind()]
    compute(
        [(name, window, seed, ["auto", method]) for name, window, method in behind for seed in FRESH_SEEDS], rows, end
    )


def compute(jobs: list[tuple[str, Window, int, list[str]]], rows: int, end: float) -> None:
    """Compute the scores of some methods on some splits that are not there yet, until a CPU time."""
    done = {(c["set"], tuple(c["window"]), c["seed"]): c["scores"] for c in read()}
    for name, window, seed, methods in jobs:
        found = done.get((name, window, seed), {})
        missing = [m for m in methods if not found.keys() >= set(forms(m, window))]
        if missing and time.process_time() < end:
            result = cell(name, window, seed, rows, missing)
            with CELLS.open("a") as out:
                out.write(json.dumps(result) + "\n")
            print(name, window, seed, f"{sum(result['seconds'].values()):.1f} s", flush=True)


def clearly_behind() -> list[tuple[str, Window, str, str]]:
    """Return set, window, method and form of those that are ahead of auto by more than two standard errors."""
    found = []
    for (name, window), cells in groups().items():
        for method in (m for m in METHODS[1:] if forms(m, window)):
            form = best_form(cells, method, window)
            gain, error = difference(cells, form)
            if gain < -2 * error:
                found.append((name, window, method, form))
    return found


def second_look() -> list[str]:
    """Compare auto with those that are clearly ahead of it again, on other splits."""
    rows, every = [], groups()
    for name, window, _, form in clearly_behind():
        cells = [c for c in read() if (c["set"], tuple(c["window"])) == (name, window) and c["seed"] in FRESH_SEEDS]
        cells = [c for c in cells if c["scores"].keys() >= {"auto", form}]
        pairs = [difference(part, form) for part in (every[name, window], cells) if part]
        texts = [f"{gain:+.4f} ± {error:.4f}" for gain, error in pairs]
        rows.append([name, f"[{window[0]:g}, {window[1]:g}]", form, *texts, *["not run"] * (2 - len(texts))])
    header = ["set", "window", "rival", f"auto minus rival, {SEEDS} splits", f"{len(FRESH_SEEDS)} other splits"]
    return ["## A second look", SECOND_LOOK, markdown(header, rows)] if rows else []


def read() -> list[dict[str, Any]]:
    """Return the cells computed so far, each with the scores of all its methods."""
    cells: dict[tuple, dict[str, Any]] = {}
    for line in CELLS.read_text().splitlines() if CELLS.exists() else []:
        c = json.loads(line)
        known = cells.setdefault((c["set"], *c["window"], c["seed"]), c)
        if known is not c:
            known["scores"].update(c["scores"])
            known["seconds"].update(c["seconds"])
    return list(cells.values())


def forget(methods: list[str]) -> None:
    """Drop the scores of some methods."""
    cells = read()
    for c in cells:
        for part in ("scores", "seconds"):
            c[part] = {m: v for m, v in c[part].items() if m.partition(":")[0] not in methods}
    CELLS.write_text("".join(json.dumps(c) + "\n" for c in cells))


def groups() -> dict[tuple[str, Window], list[dict[str, Any]]]:
    """Return the cells of each set and window for which all methods and seeds are complete, by set and window."""
    found: dict[tuple[str, Window], list[dict[str, Any]]] = {}
    for c in sorted(read(), key=lambda c: (COMPARED.index(c["set"]), c["window"], c["seed"])):
        if c["seed"] >= SEEDS:
            continue
        window = (c["window"][0], c["window"][1])
        if c["scores"].keys() >= {form for method in METHODS for form in forms(method, window)}:
            found.setdefault((c["set"], window), []).append(c)
    return {key: cells for key, cells in found.items() if len(cells) == SEEDS}


def column(cells: list[dict[str, Any]], form: str) -> np.ndarray:
    """Return the test scores of a method or form."""
    return np.array([c["scores"][form] for c in cells])


def best_form(cells: list[dict[str, Any]], method: str, window: Window) -> str:
    """Return the form with the largest mean test score; a choice by test rows, which favors the method."""
    return max(forms(method, window), key=lambda form: column(cells, form).mean())


def difference(cells: list[dict[str, Any]], form: str) -> tuple[float, float]:
    """Return the mean of auto minus a rival, and the standard error of the paired difference."""
    gain = column(cells, "auto") - column(cells, form)
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(gain.size))


class Count(NamedTuple):
    """Numbers of rows in which auto is ahead or behind by more than one or two standard errors."""

    ahead2: int = 0
    ahead: int = 0
    behind: int = 0
    behind2: int = 0
    rows: int = 0

    def add(self, gain: float, error: float) -> Count:
        """Return the counts with one more row."""
        flags = (gain > 2 * error, gain > error, gain < -error, gain < -2 * error, True)
        return Count(*(int(count + flag) for count, flag in zip(self, flags, strict=True)))


def comparison() -> list[str]:
    """Return the table of paired differences and the counts of rows ahead and behind."""
    rows, counts = [], dict.fromkeys(METHODS[1:], Count())
    none_behind = all_ahead = 0
    for (name, window), cells in groups().items():
        row = [name, str(cells[0]["rows"]), f"[{window[0]:g}, {window[1]:g}]", f"{column(cells, 'auto').mean():.4f}"]
        judged = []
        for method in METHODS[1:]:
            if not forms(method, window):
                row.append("= tight")
                continue
            form = best_form(cells, method, window)
            gain, error = difference(cells, form)
            counts[method] = counts[method].add(gain, error)
            judged.append((gain > error, gain < -error))
            mark = f" {'ekr'[forms(method, window).index(form)]}" if method in LOSSES else ""
            text = f"{gain:+.4f} ± {error:.4f}{mark}"
            row.append(f"**{text}**{'!' * (gain < -2 * error)}" if gain < -error else text)
        rows.append(row)
        none_behind += not any(behind for _, behind in judged)
        all_ahead += all(ahead for ahead, _ in judged)
    header = ["set", "training rows", "window", "auto", *METHODS[1:]]
    summary = markdown(
        ["rival", "rows", "ahead by 2 SE", "ahead by 1 SE", "behind by 1 SE", "behind by 2 SE"],
        [[m, str(c.rows), str(c.ahead2), str(c.ahead), str(c.behind), str(c.behind2)] for m, c in counts.items()],
    )
    note = (
        f"Numbers of rows of the table below in which auto is ahead or behind by more than one or two standard errors "
        f"(SE). Of {len(rows)} rows, auto is behind no rival by more than one SE in {none_behind}, and ahead of every "
        f"rival by more than one SE in {all_ahead}."
    )
    return ["## Summary", note, summary, "## Differences", LEGEND, markdown(header, rows)]


LEGEND = (
    "Mean test partial AUC of auto over the splits; then auto minus each rival, with the standard error of the paired "
    "difference. **Bold**: auto is behind by more than one standard error; **bold**!: by more than two. The letter "
    "after a difference is the form of the rival: e exact, k Algorithm 1 (the model fitted to two thirds of the "
    "training rows is kept), r Algorithm 1, refit."
)


def scores_of_forms() -> list[str]:
    """Return the table of the mean test scores of all forms of the papers' methods."""
    names = [f"{method}: {form}" for method in LOSSES for form in FORMS]
    rows = []
    for (name, window), cells in groups().items():
        found = {form: f"{column(cells, form).mean():.4f}" for m in LOSSES for form in forms(m, window)}
        row = [name, f"[{window[0]:g}, {window[1]:g}]", f"{column(cells, 'auto').mean():.4f}"]
        rows.append([*row, *(found.get(form, "") for form in names)])
    note = "Mean test partial AUC. A random ranking has 0.025 in the window [0, 0.05] and 0.035 in [0.02, 0.05]."
    return ["## Forms of the papers' methods", note, markdown(["set", "window", "auto", *names], rows)]


def unfinished() -> str:
    """Return a sentence on the sets of the list that are not complete."""
    left = [name for name in COMPARED if any((name, window) not in groups() for window in WINDOWS)]
    return f"Not complete, and left out in part or altogether: {', '.join(left)}." if left else ""


def report() -> None:
    """Write the page."""
    cells = [c for group in groups().values() for c in group]
    if not cells:
        print("no set is complete yet")
        return
    minutes = sum(sum(c["seconds"].values()) for c in cells) / 60
    most = max(c["rows"] for c in cells)
    protocol = (
        f"{SEEDS} random splits: two thirds of the rows, at most {most}, for training, and the others, at most twice "
        "as many, for the test; features standardized. Auto is `PartialAUCClassifierCV`. Auto, the baselines and the "
        "exact fits choose `C` on the same five folds of the training rows; the exact fits, by the certified solver, "
        "have at most 40 iterations (CCCP: 10). Algorithm 1 of Narasimhan and Agarwal: eps = "
        "1e-4, at most 100 iterations, `C` from 1e-5 (CCCP: 1e-2) to 1e4 in steps of 10, chosen on a third of the "
        "training rows. The fitted model of this `C` is kept, or refitted to all training rows. Of the exact fit and "
        "these two, the one with the largest mean test score counts as the rival, which favors the rival, because it "
        "is chosen by test rows. For windows that start at 0 the loss of CCCP is the tight loss. "
        "These splits are not a clean test of auto: its rules were first chosen on other splits, but an earlier "
        "version was run on these, and the rules were changed after its results, above all on abalone. "
        f"CPU time of all fits: {minutes:.0f} minutes. {unfinished()}"
    )
    title = "Test partial AUC of `PartialAUCClassifierCV`, the papers' methods and baselines"
    publish("partial_auc", title, [protocol, *comparison(), *second_look(), *scores_of_forms()])


def main() -> None:
    """Run the cells and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000, help="largest number of training rows")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="CPU minutes after which no cell is started"
    )
    parser.add_argument("--report", action="store_true", help="only write the page")
    parser.add_argument("--only", nargs="+", choices=METHODS, default=METHODS, help="methods to run")
    parser.add_argument("--forget", nargs="+", choices=METHODS, default=[], help="methods to run anew")
    args = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if args.forget:
        forget(args.forget)
    if not args.report:
        run(args.rows, args.only, args.minutes)
    report()


if __name__ == "__main__":
    main()
