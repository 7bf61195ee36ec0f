"""Test measures by training time: mini-batch methods compared with the batch solver.

The plots correspond to Figures 1 and 2 of Kar, Narasimhan and Jain, "Online and stochastic gradient methods for
non-decomposable loss functions", NIPS 2014. The curves are read from ``benchmarks/results/minibatch.jsonl``, which
``benchmarks/solvers/minibatch.py`` writes; ``--curves`` selects another file. The mini-batch methods are close to the
batch solution within the first pass over the data. The batch solver often reaches a good model only in its last
iterations.
"""

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

CURVES = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "minibatch.jsonl"
METHODS = {"batch": ("#0072B2", "s--"), "1PMB": ("#D55E00", "o-"), "2PMB": ("#009E73", "^-")}
MEASURES = {"partial_auc": "partial AUC [0, 0.1]", "precision_at_k": "precision at k", "f_beta": "F1"}


def read(path: Path) -> dict[tuple[str, str, str], list[tuple[float, float]]]:
    """Return the points of each data set, measure and method."""
    curves: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        point = json.loads(line)
        key = point["set"], point["measure"], point["method"]
        curves.setdefault(key, []).append((point["seconds"], point["score"]))
    return curves


def main() -> None:
    """Plot one panel for each data set and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curves", type=Path, default=CURVES)
    parser.add_argument("--out", default="minibatch_time.png")
    args = parser.parse_args()
    curves = read(args.curves)
    sets = list(dict.fromkeys(name for name, _, _ in curves))
    figure, axes = plt.subplots(
        len(MEASURES), len(sets), figsize=(3 * len(sets), 7.6), layout="constrained", squeeze=False
    )
    for row, (measure, title) in zip(axes, MEASURES.items(), strict=True):
        for panel, name in zip(row, sets, strict=True):
            panel.axhline(curves[name, measure, "batch"][-1][1], color="0.7", linewidth=1)
            for method, (color, style) in METHODS.items():
                seconds, scores = zip(*sorted(curves[name, measure, method]), strict=True)
                panel.plot(seconds, scores, style, color=color, markersize=3.5, linewidth=1.2, label=method)
            panel.set(xscale="log")
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel(f"test {title}")
    for panel, name in zip(axes[0], sets, strict=True):
        panel.set_title(name)
    for panel in axes[-1]:
        panel.set_xlabel("CPU seconds")
    axes[0, 0].legend(frameon=False, loc="lower right", fontsize=9)
    figure.savefig(args.out, dpi=120)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
