"""view(): the page of a graph and a result."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from os import PathLike, fspath
from pathlib import Path

from numpy.typing import ArrayLike

from fginfer.errors import SettingsError, UnwritableError
from fginfer.graph import FactorGraph
from fginfer.replacing import replacing
from fginfer.result import Result
from fginfer.viewer.contents import Contents
from fginfer.viewer.page import page


@dataclass(frozen=True, repr=False)
class View:
    """The page: shown by notebooks, saved by `save`."""

    html: str

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the page, whole or not at all."""
        try:
            with replacing(Path(fspath(path))) as out:
                out.write(self.html.encode())
        except OSError as error:
            raise UnwritableError(f"cannot write the page: {error.strerror or error}", str(path)) from error

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="fginfer: model and result" '
            'style="width:100%;height:760px;border:1px solid #ccc"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<View: a page of {len(self.html.encode()) / 1e3:.0f} kB; save(path) writes it>"


def view(graph: FactorGraph, result: Result | ArrayLike | None = None, *, title: str = "Model") -> View:
    """One page with the graph, its tables, and what a result (or a labeling) says about them.

    Notebooks show it; `save("page.html")` writes it for any browser. Of large models it has a sample.

    graph   the FactorGraph
    result  a Result or a labeling; None: the model alone
    title   the heading of the page

    >>> from fginfer import FactorGraph, solve
    >>> graph = FactorGraph([2, 2])
    >>> tie = graph.add_factor([0, 1], [[1.0, 0.0], [0.0, 2.0]])
    >>> "<!doctype html>" in view(graph, solve(graph)).html
    True
    """
    if not isinstance(graph, FactorGraph):
        raise SettingsError(f"view takes a FactorGraph, not {type(graph).__name__}; fginfer.read reads a file")
    return View(page(Contents(graph, title).data(result)))
