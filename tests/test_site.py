"""The site: every public name has a page, the pages build without warnings, links lead somewhere."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.extras import can_be_imported

ROOT = Path(__file__).parents[1]
API = ROOT / "docs" / "api"
PACKAGES = [
    "rocmax",
    "rocmax.costs",
    "rocmax.data",
    "rocmax.displays",
    "rocmax.explain",
    "rocmax.losses",
    "rocmax.measures",
    "rocmax.metrics",
    "rocmax.monitor",
    "rocmax.operators",
    "rocmax.papers",
    "rocmax.penalties",
    "rocmax.solvers",
    "rocmax.tables",
    "rocmax.dask",
    "rocmax.boosted.lightgbm",
    "rocmax.torch",
    "rocmax.boosted.xgboost",
]


def listed_names():
    """Return the names in the tables of the API reference, with their modules."""
    names = []
    for page in API.glob("*.rst"):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif re.fullmatch(r"   \w+", line) and page.name != "index.rst":
                names.append(f"{module}.{line.strip()}")
    return names


def public_names():
    """Return what rocmax exports, each name in the module that it says is its home."""
    names = set()
    for package in filter(can_be_imported, PACKAGES):
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            home = getattr(value, "__module__", package) if callable(value) else package
            if not inspect.ismodule(value) and home.startswith("rocmax"):
                names.add(f"{home if home in PACKAGES else package}.{name}")
    return names


def test_every_public_name_is_in_the_reference():
    missing = public_names() - set(listed_names())
    assert missing == set(), "to be listed in docs/api"


def test_the_reference_lists_public_names_once():
    names = listed_names()
    assert len(names) == len(set(names))
    modules = {name.rpartition(".")[0] for name in names}
    assert modules <= set(PACKAGES)
    for name in names:
        module, _, attribute = name.rpartition(".")
        if can_be_imported(module):
            assert attribute in importlib.import_module(module).__all__


def extension(name):
    """Return a module of the site, which is no package."""
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "_extensions" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_check_finds_links_that_lead_nowhere(tmp_path):
    links = extension("internal_links")
    good = '<a href="b.html#here">b</a><a href="#top">up</a><a href="https://example.org">x</a><img src="p.png">'
    (tmp_path / "a.html").write_text(good, encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html">a</a></p>', encoding="utf-8")
    (tmp_path / "p.png").write_bytes(b"")
    assert links.problems(tmp_path) == []
    bad = '<a href="b.html#gone"></a><a href="c.html"></a><script src="https://example.org/x.js"></script>'
    (tmp_path / "d.html").write_text(bad, encoding="utf-8")
    assert links.problems(tmp_path) == [
        "d.html: loads https://example.org/x.js",
        "d.html: no anchor for b.html#gone",
        "d.html: no file for c.html",
    ]


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("solver", "[results](../benchmarks/README.md)", "[results](/repository/benchmarks/README.md)"),
        ("solver", "[losses.md](losses.md#collapse)", "[](losses.md#collapse)"),
        ("solver", "[a list](losses.md) ![](images/collapse.png)", "[a list](losses.md) ![](images/collapse.png)"),
        ("solver", "[x](https://example.org)", "[x](https://example.org)"),
        ("solver", "`examples/plot_collapse.py`", "[`examples/plot_collapse.py`](/gallery/plot_collapse.rst)"),
        ("solver", "`results/boosted.md`", "[`results/boosted.md`](/repository/benchmarks/results/boosted.md)"),
        ("repository/CHANGELOG", "[cli](docs/cli.md)", "[cli](/cli.md)"),
        ("repository/benchmarks/README", "[x](results/boosted.md)", "[x](/repository/benchmarks/results/boosted.md)"),
    ],
)
def test_links_of_the_repository_are_links_of_the_site(page, text, expected):
    source = [text]
    extension("repository_pages").place_links(SimpleNamespace(srcdir=ROOT / "docs"), page, source)
    assert source == [expected]


def table_rows(path):
    """Return the cells of every row of the tables in a page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")}


BASELINES = {
    "logistic regression": "logistic",
    "logistic regression, balanced": "logistic balanced",
    "linear support vector machine": "linear SVC",
    "full AUC": "full AUC",
    "tight loss": "tight",
    "structural loss": "structural",
    "CCCP": "CCCP",
}


def test_figures_of_the_comparison_are_those_of_the_results():
    results = ROOT / "benchmarks" / "results"
    rows = table_rows(ROOT / "docs" / "model_comparison.md")
    counts = {row for row in rows if row[0] in BASELINES}
    assert {row[0] for row in counts} == set(BASELINES)
    linear = {row[0]: row for row in table_rows(results / "partial_auc.md") if len(row) == 6}
    for name, ahead, behind in counts:
        assert linear[BASELINES[name]][3:5] == (ahead, behind)
    printed = table_rows(results / "boosted.md") | table_rows(results / "family_choice.md")
    copied = {row for row in rows - counts if any(character.isdigit() for character in "".join(row))}
    assert len(copied) >= 11
    assert copied - printed == set()


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    pytest.importorskip("sphinx_gallery")
    # What a build writes next to its sources stays in the copy.
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "gallery", "generated"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [*command, str(tmp_path / "docs"), str(tmp_path / "html")], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "html" / "index.html").exists()


def test_the_readme_says_first_what_it_is_for():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    start = " ".join(text.split("\n")[:10])
    assert "flagged, and are usually trained for something else" in " ".join(start.split())
    assert all(f"\n{command} " in start + text for command in ("make demo", "make test"))
    for command in ("rocmax fit", "rocmax report", "rocmax monitor", "pip install"):
        assert f"\n{command} " in text
    # No formulas, and a page that is read at once.
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert not re.search(r"\$[^$]+\$|\\(frac|sum|int)", prose)
    assert len(re.findall(r"\w[\w'.-]*", re.sub(r"\]\([^)]*\)", "]", prose))) <= 700
    links = re.findall(r"\]\(([^)#]+)", text)
    assert len(links) > 10
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_figures_of_the_readme_are_those_of_the_results():
    results = ROOT / "benchmarks" / "results"
    evidence = {row[0]: row[2] for row in table_rows(ROOT / "README.md") if len(row) == 3}
    boosted = {row[1]: row for row in table_rows(results / "boosted.md") if row[0] == "all"}
    for title, name in (
        ("LightGBM, defaults", "LightGBM"),
        ("mean of three LightGBM, tuned on the same folds", "LightGBM by logloss x 3"),
    ):
        _, _, _, ahead, behind, mean = boosted[name]
        assert re.findall(r"[\d.]+", evidence[title]) == [ahead, behind, mean.lstrip("+-")]
    (linear,) = [row for row in table_rows(results / "partial_auc.md") if len(row) == 6 and row[0] == "logistic"]
    assert re.findall(r"\d+", evidence["logistic regression, tuned"]) == list(linear[3:5])
    guarantees = table_rows(results / "guarantees.md")
    (ours,) = [row for row in guarantees if row[:2] == ("rocmax", "all")]
    best = max((row for row in guarantees if row[0].startswith("MAPIE, ")), key=lambda row: float(row[3]))
    found = evidence["MAPIE 1.6, FPR at most 1 % with confidence 0.95"]
    assert found.startswith(f"{ours[3]} % against at most {best[3]} %")
    assert f"limit broken in {ours[2]} % of" in found
    (noticed,) = [row for row in table_rows(results / "monitoring.md") if row[:2] == ("2 %", "0") and len(row) == 8]
    assert evidence["MAPIE 1.6, `RiskMonitoring`"] == f"{noticed[3]} against {noticed[5]}"
