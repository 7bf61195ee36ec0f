"""A check of the built pages: internal links lead to a file and an anchor, and nothing is loaded from elsewhere."""

from __future__ import annotations

import posixpath
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
# Attributes that a browser loads with the page; a link (href of an anchor) may lead to other sites.
LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value)
            elif (tag, name) in LOADED:
                self.loads.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


def problems(folder: Path) -> list[str]:
    """Return a line for each link that leads nowhere and each resource that is loaded from elsewhere."""
    pages = {
        path.relative_to(folder).as_posix(): _Page(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
        if "_static" not in path.parts
    }
    found = []
    for name, page in sorted(pages.items()):
        found += [f"{name}: loads {url}" for url in page.loads if urlsplit(url).netloc]
        for url in page.links + page.loads:
            link = urlsplit(url)
            if link.scheme or link.netloc:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(link.path)))
            target = name if not link.path else target
            if not (folder / target).exists():
                found.append(f"{name}: no file for {url}")
            elif target in pages and unquote(link.fragment) not in pages[target].anchors | {"", "top"}:
                found.append(f"{name}: no anchor for {url}")
    return found


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn about each problem; with ``-W`` the build fails."""
    if error is None and app.builder.format == "html":
        for problem in problems(Path(app.outdir)):
            LOGGER.warning(problem)


def setup(app: Sphinx) -> dict[str, Any]:
    """Check after the build."""
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
