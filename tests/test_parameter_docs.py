"""Parameters: one name for one thing, and docstrings that state types, defaults and the same texts everywhere."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict

import pytest

import rocmax
from helpers.docstrings import parameters, parse_parameters, public_methods, public_objects

PUBLIC = public_objects()
METHODS = public_methods()

DOCUMENTED = {**PUBLIC, **METHODS}

# Words for which the vocabulary has another one, scikit-learn's where it has a word.
REPLACED = {
    "max_epochs": "max_iter",
    "n_epochs": "max_iter",
    "n_passes": "max_iter",
    "step": "learning_rate",
    "step_size": "learning_rate",
    "seed": "random_state",
    "window": "min_fpr and max_fpr, or buffer_size",
    "threshold_fpr": "max_fpr",
    "weights": "sample_weight",
}

# Why the text of a parameter is not the one of its namesakes (which it may also continue, without an entry here).
DIFFERENT = {
    ("rocmax", "C"): {
        "ROCSVC": "a weight of each pair",
        "TwoNormSVC": "a weight of squared slacks",
        "OAMClassifier": "no penalty: a weight in a step",
        "CBRClassifier": "no penalty: a bound on a step",
    },
    ("rocmax", "tol"): {
        "ROCSVC": "compared with the tolerance of SVC",
        "TwoNormSVC": "that of libsvm",
        "AsymmetricSVC": "relative to another number",
        "PSAMClassifier": "no certificate: the change of the weights",
        "ASAMClassifier": "no certificate: the change of the weights",
        "SOLAMClassifier": "no certificate: the change of the weights",
        "OAMClassifier": "no certificate: the change of the weights",
        "CBRClassifier": "no certificate: the change of the weights",
        "PartialAUCClassifierCV": "of many fits",
        "partial_auc_path": "of many fits",
        "ScoreClassifier": "of the default solver only",
    },
    ("rocmax", "max_iter"): {
        "PSAMClassifier": "passes",
        "ASAMClassifier": "passes",
        "SOLAMClassifier": "passes",
        "OAMClassifier": "passes",
        "CBRClassifier": "passes",
        "MiniBatchClassifier": "passes",
        "KMeansNystroem": "passes of k-means",
        "ScoreClassifier": "of the default solver only",
    },
    ("rocmax", "pos_label"): {
        "FPRThresholdClassifier": "by default that of the estimator",
        "TPRThresholdClassifier": "by default that of the estimator",
    },
    ("rocmax.metrics", "pos_label"): {
        "make_scorer": "by default that of the estimator",
        "positive_scores": "by default that of the estimator",
    },
    ("rocmax", "measure"): {"BoostedClassifier": "no convex loss is minimized"},
    ("rocmax", "min_samples_leaf"): {"BoostedClassifier": "of one engine only"},
    ("rocmax", "n_estimators"): {"BoostedClassifier": "chosen by default"},
    ("rocmax", "n_jobs"): {"BoostedClassifier": "threads of an engine, not of joblib"},
    ("rocmax", "average"): {
        "FollowTheLeaderClassifier": "a mean of leaders",
        "MiniBatchClassifier": "two kinds of mean",
        "SOLAMClassifier": "weighted, from the first step on",
    },
    ("rocmax", "batch_size"): {"KMeansNystroem": "of k-means and of the kernel"},
    ("rocmax", "buffer_size"): {
        "OAMClassifier": "the buffers of the method itself",
        "CBRClassifier": "the buffers of the method itself",
        "SOLAMClassifier": "for the threshold only",
    },
    ("rocmax", "coef0"): {"KMeansNystroem": "kernels with other defaults"},
    ("rocmax", "confidence"): {
        "CBRClassifier": "of a pair, not of a limit",
        "TPRThresholdClassifier": "another number of rows",
    },
    ("rocmax", "constraint"): {"partial_auc_path": "never None, and explained there"},
    ("rocmax", "cv"): {
        "FPRThresholdClassifier": "a held-out share or a fitted estimator too",
        "TPRThresholdClassifier": "a held-out share or a fitted estimator too",
        "BoostedClassifier": "another default",
    },
    ("rocmax", "degree"): {"KMeansNystroem": "kernels with other defaults"},
    ("rocmax", "gamma"): {"KMeansNystroem": "two more choices"},
    ("rocmax", "groups"): {"compare": "groups of rows, as in scikit-learn's splitters"},
    ("rocmax", "kernel"): {"KMeansNystroem": "all pairwise kernels of scikit-learn"},
    ("rocmax", "learning_rate"): {
        "SOLAMClassifier": "another rule for auto",
        "BoostedClassifier": "of the trees, not of steps",
    },
    ("rocmax", "loss"): dict.fromkeys(
        (
            "AUCClassifier", "BreakEvenClassifier", "GMeanClassifier", "PartialAUCClassifier", "PartialAUCClassifierCV",
            "PrecisionAtKClassifier", "ScoreClassifier", "partial_auc_path",
        ),
        "losses of its own measure",
    ),
    ("rocmax", "max_fpr"): {"FPRThresholdClassifier": "a limit, not the end of a range"},
    ("rocmax", "min_tpr"): {"TPRThresholdClassifier": "a limit, not the end of a range"},
    ("rocmax", "radius"): dict.fromkeys(
        ("FollowTheLeaderClassifier", "MiniBatchClassifier", "SOLAMClassifier"), "always the L2 norm"
    ),
    ("rocmax", "reference"): {"PrecisionAtKClassifier": "one measure, and a loss without a reference"},
    ("rocmax", "solver"): {"ScoreClassifier": "an object"},
    ("rocmax", "t0"): {"ASAMClassifier": "another reason for auto"},
    ("rocmax", "X"): {"compare": "whatever the estimators take"},
    ("rocmax.data", "path"): {"read_columns": "named in the text above"},
    ("rocmax.losses", "base"): {"SoftMeasure": "needs derivatives"},
    ("rocmax.losses", "k"): {"SoftPrecision": "may be None"},
    ("rocmax.measures", "max_fpr"): {
        "TPRAtFPRMeasure": "a limit, not the end of a range",
        "TwoWayPartialAUCMeasure": "the edge of a region",
    },
    ("rocmax.measures", "min_tpr"): {
        "FPRAtTPRMeasure": "a limit, not the end of a range",
        "PartialAUCMeasure": "has a default",
    },
    ("rocmax.metrics", "confidence_level"): {"bootstrap_test": "of a difference", "delong_test": "of a difference"},
    ("rocmax.metrics", "max_fpr"): {
        "tpr_at_fpr": "a limit, not the end of a range",
        "two_way_partial_auc_score": "the edge of a region",
    },
    ("rocmax.metrics", "min_tpr"): {"fpr_at_tpr": "a limit, not the end of a range"},
    ("rocmax.metrics", "y_score"): {"bootstrap_interval": "may be labels", "bootstrap_test": "may be labels"},
    ("rocmax.operators", "X"): {"MatrixOperator": "matrices only"},
    ("rocmax.penalties", "l1_ratio"): {"L1Ball": "fixed"},
    ("rocmax.solvers", "learning_rate"): {"MiniBatchSteps": "another rule for None"},
    ("rocmax.solvers", "loss"): {"MiniBatchSteps": "bound to batches by itself"},
    ("rocmax.solvers", "max_iter"): {"CCCP": "outer steps"},
    ("rocmax.solvers", "tol"): {
        "CCCP": "not convex: no certificate",
        "CuttingPlane": "absolute, as published",
        "LBFGS": "not convex: no certificate",
        "ProjectedSubgradient": "relative to the loss alone",
        "ProximalBundle": "relative to the loss alone",
        "choose_solver": "passed on",
    },
    ("rocmax.tables", "max_bytes"): {"load_model": "a model file"},
    ("rocmax.tables", "model"): {"TableModel": "the estimator inside", "fit_table": "a name"},
    ("rocmax.tables", "models"): {"write_report": "fitted ones"},
    ("rocmax.tables", "out"): {"write_predictions": "a table, or an open file"},
    ("rocmax.tables", "path"): {"TableModel": "may be None"},
    ("rocmax.tables", "progress"): {"write_predictions": "counts rows"},
    ("rocmax.tables", "target"): {"evaluate": "known from the fit", "write_report": "known from the fit"},
    ("rocmax.tables", "tune"): {"compare_models": "several models"},
}  # fmt: skip


def test_every_parameter_is_documented_in_order():
    found = {
        name: [entry.name for entry in parse_parameters(value.__doc__ or "")] for name, value in DOCUMENTED.items()
    }
    wrong = {name: names for name, names in found.items() if names != list(parameters(DOCUMENTED[name]))}
    assert wrong == {}


def faults(name, value):
    """Return what is wrong with the types, defaults and texts of the parameters of a public class or function."""
    for entry in parse_parameters(value.__doc__ or ""):
        parameter = parameters(value)[entry.name]
        elsewhere = name in METHODS and not entry.kind and entry.text.startswith("As in :func:")
        if entry.name.startswith("*") or elsewhere:
            continue
        if not entry.kind:
            yield f"{entry.name} has no type"
        if not entry.text:
            yield f"{entry.name} has no text"
        if "optional" in entry.kind:
            yield f"{entry.name}: state the default instead"
        if parameter.default is inspect.Parameter.empty:
            if entry.default is not None:
                yield f"{entry.name} has no default"
        elif entry.default is None:
            yield f"{entry.name}: the default is {parameter.default!r}"
        else:
            stated = ast.literal_eval(entry.default)
            if (type(stated), stated) != (type(parameter.default), parameter.default):
                yield f"{entry.name}: the default is {parameter.default!r}, not {stated!r}"


def test_documented_defaults_are_those_of_the_signature():
    found = {name: list(faults(name, value)) for name, value in DOCUMENTED.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def texts():
    """Return type and text of each parameter: by public module and name, then by owner."""
    found = defaultdict(dict)
    for name, value in PUBLIC.items():
        module, owner = ".".join(name.split(".")[:-1][:2]), name.split(".")[-1]
        # The methods of the papers are estimators as the others.
        module = "rocmax" if module == "rocmax.papers" else module
        for entry in parse_parameters(value.__doc__ or ""):
            found[module, entry.name][owner] = (entry.kind, entry.text)
    return found


def test_repeated_texts_are_the_same():
    wrong = {}
    for key, by_owner in texts().items():
        listed = DIFFERENT.get(key, {})
        rest = {owner: value for owner, value in by_owner.items() if owner not in listed}
        if not rest:
            continue
        # The shortest text is the common one, and the others may go on from it.
        kind, text = min(rest.values(), key=lambda value: len(value[1]))
        for owner, (own_kind, own_text) in rest.items():
            if own_kind != kind or not own_text.startswith(text):
                wrong[(*key, owner)] = (own_kind, own_text)
    assert not wrong


def test_the_list_of_different_texts_is_current():
    found = texts()
    for key, listed in DIFFERENT.items():
        assert set(listed) <= set(found[key]), key
        common = {value for owner, value in found[key].items() if owner not in listed}
        assert common, key
        assert not common & {found[key][owner] for owner in listed}, key


def test_names_are_those_of_the_vocabulary():
    used = {name: set(parameters(value)) & set(REPLACED) for name, value in PUBLIC.items()}
    assert {name: {word: REPLACED[word] for word in words} for name, words in used.items() if words} == {}


def test_gamma_has_one_default():
    defaults = {
        name: parameters(value)["gamma"].default for name, value in PUBLIC.items() if "gamma" in parameters(value)
    }
    assert len(defaults) == 5
    assert set(defaults.values()) == {"scale"}


@pytest.mark.parametrize(
    ("estimator", "old"),
    [
        (rocmax.MiniBatchClassifier, "passes"),
        (rocmax.MiniBatchClassifier, "buffer_size"),
        (rocmax.MiniBatchClassifier, "eta"),
        (rocmax.PSAMClassifier, "gamma"),
        (rocmax.PSAMClassifier, "max_epochs"),
        (rocmax.papers.CBRClassifier, "eta"),
        (rocmax.AUCClassifier, "penalty"),
        (rocmax.PartialAUCClassifier, "penalty"),
    ],
)
def test_old_names_are_ordinary_errors(estimator, old):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{old}'"):
        estimator(**{old: 1})
