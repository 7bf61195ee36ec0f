"""Plans of the columns of real tables, as a careful analyst would choose them, and of small tables like them.

The plans were written by hand, before the code: for each kind, the columns that are used, with the number
of missing values where there are any, and the columns that are left out.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helpers.table_twins import TWINS
from rocmax.tables import Columns, Reading, plan_columns

TABLES = Path(os.environ.get("ROCMAX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "tables"

TELCO = {
    "number": "SeniorCitizen tenure MonthlyCharges TotalCharges:11",
    "category": """gender Partner Dependents PhoneService MultipleLines InternetService OnlineSecurity OnlineBackup
        DeviceProtection TechSupport StreamingTV StreamingMovies Contract PaperlessBilling PaymentMethod""",
    "left out": {"customerID": "identifier"},
}
TITANIC = {
    "number": "Pclass Age:177 SibSp Parch Fare",
    "category": "Sex Embarked:2",
    "left out": {"PassengerId": "identifier", "Name": "identifier", "Ticket": "identifier", "Cabin": "identifier"},
}
ADULT_CATEGORIES = "education marital-status relationship race sex"
ADULT_NUMBERS = "age education-num capital-gain capital-loss hours-per-week"
# '?' is a category unless it is declared to be missing. A program cannot know that fnlwgt is a survey weight.
ADULT = {
    "number": f"{ADULT_NUMBERS} fnlwgt",
    "category": f"{ADULT_CATEGORIES} workclass occupation native-country",
    "left out": {},
}
ADULT_DECLARED = {
    "number": ADULT_NUMBERS,
    "category": f"{ADULT_CATEGORIES} workclass:1836 occupation:1843 native-country:583",
    "left out": {"fnlwgt": "not read"},
}
BANK = {
    "number": "age balance day duration campaign pdays previous",
    "category": "job marital education default housing loan contact month poutcome",
    "left out": {},
}
GERMAN = {
    "number": "months amount installment_rate residence_since age existing_credits dependents",
    "category": """checking credit_history purpose savings employment personal_status other_debtors property
        other_plans housing job telephone foreign_worker""",
    "left out": {},
}
# c25 to c27 are codes of lesions, written with leading zeros.
HORSE = {
    "number": """c1 c2 c4:60 c5:24 c6:58 c7:56 c8:69 c9:47 c10:32 c11:55 c12:44 c13:56 c14:104 c15:106 c16:246 c17:102
        c18:118 c19:29 c20:33 c21:165 c22:198 c24 c28""",
    "category": "c25 c26 c27",
    "left out": {"c3": "identifier"},
}
# The same, with the codes of one to six levels declared as categories.
HORSE_CODES = [f"c{i}" for i in (1, 2, *range(7, 16), 17, 18, 21, 24, 28)]

REAL = {
    "telco": ("telco-churn.csv.gz", {"target": "Churn"}, TELCO),
    "titanic": ("titanic.csv.gz", {"target": "Survived"}, TITANIC),
    "adult": ("adult-train.csv.gz", {"target": "income", "positive": ">50K"}, ADULT),
    "adult with options": (
        "adult-train.csv.gz",
        {"target": "income", "positive": ">50K", "reading": Reading(na="?"), "columns": Columns(drop="fnlwgt")},
        ADULT_DECLARED,
    ),
    "bank": ("bank-full.csv.gz", {"target": "term deposit"}, BANK),
    "german": ("german-credit.csv.gz", {"target": "risk", "positive": 2}, GERMAN),
    "horse": (
        "horse-colic.csv.gz",
        {"target": "c23", "positive": 2, "reading": Reading(na="?", skip_unlabeled=True)},
        HORSE,
    ),
}


def planned(plan):
    """Return a plan as text, in the form of the plans above."""
    found = {"number": {}, "category": {}, "date": {}, "left out": {}}
    for column in plan:
        if column.used:
            found[column.kind][column.name] = column.missing
        else:
            found["left out"][column.name] = column.kind
    return found


def expected(plan):
    found = {"number": {}, "category": {}, "date": {}, "left out": plan["left out"]}
    for kind in ("number", "category", "date"):
        for entry in plan.get(kind, "").split():
            name, _, missing = entry.partition(":")
            found[kind][name] = int(missing or 0)
    return found


@pytest.mark.parametrize("name", REAL)
def test_plans_of_real_tables(name):
    file, options, plan = REAL[name]
    if not (TABLES / file).exists():
        pytest.skip(f"{file} is not there; set ROCMAX_DATA to the folder that holds tables/{file}")
    assert planned(plan_columns(TABLES / file, **options)) == expected(plan)


def test_codes_of_a_real_table_can_be_declared():
    if not (TABLES / "horse-colic.csv.gz").exists():
        pytest.skip("horse-colic.csv.gz is not there; set ROCMAX_DATA to the folder that holds tables")
    file, options, _ = REAL["horse"]
    plan = {column.name: column for column in plan_columns(TABLES / file, **options, columns=Columns(text=HORSE_CODES))}
    assert {plan[name].kind for name in HORSE_CODES} == {"category"}
    assert plan["c7"].missing == 56
    assert plan["c7"].levels == 4


@pytest.mark.parametrize("name", TWINS)
def test_plans_of_generated_tables(name, tmp_path):
    make, options, plan = TWINS[name]
    make().to_csv(tmp_path / "table.csv", index=False)
    assert planned(plan_columns(tmp_path / "table.csv", **options)) == expected(plan)
