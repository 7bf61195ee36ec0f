"""Sphinx configuration: ``make docs`` builds the site, without network."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx_gallery.sorting import ExplicitOrder

import rocmax

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "rocmax"
author = "The rocmax developers"
copyright = author
release = version = rocmax.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "internal_links",
    "mathml",
    "repository_pages",
]
exclude_patterns = ["_build", "_extensions"]
templates_path = ["_templates"]
nitpicky = True
highlight_language = "none"  # examples say that they are Python; other blocks are commands and tables
nitpick_ignore = [("py:class", "collections.abc.Callable")]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# API reference
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
# The losses for networks are documented where PyTorch is not installed.
autodoc_mock_imports = [name for name in ("torch",) if importlib.util.find_spec(name) is None]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries = False

# Gallery
EXAMPLES = (
    "plot_quick_start.py",
    "plot_corners.py",
    "plot_threshold.py",
    "plot_collapse.py",
    "plot_own_measure.py",
    "plot_trees.py",
    "plot_kernels.py",
    "plot_sparse_path.py",
    "plot_stream.py",
    "plot_convergence.py",
    "plot_minibatch_time.py",
    "plot_network.py",
    "plot_report.py",
)
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # What cannot run is shown without output.
    "filename_pattern": r"plot_(?!network)" if autodoc_mock_imports else "plot_",
    "within_subsection_order": ExplicitOrder([*EXAMPLES, "*"]),
    "backreferences_dir": "api/backreferences",
    "doc_module": ("rocmax",),
    "reference_url": {"rocmax": None},
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

# HTML
html_title = "rocmax"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["rocmax.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 1,
    "navigation_depth": 3,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}


def link_scikit_learn(app: Sphinx, env: Any, node: pending_xref, content: nodes.Element) -> nodes.reference | None:
    """Return a link to the page of a name of scikit-learn; an inventory of its names would have to be downloaded."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("sklearn."):
        return None
    url = f"https://scikit-learn.org/stable/modules/generated/{target}.html"
    return nodes.reference("", "", content, internal=False, refuri=url)


def end_examples(app: Sphinx, docname: str, source: list[str]) -> None:
    """Drop the empty line at the end of an example, with which doctest knows where the output ends."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def skip_inherited(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what estimators inherit from scikit-learn and other packages; their pages document it."""
    function = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", value))
    home = getattr(function, "__module__", None)
    return None if home is None or home.startswith("rocmax") else True


def setup(app: Sphinx) -> None:
    """Connect to the events of a build."""
    app.connect("source-read", end_examples)
    app.connect("missing-reference", link_scikit_learn)
    app.connect("autodoc-skip-member", skip_inherited)
