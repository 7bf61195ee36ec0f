"""Builder of ONNX graphs with the inputs and outputs of exported models."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax import __version__
from rocmax._validate import LARGEST
from rocmax.workflow.preprocessing import other_forms

OPSET, IR_VERSION = 18, 8
# RegexFullMatch, for text columns, is of this version. It runs in onnxruntime 1.17 or later.
_TEXT_OPSET, _TEXT_IR_VERSION = 20, 9
# The characters that Arrow's utf8_trim_whitespace and Python's str.strip remove, as a class of a regular expression.
SPACES = r"[\x{9}-\x{d}\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
_NOTHING = r"[^\x{0}-\x{10ffff}]"


class Marks(NamedTuple):
    """Values that are missing.

    Attributes
    ----------
    texts : tuple of str
        Text that is always missing.
    usual : tuple of str
        Text that is missing unless it is a category.
    numbers : tuple of float
        Numbers that are missing.
    computed : frozenset of str
        Inputs that are computed from other columns, to which the marks do not apply.
    """

    texts: tuple[str, ...] = ("",)
    usual: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    computed: frozenset[str] = frozenset()


class TextValues(NamedTuple):
    """Number that stands for each category of a text column, for missing values, and for all other text."""

    known: dict[str, float]
    missing: float
    unknown: float


class Graph:
    """Builder of a graph, which collects nodes, constants and inputs.

    Parameters
    ----------
    onnx : module
        The package onnx.
    columns : set of str
        Names of the inputs.
    ml_opset : int
        Version of the operators of ai.onnx.ml.
    marks : Marks
        Values that are missing.

    Attributes
    ----------
    ir_version : int
        Version of the file format, which may be increased so that older runtimes refuse the graph.
    """

    def __init__(self, onnx: Any, columns: set[str], ml_opset: int, marks: Marks) -> None:
        self.onnx, self.ml_opset, self.marks = onnx, ml_opset, marks
        self.opset, self.ir_version = OPSET, IR_VERSION
        # Internal values have a prefix that no column name has.
        self.prefix = "rocmax."
        while any(name.startswith(self.prefix) for name in columns):
            self.prefix += "_"
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        return self.output(kind, inputs, self.prefix + name, **attributes)

    def output(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], name=f"make_{output}", **attributes))
        return output

    def doubles(self, truths: str, name: str) -> str:
        """Return 1 where a truth value is true, otherwise 0."""
        return self.node("Cast", [truths], name, to=self.onnx.TensorProto.DOUBLE)

    def any_of(self, truths: str, name: str) -> str:
        """Return whether one of the truth values of a row is true, as a column."""
        axis = self.constant(f"axis_{name}", np.array([1], dtype=np.int64))
        count = self.node("ReduceSum", [self.doubles(truths, f"ones_{name}"), axis], f"count_{name}", keepdims=1)
        return self.node("Greater", [count, self.constant(f"none_{name}", np.array(0.0))], name)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(value, self.prefix + name))
        return self.prefix + name

    def strings(self, name: str, values: list[str]) -> str:
        encoded = [value.encode() for value in values]
        kind = self.onnx.TensorProto.STRING
        self.constants.append(self.onnx.helper.make_tensor(self.prefix + name, kind, [len(encoded)], encoded))
        return self.prefix + name

    def input(self, name: str, width: int, text: bool = False) -> str:
        kind = self.onnx.TensorProto.STRING if text else self.onnx.TensorProto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def number(self, place: int, name: str) -> str:
        """Return the numbers of an input column, with NaN for marks for missing values."""
        column = self.input(name, 1)
        if not self.marks.numbers or name in self.marks.computed:
            return column
        marks = self.constant(f"marks_{place}", np.array([self.marks.numbers]))
        found = self.any_of(self.node("Equal", [column, marks], f"is_mark_{place}"), f"is_marked_{place}")
        return self.node("Where", [found, self.constant(f"nan_{place}", np.array(np.nan)), column], f"number_{place}")

    def _model(self) -> Any:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        outputs = [
            helper.make_tensor_value_info("score", types.DOUBLE, [None]),
            helper.make_tensor_value_info("label", types.STRING, [None]),
        ]
        graph = helper.make_graph(self.nodes, "rocmax", self.inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", self.ml_opset)]
        model = helper.make_model(graph, opset_imports=versions, producer_name="rocmax", producer_version=__version__)
        model.ir_version = min(self.ir_version, _TEXT_IR_VERSION)
        self.onnx.checker.check_model(model)  # refuses versions that are newer than its own
        model.ir_version = self.ir_version
        return model

    def text_values(self, place: int, name: str, text: TextValues) -> str:
        """Return the number that stands for each value of a text column, after spaces around it are removed.

        No operator of ONNX removes spaces. Each distinct number has a code in binary, and a regular expression tells
        for each bit whether it is set: the expressions list the text whose codes have this bit.
        """
        self.opset, self.ir_version = _TEXT_OPSET, max(self.ir_version, _TEXT_IR_VERSION)
        numbers = {repr(float(text.unknown)): float(text.unknown)}
        listed: dict[str, list[str]] = {}
        for value, number in self._texts(text).items():
            key = repr(float(number))
            numbers.setdefault(key, float(number))
            listed.setdefault(key, []).append(value)
        column = self.input(name, 1, text=True)
        bits = []
        for bit in range(max(1, (len(numbers) - 1).bit_length())):
            chosen = [value for code, key in enumerate(numbers) if code >> bit & 1 for value in listed[key]]
            pattern = f"{SPACES}(?:{'|'.join(map(_quoted, chosen))}){SPACES}" if chosen else _NOTHING
            bits.append(self.node("RegexFullMatch", [column], f"bit_{place}_{bit}", pattern=pattern))
        joined = self.doubles(self.node("Concat", bits, f"bits_{place}", axis=1), f"digits_{place}")
        powers = self.constant(f"powers_{place}", 2.0 ** np.arange(len(bits))[:, np.newaxis])
        code = self.node("MatMul", [joined, powers], f"sum_of_bits_{place}")
        code = self.node("Cast", [code], f"code_{place}", to=self.onnx.TensorProto.INT64)
        values = self.constant(f"values_{place}", np.array(list(numbers.values())))
        return self.node("Gather", [values, code], f"value_{place}")

    def _texts(self, text: TextValues) -> dict[str, float]:
        """Return the number of all text that stands for another number than unknown text does."""
        missing = {*self.marks.texts, *(mark for mark in self.marks.usual if mark not in text.known)}
        # No value equals a category with spaces around it, because these are removed from the values.
        found = {name: number for name, number in text.known.items() if name.strip() == name}
        # Other forms of a category are that category, as in predictions.
        found |= {form: found[name] for name in sorted(found) for form in other_forms(name) if form not in text.known}
        found |= dict.fromkeys(sorted(missing), text.missing)
        return {name: number for name, number in found.items() if repr(float(number)) != repr(float(text.unknown))}

    def refuse_large(self, matrix: str, score: str) -> str:
        """Return the score, but NaN for rows with an infinite number or one that is too large, which models refuse."""
        size = self.node("Abs", [matrix], "sizes_of_numbers")
        large = self.node("Greater", [size, self.constant("largest", np.array(LARGEST))], "is_large")
        refused = self.any_of(large, "refused")
        return self.node("Where", [refused, self.constant("no_score", np.array(np.nan)), score], "valid")

    def finish(self, total: str, constant: float, labels: list[str]) -> Any:
        """Return the model with the score ``total + constant`` and the labels of scores up to 0 and above 0.

        The label of a score that is NaN is the empty string.
        """
        shifted = self.node("Add", [total, self.constant("constant", np.array([constant]))], "shifted")
        shape = self.constant("flat", np.array([-1], dtype=np.int64))
        score = self.output("Reshape", [shifted, shape], "score")
        above = self.node("Greater", [score, self.constant("zero", np.array(0.0))], "above")
        side = self.node("Cast", [above], "side", to=self.onnx.TensorProto.INT64)
        none = self.constant("no_label", np.array(len(labels), dtype=np.int64))
        place = self.node("Where", [self.node("IsNaN", [score], "is_nan"), none, side], "place")
        self.output("Gather", [self.strings("labels", [*labels, ""]), place], "label")
        return self._model()


def _quoted(text: str) -> str:
    """Return a regular expression, in the syntax of RE2, that matches a text and nothing else."""
    plain = (char.isprintable() and char not in r"\.+*?()|[]{}^$" for char in text)
    return "".join(char if is_plain else rf"\x{{{ord(char):x}}}" for char, is_plain in zip(text, plain, strict=True))
