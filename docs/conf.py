"""Sphinx configuration: `sphinx-build -W docs build/docs` builds the site, offline."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

os.environ["MPLBACKEND"] = "Agg"

import fginfer


def list_benchmarks() -> None:
    """The page of benchmarks, from the opening words of each script."""
    here = Path(__file__).parent
    rows = []
    for path in sorted((here.parent / "bench").glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        usage = [line.strip() for line in text.splitlines() if line.strip().startswith("python bench/")]
        if usage:
            rows.append(f"## `bench/{path.name}`\n\n{text.splitlines()[0]}\n\n```\n" + "\n".join(usage) + "\n```\n")
    (here / "how" / "benchmarks_list.md").write_text("\n".join(rows))


list_benchmarks()

project = "fginfer"
author = "The fginfer authors"
copyright = "The fginfer authors"
release = version = fginfer.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["gallery/README.rst", "sg_execution_times.rst", "how/benchmarks_list.md"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "description"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = "fginfer"
html_static_path = ["_static"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
}
html_sidebars = {"index": []}


def escape_bars(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Absolute values are written |x| in docstrings; reStructuredText would look for a substitution."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else line.replace("|", r"\|") for line in lines]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
