"""Parameters: one name for one thing, and docstrings that state types, defaults and the same texts everywhere."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from pathlib import Path

import pytest

import rocmax
from helpers.docstrings import parameters, parse_parameters, public_methods, public_objects
from rocmax._docstrings import complete

SOURCE = Path(rocmax.__file__).parent

PUBLIC = public_objects()
METHODS = public_methods()

NAMES = {name.split(".")[-1] for name in (*PUBLIC, *METHODS)}

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


def test_every_parameter_is_documented_in_order():
    found = {
        name: [entry.name for entry in parse_parameters(value.__doc__ or "")] for name, value in DOCUMENTED.items()
    }
    wrong = {name: names for name, names in found.items() if names != list(parameters(DOCUMENTED[name]))}
    assert wrong == {}


def faults(value):
    """Return what is wrong with the types, defaults and texts of the parameters of a public class or function."""
    for entry in parse_parameters(value.__doc__ or ""):
        parameter = parameters(value)[entry.name]
        elsewhere = not entry.kind and entry.text.startswith(("As in :func:", "As in :class:"))
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
    found = {name: list(faults(value)) for name, value in DOCUMENTED.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def written_entries():
    """Return how often each entry of a section Parameters or Attributes is written out in the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in NAMES:
                doc = ast.get_docstring(node) or ""
                for section in ("Parameters", "Attributes"):
                    yield from (entry for entry in parse_parameters(doc, section) if entry.text)


def test_a_text_that_several_docstrings_share_is_written_once():
    counts = Counter((entry.name, entry.kind, entry.text) for entry in written_entries())
    assert {entry: n for entry, n in counts.items() if n > 5} == {}


def test_shared_texts_have_the_defaults_of_the_signature():
    doc = inspect.cleandoc(rocmax.AUCClassifier.__doc__)
    assert "\ntol : float, default=0.001\n" in doc
    assert "\nmax_iter : int, default=500\n    Maximum number of iterations.\npos_label" in doc


def test_a_name_without_a_shared_text_is_an_error():
    def scale(radius_of_the_earth):
        """Scale.

        Parameters
        ----------
        radius_of_the_earth
        """

    with pytest.raises(ValueError, match="no shared text for 'radius_of_the_earth' of Parameters"):
        complete(scale)


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
