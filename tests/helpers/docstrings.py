"""Parameters as docstrings describe them, for every public class and function."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import NamedTuple, Protocol

MODULES = (
    "rocmax",
    "rocmax.data",
    "rocmax.displays",
    "rocmax.kernel",
    "rocmax.losses",
    "rocmax.measures",
    "rocmax.metrics",
    "rocmax.monitor",
    "rocmax.operators",
    "rocmax.papers",
    "rocmax.penalties",
    "rocmax.solvers",
    "rocmax.tables",
)
# Made by the library, not by its users: what they hold is documented as attributes.
RECORDS = {
    "BoundLoss", "Column", "Evaluation", "ModelComparison", "MonitorReport", "PartialAUCPath", "PredictionSummary",
    "Proposal", "Result", "RowPlan", "TableEvaluation", "Verdict",
}  # fmt: skip


class Entry(NamedTuple):
    """One entry of a section: name, type without default, the default as it is written (or None), and the text."""

    name: str
    kind: str
    default: str | None
    text: str


def parse_parameters(doc, section="Parameters"):
    """Return the entries of a section of a docstring, in order."""
    section = re.search(rf"^{section}\n-{{10}}\n(.*?)(?=^[A-Z][\w ]+\n-{{3,}}$|\Z)", inspect.cleandoc(doc), re.S | re.M)
    entries = []
    for line in section[1].splitlines() if section else ():
        if line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            kind, mark, default = kind.partition(", default=")
            entries.append(Entry(name, kind, default if mark else None, ""))
        elif line:
            entries[-1] = entries[-1]._replace(text=f"{entries[-1].text} {line.strip()}".strip())
    return [entry._replace(name=name) for entry in entries for name in entry.name.split(", ")]


def public_objects():
    """Return the public classes and functions with parameters, by their public names."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            made_here = getattr(value, "__module__", "").startswith("rocmax") and hasattr(value, "__name__")
            record = name in RECORDS or (inspect.isclass(value) and issubclass(value, tuple | Exception | Protocol))
            documented = made_here and callable(value) and not record and not inspect.ismodule(value)
            if documented and value not in found.values():
                found[f"{value.__module__}.{name}"] = value
    return found


def public_methods():
    """Return the public methods of these classes that describe parameters, by their public names."""
    found = {}
    for owner, value in public_objects().items():
        for name, member in inspect.getmembers(value) if inspect.isclass(value) else ():
            ours = inspect.isroutine(member) and (getattr(member, "__module__", None) or "").startswith("rocmax")
            if ours and not name.startswith("_") and parse_parameters(member.__doc__ or ""):
                found[f"{owner}.{name}"] = member
    return found


def parameters(value):
    """Return the parameters of a signature by the names that docstrings give them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    listed = inspect.signature(value).parameters.values()
    return {
        stars.get(p.kind, "") + p.name: p for p in listed if not (p.name.startswith("_") or p.name in ("self", "cls"))
    }
