"""
A report for those who decide
=============================

One call writes a page with the curves, the threshold, what it catches and what it costs. The page is a single file that
loads nothing, so it can be sent by mail and opened anywhere. The same from a shell: ``rocmax report``.
"""

# %%
# A clinic screens for breast cancer. At most 5 % of the healthy women may be called back. The table comes with
# scikit-learn; a file would do as well.

from sklearn.datasets import load_breast_cancer

data = load_breast_cancer(as_frame=True)
table = data.frame.drop(columns="target").assign(diagnosis=data.target.map({0: "malignant", 1: "benign"}))
table = table.sample(frac=1.0, random_state=0)
train, test = table.head(350), table.tail(219)

# %%
# :func:`~rocmax.tables.fit_table` tunes and fits the model and chooses the threshold on held-out rows.

from rocmax.tables import evaluate, fit_table, write_report

models = [
    fit_table(train, target="diagnosis", positive="malignant", max_fpr=0.05, model=name, tune=False)
    for name in ("linear", "logistic")
]
for model in models:
    found = evaluate(model, test).measures["tpr_at_fpr"]
    print(f"{model.family}: TPR at FPR <= 5 %: {found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]")

# %%
# The report on the test rows, with both models:

from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    path = Path(folder, "report.html")
    write_report(models, test, path)
    page = path.read_text(encoding="utf-8")


class Embedded:
    """A page within a page."""

    def _repr_html_(self):
        style = "width: 100%; height: 44rem; border: 1px solid #8888"
        return f'<iframe title="Report" srcdoc="{escape(page)}" style="{style}"></iframe>'


Embedded()

# %%
# The curves of the report, drawn by matplotlib:

import matplotlib.pyplot as plt

from rocmax import PartialROCDisplay

results = {model.family: evaluate(model, test) for model in models}
figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
display = PartialROCDisplay.from_predictions(
    results["linear"].is_positive,
    {name: result.scores for name, result in results.items()},
    max_fpr=0.05,
    random_state=0,
    ax=ax,
)
plt.show()
