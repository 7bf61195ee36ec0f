"""Demo on generated card payments: ``rocmax demo [--out rocmax_demo.png] [--seed 0]``.

Three linear models are fitted to the same rows: logistic regression, a model trained for the AUC, and a model trained
for the partial AUC below a limit on the false-positive rate. The demo prints their measures on held-out rows and plots
the ROC curves. It uses `rocmax.tables` and `rocmax.displays`.
"""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._files import check_output, write_file
from rocmax._support import Array, Message, Parameter, ParameterError, need
from rocmax.displays import PartialROCDisplay
from rocmax.tables import TableEvaluation, TableModel, evaluate, fit_table
from rocmax.tables.evaluate import N_RESAMPLES

# Limit on false alarms: at most one of 100 honest payments may be stopped.
MAX_FPR = 0.01
LIMIT = f"{MAX_FPR:.0%}".replace("%", " %")
N_ROWS = 40_000
FORMATS = (".png", ".pdf", ".svg")
PICTURE = "rocmax_demo.png"
NO_MATPLOTLIB = "plots require matplotlib: pip install 'rocmax[plot]'"

# Names of the models in the workflow, and of their classes.
MODELS = {"logistic": "LogisticRegression", "auc": "AUCClassifier", "auto": "PartialAUCClassifier"}


@dataclass(frozen=True)
class Entry:
    """Model and its evaluation on the test rows."""

    name: str
    model: TableModel
    result: TableEvaluation

    def value(self, measure: str) -> float:
        """Return the value of a measure on the test rows."""
        result: float = self.result.measures[measure]["value"]
        return result

    def row(self) -> tuple[str, ...]:
        """Return the cells of the model in the table."""
        found = [self.result.measures[name] for name in ("roc_auc", "partial_auc", "tpr_at_fpr")]
        cells = [f"{m['value']:.3f} [{m['low']:.3f}, {m['high']:.3f}]" for m in found]
        return self.name, *cells, f"{self.model.facts.seconds:.1f} s"


def make_payments(seed: int) -> tuple[Array, NDArray[np.int_]]:
    """Generate payments with 20 features, label 1 for fraud, which is 5 % of them.

    Features 0 to 4 measure activity, features 5 to 10 indicate specific kinds of fraud, and the others are noise. All
    features are correlated and heavy-tailed. Half of the frauds have slightly higher activity (*takeover*), 40 % have
    high values of specific indicators (*card testing*), and the others have both. A few honest customers are more
    active than most frauds (*travellers*). Activity therefore separates fraud from most payments, but it is misleading
    near the top of the ranking.
    """
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((N_ROWS, 3)) @ rng.normal(0.0, 0.4, (3, 20))
    # Scale each row so that it follows Student's t distribution with 8 degrees of freedom.
    tail = np.sqrt(8.0 / rng.chisquare(8.0, (N_ROWS, 1)))
    X = (rng.standard_normal(factors.shape) + factors) * tail
    y = (np.arange(N_ROWS) < N_ROWS // 20).astype(np.int_)
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


def compare_on(table: Any, seed: int) -> list[Entry]:
    """Fit every model to one half of the rows and evaluate it on the other half."""
    entries = []
    for name, title in MODELS.items():
        model = fit_table(
            table, target="fraud", max_fpr=MAX_FPR, model=name, tune=False, test_size=0.5, random_state=seed
        )
        entries.append(Entry(title, model, evaluate(model, table.iloc[model.held_out_rows])))
    return entries


def format_table(entries: Sequence[Entry]) -> str:
    """Return the measures of all models as aligned text."""
    rows: list[tuple[str, ...]] = [("model", "AUC", f"partial AUC, FPR <= {LIMIT}", f"TPR at FPR <= {LIMIT}", "fit")]
    rows += [entry.row() for entry in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def explain(entries: Sequence[Entry]) -> str:
    """Return a summary of the table."""
    base, _, partial = entries
    best = max(entries, key=lambda entry: entry.value("roc_auc"))
    caught, before, there = (round(100 * entry.value("tpr_at_fpr")) for entry in (partial, base, best))
    return (
        f"If at most {LIMIT} of the honest payments may be stopped, {partial.name} catches {caught} of 100 "
        f"frauds\nand {base.name} {before}. The best AUC belongs to {best.name}, which catches "
        f"{there} there:\na high AUC says little about the few false alarms one can afford."
    )


def draw(entries: Sequence[Entry], seed: int, out: Path) -> None:
    """Write the plot of the ROC curves to a file."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(7.6, 7.5), layout="constrained").subplots()
    scores: dict[str, Any] = {entry.name: entry.result.scores for entry in reversed(entries)}
    options: dict[str, Any] = {"max_fpr": MAX_FPR, "measure": "tpr_at_fpr", "n_resamples": 200, "random_state": seed}
    display = PartialROCDisplay.from_predictions(entries[0].result.is_positive, scores, ax=axes, **options)
    axes.set(xlabel="False alarms: honest payments stopped (FPR)", ylabel="Frauds caught (TPR)")
    content = io.BytesIO()
    display.figure_.savefig(content, dpi=150, format=out.suffix[1:].lower())
    write_file(out, content.getvalue())


def picture_file(out: Path | None) -> Path | None:
    """Return the file to draw, None without matplotlib; raise an error if a given file cannot be drawn or written."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError as error:
        if out is not None:
            raise ImportError(NO_MATPLOTLIB) from error
        return None
    path = Path(PICTURE) if out is None else out
    if path.suffix.lower() not in FORMATS:
        raise ParameterError(
            Message(Parameter("out"), f" must be a file that ends in {', '.join(FORMATS)}; got {str(path)!r}")
        )
    check_output(path)
    return path


def main(out: Path | None = None, seed: int = 0) -> None:
    """Run the demo: print the table, and draw the curves if matplotlib is installed."""
    picture = picture_file(out)
    if picture is None:
        print(f"No plot: {NO_MATPLOTLIB}", file=sys.stderr)
    X, y = make_payments(seed)
    table = need("pandas").DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(fraud=y)
    print(f"Generated card payments, seed {seed}, {X.shape[1]} features; positive class: 1 (fraud)")
    entries = compare_on(table, seed)
    test = y[entries[0].model.held_out_rows]
    train_size, train_frauds = y.size - test.size, y.sum() - test.sum()
    print(f"train: {train_size} rows, {train_frauds} frauds; test: {test.size} rows, {test.sum()} frauds\n")
    print(format_table(entries))
    print(f"In brackets: 95 % intervals, stratified bootstrap of the test rows, {N_RESAMPLES} resamples\n")
    print(explain(entries) + "\n")
    if picture is not None:
        draw(entries, seed, picture)
        print(f"ROC curves: {picture}")
