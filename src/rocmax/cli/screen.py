"""What the command line prints: tables, results, warnings, errors and progress."""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
import re
import shlex
import stat
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from itertools import combinations
from pathlib import Path
from typing import Any, get_type_hints

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from rocmax._files import check_not_input, check_output, error_text, same_file
from rocmax._support import Caution, Parameter, ParameterError, is_hushed, need, render

# Output to the user: messages and progress on standard error, results on standard output.


# Characters in names of files and columns that a terminal would obey instead of showing them: controls, except for line
# breaks and tabs, and those that change the direction of text.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Return a text in which the characters that a terminal would obey are written as escapes, such as \x1b."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


class _Screen(Console):
    """Console that shows what names contain, and does not obey it."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; text is made visible."""
        super().print(*(visible(each) if isinstance(each, str) else each for each in objects), **options)


screen = _Screen(stderr=True, highlight=False, markup=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(visible(text) + "\n")


def show_json(value: Any) -> None:
    """Print the result as JSON."""
    say(json.dumps(value, indent=2))


@contextmanager
def aside(on: bool) -> Iterator[None]:
    """Print results on standard error while the block runs, because standard output has the content of a file."""
    if not on:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def show_table(columns: list[str], rows: list[list[str]], console: Console | None = None) -> None:
    """Print a table, with borders on a terminal and without in a pipe; on standard output if no console is given."""
    terminal = sys.stdout.isatty() if console is None else console.is_terminal
    out = console or Console(highlight=False, markup=False)
    table = Table(*map(visible, columns), box=None if not terminal else Table().box, pad_edge=False)
    for row in rows:
        table.add_row(*(visible(cell).replace("\n", "\\n") for cell in row))
    out.print(table, width=None if terminal else 200, crop=False)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a status on a terminal while the block runs."""
    if not screen.is_terminal:
        yield
        return
    with screen.status(visible(text)):
        yield


@contextmanager
def stages(text: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a function that shows what is done, with a bar and the time, on a terminal only."""
    with _bar(SpinnerColumn()) as bar:
        task = bar.add_task(visible(text), total=None)
        yield lambda text, done, total: bar.update(task, description=visible(text), completed=done, total=total)


@contextmanager
def counting(text: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds to a count, which is shown with the text on a terminal only."""
    with _bar(TextColumn("{task.completed:,.0f}")) as bar:
        task = bar.add_task(text, total=None)
        yield lambda count: bar.advance(task, count)


@contextmanager
def counting_fits(models: int | None, splits: int) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a function that shows which fit of a comparison comes next, on a terminal only."""

    def named(done: int) -> str:
        return "fits" if models is None else f"fits: {task_name(models, splits, done)}"

    with _bar(TextColumn("{task.completed:,.0f}")) as bar:
        task = bar.add_task(named(0), total=None if models is None else models * splits)
        yield lambda text, done, total: bar.update(task, completed=done, description=named(done))


def _bar(count: Any) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(), TimeElapsedColumn())
    shown = screen.is_terminal
    return Progress(*columns, console=screen, transient=True, refresh_per_second=4, disable=not shown)


def task_name(models: int, splits: int, done: int) -> str:
    """Return which fit of a comparison comes after a number of fits."""
    if done >= models * splits:
        return "done"
    return f"model {done % models + 1} of {models}, split {done // models + 1} of {splits}"


# Display of the results of fits and comparisons.


def show_fit(fitted: Any, out: Path) -> None:
    """Print the result of a fit."""
    from rocmax.tables.tune import tuning_text

    facts, result = fitted.facts, fitted.held_out
    rows, classes = facts.rows, facts.classes
    say(f"positive class: {fitted.positive!r} ({classes['positive']} rows); others: {classes['negative']} rows")
    if facts.periods is None:
        say(f"trained on {rows['train']} rows, {rows['held out']} held out")
    else:
        _show_periods(facts)
    if facts.families is not None:
        _show_families(facts.families, measure_title(facts.measure, result))
    say(tuning_text(facts.tuning))
    value = f"{result['value']:.4f}, 95 % interval {interval(result)}"
    groups = facts.held_out_groups
    held_out = "held-out" if facts.periods is None else "test"
    where = f"the {held_out} rows" if groups is None else f"the {held_out} rows of {groups} groups"
    say(f"{measure_title(facts.measure, result)}: {value}, on {where}")
    if facts.later is not None:
        periods = f"{facts.later['periods']} periods after the training rows"
        say(f"in a later period, if it differs as the {periods} do: {interval(facts.later)}")
    if facts.limits.limited:
        limits = [f"at least {100 * facts.min_tpr:g} % of true positives"] if facts.min_tpr > 0 else []
        # Without other limits, the one on false positives is only what the model was trained for.
        if facts.max_fpr < 1 and (not limits or facts.limits.extended):
            limits.append(f"at most {100 * facts.max_fpr:g} % of false positives")
        limit = ", ".join([*limits, *facts.more_limits()])
        # Which rate it is matters only if there are groups.
        limit += "" if groups is None else " among all rows" if facts.rate == "row" else " in the mean over groups"
        resembling = facts.resemblance is None or facts.resemblance["resembles"]
        kept = f" with confidence {facts.confidence:g}" if facts.confidence and resembling else ""
        kept += " for independent groups" if kept and groups is not None else ""
        at = facts.at_threshold
        rates = rates_text(at, facts.max_fpr, facts.min_tpr)
        if facts.limits.extended:
            precision = "-" if at["precision"] is None else f"{at['precision']:.4f}"
            rates += f", precision {precision}, alerts {at['alerts']:.2%} of the rows,"
        say(f"threshold for {limit}{kept}: score above 0; {rates} on the {held_out} rows")
        if facts.resemblance is not None and resembling:
            say(f"test rows resemble calibration rows at the threshold (p = {facts.resemblance['p_value']:.2g})")
        if isinstance(facts.binding, dict):
            where = "the held-out rows" if "calibration" not in rows else "the calibration rows"
            reached = [
                [value, flag_of(name), f"{facts.thresholds[value]:.6g}"] for value, name in facts.binding.items()
            ]
            say(f"thresholds of {len(reached)} values of {facts.limits.column!r}, from {where}:")
            show_table([str(facts.limits.column), "limit reached first", "threshold"], reached)
        elif facts.binding is not None and facts.binding != "costs":
            say(f"limit reached first: {flag_of(facts.binding)}")
    if facts.savings is not None:
        whose = (
            "each row has a threshold for its own costs" if facts.savings["per_case"] else "one threshold for all rows"
        )
        trained = ", trained with the costs as weights" if facts.savings["weighted"] else ""
        kinds = ", ".join(f"{name.replace('_', ' ')} {cost}" for name, cost in facts.costs.items())
        say(f"costs ({kinds}): {whose}{trained}")
        say(f"{costs_text(facts.savings)}, on the {held_out} rows")
    if facts.over_time is not None:
        show_over_time(facts.over_time, facts.max_fpr if facts.min_tpr == 0 else 1.0)
    if "refit" in rows:
        say(f"then fitted to all {rows['refit']} rows; the results above are those of the model before")
    say(f"model: {out}")


def flag_of(name: str) -> str:
    """Return a limit as it is typed."""
    return f"--{name.replace('_', '-')}"


def show_row_plan(found: Any) -> None:
    """Print what a number of rows allows."""
    rows, held_out, limits = found.rows, found.held_out, found.limits
    counts = f"{rows['positive']:,} positive and {rows['negative']:,} negative rows"
    say(f"{counts}; held out: {held_out['positive']:,} and {held_out['negative']:,} ({held_out['share']:.1%})")
    if found.guarantee is not None:
        for line in _guarantee_lines(found.guarantee, limits):
            say(line)
    titles = {"fpr": "FPR at the threshold", "tpr": "TPR at the threshold", "roc_auc": "AUC"}
    wanted = found.width or {}
    columns = ["measure", "if it is", "95 % interval", "width"]
    columns += ["held-out rows for the width", "rows in all"] if wanted else []
    show_table(
        columns,
        [
            [titles[name], f"{each['value']:.4f}", interval(each), f"{each['width']:.4f}"]
            + ([f"{wanted[name]['held_out']:,}", f"{wanted[name]['rows']:,}"] if wanted else [])
            for name, each in found.intervals.items()
        ],
    )
    if found.monitor is not None:
        say(_monitor_text(found.monitor, limits))


def _guarantee_lines(found: dict[str, Any], limits: dict[str, Any]) -> Iterator[str]:
    """Yield what is known about the limited rate before the fit."""
    floor, rate = limits["min_tpr"], "FPR" if limits["min_tpr"] is None else "TPR"
    limit = f"FPR at most {limits['max_fpr']:g}" if floor is None else f"TPR at least {floor:g}"
    if limits["confidence"] is not None:
        needs, has = found.get("groups_needed", found.get("needed")), found.get("groups", found["held_out"])
        of = f"independent groups with held-out {found['rows']}" if "groups" in found else f"held-out {found['rows']}"
        here = "enough" if found["kept"] else "too few"
        more = "" if found["kept"] or "groups" in found else f"; it takes a table of {found['rows_needed']:,} rows"
        yield f"{limit} with confidence {limits['confidence']:g}: {needs:,} {of} needed, {has:,} here: {here}{more}"
    if "expected" in found:
        between = f"from {found['low']:.4f} to {found['high']:.4f} in 90 % of fits"
        yield f"{rate} on new rows: {found['expected']:.4f} on average, {between}"
        if limits["confidence"] is None:
            yield f"without a confidence, it is beyond the limit ({floor or limits['max_fpr']:g}) in about half of them"
        else:
            what = "the limit" if floor is None else "the misses that the floor allows"
            yield f"the guarantee gives away {found['given_away']:.1%} of {what}"
    elif "groups" in found:
        yield "the rate on new rows depends on how alike the rows of a group are; the intervals are the widest possible"


def _monitor_text(found: dict[str, Any], limits: dict[str, Any]) -> str:
    """Return how soon a monitor notices twice as many errors as allowed."""
    rate, rows = ("FPR", "negatives") if limits["min_tpr"] is None else ("TPR", "positives")
    text = (
        f"`rocmax monitor` notices a {rate} of {found['rate']:g} after a median of {found['median']:,} labeled {rows} "
        f"({found['nine_in_ten']:,} in nine of ten cases), about {found['rows']:,} rows"
    )
    if "alerts_only" not in found:
        return text
    only = found["alerts_only"]
    reviewed = "it is not noticed" if only is None else f"after {only:,} rows"
    return f"{text}; if only alerts are reviewed, {reviewed}"


def _show_periods(facts: Any) -> None:
    """Print the periods of a fit forward in time, and how many rows are in none of them."""
    gap = "" if facts.gap is None else f" with a gap of {facts.gap}"
    say(f"forward in time by {facts.time!r}{gap}:")
    shown = {"train": "training", "calibration": "calibration", "held out": "test"}
    periods = [(shown[name], facts.rows[name], facts.periods[name]) for name in shown]
    show_table(
        ["rows for", "number", "first", "last"],
        [[name, f"{count:,}", *(f"{period[end]}" for end in ("first", "last"))] for name, count, period in periods],
    )
    dropped = facts.periods["dropped"]
    say(f"left out: {dropped['gap']:,} rows for the gap, {dropped['group']:,} for groups with later rows")


# Length of the longest bar of a chart.
LONGEST_BAR = 20


def show_over_time(periods: list[dict[str, Any]], max_fpr: float) -> None:
    """Print the rates at the threshold in each period, with a bar for the false-positive rate."""
    limit = f" (limit {100 * max_fpr:g} %)" if max_fpr < 1 else ""
    say(f"rates at the threshold by period{limit}:")
    top = max([period["fpr"]["rate"] for period in periods if period["fpr"]] + [max_fpr % 1.0, 1e-9])
    rows = []
    for period in periods:
        texts = []
        for rate in (period["fpr"], period["tpr"]):
            ends = "" if rate is None else f" [{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"
            texts.append("-" if rate is None else f"{100 * rate['rate']:.1f} %{ends}")
        length = 0 if period["fpr"] is None else round(LONGEST_BAR * period["fpr"]["rate"] / top)
        rows.append([period["name"], f"{period['rows']:,}", texts[0], "#" * length, texts[1]])
    show_table(["period", "rows", "FPR", "", "TPR"], rows)


def show_monitor(found: Any, out: Path | None) -> None:
    """Print what is known about the limits of a model."""
    for text in found.notes:
        note(text)
    if found.batch is not None:
        say(f"batch {found.batch}: {found.rows:,} rows, {found.flagged:,} flagged, {found.labels:,} labels")
    elif found.labels:
        say(f"{found.labels:,} labels")
    columns = ["limit", "result", "rate", "at all times", "rows"]
    show_table(columns, [[row[name] for name in columns] for row in found.table])
    for text in found.proposed:
        say(text)
    for text in found.changes:
        say(f"changed: {text}")
    if out is not None:
        screen.print(f"history: {out}")


def _show_families(found: dict[str, Any], measure: str) -> None:
    from rocmax.tables.tune import family_rows

    say(f"families: {measure} {family_rows(found)}")
    columns = ["family", "rows", "mean", "standard error", "difference to the best", "its standard error"]
    columns += ["seconds", ""]
    show_table(columns, [_family_row(row) for row in found["table"]])


def _family_row(row: dict[str, Any]) -> list[str]:
    errors = ["-" if row[name] is None else f"{row[name]:.4f}" for name in ("standard_error", "difference_error")]
    best = row["difference"] == 0
    return [
        row["family"],
        f"{row['rows']:,}",
        f"{row['mean']:.4f}",
        errors[0],
        "best" if best else f"{row['difference']:+.4f}",
        "-" if best else errors[1],
        f"{row['seconds']:.2f}",
        "chosen" if row["chosen"] else "",
    ]


def show_comparison(found: Any, splits: int, tune: bool) -> None:
    """Print the result of a comparison."""
    how = "each model tuned on the training rows" if tune else "no model tuned"
    forward = "" if found.time is None else f" forward in time by {found.time!r}"
    say(f"{found.title} of class {found.positive!r}, {splits} splits{forward}, {how}")
    show_table(["model", "mean", "standard error", "p against the best", "seconds"], _comparison_rows(found.table))


def _comparison_rows(table: Any) -> list[list[str]]:
    return [
        [
            str(name),
            f"{row['mean']:.4f}",
            f"{row['standard_error']:.4f}",
            "best" if math.isnan(row["p_value"]) else f"{row['p_value']:.3g}",
            f"{row['seconds']:.2f}",
        ]
        for name, row in table.iterrows()
    ]


def measure_title(name: str, value: dict[str, Any]) -> str:
    """Return the title of a measure, with its range of false-positive rates."""
    from rocmax.measures import pick_measure

    return pick_measure(name, value).title


def rates_text(rates: dict[str, Any], max_fpr: float, min_tpr: float) -> str:
    """Return the rates at a threshold as text, with their limits; a limit of 1 or 0 is none."""
    limit = f" (limit {max_fpr:g})" if max_fpr < 1 else ""
    floor = f" (at least {min_tpr:g})" if min_tpr > 0 else ""
    return f"TPR {rates['tpr']:.4f}{floor}, FPR {rates['fpr']:.4f}{limit}"


def costs_text(found: dict[str, Any]) -> str:
    """Return what decisions cost and save as text."""
    cost = {key: f"{found[key]:.4g}" for key in ("cost", "cost_low", "cost_high", "none", "all")}
    ends = f"[{found['savings_low']:.1%}, {found['savings_high']:.1%}]"
    return (
        f"cost per row {cost['cost']} [{cost['cost_low']}, {cost['cost_high']}]; {cost['none']} if none is flagged, "
        f"{cost['all']} if all are; savings {found['savings']:.1%} {ends}"
    )


def interval(value: dict[str, Any]) -> str:
    """Return a confidence interval as text; without limits if all resamples agree, which is no certainty."""
    if value["high"] - value["low"] < 1e-9:
        return "unknown: too few rows differ"
    return f"[{value['low']:.4f}, {value['high']:.4f}]"


# Display of the warnings of a command: each text once, on one line.


@contextmanager
def warnings_shown(show: Callable[[str], None]) -> Iterator[None]:
    """Call ``show`` once with the text of each warning; for commands, which do not share the process."""
    seen: set[str] = set()

    def note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        text = str(message)
        if text not in seen and not is_hushed(category):
            seen.add(text)
            show(text)

    with warnings.catch_warnings():
        # With its default filter, Python would count a suppressed warning as shown.
        warnings.simplefilter("always", UserWarning, append=True)
        warnings.showwarning = note
        yield


# Checks before a command runs, and the display of its errors.


# Errors that are shown to the user as one line; any other error is a bug and shows its traceback.
USER_ERRORS = (ValueError, OSError, ImportError, TypeError)
# Options for output files; every other path of a command is an input.
OUTPUTS = {"out": "--out", "resume": "--resume", "review": "--review", "state": "--state"}
# Parameters of the workflow whose flags have other names; None if there is no flag.
FLAGS = {"n_jobs": "--jobs", "n_splits": "--splits", "random_state": "--seed", "store": "--resume", "types": None}
# Options of the command that runs.
running_flags: ContextVar[set[str]] = ContextVar("running_flags")
# Flags for parameters that are False.
NEGATED = {"day_first": "--month-first"}


def guarded(*packages: str, prints: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Check packages, files and standard output before a command, and convert its errors to a line and an exit code."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        flags = _flags(command)

        @functools.wraps(command)
        def run(*args: Any, **options: Any) -> None:
            running_flags.set(flags)
            try:
                with warnings_shown(lambda text: screen.print(f"Warning: {text}")):
                    _import(packages)
                    _check_files(options, prints)
                    command(*args, **options)
            except BrokenPipeError:
                raise
            except ParameterError as error:
                raise typer.BadParameter(visible(render(error, as_flag))) from None
            except USER_ERRORS as error:
                if options.get("verbose"):
                    traceback.print_exc()
                text = error_text(error) if isinstance(error, OSError) else render(error, as_flag)
                screen.print(f"Error: {text}")
                raise typer.Exit(1) from None

        return run

    return decorate


def _import(packages: tuple[str, ...]) -> None:
    """Import what a command needs, which takes seconds, with a status on a terminal; name a package that is missing."""
    with working("starting"):
        for package in packages:
            need(package)
        if "pandas" in packages:
            importlib.import_module("rocmax.tables")


def as_flag(parameter: Parameter) -> str | None:
    """Return a parameter of the workflow as a flag of the running command; None if the command has no such flag."""
    flag = FLAGS.get(parameter.name, _flag(parameter.name))
    if parameter.value is False:
        flag = NEGATED[parameter.name]
    if flag is None or flag not in running_flags.get():
        return None
    if parameter.value in (None, ..., True, False):
        return flag
    values = parameter.value if isinstance(parameter.value, list) else [parameter.value]
    return " ".join(f"{flag} {shlex.quote(str(value))}" for value in values)


def _flags(command: Callable[..., None]) -> set[str]:
    """Return the options of a command, as they are typed."""
    flags: set[str] = set()
    for name, kind in get_type_hints(command, include_extras=True).items():
        for option in getattr(kind, "__metadata__", ()):
            if isinstance(option, typer.models.OptionInfo):
                # In an annotation, the first name is where the default would be.
                texts = [text for text in (option.default, *(option.param_decls or ())) if isinstance(text, str)]
                flags |= {flag for text in texts or [_flag(name)] for flag in text.split("/")}
    return flags


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def note(text: str) -> None:
    """Print a note of the workflow, or a warning if it is one."""
    screen.print(f"{'Warning' if isinstance(text, Caution) else 'Note'}: {render(text, as_flag)}")


def _check_files(options: dict[str, Any], prints: bool) -> None:
    """Raise an error if an output file is also an input, is written twice, or cannot be written."""
    outputs = [(OUTPUTS[name], path) for name, path in options.items() if name in OUTPUTS and path is not None]
    inputs = list(_paths(value for name, value in options.items() if name not in OUTPUTS))
    if prints or (not outputs and "out" in options):
        _check_stdout(inputs)
    for _, path in outputs:
        check_not_input(path, inputs)
        check_output(path)
    for (first, path), (second, other) in combinations(outputs, 2):
        if same_file(path, other):
            raise ValueError(f"{first} and {second} must be different files; got {other} for both")


def _paths(values: Iterator[Any]) -> Iterator[Path]:
    for value in values:
        if isinstance(value, Path):
            yield value
        elif isinstance(value, list):
            yield from _paths(iter(value))


def _check_stdout(inputs: list[Path]) -> None:
    if sys.stdout is None:
        raise ValueError("standard output must be open; redirect it to a file or to /dev/null")
    try:
        out = os.fstat(sys.stdout.fileno())
    except OSError:  # not an operating-system file, as in tests and notebooks
        return
    for path in inputs:
        if stat.S_ISREG(out.st_mode) and path.exists() and os.path.samestat(out, path.stat()):
            raise ValueError(f"standard output must not be redirected to the input {path}; redirect it to another file")
