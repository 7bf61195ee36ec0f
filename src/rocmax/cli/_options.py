"""Options of several commands: columns, and how their values are written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

STDIN, STDOUT = Path("-"), Path("/dev/stdout")

Tables = Annotated[
    list[Path],
    typer.Argument(
        help="Table: .csv, .tsv, .xlsx, .parquet or .svmlight; text may be compressed. Several files with the same "
        "columns are read as one table; - is standard input, with csv."
    ),
]
Text = Annotated[list[str] | None, typer.Option("--text", help="Column to use as categories; repeatable.")]
Number = Annotated[list[str] | None, typer.Option("--number", help="Column to use as numbers; repeatable.")]
Date = Annotated[
    list[str] | None,
    typer.Option("--date", help="Column of dates to use: year, month, weekday, hour, age in days; repeatable."),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="Column to ignore; repeatable.")]
Id = Annotated[
    list[str] | None,
    typer.Option("--id", help="Column that identifies rows: not used, but written with predictions; repeatable."),
]


MaxBytes = Annotated[
    int | None,
    typer.Option(
        min=1, help="Maximum decompressed size of a compressed table or a model; by default 100 times its size."
    ),
]


@dataclass(frozen=True)
class ReadingOptions:
    """How a table is written and read: options of every command that reads one, with the names of the workflow.

    None stands for what the model stores, what is detected, or the usual value; it is not passed on.
    """

    delimiter: Annotated[
        str | None, typer.Option("--delimiter", help="Field delimiter of a text table; detected by default.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", help="Decimal mark of numbers in a text table: . or ,")
    ] = None
    thousands: Annotated[str | None, typer.Option("--thousands", help="Character between groups of digits.")] = None
    na: Annotated[list[str] | None, typer.Option("--na", help="Value that is missing, such as ?; repeatable.")] = None
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of a text table; detected by default.")
    ] = None
    sheet: Annotated[str | None, typer.Option("--sheet", help="Sheet of an Excel workbook.")] = None
    day_first: Annotated[
        bool | None,
        typer.Option("--day-first/--month-first", help="Order of dates that end with the year, such as 03/04/2024."),
    ] = None
    skip_unlabelled: Annotated[
        bool | None,
        typer.Option(
            "--skip-unlabelled/--no-skip-unlabelled",
            help="Leave out rows without a label, which are otherwise an error.",
        ),
    ] = None
    zero_based: Annotated[
        bool | None,
        typer.Option("--zero-based/--one-based", help="Whether the features of an svmlight file are counted from 0."),
    ] = None
    max_bytes: MaxBytes = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given, as parameters of the functions of the workflow."""
        return {name: value for name, value in vars(self).items() if value is not None and value != []}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `ReadingOptions`, which it gets as its parameter ``reading``."""
    own = inspect.signature(command, eval_str=True)
    kinds = get_type_hints(ReadingOptions, include_extras=True)
    options = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kinds[each.name])
        for each in fields(ReadingOptions)
    ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        reading = ReadingOptions(**{each.name: values.pop(each.name) for each in options})
        command(**values, reading=reading)

    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        added = options if parameter.name == "reading" else [parameter]
        parameters += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in added]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def standard_output(path: Path | None) -> Path | None:
    """Return the path of standard output for -, and other paths unchanged."""
    return STDOUT if path == STDIN else path


def tables(paths: list[Path]) -> Any:
    """Return what the workflow takes: a path, a list of paths, or the open standard input."""
    import sys

    if STDIN not in paths:
        return paths[0] if len(paths) == 1 else paths
    if len(paths) > 1:
        raise typer.BadParameter("standard input (-) must be the only table")
    return sys.stdin.buffer


def name_of(paths: list[Path]) -> str:
    """Return the name of a table in messages."""
    first = "standard input" if paths[0] == STDIN else str(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"
