"""
Boosted trees
=============

Tables of payments, patients or customers have interactions, categories and missing values. Trees handle all three.
:class:`~rocmax.BoostedClassifier` grows them with LightGBM or XGBoost, and chooses their size and number by the partial
AUC on held-out rows instead of the log loss.
"""

# %%
# The payments are generated. Fraud is frequent among large amounts on the web at night, and among very small amounts,
# with which stolen cards are tested. A tenth of the amounts is missing.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
N_ROWS = 12_000
hour = rng.integers(0, 24, N_ROWS)
amount = rng.exponential(50, N_ROWS)
shop = rng.choice(["web", "store", "phone"], N_ROWS, p=[0.4, 0.5, 0.1])
stolen = (amount > 80) & (shop == "web") & ((hour < 6) | (hour > 21))
testing = (amount < 4) & (shop != "store")
risk = -5.0 + 5.0 * stolen + 3.5 * testing + 0.005 * amount
y = rng.random(N_ROWS) < 1 / (1 + np.exp(-risk))
amount[rng.random(N_ROWS) < 0.1] = np.nan
X = pd.DataFrame({"amount": amount, "hour": hour, "age": rng.integers(18, 80, N_ROWS), "shop": pd.Categorical(shop)})
train, test = slice(0, 6000), slice(6000, None)
print(f"{y[train].sum()} frauds in {y[train].size} training rows")

# %%
# The linear model needs numbers without gaps. The trees take the columns without preparation.

from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from rocmax import BoostedClassifier, PartialAUCClassifier

MAX_FPR = 0.05
numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
prepare = make_column_transformer((numbers, ["amount", "hour", "age"]), (OneHotEncoder(), ["shop"]))
models = {
    "linear": make_pipeline(prepare, PartialAUCClassifier(max_fpr=MAX_FPR)),
    "LightGBM, defaults": LGBMClassifier(verbose=-1, n_jobs=1),
    "BoostedClassifier": BoostedClassifier(max_fpr=MAX_FPR, cv=3, n_jobs=1, random_state=0),
}
for model in models.values():
    model.fit(X[train], y[train])

# %%

import matplotlib.pyplot as plt

from rocmax import PartialROCDisplay
from rocmax.metrics import delong_test, partial_auc_score, positive_scores

for name, model in models.items():
    scores = positive_scores(model, X[test])
    print(f"{name:20} partial AUC, FPR <= 5 %: {partial_auc_score(y[test], scores, max_fpr=MAX_FPR):.3f}")

figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
display = PartialROCDisplay.from_estimator(models, X[test], y[test], max_fpr=MAX_FPR, random_state=0, ax=ax)
plt.show()

# %%
# Is the difference to LightGBM more than noise? Both models are tested on the same rows, so the test is a paired one.

ours, theirs = (positive_scores(models[name], X[test]) for name in ("BoostedClassifier", "LightGBM, defaults"))
result = delong_test(y[test], ours, theirs, max_fpr=MAX_FPR)
print(f"difference {result.difference:.3f} [{result.low:.3f}, {result.high:.3f}], p = {result.pvalue:.2g}")

# %%
# Why was a payment stopped? ``contributions`` splits its score into one term per column (SHAP values).

payment = np.argmax(ours)
terms = models["BoostedClassifier"].contributions(X[test].iloc[[payment]]).values[0]
row = X[test].iloc[payment]
labels = [f"{name} = {row[name]:.0f}" if name != "shop" else f"shop = {row[name]}" for name in X]
figure, ax = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
ax.barh(labels, terms, color=np.where(terms > 0, "#D55E00", "#0072B2"), height=0.6)
ax.axvline(0, color="0.2", linewidth=0.8)
ax.invert_yaxis()
ax.set(xlabel="contribution to the score", title="The payment with the highest score")
ax.spines[["top", "right", "left"]].set_visible(False)
plt.show()
