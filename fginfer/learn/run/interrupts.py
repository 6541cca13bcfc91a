"""What ends a learning run from outside: Ctrl-C and deadlines, seen where they do no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from fginfer.core import clock


class OutOfTime(Exception):
    """Raised inside a solver when the time limit has come; it keeps its place."""


class Interrupts:
    """Ctrl-C waits for the end of a slice, so that it never leaves a solver half-way; inside a user's oracle (`open`)
    it does not wait, nor does a second one, which may (`torn`). Only where Python's own handler is in charge."""

    active: Interrupts | None = None

    def __init__(self) -> None:
        self.open = self.seen = self.torn = False
        self._old: dict[int, Any] = {}

    @property
    def waits(self) -> bool:
        """Whether Ctrl-C comes through here."""
        return signal.SIGINT in self._old

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread() and Interrupts.active is None:
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is signal.default_int_handler:
                    self._old[number] = signal.signal(number, self._note)
            Interrupts.active = self
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.torn = self.seen
        if self.open or self.seen:
            raise KeyboardInterrupt
        self.seen = True

    def check(self) -> None:
        if self.seen:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        for number, old in self._old.items():
            signal.signal(number, old)
        if Interrupts.active is self:
            Interrupts.active = None


@contextmanager
def interruptible() -> Iterator[None]:
    """Around calls of a user's oracle: a place where Ctrl-C does no harm."""
    active = Interrupts.active
    if active is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    active.check()
    active.open = True
    try:
        yield
    finally:
        active.open = False


def look(deadline: float) -> None:
    """Between two chunks of measuring: raises when the deadline, or Ctrl-C, has come."""
    if Interrupts.active is not None and threading.current_thread() is threading.main_thread():
        Interrupts.active.check()
    if clock.now() >= deadline:
        raise OutOfTime
