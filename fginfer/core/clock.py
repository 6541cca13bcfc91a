"""The clock of all traces and limits, in monotonic seconds. Called as clock.now(): a test sets it in one place."""

from __future__ import annotations

from collections.abc import Callable

from fginfer.core.door import lib

now: Callable[[], float] = lib.fgi_clock
