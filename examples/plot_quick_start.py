"""
Quick start: few false alarms
=============================

A bank stops suspicious card payments. At most one in a hundred of the honest payments may be stopped, so a model is
judged by how many of the frauds it catches within this limit: the true-positive rate (TPR) at a false-positive rate
(FPR) of at most 1 %. Logistic regression is trained on all rows alike. :class:`~rocmax.PartialAUCClassifier` is trained
for the part of the ROC curve that counts here.
"""

# %%
# The payments are generated such that the features that separate most rows are not those that
# separate the top of the ranking: a few honest customers look more suspicious than most frauds.

from sklearn.model_selection import train_test_split

from rocmax.demo import make_payments

X, y = make_payments(seed=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
print(f"{y_train.sum()} frauds in {y_train.size} training rows")

# %%
# The estimators of rocmax are used like those of scikit-learn, in pipelines, too. ``max_fpr`` is the limit.

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rocmax import PartialAUCClassifier

MAX_FPR = 0.01
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "partial AUC": make_pipeline(StandardScaler(), PartialAUCClassifier(max_fpr=MAX_FPR)),
}
for model in models.values():
    model.fit(X_train, y_train)

# %%
# Every measure has a function, and every value an interval. The AUC, the mean over all limits, hides the difference.

from rocmax.metrics import bootstrap_interval, positive_scores, roc_auc_score, tpr_at_fpr

for name, model in models.items():
    scores = positive_scores(model, X_test)
    found = tpr_at_fpr(y_test, scores, max_fpr=MAX_FPR)
    low, high = bootstrap_interval("tpr_at_fpr", y_test, scores, max_fpr=MAX_FPR, random_state=0)
    auc = roc_auc_score(y_test, scores)
    print(f"{name:20} TPR at FPR <= 1 %: {found:.2f} [{low:.2f}, {high:.2f}]   AUC: {auc:.3f}")

# %%
# The display shades the range of the limit and enlarges it. The bands are 95 % intervals, point by point.

import matplotlib.pyplot as plt

from rocmax import PartialROCDisplay

figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
display = PartialROCDisplay.from_estimator(models, X_test, y_test, max_fpr=MAX_FPR, random_state=0, ax=ax)
plt.show()

# %%
# ``predict`` uses a threshold that keeps the limit on the training rows. On new rows the rate can be higher;
# :ref:`sphx_glr_gallery_plot_threshold.py` shows a threshold with a guarantee.
