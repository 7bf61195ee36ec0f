"""Layout of ROC displays: what the connectors cross, what the legend says, and that nothing is cut off."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.transforms import Bbox

from rocmax import PartialROCDisplay, metrics
from rocmax.displays import connectors

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Y = np.arange(1500) % 5 == 0
NAMES = ("good", "poor", "a model with a long name that nobody would give it", "d")
LIMITS = (
    {"max_fpr": 0.1},
    {"max_fpr": 0.01},
    {"min_fpr": 0.02, "max_fpr": 0.05},
    {"max_fpr": 0.3, "min_tpr": 0.8},
    {"min_tpr": 0.9},
    {},
)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def scores(gaps):
    noise = np.random.default_rng(len(gaps)).normal(size=(len(gaps), Y.size))
    return {name: gap * Y + each for name, gap, each in zip(NAMES, gaps, noise, strict=False)}


def drawn(gaps, limits, *, ax=None, **options):
    display = PartialROCDisplay.from_predictions(
        Y, scores(gaps), n_resamples=20, random_state=0, ax=ax, **limits, **options
    )
    display.figure_.canvas.draw()
    return display


def lines(display, kind):
    return [line for line in display.ax_.get_lines() if line.get_gid() == kind]


def tick_labels(display):
    axes = [display.ax_] + ([display.inset_] if display.inset_ else [])
    labels = [label for each in axes for label in (*each.get_xticklabels(), *each.get_yticklabels())]
    return [label.get_window_extent() for label in labels if label.get_text()]


def inside(outer, inner, slack=1.0):
    return (
        inner.x0 >= outer.x0 - slack
        and inner.x1 <= outer.x1 + slack
        and inner.y0 >= outer.y0 - slack
        and inner.y1 <= outer.y1 + slack
    )


def check_layout(display):
    """Check a drawn display: connectors, and the places of legend and inset."""
    for line in lines(display, "connector"):
        (x0, x1), (y0, y1) = line.get_data()
        along = np.linspace(0, 1, 500)
        x, y = x0 + along * (x1 - x0), y0 + along * (y1 - y0)
        for curve in display.curves:
            heights = np.interp(x, curve.grid, curve.low)
            # On one side of the band from end to end: below it here, because the inset is below the curves.
            assert (y < heights + 1e-9).all()
        path = line.get_transform().transform_path(line.get_path())
        for box in tick_labels(display):
            assert not path.intersects_bbox(Bbox.from_extents(box.x0, box.y0, box.x1, box.y1))
    whole = display.ax_.get_window_extent()
    legend = display.ax_.get_legend().get_window_extent()
    assert inside(whole, legend)
    if display.inset_ is not None:
        assert inside(whole, display.inset_.get_tightbbox())
        assert not display.inset_.get_window_extent().shrunk(0.99, 0.99).overlaps(legend)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("gaps", [(1.8, 0.9), (1.5, 1.0, 2.6, 2.0)])
def test_figures_of_our_own(limits, gaps):
    display = drawn(gaps, limits)
    check_layout(display)
    assert inside(display.figure_.bbox, display.figure_.get_tightbbox().transformed(display.figure_.dpi_scale_trans))


@given(
    gaps=st.lists(st.floats(-1.0, 4.0), min_size=1, max_size=4),
    limits=st.sampled_from(LIMITS),
    width=st.floats(3.2, 9.0),
    height=st.floats(3.2, 7.0),
    scale=st.sampled_from(["linear", "log"]),
)
@settings(max_examples=15, deadline=None)
def test_axes_of_a_user(gaps, limits, width, height, scale):
    plt.close("all")
    figure, axes = plt.subplots(1, 2, figsize=(2 * width, height))
    display = drawn(tuple(gaps), limits, ax=axes[1], scale=scale)
    check_layout(display)
    assert display.figure_ is figure


def test_a_range_below_good_curves_has_a_connector_and_a_frame():
    display = drawn((1.8, 0.9), {"max_fpr": 0.1})
    assert len(lines(display, "range")) == 1
    (line,) = lines(display, "connector")
    left, bottom = display.ax_.transData.inverted().transform(display.inset_.get_window_extent().p0)
    np.testing.assert_allclose(line.get_data(), [[0.1, left], [0.0, bottom]], atol=2e-3)


def test_connectors_that_would_cross_a_curve_are_left_out():
    flat = (np.array([0.0, 1.0]), np.array([0.05, 0.05]))
    high = (np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.9, 1.0]))
    boxes = (0.0, 0.0, 0.1, 0.5), (0.4, 0.2, 0.5, 0.2)
    assert connectors(*boxes, [high]) == [((0.1, 0.0), (0.4, 0.2)), ((0.1, 0.5), (0.4, 0.4))]
    assert connectors(*boxes, [flat]) == [((0.1, 0.5), (0.4, 0.4))]
    # The lines meet the right edge of a range that is below the inset.
    assert connectors((0.0, 0.9, 1.0, 0.1), boxes[1], [high]) == []


def test_the_legend_has_the_measure_in_the_range():
    for limits in LIMITS:
        display = drawn((1.8, 0.9), limits)
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        name = "pAUC" if limits else "AUC"
        expected = [
            f"{model} ({name} {metrics.partial_auc_score(Y, values, **limits):.3f})"
            for model, values in scores((1.8, 0.9)).items()
        ]
        assert texts == expected
    rate = metrics.tpr_at_fpr(Y, scores((1.8,))["good"], max_fpr=0.1)
    (text,) = drawn((1.8,), {"max_fpr": 0.1}, measure="tpr_at_fpr").ax_.get_legend().get_texts()
    assert text.get_text() == f"good (TPR {rate:.3f} at FPR 0.1)"
    assert drawn((1.8,), {"max_fpr": 0.1}, measure=None).ax_.get_legend().get_texts()[0].get_text() == "good"
    with pytest.raises(ValueError, match='measure must be "partial_auc", "tpr_at_fpr" or None; got \'auc\''):
        drawn((1.8,), {}, measure="auc")


def test_an_inset_needs_room_unless_it_is_asked_for():
    assert drawn((-1.0,), {"max_fpr": 0.1}).inset_ is None
    assert drawn((-1.0,), {"max_fpr": 0.1}, inset=True).inset_ is not None
    assert drawn((3.0,), {"max_fpr": 0.1}, inset=False).inset_ is None
