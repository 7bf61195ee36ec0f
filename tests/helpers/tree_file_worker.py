"""Program that loads mutated files of a boosted model, and uses those that load.

It is a process of its own, so that a crash of LightGBM or XGBoost is seen by its exit code.
Arguments: model files. Prints the numbers of refused and of accepted files, for changes of the arrays and of the
schema, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import rocmax
from helpers.model_files import odd_edit, rewrite
from helpers.tree_models import table
from helpers.tree_mutations import mutate
from rocmax.model_io import ModelFileError

# Kinds of changes, and their numbers.
TASKS = (("arrays", 300), ("schema", 100))


def array_members(inner):
    """Return the members of a file with the arrays of its first trees, by name."""
    state = next(tree_states(json.loads(inner["schema.json"])))
    return {name: node["file"] for name, node in state["content"].items() if "file" in node}


def tree_states(node):
    """All nodes of a schema that are states of tree models."""
    if isinstance(node, dict) and node.get("__class__") == "TreeModel":
        yield node["content"]
    elif isinstance(node, dict | list):
        for value in node.values() if isinstance(node, dict) else node:
            yield from tree_states(value)


def array_edit(rng):
    def edit(inner):
        member = str(rng.choice(sorted(array_members(inner).values())))
        inner[member] = mutate(inner[member], rng)

    return edit


def schema_edit(rng):
    def edit(inner):
        schema = json.loads(inner["schema.json"])
        odd_edit(schema, rng)
        inner["schema.json"] = json.dumps(schema).encode()

    return edit


def use(model, X):
    model.decision_function(X)
    model.contributions(X)
    return model.feature_importances_


def mutated(path, kind, n):
    """Load n mutations of a file and return what happened."""
    rng, out, X = np.random.default_rng(1), Path(path).with_suffix(f".{kind}"), table(9)[0]
    counts = {"refused": 0, "accepted": 0, "failed": 0}
    for _ in range(n):
        rewrite(Path(path), out, array_edit(rng) if kind == "arrays" else schema_edit(rng))
        try:
            model = rocmax.load(out)
        except ModelFileError:
            counts["refused"] += 1
            continue
        try:
            use(model, X)
            counts["accepted"] += 1
        except Exception:
            # Other numbers in a valid tree are another model. Other edits of the schema may leave no usable model; an
            # error of Python is fine then.
            if kind == "arrays":
                raise
            counts["failed"] += 1
    return counts


if __name__ == "__main__":
    print(json.dumps([mutated(path, *task) for path in sys.argv[1:] for task in TASKS]))
