"""Program that loads mutated files of a boosted model, and uses those that load.

It is a process of its own, so that a crash of LightGBM or XGBoost is seen by its exit code.
Arguments: model files. Prints the numbers of refused and of accepted files, for changes of the text and of the schema,
as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import rocmax
from helpers.model_files import odd_edit, rewrite
from helpers.tree_models import table
from helpers.tree_mutations import mutate, resized
from rocmax.model_io import ModelFileError

# Kinds of changes, and their numbers.
TASKS = (("text", 300), ("schema", 100))


def change_texts(change):
    """Return an edit of the members of a file that changes the text of its first trees."""

    def edit(inner):
        schema = json.loads(inner["schema.json"])
        node = next(node for node in strings(schema) if len(node["content"]) > 500)
        node["content"] = json.dumps(change(json.loads(node["content"])))
        inner["schema.json"] = json.dumps(schema).encode()

    return edit


def strings(node):
    """All nodes of a schema that are strings."""
    if isinstance(node, dict) and node.get("__class__") == "str" and "content" in node:
        yield node
    elif isinstance(node, dict | list):
        for value in node.values() if isinstance(node, dict) else node:
            yield from strings(value)


def text_edit(rng):
    def change(text):
        changed = mutate(text, rng)
        fits = changed.startswith("tree") and changed.count("\n\n") and "end of trees" in changed
        return resized(changed) if fits and rng.random() < 0.7 else changed

    return change_texts(change)


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
        rewrite(Path(path), out, text_edit(rng) if kind == "text" else schema_edit(rng))
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
            if kind == "text":
                raise
            counts["failed"] += 1
    return counts


if __name__ == "__main__":
    print(json.dumps([mutated(path, *task) for path in sys.argv[1:] for task in TASKS]))
