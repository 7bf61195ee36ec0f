"""Mutants of a module: one operator, number or returned value of a function changed at a time."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import rocmax

ROOT = Path(rocmax.__file__).parent
# Smaller numbers are tolerances for rounding errors.
SMALLEST = 1e-6
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
        self.lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        self.found = []
        self.scope = []
        self.visit(ast.parse("\n".join(self.lines)))

    def visit(self, node):
        """Collect the mutants below a node; functions inside functions belong to the outer one."""
        self.found += self.changes(node) if self.in_function else []
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
            if 0 < value < SMALLEST:
                return
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

    def code(self, mutant):
        """Return the code of the function that has the mutant."""
        lines = list(self.lines)
        lines[mutant.number : mutant.number + len(mutant.before)] = mutant.after
        whole = compile("\n".join(lines) + "\n", str(ROOT / self.name), "exec")
        # The last one of a name counts, as in Python.
        return [code for code in codes_in(whole) if code.co_qualname == mutant.function][-1]


def codes_in(code):
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)


def start(node):
    return node.lineno - 1, node.col_offset


def end(node):
    return node.end_lineno - 1, node.end_col_offset


def is_left_out(node, child):
    """Whether changes of a child are none of behavior: types, texts, defaults."""
    if isinstance(child, (ast.JoinedStr, ast.Raise, ast.Assert, ast.arguments)):
        return True
    if isinstance(child, ast.Call) and re.search(r"\b(warn|cast)$", ast.unparse(child.func)):
        return True
    return child in getattr(node, "decorator_list", ()) or child in (
        getattr(node, "annotation", None),
        getattr(node, "returns", None),
    )
