"""The site: every public name has a page, the pages build without warnings, links lead somewhere."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.extras import can_be_imported

ROOT = Path(__file__).parents[1]
API = ROOT / "docs" / "api"
PACKAGES = [
    "rocmax",
    "rocmax.data",
    "rocmax.displays",
    "rocmax.losses",
    "rocmax.measures",
    "rocmax.metrics",
    "rocmax.operators",
    "rocmax.penalties",
    "rocmax.solvers",
    "rocmax.workflow",
    "rocmax.backends.lightgbm",
    "rocmax.backends.torch",
    "rocmax.backends.xgboost",
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
        [*command, str(tmp_path / "docs"), str(tmp_path / "html")], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "html" / "index.html").exists()
