"""The report: escaped, self-contained, and alive in a browser."""

from __future__ import annotations

import html
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, data, floats, integers, lists, sampled_from, tuples
from scipy.stats import binomtest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import rocmax
from helpers.commands import run
from helpers.report_entries import entries
from helpers.tables import SCRIPT
from rocmax import FPRThresholdClassifier, metrics
from rocmax.data import DataError
from rocmax.metrics import positive_scores
from rocmax.metrics.curve import score_blocks
from rocmax.metrics.uncertainty import estimate_measures
from rocmax.model_io import load_with_facts
from rocmax.report import ReportModel, Segment, TestData, render
from rocmax.report.page import LAYOUT, Bands, RankedModel, hull, sliders
from rocmax.report.sections import by_segment, saved_threshold, score_groups, view
from rocmax.tables.report import segments_of

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def test_user_text_is_escaped_everywhere():
    page = render(*entries())
    assert SCRIPT not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
    assert page.count("</script>") == 2
    assert "\\u003cscript\\u003e" in page


def test_the_page_is_one_small_file():
    page = render(*entries(n_models=4, n_rows=40_000))
    assert len(page.encode()) < 300_000
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:|#)", page)
    assert "http" not in page.replace("http-equiv", "")
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_the_numbers_are_the_measures():
    models, data = entries()
    page = render(models, data)
    for model in models:
        for value in (
            metrics.roc_auc_score(data.positive, model.scores),
            metrics.partial_auc_score(data.positive, model.scores, max_fpr=0.05),
            metrics.tpr_at_fpr(data.positive, model.scores, max_fpr=0.05),
        ):
            assert f"{value:.4f}" in page
    result = metrics.delong_test(data.positive, models[0].scores, models[1].scores, max_fpr=0.05)
    assert f"{result.difference:+.4f}" in page
    assert f"{result.pvalue:.3g}" in page


def test_one_model_without_a_window():
    models, data = entries(n_models=1, n_rows=300, window=(0.0, 1.0))
    page = render(models, data)
    assert "Paired tests" not in page
    assert "Range of interest" not in page


def test_a_floor_on_the_true_positive_rate():
    models, data = entries(window=(0.0, 1.0))
    data = replace(data, min_tpr=0.8)
    page = html.unescape(render(models, data))
    assert "Range of interest: true-positive rates of at least 80 %" in page
    numbers = view(models, data)["numbers"]
    assert numbers["floors"][numbers["floor_start"]] == 0.8


def test_a_corner_is_measured_tested_and_enlarged():
    models, data = entries(window=(0.0, 0.5))
    data = replace(data, min_tpr=0.6)
    limits = {"max_fpr": 0.5, "min_tpr": 0.6}
    page = html.unescape(render([replace(model, min_tpr=0.6) for model in models], data))
    for model in models:
        assert f"{metrics.partial_auc_score(data.positive, model.scores, **limits):.4f}" in page
        assert f"{metrics.fpr_at_tpr(data.positive, model.scores, min_tpr=0.6):.4f}" in page
    result = metrics.delong_test(data.positive, models[0].scores, models[1].scores, **limits)
    assert "partial AUC, TPR >= 0.6, FPR 0 to 0.5, DeLong" in page
    assert f"{result.difference:+.4f}" in page
    plot = view(models, data)["roc_plots"][1]
    for line in plot["lines"]:
        x, y = np.array([point.split() for point in line["d"][1:].split("L")], dtype=float).T
        assert y.max() <= plot["bottom"] + 0.05
        assert x.max() <= plot["right"] + 0.05


def judged(n_alarms, n_negative, n_found, n_positive, **limits):
    """What is said about the limits of a model with given counts."""
    positive = np.arange(n_positive + n_negative) < n_positive
    predicted = np.zeros(positive.size, dtype=bool)
    predicted[:n_found], predicted[n_positive : n_positive + n_alarms] = True, True
    model = ReportModel("m", "Linear", np.where(predicted, 1.0, -1.0), predicted, **limits)
    return saved_threshold(model, TestData("t", positive, "a", (0.0, 1.0), []))


@pytest.mark.parametrize(
    ("counts", "limits", "verdict"),
    [
        ((10, 1000, 90, 100), {"min_precision": 0.8}, "within the limit"),
        ((60, 1000, 40, 100), {"min_precision": 0.8}, "below the limit"),
        ((0, 1000, 0, 100), {"min_precision": 0.8}, "too few rows: 0 flagged, at least 17 are needed"),
        ((10, 1000, 40, 100), {"capacity": 0.1}, "within the limit"),
        ((100, 1000, 90, 100), {"capacity": 0.1}, "above the limit"),
        ((30, 1000, 5, 10), {"max_fpr": 0.05}, "within the limit"),
        ((48, 1000, 5, 10), {"max_fpr": 0.05}, "not decided: the interval includes the limit"),
        ((52, 1000, 5, 10), {"max_fpr": 0.05}, "not decided: the interval includes the limit"),
        ((80, 1000, 5, 10), {"max_fpr": 0.05}, "above the limit"),
        ((0, 5, 5, 10), {"max_fpr": 0.05}, "too few rows: 5 of the class, at least 72 are needed"),
        ((0, 71, 5, 10), {"max_fpr": 0.05}, "too few rows: 71 of the class, at least 72 are needed"),
        ((0, 72, 5, 10), {"max_fpr": 0.05}, "within the limit"),
        ((4, 5, 5, 10), {"max_fpr": 0.05}, "above the limit"),
        ((0, 10, 990, 1000), {"min_tpr": 0.95}, "within the limit"),
        ((0, 10, 955, 1000), {"min_tpr": 0.95}, "not decided: the interval includes the limit"),
        ((0, 10, 900, 1000), {"min_tpr": 0.95}, "below the limit"),
        ((0, 10, 20, 20), {"min_tpr": 0.95}, "too few rows: 20 of the class, at least 72 are needed"),
    ],
)
def test_a_rate_is_within_its_limit_only_if_its_interval_is(counts, limits, verdict):
    assert [entry["verdict"] for entry in judged(*counts, **limits)] == [verdict]


def test_few_groups_are_too_few_rows():
    """400 negatives in 20 groups whose rows all agree are worth 20 rows."""
    positive, groups = np.arange(500) < 100, np.r_[np.arange(100) + 20, np.repeat(np.arange(20), 20)]
    predicted = positive | (groups == 0)
    model = ReportModel("m", "Linear", np.where(predicted, 1.0, -1.0), predicted, max_fpr=0.05)
    (entry,) = saved_threshold(model, TestData("t", positive, "a", (0.0, 1.0), [], groups=groups))
    assert entry["verdict"] == "too few rows: groups worth 19 independent rows, at least 72 are needed"


def test_the_bars_of_score_groups_are_for_independent_rows():
    """Each row four times: the bars are those of one copy."""
    rng = np.random.default_rng(0)
    positive, scores = rng.random(500) < 0.4, rng.normal(size=500)
    models = [ReportModel("m", "Linear", s, s > 0) for s in (scores, np.tile(scores, 4))]
    tables = [
        TestData("t", positive, "a", (0.0, 1.0), []),
        TestData("t", np.tile(positive, 4), "a", (0.0, 1.0), [], groups=np.tile(np.arange(500), 4)),
    ]
    one, four = (score_groups(model, table)["groups"] for model, table in zip(models, tables, strict=True))
    for single, copied in zip(one, four, strict=True):
        assert (copied["low"], copied["high"]) == pytest.approx((single["low"], single["high"]), abs=0.01)


def test_both_limits_of_a_threshold_are_judged():
    found = judged(10, 1000, 900, 1000, min_tpr=0.95, max_fpr=0.05)
    assert {entry["limit"]: entry["verdict"] for entry in found} == {
        "TPR >= 95 %": "below the limit",
        "FPR <= 5 %": "within the limit",
    }
    for entry in found:
        assert (entry["fpr"], entry["tpr"]) == (0.01, 0.9)
        assert entry["low"] < entry["tpr" if "TPR" in entry["limit"] else "fpr"] < entry["high"]
    assert judged(10, 1000, 900, 1000) == []


def test_the_limit_of_a_threshold_classifier_is_judged():
    X, y = make_classification(3000, weights=[0.8], random_state=0)
    model = FPRThresholdClassifier(LogisticRegression(), 0.1, confidence=0.95, random_state=0).fit(X[:1500], y[:1500])
    page = html.unescape(rocmax.report(model, X[1500:], y[1500:]))
    assert re.search(r"FPR <= 10 %: (within the limit|not decided: the interval includes the limit)\.", page)
    assert "FPR <= 10 %" not in html.unescape(rocmax.report(model.estimator_, X[1500:], y[1500:], max_fpr=0.1))


def test_bands_are_bootstrap_intervals_of_the_rates():
    rng = np.random.default_rng(0)
    positive = np.arange(1000) % 4 == 0
    scores = positive + rng.normal(size=1000)
    data = replace(entries(window=(0.0, 0.2))[1], positive=positive)
    bands = Bands(data)
    options = {"n_resamples": 1000, "random_state": 0}
    estimate_measures([("roc_auc", {})], positive, scores, watch=bands.add, **options)
    whole, in_range = bands.limits()
    for (low, high), rates in (
        (whole, np.linspace(0, 1, LAYOUT.n_grid)),
        (in_range, np.linspace(0, 0.2, LAYOUT.n_grid)),
    ):
        assert low.size == high.size == LAYOUT.n_grid
        for place in (10, 40):
            # The band interpolates, and the measure is the height of a step.
            expected = metrics.bootstrap_interval(
                "tpr_at_fpr", positive, scores, max_fpr=rates[place], n_resamples=1000, random_state=1
            )
            assert (low[place], high[place]) == pytest.approx(expected, abs=0.02)


def test_curves_outside_the_corner_have_no_delong_test():
    models, data = entries(window=(0.0, 0.01))
    page = html.unescape(render(models, replace(data, min_tpr=0.95)))
    assert "partial AUC, TPR >= 0.95, FPR 0 to 0.01, bootstrap" in page
    assert "partial AUC, TPR >= 0.95, FPR 0 to 0.01, DeLong" not in page


def share_text(count, total):
    """A share in percent, and its exact interval, rounded outward."""
    interval = binomtest(count, total).proportion_ci(method="exact")
    return (
        f"{100 * count / total:.0f} of 100",
        f"({math.floor(100 * interval.low)} to {math.ceil(100 * interval.high)})",
    )


def test_the_headline_counts_alerts_per_day():
    models, data = entries(n_models=1)
    times = np.datetime64("2026-03-01") + np.arange(data.positive.size) % 30 * np.timedelta64(1, "D")
    page = html.unescape(render(models, replace(data, times=times)))
    assert f"raises <strong>{np.count_nonzero(models[0].predicted) / 30:.3g} alerts per day</strong>" in page
    silent = replace(models[0], predicted=np.zeros(data.positive.size, dtype=bool))
    assert "raises <strong>no alerts</strong>." in render([silent], data)


def test_the_headline_has_the_rates_at_the_saved_threshold():
    """Not those of a threshold that is chosen on the test rows."""
    models, data = entries(n_models=1)
    flagged = models[0].predicted
    count, alerts = int(np.count_nonzero(flagged & data.positive)), int(np.count_nonzero(flagged))
    found, right = (share_text(count, total) for total in (data.n_positive, alerts))
    expected = (
        f"At its saved threshold, the model finds <strong>{found[0]}</strong> rows of class {SCRIPT} {found[1]} and "
        f"raises <strong>{10_000 * alerts / data.positive.size:.3g} alerts per 10,000 rows</strong>, of which "
        f"<strong>{right[0]}</strong> are right {right[1]}."
    )
    page = html.unescape(render(models, data))
    assert expected in page
    chosen = metrics.tpr_at_fpr(data.positive, models[0].scores, max_fpr=0.05)
    assert f"{100 * chosen:.0f} of 100" not in page


@settings(max_examples=50)
@given(data(), lists(floats(-1e9, 1e9) | sampled_from([0.1, 0.1 + 1e-12, -3.0, 0.0]), min_size=2, max_size=20))
def test_thresholds_of_the_sliders_give_the_counts_that_are_shown(data, scores):
    """Copied from the page: as many rows are above a threshold as are shown, and no more false alarms."""
    positive = data.draw(
        lists(booleans(), min_size=len(scores), max_size=len(scores)).filter(lambda y: 0 < sum(y) < len(y))
    )
    rows, s = TestData("t", np.array(positive), "a", (0.0, 0.2), []), np.array(scores)
    ranked = RankedModel(ReportModel("m", "Linear", s, s > 0), score_blocks(rows.positive, s), np.unique(s)[::-1])
    numbers = sliders([ranked], rows)
    points = numbers["models"][0]
    for name, stops in (("limit", numbers["limits"]), ("floor", numbers["floors"]), ("hull", points["hull"]["tp"])):
        assert len(points[name]["threshold"]) == len(stops)
        for tp, fp, threshold in zip(*(points[name][key] for key in ("tp", "fp", "threshold")), strict=True):
            shown = float(str(threshold))
            assert np.count_nonzero((s > shown) & rows.positive) == tp
            assert np.count_nonzero((s > shown) & ~rows.positive) == fp
    for limit, fp in zip(numbers["limits"], points["limit"]["fp"], strict=True):
        assert fp <= limit * rows.n_negative * (1 + 1e-9)


def test_equal_scores_perfect_scores_and_few_rows():
    """Plots of degenerate curves."""
    for scores, positive in (
        (np.zeros(40), np.arange(40) % 4 == 0),
        (np.arange(40.0), np.arange(40) >= 30),
        (np.arange(2.0), np.arange(2) == 1),
        (np.array([1.0, 0.0]), np.arange(2) == 1),
    ):
        model = ReportModel("m", "Linear", scores, scores > 0)
        for window in ((0.0, 1.0), (0.0, 0.05)):
            page = render([model], TestData("t", positive, "a", window, []))
            assert "NaN" not in page
            assert "nan" not in page


@given(scores=lists(integers(-3, 3), min_size=2, max_size=12), data=data())
def test_the_cost_is_lowest_on_the_hull(scores, data):
    """Brute force: all thresholds, random prices."""
    positive = data.draw(
        lists(booleans(), min_size=len(scores), max_size=len(scores)).filter(lambda y: 0 < sum(y) < len(y))
    )
    alarm, miss = data.draw(tuples(integers(0, 9), integers(0, 9)))
    curve = score_blocks(np.array(positive), np.array(scores, dtype=float)).curve()
    cost = alarm * curve.fp + miss * (curve.m - curve.tp)
    assert cost[hull(curve)].min() == cost.min()


def test_calibration_compares_probabilities_with_observed_shares():
    models, data = entries(n_models=1)
    chance = 1 / (1 + np.exp(-models[0].scores))
    page = render([replace(models[0], probabilities=chance)], data)
    assert "Predicted probability (%)" in page
    groups = score_groups(replace(models[0], probabilities=chance), data)["groups"]
    assert sum(group["rows"] for group in groups) == data.positive.size
    assert sum(group["rows"] * group["share"] for group in groups) == pytest.approx(data.n_positive)
    assert sum(group["rows"] * group["mean"] for group in groups) == pytest.approx(chance.sum())
    assert all(group["low"] <= group["share"] <= group["high"] for group in groups)


def test_results_by_segment_are_rates_of_its_rows():
    models, data = entries()
    first = by_segment(models, data)[0]
    rows = data.segments[0].rows & data.positive
    assert first["positives"] == rows.sum()
    assert first["models"][1]["tpr"]["rate"] == models[1].predicted[rows].mean()
    nobody = replace(data, segments=[Segment("empty", np.zeros(data.positive.size, dtype=bool))])
    assert "no rows" in render(models, nobody)


def test_segments_of_a_column():
    frame = pd.DataFrame({"shop": [*"aaabbc", None], "amount": np.arange(7.0), "code": [f"x{i}" for i in range(7)]})
    assert [(s.name, s.rows.sum()) for s in segments_of(frame, "shop")] == [
        ("a", 3),
        ("b", 2),
        ("c", 1),
        ("missing", 1),
    ]
    many = pd.DataFrame({"amount": np.arange(100.0), "code": [f"x{i}" for i in range(100)]})
    assert [s.rows.sum() for s in segments_of(many, "amount")] == [25, 25, 25, 25]
    codes = segments_of(many, "code")
    assert len(codes) == 13
    assert codes[-1].name == "88 other values"
    assert sum(s.rows.sum() for s in codes) == 100
    with pytest.raises(DataError, match="segment must be a column of the model; got 'x', known: shop, amount, code"):
        segments_of(frame, "x")


@pytest.fixture(scope="module")
def page(tmp_path_factory, folder):
    """The page of the command, for two models of a table with difficult names."""
    made = tmp_path_factory.mktemp("report")
    options = ["--target", "label", "--positive", "fraud", "--max-fpr", "0.05", "--drop", "customer"]
    run("fit", folder / "train.csv", *options, "--model", "linear", "--out", made / "window.rocmax")
    run("fit", folder / "train.csv", *options, "--model", "logistic", "--out", made / "plain.rocmax")
    names = [made / "window.rocmax", made / "plain.rocmax", folder / "test.csv"]
    run("report", *names, "--target", "label", "--segment", "country", "--out", made / "report.html")
    return made / "report.html"


def test_the_command_writes_the_page(page):
    text = page.read_text(encoding="utf-8")
    assert SCRIPT not in text
    assert "PartialAUCClassifier" in text
    assert "LogisticRegression" in text
    assert "Rates at the saved threshold" in text
    assert "Results by country" in text
    assert "&lt;b&gt;é&lt;/b&gt;" in text


@pytest.fixture(scope="module")
def chromium():
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(page, chromium, scheme):
    tab = chromium.new_page(color_scheme=scheme, viewport={"width": 1000, "height": 900})
    requests, messages = [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("dialog", lambda dialog: messages.append(dialog.message))
    tab.goto(page.as_uri())
    row = tab.locator("#operating tbody tr").first
    start = row.inner_text()
    assert not tab.locator("#back").is_visible()
    limit = tab.locator("#limit-text").inner_text()
    assert limit == "at most 5 %"
    mark = tab.locator("circle.mark").first.get_attribute("cx")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "limit"
    tab.keyboard.press("Home")
    assert row.inner_text() != start
    assert tab.locator("#limit-text").inner_text() != limit
    assert tab.locator("circle.mark").first.get_attribute("cx") != mark
    tab.keyboard.press("End")
    assert row.inner_text().split("\t")[2] == "100.00 %"
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    # Nothing is wider than the page, on a phone too.
    tab.set_viewport_size({"width": 380, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 380
    # Nor does any table have to be scrolled sideways.
    wider = "Array.from(document.querySelectorAll('.scroll')).filter(e => e.scrollWidth > e.clientWidth)"
    assert tab.evaluate(f"{wider}.map(e => e.innerText.slice(0, 60))") == []
    tab.close()
    assert requests == [page.as_uri()]
    assert messages == []


def test_the_slider_by_keyboard_shows_the_counts_of_the_scores(page, folder, chromium):
    """At each stop the numbers are those that the scores of the model give, computed anew."""
    model, about = load_with_facts(page.parent / "window.rocmax")
    frame = pd.read_csv(folder / "test.csv")
    s = positive_scores(model, frame[list(about["features"])], pos_label="fraud")
    y = (frame["label"] == "fraud").to_numpy()
    tab = chromium.new_page()
    tab.goto(page.as_uri())
    tab.keyboard.press("Tab")
    seen = set()
    for key in ("ArrowRight", "ArrowUp", "PageUp", "ArrowLeft", "PageDown", "PageDown", "PageDown", "Home", "End"):
        tab.keyboard.press(key)
        limit = float(tab.locator("#limit-text").inner_text().split()[2]) / 100
        assert tab.locator("#limit").get_attribute("aria-valuetext") == tab.locator("#limit-text").inner_text()
        seen.add(limit)
        within = [t for t in np.unique(s) if np.mean(s[~y] >= t) <= limit * (1 + 1e-9)]
        accepted = s >= min(within, default=np.inf)
        found, alarms = 10_000 * np.sum(accepted & y) / y.size, 10_000 * np.sum(accepted & ~y) / y.size
        cells = tab.locator("#operating tbody tr").first.locator("td").all_inner_texts()
        assert cells[1] == f"{100 * np.mean(accepted[y]):.2f} %"
        for text, count in ((cells[4], found), (cells[5], 10_000 * y.mean() - found), (cells[6], alarms)):
            assert float(text.replace(",", "")) == pytest.approx(count, abs=0.51 if count >= 10 else 0.051)
            assert "." not in text or count < 10  # whole cases
    assert len(seen) >= 7
    tab.close()


def test_the_page_on_paper(page, chromium, tmp_path):
    """Printed from a dark screen too: dark ink on white, bars and shades, and no slider."""
    tab = chromium.new_page(color_scheme="dark")
    tab.goto(page.as_uri())
    tab.emulate_media(media="print", color_scheme="dark")

    def style(selector, name):
        return tab.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{name}")

    assert style("body", "backgroundColor") == "rgb(255, 255, 255)"
    assert style("body", "color") == "rgb(29, 35, 48)"
    assert style(".bar", "printColorAdjust") == "exact"
    assert not tab.locator("#limit").is_visible()
    assert tab.locator("#operating").is_visible()
    content = tab.pdf(format="A4")
    pages = len(re.findall(rb"/Type\s*/Page\b", content))
    assert 2 <= pages <= 8
    tab.close()


def test_saved_threshold_floor_and_costs_in_a_browser(page, folder, chromium):
    model, about = load_with_facts(page.parent / "window.rocmax")
    frame = pd.read_csv(folder / "test.csv")
    s = positive_scores(model, frame[list(about["features"])], pos_label="fraud")
    y = (frame["label"] == "fraud").to_numpy()
    tab = chromium.new_page()
    tab.goto(page.as_uri())
    headline, explored = tab.locator("#verdict").inner_text(), tab.locator("#explored")
    start = explored.inner_text()
    saved = tab.locator("#operating tbody tr").first.locator("td").all_inner_texts()
    assert saved[:3] == ["0", f"{100 * np.mean(s[y] > 0):.2f} %", f"{100 * np.mean(s[~y] > 0):.2f} %"]
    assert f"window finds {100 * np.mean(s[y] > 0):.0f} of 100 rows of class fraud" in headline
    assert not tab.locator("#back").is_visible()
    tab.locator("#floor").focus()
    tab.keyboard.press("ArrowRight")
    floor = float(tab.locator("#floor-text").inner_text().split()[2]) / 100
    reached = [t for t in np.unique(s) if np.mean(s[y] >= t) >= floor * (1 - 1e-9)]
    fpr = np.mean(s[~y] >= max(reached))
    assert tab.locator("#operating tbody tr").first.locator("td").all_inner_texts()[2] == f"{100 * fpr:.2f} %"
    assert explored.inner_text().startswith(
        f"To find at least {100 * floor:.4g} of 100 rows of class fraud, window flags "
    )
    assert "with thresholds that are chosen on these rows" in explored.inner_text()
    assert tab.locator("#verdict").inner_text() == headline
    tab.locator("#back").click()
    assert explored.inner_text() == start
    assert tab.locator("#operating tbody tr").first.locator("td").all_inner_texts() == saved
    assert not tab.locator("#back").is_visible()
    matrix = [float(t.replace(",", "")) for t in tab.locator(".matrices table").first.locator("td").all_inner_texts()]
    assert sum(matrix) == pytest.approx(10_000, abs=2)
    tab.locator("#cost-alarm").fill("2")
    tab.locator("#cost-miss").fill("30")
    lowest = min(2 * np.sum(s[~y] >= t) + 30 * np.sum(s[y] < t) for t in [*np.unique(s), np.inf])
    shown = tab.locator("#costs tbody tr").first.locator("td").all_inner_texts()[3]
    assert float(shown.replace(",", "")) == pytest.approx(10_000 * lowest / y.size, rel=1e-3)
    assert tab.locator("#cost-ratio-text").inner_text() == "15 false alarms"
    tab.locator("#cost-ratio").focus()
    tab.keyboard.press("Home")
    assert tab.locator("#cost-miss").input_value() == "0.2"
    tab.keyboard.press("End")
    assert tab.locator("#cost-miss").input_value() == "2000"
    assert tab.locator("#cost-ratio-text").inner_text() == "1,000 false alarms"
    lowest = min(2 * np.sum(s[~y] >= t) + 2000 * np.sum(s[y] < t) for t in [*np.unique(s), np.inf])
    shown = tab.locator("#costs tbody tr").first.locator("td").all_inner_texts()[3]
    assert float(shown.replace(",", "")) == pytest.approx(10_000 * lowest / y.size, rel=1e-3)
    tab.locator("#cost-miss").fill("0")
    assert tab.locator("#cost-ratio").input_value() == "-20"
    tab.locator("#cost-miss").fill("-1")
    assert tab.locator("#cost-error").is_visible()
    tab.close()
