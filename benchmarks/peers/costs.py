"""What decisions save with costs of each row: rocmax, Empulse and LightGBM with the threshold on probabilities.

``python -m benchmarks.peers.costs [--seeds 5]`` writes benchmarks/results/costs.md; it needs Empulse, whose package has
two of the tables. A cell is a table and a seed: at most ``--rows`` training rows (two thirds of a smaller table) and at
most 20,000 test rows, both stratified. All methods see all columns, those with costs included, and all training rows;
text is one-hot encoded and, for the linear model of Empulse, numbers are standardized. The savings are those of
`rocmax.costs.expected_cost` on the test rows. Figures are kept in ``results/costs.jsonl``.
"""

from __future__ import annotations

import argparse
import gzip
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from empulse import datasets
from empulse.models import CSBoostClassifier, CSLogitClassifier, CSThresholdClassifier
from lightgbm import LGBMClassifier
from scipy.special import expit
from sklearn.model_selection import train_test_split

from benchmarks._shared.data import data_directory
from benchmarks._shared.kept import kept, running_time
from benchmarks._shared.results import markdown, publish
from rocmax.costs import CaseCosts, Costs, expected_cost
from rocmax.tables import Columns, Limits, Running, fit_table

OURS = "rocmax boosted"
OTHERS = ("Empulse CSBoost", "Empulse CSThreshold", "Empulse CSLogit", "LightGBM, each row", "LightGBM, one threshold")
TARGET = "target"


def credit() -> tuple[pd.DataFrame, Costs]:
    """Return loans with what their default, and the refusal of a good one, costs by the data set of Empulse."""
    found = datasets.load_vub_credit_scoring(backend="pandas")
    costs = {"loss": found.instance_costs["cl"], "profit": found.instance_costs["fp_cost"]}
    return found.data.assign(**costs, target=np.asarray(found.target)), Costs(false_alarm="profit", miss="loss")


def telemarketing() -> tuple[pd.DataFrame, Costs]:
    """Return calls that cost 1, and what a term deposit of a quarter of the balance earns in a year."""
    found = datasets.load_upsell_bank_telemarketing(backend="pandas")
    earned = 0.25 * 0.0246 * found.data["balance"].clip(lower=0)
    return found.data.assign(earned=earned, target=np.asarray(found.target)), Costs(miss="earned", review=1)


def churn() -> tuple[pd.DataFrame, Costs] | None:
    """Return customers whose churn costs a monthly bill, with an offer of 20 and calls of 1; None without the file."""
    path = data_directory() / "tables" / "telco-churn.csv.gz"
    if not path.exists():
        return None
    with gzip.open(path) as file:
        frame = pd.read_csv(file, na_values=[" "]).drop(columns="customerID")
    frame[TARGET] = (frame.pop("Churn") == "Yes").astype(int)
    return frame, Costs(false_alarm=20, miss="MonthlyCharges", review=1)


def payments() -> tuple[pd.DataFrame, Costs]:
    """Return generated payments: frauds are rare, half of their signal is an interaction, and amounts vary widely."""
    rng = np.random.default_rng(0)
    n = 40_000
    a, b, c, d = rng.normal(size=(4, n))
    amount = rng.lognormal(4.0, 1.2, n)
    risk = -5.5 + 1.2 * a + 1.5 * b * c + 0.4 * (np.log(amount) - 4.0)
    fraud = (rng.random(n) < expit(risk)).astype(int)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "amount": amount.round(2), TARGET: fraud})
    return frame, Costs(miss="amount", review=10)


TABLES = {"credit": credit, "telemarketing": telemarketing, "churn": churn, "payments (generated)": payments}


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the features as numbers, with a column for each category."""
    found = pd.get_dummies(frame.drop(columns=TARGET), dtype=float)
    return found.set_axis([f"x{i}" for i in range(found.shape[1])], axis=1)


def decisions(
    train: pd.DataFrame, test: pd.DataFrame, costs: Costs, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, bool]]:
    """Return which test rows each method flags, and how the fit of rocmax chose to do so."""
    limits = Limits(costs=costs)
    plain: dict[str, Any] = {"target": TARGET, "positive": 1, "model": "boosted", "random_state": seed}
    texts = Columns(text=list(train.select_dtypes(exclude=["number", "bool"]).columns))
    model = fit_table(train, limits=limits, columns=texts, running=Running(refit=True), **plain)
    found = {OURS: model.predict(test) == 1}
    every = numbers(pd.concat([train, test])).fillna(0.0)
    X, X_test, y = every[: len(train)], every[len(train) :], train[TARGET].to_numpy()
    case, case_test = costs.of(train), costs.of(test)
    matrix, matrix_test = of_empulse(case), of_empulse(case_test)
    trees = LGBMClassifier(verbose=-1, n_jobs=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        boosted = CSBoostClassifier(trees).fit(X, y, **matrix)
        found["Empulse CSBoost"] = boosted.predict(X_test) == 1
        chosen = CSThresholdClassifier(trees, random_state=seed).fit(X, y, **matrix)
        found["Empulse CSThreshold"] = chosen.predict(X_test, **matrix_test) == 1
        scale = X.std().replace(0.0, 1.0)
        linear = CSLogitClassifier().fit((X - X.mean()) / scale, y, **matrix)
        found["Empulse CSLogit"] = linear.predict((X_test - X.mean()) / scale) == 1
    share = trees.fit(X, y).predict_proba(X_test)[:, 1]
    alert, miss = case_test.false_alarm + case_test.review, case_test.miss + case_test.false_alarm
    found["LightGBM, each row"] = share * miss > alert
    means = [float(values.mean()) for values in (case.false_alarm + case.review, case.miss + case.false_alarm)]
    found["LightGBM, one threshold"] = share > means[0] / means[1]
    assert model.facts.savings is not None
    return found, {name: model.facts.savings[name] for name in ("per_case", "weighted")}


def of_empulse(case: CaseCosts) -> dict[str, np.ndarray]:
    """Return costs as Empulse takes them."""
    return {"tp_cost": case.review, "fp_cost": case.review + case.false_alarm, "fn_cost": case.miss}


def savings(name: str, seed: int, rows: int) -> dict[str, Any] | None:
    """Return the savings of each method on one split; None if the table is absent."""
    loaded = TABLES[name]()
    if loaded is None:
        return None
    frame, costs = loaded
    labels = frame[TARGET]
    train, test = train_test_split(
        frame, train_size=min(rows, labels.size * 2 // 3), stratify=labels, random_state=seed
    )
    if len(test) > 20_000:
        test, _ = train_test_split(test, train_size=20_000, stratify=test[TARGET], random_state=seed)
    case, positive = costs.of(test), test[TARGET].to_numpy() == 1
    flags, how = decisions(train, test, costs, seed)
    saved = {method: expected_cost(case, positive, flagged, n_resamples=2).savings for method, flagged in flags.items()}
    return {"rows": len(train), "positives": int(train[TARGET].sum()), **how, "savings": saved}


def main() -> None:
    """Compute the cells that are not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=8000)
    args = parser.parse_args()
    jobs = [(name, seed, args.rows) for seed in range(args.seeds) for name in TABLES]
    found, seconds = kept("costs", jobs, savings)
    lines = []
    for name in TABLES:
        cells = [cell for job, cell in found.items() if job[0] == name]
        if not cells:
            continue
        values = {method: np.array([cell["savings"][method] for cell in cells]) for method in (OURS, *OTHERS)}
        errors = {method: np.std(values[OURS] - values[method], ddof=1) / len(cells) ** 0.5 for method in OTHERS}
        texts = [f"{values[m].mean():.1%} ({(values[OURS] - values[m]).mean():+.1%} ± {errors[m]:.1%})" for m in OTHERS]
        sizes = [str(cells[0]["rows"]), str(cells[0]["positives"])]
        sizes += [f"{sum(cell[how] for cell in cells)} of {len(cells)}" for how in ("per_case", "weighted")]
        lines.append([name, *sizes, f"{values[OURS].mean():.1%}", *texts])
    packages = ", ".join(f"{name} {version(name)}" for name in ("empulse", "lightgbm"))
    publish("costs", "Savings with costs of each row", [
        running_time(seconds),
        f"Mean savings on the test rows over {args.seeds} random splits, with {packages}: the part of the cost of the "
        "better of two constant decisions, flag none and flag all, that a method saves. In parentheses: the savings of "
        "rocmax minus those of the other, with the standard error over the splits. `rocmax boosted` is "
        "`fit_table(..., model=\"boosted\", limits=Limits(costs=...))` with a refit to all training rows. CSBoost and "
        "CSLogit are trained for the cost; CSThreshold calibrates LightGBM and has a threshold for each row. LightGBM "
        "has its defaults, and the threshold at which an alert pays, for each row or for the mean costs. `own` and "
        "`weights`: splits in which rocmax chose a threshold for each row, and a fit with the costs as weights.",
        markdown(["table", "rows", "positives", "own", "weights", OURS, *OTHERS], lines),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
