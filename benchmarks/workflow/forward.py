"""Limits and reported results on later rows, by fits with random and with forward splits.

``python -m benchmarks.workflow.forward [--sets NAME ...] [--weather weather.csv]`` adds to
benchmarks/results/forward.jsonl, and writes forward.md.

A table is in the order of time. Models are fitted to the rows before a cut, and judged on the rows after it, which no
fit sees: the false-positive rate at the saved threshold over its limit of 5 % (with confidence 0.95), whether the
partial AUC lies in the interval that the fit reported, and whether ``auto`` chose the family that is better there.
"Random" fits know no times, as rocmax fit did without them; "forward" fits get the column with the times.

Generated tables have a known truth: in the negatives, one direction of the features moves. The weather of Bellevue
(daily, 1949 to 1999) is weather.csv in the source distribution of scikit-multiflow 0.1.0; in an environment with numpy,
``pip download --no-deps --no-binary :all: --no-build-isolation scikit-multiflow==0.1.0`` fetches it.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._shared.data import data_directory
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from rocmax.metrics import partial_auc_score, positive_scores
from rocmax.tables import Columns, Running, fit_table

MAX_FPR, CONFIDENCE = 0.05, 0.95
# Share of the rows before the cut; the rows after it, up to this share of all, are the later ones.
CUTS = (0.5, 0.7)
# Cuts at which nothing was chosen, for the prediction interval.
FRESH = (0.4, 0.6)
LATER = 0.3
DRIFTS = ("gradual", "abrupt", "seasonal")
REAL = ("bank-full", "electricity", "weather", "covtype")
FAMILIES = ("linear", "boosted")
WAYS = ("random", "forward")
N_ROWS = 30_000
COLUMNS = ["table", "cut", "model", "splits", "reported partial AUC", "predicted", "later", "reported FPR", "later FPR"]
COLUMNS += ["later FPR over the limit", "p"]


def drifting(kind: str, seed: int = 0) -> pd.DataFrame:
    """Return rows of five years of which 5 % are positive; the negatives move along the direction of the positives.

    The rate above a fixed threshold grows slowly ("gradual"), jumps once after 60 % of the time ("abrupt"), or goes up
    and down with the seasons ("seasonal").
    """
    rng = np.random.default_rng(seed)
    share = np.sort(rng.random(N_ROWS))
    positive = rng.random(N_ROWS) < 0.05
    moved = {
        "gradual": 0.6 * share,
        "abrupt": 0.5 * (share > 0.6),
        "seasonal": 0.3 * np.sin(2 * np.pi * 5 * share),
    }[kind]
    X = rng.normal(size=(N_ROWS, 8))
    X[:, 0] += np.where(positive, 1.5, moved)
    X[:, 1] += np.where(positive, 1.0, 0.5 * moved)
    start = np.datetime64("2020-01-01", "s")
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    return frame.assign(
        time=start + (share * 5 * 365 * 86_400).astype("timedelta64[s]"), label=np.where(positive, "1", "0")
    )


def ordered(name: str, weather: str | None) -> pd.DataFrame | None:
    """Return a table with the columns time and label, in the order of time; None if its file is absent."""
    if name in DRIFTS:
        return drifting(name)
    if name == "covtype":
        path = data_directory() / "covtype.npz"
        if not path.exists():
            return None
        with np.load(path) as z:
            # Every thirtieth row, in the order of the file.
            X, y = z["X"][::30].astype(np.float64), z["y_psam"][::30]
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
        return frame.assign(time=np.arange(len(frame)), label=y.astype(str))
    if name == "weather":
        if weather is None or not Path(weather).exists():
            return None
        frame = pd.read_csv(weather).rename(columns={"target": "label"})
        return frame.assign(time=np.arange(len(frame)), label=frame["label"].astype(str))
    path = data_directory() / "tables" / f"{name}.csv.gz"
    if not path.exists():
        return None
    frame = pd.read_csv(path)
    if name == "bank-full":
        frame = frame.drop(columns="duration").rename(columns={"term deposit": "label"})
        return frame.assign(time=np.arange(len(frame)), label=(frame["label"] == "yes").astype(int).astype(str))
    frame = frame.rename(columns={"price_goes": "label"})
    return frame.assign(time=pd.to_datetime(frame["time"]), label=(frame["label"] == "up").astype(int).astype(str))


def judged(name: str, cut: float, way: str, model: str, weather: str | None) -> dict[str, Any] | None:
    """Return what a fit to the rows before the cut reports, and its results on the rows after it."""
    frame = ordered(name, weather)
    if frame is None:
        return None
    n_before, n_all = round(cut * len(frame)), round((cut + LATER) * len(frame))
    before, after = frame.iloc[:n_before], frame.iloc[n_before:n_all]
    columns = Columns(target="label", positive="1", **({"time": "time"} if way == "forward" else {"drop": "time"}))
    fitted = fit_table(
        before, columns=columns, max_fpr=MAX_FPR, confidence=CONFIDENCE, model=model, running=Running(threads=1)
    )
    positive = (after["label"] == "1").to_numpy()
    scores = positive_scores(fitted, after)
    facts = fitted.facts
    return {
        "family": facts.family,
        "reported": facts.held_out["value"],
        "low": facts.held_out["low"],
        "high": facts.held_out["high"],
        "predicted": facts.later,
        "reported fpr": facts.at_threshold["fpr"],
        "later": partial_auc_score(positive, scores, max_fpr=MAX_FPR),
        "later fpr": float((scores > 0)[~positive].mean()),
        "later tpr": float((scores > 0)[positive].mean()),
        "p": (facts.resemblance or {}).get("p_value"),
    }


def predictions(found: dict[Any, Any]) -> list[list[str]]:
    """Return how often intervals of forward fits contain the later value, for the cuts of the choice and for others."""
    rows = []
    for cuts in (CUTS, FRESH):
        some = [
            each
            for (_, cut, way, model), each in found.items()
            if cut in cuts and way == "forward" and model in FAMILIES
        ]
        some = [each for each in some if each is not None and each["predicted"] is not None]
        inside = [each["predicted"]["low"] <= each["later"] <= each["predicted"]["high"] for each in some]
        widths = [each["predicted"]["high"] - each["predicted"]["low"] for each in some]
        reported = [each["low"] <= each["later"] <= each["high"] for each in some]
        share, usual = (f"{100 * np.mean(hits):.0f} % of {len(some)}" for hits in (inside, reported))
        rows.append([", ".join(map(str, cuts)), share, f"{np.median(widths):.2f}", usual])
    return rows


def report(found: dict[Any, Any], seconds: float) -> None:
    """Write the page."""
    cells = sorted({job[:2] for job in found}, key=lambda cell: ((*DRIFTS, *REAL).index(cell[0]), cell[1]))
    rows, ratios, inside, right = [], {}, {way: [] for way in WAYS}, {way: [] for way in WAYS}
    for name, cut in cells:
        for way in WAYS:
            models = {model: found.get((name, cut, way, model)) for model in (*FAMILIES, "auto")}
            if None in models.values():
                continue
            for family in FAMILIES:
                entry = models[family]
                ratio = entry["later fpr"] / MAX_FPR
                ratios.setdefault((way, name), []).append(ratio)
                inside[way].append(entry["low"] <= entry["later"] <= entry["high"])
                ends = entry["predicted"]
                rows.append(
                    [
                        name,
                        f"{cut:g}",
                        family,
                        way,
                        f"{entry['reported']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}]",
                        "-" if ends is None else f"[{ends['low']:.3f}, {ends['high']:.3f}]",
                        f"{entry['later']:.3f}",
                        f"{100 * entry['reported fpr']:.1f} %",
                        f"{100 * entry['later fpr']:.1f} %",
                        f"{ratio:.2f}",
                        "-" if entry["p"] is None else f"{entry['p']:.1g}",
                    ]
                )
            best = max(FAMILIES, key=lambda family: models[family]["later"])
            chosen = models["auto"]["family"]
            loss = max(entry["later"] for entry in models.values()) - models["auto"]["later"]
            right[way].append((chosen == best or chosen not in FAMILIES, loss))
    sets = list(dict.fromkeys(name for name, _ in cells))
    summary = [
        [name, *(f"{np.median(ratios[way, name]):.2f}" for way in WAYS)] for name in sets if ("random", name) in ratios
    ]
    by_way = {way: [value for (of, _), values in ratios.items() if of == way for value in values] for way in WAYS}
    summary.append(["all", *(f"{np.median(by_way[way]):.2f}" for way in WAYS)])
    outcome = [
        [
            way,
            f"{100 * np.mean(inside[way]):.0f} % of {len(inside[way])}",
            f"{sum(hit for hit, _ in right[way])} of {len(right[way])}",
            f"{np.mean([loss for _, loss in right[way]]):.4f}",
        ]
        for way in WAYS
    ]
    publish(
        "forward",
        "Limits and reports on later rows",
        [
            running_time(seconds),
            f"Fits to the rows before a cut (share of the rows: {', '.join(map(str, CUTS))}), judged on the next "
            f"{100 * LATER:g} % of the rows. Limit on the false-positive rate: {100 * MAX_FPR:g} % with confidence "
            f"{CONFIDENCE:g}. The truth of the tables gradual, abrupt and seasonal is known: see the script.",
            "False-positive rate on the later rows divided by the limit, median over cuts and families:",
            markdown(["table", *WAYS], summary),
            "The reported interval contains the later partial AUC; `auto` chose the family of the two that is better "
            "on the later rows (or the additive one); mean partial AUC that the choice loses to the best of the three "
            "models:",
            markdown(["splits", "in the interval", "right family", "loss"], outcome),
            "The prediction interval of forward fits for a later period. Its number of periods was chosen after a look "
            f"at the cuts {' and '.join(map(str, CUTS))}, and not at the others:",
            markdown(["cuts", "later value inside", "median width", "reported interval"], predictions(found)),
            "All fits; p is that of the test whether the test rows resemble the calibration rows:",
            markdown(COLUMNS, rows),
        ],
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=[*DRIFTS, *REAL])
    parser.add_argument("--weather")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # starting points that stop early, which their scores show
    jobs = [
        (name, cut, way, model) for name in args.sets for cut in CUTS for way in WAYS for model in (*FAMILIES, "auto")
    ]
    jobs += [(name, cut, "forward", model) for name in args.sets for cut in FRESH for model in FAMILIES]
    report(*kept("forward", jobs, lambda *job: judged(*job, args.weather)))


if __name__ == "__main__":
    main()
