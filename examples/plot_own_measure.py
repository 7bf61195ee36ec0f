"""Custom measure: train for it, choose the threshold with it, and use it as the score.

The measure is the Jaccard index: TP / (TP + FN + FP). Unlike the AUC, it decreases with every false positive,
regardless of the number of negatives. Most positives are in one cluster (right), and a fifth of them are among the
negatives (top left), where detecting them would cause many false positives. The AUC counts all positives equally, so
its decision boundary is tilted towards the second cluster. The model trained for the Jaccard index ignores this
cluster. Both models use the threshold with the best Jaccard index on the training rows.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from rocmax import ScoreClassifier
from rocmax.losses import Contingency, PairwiseHinge
from rocmax.penalties import SquaredL2


def jaccard(tp, fp, m, n):
    """Return the Jaccard index for ``tp`` of ``m`` positives and ``fp`` of ``n`` negatives."""
    return tp / (m + fp)


MEASURE = Contingency(jaccard)
MODELS = {
    "the Jaccard index": (ScoreClassifier(MEASURE, SquaredL2(C=100.0)), "#D55E00", "-"),
    "the AUC": (ScoreClassifier(PairwiseHinge(), SquaredL2(C=100.0), threshold=MEASURE), "#0072B2", "--"),
}


def sample(rng: np.random.Generator, n_rows: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Sample negatives around zero, positives to the right, and a fifth of the positives among the negatives."""
    y = rng.random(n_rows) < 0.1
    X = rng.standard_normal((n_rows, 2))
    among = rng.random(n_rows) < 0.2
    X[y & ~among] += (3.5, 0.0)
    X[y & among] += (-1.0, 1.5)
    return X, y


def main() -> None:
    """Plot the decision boundaries of both models, and their Jaccard index by threshold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="own_measure.png")
    out = parser.parse_args().out
    rng = np.random.default_rng(0)
    train, (X, y) = sample(rng), sample(rng)
    figure, (plane, curve) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
    shown = slice(0, 1500)
    plane.scatter(*X[shown][~y[shown]].T, s=6, color="0.75", label="negative")
    plane.scatter(*X[shown][y[shown]].T, s=8, color="0.2", label="positive")
    flagged = np.arange(1, y.size + 1)
    for name, (model, color, style) in MODELS.items():
        model.fit(*train)
        w, b = model.coef_[0], model.intercept_[0]
        x2 = np.array([-4.0, 5.0])
        plane.plot(-(b + w[1] * x2) / w[0], x2, style, color=color, label=f"trained for {name}")
        decision = model.decision_function(X)
        tp = np.cumsum(y[np.argsort(-decision)])
        value = jaccard(tp, flagged - tp, y.sum(), (~y).sum())
        chosen = np.count_nonzero(decision > 0)
        curve.plot(flagged, value, style, color=color, label=f"trained for {name}: {model.score(X, y):.2f}")
        curve.plot(chosen, value[chosen - 1], "o", color=color)
    plane.set(xlim=(-4.0, 7.0), ylim=(-4.0, 5.0), xlabel="feature 1", ylabel="feature 2", title="Test rows")
    curve.set(xscale="log", xlim=(10, y.size), ylim=(0.0, 0.8))
    curve.set(xlabel="rows predicted positive", ylabel="Jaccard index", title="Test Jaccard index (dots: thresholds)")
    for panel, place in ((plane, "lower left"), (curve, "upper left")):
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize="small", loc=place)
    figure.savefig(out, dpi=150)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
