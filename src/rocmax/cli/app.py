"""Commands and their options."""

from __future__ import annotations

import functools
import inspect
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from rocmax import __version__
from rocmax._support import Parameter, render
from rocmax.cli.screen import (
    as_flag,
    aside,
    costs_text,
    counting,
    counting_fits,
    guarded,
    interval,
    measure_title,
    note,
    rates_text,
    say,
    screen,
    show_comparison,
    show_fit,
    show_json,
    show_monitor,
    show_over_time,
    show_row_plan,
    show_table,
    stages,
    working,
)

# Options of several commands: what columns are, limits, and how values are written. Those of a group reach a command as
# one object of `rocmax.tables`, with the names of its fields.


STDIN, STDOUT = Path("-"), Path("/dev/stdout")

Tables = Annotated[
    list[Path],
    typer.Argument(
        help="Table: .csv, .tsv, .xlsx, .parquet or .svmlight; text may be compressed. Several files with the same "
        "columns are read as one table; - is standard input, with csv."
    ),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        min=1, help="Maximum decompressed size of a compressed table or a model; by default 100 times its size."
    ),
]
TargetName = Annotated[str | None, typer.Option("--target", help="Name of the column with the labels.")]


def _option(kind: Any, text: str, *names: str, default: Any = None, **more: Any) -> tuple[Any, Any]:
    """Return the type of an option and its default."""
    return Annotated[kind, typer.Option(*names, help=text, **more)], default


Group = dict[str, tuple[Any, Any]]
WATCHED: Group = {
    "max_fpr": _option(float | None, "Limit on the false-positive rate; by default that of the model."),
    "min_tpr": _option(float | None, "Floor on the true-positive rate; by default that of the model."),
    "min_precision": _option(float | None, "Floor on the share of positives among flagged rows."),
    "capacity": _option(float | None, "Limit on flagged rows: a share of the rows, or a number with --per."),
    "per": _option(str | None, "What a capacity is for: hour, day, week or month; requires --time."),
    "confidence": _option(
        float | None, "Probability that a limit which holds is never called broken; 0.95 by default."
    ),
}
WATCHING: Group = {
    "labeled": _option(str | None, "Which rows get labels: all (default), or alerts and, with --audit, a sample."),
    "audit": _option(float | None, "Probability with which a row that is not flagged is sampled for a label."),
    "power": _option(float | None, "Power for which the size of a missing audit is proposed; 0.8 by default."),
    "threshold": _option(float | None, "Flag rows with a score above it; 0 by default, the threshold of the model."),
    "id": _option(list[str] | None, "Column that identifies rows, for late labels; repeatable. By default as in fit."),
    "time": _option(str | None, "Column of dates, by whose latest a batch is named."),
    "target": (TargetName, None),
    "name": _option(str | None, "Name of the batch; by default its latest date, or its number."),
    "review": _option(Path | None, "Output file, .csv, with the rows to label: alerts, and those of the audit."),
}
TARGET: Group = {
    "target": (TargetName, None),
    "positive": _option(str | None, "Label of the positive class."),
}
LIMITS: Group = {
    "max_fpr": _option(float, "Limit on the false-positive rate.", default=1.0, min=0.0, max=1.0),
    "min_fpr": _option(float, "Lower end of the range of false-positive rates.", default=0.0, min=0.0, max=1.0),
    # No `min` and `max`: the help would include the upper end, which is refused.
    "min_tpr": _option(
        float,
        "Lower limit on the true-positive rate, at least 0 and below 1, which the threshold reaches. Without "
        "--max-fpr, there is no limit on the false-positive rate.",
        default=0.0,
    ),
    "measure": _option(
        str | None,
        "roc_auc, partial_auc (default with a limit), tpr_at_fpr, break_even_point or average_precision.",
    ),
}
THRESHOLD: Group = {
    "min_precision": _option(
        float, "Lower limit on the precision, the share of positives among the alerts.", default=0.0
    ),
    "capacity": _option(
        float | None, "Largest number of alerts per period, with --per and --time; below 1, a share of the rows."
    ),
    "per": _option(
        list[str] | None,
        "hour, day, week or month, the period of --capacity; or a column, for a threshold for each of its values; "
        "repeatable.",
    ),
    "block_max_fpr": _option(
        float | None, "Limit on the false-positive rate of a second threshold: block above it, review below."
    ),
    "block_min_precision": _option(float | None, "Lower limit on the precision above the second threshold."),
    "block_capacity": _option(float | None, "Largest number of alerts above the second threshold, as --capacity."),
    "confidence": _option(float | None, "Probability that the limit holds for new rows, such as 0.95."),
    "rate": _option(
        str, "With --group, what counts once in a limit on a rate: row (each row) or group.", default="row"
    ),
}
COSTS: Group = {
    "cost_false_alarm": _option(str | None, "Cost of a false alarm beside its review: a number or a column."),
    "cost_miss": _option(str | None, "Cost of a positive row that is not flagged: a number or a column."),
    "cost_review": _option(str | None, "Cost of looking at a flagged row, right or wrong: a number or a column."),
}
COLUMNS: Group = {
    "text": _option(list[str] | None, "Column to use as categories; repeatable."),
    "number": _option(list[str] | None, "Column to use as numbers; repeatable."),
    "date": _option(list[str] | None, "Column of dates to use: year, month, weekday, hour, age in days; repeatable."),
    "drop": _option(list[str] | None, "Column to ignore; repeatable."),
    "id": _option(list[str] | None, "Column that identifies rows: not used, but written with predictions; repeatable."),
    "group": _option(str | None, "Column with groups; rows of one group are never split."),
    "time": _option(
        str | None, "Column with the time of each row; training rows are then earlier than those held out."
    ),
    "gap": _option(
        str | None, "With --time, how long it takes until the label of a row is known: 30d, 12h, or a number."
    ),
}
READING: Group = {
    "delimiter": _option(str | None, "Field delimiter of a text table; detected by default."),
    "decimal": _option(str | None, "Decimal mark of numbers in a text table: . or ,"),
    "thousands": _option(str | None, "Character between groups of digits."),
    "na": _option(list[str] | None, "Value that is missing, such as ?; repeatable."),
    "encoding": _option(str | None, "Encoding of a text table; detected by default."),
    "sheet": _option(str | None, "Sheet of an Excel workbook."),
    "day_first": _option(
        bool | None, "Order of dates that end with the year, such as 03/04/2024.", "--day-first/--month-first"
    ),
    "skip_unlabeled": _option(
        bool | None,
        "Leave out rows without a label, which are otherwise an error.",
        "--skip-unlabeled/--no-skip-unlabeled",
    ),
    "zero_based": _option(
        bool | None, "Whether the features of an svmlight file are counted from 0.", "--zero-based/--one-based"
    ),
    "max_bytes": (MaxBytes, None),
}


def takes(**groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of some groups, which it gets as objects of `rocmax.tables`: `columns` as `Columns`.

    The options of a group are where the parameter of its name is; None is not passed on, so that defaults apply.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            from rocmax import tables

            made = {}
            for name, options in groups.items():
                given = {option: values.pop(option) for option in options}
                given = {option: value for option, value in given.items() if value not in (None, [])}
                kind = getattr(tables, name.capitalize())
                # Options such as --block-max-fpr and --cost-miss are fields of an object of their own.
                block = {option[6:]: given.pop(option) for option in list(given) if option.startswith("block_")}
                costs = {option[5:]: _cost(given.pop(option)) for option in list(given) if option in COSTS}
                inner = {"block": kind(**block)} if block else {}
                made[name] = kind(**given, **inner, **({"costs": tables.Costs(**costs)} if costs else {}))
            command(**values, **made)

        own, parameters = inspect.signature(command, eval_str=True), []
        for name, parameter in own.parameters.items():
            options = groups.get(name, {name: (parameter.annotation, parameter.default)})
            parameters += [
                inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for option, (kind, default) in options.items()
            ]
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _cost(text: str) -> float | str:
    """Return a number, or the name of a column."""
    try:
        return float(text)
    except ValueError:
        return text


def standard_output(path: Path | None) -> Path | None:
    """Return the path of standard output for -, and other paths unchanged."""
    return STDOUT if path == STDIN else path


def tables(paths: list[Path]) -> Any:
    """Return what the workflow takes: a path, a list of paths, or the open standard input."""
    if STDIN not in paths:
        return paths[0] if len(paths) == 1 else paths
    if len(paths) > 1:
        raise typer.BadParameter("standard input (-) must be the only table")
    return sys.stdin.buffer


def name_of(paths: list[Path]) -> str:
    """Return the name of a table in messages."""
    first = "standard input" if paths[0] == STDIN else str(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


# Display of the plan of the columns.


# Columns that are used and shown, of tables with many.
MAX_SHOWN = 40


def show_plan(plan: list[Any]) -> None:
    """Print the plan of the columns on standard error: all that are left out, and the first of those used."""
    used = [column for column in plan if column.used]
    shown = [column for column in plan if not column.used or column in used[:MAX_SHOWN]]
    if plan:
        show_table(["column", "kind", "missing", "levels", "use"], [_row(column) for column in shown], screen)
    if len(used) > MAX_SHOWN:
        kinds = Counter(column.kind for column in used[MAX_SHOWN:])
        screen.print("and " + ", ".join(f"{count:,} of kind {kind}" for kind, count in kinds.items()) + ", used")


def _row(column: Any) -> list[str]:
    missing, levels = ("" if value is None else f"{value:,}" for value in (column.missing, column.levels))
    reason = render(column.reason, as_flag)
    use = ("used" if column.used else "left out") + (f": {reason}" if reason else "")
    return [column.name, column.kind, missing, levels, use]


# Display of the summary of predictions.


MAX_NAMED = 5


def show_summary(found: Any, positive: str, out: Path | None) -> None:
    """Print how many rows were scored and flagged, and what was unusual about their values, on standard error."""
    share = f" ({found.positive / found.rows:.1%})" if found.rows else ""
    place = "" if out in (None, STDOUT) else f": {out}"
    blocked = "" if found.blocked is None else f", {found.blocked} of them to block and the others to review"
    screen.print(f"{found.rows} rows, {found.positive}{share} classified as {positive!r}{blocked}{place}")
    for kind, title in (("missing", "missing values"), ("unknown", "unknown categories")):
        shares = sorted(found.shares[kind].items(), key=lambda entry: -entry[1])
        if shares:
            named = ", ".join(f"{name!r} {value:.1%}" for name, value in shares[:MAX_NAMED])
            more = f" and {len(shares) - MAX_NAMED} more columns" if len(shares) > MAX_NAMED else ""
            screen.print(f"{title}: {named}{more}")
    for text in found.notes:
        note(text)
    for warning in found.warnings:
        screen.print(f"Warning: {warning}")


# Commands and their options.


app = typer.Typer(
    help="Train classifiers for ranking measures and choose their thresholds.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

ModelFile = Annotated[Path, typer.Argument(help="Model saved by `rocmax fit`.")]
Tune = Annotated[bool, typer.Option("--tune/--no-tune", help="Tune the regularization by cross-validation.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Number of threads; by default one for small tables, and OMP_NUM_THREADS if it is set."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random draws.")]
TestSize = Annotated[
    float | None,
    typer.Option(
        min=0.05, max=0.9, help="Fraction of the rows to hold out; by default a quarter, or less if that is enough."
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Scheduler of a dask cluster, such as tcp://host:8786, that fits a linear model or boosted trees to "
        "parquet files."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")]


def _version(wanted: bool) -> None:
    if wanted:
        say(f"rocmax {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Version.")] = False,
) -> None:
    """Train classifiers for ranking measures and choose their thresholds."""


@app.command()
@guarded("pandas", "pyarrow", "lightgbm", prints=True)
def demo(
    out: Annotated[Path, typer.Option(help="Directory of the tables, the model and the report.")] = Path("rocmax_demo"),
    seed: Seed = 0,
) -> None:
    """Fit, test and explain a model of generated card payments with few false alarms, and write a report."""
    from rocmax.demo import commands, top_alerts

    for arguments in commands(out, seed):
        say(f"$ rocmax {shlex.join(arguments)}")
        app(arguments, prog_name="rocmax", standalone_mode=False)
        if arguments[0] == "predict":
            say("the highest scores:")
            for line in top_alerts(out):
                say(line)
        say("")


@app.command()
@guarded("pandas", "pyarrow", prints=True)
@takes(columns=TARGET | COLUMNS, limits=LIMITS | THRESHOLD, reading=READING)
def plan(
    data: Annotated[list[Path] | None, typer.Argument(help="Table, as for fit; or --rows and --positives.")] = None,
    rows: Annotated[int | None, typer.Option(help="Number of rows, if there is no table.")] = None,
    positives: Annotated[int | None, typer.Option(help="Number of positive rows, if there is no table.")] = None,
    columns: Any = None,
    limits: Any = None,
    test_size: TestSize = None,
    auc: Annotated[float, typer.Option(help="AUC that is assumed for the width of its interval.")] = 0.8,
    width: Annotated[float | None, typer.Option(help="Width of intervals for which the rows are wanted.")] = None,
    reading: Any = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say what a number of rows allows, before a fit: guarantees, widths of intervals, rows until an alarm."""
    from rocmax.tables import plan as make_plan

    with working("counting"):
        found = make_plan(
            tables(data) if data else None,
            columns=columns,
            limits=limits,
            reading=reading,
            rows=rows,
            positives=positives,
            test_size=test_size,
            auc=auc,
            width=width,
        )
    if json:
        show_json(found.to_dict())
    else:
        show_row_plan(found)


@app.command()
@guarded("pandas", "pyarrow", "skops", prints=True)
@takes(columns=TARGET | COLUMNS, limits=LIMITS | THRESHOLD | COSTS, reading=READING)
def fit(
    data: Tables,
    out: Annotated[Path, typer.Option(help="Model file to write.", callback=standard_output)],
    columns: Any = None,
    limits: Any = None,
    model: Annotated[
        str,
        typer.Option(
            help="linear, additive, boosted, ensemble, auto (the best of these), auc, logistic, svm or lightgbm."
        ),
    ] = "auto",
    tune: Tune = True,
    test_size: TestSize = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit the chosen model to all rows at the end; not with --confidence.")
    ] = False,
    reading: Any = None,
    seed: Seed = 0,
    threads: Threads = None,
    dask: Dask = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Fit a model to a table, choose a threshold, evaluate it on held-out rows, and save it."""
    from rocmax.tables import Running, fit_table

    shown = None if json else show_plan
    with stages(f"reading {name_of(data)}") as show_stage:
        fitted = fit_table(
            tables(data),
            columns=columns,
            limits=limits,
            reading=reading,
            model=model,
            tune=tune,
            test_size=test_size,
            random_state=seed,
            running=Running(threads=threads, dask=dask, refit=refit, notify=note, on_plan=shown, progress=show_stage),
        )
        show_stage("saving the model", 0, None)
        fitted.save(out)
    with aside(out == STDOUT):
        if json:
            show_json({**fitted.facts.to_dict(), "out": str(out)})
        else:
            show_fit(fitted, out)


@app.command()
@guarded("pandas", "pyarrow", "skops")
@takes(reading=READING)
def predict(
    model: ModelFile,
    data: Tables,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output file, .csv, .parquet or .jsonl; by default csv on standard output.", callback=standard_output
        ),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Column to write with the predictions; repeatable.")
    ] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Write all columns with the predictions.")] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Write the calibrated probability of the positive class.")
    ] = False,
    reasons: Annotated[
        int | None, typer.Option(help="Write the columns that moved the score of each flagged row most: how many.")
    ] = None,
    reasons_for: Annotated[str, typer.Option(help="Rows that get reasons: flagged or all.")] = "flagged",
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="Put ' before text that a spreadsheet would interpret as a formula."),
    ] = False,
    reading: Any = None,
    verbose: Verbose = False,
) -> None:
    """Write a score and a label for each row, for files of any size."""
    from rocmax.tables import load_model, write_predictions

    fitted = load_model(model, max_bytes=reading.max_bytes)
    with counting("rows scored") as advance:
        found = write_predictions(
            fitted,
            tables(data),
            sys.stdout.buffer if out is None else out,
            keep=keep or [],
            keep_all=keep_all,
            proba=proba,
            reasons=reasons,
            reasons_for=reasons_for,
            escape_formulas=escape_formulas,
            reading=reading,
            progress=advance,
        )
    show_summary(found, fitted.positive, out)


@app.command()
@guarded("pandas", "pyarrow", "skops", prints=True)
@takes(limits=COSTS, reading=READING)
def evaluate(
    model: ModelFile,
    data: Tables,
    target: TargetName = None,
    limits: Any = None,
    reading: Any = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate a model on labeled rows."""
    from rocmax import tables as workflow

    with working("scoring"):
        fitted = workflow.load_model(model, max_bytes=reading.max_bytes)
        found = workflow.evaluate(fitted, tables(data), target=target, costs=limits.costs, reading=reading)
    result = found.to_dict()
    for line in found.notes:
        note(line)
    if json:
        # As keywords, which do not depend on where Python has them.
        show_json({**result, "notes": [render(line, Parameter.as_keyword) for line in found.notes]})
        return
    rows = result["rows"]
    counts = f"{rows['positive']} of class {result['positive']!r} (positive), {rows['negative']} others"
    say(f"{result['model']} on {name_of(data)}: {counts}")
    if result["groups"] is not None:
        say(f"the intervals are for {result['groups']} independent groups")
    show_table(
        ["measure", "value", "95 % interval"],
        [
            [measure_title(name, value), f"{value['value']:.4f}", interval(value)]
            for name, value in result["measures"].items()
        ],
    )
    at = result["threshold"]
    precision = "-" if at["precision"] is None else f"{at['precision']:.4f}"
    rates = 1.0 if at["max_fpr"] is None else at["max_fpr"], at["min_tpr"] or 0.0
    precision += "" if at["min_precision"] is None else f" (at least {at['min_precision']:g})"
    alerts = f", alerts {at['alerts']:.2%} of the rows"
    alerts += "" if at["capacity"] is None else f" (limit {at['capacity']:.2%})"
    say(f"at the threshold: {rates_text(at, *rates)}, precision {precision}{alerts}")
    if result["costs"] is not None:
        say(costs_text(result["costs"]))
    if result["over_time"] is not None:
        show_over_time(result["over_time"], rates[0])


@app.command()
@guarded("pandas", "pyarrow", prints=True)
@takes(columns=TARGET | COLUMNS, limits=LIMITS, reading=READING)
def compare(
    data: Tables,
    columns: Any = None,
    limits: Any = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Names as in fit, separated by commas; by default linear, additive, boosted, ensemble and logistic."
        ),
    ] = None,
    tune: Tune = True,
    out: Annotated[Path | None, typer.Option(help="Output table, .csv.")] = None,
    splits: Annotated[int, typer.Option(min=2, help="Number of splits, random or, with --time, forward in time.")] = 10,
    jobs: Annotated[int, typer.Option(help="Number of fits that run in parallel; -1 means all processors.")] = 1,
    threads: Threads = None,
    resume: Annotated[Path | None, typer.Option(help="File of results, to resume a comparison.")] = None,
    reading: Any = None,
    seed: Seed = 0,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compare models on the same splits, each fitted as by `rocmax fit`."""
    from rocmax.tables import Running, compare_models

    names = None if models is None else [name.strip() for name in models.split(",")]
    shown = None if json else show_plan
    with counting_fits(None if names is None else len(names), splits) as show_fits:
        found = compare_models(
            tables(data),
            models=names,
            columns=columns,
            limits=limits,
            reading=reading,
            tune=tune,
            n_splits=splits,
            store=resume,
            random_state=seed,
            running=Running(threads=threads, n_jobs=jobs, notify=note, on_plan=shown, progress=show_fits),
        )
    if out is not None:
        found.save(out)
    if json:
        show_json({"columns": [c.to_dict() for c in found.columns], "models": found.to_dict()})
        return
    show_comparison(found, splits, tune)


@app.command()
@guarded("pandas", "pyarrow", "skops", "jinja2")
@takes(reading=READING)
def report(
    files: Annotated[list[Path], typer.Argument(help="One or more models, followed by the labeled table.")],
    out: Annotated[Path, typer.Option(help="HTML page to write.")],
    target: TargetName = None,
    segment: Annotated[str | None, typer.Option(help="Column by whose values the results are also given.")] = None,
    alerts: Annotated[
        int, typer.Option(help="Number of flagged rows to show, with what moved their scores most; 0 for none.")
    ] = 5,
    card: Annotated[
        Path | None, typer.Option(help="Model card to fill in, .toml or .json: purpose, owner, not_for and so on.")
    ] = None,
    card_out: Annotated[Path | None, typer.Option(help="Model card to write, with the results, as Markdown.")] = None,
    reading: Any = None,
    verbose: Verbose = False,
) -> None:
    """Write an HTML report of models on a labeled table."""
    from rocmax.tables import load_model, write_report

    if len(files) < 2:
        raise typer.BadParameter("pass one or more model files, followed by the table")
    with working("scoring"):
        models = [load_model(path, max_bytes=reading.max_bytes) for path in files[:-1]]
        write_report(
            models,
            files[-1],
            out,
            target=target,
            segment=segment,
            alerts=alerts,
            card=card,
            card_out=card_out,
            reading=reading,
            notify=note,
        )
    screen.print(f"report: {out}")
    if card_out is not None:
        screen.print(f"model card: {card_out}")


@app.command()
@guarded("pandas", "pyarrow", "skops", prints=True)
@takes(limits=WATCHED, watching=WATCHING, reading=READING)
def monitor(
    model: ModelFile,
    data: Annotated[
        list[Path] | None,
        typer.Argument(help="Rows of the batch, as for predict; none with --labels if there are only late labels."),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Table of late labels: the columns that identify rows, and the target.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="State to go on with, or to begin; MODEL.monitor.json by default.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="HTML page to write, with the history.")] = None,
    limits: Any = None,
    watching: Any = None,
    reading: Any = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say which limits of a model still hold, batch by batch, with labels that come later."""
    from rocmax.tables import load_model, monitor_table

    fitted = load_model(model, max_bytes=reading.max_bytes)
    with counting("rows counted") as advance:
        found = monitor_table(
            fitted,
            None if not data else tables(data),
            model.with_suffix(".monitor.json") if state is None else state,
            labels=labels,
            out=out,
            limits=limits,
            watching=watching,
            reading=reading,
            progress=advance,
        )
    if json:
        show_json(found.to_dict())
        return
    show_monitor(found, out)


@app.command()
@guarded("onnx", "skops")
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Argument(help="ONNX file to write.")],
    max_bytes: MaxBytes = None,
    verbose: Verbose = False,
) -> None:
    """Export a model with its preprocessing to ONNX."""
    from rocmax.tables.onnx import export_file

    export_file(model, out, max_bytes=max_bytes)
    screen.print(f"exported: {out}")
