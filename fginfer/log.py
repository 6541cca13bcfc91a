"""The log of a run: silent unless the logger "fginfer" is turned on (the command line does; so may a notebook)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from fginfer.core.door import cpu_path
from fginfer.result import Progress, Result

logger = logging.getLogger("fginfer")
logger.addHandler(logging.NullHandler())

_COLUMNS = f"{'iter':>9}{'score':>16}{'bound':>16}{'gap':>10}{'infeas':>10}{'active/f':>10}{'time':>10}"


def thousands(n: int) -> str:
    """1234567 as 1.2 M, for people."""
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return str(n)


def seconds_text(t: float) -> str:
    return f"{t:.2f} s" if t < 1000 else f"{t:.0f} s"


def number(x: float | None, width: int = 16) -> str:
    """A score or bound; a dash where there is none yet."""
    if x is None:
        return f"{'-':>{width}}"
    return f"{x:>{width}.4f}" if abs(x) < 10 ** (width - 7) else f"{x:>{width}.6e}"


def row(p: Progress) -> str:
    """One line of the table of progress."""

    def small(x: float | None, form: str) -> str:
        return f"{'-':>10}" if x is None else f"{x:>10{form}}"

    return (
        f"{p.iterations:>9}{number(p.score)}{number(p.bound)}{small(p.gap, '.1e')}{small(p.infeasibility, '.1e')}"
        f"{small(p.active, '.1f')}{p.seconds:>9.2f}s"
    )


def start_line(version: str, method: str, threads: int, seed: int) -> str:
    many = "1 thread" if threads == 1 else f"{threads} threads"
    return f"fginfer {version} · {method} · {cpu_path()} · {many} · seed {seed} · scores are maximised"


def model_line(name: str, variables: int, factors: int, max_labels: int, entries: int) -> str:
    sizes = f"{variables} variables, {factors} factors, up to {max_labels} labels, {thousands(entries)} table entries"
    return f"{name}: {sizes}" if name else sizes


def end_line(result: Result) -> str:
    """Why a run ended, and where its time went."""
    s = result.statistics
    phases = [("setup", result.setup_seconds), *((k, s.get(f"seconds_{k}", 0.0)) for k in _PHASES)]
    shares = ", ".join(f"{name} {t:.2f}" for name, t in phases if t >= 0.005)
    where = f" ({shares})" if shares else ""
    count = "1 iteration" if result.iterations == 1 else f"{result.iterations} iterations"
    return f"{result.status.replace('_', ' ')} · {count} · {seconds_text(result.seconds)}{where}"


_PHASES = ("oracle", "update", "bound", "decode")


class RunLog:
    """Logs rows of progress: twice a second at first, then whenever a tenth of the time spent has passed."""

    def __init__(self) -> None:
        self._next = 0.0
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if progress.seconds < self._next:
            return
        self._row(progress)

    def before(self, callback: Callable[[Progress], object] | None) -> Callable[[Progress], object]:
        """A callback that logs and then asks the given one."""

        def both(progress: Progress) -> object:
            self(progress)
            return callback is not None and callback(progress)

        return both

    def _row(self, progress: Progress) -> None:
        if self._last is None:
            logger.info(_COLUMNS)
        self._next = progress.seconds + max(0.5, 0.1 * progress.seconds)
        self._last = progress
        logger.info(row(progress))

    def end(self, progress: Progress, result: Result) -> None:
        """The last row, unless it is there already, and the line that says why the run ended."""
        if self._last is None or self._last[1:] != progress[1:]:
            self._row(progress)
        logger.info(end_line(result))
