"""Groups of like positives: how they are made, when a start from one of them counts, and what that is good for."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel
from scipy import sparse

from helpers.training_sets import CheckedRows
from rocmax import PartialAUCClassifierCV
from rocmax._folds import is_behind
from rocmax.linear.refine import StartSpec, WindowRefinement, group, regroup, standardized
from rocmax.linear.select import SAFE, TIGHT_ABOVE, Fold, StartTrials, agreement
from rocmax.losses import PartialAUCTight
from rocmax.metrics import partial_auc_score
from rocmax.penalties import SquaredL2
from rocmax.solvers import CuttingPlane

N_SAFE = len(SAFE)


def two_groups(n=1500, seed=0, distance=4.0):
    """Positives on both sides of the negatives: no linear score finds both."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 10 == 0).astype(int)
    side = np.where(np.arange(n) % 20 == 0, distance, -distance)
    X = rng.standard_normal((n, 3))
    X[:, 0] += y * side
    return X, y


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_groups_are_the_true_ones_where_they_are_plain(container):
    X, y = two_groups()
    labels = group(container(X)[y == 1], y == 1, None)[0]
    assert (labels[y == 0] == -1).all()
    right = X[y == 1, 0] > 0
    found = labels[y == 1] == labels[y == 1][right][0]
    np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(("n_positive", "sizes"), [(99, []), (100, [2]), (150, [2, 3]), (200, [2, 3, 4])])
def test_small_samples_make_fewer_groups(n_positive, sizes):
    rng = np.random.default_rng(0)
    X, positive = rng.standard_normal((400, 2)), np.arange(400) < n_positive
    assert [labels.max() + 1 for labels in group(X[positive], positive, None)] == sizes


def test_weights_move_the_groups():
    X = np.array([[0.0], [1.0], [10.0]]).repeat(40, axis=0)
    positive = np.ones(120, dtype=bool)
    level = group(X[positive], positive, np.ones(120))[0]
    assert level[0] == level[40] != level[80]
    light = group(X[positive], positive, np.where(X[:, 0] == 10.0, 1e-6, 1.0))[0]  # it pays to part those that count
    assert light[0] != light[40] == light[80]


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_groups_of_some_rows_keep_their_numbers(seed):
    X, y = two_groups(n=2000, seed=seed, distance=6.0)
    labels = group(X[y == 1], y == 1, None)[0]
    some = np.random.default_rng(seed).random(2000) < 0.5
    again = regroup(X[some][y[some] == 1], y[some] == 1, None, labels[some], 2)
    np.testing.assert_array_equal(again, labels[some])


def test_a_group_without_rows_leaves_the_others_as_they_are():
    X, y = two_groups(n=100)
    labels = np.where(y == 1, 0, -1)
    np.testing.assert_array_equal(regroup(X[y == 1], y == 1, None, labels, 2), labels)


def test_agreement_is_the_mean_correlation_of_scores():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)) + 5.0
    weights = rng.standard_normal((4, 3))
    correlation = np.corrcoef(X @ weights.T, rowvar=False)
    expected = (correlation.sum() - 4) / 12
    data = CheckedRows(X, np.arange(500) % 2 == 0)
    assert agreement(weights, data) == pytest.approx(expected)
    assert agreement(np.array([weights[0], 3 * weights[0]]), data) == pytest.approx(1.0)
    assert agreement(np.array([weights[0], -weights[0]]), data) == pytest.approx(-1.0)
    assert agreement(np.array([weights[0], 0 * weights[0]]), data) == 0.0
    assert agreement(weights[:1], data) == 1.0


def test_agreement_counts_rows_by_weight():
    rng = np.random.default_rng(1)
    X, weights = rng.standard_normal((60, 3)), rng.standard_normal((3, 3))
    times = rng.integers(1, 4, 60)
    repeated = np.repeat(X, times, axis=0)
    one = agreement(weights, CheckedRows(X, np.ones(60, dtype=bool), times.astype(float)))
    two = agreement(weights, CheckedRows(repeated, np.ones(len(repeated), dtype=bool)))
    assert one == pytest.approx(two)


@pytest.mark.parametrize(
    ("score", "turn", "counts"),
    [(0.6, 0.0, True), (0.6, 1.5, False), (0.5, 0.0, False), (0.4, 0.0, False)],
    ids=["better and alike", "better, but the folds disagree", "level", "worse"],
)
def test_starts_of_clusters_have_to_be_better_and_alike(score, turn, counts):
    trials, data = given_trials(StartSpec("group 1 of 2", 10.0, 0, 2), score, turn)
    choices = trials.choices(data)
    assert [choice.tolist() for choice in choices[1:]] == ([[N_SAFE]] if counts else [])
    assert N_SAFE not in choices[0]


@pytest.mark.parametrize(
    ("score", "turn", "used"),
    [(0.5, 0.0, True), (0.5, 1.5, False), (0.4, 0.0, False)],
    ids=["level and alike", "level, but the folds disagree", "worse"],
)
def test_starts_on_the_window_have_to_be_alike(score, turn, used):
    trials, data = given_trials(StartSpec("tight", 1.0), score, turn)
    (chosen,) = trials.choices(data)
    assert (N_SAFE in chosen) == used


@pytest.mark.parametrize(
    ("score", "turn", "share"),
    [(0.51, 0.0, 2 / 3), (0.5, 0.0, 1 / 2), (0.43, 0.0, 1 / 2), (0.42, 0.0, 0.0), (0.51, 1.5, 0.0)],
    ids=["better", "level", "behind by less than 1.5 standard errors", "by more", "better, but the folds disagree"],
)
def test_the_weight_of_the_tight_loss_above_a_true_positive_rate(score, turn, share):
    trials, data = given_trials(StartSpec("tight", 10.0), score, turn)
    trials.scores[:, -1] += [-0.05, 0.05]  # the standard error of the difference is 0.05
    (chosen,) = trials.choices(data, with_tight=True)
    assert (chosen == N_SAFE).mean() == pytest.approx(share)
    assert set(chosen) - {N_SAFE} == set(range(N_SAFE))


@pytest.mark.parametrize("n_tight", [1, 2, 3])
def test_the_weight_of_the_tight_loss_does_not_depend_on_the_numbers_of_starts(n_tight):
    first, *others = TIGHT_ABOVE[:n_tight]
    trials, data = given_trials(first, 0.6, 0.0)
    trials.specs += others
    trials.scores = np.hstack([trials.scores, np.full((2, len(others)), 0.6)])
    trials.weights = np.concatenate([trials.weights, np.ones((2, len(others), 2))], axis=1)
    trials.scores[:, 3:N_SAFE] = 0.2
    (chosen,) = trials.choices(data, with_tight=True)
    expected = {**dict.fromkeys(range(3), 1 / 9), **{N_SAFE + k: 2 / 3 / n_tight for k in range(n_tight)}}
    assert {k: (chosen == k).mean() for k in np.unique(chosen)} == pytest.approx(expected)


@pytest.mark.parametrize(("window", "tol"), [((0.0, 0.1, 0.0), 1e-4), ((0.0, 1.0, 0.8), 1e-3)])
def test_starts_with_the_tight_loss_are_those_of_algorithm_1(window, tol):
    y = (np.arange(600) % 4 == 0).astype(int)
    X = np.random.default_rng(0).standard_normal((600, 3)) + np.outer(y, [2.5, 1.0, 0.0])
    operator = standardized(X, None)
    loss = PartialAUCTight(window[0], window[1], min_tpr=window[2]).bind(y == 1)
    expected, other = (CuttingPlane(each, 100).solve(operator, loss, SquaredL2(10.0)).w for each in (tol, 5e-4))
    found = WindowRefinement(CheckedRows(X, y == 1), window, 1e-3, 500).start("tight", 10.0).w
    np.testing.assert_allclose(found, expected / operator.matvec(expected).std(), rtol=1e-9)
    assert not np.allclose(expected, other, rtol=1e-6)


def given_trials(spec, score, turn):
    """Scores of 0.5 for the safe starts, and one more start with models that differ by an angle between two folds."""
    rng = np.random.default_rng(0)
    data = CheckedRows(rng.standard_normal((400, 2)), np.arange(400) % 2 == 0)
    fold = Fold(data, np.arange(200), np.arange(200, 400), (0.0, 0.1, 0.0), 1e-3, 100)
    trials = StartTrials(Parallel(), [fold, fold], {}, {})
    trials.specs = [*SAFE, spec]
    trials.scores = np.full((2, N_SAFE + 1), 0.5)
    trials.scores[:, -1] = score
    trials.weights = np.ones((2, N_SAFE + 1, 2))
    trials.weights[1, -1] = [np.cos(np.pi / 4 + turn), np.sin(np.pi / 4 + turn)]
    return trials, data


class Scripted:
    """Fold whose starting points have given scores; zero weights for a score of None."""

    def __init__(self, scores, n_positives=4):
        self.scores, self.asked = scores, []
        self.data = SimpleNamespace(X=np.zeros((n_positives, 2)), positive=np.ones(n_positives, dtype=bool))
        self.test = np.arange(n_positives)


def scripted(fold, specs, groups, similar):
    fold.asked += [spec.kind for spec in specs]
    found = [fold.scores[spec.kind] for spec in specs]
    return [score or 0.0 for score in found], [np.full(2, 0.0 if score is None else 1.0) for score in found]


def test_hopeless_starts_are_dropped_after_the_first_folds(monkeypatch):
    monkeypatch.setattr(Fold, "starts", scripted)
    given = {
        "safe": [0.5] * 5,
        "zero": [None] * 5,
        "far": [0.2] * 5,
        "behind": [0.4] * 5,
        "once": [0.4, 0.6, 0.4, 0.4, 0.4],
    }
    folds = [Scripted({kind: scores[i] for kind, scores in given.items()}) for i in range(5)]
    trials = StartTrials(Parallel(), folds, {}, {})
    trials.add([StartSpec("safe", 1.0)])
    trials.add_promising([StartSpec(kind, 1.0) for kind in ("zero", "far", "behind", "once")])
    assert folds[0].asked == ["safe", "zero", "far", "behind", "once"]
    assert folds[1].asked == folds[2].asked == ["safe", "behind", "once"]
    assert folds[3].asked == folds[4].asked == ["safe", "once"]
    assert np.isnan(trials.scores).sum(axis=0).tolist() == [0, 4, 4, 2, 0]
    assert trials.means() == pytest.approx(
        {"safe, C=1": 0.5, "zero, C=1": 0.0, "far, C=1": 0.2, "behind, C=1": 0.4, "once, C=1": 0.44}
    )


def test_starts_that_are_behind_after_half_of_the_folds_are_dropped(monkeypatch):
    monkeypatch.setattr(Fold, "starts", scripted)
    given = {
        "safe": [0.5] * 10,
        # The mean of the first five differences is 0.06, with a standard error of 0.04; then 0.02 and 0.04.
        "clearly": [0.4, 0.6, 0.4, 0.4, 0.4, *[0.9] * 5],
        "hardly": [0.4, 0.6, 0.4, 0.4, 0.6, *[0.3] * 5],
    }
    folds = [Scripted({kind: scores[i] for kind, scores in given.items()}) for i in range(10)]
    trials = StartTrials(Parallel(), folds, {}, {})
    trials.add([StartSpec("safe", 1.0)])
    trials.add_promising([StartSpec(kind, 1.0) for kind in ("clearly", "hardly")])
    assert all(fold.asked == ["safe", "clearly", "hardly"] for fold in folds[:5])
    assert all(fold.asked == ["safe", "hardly"] for fold in folds[5:])
    assert np.isnan(trials.scores).sum(axis=0).tolist() == [0, 5, 0]


@pytest.mark.parametrize(("n_positives", "dropped"), [(100, False), (400, True)])
def test_starts_far_behind_for_the_number_of_positives_are_dropped_after_the_first_fold(
    monkeypatch, n_positives, dropped
):
    # The standard error of a partial AUC of 0.5 is at most 0.05 with 100 positives, and 0.025 with 400.
    monkeypatch.setattr(Fold, "starts", scripted)
    folds = [Scripted({"safe": 0.5, "low": 0.4}, n_positives) for _ in range(3)]
    trials = StartTrials(Parallel(), folds, {}, {})
    trials.add([StartSpec("safe", 1.0)])
    trials.add_promising([StartSpec("low", 1.0)])
    assert [("low" in fold.asked) for fold in folds] == [True, not dropped, not dropped]


def test_in_a_race_safe_starts_are_dropped_after_half_of_the_folds(monkeypatch):
    monkeypatch.setattr(Fold, "starts", scripted)
    given = {
        "logistic": [0.5] * 6,
        # The mean of the first three differences is 0.0199, with a standard error of 0.01; then 0.03 and 0.01.
        "balanced": [0.47, 0.4703, 0.50, *[0.6] * 3],
        "svc": [0.46, 0.46, 0.49, *[0.9] * 3],
    }
    folds = [Scripted({kind: scores[i] for kind, scores in given.items()}) for i in range(6)]
    trials = StartTrials(Parallel(), folds, {}, {})
    trials.add([StartSpec(kind, 1.0) for kind in given], race=True)
    assert all(len(fold.asked) == 3 for fold in folds[:3])
    assert all(fold.asked == ["logistic", "balanced"] for fold in folds[3:])
    assert trials.choices(folds[0].data)[0].tolist() == [1]
    # New starts are compared with the best complete one.
    for fold, score in zip(folds, [0.475, 0.475, 0.505, 0.55, 0.55, 0.55], strict=True):
        fold.scores["new"] = score
    trials.add_promising([StartSpec("new", 1.0)])
    assert np.isnan(trials.scores[:, 3]).sum() == 0


def test_without_a_race_or_with_few_folds_no_safe_start_is_dropped(monkeypatch):
    monkeypatch.setattr(Fold, "starts", scripted)
    for n_folds, race in [(6, False), (5, True), (2, True)]:
        folds = [Scripted({"best": 0.5, "bad": 0.1}) for _ in range(n_folds)]
        trials = StartTrials(Parallel(), folds, {}, {})
        trials.add([StartSpec("best", 1.0), StartSpec("bad", 1.0)], race=race)
        assert not np.isnan(trials.scores).any()


def test_behind_means_by_more_than_the_given_number_of_standard_errors():
    level = np.array([0.1, 0.5, 0.9])
    assert is_behind(level, level + 0.01, 2.0)
    assert not is_behind(level, level, 2.0)
    assert not is_behind(level, level + np.array([0.1, 0.0, 0.0]), 2.0)  # the gain is one standard error
    assert is_behind(level, level + np.array([0.1, 0.05, 0.05]), 2.0)  # four
    assert is_behind(level[:1], level[:1] + 0.1, 2.0)
    assert not is_behind(level[:1], level[:1], 2.0)


def test_a_narrow_window_is_filled_by_one_group():
    X, y = two_groups()
    model = PartialAUCClassifierCV(max_fpr=0.02, Cs=[1.0], random_state=0).fit(X, y)
    assert all(name.startswith("group") for name in model.starts_)
    X, y = two_groups(seed=1)
    assert partial_auc_score(y, model.decision_function(X), max_fpr=0.02) > 0.4
    others = [score for name, score in model.start_scores_.items() if not name.startswith(("group", "tight"))]
    assert max(others) < 0.2  # starts that depend on all rows
