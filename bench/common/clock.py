"""CPU seconds and memory of this process: other work on the machine hardly changes them."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def cpu(f: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of a call, and what it returned."""
    begin = time.process_time()
    out = f()
    return time.process_time() - begin, out


def quickest(f: Callable[[], T], times: int = 3) -> tuple[float, T]:
    """The least of several times: other work on the machine only adds to them."""
    return min((cpu(f) for _ in range(times)), key=lambda pair: pair[0])


def peak_mb() -> float:
    """The most memory that this process has held, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def again(name: str, *arguments: object) -> list[str]:
    """The command that runs a bench in a process of its own."""
    return [sys.executable, "-m", "bench", name, *map(str, arguments)]
