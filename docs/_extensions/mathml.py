"""Formulas as MathML, converted by docutils, so that the pages need no script from the network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    # What the converter lacks: \dots, and an escaped underscore in a name.
    formula = node.astext().replace(r"\dots", r"\ldots")
    return tex2mathml(formula, as_block=as_block).replace(r"\_", "_")


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula of its own line."""
    writer.body.append(f'<div class="math-block">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
