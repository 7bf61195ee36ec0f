"""Batches of a model's tables: state, late labels, audits, bad input, and processes that are killed."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.commands import run
from helpers.tables import SCRIPT, payments
from rocmax.tables import Columns, Limits, Watching, fit_table, load_model, monitor_table

N_ROWS = 300


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with a limit of 10 %, from a file."""
    path = tmp_path_factory.mktemp("monitored") / "m.rocmax"
    table = payments(1200).drop(columns="customer")
    limits = Limits(0.1, 0.9)
    fit_table(table, target="label", positive="fraud", limits=limits, model="linear", tune=False).save(path)
    return load_model(path)


def day(number, n_rows=N_ROWS, shift=0.0):
    """The payments of a day, with identifiers; the scores of negatives rise by the shift."""
    table = payments(n_rows, 100 + number)
    table.loc[table.label == "ok", SCRIPT] += shift
    date = pd.Timestamp("2026-03-01") + pd.Timedelta(days=number)
    return table.assign(payment=[f"p{number}-{i}" for i in range(n_rows)], date=date.strftime("%Y-%m-%d"))


def without_labels(table):
    return table.drop(columns="label")


WATCHED = Watching(id="payment", time="date")


def numbers(state):
    """The state without the key of the hashes and the place of the files."""
    found = json.loads(Path(state).read_text())
    return {name: value for name, value in found.items() if name != "key"}


def test_labels_that_come_later_in_any_order_count_as_those_in_the_batch(model, tmp_path):
    early, late = tmp_path / "early.json", tmp_path / "late.json"
    for number in range(6):
        monitor_table(model, day(number), early, watching=WATCHED)
        monitor_table(model, without_labels(day(number)), late, watching=WATCHED)
    labels = pd.concat([day(number) for number in range(6)])[["payment", "label"]].sample(frac=1.0, random_state=0)
    assert monitor_table(model, None, late, labels=labels[:1000]).labels == 1000
    found = monitor_table(model, None, late, labels=labels[1000:])
    once = monitor_table(model, day(0), early)
    assert numbers(late)["monitor"]["periods"] == numbers(early)["monitor"]["periods"]
    assert numbers(late)["monitor"]["stretches"] == numbers(early)["monitor"]["stretches"]
    assert found.verdicts == once.verdicts
    assert found.verdicts[0].n == int((labels.label == "ok").sum())


def test_a_rate_that_rises_is_dated_and_a_threshold_is_proposed_that_keeps_the_limit(model, tmp_path):
    state = tmp_path / "s.json"
    for number in range(30):
        found = monitor_table(model, day(number, shift=1.0 * (number >= 12)), state, watching=WATCHED)
    (verdict,) = found.verdicts
    assert verdict.status == "broken"
    assert verdict.since in {"2026-03-12", "2026-03-13", "2026-03-14"}
    (proposal,) = found.proposals
    later = day(99, 20_000, shift=1.0)
    scores = model.positive_scores(later[later.label == "ok"])
    assert (scores > 0).mean() > 0.15
    assert 0.05 < (scores > proposal.threshold).mean() <= 0.1
    # A state of its own watches the new threshold.
    again = monitor_table(model, later, tmp_path / "new.json", watching=Watching(threshold=proposal.threshold))
    assert again.flagged == int((model.positive_scores(later) > proposal.threshold).sum())


def test_a_batch_is_counted_once_and_its_copy_is_recognized(model, tmp_path):
    state, file, copy = tmp_path / "s.json", tmp_path / "a.csv", tmp_path / "b.csv"
    day(0).drop(columns="payment").to_csv(file, index=False)
    copy.write_bytes(file.read_bytes())
    monitor_table(model, file, state)
    before = state.read_bytes()
    found = monitor_table(model, copy, state)
    assert "was counted before, as batch 0, and is not counted again" in found.notes[0]
    assert (found.batch, found.rows, state.read_bytes()) == (None, 0, before)
    # The name says that these are other rows.
    assert monitor_table(model, copy, state, watching=Watching(name="again")).rows == N_ROWS


def test_frames_are_recognized_too(model, tmp_path):
    monitor_table(model, day(0), tmp_path / "s.json")
    assert monitor_table(model, day(0), tmp_path / "s.json").rows == 0
    assert monitor_table(model, day(0).assign(age=1.0), tmp_path / "s.json").rows == N_ROWS


def test_late_labels_of_a_file_are_counted_once(model, tmp_path):
    state, file = tmp_path / "s.json", tmp_path / "labels.csv"
    day(0)[["payment", "label"]].to_csv(file, index=False)
    assert monitor_table(model, without_labels(day(0)), state, labels=file, watching=WATCHED).labels == N_ROWS
    before = state.read_bytes()
    found = monitor_table(model, without_labels(day(0)), state, labels=file)
    assert (found.labels, state.read_bytes()) == (0, before)
    assert "are not counted again" in found.notes[1]


def test_identifiers_may_be_numbers_and_several_columns(model, tmp_path):
    table = day(0).assign(shop=np.arange(N_ROWS) % 7, bill=[f"{i // 7:03d}" for i in range(N_ROWS)])
    file = tmp_path / "batch.csv"
    without_labels(table).to_csv(file, index=False)
    watching = Watching(id=["shop", "bill"])
    labels = table[["bill", "shop", "label"]]
    found = monitor_table(model, file, tmp_path / "s.json", labels=labels, watching=watching)
    assert found.labels == N_ROWS


def test_identifiers_of_the_fit_are_used(tmp_path):
    table = payments(600).assign(payment=np.arange(600))
    columns = Columns(target="label", positive="fraud", id="payment", drop="customer")
    fitted = fit_table(table, columns=columns, max_fpr=0.1, model="linear", tune=False)
    batch = payments(100, 5).assign(payment=np.arange(100))
    found = monitor_table(fitted, without_labels(batch), tmp_path / "s.json", labels=batch[["payment", "label"]])
    assert found.labels == 100


# Bad input leaves the state as it was

BAD_LABELS = {
    "an unknown row": (
        lambda table: table.replace({"p0-3": "p9-3"}),
        r"row 4 after the header: payment 'p9-3' is in no batch that was counted",
    ),
    "twice the same": (
        lambda table: pd.concat([table, table[5:6]]),
        r"payment 'p0-5' has its label already; each label is counted once",
    ),
    "twice, with another label": (
        lambda table: pd.concat([table, table[5:6].replace({"ok": "fraud", "fraud": "ok"})]),
        r"payment 'p0-5' has another label already",
    ),
    "no label": (
        lambda table: table.assign(label=[None, *table.label[1:]]),
        "must have a label in each row; got 1 missing",
    ),
    "another class": (
        lambda table: table.replace({"ok": "fine"}),
        "the labels in column 'label' must be those of the model",
    ),
    "no identifier": (lambda table: table.drop(columns="payment"), "payment"),
    "a missing identifier": (
        lambda table: table.replace({"p0-3": None}),
        "'payment' must identify each row; got 1 row",
    ),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_labels_that_cannot_be_counted_are_errors_and_change_nothing(model, tmp_path, case):
    change, message = BAD_LABELS[case]
    state = tmp_path / "s.json"
    monitor_table(model, without_labels(day(0)), state, watching=WATCHED)
    before = state.read_bytes()
    with pytest.raises(ValueError, match=message):
        monitor_table(model, without_labels(day(1)), state, labels=change(day(0)[["payment", "label"]]))
    assert state.read_bytes() == before
    # What was refused has left no trace.
    found = monitor_table(model, without_labels(day(1)), state, labels=day(0)[["payment", "label"]])
    assert (found.rows, found.labels) == (N_ROWS, N_ROWS)


def test_a_ledger_that_is_read_in_pieces_finds_the_same(model, tmp_path, monkeypatch):
    monkeypatch.setattr("rocmax.tables.monitor.PIECE", 37)
    state, late, labels = tmp_path / "s.json", tmp_path / "late.json", [day(number) for number in range(3)]
    for table in labels:
        monitor_table(model, table, state, watching=WATCHED)
        monitor_table(model, without_labels(table), late, watching=WATCHED)
    with pytest.raises(ValueError, match=r"row 300 after the header has the identifier of another row"):
        monitor_table(model, day(3).assign(payment=[*day(3).payment[:-1], "p0-7"]), state)
    all_labels = pd.concat(labels)[["payment", "label"]].sample(frac=1.0, random_state=0)
    repeated = pd.concat([all_labels, all_labels[100:101]])
    with pytest.raises(ValueError, match=rf"row 901 after the header: payment '{repeated.payment.iloc[100]}' has its"):
        monitor_table(model, None, late, labels=repeated)
    monitor_table(model, None, late, labels=all_labels)
    assert numbers(late)["monitor"]["periods"] == numbers(state)["monitor"]["periods"]


def test_what_a_killed_process_left_behind_the_counted_records_is_dropped(model, tmp_path):
    state, ledger = tmp_path / "s.json", tmp_path / "s.json.ids"
    monitor_table(model, without_labels(day(0)), state, watching=WATCHED)
    ledger.write_bytes(ledger.read_bytes() + bytes(range(1, 251)))
    found = monitor_table(model, day(1), state, labels=day(0)[["payment", "label"]])
    assert found.labels == 2 * N_ROWS
    assert ledger.stat().st_size == 16 * (3 * N_ROWS + 3)


@pytest.mark.parametrize(("again", "message"), [(False, "has another label already"), (True, "has its label already")])
def test_labels_that_were_counted_are_refused(model, tmp_path, again, message):
    state, labels = tmp_path / "s.json", day(0)[["payment", "label"]]
    monitor_table(model, day(0), state, watching=WATCHED)
    new = labels if again else labels.replace({"ok": "fraud", "fraud": "ok"})
    with pytest.raises(ValueError, match=rf"{message}.*\(300 such rows\)"):
        monitor_table(model, None, state, labels=new)


BAD_BATCHES = {
    "a row of an earlier batch": (
        lambda table: table.assign(payment=[*table.payment[:-1], "p0-0"]),
        r"row 300 after the header has the identifier of another row",
    ),
    "a row twice": (
        lambda table: table.assign(payment=[*table.payment[:-1], "p1-0"]),
        r"row 300 after the header has the identifier of another row",
    ),
    "no identifiers": (lambda table: table.drop(columns="payment"), "payment"),
    "a column less": (lambda table: table.drop(columns="age"), "age"),
    "no dates": (
        lambda table: table.assign(date=[None, *table.date[1:]]),
        "must have a time in each row; got 1 of",
    ),
    "no date": (lambda table: table.assign(date="soon"), "column 'date' must contain dates; got 'soon'"),
    "scores of another model": (
        lambda table: table.assign(score=0.5),
        r"has been scored by another model: its column 'score' has 0.5 where this model has .* in 300 of 300 rows",
    ),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_batches_that_cannot_be_counted_are_errors_and_change_nothing(model, tmp_path, case):
    change, message = BAD_BATCHES[case]
    state = tmp_path / "s.json"
    monitor_table(model, day(0), state, watching=WATCHED)
    before = state.read_bytes()
    with pytest.raises(ValueError, match=message):
        monitor_table(model, change(day(1)), state)
    assert state.read_bytes() == before
    assert monitor_table(model, day(1), state).rows == N_ROWS


def test_scores_that_the_model_has_written_are_accepted(model, tmp_path):
    table = day(0).assign(score=model.positive_scores(day(0)))
    assert monitor_table(model, table, tmp_path / "s.json").rows == N_ROWS


def damaged(state, **changes):
    """Change fields of a state."""
    found = json.loads(state.read_text())
    state.write_text(json.dumps({**found, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "must have version 1; got 2"),
        ({"model": "0"}, "is the state of another model"),
        ({"monitor": {"version": 2}}, "is damaged"),
        ({"records": 10**6}, "must have the 1,000,000 records that the state counts; got 301"),
    ],
)
def test_another_state_is_refused_and_stays(model, tmp_path, changes, message):
    state = tmp_path / "s.json"
    monitor_table(model, day(0), state, watching=WATCHED)
    damaged(state, **changes)
    before = state.read_bytes(), (tmp_path / "s.json.ids").read_bytes()
    with pytest.raises(ValueError, match=message):
        monitor_table(model, day(1), state)
    assert (state.read_bytes(), (tmp_path / "s.json.ids").read_bytes()) == before


def test_the_state_of_another_fit_to_the_same_table_is_refused(model, tmp_path):
    table = payments(1200).drop(columns="customer")
    other = fit_table(table, target="label", positive="fraud", max_fpr=0.1, model="linear", tune=False)
    monitor_table(other, day(0), tmp_path / "s.json")
    another = fit_table(table, target="label", positive="fraud", max_fpr=0.1, model="auc", tune=False)
    with pytest.raises(ValueError, match="is the state of another model than the model"):
        monitor_table(another, day(1), tmp_path / "s.json")
    (tmp_path / "t.json").write_text("[]")
    with pytest.raises(ValueError, match="is not the state of a monitor"):
        monitor_table(other, day(0), tmp_path / "t.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": Limits(0.2)}, r"max_fpr=?.* must be as in .*s.json, 0.1; got 0.2"),
        ({"watching": Watching(id="customer")}, r"must be as in .*, \['payment'\]; got \['customer'\]"),
        ({"watching": Watching(labeled="alerts")}, "must be as in .*, 'all'; got 'alerts'"),
    ],
)
def test_other_options_than_those_of_the_state_are_refused(model, tmp_path, options, message):
    monitor_table(model, day(0), tmp_path / "s.json", watching=WATCHED)
    with pytest.raises(ValueError, match=message):
        monitor_table(model, day(1), tmp_path / "s.json", **options)
    monitor_table(model, day(1), tmp_path / "s.json", limits=Limits(0.1), watching=WATCHED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"watching": Watching(id="age")}, "must be no column that the model uses; got 'age'"),
        ({"limits": Limits(capacity=20, per="day")}, "a capacity per day requires the dates of rows"),
        ({"watching": Watching(labeled="some")}, "labeled must be one of 'all', 'alerts'; got 'some'"),
        (
            {"watching": Watching(labeled="alerts", audit=2.0)},
            "audit.* must be a probability above 0 and at most 1; got 2",
        ),
        ({"labels": day(0)[["payment", "label"]]}, "late labels require columns that identify rows"),
        ({"watching": Watching(review="r.csv")}, "requires columns that identify rows"),
        (
            {"limits": Limits(min_tpr=0.5), "watching": Watching(labeled="alerts")},
            r"about 427 positives, label [\d.]+ % of them at random, here \d+ rows: .*audit=0",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(model, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        monitor_table(model, day(0), "s.json", **options)
    assert not Path("s.json").exists()


def test_a_model_without_limits_needs_one(tmp_path):
    table = payments(400).drop(columns="customer")
    fitted = fit_table(table, target="label", positive="fraud", model="linear", tune=False)
    with pytest.raises(ValueError, match="was fitted without limits; give one to watch"):
        monitor_table(fitted, day(0), tmp_path / "s.json")
    found = monitor_table(fitted, day(0), tmp_path / "s.json", limits=Limits(capacity=0.5))
    assert [verdict.limit for verdict in found.verdicts] == ["capacity"]


def test_another_process_that_counts_is_waited_for_by_the_user(model, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    monitor_table(model, day(0), tmp_path / "s.json")
    with open(tmp_path / "s.json.ids", "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="is in use: another process counts a batch"):
            monitor_table(model, day(1), tmp_path / "s.json")
    assert monitor_table(model, day(1), tmp_path / "s.json").rows == N_ROWS


# Reviews and audits


def test_labels_of_alerts_and_of_the_audit_show_the_true_positive_rate(model, tmp_path):
    state, review = tmp_path / "s.json", tmp_path / "review.csv"
    watching = Watching(labeled="alerts", audit=0.2, id="payment", review=review)
    limits = Limits(min_tpr=0.3)
    listed, tables = [], [day(number, 2000) for number in range(5)]
    for table in tables:
        monitor_table(model, without_labels(table), state, limits=limits, watching=watching)
        listed.append(pd.read_csv(review))
        labels = listed[-1].merge(table, on="payment")[["payment", "label"]]
        found = monitor_table(model, None, state, labels=labels)
    rows = pd.concat(listed)
    scores = np.concatenate([model.positive_scores(table) for table in tables])
    assert (rows.why == "alert").sum() == (scores > 0).sum()
    assert (rows.why == "audit").sum() == pytest.approx(0.2 * (scores <= 0).sum(), rel=0.1)
    fraud = np.concatenate([table.label == "fraud" for table in tables])
    verdict = next(verdict for verdict in found.verdicts if verdict.limit == "min_tpr")
    assert verdict.low <= (scores[fraud] > 0).mean() <= verdict.high
    assert verdict.rate == pytest.approx((scores[fraud] > 0).mean(), abs=0.08)


def test_labels_of_rows_outside_the_audit_are_refused(model, tmp_path):
    state, review = tmp_path / "s.json", tmp_path / "review.csv"
    watching = Watching(labeled="alerts", audit=0.1, id="payment", review=review)
    monitor_table(model, without_labels(day(0)), state, watching=watching)
    listed = set(pd.read_csv(review).payment)
    other = day(0)[["payment", "label"]].loc[lambda table: ~table.payment.isin(listed)]
    with pytest.raises(ValueError, match="is neither flagged nor in the audit, so its label would mislead"):
        monitor_table(model, None, state, labels=other[:1])


def test_labels_of_alerts_cost_power_and_the_note_says_how_much(model, tmp_path):
    found = monitor_table(model, day(0), tmp_path / "s.json", watching=Watching(labeled="alerts"))
    share = model.facts.classes["positive"] / sum(model.facts.classes.values())
    assert f"noticed only above {100 * 0.1 / (1 - share):.3g} %" in found.notes[0]


# Changes of the columns


def test_missing_values_new_categories_and_other_distributions_are_named(model, tmp_path):
    for number in range(4):
        found = monitor_table(model, day(number), tmp_path / "s.json")
        assert found.changes == []
    changed = day(4).assign(country="ES", age=np.nan, amount=lambda table: table.amount * 5)
    texts = monitor_table(model, changed, tmp_path / "s.json").changes
    assert texts[0].startswith("age: missing values in 100.0% of the rows")
    assert texts[1].startswith("country: unknown categories in ")
    assert any(text.startswith("amount: distributed differently from the first batches") for text in texts)
    assert any(text.startswith("the score: distributed differently") for text in texts)
    assert not any(text.startswith("online") for text in texts)


# The command


@pytest.fixture
def here(model, tmp_path, monkeypatch):
    """A folder with the model, two batches and labels."""
    monkeypatch.chdir(tmp_path)
    Path("m.rocmax").write_bytes(model.path.read_bytes())
    for number in range(2):
        without_labels(day(number)).to_csv(f"b{number}.csv", index=False)
        day(number)[["payment", "label"]].to_csv(f"l{number}.csv", index=False)
    return tmp_path


def test_the_command_counts_batches_and_labels_and_writes_a_page(here):
    done = run("monitor", "m.rocmax", "b0.csv", "--id", "payment", "--time", "date", "--out", "p.html")
    assert "batch 2026-03-01: 300 rows" in done.stdout
    assert "not enough labels yet" in done.stdout
    run("monitor", "m.rocmax", "b1.csv", "--labels", "l0.csv")
    done = run("monitor", "m.rocmax", "--labels", "l1.csv", "--json")
    found = json.loads(done.stdout)
    assert (found["labels"], found["batch"]) == (N_ROWS, None)
    assert found["verdicts"][0]["n"] == int(sum((day(number).label == "ok").sum() for number in range(2)))
    page = Path("p.html").read_text()
    assert "not enough labels yet" in page
    assert not re.search(r"(src|href)=.(http|//)|url\(http", page)


def test_a_batch_from_an_open_file_with_a_name(here):
    with open("b0.csv", "rb") as file:
        found = monitor_table(
            load_model("m.rocmax"), file, "s.json", watching=Watching(name="<b>May</b>"), out="p.html"
        )
    assert found.batch == "<b>May</b>"
    assert "&lt;b&gt;May&lt;/b&gt;" in Path("p.html").read_text()
    assert "<b>May" not in Path("p.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["b0.csv", "--state", "b0.csv"], "the output must not be an input"),
        (["b0.csv", "--out", "p.html", "--state", "p.html"], "must be different files"),
        ([], "a batch or --labels is required; got neither"),
        (["b0.csv", "--capacity", "20", "--per", "day"], "a capacity per day requires the dates of rows: --time"),
    ],
)
def test_calls_that_cannot_work_are_refused(here, arguments, message):
    done = run("monitor", "m.rocmax", *arguments, code=2 if "required" in message or "requires" in message else 1)
    assert message in " ".join(done.stderr.replace("│", " ").split())


# Killed processes


OPERATIONS = ("write", "flush", "fsync", "truncate", "replace", "open", "unlink", "rename", "close")
FILES = ("_files.py", "tables/monitor.py", "pathlib.py")


def killed_at(call, point):
    """Run a call in a new process that is killed before the given operation on files; return whether it was."""
    child = os.fork()
    if child == 0:
        seen = 0

        def watch(frame, event, argument):
            nonlocal seen
            name = getattr(argument, "__name__", "") if event == "c_call" else ""
            if name in OPERATIONS and frame.f_code.co_filename.endswith(FILES):
                if seen == point:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen += 1

        code = 1
        try:
            sys.setprofile(watch)
            call()
            sys.setprofile(None)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("first", [True, False], ids=["first batch", "later batch with labels"])
def test_a_process_that_is_killed_at_any_write_loses_nothing_and_counts_nothing_twice(here, model, first):
    def call():
        watching = replace(WATCHED, review="r.csv")
        options = {"labels": None if first else "l0.csv", "watching": watching, "out": "p.html"}
        return monitor_table(model, "b0.csv" if first else "b1.csv", "s.json", **options)

    files = [Path(name) for name in ("s.json", "s.json.ids", "p.html", "r.csv")]
    if not first:
        monitor_table(model, "b0.csv", "s.json", watching=WATCHED)
    before = {path: path.read_bytes() for path in files if path.exists()}
    expected = call()
    wanted = numbers("s.json"), np.frombuffer(files[1].read_bytes(), dtype="V8")[1::2].tolist()
    page, review = files[2].read_text(), files[3].read_text()
    point, committed = 0, set()
    while True:
        for path in files:
            path.unlink(missing_ok=True)
            if path in before:
                path.write_bytes(before[path])
        if not killed_at(call, point):
            break
        committed.add(files[0].exists() and numbers("s.json") == wanted[0])
        found = call()
        assert (found.verdicts, found.proposals) == (expected.verdicts, expected.proposals)
        assert numbers("s.json") == wanted[0]
        # The batch, bin, label and kind of each record; the hashes depend on the key if the state is new.
        assert np.frombuffer(files[1].read_bytes(), dtype="V8")[1::2].tolist() == wanted[1]
        assert (files[2].read_text(), files[3].read_text()) == (page, review)
        point += 1
    assert point >= 15
    # Some were killed before the state was replaced, and some after.
    assert committed == {True, False}
    assert not list(Path().glob(".rocmax-*.part"))
