"""An HTTP service for a model of `rocmax fit`: scores from its ONNX graph, reasons and limits from its file.

``python app.py churn.rocmax churn.onnx --port 8000`` answers on the loopback address. README.markdown has the requests.
"""

import argparse
import difflib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnxruntime
import pandas as pd
import uvicorn
from fastapi import Body, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, create_model

from rocmax.tables import load_model

MOST_ROWS = 10_000  # of a request
MOST_ERRORS = 10  # in an answer
# What `rocmax predict` takes, too: no text for numbers, no infinite numbers, none above 1e100. Missing values are null.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-1e100, le=1e100)] | None
Text = Annotated[str, Field(strict=True)] | None


class Limit(BaseModel):
    """What the model promises: its limits, on rows or groups, with this confidence, for flagged scores above 0."""

    max_fpr: float | None
    min_tpr: float | None
    others: list[str]
    rate: str
    confidence: float | None
    threshold: float


class Reason(BaseModel):
    """A column that moved a score, its value, and what it added to the score."""

    column: str
    value: float | str | None
    effect: float


class Answer(BaseModel):
    """Score of a row; it is flagged if the score is above 0, and has reasons only then."""

    score: float
    label: str
    flagged: bool
    reasons: list[Reason]


class RowAnswer(Answer):
    """Answer to one row."""

    limit: Limit


class RowsAnswer(BaseModel):
    """Answer to several rows, in their order."""

    rows: list[Answer]
    limit: Limit


class Scorer:
    """Scores by a graph, and reasons by the model that it was exported from."""

    def __init__(self, model: Path, graph: Path) -> None:
        self.model = load_model(model)
        facts = self.model.facts
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # requests run in parallel, each on one thread
        self.session = onnxruntime.InferenceSession(str(graph), options)
        self.kinds = dict(facts.features or {})
        names = {entry.name for entry in self.session.get_inputs()}
        if facts.dates or names != set(self.kinds):
            raise ValueError(
                f"{graph} must be exported from {model}, a model of numbers and categories; got the inputs "
                f"{sorted(names)} for the columns {sorted(self.kinds)}, with the dates {sorted(facts.dates)}"
            )
        nothing = {name: [None] for name in self.kinds}
        by_model = self.model.reasons(self.frame(nothing), 1, "all")["score"][0]  # an error if there are no reasons
        by_graph = self.scores(nothing)[0][0]
        if abs(by_model - by_graph) > 1e-6:
            raise ValueError(f"{graph} is of another model: it gives {by_graph:.6f} where {model} gives {by_model:.6f}")

    @property
    def limit(self) -> Limit:
        """What the model promises."""
        facts = self.model.facts
        return Limit(
            max_fpr=facts.max_fpr if facts.max_fpr < 1 else None,
            min_tpr=facts.min_tpr or None,
            others=facts.more_limits(),
            rate=facts.rate,
            confidence=facts.confidence,
            threshold=self.model.threshold,
        )

    def frame(self, columns: dict[str, list[Any]]) -> pd.DataFrame:
        """Return the columns as a table for the model."""
        types = {name: np.float64 if kind == "number" else object for name, kind in self.kinds.items()}
        return pd.DataFrame({name: np.array(columns[name], dtype=types[name]) for name in self.kinds})

    def scores(self, columns: dict[str, list[Any]]) -> tuple[Any, Any]:
        """Return the scores and labels of the graph, for which missing text is empty."""
        inputs = {
            name: np.array(columns[name], dtype=np.float64)[:, np.newaxis]
            if kind == "number"
            else np.array(["" if value is None else value for value in columns[name]], dtype=object)[:, np.newaxis]
            for name, kind in self.kinds.items()
        }
        return tuple(self.session.run(["score", "label"], inputs))

    def answers(self, columns: dict[str, list[Any]], n_reasons: int) -> list[Answer]:
        """Return the answers to rows; only flagged ones get reasons, which take much longer than scores."""
        scores, labels = self.scores(columns)
        flagged = np.flatnonzero(scores > 0)
        reasons: dict[int, list[Reason]] = {}
        if n_reasons and flagged.size:
            table = self.model.reasons(self.frame(columns).iloc[flagged], n_reasons, "all")
            for place, row in zip(flagged.tolist(), table.to_dict("records"), strict=True):
                found = [(row[f"reason_{i}"], row[f"reason_{i}_effect"]) for i in range(1, n_reasons + 1)]
                reasons[place] = [
                    Reason(column=name, value=columns[name][place], effect=effect)
                    for name, effect in found
                    if isinstance(name, str)  # a column without an effect is no reason
                ]
        return [
            Answer(score=score, label=label, flagged=score > 0, reasons=reasons.get(place, []))
            for place, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True))
        ]


def create_app(model: Path, graph: Path) -> FastAPI:
    """Return the service for a model file and the graph that was exported from it."""
    scorer, app = Scorer(model, graph), FastAPI(title=f"Scores of {model.name}")
    names, limit = list(scorer.kinds), scorer.limit
    # Fields have names of their own, because the name of a column need not be one of Python.
    fields: dict[str, Any] = {
        f"column_{place}": (Number if kind == "number" else Text, Field(alias=name))
        for place, (name, kind) in enumerate(scorer.kinds.items())
    }
    row_type = create_model("Row", __config__=ConfigDict(extra="forbid"), **fields)
    reasons_type = Annotated[int, Query(ge=0, le=len(names))]
    rows_type = Annotated[list[row_type], Body(min_length=1, max_length=MOST_ROWS)]
    usual = min(3, len(names))

    def columns_of(rows: list[Any]) -> dict[str, list[Any]]:
        return {name: [getattr(row, field) for row in rows] for name, field in zip(names, fields, strict=True)}

    @app.exception_handler(RequestValidationError)
    def refuse(request: Request, error: RequestValidationError) -> JSONResponse:
        """Answer 422, with a line for each of the first errors."""
        errors = [error_text(each, names) for each in error.errors()]
        more = [f"and {len(errors) - MOST_ERRORS} more errors"] if len(errors) > MOST_ERRORS else []
        return JSONResponse({"detail": [*errors[:MOST_ERRORS], *more]}, status_code=422)

    # Functions without `async` run in threads, so that a large request does not hold up the others.
    @app.get("/model")
    def about() -> dict[str, Any]:
        """Return the columns, the positive class, the limit, and the rates on the held-out rows of the fit."""
        rates = scorer.model.facts.at_threshold
        return {"columns": scorer.kinds, "positive": scorer.model.positive, "limit": limit, "held_out": rates}

    @app.post("/row")
    def score_row(row: row_type, reasons: reasons_type = usual) -> RowAnswer:
        """Score one row: a value for each column."""
        return RowAnswer(**dict(scorer.answers(columns_of([row]), reasons)[0]), limit=limit)

    @app.post("/rows")
    def score_rows(rows: rows_type, reasons: reasons_type = usual) -> RowsAnswer:
        """Score a list of rows."""
        return RowsAnswer(rows=scorer.answers(columns_of(rows), reasons), limit=limit)

    return app


WANTED = {
    "float_type": "must be a number or null",
    "string_type": "must be text or null",
    "finite_number": "must be a finite number or null",
    "less_than_equal": "must be at most 1e100",
    "greater_than_equal": "must be at least -1e100",
    "list_type": "must be a list of rows",
    "too_short": "must have at least one row",
    "too_long": f"must have at most {MOST_ROWS} rows",
    "model_attributes_type": "must be an object with a value for each column",
}


def error_text(error: dict[str, Any], names: list[str]) -> str:
    """Return what is wrong with a request, in the terms of the table."""
    part, *places = error["loc"]
    row = f"row {places.pop(0) + 1}" if part == "body" and places and isinstance(places[0], int) else ""
    got = repr(error["input"])
    got = got if len(got) <= 60 else f"{got[:60]}..."
    if part != "body":
        return f"{places[0]}: {error['msg']}; got {got}"
    if error["type"] == "json_invalid" or isinstance(error["input"], bytes):
        return "the body must be JSON, with the content type application/json"
    if not places:
        return f"{row or 'the body'} {WANTED.get(error['type'], error['msg'])}; got {got}"
    name, row = places[0], row and f"{row}: "
    if error["type"] == "missing":
        return f"{row}column {name!r} is missing; the value may be null"
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, names, 1)
        return f"{row}the model has no column {name!r}" + (f" (is it {near[0]!r}?)" if near else "")
    return f"{row}column {name!r} {WANTED.get(error['type'], error['msg'])}; got {got}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the file of `rocmax fit`")
    parser.add_argument("graph", type=Path, help="the file that `rocmax export` made of it")
    parser.add_argument("--port", type=int, default=8000)
    args = parser.parse_args()
    uvicorn.run(create_app(args.model, args.graph), host="127.0.0.1", port=args.port, log_level="warning")
