"""The clock of all traces and limits, in monotonic seconds. Called as clock.now(): a test sets it in one place."""

from __future__ import annotations

from collections.abc import Callable

from fginfer.core.door import lib

now: Callable[[], float] = lib.fgi_clock
Late = Callable[[], bool]  # whether time is over, for loops that look at it now and then


def never() -> bool:
    """Whether time is over for work without a limit."""
    return False
