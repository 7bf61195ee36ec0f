"""Displays: what they store is what they draw."""

from __future__ import annotations

import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve
from sklearn.naive_bayes import GaussianNB

from rocmax import (
    PartialAUCClassifier,
    PartialAUCPath,
    PartialROCDisplay,
    metrics,
)
from rocmax.displays import PartialAUCPathDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 5 == 0
    return rng.normal(size=(600, 3)) + y[:, None], np.where(y, "fraud", "ok")


def test_curves_are_those_of_scikit_learn(problem):
    X, y = problem
    model = LogisticRegression().fit(X, y)
    display = PartialROCDisplay.from_estimator(
        model, X, y, max_fpr=0.1, pos_label="fraud", n_resamples=20, random_state=0
    )
    (curve,), (line,) = display.curves, display.lines_
    fpr, tpr, _ = roc_curve(y == "fraud", -model.decision_function(X), drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr, fpr)
    np.testing.assert_allclose(curve.tpr, tpr)
    np.testing.assert_allclose(line.get_xdata(), fpr)
    np.testing.assert_allclose(line.get_ydata(), tpr)
    assert display.inset_.get_xlim() == (0, 0.1)
    assert "fraud" in display.ax_.get_ylabel()
    assert display.ax_.get_legend().get_texts()[0].get_text().startswith("LogisticRegression (pAUC ")


def test_the_band_holds_the_curve_and_narrows_with_more_rows():
    rng = np.random.default_rng(0)
    widths = []
    for size in (300, 6000):
        y = np.arange(size) % 5 == 0
        s = rng.normal(size=size) + y
        display = PartialROCDisplay.from_predictions(y, s, max_fpr=0.2, n_resamples=200, random_state=0)
        (curve,) = display.curves
        assert np.all(curve.low <= curve.high)
        # At one rate the band is the bootstrap of the height there.
        place = np.searchsorted(curve.grid, 0.2)
        expected = metrics.bootstrap_interval("tpr_at_fpr", y, s, max_fpr=0.2, n_resamples=1000, random_state=1)
        assert (curve.low[place], curve.high[place]) == pytest.approx(expected, abs=0.35 * (expected[1] - expected[0]))
        widths.append(np.mean(curve.high - curve.low))
    assert widths[1] < 0.4 * widths[0]


def test_several_models_a_given_axis_and_no_bands(problem):
    X, y = problem
    models = {"nb": GaussianNB().fit(X, y), "pauc": PartialAUCClassifier(pos_label="fraud").fit(X, y)}
    _, ax = plt.subplots()
    display = PartialROCDisplay.from_estimator(
        models, X, y, min_fpr=0.05, max_fpr=0.9, n_resamples=0, ax=ax, pos_label="fraud"
    )
    assert display.ax_ is ax
    assert display.inset_ is None
    assert [line.get_label().split(" (pAUC ")[0] for line in display.lines_] == ["nb", "pauc"]
    assert all(curve.low.size == 0 for curve in display.curves)
    colors = {line.get_color() for line in display.lines_}
    assert len(colors) == 2
    assert PartialROCDisplay(display.curves, max_fpr=0.9).plot(inset=True).inset_.get_xlim() == (0, 0.9)


def test_the_corner_is_shaded_and_enlarged(problem):
    X, y = problem
    scores = X[:, 0]
    options = {"pos_label": "fraud", "n_resamples": 0}

    def shaded(ax):
        return [collection.get_datalim(ax.transData).extents.tolist() for collection in ax.collections]

    corner = PartialROCDisplay.from_predictions(y, scores, min_tpr=0.8, max_fpr=0.2, **options)
    assert shaded(corner.ax_) == [pytest.approx([0.0, 0.8, 0.2, 1.0])]
    assert (corner.inset_.get_xlim(), corner.inset_.get_ylim()) == ((0, 0.2), (0.8, 1))
    above = PartialROCDisplay.from_predictions(y, scores, min_tpr=0.9, **options)
    assert shaded(above.ax_) == [pytest.approx([0.0, 0.9, 1.0, 1.0])]
    assert above.inset_.get_ylim() == (0.9, 1)
    wide = PartialROCDisplay.from_predictions(y, scores, min_tpr=0.5, max_fpr=0.5, **options)
    assert wide.inset_ is None
    model = LogisticRegression().fit(X, y)
    same = PartialROCDisplay.from_estimator(model, X, y, min_tpr=0.8, **options)
    assert (same.min_tpr, same.max_fpr) == (0.8, 1.0)
    with pytest.raises(ValueError, match="min_tpr must be at least 0 and below 1; got 1"):
        PartialROCDisplay.from_predictions(y, scores, min_tpr=1.0, **options)


@pytest.mark.parametrize("radii", [np.geomspace(0.08, 30, 6), [0.004, 2.0], [0.2, 0.5], [3.0], np.geomspace(1e-7, 1e4)])
@pytest.mark.parametrize("most", [5, 60, 140_000])
def test_labels_of_a_path_do_not_touch(radii, most):
    radii = np.append(0.0, radii)
    coefs = np.outer(radii, [1.0, -1.0])
    n_used = np.linspace(0, most, radii.size).astype(int)
    same = np.ones(radii.size)
    path = PartialAUCPath(
        radii, coefs, n_used, n_used, same, same, same, np.array([0, 1]), "l1", 0.0, 0.1, feature_names=None
    )
    display = PartialAUCPathDisplay(path, {"training rows": same}).plot()
    display.figure_.canvas.draw()
    for axes in display.axes_:
        low, high = axes.get_xlim()
        labels = axes.get_xticklabels(which="both")
        texts = [label for label in labels if low <= label.get_position()[0] <= high]
        boxes = sorted((label.get_window_extent() for label in texts if label.get_text()), key=lambda box: box.x0)
        assert len(boxes) >= 2
        assert all(a.x1 + 2 < b.x0 for a, b in pairwise(boxes))


def test_bad_options(problem, monkeypatch):
    X, y = problem
    scores = X[:, 0]
    with pytest.raises(ValueError, match="min_fpr < max_fpr"):
        PartialROCDisplay.from_predictions(y, scores, min_fpr=0.3, max_fpr=0.2)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"rocmax\[plot\]"):
        PartialROCDisplay.from_predictions(y, scores, n_resamples=0)
