"""The main job on generated card payments: ``python -m rocmax.demo [--out rocmax_demo.png] [--seed 0]``.

Three linear models learn from the same rows: logistic regression, one trained for the AUC and one trained for the
partial AUC below a limit on false alarms. The demo prints what each reaches on rows it has not seen and draws the
ROC curves.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rocmax._atomic import check_output, write_file
from rocmax._ending import run
from rocmax._typing import Array
from rocmax.estimators import AUCClassifier, PartialAUCClassifier
from rocmax.metrics import bootstrap_interval, partial_auc_score, roc_auc_score, tpr_at_fpr

# The limit on false alarms: of 100 honest payments, one may be stopped.
MAX_FPR = 0.01
LIMIT = f"{100 * MAX_FPR:g} %"
N_ROWS = 40_000
N_FEATURES = 20
FRAUD_RATE = 0.05
N_RESAMPLES = 300
FORMATS = (".png", ".pdf", ".svg")
PICTURE = "rocmax_demo.png"
NO_MATPLOTLIB = "a picture needs matplotlib: pip install 'rocmax[plot]'"

# Okabe and Ito's colours, told apart by colour-blind readers too; the dashes tell them apart in grey.
STYLES = (("#555555", (0, (4, 1.5))), ("#0072B2", (0, (1, 1))), ("#D55E00", "solid"))


class Estimate(NamedTuple):
    """A measure on the test rows, with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Entry:
    """What one model reached on the test rows."""

    name: str
    scores: Array
    seconds: float
    auc: Estimate
    partial_auc: Estimate
    tpr: Estimate


def make_payments(seed: int) -> tuple[Array, NDArray[np.int_]]:
    """Generate payments, label 1 for fraud.

    Features 0 to 4 measure activity, 5 to 10 the traces of particular tricks, the rest is noise; all are correlated
    and heavy-tailed. Most frauds only look a little too active (*takeover*), many leave a trace (*card testing*),
    some do both. Of the honest customers a few are more active than most frauds (*travellers*). So activity is what
    tells fraud from the bulk of the payments, and the wrong thing to look at near the top of the ranking.

    Parameters
    ----------
    seed : int
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (N_ROWS, N_FEATURES)
        Features.
    y : ndarray of shape (N_ROWS,)
        1 for fraud, 0 for honest payments.
    """
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((N_ROWS, 3)) @ rng.normal(0.0, 0.4, (3, N_FEATURES))
    tail = np.sqrt(8.0 / rng.chisquare(8.0, (N_ROWS, 1)))  # makes every row Student's t with 8 degrees of freedom
    X = (rng.standard_normal((N_ROWS, N_FEATURES)) + factors) * tail
    y = (np.arange(N_ROWS) < round(FRAUD_RATE * N_ROWS)).astype(np.int_)
    fraud = rng.choice(["takeover", "card testing", "both"], N_ROWS, p=[0.5, 0.4, 0.1])
    honest = rng.choice(["ordinary", "traveller"], N_ROWS, p=[0.975, 0.025])
    kind = np.where(y == 1, fraud, honest)
    activity = np.array([1.5, 1.2, 1.2, 1.0, 1.0])
    X[kind == "takeover", :5] += activity
    X[kind == "card testing", 5:8] += [3.0, 2.7, 2.7]
    X[kind == "both", :5] += 0.6 * activity
    X[kind == "both", 8:11] += 2.2
    X[kind == "traveller", :5] += [2.5, 2.2, 2.2, 2.0, 2.0]
    return X, y


def evaluate(model: Any, split: Sequence[Any], seed: int) -> Entry:
    """Fit a model on standardised features and measure it on the test rows.

    Parameters
    ----------
    model : estimator
        The classifier.
    split : sequence of ndarray
        Training rows, test rows, training labels, test labels.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    Entry
        Scores, measures with intervals, and the time of the fit.
    """
    X, X_test, y, y_test = split
    pipeline = make_pipeline(StandardScaler(), model)
    start = time.perf_counter()
    pipeline.fit(X, y)
    seconds = time.perf_counter() - start
    scores = pipeline.decision_function(X_test)

    def estimate(measure: Callable[..., float], **params: float) -> Estimate:
        interval = bootstrap_interval(
            measure, y_test, scores, n_resamples=N_RESAMPLES, random_state=seed, pos_label=1, **params
        )
        return Estimate(float(measure(y_test, scores, **params)), *interval)

    return Entry(
        type(model).__name__,
        scores,
        seconds,
        estimate(roc_auc_score),
        estimate(partial_auc_score, max_fpr=MAX_FPR),
        estimate(tpr_at_fpr, max_fpr=MAX_FPR),
    )


def format_table(entries: Sequence[Entry]) -> str:
    """Return the measures of all models as aligned text."""
    rows = [("model", "AUC", f"partial AUC, FPR <= {LIMIT}", f"TPR at FPR <= {LIMIT}", "fit")]
    rows += [(e.name, str(e.auc), str(e.partial_auc), str(e.tpr), f"{e.seconds:.1f} s") for e in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def explain(entries: Sequence[Entry]) -> str:
    """Return in plain words what the table says."""
    base, _, partial = entries
    best = max(entries, key=lambda entry: entry.auc.value)
    caught, before = (round(100 * entry.tpr.value) for entry in (partial, base))
    return (
        f"If at most {LIMIT} of the honest payments may be stopped, {partial.name} catches {caught} of 100 "
        f"frauds\nand {base.name} {before}. The best AUC belongs to {best.name}, which catches "
        f"{round(100 * best.tpr.value)} there:\na high AUC says little about the few false alarms one can afford."
    )


def draw(entries: Sequence[Entry], y_test: NDArray[np.int_], out: Path) -> None:
    """Write the ROC curves, whole and in the window, to a file.

    Parameters
    ----------
    entries : sequence of Entry
        The models.
    y_test : ndarray
        Labels of the test rows.
    out : Path
        The file; its ending chooses the format.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(10.5, 5.4), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
    whole, window = figure.subplots(1, 2)
    for axes in (whole, window):
        _draw_curves(axes, entries, y_test)
    _finish_whole(whole)
    _finish_window(window, entries)
    handles, labels = whole.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=11)
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=out.suffix[1:].lower())
    write_file(out, content.getvalue())


def _draw_curves(axes: Any, entries: Sequence[Entry], y_test: NDArray[np.int_]) -> None:
    """Draw all curves, in per cent, over the shaded window."""
    axes.axvspan(0, 100 * MAX_FPR, color="#F0E442", alpha=0.3, linewidth=0)
    for entry, (color, dashes) in zip(entries, STYLES, strict=True):
        fpr, tpr, _ = roc_curve(y_test, entry.scores, drop_intermediate=False)
        axes.plot(100 * fpr, 100 * tpr, color=color, linestyle=dashes, linewidth=2, label=entry.name)
    axes.set_xlabel("False alarms: honest payments stopped (FPR, %)")
    axes.set_ylabel("Frauds caught (TPR, %)")
    axes.spines[["top", "right"]].set_visible(False)


def _finish_whole(axes: Any) -> None:
    """Add what only the whole curve has: the diagonal and a pointer to the window."""
    axes.plot([0, 100], [0, 100], color="0.75", linewidth=1, zorder=1)
    axes.text(62, 58, "guessing", color="0.45", ha="left", va="top")
    axes.annotate(
        "the window,\nenlarged on the right",
        xy=(100 * MAX_FPR, 6),
        xytext=(18, 6),
        va="center",
        arrowprops={"arrowstyle": "->", "color": "0.3"},
    )
    axes.set(title="The whole ROC curve", xlim=(0, 100), ylim=(0, 100))


def _finish_window(axes: Any, entries: Sequence[Entry]) -> None:
    """Zoom to the window, and write at its end what each model catches."""
    limit, top = 100 * MAX_FPR, 110 * max(entry.tpr.value for entry in entries)
    axes.axvline(limit, color="0.3", linewidth=1)
    for entry, place, (color, _) in zip(entries, _spread(entries, 0.05 * top), STYLES, strict=True):
        axes.plot(limit, 100 * entry.tpr.value, "o", color=color, clip_on=False, zorder=3)
        caught = f"{100 * entry.tpr.value:.0f} % caught"
        axes.text(1.03 * limit, place, caught, color=color, va="center", fontsize=11, weight="bold")
    axes.set(title=f"The window: at most {LIMIT} of false alarms", xlim=(0, limit), ylim=(0, top))


def _spread(entries: Sequence[Entry], distance: float) -> Array:
    """Heights for the labels of the catches, at least ``distance`` apart."""
    heights = np.array([100 * entry.tpr.value for entry in entries])
    order = np.argsort(heights)
    for lower, upper in pairwise(order):
        heights[upper] = max(heights[upper], heights[lower] + distance)
    return heights


def writable(name: str) -> Path:
    """Return the path of a picture that can be written, or tell argparse what is wrong with it."""
    path = Path(name)
    if path.suffix.lower() not in FORMATS:
        raise argparse.ArgumentTypeError(f"needs a file that ends in {', '.join(FORMATS)}; got {name!r}")
    try:
        check_output(path)
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return path


def seed_number(text: str) -> int:
    """Return a seed that NumPy and scikit-learn both take."""
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"needs a whole number from 0 to 2**32 - 1; got {text!r}")
    return int(text)


def parse(args: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m rocmax.demo", description="Find fraud at few false alarms.")
    parser.add_argument("--out", type=writable, help=f"the picture (default: {PICTURE})")
    parser.add_argument("--seed", type=seed_number, default=0, help="seed of the generated data (default: %(default)s)")
    options = parser.parse_args(args)
    if options.out is None and has_matplotlib():
        options.out = parser.parse_args(["--out", PICTURE]).out
    elif options.out is not None and not has_matplotlib():
        parser.error(NO_MATPLOTLIB)
    return options


def has_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def main(args: Sequence[str] | None = None) -> int:
    """Run the demo.

    Parameters
    ----------
    args : sequence of str, default=None
        The command line; that of the process if None.

    Returns
    -------
    int
        Exit code.
    """
    options = parse(args)
    if options.out is None:
        print(f"No picture: {NO_MATPLOTLIB}", file=sys.stderr)
    X, y = make_payments(options.seed)
    split = train_test_split(X, y, test_size=0.5, stratify=y, random_state=options.seed)
    y_train, y_test = split[2:]
    print(f"Generated card payments, seed {options.seed}, {N_FEATURES} features; positive class: 1 (fraud)")
    print(f"train: {y_train.size} rows, {y_train.sum()} frauds; test: {y_test.size} rows, {y_test.sum()} frauds\n")
    models = LogisticRegression(), AUCClassifier(), PartialAUCClassifier(max_fpr=MAX_FPR)
    entries = [evaluate(model, split, options.seed) for model in models]
    print(format_table(entries))
    print(f"In brackets: 95 % intervals, stratified bootstrap of the test rows, {N_RESAMPLES} resamples\n")
    print(explain(entries) + "\n")
    if options.out is None:
        return 0
    try:
        draw(entries, y_test, options.out)
    except OSError as error:
        print(f"No picture: {options.out} could not be written ({error})", file=sys.stderr)
        return 1
    print(f"ROC curves: {options.out}")
    return 0


if __name__ == "__main__":
    run(main)
