"""Layout of ROC displays: what the legend says, and that nothing is cut off."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmax import PartialROCDisplay, metrics

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


def inside(outer, inner, slack=1.0):
    return (
        inner.x0 >= outer.x0 - slack
        and inner.x1 <= outer.x1 + slack
        and inner.y0 >= outer.y0 - slack
        and inner.y1 <= outer.y1 + slack
    )


def check_layout(display):
    """Check the places of legend and inset of a drawn display."""
    whole = display.ax_.get_window_extent()
    legend = display.ax_.get_legend().get_window_extent()
    assert inside(whole, legend)
    if display.inset_ is not None:
        box = display.inset_.get_window_extent()
        assert inside(whole, display.inset_.get_tightbbox())
        assert not box.shrunk(0.99, 0.99).overlaps(legend)
        (left, top), _ = display.ax_.transData.inverted().transform([(box.x0, box.y1), (box.x1, box.y0)])
        for curve in display.curves:
            assert np.interp(left, curve.grid, curve.low) > top - 0.01  # rounded to pixels


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("gaps", [(1.8, 0.9), (1.5, 1.0, 2.6, 2.0)])
def test_figures_of_our_own(limits, gaps):
    display = drawn(gaps, limits)
    check_layout(display)
    assert inside(display.figure_.bbox, display.figure_.get_tightbbox().transformed(display.figure_.dpi_scale_trans))


@given(
    gaps=st.lists(st.floats(-1.0, 4.0), min_size=1, max_size=4),
    limits=st.sampled_from(LIMITS),
    width=st.floats(4.8, 9.0),
    height=st.floats(4.8, 7.0),
)
@settings(max_examples=15, deadline=None)
def test_axes_of_a_user(gaps, limits, width, height):
    plt.close("all")
    figure, axes = plt.subplots(1, 2, figsize=(2 * width, height))
    display = drawn(tuple(gaps), limits, ax=axes[1])
    check_layout(display)
    assert display.figure_ is figure


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
