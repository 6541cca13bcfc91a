"""Sphinx configuration: `sphinx-build -W docs build/docs` builds the site, offline."""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path
from typing import Any

os.environ["MPLBACKEND"] = "Agg"

from docutils import nodes

import fginfer
from fginfer.cli import make_parser

sys.path.insert(0, str(Path(__file__).parent))
import method_tables
import paper_pictures
import pictures
from parameters import fields, parameters, word


def list_benchmarks() -> None:
    """For the page of benchmarks: what each bench is for, and how it is called."""
    here = Path(__file__).parent
    rows = []
    for path in sorted((here.parent / "bench").rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        lines = [line.strip().removeprefix("usage: ") for line in text.splitlines()]
        usage = [line for line in lines if line.startswith(f"python -m bench {path.stem}")]
        if usage:
            rows.append(f"{lines[0]}\n\n```\n" + "\n".join(usage) + "\n```\n")
    (here / "how" / "benchmarks_list.md").write_text("\n".join(rows))


def list_commands() -> None:
    """For the reference: what `fginfer COMMAND --help` prints, a section a command."""
    os.environ["COLUMNS"] = "88"  # as wide as the box on the page
    commands = next(a for a in make_parser()._actions if isinstance(a.choices, dict)).choices
    sections = [f"## fginfer {name}\n\n```\n{parser.format_help()}```\n" for name, parser in commands.items()]
    (Path(__file__).parent / "reference" / "commands_list.md").write_text("\n".join(sections))


list_benchmarks()
list_commands()
method_tables.write(Path(__file__).parent / "start")
pictures.write()
paper_pictures.write()

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
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax is a part of the pages, which need no network
]
templates_path = ["_templates"]
highlight_language = "none"  # boxes that do not say theirs are commands, mostly
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = [
    "gallery/README.rst",
    "sg_execution_times.rst",
    "how/benchmarks_list.md",
    "reference/commands_list.md",
    "start/methods_list.md",
    "start/options_list.md",
    "start/statistics_list.md",
]
myst_enable_extensions = ["deflist", "dollarmath", "substitution"]
myst_substitutions = {"version": fginfer.__version__}
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "description"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}  # not the dozen types that it stands for
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # a method by its name: there is no room for the class
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
html_css_files = ["code.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
}
html_sidebars = {"index": [], "papers": []}  # pages without others beside them in their section


ARGUMENT = re.compile(r"([a-z_][\w, ]*?) {2,}(\S.*)")


def list_arguments(lines: list[str]) -> list[str]:
    """Arguments written in two columns become parameters with their types; what is indented under one belongs to it."""
    out: list[str] = []
    inside = False
    for line in lines:
        found = ARGUMENT.fullmatch(line)
        if found is not None and (inside or not out or not out[-1].strip()):
            *others, last = found[1].split(", ")
            out += [f":param {name}: see {last}" for name in others]
            out.append(f":param {last}: {found[2]}")
            inside = True
        elif inside and line.startswith("  "):
            out.append("    " + line.strip())
        else:
            inside = False
            out.append(line)
    return out


def add_common_words(owner: str, lines: list[str], called: list[str]) -> None:
    """Parameters that have no field, but mean the same everywhere."""
    fielded = {line.removeprefix(":param ").split(":")[0] for line in lines if line.startswith(":param ")}
    more = [(p, word(owner, p)) for p in called if p not in fielded]
    found = [f":param {p}: {meaning}" for p, meaning in more if meaning is not None]
    if found:
        last = max((i for i, line in enumerate(lines) if line.startswith(":param")), default=None)
        if last is None:
            lines += ["", *found, ""]
        else:
            while last + 1 < len(lines) and lines[last + 1].startswith("    "):
                last += 1
            lines[last + 1 : last + 1] = found


def escape_marks(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings write |x| and coef_, in which reStructuredText would look for links; those of others have :ref:."""
    lines[:] = list_arguments(lines)
    if what in ("class", "function", "method") and str(getattr(obj, "__module__", "")).startswith("fginfer"):
        called = parameters(obj)
        lines[:] = fields(lines, called)
        add_common_words(name.split(".")[-2 if what == "method" else -1], lines, called)
    for k, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        line = re.sub(r":(?:ref|class|func|term):`([^<`]*)(?:<[^`]*>)?`", r"\1", line)
        pieces = re.split(r"(``.*?``)", line)  # code stays as it is
        pieces[::2] = [
            re.sub(r"(\w)_(?=\W|$)", r"\1\\_", text).replace("|", r"\|").replace("(*", r"(\*") for text in pieces[::2]
        ]
        lines[k] = "".join(pieces)


def plain_aliases(app: object, domain: str, what: str, content: nodes.Element) -> None:
    """Unions with one of autodoc_type_aliases are printed as TypeAliasForwardRef('ArrayLike') by newer Sphinx."""
    for text in list(content.findall(nodes.Text)):
        if "TypeAliasForwardRef" in text:
            text.parent.replace(text, nodes.Text(re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)))


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_marks, priority=400)
    app.connect("object-description-transform", plain_aliases, priority=900)  # after autodoc has put types there
