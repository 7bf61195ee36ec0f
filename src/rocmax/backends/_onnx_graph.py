"""Builder of ONNX graphs with the inputs and outputs of exported models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax import __version__
from rocmax._typing import Array

OPSET, IR_VERSION = 18, 8


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

    Attributes
    ----------
    ir_version : int
        Version of the file format, which may be increased so that older runtimes refuse the graph.
    """

    def __init__(self, onnx: Any, columns: set[str], ml_opset: int) -> None:
        self.onnx, self.ml_opset, self.ir_version = onnx, ml_opset, IR_VERSION
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

    def _model(self) -> Any:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        outputs = [
            helper.make_tensor_value_info("score", types.DOUBLE, [None]),
            helper.make_tensor_value_info("label", types.STRING, [None]),
        ]
        graph = helper.make_graph(self.nodes, "rocmax", self.inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", self.ml_opset)]
        model = helper.make_model(graph, opset_imports=versions, producer_name="rocmax", producer_version=__version__)
        model.ir_version = IR_VERSION
        self.onnx.checker.check_model(model)  # refuses versions that are newer than its own
        model.ir_version = self.ir_version
        return model

    def text_values(self, place: int, name: str, categories: list[str], values: Array) -> str:
        """Return the value of each category of a text column; the last value is for unknown categories."""
        code = self.node(
            "LabelEncoder",
            [self.input(name, 1, text=True)],
            f"code_{place}",
            domain="ai.onnx.ml",
            keys_strings=categories,
            values_int64s=list(range(len(categories))),
            default_int64=len(categories),
        )
        return self.node("Gather", [self.constant(f"values_{place}", values), code], f"value_{place}")

    def finish(self, total: str, constant: float, labels: list[str]) -> Any:
        """Return the model with the score ``total + constant`` and the labels of scores up to 0 and above 0."""
        shifted = self.node("Add", [total, self.constant("constant", np.array([constant]))], "shifted")
        shape = self.constant("flat", np.array([-1], dtype=np.int64))
        score = self.output("Reshape", [shifted, shape], "score")
        above = self.node("Greater", [score, self.constant("zero", np.array(0.0))], "above")
        place = self.node("Cast", [above], "place", to=self.onnx.TensorProto.INT64)
        self.output("Gather", [self.strings("labels", labels), place], "label")
        return self._model()
