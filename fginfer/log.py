"""The log of a run: silent unless the logger "fginfer" is turned on (the command line does; so may a notebook)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from fginfer.core.door import cpu_path
from fginfer.printable import printable
from fginfer.result import Progress, Result

logger = logging.getLogger("fginfer")
logger.addHandler(logging.NullHandler())

HEARTBEAT = 10.0  # seconds after which a row is due though nothing has changed


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


@contextmanager
def shown(stream: IO[str] | None = None) -> Iterator[None]:
    """The log goes to stderr (or the stream given) for as long as this lasts, whatever logging is set to."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class LogColumns(NamedTuple):
    """Which columns a table of progress has besides those that every method fills."""

    infeasibility: bool = False
    active: bool = False
    found_by: bool = False

    def with_those_of(self, p: Progress) -> LogColumns:
        filled = p.infeasibility, p.active, p.found_by
        return LogColumns(*(shown or x is not None for shown, x in zip(self, filled, strict=True)))


def heading(columns: LogColumns, counts: str = "iter") -> str:
    """The names of the columns; the first one counts iterations, or what `counts` says."""
    more = (f"{'infeas':>10}" if columns.infeasibility else "") + (f"{'active/f':>10}" if columns.active else "")
    return (
        f"{counts:>9}{'score':>16}{'bound':>16}{'gap':>10}{more}{'time':>10}{'  found by' if columns.found_by else ''}"
    )


def row(p: Progress, columns: LogColumns | None = None) -> str:
    """One line of the table of progress, with the columns given or those that it can fill."""
    shown = LogColumns().with_those_of(p) if columns is None else columns

    def small(x: float | None, form: str) -> str:
        return f"{'-':>10}" if x is None else f"{x:>10{form}}"

    more = (small(p.infeasibility, ".1e") if shown.infeasibility else "") + (
        small(p.active, ".1f") if shown.active else ""
    )
    finder = f"  {p.found_by}" if p.found_by else ""
    return f"{p.iterations:>9}{number(p.score)}{number(p.bound)}{small(p.gap, '.1e')}{more}{p.seconds:>9.2f}s{finder}"


def start_line(version: str, method: str, threads: int, seed: int) -> str:
    many = "1 thread" if threads == 1 else f"{threads} threads"
    return f"fginfer {version} · {method} · {cpu_path()} · {many} · seed {seed} · scores are maximised"


def model_line(name: str, variables: int, factors: int, max_labels: int, entries: int) -> str:
    sizes = f"{variables} variables, {factors} factors, up to {max_labels} labels, {thousands(entries)} table entries"
    return f"{printable(name)}: {sizes}" if name else sizes


def end_line(result: Result) -> str:
    """Why a run ended, and where its time went."""
    s = result.statistics
    if "rounds" in s:
        return _end_of_team(result)
    phases = [("setup", result.setup_seconds), *((k, s.get(f"seconds_{k}", 0.0)) for k in _PHASES)]
    shares = ", ".join(f"{name} {t:.2f}" for name, t in phases if t >= 0.005)
    where = f" ({shares})" if shares else ""
    count = "1 iteration" if result.iterations == 1 else f"{result.iterations} iterations"
    if sweeps := int(s.get("sweeps", 0)):
        count = f"{sweeps} sweep{'s' * (sweeps > 1)}, {count}"
    ran = f" · {result.access} oracles" if result.access else ""
    found = f" · labeling by {result.found_by}" if result.found_by else ""
    apart = "".join(f" · {thousands(int(s[key]))} {words}" for key, words in _APART if s.get(key))
    return f"{result.status.replace('_', ' ')} · {count}{ran}{found}{apart} · {seconds_text(result.seconds)}{where}"


def _end_of_team(result: Result) -> str:
    """The same of a method whose members share the work: who ended it, who worked, what presolve left."""
    s = result.statistics
    facts = [result.status.replace("_", " ")]
    facts += [f"proved by {result.proved_by}"] if result.proved_by else []
    facts += [f"labeling by {result.found_by}"] if result.found_by else []
    work = {name.removesuffix(".work"): n for name, n in s.items() if name.endswith(".work") and n > 0}
    work.pop("presolve", None)  # it counts other steps
    parts = {name: round(100 * n / sum(work.values())) for name, n in sorted(work.items(), key=lambda of: -of[1])}
    shares = ", ".join(f"{name} {percent} %" for name, percent in parts.items() if percent > 0)
    facts += [f"{shares} of the work"] if shares else []
    if s.get("presolve.used"):
        facts.append(f"presolve left {int(s['presolve.variables_left'])} of {int(s['presolve.variables'])} variables")
    if rounds := int(s["rounds"]):
        facts.append(f"{rounds} round{'s' * (rounds > 1)}")
    return " · ".join([*facts, seconds_text(result.seconds)])


_PHASES = ("oracle", "update", "bound", "decode")
# Work that is no oracle's: counted, and shown apart.
_APART = (
    ("closed_forms", "closed-form updates"),
    ("local_operations", "operations of local search"),
    ("search_operations", "of search"),
)


class RunLog:
    """Logs rows of progress: at most two a second, when score or bound have changed, and now and then all the same.
    Members of a portfolio have iterations of their own, so its rows count rounds."""

    def __init__(self, method: str = "") -> None:
        self._counts = "round" if method == "auto" else "iter"
        self._next = self._heartbeat = 0.0
        self._last: Progress | None = None
        self._columns = LogColumns()

    def __call__(self, progress: Progress) -> None:
        last = self._last
        changed = last is None or (progress.score, progress.bound) != (last.score, last.bound)
        if progress.seconds >= (self._next if changed else self._heartbeat):
            self._row(progress)

    def before(self, callback: Callable[[Progress], object] | None) -> Callable[[Progress], object]:
        """A callback that logs and then asks the given one."""

        def both(progress: Progress) -> object:
            self(progress)
            return callback is not None and callback(progress)

        return both

    def _row(self, progress: Progress) -> None:
        columns = self._columns.with_those_of(progress)
        if self._last is None or columns != self._columns:
            self._columns = columns
            logger.info(heading(columns, self._counts))
        if self._last is not None and self._last.score == progress.score:
            progress = progress._replace(found_by=None)  # the row of the improvement has named it
        self._next = progress.seconds + 0.5
        self._heartbeat = progress.seconds + max(HEARTBEAT, 0.1 * progress.seconds)
        self._last = progress
        logger.info(row(progress, columns))

    def end(self, progress: Progress, result: Result) -> None:
        """The last row, unless it is there already, and the line that says why the run ended."""
        if self._last is None or self._last[1:-1] != progress[1:-1]:  # a name is in the row of its improvement alone
            self._row(progress)
        logger.info(end_line(result))
        if result.status == "infeasible":
            logger.info("fginfer explain FILE, or fginfer.explain(graph), says what contradicts what")
