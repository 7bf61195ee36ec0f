"""Model card, effects of columns, gaps between segments, and the numbers of the fit next to those of a report."""

from __future__ import annotations

import hashlib
import html
import json
import os
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

from helpers.commands import run
from helpers.report_entries import entries
from helpers.tables import SCRIPT
from rocmax.data import DataError
from rocmax.report import Reconciled, ReportModel, Segment, TestData, page_and_card
from rocmax.report.sections import by_segment, holm, largest_gaps
from rocmax.tables import ParameterError, evaluate, fit_table, load_model, write_report

AXE = Path(os.environ.get("AXE_CORE", Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"))
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


# Gaps between segments.


def test_holm_is_the_closed_test_of_bonferroni():
    """Brute force: a hypothesis is rejected if all sets of hypotheses with it are."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = (rng.random(5) ** 3).tolist()
        sets = [s for size in range(1, 6) for s in combinations(range(5), size)]
        expected = [max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s) for i in range(5)]
        assert holm(p) == pytest.approx(expected)


def gaps_of(positive, predicted, codes, groups=None):
    segments = [Segment(str(code), codes == code) for code in np.unique(codes)]
    model = ReportModel("m", "Linear", predicted.astype(float), predicted)
    data = TestData("t", positive, "a", (0.0, 1.0), [], segments=segments, segment_column="c", groups=groups)
    return by_segment([model], data)


def test_a_gap_is_tested_against_the_other_rows():
    rng = np.random.default_rng(0)
    positive, codes = rng.random(3000) < 0.3, rng.integers(0, 3, 3000)
    predicted = rng.random(3000) < 0.1 + 0.4 * positive - 0.2 * (codes == 2) * positive
    found = gaps_of(positive, predicted, codes)
    own, rest = positive & (codes == 2), positive & (codes != 2)
    gap = found[2]["models"][0]["gaps"]["tpr"]
    assert gap["difference"] == pytest.approx(predicted[own].mean() - predicted[rest].mean())
    counts = [[predicted[side].sum(), (~predicted[side]).sum()] for side in (own, rest)]
    assert gap["p"] == pytest.approx(fisher_exact(counts).pvalue)
    assert gap["adjusted"] == pytest.approx(6 * gap["p"])
    first = largest_gaps(found)[0]
    assert (first["segment"], first["rate"]) == ("2", "TPR")


def test_gaps_of_equal_segments_are_rarely_significant():
    rng, false = np.random.default_rng(0), 0
    for _ in range(150):
        positive, codes = rng.random(1000) < 0.3, rng.integers(0, 5, 1000)
        predicted = rng.random(1000) < 0.1 + 0.4 * positive
        false += largest_gaps(gaps_of(positive, predicted, codes))[0]["adjusted"] < 0.05
    assert false <= 14  # the probability of more is 0.01 at a level of 0.05


def test_copies_of_rows_in_groups_add_no_evidence():
    rng = np.random.default_rng(1)
    positive, codes = rng.random(800) < 0.4, rng.integers(0, 2, 800)
    predicted = rng.random(800) < 0.2 + 0.4 * positive - 0.12 * codes * positive
    one = gaps_of(positive, predicted, codes)
    four = gaps_of(*(np.tile(part, 4) for part in (positive, predicted, codes)), groups=np.tile(np.arange(800), 4))
    naive = gaps_of(*(np.tile(part, 4) for part in (positive, predicted, codes)))
    single, grouped, copied = (found[1]["models"][0]["gaps"]["tpr"]["p"] for found in (one, four, naive))
    assert grouped == pytest.approx(single, rel=0.5)
    assert copied < grouped / 50
    # Of two segments, both have the same tests, which count once.
    for found in (one, four):
        first, second = (segment["models"][0]["gaps"] for segment in found)
        assert first["tpr"]["adjusted"] == second["tpr"]["adjusted"] <= 2 * first["tpr"]["p"]


# The numbers of the fit.


def test_a_difference_by_chance_is_one_in_twenty():
    from rocmax.metrics.rates import wilson

    rng, sizes = np.random.default_rng(0), (400, 900)
    draws = [rng.binomial(size, 0.1, 4000) for size in sizes]
    found = [
        Reconciled("rate", *((count / size, *wilson(count, size)) for count, size in zip(pair, sizes, strict=True)))
        for pair in zip(*draws, strict=True)
    ]
    assert np.mean([each.differs for each in found]) == pytest.approx(0.05, abs=0.012)
    assert Reconciled("rate", (0.1, 0.09, 0.11), (0.2, 0.18, 0.22)).differs


@pytest.fixture(scope="module")
def models(tmp_path_factory, folder):
    made = tmp_path_factory.mktemp("card")
    options = {"target": "label", "positive": "fraud", "max_fpr": 0.1, "tune": False}
    table = pd.read_csv(folder / "train.csv").drop(columns="customer")
    table.to_csv(made / "train.csv", index=False)
    for name in ("linear", "boosted", "ensemble"):
        fitted = fit_table(made / "train.csv", model=name, **options)
        fitted.save(made / f"{name}.rocmax")
        if name == "linear":
            table.iloc[fitted.held_out_rows].to_csv(made / "held.csv", index=False)
    return made


def written(models, name, table, **options):
    page, card = models / "page.html", models / "card.md"
    write_report(load_model(models / f"{name}.rocmax"), table, page, card_out=card, **options)
    return page.read_text(encoding="utf-8"), card.read_text(encoding="utf-8")


def test_numbers_of_the_fit_are_next_to_those_of_the_table(models, folder):
    page, _ = written(models, "linear", models / "held.csv")
    fitted = load_model(models / "linear.rocmax")
    held = fitted.facts.held_out
    cells = f'<td data-label="{{}}">{held["value"]:.4f}</td>'
    assert cells.format("held-out rows of the fit") in page
    assert cells.format("these rows") in page
    assert "differs by more than chance" not in page
    assert page.count("agrees within chance") == 5
    frame = pd.read_csv(folder / "test.csv")
    rates = evaluate(fitted, frame).threshold
    page, _ = written(models, "linear", frame)
    for name in ("tpr", "fpr", "precision", "alerts"):
        assert f'<td data-label="these rows">{rates[name]:.4f}</td>' in page
    frame["label"] = np.random.default_rng(0).permutation(frame["label"])
    page, _ = written(models, "linear", frame)
    assert page.count("differs by more than chance") >= 3


def test_a_model_of_an_earlier_version_has_a_report(models, folder):
    fitted = load_model(models / "linear.rocmax")
    older = {key: value for key, value in fitted.facts.to_dict().items() if key not in ("intervals", "data")}
    fitted.facts = type(fitted.facts).from_dict(older)
    write_report(fitted, folder / "test.csv", models / "old.html")
    page = (models / "old.html").read_text(encoding="utf-8")
    assert "was saved by an earlier version" in page
    assert "agrees within chance" not in page


# Direction of effects.


@pytest.mark.parametrize("name", ["linear", "boosted", "ensemble"])
def test_effects_are_mean_contributions(models, folder, name):
    frame = pd.read_csv(folder / "test.csv")
    page, _ = written(models, name, frame)
    made = load_model(models / f"{name}.rocmax").contributions(frame)
    part = pd.Series(made.values[:, made.columns.index("country")])
    means = part.groupby(frame["country"].to_numpy()).mean()
    assert len(means) >= 3
    for mean in means:
        assert f"<td>{mean:+.3g}</td>" in page
    number = pd.Series(made.values[:, made.columns.index("amount")])
    lowest = frame["amount"] < frame["amount"].quantile(0.2)
    assert f"<td>{number[lowest].mean():+.3g}</td>" in page


def test_a_model_without_contributions_says_so():
    models, data = entries(n_models=1)
    page, _ = page_and_card(models, data)
    assert "The model has no contributions of columns" in page
    assert "Direction of the effects" not in page
    page, _ = page_and_card([replace(models[0], features=[])], data)
    assert "The model has no feature weights or contributions." in page


# The card.


def test_the_card_names_files_hashes_and_what_a_person_knows(models, folder, tmp_path):
    file = tmp_path / "card.toml"
    file.write_text('owner = "Ada"\nnot_for = ["credit", "hiring"]\nreview_by = 2027-06-30\n', encoding="utf-8")
    done = run(
        "report", models / "linear.rocmax", folder / "test.csv", "--segment", "country",
        "--card", file, "--card-out", tmp_path / "card.md", "--out", tmp_path / "page.html",
    )  # fmt: skip
    assert "model card" in done.stderr + done.stdout
    texts = [html.unescape((tmp_path / name).read_text(encoding="utf-8")) for name in ("page.html", "card.md")]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in
              (models / "linear.rocmax", models / "train.csv", folder / "test.csv")]  # fmt: skip
    for text in texts:
        for part in ("Ada", "credit; hiring", "2027-06-30", "scikit-learn", "seed", *hashes):
            assert part in text
    area = evaluate(load_model(models / "linear.rocmax"), folder / "test.csv").measures["roc_auc"]["value"]
    assert f"| AUC | {area:.4f} |" in texts[1]


def test_text_in_the_card_is_escaped():
    markdown = pytest.importorskip("markdown_it")
    models, data = entries()
    data = replace(data, card=[("purpose", f"{SCRIPT} | [x](javascript:alert(1)) **b** `c`\n# d")])
    page, card = page_and_card(models, data)
    assert SCRIPT not in page
    assert SCRIPT not in card
    shown = markdown.MarkdownIt("commonmark", {"html": True}).enable("table").render(card)
    assert "<script" not in shown
    assert "<a " not in shown
    cell = html.escape(f"{SCRIPT} | [x](javascript:alert(1)) **b** `c` # d", quote=False)
    assert f"<td>{cell}</td>" in shown.replace("&quot;", '"')


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("card.toml", 'purpos = "x"', DataError, "unknown keys: 'purpos'; known: purpose, owner"),
        ("card.json", "[1]", DataError, "must have keys and values; got list"),
        ("card.json", "{", DataError, "is no JSON"),
        ("card.toml", "purpose", DataError, "is no TOML"),
        ("card.toml", 'owner = ""', DataError, "'owner' of .* must be text"),
        ("card.json", '{"notes": {"a": 1}}', DataError, "'notes' of .* must be text"),
        ("card.yml", "owner: x", ParameterError, "card must end in .toml or .json"),
    ],
)
def test_a_bad_card_is_an_error_before_the_work(models, tmp_path, name, text, error, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    # The table does not exist, so the card is read before it.
    with pytest.raises(error, match=message):
        write_report(
            load_model(models / "linear.rocmax"), tmp_path / "no.csv", tmp_path / "page.html", card=tmp_path / name
        )
    assert not (tmp_path / "page.html").exists()


def test_a_card_is_a_mapping_too(models, folder, tmp_path):
    card = json.loads('{"owner": "Ada"}')
    write_report(load_model(models / "linear.rocmax"), folder / "test.csv", tmp_path / "page.html", card=card)
    assert "<dt>owner</dt><dd>Ada</dd>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="must not be an input"):
        write_report(
            load_model(models / "linear.rocmax"),
            folder / "test.csv",
            tmp_path / "page.html",
            card_out=tmp_path / "page.html",
        )


# Accessibility.


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 1000), ("light", 380)])
def test_axe_finds_no_serious_violation(models, folder, scheme, width):
    if BROWSER is None or not AXE.exists():
        pytest.skip("needs Chromium, and axe-core in node_modules or in the file that AXE_CORE names")
    api = pytest.importorskip("playwright.sync_api")
    files = [load_model(models / f"{name}.rocmax") for name in ("linear", "boosted")]
    write_report(files, folder / "test.csv", models / "axe.html", segment="country", card={"owner": "Ada"})
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
        tab.goto((models / "axe.html").as_uri())
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        found = tab.evaluate("axe.run()")
        browser.close()
    assert len(found["passes"]) > 20
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"]) for each in serious] == []
