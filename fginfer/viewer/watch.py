"""Watch: the page of a solve under way, written anew every second."""

from __future__ import annotations

from math import inf
from os import PathLike
from pathlib import Path

from fginfer.core import clock
from fginfer.errors import UnwritableError
from fginfer.graph import FactorGraph
from fginfer.log import logger
from fginfer.result import Result
from fginfer.viewer.contents import Contents
from fginfer.viewer.page import page
from fginfer.viewer.view import View

EVERY = 1.0  # seconds between two pages
MOST = 0.1  # part of the time that may go into pages: where one takes long they come less often


class Watch:
    """Writes the page of a graph to a file; until `end` it loads itself again."""

    def __init__(self, graph: FactorGraph, path: str | PathLike[str], title: str) -> None:
        self._path = Path(path)
        began = clock.now()
        self._contents = Contents(graph, title)
        self._next = clock.now() + (clock.now() - began) / MOST - EVERY

    @property
    def due(self) -> bool:
        return clock.now() >= self._next

    def show(self, result: Result) -> None:
        """The page as of now."""
        began = clock.now()
        try:
            View(page(self._contents.data(result), reload=True)).save(self._path)
        except UnwritableError as error:  # the solve goes on
            logger.warning(f"{error}; the page is not written any more")
            self._next = inf
            return
        now = clock.now()
        self._next = now + max(EVERY, (now - began) / MOST)

    def end(self, result: Result) -> None:
        """The last page, which stays."""
        try:
            View(page(self._contents.data(result))).save(self._path)
        except UnwritableError as error:
            logger.warning(f"{error}")
