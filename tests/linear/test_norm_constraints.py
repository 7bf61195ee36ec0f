"""Sparse and group-sparse classifiers, their path and its display."""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from rocmax import AUCClassifier, PartialAUCClassifier, partial_auc_path
from rocmax.displays import PartialAUCPathDisplay
from rocmax.losses import PairwiseHinge, PartialAUCTight
from rocmax.metrics import partial_auc_score
from rocmax.operators import as_operator
from rocmax.penalties import ElasticNetBall, GroupBall, L1Ball, L2Ball
from rocmax.solvers import ProximalBundle

DATA = Path(os.environ.get("ROCMAX_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LABELS = np.arange(20) // 4
PENALTIES = {
    "l2": ({"constraint": "l2"}, L2Ball),
    "l1": ({"constraint": "l1"}, L1Ball),
    "elasticnet": ({"constraint": "elasticnet", "l1_ratio": 0.3}, lambda r: ElasticNetBall(r, 0.3)),
    "group": ({"constraint": "group", "groups": LABELS}, lambda r: GroupBall(r, LABELS, 20)),
}
every_penalty = pytest.mark.parametrize(("params", "make"), PENALTIES.values(), ids=PENALTIES)


def sample(n=400, d=20, seed=0, shift=1.5):
    """Gaussians; the first three features are shifted for the positives."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    X = rng.standard_normal((n, d))
    X[:, :3] += shift * y[:, None]
    return X, y


# Estimators


@every_penalty
@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_fit_is_the_solution_of_the_problem_it_states(params, make, radius):
    X, y = sample()
    for model, loss in (
        (PartialAUCClassifier(max_fpr=0.2, loss="tight", radius=radius, **params), PartialAUCTight(0, 0.2)),
        (AUCClassifier(radius=radius, **params), PairwiseHinge()),
    ):
        model.fit(X, y)
        ball, bound = make(radius), loss.bind(y)
        assert ball.value(model.coef_[0]) <= radius * (1 + 1e-9)
        assert model.objective_ == pytest.approx(bound.value_and_gradient(X @ model.coef_[0])[0], rel=1e-9)
        assert 0 <= model.dual_gap_ <= model.tol * model.objective_
        direct = ProximalBundle(tol=1e-6).solve(as_operator(X), bound, ball)
        assert direct.objective - direct.gap <= model.objective_ <= direct.objective + model.dual_gap_ + 1e-9


@every_penalty
def test_sparse_input_and_single_precision_give_the_same_model(params, make):
    X, y = sample()
    X[np.abs(X) < 0.5] = 0.0
    dense = PartialAUCClassifier(max_fpr=0.2, radius=1.0, tol=1e-5, **params).fit(X, y)
    csr = clone(dense).fit(sparse.csr_array(X), y)
    single = clone(dense).fit(X.astype(np.float32), y)
    assert csr.objective_ == pytest.approx(dense.objective_, rel=2e-5)
    assert single.objective_ == pytest.approx(dense.objective_, rel=1e-4)


@every_penalty
def test_more_features_than_rows(params, make):
    rng = np.random.default_rng(0)
    y = np.arange(15) % 3 == 0
    X = rng.standard_normal((15, 20)) + y[:, None]
    model = AUCClassifier(radius=0.2, tol=1e-5, **params).fit(X, y)
    direct = ProximalBundle(tol=1e-6).solve(as_operator(X), PairwiseHinge().bind(y), make(0.2))
    assert model.objective_ == pytest.approx(direct.objective, rel=2e-5)


def test_l2_ball_of_the_penalised_model():
    X, y = sample()
    penalized = AUCClassifier(C=3.0, tol=1e-6).fit(X, y)
    radius = float(np.linalg.norm(penalized.coef_))
    held = AUCClassifier(constraint="l2", radius=radius, tol=1e-6, C=1e9).fit(X, y)
    np.testing.assert_allclose(held.coef_, penalized.coef_, atol=5e-3 * radius)


def test_squared_hinge_in_a_ball():
    X, y = sample()
    model = AUCClassifier("squared_hinge", constraint="l1", radius=0.5).fit(X, y)
    assert model.dual_gap_ <= model.tol * model.objective_
    assert np.count_nonzero(model.coef_) < 20


def test_auto_does_not_collapse_where_the_tight_loss_does():
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.2).astype(int)
    X = rng.standard_normal((2000, 6))
    X[:, 0] += 1.2 * y
    tight = PartialAUCClassifier(max_fpr=0.05, loss="tight", constraint="l1", radius=1.0)
    with pytest.warns(ConvergenceWarning, match='collapsed.*Use loss="auto"'):
        tight.fit(X, y)
    auto = clone(tight).set_params(loss="auto").fit(X, y)
    assert auto.coef_[0, 0] > 0
    assert auto.score(X, y) > tight.score(X, y) + 0.1
    assert auto.dual_gap_ <= auto.tol * auto.objective_


def test_auto_keeps_the_tight_loss_where_it_ranks_better():
    X, y = sample(shift=3.0)
    auto, tight = (
        PartialAUCClassifier(max_fpr=0.1, loss=loss, constraint="l1", radius=2.0).fit(X, y)
        for loss in ("auto", "tight")
    )
    assert auto.score(X, y) >= tight.score(X, y)


def test_warm_start_is_taken_and_never_ends_above():
    X, y = sample()
    model = PartialAUCClassifier(max_fpr=0.2, loss="tight", constraint="l1", radius=1.0, warm_start=True).fit(X, y)
    first, n_iter = model.objective_, model.n_iter_
    model.fit(X, y)
    assert model.objective_ <= first * (1 + 1e-12)
    assert model.n_iter_ <= n_iter
    assert model.set_params(radius=2.0).fit(X, y).objective_ <= first * (1 + 1e-12)


def test_weights_are_copies_of_rows():
    X, y = sample(n=60)
    weight = np.random.default_rng(1).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    for params, _ in PENALTIES.values():
        model = PartialAUCClassifier(max_fpr=0.3, radius=0.5, tol=1e-6, **params)
        one, two = clone(model).fit(X, y, sample_weight=weight), clone(model).fit(X[rows], y[rows])
        assert one.objective_ == pytest.approx(two.objective_, rel=2e-6)


def test_grid_search_over_the_radius():
    X, y = sample()
    search = GridSearchCV(PartialAUCClassifier(max_fpr=0.2, constraint="l1", radius=1.0), {"radius": [0.1, 1.0]}, cv=3)
    search.fit(X, y)
    assert search.best_params_["radius"] in (0.1, 1.0)


@pytest.mark.parametrize("model", [PartialAUCClassifier(), AUCClassifier()], ids=["partial", "full"])
@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"constraint": "lasso", "radius": 1.0}, "constraint must be one of 'l2', 'l1', .*; got 'lasso'"),
        ({"constraint": "l1"}, "with constraint='l1', radius must be a number > 0.*got None"),
        ({"constraint": "group", "groups": LABELS}, "with constraint='group', radius must be a number > 0"),
        ({"constraint": "l1", "radius": 0.0}, "radius must be a finite number > 0; got 0.0"),
        ({"constraint": "l2", "radius": -1}, "radius must be a finite number > 0; got -1"),
        ({"radius": 1.0}, "radius must be None if constraint is None; got 1.0. Pass constraint as one of 'l2'"),
        ({"groups": LABELS}, "groups must be None unless constraint='group'; got groups and constraint=None"),
        ({"radius": True}, "radius must be a finite number > 0; got True"),
        (
            {"constraint": "elasticnet", "radius": 1.0, "l1_ratio": 1.5},
            "l1_ratio must be a number from 0 to 1; got 1.5",
        ),
        (
            {"constraint": "elasticnet", "radius": 1.0, "l1_ratio": "a"},
            "l1_ratio must be a number from 0 to 1; got 'a'",
        ),
        ({"constraint": "group", "radius": 1.0}, "with constraint='group', groups must be.*got None"),
        ({"constraint": "l1", "radius": 1.0, "groups": LABELS}, "groups must be None unless constraint='group'"),
        ({"constraint": "group", "radius": 1.0, "groups": [0, 1]}, "groups must be 20 labels, one per feature.*got 2"),
        ({"constraint": "group", "radius": 1.0, "groups": [[0], [0]]}, "groups must not overlap"),
    ],
)
def test_parameters_that_do_not_fit_together(model, params, text):
    X, y = sample(n=50)
    with pytest.raises(ValueError, match=text):
        clone(model).set_params(**params).fit(X, y)


def test_losses_that_are_not_convex_have_no_ball():
    loss, low = "hinge", 0.1
    X, y = sample(n=50)
    with pytest.raises(
        ValueError, match=f'with a constraint, loss must be convex; got {loss!r}, which is not convex.*use "auto"'
    ):
        PartialAUCClassifier(low, 0.3, loss=loss, constraint="l1", radius=1.0).fit(X, y)


def test_hinge_from_zero_is_the_tight_loss():
    X, y = sample()
    one, two = (
        PartialAUCClassifier(max_fpr=0.2, loss=loss, constraint="l1", radius=1.0).fit(X, y)
        for loss in ("hinge", "tight")
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_few_groups_of_seventeen():
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(17), rng.integers(4, 10, 17))
    X = rng.standard_normal((4000, label.size))
    direction = np.where(label < 5, rng.standard_normal(label.size), 0.0)
    for group in range(5):
        direction[label == group] /= np.linalg.norm(direction[label == group])
    y = X @ direction + 0.5 * rng.standard_normal(4000) > 2.5
    model = PartialAUCClassifier(max_fpr=0.1, constraint="group", groups=label, radius=1.0).fit(X, y)
    assert sorted(set(label[model.coef_[0] != 0])) == [0, 1, 2, 3, 4]


# Path


@every_penalty
def test_path_starts_at_zero_and_its_loss_never_rises(params, make):
    X, y = sample()
    path = partial_auc_path(X, y, max_fpr=0.2, n_radii=6, **params)
    assert path.radii.shape == (7,)
    assert path.radii[0] == 0
    assert not path.coefs[0].any()
    assert path.coefs.shape == (7, 20)
    assert (np.diff(path.radii) > 0).all()
    assert (np.diff(path.objectives) <= 1e-12).all()
    assert path.objectives[0] == pytest.approx(1.0)
    assert (path.gaps <= 1e-3 * np.maximum(path.objectives, 1e-3)).all()
    np.testing.assert_array_equal(path.n_features, np.count_nonzero(path.coefs, axis=1))
    np.testing.assert_allclose(path.partial_auc, path.score(X, y))
    for radius, w, objective, used in zip(
        path.radii[1:], path.coefs[1:], path.objectives[1:], path.n_groups[1:], strict=True
    ):
        ball = make(radius)
        assert ball.value(w) <= radius * (1 + 1e-9)
        assert ball.n_used(w) == used
        assert objective == pytest.approx(PartialAUCTight(0, 0.2).bind(y).value_and_gradient(X @ w)[0], rel=1e-9)
    assert path.n_features[-1] > path.n_features[1] or params["constraint"] == "l2"
    assert path.n_features[-1] == 20


def test_path_agrees_with_the_classifier_and_follows_the_positive_class():
    X, y = sample()
    label = np.where(y == 1, "fraud", "ok")
    path = partial_auc_path(X, label, max_fpr=0.2, radii=[1.0, 0.2], pos_label="fraud", sample_weight=np.ones(400))
    np.testing.assert_array_equal(path.radii, [0.0, 0.2, 1.0])
    model = PartialAUCClassifier(max_fpr=0.2, loss="tight", constraint="l1", radius=1.0, pos_label="fraud").fit(
        X, label
    )
    assert path.objectives[-1] == pytest.approx(model.objective_, rel=2e-3)
    assert (path.coefs[-1, :3] < 0).all()  # "ok" is classes[1]
    expected = partial_auc_score(y, -(X @ path.coefs[-1]), max_fpr=0.2)
    assert path.score(X, label)[-1] == pytest.approx(expected)
    assert path.score(X.tolist(), label)[-1] == pytest.approx(expected)


@pytest.mark.parametrize("corner", [{"min_tpr": 0.7, "max_fpr": 1.0}, {"min_tpr": 0.5, "max_fpr": 0.4}])
def test_path_above_a_true_positive_rate(agg, corner):
    X, y = sample()
    path = partial_auc_path(X, y, n_radii=4, **corner)
    assert path.min_tpr == corner["min_tpr"]
    loss = PartialAUCTight(0.0, corner["max_fpr"], corner["min_tpr"]).bind(y)
    assert path.objectives == pytest.approx([loss.value_and_gradient(X @ w)[0] for w in path.coefs], rel=1e-9)
    assert path.partial_auc == pytest.approx([partial_auc_score(y, X @ w, **corner) for w in path.coefs])
    # The first radius is a twentieth of the one at which the linear approximation of this loss at zero is zero.
    value, slope = loss.value_and_gradient(np.zeros(y.size))
    assert path.radii[1] == pytest.approx(0.05 * value / np.abs(X.T @ slope).max(), rel=1e-4)
    display = PartialAUCPathDisplay.from_path(path, X[:200], y[:200])
    held_out = [partial_auc_score(y[:200], X[:200] @ w, **corner) for w in path.coefs]
    np.testing.assert_allclose(display.partial_auc["held-out rows"], held_out)


def test_path_of_sparse_rows_and_names():
    X, y = sample()
    X[np.abs(X) < 0.5] = 0.0
    dense = partial_auc_path(pd.DataFrame(X, columns=[f"gene {i}" for i in range(20)]), y, radii=[0.5])
    csr = partial_auc_path(sparse.csr_array(X), y, radii=[0.5])
    assert dense.feature_names[3] == "gene 3"
    assert csr.feature_names is None
    assert csr.objectives[-1] == pytest.approx(dense.objectives[-1], rel=2e-3)
    np.testing.assert_allclose(csr.score(sparse.csr_array(X), y), csr.partial_auc)


def test_path_warns_once_of_what_went_wrong():
    X, y = sample()
    with pytest.warns(
        ConvergenceWarning, match=r"2 fits did not reach tol=1e-08, the first at radius 1.*raise max_iter"
    ):
        partial_auc_path(X, y, max_fpr=0.2, radii=[1.0, 2.0], tol=1e-8, max_iter=2)
    noise = np.random.default_rng(0).standard_normal(X.shape)
    with pytest.warns(ConvergenceWarning, match="collapsed: all weights are zero at every radius") as seen:
        partial_auc_path(noise, y, max_fpr=0.05, n_radii=3, max_iter=2000)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"radii": []}, "radii must be finite numbers > 0"),
        ({"radii": [0.0, 1.0]}, "radii must be finite numbers > 0"),
        ({"radii": [np.inf]}, "radii must be finite numbers > 0"),
        ({"n_radii": 1}, "n_radii must be an integer > 1"),
        ({"constraint": "group"}, "groups must be one label per feature"),
        ({"constraint": None}, "constraint must be one of 'l2', 'l1', 'elasticnet', 'group'; got None"),
        ({"loss": "hinge", "min_fpr": 0.05}, "with a constraint, loss must be convex"),
        ({"max_fpr": 2.0}, "max_fpr"),
        ({"min_tpr": 1.0}, "min_tpr must be at least 0 and below 1; got 1.0"),
    ],
)
def test_path_refuses(params, text):
    X, y = sample(n=50)
    with pytest.raises(ValueError, match=text):
        partial_auc_path(X, y, **params)


def test_path_of_constant_features_is_zero():
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        path = partial_auc_path(np.ones((20, 3)), np.arange(20) % 2, n_radii=3)
    assert not path.coefs.any()
    assert np.allclose(path.radii[1:], [0.05, 1.0, 20.0])


# Display


@pytest.fixture
def agg():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_display_draws_what_it_stores(agg):
    import matplotlib.pyplot as plt

    X, y = sample()
    path = partial_auc_path(X, y, max_fpr=0.2, n_radii=5)
    display = PartialAUCPathDisplay.from_path(path, X[:200], y[:200])
    assert list(display.partial_auc) == ["training rows", "held-out rows"]
    np.testing.assert_allclose(display.partial_auc["held-out rows"], path.score(X[:200], y[:200]))
    left, right = display.axes_
    drawn = [line for line in left.get_lines() if len(line.get_xdata()) == 6]
    assert len(drawn) == np.count_nonzero(np.abs(path.coefs).max(axis=0))
    assert right.get_xlabel() == "number of features"
    np.testing.assert_array_equal(right.get_lines()[0].get_xdata(), np.sort(path.n_features))
    scores = path.score(X[:200], y[:200])
    best = f"held-out rows (best {scores.max():.3f}, {path.n_features[scores.argmax()]} features)"
    assert right.get_legend().get_texts()[0].get_text() == best
    assert right.get_lines()[0].get_linestyle() == "-"
    assert len(plt.get_fignums()) == 1
    display.figure_.canvas.draw()


def test_display_counts_groups_and_takes_axes(agg):
    import matplotlib.pyplot as plt

    X, y = sample()
    path = partial_auc_path(X, y, max_fpr=0.2, radii=[0.2, 1.0], constraint="group", groups=LABELS)
    figure, axes = plt.subplots(1, 2)
    display = PartialAUCPathDisplay.from_path(path, axes=axes)
    assert display.figure_ is figure
    assert axes[1].get_xlabel() == "number of groups"
    np.testing.assert_array_equal(axes[1].get_lines()[0].get_xdata(), np.sort(path.n_groups))


def test_display_of_an_all_zero_path(agg):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = partial_auc_path(np.ones((20, 3)), np.arange(20) % 2, n_radii=3)
    assert not path.coefs.any()
    display = PartialAUCPathDisplay.from_path(path)
    display.figure_.canvas.draw()
    assert not display.axes_[1].get_lines()[0].get_xdata().any()


def test_display_refuses_rows_without_classes_and_names_what_is_missing(monkeypatch):
    X, y = sample(n=60)
    path = partial_auc_path(X, y, radii=[0.5])
    with pytest.raises(ValueError, match="X and y must be given together; got X only"):
        PartialAUCPathDisplay.from_path(path, X)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'rocmax\[plot\]'"):
        PartialAUCPathDisplay.from_path(path)


# Real data


@pytest.mark.slow
def test_thrombin_without_making_it_dense():
    path = DATA / "thrombin.npz"
    if not path.is_file():
        pytest.skip("thrombin is not there; set ROCMAX_DATA to the folder that holds thrombin.npz")
    with np.load(path) as z:
        X, y = sparse.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])), z["y"]
    model = PartialAUCClassifier(max_fpr=0.1, constraint="elasticnet", l1_ratio=0.001, radius=0.005, tol=0.01).fit(X, y)
    assert X.shape == (1909, 139351)
    assert model.dual_gap_ <= 0.01 * model.objective_
    assert 0 < np.count_nonzero(model.coef_) < 0.5 * X.shape[1]
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("n_rows", [12, 60])
@pytest.mark.parametrize("constraint", ["l2", "l1", "elasticnet", "group"])
def test_the_weights_never_exceed_the_radius(constraint, n_rows):
    groups = np.arange(15) // 3
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_rows, 15))
        y = X[:, 0] + rng.standard_normal(n_rows) > 0.3
        y[:2] = True, False
        radius = (0.1, 0.3, 0.7, 3.0)[seed % 4]
        model = AUCClassifier(constraint=constraint, radius=radius, groups=groups if constraint == "group" else None)
        w = model.fit(X, y).coef_[0]
        value = {
            "l2": np.linalg.norm(w),
            "l1": np.abs(w).sum(),
            "elasticnet": 0.5 * np.abs(w).sum() + 0.25 * w @ w,
            "group": GroupBall(radius, groups, 15).value(w),
        }[constraint]
        assert value <= radius, seed
