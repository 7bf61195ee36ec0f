"""The demo as a user runs it, and the examples in the documents."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from helpers.commands import run, run_program
from rocmax import demo

# They start processes, or take seconds.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def without_numbers(text):
    """Return the lines with one space between words and # for numbers."""
    return [re.sub(r"\d+(\.\d+)?", "#", " ".join(line.split())) for line in text.splitlines()]


def at_the_threshold(output):
    """Return TPR and FPR of the evaluation on later rows."""
    (line,) = re.findall(r"^at the threshold: TPR ([\d.]+), FPR ([\d.]+) \(limit 0.01\)", output, re.MULTILINE)
    return tuple(map(float, line))


def test_the_demo_prints_what_the_readme_shows_and_keeps_its_limit_on_later_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_program("demo")
    printed = without_numbers(done.stdout)
    blocks = re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (shown,) = [block for block in blocks if block.startswith("$ rocmax fit")]
    assert [line for line in without_numbers(shown) if line not in printed] == []
    tpr, fpr = at_the_threshold(done.stdout)
    assert tpr > 0.4
    assert fpr <= 0.012
    assert (tmp_path / "rocmax_demo" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_tables_follow_from_the_seed(tmp_path):
    tables = [demo.payments_table(seed) for seed in (7, 7, 8)]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])
    assert tables[0]["time"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("args", "complaint"), [(["--seed", "-1"], "--seed"), (["--seed", "1.5"], "--seed"), (["--rows", "3"], "--rows")]
)
def test_a_wrong_argument_is_refused_before_any_work(args, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("demo", *args, code=2)
    assert complaint in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "out").write_text("mine")
    done = run("demo", "--out", tmp_path / "out", code=2)
    assert "--out must be a directory; got the file" in done.stderr
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_in_the_documents_run(document):
    if document.name == "networks.md":
        pytest.importorskip("torch")
    failed, tried = doctest.testfile(str(document), module_relative=False, encoding="utf-8")
    assert failed == 0
    assert tried > 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_in_the_documents_lead_somewhere(document):
    links = re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []
