"""The size of the house: what `tests/test_structure.py` limits and `make house` prints."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import rocmax
from rocmax.losses import BoundLoss
from rocmax.tables import fit_table

ROOT = Path(rocmax.__file__).parent
TUNING = re.compile(r"(Rules|Numbers|Limits|Tuning)$")


@cache
def trees():
    """Return the syntax tree of each file, by its path below the package."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))
    }


def lines():
    """Return the number of lines of each file, with docstrings and blank lines."""
    return {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in trees()}


# Numbers of modules


def numbers():
    """Return the names of the numbers that each file sets at its top level.

    A number is a name with a numeric literal in its value, as in ``_SHARE = 0.25``, ``_SIZES = (6, 15)`` or
    ``_A, _B = 1 << 20, 3`` (two); types, ``Annotated[int, Option(min=0)]``, are none. A field with a numeric literal as
    its default counts the same in a class of tuned numbers: one that is called at the top level without arguments
    (``RULES = SearchRules()``), or a frozen one that is not exported and whose name ends in Rules, Numbers, Limits or
    Tuning.
    """
    public = exported()
    return {path: [*module_numbers(tree), *tuned_fields(tree, public)] for path, tree in trees().items()}


def exported():
    """Return the names in the ``__all__`` of some module."""
    return {
        element.value
        for tree in trees().values()
        for target, value in assignments(tree.body)
        if ast.unparse(target) == "__all__"
        for element in value.elts
        if isinstance(element, ast.Constant)
    }


def assignments(body):
    """Pairs of a target and its value; one for each name where a tuple of names gets a tuple of values."""
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is not None:
            for target in targets:
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    yield from zip(target.elts, value.elts, strict=True)
                else:
                    yield target, value


def holds_number(node):
    """Whether there is a numeric literal in an expression; an index and a type have none."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float, complex)) and not isinstance(node.value, bool)
    children = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    return any(map(holds_number, children))


def module_numbers(tree):
    return [ast.unparse(target) for target, value in assignments(tree.body) if holds_number(value)]


def tuned_fields(tree, public):
    called = {
        ast.unparse(value.func)
        for _, value in assignments(tree.body)
        if isinstance(value, ast.Call) and not value.args and not value.keywords
    }
    return [
        f"{node.name}.{ast.unparse(target)}"
        for node in tree.body
        if isinstance(node, ast.ClassDef) and (node.name in called or is_tuning(node, public))
        for target, value in assignments(node.body)
        if holds_number(value)
    ]


def is_tuning(node, public):
    frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
    return frozen and TUNING.search(node.name) is not None and node.name not in public


# Who imports what


def imported(tree):
    """Return the dotted names that a file imports, also inside functions, with the names taken from them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def importers():
    """Return the files that import each private module."""
    found = {path: [] for path in trees() if re.search(r"(^|/)_[a-z]\w*\.py$", path)}
    for path, tree in trees().items():
        names = imported(tree)
        for private, users in found.items():
            if private != path and dotted(private) in names:
                users.append(path)
    return found


def dotted(path):
    return ".".join(("rocmax", *Path(path).with_suffix("").parts))


def lonely_modules():
    """Return the private modules that fewer than two files import."""
    return [path for path, users in importers().items() if len(users) < 2]


# Names


def repeated_classes():
    """Return the names of classes that are defined in two places."""
    names = Counter(node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return sorted(name for name, count in names.items() if count > 1)


def methods_of_a_bound_loss():
    return sorted(name for name, _ in inspect.getmembers(BoundLoss, callable) if not name.startswith("_"))


def parameters_of_fit_table():
    return list(inspect.signature(fit_table).parameters)


def top_level_names():
    return [name for name in rocmax.__all__ if name != "__version__"]


# Files that a fit runs through

DATA = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
y = (X[:, 0] + rng.normal(size=400) > 1.0).astype(int)
"""
FITS = {
    "AUCClassifier": (DATA + "from rocmax import AUCClassifier\nmodel = AUCClassifier()", "model.fit(X, y)"),
    "PartialAUCClassifierCV": (
        DATA + "from rocmax import PartialAUCClassifierCV\nmodel = PartialAUCClassifierCV(0.0, 0.2)",
        "model.fit(X, y)",
    ),
    "rocmax fit": (
        DATA
        + """
import sys
import pandas as pd
from rocmax.cli import main
pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv("train.csv", index=False)
options = "--target y --positive 1 --max-fpr 0.2 --out model.rocmax"
sys.argv = ["rocmax", "fit", "train.csv", *options.split()]
""",
        "main()",
    ),
}
TRACED = """
import inspect, sys, threading, warnings
warnings.simplefilter("ignore")
{setup}
files = set()
def seen(frame, event, argument):
    name = frame.f_code.co_filename
    # Modules and bodies of classes, which run when they are imported, have no local variables of functions.
    function = frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_code.co_name != "__getattr__"
    if event == "call" and name.startswith({root!r}) and function:
        files.add(name)
threading.setprofile(seen)
sys.setprofile(seen)
try:
    {run}
except SystemExit:
    pass
finally:
    sys.setprofile(None)
print("\\n" + "\\n".join(sorted(files)), file=sys.stderr)
"""


def files_of_a_fit(fit):
    """Return the files with a function that runs in a fit, of a fresh process."""
    setup, run = FITS[fit]
    code = TRACED.format(setup=setup, run=run, root=str(ROOT))
    with TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return [str(Path(line).relative_to(ROOT)) for line in done.stderr.splitlines() if line.startswith(str(ROOT))]


def main():
    rows = {
        "modules": len(trees()),
        "lines": sum(lines().values()),
        "numbers of modules": sum(map(len, numbers().values())),
        "private modules with one importer": len(lonely_modules()),
        "names of several classes": len(repeated_classes()),
        "methods of a bound loss": len(methods_of_a_bound_loss()),
        "parameters of fit_table": len(parameters_of_fit_table()),
        "names at the top level": len(top_level_names()),
        **{f"files that {fit} runs": len(files_of_a_fit(fit)) for fit in FITS},
    }
    for name, count in rows.items():
        print(f"{name:45}{count:8,}")
    print(f"\n{'room':45}{'modules':>8}{'lines':>8}{'numbers':>8}")
    rooms = {}
    for path, count in lines().items():
        room = rooms.setdefault(path.split("/")[0], [0, 0, 0])
        for i, value in enumerate((1, count, len(numbers()[path]))):
            room[i] += value
    for room, counts in rooms.items():
        print(f"{room:45}" + "".join(f"{count:8,}" for count in counts))


if __name__ == "__main__":
    main()
