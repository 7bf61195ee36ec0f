"""Whether the tests notice when the code is wrong: a seeded sample of mutants, each run against the tests next to it.

``python tests/mutants.py --n 30 --seed 1 --modules losses metrics/scores.py`` changes one operator, number, ``and``,
``not``, ``min`` or returned value at a time in a copy of the repository, and runs those tests next to the module that
call the changed function. A mutant that no test notices has survived. ``equivalent_mutants.toml`` lists those that no
test can notice, with the reason, by the line that changes. Not changed: numbers at the top level of modules, which are
tuned, types, and the texts of errors and warnings.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
# The tests next to a module. The longest path that fits counts.
NEAR = {
    "losses": ["tests/losses", "tests/test_contracts.py"],
    "metrics": ["tests/metrics"],
    "thresholds.py": ["tests/test_*threshold*.py", "tests/test_tpr_floor.py"],
    "penalties.py": ["tests/penalties", "tests/solvers/test_solvers_constraints.py"],
    "kernel/qp.py": ["tests/kernel"],
    "solvers/cutting_plane.py": ["tests/solvers"],
    "solvers/proximal_bundle.py": ["tests/solvers"],
    "online/loops.py": ["tests/online", "tests/papers"],
    "online/psam.py": ["tests/online"],
    "online/follow_the_leader.py": ["tests/online"],
    "papers/streams.py": ["tests/online", "tests/papers"],
}
TOKENS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
EXTREMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
}


class Mutant(NamedTuple):
    """A change of the text between two positions of a module."""

    module: str
    function: str
    number: int  # of the first line, from 0
    before: list[str]
    after: list[str]

    def key(self):
        """Return the first line that changes, before and after, without indentation."""
        return self.before[0].strip(), self.after[0].strip()

    def __str__(self):
        lines = [f"{self.module}:{self.number + 1}"]
        return "\n".join([*lines, *(f"- {line}" for line in self.before), *(f"+ {line}" for line in self.after)])


class Module:
    """A module's text and tree, and the mutants of it."""

    def __init__(self, name):
        self.name = name
        self.lines = (REPOSITORY / "src/rocmax" / name).read_text(encoding="utf-8").splitlines()
        self.found = []
        self.scope = []
        self.visit(ast.parse("\n".join(self.lines)))

    def visit(self, node):
        """Collect the mutants below a node; functions inside functions belong to the outer one."""
        self.found += self.changes(node)
        for child in ast.iter_child_nodes(node):
            if not is_left_out(node, child):
                named = isinstance(child, (ast.ClassDef, ast.FunctionDef)) and not self.in_function
                self.scope += [child] * named
                self.visit(child)
                del self.scope[len(self.scope) - named :]

    @property
    def in_function(self):
        return bool(self.scope) and isinstance(self.scope[-1], ast.FunctionDef)

    def changes(self, node):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                yield from self.between(left, right, op)
        elif isinstance(node, ast.BinOp):
            yield from self.between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self.between(left, right, node.op)
        elif isinstance(node, ast.AugAssign):
            yield from self.between(node.target, node.value, node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            row, column = start(node)
            yield self.replaced((row, column), (row, column + len("not " if isinstance(node.op, ast.Not) else "-")), "")
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
            value = node.value
            other = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 2 * value or 1.0
            yield self.replaced(start(node), end(node), repr(other))
        elif isinstance(node, ast.Call) and (name := ast.unparse(node.func).rpartition(".")[2]) in EXTREMES:
            row, column = end(node.func)
            yield self.replaced((row, column - len(name)), (row, column), EXTREMES[name])
        elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
            yield self.replaced(start(node.value), end(node.value), "None")

    def between(self, left, right, op):
        """Replace an operator in the text between its sides."""
        if type(op) in TOKENS and not any(isinstance(side, ast.JoinedStr) for side in (left, right)):
            old, new = TOKENS[type(op)]
            pattern = rf"\b{old.replace(' ', chr(92) + 's+')}\b" if old[0].isalpha() else re.escape(old)
            (row, column), (last, stop) = end(left), start(right)
            for line in range(row, last + 1):
                text = self.lines[line]
                place = re.compile(pattern).search(
                    text, column if line == row else 0, stop if line == last else len(text)
                )
                if place:
                    yield self.replaced((line, place.start()), (line, place.end()), new)
                    return

    def replaced(self, begin, finish, text):
        (row, column), (last, stop) = begin, finish
        after = self.lines[row][:column] + text + self.lines[last][stop:]
        function = ".".join(node.name for node in self.scope)
        return Mutant(self.name, function, row, self.lines[row : last + 1], [after])

    def write(self, mutant, path):
        """Write the module with a mutant, or without one, to a path."""
        lines = list(self.lines)
        if mutant is not None:
            lines[mutant.number : mutant.number + len(mutant.before)] = mutant.after
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def start(node):
    return node.lineno - 1, node.col_offset


def end(node):
    return node.end_lineno - 1, node.end_col_offset


def is_left_out(node, child):
    """Whether changes of a child are none of behavior: types, texts, and numbers at the top level."""
    if isinstance(child, (ast.JoinedStr, ast.Raise, ast.Assert)) or (
        isinstance(node, ast.Module) and isinstance(child, (ast.Assign, ast.AnnAssign, ast.If))
    ):
        return True
    if isinstance(child, ast.Call) and re.search(r"\b(warn|cast|TypeVar|Option|Argument)$", ast.unparse(child.func)):
        return True
    return child in getattr(node, "decorator_list", []) or child in [
        getattr(node, n, None) for n in ("annotation", "returns")
    ]


def near(module):
    """Return the key of the tests next to a module."""
    return max((key for key in NEAR if module.startswith(key)), key=len)


class Copy:
    """A copy of the repository in which mutants run."""

    def __init__(self, folder):
        self.folder = Path(folder)
        shutil.copytree(REPOSITORY, folder, ignore=shutil.ignore_patterns(".*", "_build", "benchmarks", "__pycache__"))
        self.time = time.time()

    def record(self, module):
        """Run the tests next to a module; return their times and the functions that they call."""
        tests = [str(found.relative_to(self.folder)) for one in NEAR[module] for found in sorted(self.folder.glob(one))]
        report = self.folder / "calls.json"
        done = self.pytest(tests, None, ROCMAX_RECORD=str(report))
        if done.returncode != 0:
            raise RuntimeError(f"The tests next to {module} must pass without a mutant.\n{done.stdout}")
        return json.loads(report.read_text(encoding="utf-8"))

    def survives(self, module, mutant, calls):
        """Run the tests that call the function of a mutant, the fast ones first; return whether all pass."""
        used = {f"{mutant.module}:{mutant.function}"}
        tests = [name for name, call in calls.items() if used & set(call["functions"])] or [
            # Code of a class or of a compiled function is not seen.
            name
            for name, call in calls.items()
            if any(one.startswith(mutant.module) for one in call["functions"])
        ]
        tests.sort(key=lambda name: calls[name]["seconds"])
        chosen = self.folder / "tests.json"
        chosen.write_text(json.dumps(tests), encoding="utf-8")
        path = self.folder / "src/rocmax" / mutant.module
        module.write(mutant, path)
        # Compiled files are valid for a time of change in whole seconds.
        self.time += 1
        os.utime(path, (self.time, self.time))
        try:
            seconds = 60 + 5 * sum(calls[name]["seconds"] for name in tests)
            files = dict.fromkeys(name.partition("::")[0] for name in tests)
            return bool(tests) and self.pytest(["-x", *files], seconds, ROCMAX_TESTS=str(chosen)).returncode == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            module.write(None, path)

    def pytest(self, options, seconds, **environment):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "helpers.callers", *options]
        paths = os.pathsep.join(str(self.folder / name) for name in ("src", "tests"))
        environment |= os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=seconds
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=40, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", nargs="*", default=list(NEAR), help="modules, or the folders they are in")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--contains", default="", help="only mutants of lines with this text")
    parser.add_argument("--calls", type=Path, help="folder of what tests call, from an earlier run or for later ones")
    args = parser.parse_args()

    root = REPOSITORY / "src/rocmax"
    names = [str(path.relative_to(root)) for path in sorted(root.rglob("*.py")) if path.name != "__init__.py"]
    modules = {name: Module(name) for name in names if name.startswith(tuple(args.modules))}
    known = {(one["line"], one["becomes"]) for one in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]}
    everything = [mutant for module in modules.values() for mutant in module.found if args.contains in mutant.before[0]]
    candidates = [mutant for mutant in everything if mutant.key() not in known]
    sample = random.Random(args.seed).sample(candidates, min(args.n, len(candidates)))
    print(f"{len(everything)} mutants, {len(everything) - len(candidates)} known as equivalent", flush=True)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        free = Queue()
        for job in range(args.jobs):
            free.put(Copy(f"{folder}/{job}"))

        def in_a_copy(work, *inputs):
            copy, began = free.get(), time.time()
            try:
                return work(copy, *inputs), time.time() - began
            finally:
                free.put(copy)

        def calls_near(key):
            file = args.calls and args.calls / f"{key.replace('/', '-')}.json"
            if file and file.exists():
                return json.loads(file.read_text(encoding="utf-8"))
            calls, _ = in_a_copy(Copy.record, key)
            if file:
                file.write_text(json.dumps(calls), encoding="utf-8")
            return calls

        keys = sorted({near(mutant.module) for mutant in sample})
        calls = dict(zip(keys, pool.map(calls_near, keys), strict=True))
        runs = pool.map(lambda one: in_a_copy(Copy.survives, modules[one.module], one, calls[near(one.module)]), sample)
        survivors = 0
        for mutant, (survived, seconds) in zip(sample, runs, strict=True):
            survivors += survived
            print(f"{'survived' if survived else 'killed'} ({seconds:.0f} s) {mutant}\n", flush=True)
    print(f"seed {args.seed}: {len(sample) - survivors} of {len(sample)} killed")


if __name__ == "__main__":
    main()
