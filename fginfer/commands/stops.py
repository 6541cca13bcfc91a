"""Signals that ask a command to stop, and what they may not take away: an answer that was found."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from fginfer.errors import Interrupted
from fginfer.startup import is_command

Answer = TypeVar("Answer")

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Stops:
    """The first signal is a KeyboardInterrupt. From then on, and once `answering` is set, there is an answer to be
    written: the first two signals do not end that, for many press Ctrl-C twice; the third ends everything."""

    def __init__(self) -> None:
        self.answering = False
        self._signals = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self.answering and self._signals <= 2:
            return
        self.answering = True
        raise KeyboardInterrupt


@contextmanager
def stop_signals() -> Iterator[Stops]:
    """What a batch system or a closing terminal sends is a Ctrl-C, unless it is to be ignored (nohup)."""
    stops, old = Stops(), {}
    if threading.current_thread() is threading.main_thread():  # others get no signals
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        handlers = {number: signal.getsignal(number) for number in numbers}
        old = {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in old:
            signal.signal(number, stops)
        yield stops
        if is_command():  # the answer is out, and all that is left is to end: a late signal does not change how
            old = dict.fromkeys(old, signal.SIG_IGN)
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def kept(work: Callable[[], Answer]) -> tuple[Answer, bool]:
    """The answer, and whether Ctrl-C ended the work before it was whole; where it had none yet, KeyboardInterrupt."""
    with stop_signals() as stops:
        try:
            found, whole = work(), True
        except Interrupted as stop:
            part: Any = stop.found
            found, whole = part, False
        stops.answering = True
    return found, not whole
