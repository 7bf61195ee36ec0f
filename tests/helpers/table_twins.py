"""Small generated tables that are awkward in the same ways as real ones, with the plans of their columns."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rocmax.tables import Columns, Reading

N_ROWS = 300


def _rng():
    return np.random.default_rng(0)


def churn():
    """An identifier of letters and digits, and blanks in a column of numbers."""
    rng = _rng()
    letters = np.array(list("ABCDEFGHJKLMNPQRSTUVWXYZ"))
    total = pd.Series(rng.uniform(20, 8000, N_ROWS).round(2)).astype(str)
    total[::60] = " "
    return pd.DataFrame(
        {
            "customerID": [f"{i * 31 % 9973:04d}-{''.join(rng.choice(letters, 5))}" for i in range(N_ROWS)],
            "senior": rng.integers(0, 2, N_ROWS),
            "contract": rng.choice(["Month-to-month", "One year", "Two year"], N_ROWS),
            "tenure": rng.integers(0, 73, N_ROWS),
            "total": total,
            "churn": rng.choice(["No", "Yes"], N_ROWS),
        }
    )


def passengers():
    """Row numbers, names, tickets of which few are shared, and cabins of which most are missing."""
    rng = _rng()
    cabins = [f"{rng.choice(list('ABCDE'))}{rng.integers(1, 120)}" if i % 4 == 0 else None for i in range(N_ROWS)]
    return pd.DataFrame(
        {
            "passenger": np.arange(1, N_ROWS + 1),
            "survived": rng.integers(0, 2, N_ROWS),
            "class": rng.integers(1, 4, N_ROWS),
            "name": [f"Number{i}, Mr. {rng.choice(['Owen', 'John', 'Karl'])}" for i in range(N_ROWS)],
            "ticket": [str(t) if t % 3 else f"PC {t}" for t in rng.integers(10_000, 10_400, N_ROWS)],
            "fare": rng.uniform(5, 100, N_ROWS).round(2),
            "cabin": cabins,
            "port": rng.choice(["S", "C", "Q"], N_ROWS),
        }
    )


def census():
    """A space before each value, and ? for missing ones."""
    rng = _rng()
    work = rng.choice([" Private", " State-gov", " ?"], N_ROWS)
    work[:20] = " ?"
    return pd.DataFrame(
        {
            "age": [f" {age}" for age in rng.integers(17, 90, N_ROWS)],
            "weight": [f" {weight}" for weight in rng.integers(12_000, 400_000, N_ROWS)],
            "work": work,
            "income": rng.choice([" <=50K", " >50K"], N_ROWS),
        }
    )


def credit():
    """Codes for categories, amounts of which nearly all are distinct, and labels 1 and 2."""
    rng = _rng()
    return pd.DataFrame(
        {
            "checking": rng.choice(["A11", "A12", "A13", "A14"], N_ROWS),
            "amount": rng.lognormal(8, 0.7, N_ROWS).round().astype(int),
            "rate": rng.integers(1, 5, N_ROWS),
            "risk": rng.choice([1, 2], N_ROWS, p=[0.7, 0.3]),
        }
    )


def horses():
    """A hospital number, ? in columns of numbers, codes with leading zeros, and a row without a label."""
    rng = _rng()
    temperature = pd.Series(rng.normal(38, 1, N_ROWS).round(1)).astype(str)
    temperature[:90] = "?"
    pulse = pd.Series(rng.integers(30, 120, N_ROWS)).astype(str)
    pulse[10] = "?"
    outcome = pd.Series(rng.integers(1, 4, N_ROWS)).astype(str)
    outcome[N_ROWS - 1] = "?"
    return pd.DataFrame(
        {
            "hospital": 530_000 + rng.choice(5_000, N_ROWS),
            "temperature": temperature,
            "pulse": pulse,
            "lesion": rng.choice(["00000", "02208", "03111", "11300"], N_ROWS),
            "outcome": outcome,
        }
    )


def calls():
    """A blank in the name of the target, months as text, and -1 for never."""
    rng = _rng()
    return pd.DataFrame(
        {
            "balance": rng.normal(1000, 3000, N_ROWS).round().astype(int),
            "month": rng.choice(["may", "jun", "jul"], N_ROWS),
            "pdays": np.where(rng.random(N_ROWS) < 0.8, -1, rng.integers(1, 400, N_ROWS)),
            "called": [f"{day:02d}/{month:02d}/2024" for day, month in rng.integers(1, [29, 13], (N_ROWS, 2))],
            "term deposit": rng.choice(["no", "yes"], N_ROWS),
        }
    )


TWINS = {
    "churn": (
        churn,
        {"target": "churn"},
        {"number": "senior tenure total:5", "category": "contract", "left out": {"customerID": "identifier"}},
    ),
    "passengers": (
        passengers,
        {"target": "survived"},
        {
            "number": "class fare",
            "category": "port",
            "left out": dict.fromkeys(["passenger", "name", "ticket", "cabin"], "identifier"),
        },
    ),
    "census": (
        census,
        {"target": "income", "positive": ">50K"},
        {"number": "age weight", "category": "work", "left out": {}},
    ),
    "credit": (
        credit,
        {"target": "risk", "positive": 2},
        {"number": "amount rate", "category": "checking", "left out": {}},
    ),
    "horses": (
        horses,
        {"target": "outcome", "positive": 2, "reading": Reading(na="?", skip_unlabeled=True)},
        {"number": "temperature:90 pulse:1", "category": "lesion", "left out": {"hospital": "identifier"}},
    ),
    "calls": (
        calls,
        {"target": "term deposit"},
        {"number": "balance pdays", "category": "month", "left out": {"called": "date"}},
    ),
    "calls with dates": (
        calls,
        {"target": "term deposit", "columns": Columns(date="called")},
        {"number": "balance pdays", "category": "month", "date": "called", "left out": {}},
    ),
}
