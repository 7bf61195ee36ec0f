"""Rules for the shape of the code: how deep classes inherit, what a package may import, where a rule is written."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import rocmax
from helpers import house
from helpers.extras import can_be_imported

ROOT = Path(rocmax.__file__).parent
# `python -m rocmax` runs the command line.
MODULES = [
    importlib.import_module(name)
    for _, name, _ in pkgutil.walk_packages(rocmax.__path__, "rocmax.")
    if not name.endswith("__main__") and can_be_imported(name)
]


def own_classes():
    found = {value for module in MODULES for value in vars(module).values() if inspect.isclass(value)}
    return sorted((c for c in found if c.__module__.partition(".")[0] == "rocmax"), key=lambda c: c.__qualname__)


def values_of_names(path):
    """Pairs of a name and its value, for each assignment at the top level of a module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                parts = zip(target.elts, node.value.elts, strict=True) if is_tuple(target, node.value) else ()
                yield from ((ast.unparse(one), ast.unparse(value)) for one, value in parts or [(target, node.value)])


def is_tuple(target, value):
    return isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)


def test_a_name_of_a_module_has_one_value():
    for path in sorted(ROOT.rglob("*.py")):
        found = {}
        for name, value in values_of_names(path):
            assert found.setdefault(name, value) == value, f"{name} in {path} has two values; the last one counts"


def depth(cls):
    """Number of steps from a class up to the farthest ancestor of rocmax's own."""
    own = [base for base in cls.__bases__ if base.__module__.partition(".")[0] == "rocmax"]
    return max((1 + depth(base) for base in own), default=0)


def test_the_walk_sees_the_package():
    names = {cls.__name__ for cls in own_classes()}
    assert {"FBetaClassifier", "ROCSVC", "PSAMClassifier", "Decision", "BoundLoss", "L1Ball"} <= names
    assert depth(rocmax.AUCClassifier) == 2


def test_inheritance_is_at_most_two_deep():
    assert [cls.__qualname__ for cls in own_classes() if depth(cls) > 2] == []


def imports(path):
    """Modules of rocmax that a file imports, also inside functions; with the names taken from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_owner(name):
    """Return the package that owns the private module in a dotted name, if there is one.

    A private name of a public module is private to that module.
    """
    parts = name.split(".")
    for i, part in enumerate(parts):
        if part.startswith("_") and not part.startswith("__"):
            return ".".join(parts[:i])
    return None


def foreign_imports(path):
    """Return the private modules of other packages that a file imports."""
    package = ".".join(("rocmax", *path.relative_to(ROOT).parent.parts))
    return {
        name
        for name in imports(path)
        if name.partition(".")[0] == "rocmax"
        and (owner := private_owner(name)) is not None
        and package != owner
        and not package.startswith(f"{owner}.")
    }


def test_no_private_module_of_another_package_is_imported():
    found = {str(path.relative_to(ROOT)): foreign_imports(path) for path in sorted(ROOT.rglob("*.py"))}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_sign_rule_for_pos_label_is_written_once():
    # -1 where a high score indicates classes_[0]: every other place calls this function.
    places = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.IfExp) and {ast.unparse(node.body), ast.unparse(node.orelse)} == {"1.0", "-1.0"}
    ]
    assert places == ["_validation.py"]


# The size of the house; `make house` prints the counts

MOST_MODULES = 117
MOST_LINES = 43_500
MOST_NUMBERS = 290
MOST_METHODS_OF_A_BOUND_LOSS = 8
MOST_PARAMETERS_OF_FIT_TABLE = 14
MOST_NAMES_AT_THE_TOP_LEVEL = 31
MOST_FILES_OF_A_FIT = {"AUCClassifier": 16, "PartialAUCClassifierCV": 25, "rocmax fit": 53}


def test_number_of_modules():
    assert len(house.trees()) <= MOST_MODULES


def test_number_of_lines():
    assert sum(house.lines().values()) <= MOST_LINES


def test_number_of_numbers_at_the_top_level_of_modules():
    assert sum(map(len, house.numbers().values())) <= MOST_NUMBERS


def test_what_counts_as_a_number_of_a_module():
    code = """if True:
        _ONE = 0.25
        _TWO, _THREE = 1 << 20, np.array([1.0, 2.0])
        _FOUR: dict[str, int] = {"a": 1}
        _NONE = other[0]
        Count = Annotated[int, Option(min=0)]
        _FLAG, _TEXT = True, "3"

        @dataclass(frozen=True)
        class PathRules:
            step: float = 0.5
            name: str = "x"

        class Growth(NamedTuple):
            most: int = 3

        @dataclass(frozen=True)
        class Limits:
            rate: float = 0.1

        @dataclass(frozen=True)
        class Solver:
            tol: float = 1e-3

        GROWTH = Growth()
    """
    tree = ast.Module(ast.parse(code).body[0].body, [])
    assert house.module_numbers(tree) == ["_ONE", "_TWO", "_THREE", "_FOUR"]
    assert house.tuned_fields(tree, {"Limits", "Solver"}) == ["PathRules.step", "Growth.most"]


def test_number_of_methods_of_a_bound_loss():
    assert len(house.methods_of_a_bound_loss()) <= MOST_METHODS_OF_A_BOUND_LOSS


def test_number_of_parameters_of_fit_table():
    assert len(house.parameters_of_fit_table()) <= MOST_PARAMETERS_OF_FIT_TABLE


def test_number_of_names_at_the_top_level():
    assert len(house.top_level_names()) <= MOST_NAMES_AT_THE_TOP_LEVEL


def test_no_two_classes_have_one_name():
    assert house.repeated_classes() == []


def test_a_private_module_has_at_least_two_importers():
    assert house.lonely_modules() == []


@pytest.mark.slow
@pytest.mark.parametrize("fit", house.FITS)
def test_number_of_files_that_a_fit_runs(fit):
    files = house.files_of_a_fit(fit)
    assert "operators.py" in files
    assert len(files) <= MOST_FILES_OF_A_FIT[fit]


# What tests import

# What no public name shows: the bits of scores, files and signals, docstrings at import.
PRIVATE_MODULES_IN_TESTS = {
    "estimators/test_global_state.py": {"rocmax._validation"},
    "estimators/test_score_ties.py": {"rocmax._rounding"},
    "test_output_files.py": {"rocmax._files"},
    "test_parameter_docs.py": {"rocmax._docstrings"},
    "test_rounding.py": {"rocmax._rounding"},
}


def private_imports(path):
    """Return the private modules, and the private names of public modules, that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "rocmax":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.partition(".")[0] == "rocmax"]
        else:
            continue
        for parts in (name.split(".") for name in names):
            private = [i for i, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
            found |= {".".join(parts[: private[-1] + 1])} if private else set()
    return found


def test_tests_import_public_names():
    tests = Path(__file__).parent
    found = {str(path.relative_to(tests)): private_imports(path) for path in sorted(tests.rglob("*.py"))}
    others = {path: names - PRIVATE_MODULES_IN_TESTS.get(path, set()) for path, names in found.items()}
    assert {path: names for path, names in others.items() if names} == {}
