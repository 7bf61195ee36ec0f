"""Options of several commands: columns, and how their values are written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

STDIN, STDOUT = Path("-"), Path("/dev/stdout")

Tables = Annotated[
    list[Path],
    typer.Argument(
        help="Table: .csv, .tsv, .parquet or .svmlight; text files may be compressed. Several files with the same "
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
Decimal = Annotated[str, typer.Option("--decimal", help="Decimal mark of numbers in a text table: . or ,")]
Thousands = Annotated[str | None, typer.Option("--thousands", help="Character between groups of digits.")]
NA = Annotated[list[str] | None, typer.Option("--na", help="Value that is missing, such as ?; repeatable.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Encoding of a text table; UTF-8 by default.")]
SkipUnlabelled = Annotated[
    bool, typer.Option("--skip-unlabelled", help="Leave out rows without a label, which are otherwise an error.")
]


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
