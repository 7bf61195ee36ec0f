"""The report: escaped, self-contained, and alive in a browser."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pandas as pd
import pytest

from helpers.commands import run
from helpers.report_entries import entries
from helpers.tables import SCRIPT
from rocmax import metrics
from rocmax.model_io import load_with_facts
from rocmax.report import render
from rocmax.workflow.models import positive_scores

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def test_user_text_is_escaped_everywhere():
    page = render(*entries())
    assert SCRIPT not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
    assert page.count("</script>") == 2
    assert "\\u003cscript\\u003e" in page


def test_the_page_is_one_small_file():
    page = render(*entries(n_models=4, n_rows=40_000))
    assert len(page.encode()) < 200_000
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:)", page)
    assert "http" not in page.replace("http-equiv", "")
    assert "@import" not in page
    assert "url(" not in page


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
    assert "The window" not in page


@pytest.fixture(scope="module")
def page(tmp_path_factory, folder):
    """The page of the command, for two models of a table with difficult names."""
    made = tmp_path_factory.mktemp("report")
    options = ["--target", "label", "--positive", "fraud", "--max-fpr", "0.05", "--drop", "customer"]
    run("fit", folder / "train.csv", *options, "--model", "linear", "--out", made / "window.rocmax")
    run("fit", folder / "train.csv", *options, "--model", "logistic", "--out", made / "plain.rocmax")
    names = [made / "window.rocmax", made / "plain.rocmax", folder / "test.csv"]
    run("report", *names, "--target", "label", "--out", made / "report.html")
    return made / "report.html"


def test_the_command_writes_the_page(page):
    text = page.read_text(encoding="utf-8")
    assert SCRIPT not in text
    assert "PartialAUCClassifier" in text
    assert "LogisticRegression" in text
    assert "False-positive rate at the saved threshold" in text
    assert "country_&lt;b&gt;é&lt;/b&gt;" in text


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
    tab.close()
    assert requests == [page.as_uri()]
    assert messages == []


def test_the_slider_by_keyboard_shows_the_counts_of_the_scores(page, folder, chromium):
    """At each stop the numbers are those that the scores of the model give, computed anew."""
    model, about = load_with_facts(page.parent / "window.rocmax")
    frame = pd.read_csv(folder / "test.csv")
    s = positive_scores(model, frame[list(about["features"])], "fraud")
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
    assert 2 <= pages <= 4
    tab.close()
