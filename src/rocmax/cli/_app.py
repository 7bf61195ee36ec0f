"""Commands and their options."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rocmax import __version__
from rocmax.cli._checks import guarded, note
from rocmax.cli._screen import counting, say, screen, show_json, show_table, working

app = typer.Typer(
    help="Train classifiers for ranking measures and choose their thresholds.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Data = Annotated[Path, typer.Argument(help="Table: .csv, .tsv, .parquet or .svmlight; text files may be compressed.")]
ModelFile = Annotated[Path, typer.Argument(help="Model saved by `rocmax fit`.")]
TargetName = Annotated[str | None, typer.Option("--target", help="Name of the column with the labels.")]
Positive = Annotated[str | None, typer.Option(help="Label of the positive class.")]
MaxFPR = Annotated[float, typer.Option(min=0.0, max=1.0, help="Limit on the false-positive rate.")]
MinFPR = Annotated[float, typer.Option(min=0.0, max=1.0, help="Lower end of the range of false-positive rates.")]
MeasureName = Annotated[
    str | None,
    typer.Option("--measure", help="roc_auc, partial_auc (default with --max-fpr), tpr_at_fpr or break_even_point."),
]
Tune = Annotated[bool, typer.Option("--tune/--no-tune", help="Tune the regularization by cross-validation.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to ignore; may be given several times.")]
Group = Annotated[str | None, typer.Option(help="Column with groups; rows of one group are never split.")]
Delimiter = Annotated[str | None, typer.Option(help="Field delimiter of a text table.")]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Feature indices of the svmlight file start at 0.")]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        min=1, help="Maximum decompressed size of a compressed table or a model; by default 100 times its size."
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random draws.")]
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
@guarded(prints=True)
def demo(
    out: Annotated[Path | None, typer.Option(help="Output image; rocmax_demo.png by default.")] = None, seed: Seed = 0
) -> None:
    """Detect fraud with few false alarms, on generated card payments."""
    from rocmax import demo as module

    picture = [] if out is None else ["--out", str(out)]
    raise typer.Exit(module.main([*picture, "--seed", str(seed)]))


@app.command()
@guarded("pandas", "pyarrow", "skops", prints=True)
def fit(
    data: Data,
    out: Annotated[Path, typer.Option(help="Model file to write.")],
    target: TargetName = None,
    positive: Positive = None,
    max_fpr: MaxFPR = 1.0,
    min_fpr: MinFPR = 0.0,
    measure: MeasureName = None,
    model: Annotated[
        str, typer.Option(help="linear, additive, boosted, auto (the best of these), auc, logistic, svm or lightgbm.")
    ] = "auto",
    tune: Tune = True,
    confidence: Annotated[
        float | None, typer.Option(help="Probability that the limit holds for new rows, such as 0.95.")
    ] = None,
    drop: Drop = None,
    group: Group = None,
    test_size: Annotated[float, typer.Option(min=0.05, max=0.9, help="Fraction of the rows to hold out.")] = 0.25,
    delimiter: Delimiter = None,
    zero_based: ZeroBased = False,
    max_bytes: MaxBytes = None,
    seed: Seed = 0,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Fit a model to a table, choose a threshold, evaluate it on held-out rows, and save it."""
    from rocmax.workflow import fit_table

    with working(f"fitting to {data}"):
        fitted = fit_table(
            data,
            target=target,
            positive=positive,
            max_fpr=max_fpr,
            min_fpr=min_fpr,
            measure=measure,
            model=model,
            tune=tune,
            confidence=confidence,
            drop=drop or [],
            group=group,
            test_size=test_size,
            delimiter=delimiter,
            zero_based=zero_based,
            max_bytes=max_bytes,
            random_state=seed,
            notify=note,
        )
    fitted.save(out)
    if json:
        show_json({**fitted.facts, "out": str(out)})
    else:
        _show_fit(fitted, out)


@app.command()
@guarded("pandas", "pyarrow", "skops")
def predict(
    model: ModelFile,
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="Output file, .csv or .parquet; by default csv on standard output.")
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="Put ' before labels that a spreadsheet would interpret as formulas."),
    ] = False,
    delimiter: Delimiter = None,
    max_bytes: MaxBytes = None,
    verbose: Verbose = False,
) -> None:
    """Write a score and a label for each row, for files of any size."""
    from rocmax.workflow import load_model, write_predictions

    with counting("rows scored") as advance:
        rows = write_predictions(
            load_model(model, max_bytes=max_bytes),
            data,
            sys.stdout.buffer if out is None else out,
            escape_formulas=escape_formulas,
            delimiter=delimiter,
            progress=advance,
        )
    if out is not None:
        screen.print(f"{rows} rows: {out}")


@app.command()
@guarded("pandas", "pyarrow", "skops", prints=True)
def evaluate(
    model: ModelFile,
    data: Data,
    target: TargetName = None,
    delimiter: Delimiter = None,
    max_bytes: MaxBytes = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Evaluate a model on labeled rows."""
    from rocmax import workflow

    with working("scoring"):
        fitted = workflow.load_model(model, max_bytes=max_bytes)
        found = workflow.evaluate(fitted, data, target=target, delimiter=delimiter, max_bytes=max_bytes)
    result = found.to_dict()
    if json:
        show_json(result)
        return
    rows = result["rows"]
    counts = f"{rows['positive']} of class {result['positive']!r} (positive), {rows['negative']} others"
    say(f"{result['model']} on {data}: {counts}")
    show_table(
        ["measure", "value", "95 % interval"],
        [
            [_title(name, value), f"{value['value']:.4f}", _interval(value)]
            for name, value in result["measures"].items()
        ],
    )
    at = result["threshold"]
    precision = "-" if at["precision"] is None else f"{at['precision']:.4f}"
    limit = "" if at["max_fpr"] is None else f" (limit {at['max_fpr']:g})"
    say(f"at the threshold: TPR {at['tpr']:.4f}, FPR {at['fpr']:.4f}{limit}, precision {precision}")


@app.command()
@guarded("pandas", "pyarrow", prints=True)
def compare(
    data: Data,
    target: TargetName = None,
    positive: Positive = None,
    max_fpr: MaxFPR = 1.0,
    min_fpr: MinFPR = 0.0,
    measure: MeasureName = None,
    models: Annotated[
        str | None,
        typer.Option(help="Names as in fit, separated by commas; by default linear, additive, boosted and logistic."),
    ] = None,
    tune: Tune = True,
    out: Annotated[Path | None, typer.Option(help="Output table, .csv.")] = None,
    splits: Annotated[int, typer.Option(min=2, help="Number of random splits.")] = 10,
    jobs: Annotated[int, typer.Option(help="Number of fits that run in parallel; -1 means all processors.")] = 1,
    resume: Annotated[Path | None, typer.Option(help="File of results, to resume a comparison.")] = None,
    drop: Drop = None,
    group: Group = None,
    delimiter: Delimiter = None,
    zero_based: ZeroBased = False,
    max_bytes: MaxBytes = None,
    seed: Seed = 0,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compare models on the same random splits, each fitted as by `rocmax fit`."""
    from rocmax.workflow import compare_models

    names = None if models is None else [name.strip() for name in models.split(",")]
    with counting("fits", None if names is None else len(names) * splits) as advance:
        found = compare_models(
            data,
            models=names,
            target=target,
            positive=positive,
            max_fpr=max_fpr,
            min_fpr=min_fpr,
            measure=measure,
            tune=tune,
            drop=drop or [],
            group=group,
            n_splits=splits,
            n_jobs=jobs,
            store=resume,
            delimiter=delimiter,
            zero_based=zero_based,
            max_bytes=max_bytes,
            random_state=seed,
            notify=note,
            progress=advance,
        )
    if out is not None:
        found.save(out)
    if json:
        show_json(found.to_dict())
        return
    how = "each model tuned on the training rows" if tune else "no model tuned"
    say(f"{found.measure} of class {found.positive!r}, {splits} splits, {how}")
    show_table(["model", "mean", "standard error", "p against the best", "seconds"], _comparison_rows(found.table))


@app.command()
@guarded("pandas", "pyarrow", "skops", "jinja2")
def report(
    files: Annotated[list[Path], typer.Argument(help="One or more models, followed by the labeled table.")],
    out: Annotated[Path, typer.Option(help="HTML page to write.")],
    target: TargetName = None,
    segment: Annotated[str | None, typer.Option(help="Column by whose values the results are also given.")] = None,
    delimiter: Delimiter = None,
    max_bytes: MaxBytes = None,
    verbose: Verbose = False,
) -> None:
    """Write an HTML report of models on a labeled table."""
    from rocmax.workflow import load_model, write_report

    if len(files) < 2:
        raise typer.BadParameter("pass one or more model files, followed by the table")
    with working("scoring"):
        models = [load_model(path, max_bytes=max_bytes) for path in files[:-1]]
        write_report(models, files[-1], out, target=target, segment=segment, delimiter=delimiter, max_bytes=max_bytes)
    screen.print(f"report: {out}")


@app.command()
@guarded("onnx", "skops")
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Argument(help="ONNX file to write.")],
    max_bytes: MaxBytes = None,
    verbose: Verbose = False,
) -> None:
    """Export a linear model with its preprocessing to ONNX."""
    from rocmax.backends.onnx import export_file

    export_file(model, out, max_bytes=max_bytes)
    screen.print(f"exported: {out}")


def _show_fit(fitted: Any, out: Path) -> None:
    from rocmax.workflow.tuning import tuning_text

    facts, result = fitted.facts, fitted.held_out
    rows, classes = facts["rows"], facts["classes"]
    say(f"positive class: {fitted.positive!r} ({classes['positive']} rows); others: {classes['negative']} rows")
    say(f"trained on {rows['train']} rows, {rows['held out']} held out")
    if facts["families"] is not None:
        _show_families(facts["families"])
    say(tuning_text(facts["tuning"]))
    title = _title(facts["measure"], result)
    say(f"{title}: {result['value']:.4f}, 95 % interval {_interval(result)}, on the held-out rows")
    if facts["max_fpr"] < 1:
        kept = f" with confidence {facts['confidence']:g}" if facts["confidence"] else ""
        say(f"threshold for at most {100 * facts['max_fpr']:g} % of false positives{kept}: {fitted.threshold:.6g}")
    say(f"model: {out}")


def _show_families(found: dict[str, Any]) -> None:
    say(f"families in {found['folds']} folds of at most {found['rows in a fold']} training rows:")
    columns = ["family", "mean", "standard error", "difference to the best", "its standard error", "seconds", ""]
    show_table(columns, [_family_row(row) for row in found["table"]])


def _family_row(row: dict[str, Any]) -> list[str]:
    errors = ["-" if row[name] is None else f"{row[name]:.4f}" for name in ("standard_error", "difference_error")]
    best = row["difference"] == 0
    return [
        row["family"],
        f"{row['mean']:.4f}",
        errors[0],
        "best" if best else f"{row['difference']:+.4f}",
        "-" if best else errors[1],
        f"{row['seconds']:.2f}",
        "chosen" if row["chosen"] else "",
    ]


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


def _title(name: str, value: dict[str, Any]) -> str:
    from rocmax.measures import pick_measure

    return pick_measure(name, value).title


def _interval(value: dict[str, Any]) -> str:
    return f"[{value['low']:.4f}, {value['high']:.4f}]"
