"""What people see in a notebook while a solve runs: a bar that moves in place, below it the log as plain text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fginfer.html import safe
from fginfer.log import number, seconds_text, shown
from fginfer.result import Progress

MOST_OFTEN = 0.2  # seconds between two pictures of the bar


def in_notebook() -> bool:
    """Whether a notebook shows what we print: its shell, unlike that of a terminal, has a kernel."""
    made = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return made is not None and hasattr(made(), "kernel")


class Bar:
    """A bar of the time limit, or one without an end where there is none, with score, bound and gap beside it."""

    def __init__(self, time_limit: float | None) -> None:
        self._display: Any = sys.modules["IPython"].display
        self._limit = time_limit
        self._handle: Any = None
        self._next = 0.0
        self._last: Progress | None = None

    def show(self, progress: Progress) -> None:
        self._last = progress
        if progress.seconds >= self._next:
            self._next = progress.seconds + MOST_OFTEN
            self._put(progress, done=False)

    def end(self) -> None:
        """The bar stands still, and full, with what was found."""
        if self._last is not None:
            self._put(self._last, done=True)

    def _put(self, progress: Progress, done: bool) -> None:
        picture = self._display.HTML(bar_html(progress, self._limit, done))
        if self._handle is None:
            self._handle = self._display.display(picture, display_id=True)
        else:
            self._handle.update(picture)


def bar_html(progress: Progress, time_limit: float | None, done: bool) -> str:
    """The bar as HTML that a screen reader can read, too."""
    if done:
        value = " value='1'"
    elif time_limit:
        value = f" value='{min(1.0, progress.seconds / time_limit):.3f}'"
    else:
        value = ""
    gap = "-" if progress.gap is None else f"{progress.gap:.1e}"
    facts = f"score {number(progress.score).strip()}, bound {number(progress.bound).strip()}, gap {gap}"
    text = safe(f"{facts}, {seconds_text(progress.seconds)}")
    return f"<div><progress max='1'{value} aria-label='solving'></progress> <code>{text}</code></div>"


@contextmanager
def watched(
    callback: Callable[[Progress], object] | None, time_limit: float | None
) -> Iterator[Callable[[Progress], object] | None]:
    """The log is shown; in a notebook as plain text below a bar. Gives the callback for the solve."""
    if not in_notebook():
        with shown():
            yield callback
        return
    bar = Bar(time_limit)

    def both(progress: Progress) -> object:
        bar.show(progress)
        return callback is not None and callback(progress)

    try:
        with shown(sys.stdout):
            yield both
    finally:
        bar.end()
