"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rocmax import __version__
from rocmax.cli._guard import guarded, need
from rocmax.cli._screen import counting, say, screen, show_json, show_table, working

app = typer.Typer(
    help="Train classifiers for what they are judged by, and decide with them.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Data = Annotated[
    Path, typer.Argument(help="A table: .csv, .tsv, .parquet or .svmlight, the text ones also compressed.")
]
ModelFile = Annotated[Path, typer.Argument(help="A model that `rocmax fit` saved.")]
TargetName = Annotated[str | None, typer.Option("--target", help="The column with the labels.")]
Positive = Annotated[str | None, typer.Option(help="The label of the class that matters.")]
MaxFPR = Annotated[float, typer.Option(min=0.0, max=1.0, help="Limit on the false-positive rate.")]
MinFPR = Annotated[float, typer.Option(min=0.0, max=1.0, help="Lower end of the window of false-positive rates.")]
MeasureName = Annotated[
    str | None,
    typer.Option("--measure", help="roc_auc, partial_auc (default with --max-fpr), tpr_at_fpr or break_even_point."),
]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be given several times.")]
Group = Annotated[str | None, typer.Option(help="Rows with the same value here stay on one side of a split.")]
Delimiter = Annotated[str | None, typer.Option(help="What separates the fields of a text table.")]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="The svmlight file counts features from 0.")]
MaxBytes = Annotated[
    int | None,
    typer.Option(min=1, help="Most bytes that a packed table or a model may unpack to; by default 100 times its size."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show where an error came from.")]


def _version(wanted: bool) -> None:
    if wanted:
        say(f"rocmax {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Train classifiers for what they are judged by, and decide with them."""


@app.command()
@guarded(prints=True)
def demo(
    out: Annotated[Path | None, typer.Option(help="The picture, rocmax_demo.png if not given.")] = None, seed: Seed = 0
) -> None:
    """Find fraud at few false alarms, on generated card payments."""
    from rocmax import demo as module

    picture = [] if out is None else ["--out", str(out)]
    raise typer.Exit(module.main([*picture, "--seed", str(seed)]))


@app.command()
@guarded("pandas", "pyarrow", "skops", prints=True)
def fit(
    data: Data,
    out: Annotated[Path, typer.Option(help="The model file to write.")],
    target: TargetName = None,
    positive: Positive = None,
    max_fpr: MaxFPR = 1.0,
    min_fpr: MinFPR = 0.0,
    measure: MeasureName = None,
    model: Annotated[str, typer.Option(help="auto, auc, logistic or svm.")] = "auto",
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Choose the strength of the model by cross-validation.")
    ] = True,
    confidence: Annotated[
        float | None, typer.Option(help="Keep the limit on new rows with this probability, such as 0.95.")
    ] = None,
    drop: Drop = None,
    group: Group = None,
    test_share: Annotated[float, typer.Option(min=0.05, max=0.9, help="Share of the rows to set aside.")] = 0.25,
    delimiter: Delimiter = None,
    zero_based: ZeroBased = False,
    max_bytes: MaxBytes = None,
    seed: Seed = 0,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Learn from a table, choose a threshold, measure on rows set aside, and save the model."""
    from rocmax.model_io import save
    from rocmax.workflow import fitting as _fit
    from rocmax.workflow.evaluation import measured
    from rocmax.workflow.tables import positive_scores

    options = _fit.Options(
        _window(min_fpr, max_fpr),
        _measure(measure, max_fpr),
        _one_of("--model", model, SAVED),
        confidence,
        test_share,
        seed,
        tune,
    )
    if confidence is not None and not 0 < confidence < 1:
        raise typer.BadParameter(f"--confidence needs a number above 0 and below 1; got {confidence:g}")
    if confidence is not None and max_fpr == 1.0:
        raise typer.BadParameter("--confidence needs a limit: --max-fpr")
    with working(f"reading {data}"):
        training = _training(data, target, positive, drop, group, delimiter, zero_based, max_bytes)
    with working("fitting"):
        fitted = _fit.fit(training, options)
        about = _fit.facts(training, options, target, fitted, zero_based)
        scores = positive_scores(fitted.model, _rows(training.X, fitted.test), training.target.positive)
        result = measured(options.measure, about, training.target.is_positive[fitted.test], scores)
    if tune and fitted.tuning is None:
        screen.print("Note: not tuned: one class has too few rows, or groups, for folds")
    about["held_out"] = result
    save(fitted.model, out, about=about)
    if json:
        show_json({**about, "out": str(out)})
        return
    _show_fit(training, about, result, out)


@app.command()
@guarded("pandas", "pyarrow", "skops")
def predict(
    model: ModelFile,
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .parquet file; without it, csv on standard output.")
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="Put ' before labels that a spreadsheet would take for formulas."),
    ] = False,
    delimiter: Delimiter = None,
    max_bytes: MaxBytes = None,
    verbose: Verbose = False,
) -> None:
    """Write a score and a label for each row, in order; files of any size."""
    from rocmax.workflow import prediction as _predict

    if escape_formulas and out is not None and out.suffix == ".parquet":
        raise typer.BadParameter("--escape-formulas is for csv, which spreadsheets open; got a .parquet file")
    with counting("rows scored") as advance:
        rows = _predict.predict(model, data, out, escape_formulas, delimiter, advance, max_bytes)
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
    """Measure a model on rows with labels."""
    from rocmax.workflow import evaluation as _measure

    with working("scoring"):
        result = _measure.evaluation(_measure.score_file(model, data, target, delimiter, max_bytes))
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
    models: Annotated[str, typer.Option(help="Names separated by commas: auto, auc, logistic, svm, lightgbm.")] = (
        "auto,auc,logistic"
    ),
    out: Annotated[Path | None, typer.Option(help="The table, .csv.")] = None,
    splits: Annotated[int, typer.Option(min=2, help="Number of random splits.")] = 10,
    jobs: Annotated[int, typer.Option(help="Fits at a time; -1 for all cores.")] = 1,
    resume: Annotated[Path | None, typer.Option(help="A file that keeps results, to go on after a stop.")] = None,
    drop: Drop = None,
    group: Group = None,
    delimiter: Delimiter = None,
    zero_based: ZeroBased = False,
    max_bytes: MaxBytes = None,
    seed: Seed = 0,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compare models on the same random splits, each tuned alike."""
    names = [_one_of("--models", name.strip(), (*SAVED, "lightgbm")) for name in models.split(",")]
    window, chosen = _window(min_fpr, max_fpr), _measure(measure, max_fpr)
    if jobs == 0:
        raise typer.BadParameter("--jobs needs a number of fits at a time, or -1 for all cores; got 0")
    if "lightgbm" in names:
        need("lightgbm")
    from rocmax.workflow import model_comparison as _compare
    from rocmax.workflow.comparison import read_store

    if resume is not None:
        read_store(resume)  # before the work: an error if the file holds something else
    with working(f"reading {data}"):
        training = _training(data, target, positive, drop, group, delimiter, zero_based, max_bytes)
    with counting("fits", len(names) * splits) as advance:
        table = _compare.run(training, names, window, chosen, splits, jobs, resume, seed, advance)
    if out is not None:
        _compare.write(table, out)
    if json:
        show_json(_compare.as_json(table))
        return
    say(f"{chosen} of class {training.target.positive!r}, {splits} splits, each model tuned on the training rows")
    show_table(["model", "mean", "standard error", "p against the best", "seconds"], _compare.rows(table))


@app.command()
@guarded("pandas", "pyarrow", "skops", "jinja2")
def report(
    files: Annotated[list[Path], typer.Argument(help="One or more models, then the table with labels.")],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    target: TargetName = None,
    delimiter: Delimiter = None,
    max_bytes: MaxBytes = None,
    verbose: Verbose = False,
) -> None:
    """Write one page that shows models on a table: curves, a slider for the limit, intervals and tests."""
    from rocmax.workflow import reporting as _report

    if len(files) < 2:
        raise typer.BadParameter("give one or more model files, and then the table")
    with working("scoring"):
        _report.write(files[:-1], files[-1], target, delimiter, out, max_bytes)
    screen.print(f"report: {out}")


@app.command()
@guarded("onnx", "skops")
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Argument(help="The .onnx file to write.")],
    max_bytes: MaxBytes = None,
    verbose: Verbose = False,
) -> None:
    """Write a linear model with its preprocessing as ONNX."""
    from rocmax.backends.onnx import export_file

    export_file(model, out, max_bytes=max_bytes)
    screen.print(f"exported: {out}")


SAVED = ("auto", "auc", "logistic", "svm")


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise typer.BadParameter(f"{option} needs one of {', '.join(choices)}; got {value!r}")
    return value


def _window(min_fpr: float, max_fpr: float) -> tuple[float, float]:
    if not min_fpr < max_fpr:
        raise typer.BadParameter(f"--min-fpr needs to be below --max-fpr; got {min_fpr:g} and {max_fpr:g}")
    if min_fpr > 0 and max_fpr == 1.0:
        raise typer.BadParameter(f"--min-fpr needs a limit too: --max-fpr, above {min_fpr:g} and below 1")
    return min_fpr, max_fpr


def _measure(measure: str | None, max_fpr: float) -> str:
    from rocmax.workflow.evaluation import window_measure_names

    if measure is None:
        return "roc_auc" if max_fpr == 1.0 else "partial_auc"
    chosen = _one_of("--measure", measure.removesuffix("_score"), tuple(window_measure_names()))
    if chosen == "tpr_at_fpr" and max_fpr == 1.0:
        raise typer.BadParameter("--measure tpr_at_fpr needs a limit: --max-fpr")
    return chosen


def _training(
    data: Path,
    target: str | None,
    positive: str | None,
    drop: list[str] | None,
    group: str | None,
    delimiter: str | None,
    zero_based: bool,
    max_bytes: int | None,
) -> Any:
    from rocmax.workflow.fitting import read_training
    from rocmax.workflow.tables import UnclearTargetError

    try:
        training = read_training(data, target, positive, drop or [], group, delimiter, zero_based, max_bytes)
    except UnclearTargetError as error:
        raise typer.BadParameter(str(error)) from error
    for note in training.notes:
        screen.print(f"Note: {note}")
    return training


def _rows(X: Any, index: Any) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, index)


def _show_fit(training: Any, about: dict[str, Any], result: dict[str, Any], out: Path) -> None:
    from rocmax.workflow.fitting import tuning_text

    target = training.target
    counts = int(target.is_positive.sum())
    say(f"positive class: {target.positive!r} ({counts} rows); others: {target.labels.size - counts} rows")
    say(f"trained on {about['rows']['train']} rows, {about['rows']['held out']} held out")
    say(tuning_text(about["tuning"]))
    title = _title(about["measure"], result)
    say(f"{title}: {result['value']:.4f}, 95 % interval {_interval(result)}, on the rows held out")
    if about["max_fpr"] < 1:
        kept = f" with confidence {about['confidence']:g}" if about["confidence"] else ""
        say(f"threshold for at most {100 * about['max_fpr']:g} % of false positives{kept}: {about['threshold']:.6g}")
    say(f"model: {out}")


def _title(name: str, value: dict[str, Any]) -> str:
    from rocmax.measures import pick_measure

    return pick_measure(name, value).title


def _interval(value: dict[str, Any]) -> str:
    return f"[{value['low']:.4f}, {value['high']:.4f}]"
