"""Every example of the gallery runs without warnings and draws a figure."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
SUBJECTS = (
    *("quick_start", "corners", "threshold", "collapse", "sparse_path", "stream"),
    *("kernels", "trees", "network", "report", "own_measure"),
)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(example, monkeypatch):
    if example.stem == "plot_network":
        pytest.importorskip("torch")
    matplotlib.use("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(example.parent)
    before = set(example.parent.iterdir())
    try:
        runpy.run_path(str(example), run_name="__main__")
        assert plt.get_fignums()
    finally:
        plt.close("all")
    assert set(example.parent.iterdir()) == before


def test_the_gallery_has_its_subjects():
    assert {f"plot_{name}" for name in SUBJECTS} - {path.stem for path in EXAMPLES} == set()


def test_the_gallery_has_an_order_and_titles():
    conf = (Path(__file__).parents[1] / "docs" / "conf.py").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES if f'"{path.name}"' not in conf] == []
    for path in EXAMPLES:
        first, title, line, *_ = path.read_text(encoding="utf-8").splitlines()
        assert first == '"""', path.name
        assert line == "=" * len(title), path.name
