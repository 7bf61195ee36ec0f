"""Pages of the site that live elsewhere in the repository: the results of the benchmarks, the changelog.

Sphinx reads one folder, so these files are copied into ``docs/repository`` before the build. Links between them and the
pages of ``docs`` are relative to the repository, as GitHub shows them, and are changed to their places in the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

from sphinx.application import Sphinx

FOLDER = "repository"
PATTERNS = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md", "benchmarks/results/*.md")
LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")
EXAMPLE = re.compile(r"(?<!\[)`examples/(plot_\w+)\.py`")
RESULT = re.compile(r"(?<!\[)`(?:benchmarks/)?results/(\w+)\.md`")
NAMED_BY_FILE = re.compile(r"\[`?([\w/]+\.md)`?\](?=\((?:[\w./]*/)?\1[)#])")


def copy_pages(app: Sphinx) -> None:
    """Copy files that have changed, with the images that they show, and delete those that are gone."""
    root, target = Path(app.srcdir).parent, Path(app.srcdir, FOLDER)
    found = {path.relative_to(root) for pattern in PATTERNS for path in root.glob(pattern)}
    found |= {path.relative_to(root) for kind in ("png", "svg") for path in root.glob(f"benchmarks/results/*.{kind}")}
    for old in [path for path in target.rglob("*.*") if path.is_file() and path.relative_to(target) not in found]:
        old.unlink()
    for path in found:
        content, copy = (root / path).read_bytes(), target / path
        if not copy.exists() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)


def place_links(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn links within the repository into links within the site.

    A link whose text is the name of its file gets the title of the page. Names of examples and of results, as code,
    become links, too.
    """
    root = Path(app.srcdir).parent
    where = PurePosixPath(docname)
    inside = where.parts[0] == FOLDER
    folder = PurePosixPath(*where.parts[1:-1]) if inside else PurePosixPath("docs", *where.parts[:-1])

    def place(match: re.Match[str]) -> str:
        path = PurePosixPath(posixpath.normpath(folder / match[2]))
        in_docs = path.parts[0] == "docs"
        if not (root / path).exists() or (in_docs and not inside):
            return match[0]
        return f"{match[1]}/{path.relative_to('docs') if in_docs else FOLDER / path}"

    text = LINK.sub(place, NAMED_BY_FILE.sub("[]", source[0]))
    text = EXAMPLE.sub(r"[`examples/\1.py`](/gallery/\1.rst)", text)
    source[0] = RESULT.sub(rf"[`results/\1.md`](/{FOLDER}/benchmarks/results/\1.md)", text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to the events of a build."""
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", place_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
