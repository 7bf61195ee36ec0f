"""
Mini-batches against time
=========================

Test measures by training time, as in Figures 1 and 2 of Kar, Narasimhan and Jain, "Online and stochastic gradient
methods for non-decomposable loss functions", NIPS 2014. The mini-batch methods are close to the batch solution within
the first pass over the data. The batch solver often reaches a good model only in its last iterations.
"""

# %%
# The measurements take minutes, so they are read from a file of the repository, which ``python -m
# benchmarks.solvers.minibatch`` writes.

import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

here = Path.cwd()
root = next(folder for folder in (here, *here.parents) if (folder / "benchmarks" / "results").is_dir())
curves = {}
for line in (root / "benchmarks" / "results" / "minibatch.jsonl").read_text(encoding="utf-8").splitlines():
    point = json.loads(line)
    key = point["set"], point["measure"], point["method"]
    curves.setdefault(key, []).append((point["seconds"], point["score"]))

# %%
# 1PMB steps on batches of all rows, 2PMB compares batches of negatives with a sample of positives. The gray line is the
# batch solution.

METHODS = {"batch": ("#0072B2", "s--"), "1PMB": ("#D55E00", "o-"), "2PMB": ("#009E73", "^-")}
MEASURES = {"partial_auc": "partial AUC [0, 0.1]", "precision_at_k": "precision at k", "f_beta": "F1"}
sets = list(dict.fromkeys(name for name, _, _ in curves))
figure, axes = plt.subplots(len(MEASURES), len(sets), figsize=(3 * len(sets), 7.6), layout="constrained", squeeze=False)
for row, (measure, title) in zip(axes, MEASURES.items(), strict=True):
    for ax, name in zip(row, sets, strict=True):
        ax.axhline(curves[name, measure, "batch"][-1][1], color="0.7", linewidth=1)
        for method, (color, style) in METHODS.items():
            seconds, scores = zip(*sorted(curves[name, measure, method]), strict=True)
            ax.plot(seconds, scores, style, color=color, markersize=3.5, linewidth=1.2, label=method)
        ax.set(xscale="log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.spines[["top", "right"]].set_visible(False)
    row[0].set_ylabel(f"test {title}")
for ax, name in zip(axes[0], sets, strict=True):
    ax.set_title(name)
for ax in axes[-1]:
    ax.set_xlabel("CPU seconds")
axes[0, 0].legend(frameon=False, loc="lower right", fontsize=9)
plt.show()
