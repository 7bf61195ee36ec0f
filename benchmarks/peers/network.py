"""Test partial AUC up to 1 % of false positives: a small network trained by cross-entropy and by ``PartialAUCLoss``.

The same network, optimizer, batch size and number of epochs for all; the epoch with the highest partial AUC on
validation rows is kept. A random half of each set is for tuning: the learning rate of every method, and one further
parameter of the two methods that are compared, are those with the best mean on the validation rows of its splits. The
other half is for the report: training, validation and test rows of splits that the tuning has not seen. Figures are
kept in ``results/network.jsonl``, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._shared.data import data_directory, load_real
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from rocmax.metrics import partial_auc_score
from rocmax.torch import PartialAUCLoss, StratifiedBatchSampler

# Name of a set, its file, the class that is positive if not that of the file, and the training rows.
SETS: dict[str, tuple[str, int | None, int]] = {
    "covtype, class 4": ("covtype", 4, 20_000),
    "covtype, class 5": ("covtype", 5, 20_000),
    "ijcnn1": ("ijcnn1", None, 10_000),
    "connect-4": ("connect-4", None, 10_000),
    "a9a": ("a9a", None, 10_000),
    "covtype, class 2": ("covtype", None, 10_000),
}
# Not looked at before the methods and their grids were fixed.
NEW = ("covtype, class 4", "connect-4")
MAX_FPR, BATCH, HIDDEN, EPOCHS = 0.01, 256, 64, 20
VALIDATION, TEST = 0.6, 40_000
TUNING, REPORT = range(2), range(10, 16)
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
RIVAL, RECIPE = "cross-entropy, stratified", "PartialAUCLoss, stratified"

# The further parameter: share of positives for cross-entropy, end of the window for the loss of the window.
METHODS: dict[str, tuple[float, ...]] = {
    "cross-entropy": (0.0,),
    RIVAL: (0.25, 0.5),
    RECIPE: (0.01, 0.05),
}

Part = tuple[Tensor, Tensor]


@cache
def loaded(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    file, positive, _ = SETS[name]
    data = load_real(file)
    if data is None:
        return None
    if positive is None:
        return data.X.astype(np.float32), data.y
    with np.load(data_directory() / f"{file}.npz") as z:
        return data.X.astype(np.float32), (z["label"] == positive).astype(np.int64)


def split(name: str, seed: int) -> list[Part]:
    """Draw rows for training, validation and test, from the half for tuning or that for the report."""
    data = loaded(name)
    assert data is not None
    X, y = data
    half = np.random.default_rng(0).permutation(y.size)[(0 if seed in TUNING else 1) :: 2]
    order = half[np.random.default_rng(seed).permutation(half.size)]
    rows = SETS[name][2]
    ends = [rows, rows + int(VALIDATION * rows), rows + int(VALIDATION * rows) + TEST]
    parts = np.split(order, ends)[:3]
    return [(torch.tensor(X[part]), torch.tensor(y[part], dtype=torch.float32)) for part in parts]


def batches(method: str, more: float, y: Tensor, generator: torch.Generator) -> Iterable[Any]:
    """Return what draws the batches of an epoch."""
    if "stratified" in method:
        return StratifiedBatchSampler(y, BATCH, positives=more if method == RIVAL else 0.25, generator=generator)
    return _Shuffled(y.numel(), generator)


class _Shuffled:
    def __init__(self, size: int, generator: torch.Generator) -> None:
        self.size, self.generator = size, generator

    def __iter__(self) -> Iterator[Tensor]:
        return iter(torch.randperm(self.size, generator=self.generator).split(BATCH))


def judged(net: nn.Module, part: Part) -> float:
    with torch.no_grad():
        scores = net(part[0])[:, 0]
    return 100 * partial_auc_score(part[1].numpy(), scores.numpy(), max_fpr=MAX_FPR)


def trained(name: str, method: str, rate: float, more: float, seed: int) -> tuple[float, float | None]:
    """Return the partial AUC of the best epoch on the validation rows, there and, in the report, on the test rows."""
    torch.manual_seed(seed)
    (X, y), validation, test = split(name, seed)
    net = nn.Sequential(
        nn.Linear(X.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=rate, fused=True)
    order = batches(method, more, y, torch.Generator().manual_seed(seed))
    loss = PartialAUCLoss(max_fpr=more) if method == RECIPE else nn.BCEWithLogitsLoss()
    best, state = -1.0, net.state_dict()
    for _ in range(EPOCHS):
        for rows in order:
            optimizer.zero_grad()
            loss(net(X[rows])[:, 0], y[rows]).backward()
            optimizer.step()
        reached = judged(net, validation)
        if reached > best:
            best, state = reached, copy.deepcopy(net.state_dict())
    net.load_state_dict(state)
    return best, None if seed in TUNING else judged(net, test)


def tuned(found: dict[Any, Any], name: str, method: str) -> tuple[float, float]:
    """Return the learning rate and the further parameter with the best mean on the validation rows for tuning."""

    def validated(pair: tuple[float, float]) -> float:
        return float(np.mean([found[name, method, *pair, seed][0] for seed in TUNING]))

    return max(product(RATES, METHODS[method]), key=validated)


def mean_and_error(values: np.ndarray, sign: str = "") -> str:
    return f"{values.mean():{sign}.1f} ± {values.std(ddof=1) / np.sqrt(values.size):.1f}"


def table(found: dict[Any, Any], name: str) -> str:
    scores, chosen = {}, {}
    for method in METHODS:
        chosen[method] = tuned(found, name, method)
        scores[method] = np.array([found[name, method, *chosen[method], seed][1] for seed in REPORT])
    rows = []
    for method, values in scores.items():
        rate, more = chosen[method]
        other = {RIVAL: f", {more:g} positives", RECIPE: f", window {more:g}"}.get(method, "")
        difference = "" if method == RIVAL else mean_and_error(values - scores[RIVAL], "+")
        rows.append([method, mean_and_error(values), difference, f"rate {rate:g}{other}"])
    return markdown([name, "100 x partial AUC", "minus the rival", "tuned"], rows)


def main(argv: list[str] | None = None) -> None:
    """Train, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS), help="only fill in these sets")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    sets = [name for name in SETS if name in args.sets and loaded(name) is not None]
    grid = [
        (name, method, rate, more, seed)
        for name in sets
        for method in METHODS
        for rate, more, seed in product(RATES, METHODS[method], TUNING)
    ]
    found, seconds = kept("network", grid, trained)
    report = [
        (name, method, *tuned(found, name, method), seed) for name in sets for method in METHODS for seed in REPORT
    ]
    more, more_seconds = kept("network", report, trained)
    found |= more
    rates = ", ".join(f"{rate:g}" for rate in RATES)
    sections = [
        running_time(seconds + more_seconds),
        f"FPR <= {MAX_FPR:g}, batches of {BATCH}, two hidden layers of {HIDDEN}, Adam, {EPOCHS} epochs, of which the "
        f"best one on the validation rows is kept. Learning rates from {rates}, tuned for every method on "
        f"{len(TUNING)} splits of one half of the rows; likewise a quarter or a half of positives for cross-entropy on "
        f"stratified batches, which is the rival, and the end of the window, 0.01 or 0.05, for `PartialAUCLoss`, with "
        f"a quarter of positives. Means over {len(REPORT)} splits of the other half, with standard errors; differences "
        f"are paired. The methods and grids were fixed after looking at other splits of the sets, but for "
        f"{' and '.join(NEW)}, which were first used here. torch {torch.__version__}, one thread.",
    ]
    for name in sets:
        share = 100 * loaded(name)[1].mean()
        rows = [part[1].numel() for part in split(name, REPORT[0])]
        counts = "{} rows for training, {} for validation, {} for the test".format(*rows)
        sections.append(f"{share:.2g} % positives; {counts}.\n\n{table(found, name)}")
    print("\n\n".join(sections))
    if len(sets) == len(SETS):
        publish("network", "A small network by cross-entropy and by the partial AUC", sections)


if __name__ == "__main__":
    main()
