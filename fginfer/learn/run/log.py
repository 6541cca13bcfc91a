"""The table of a training run: a row where something was measured, and now and then one that says it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from fginfer.log import logger

if TYPE_CHECKING:
    from fginfer.learn.run.loop import LearnPoint

OFTEN = 0.5  # seconds between rows of solvers that know their objective after every pass
HEARTBEAT = 10.0  # seconds after which a row is due though it knows nothing but the time


class _Column(NamedTuple):
    name: str
    width: int
    text: Callable[[LearnPoint], str | None]  # None: nothing to show
    always: bool = False


def _number(x: float | None, form: str) -> str | None:
    return None if x is None else format(x, form)


_COLUMNS = (
    _Column("pass", 6, lambda p: str(p.passes), True),
    _Column("primal", 15, lambda p: None if p.primal is None else "~" * (p.sampled < 1) + f"{p.primal:.6g}"),
    _Column("dual", 15, lambda p: _number(p.dual, ".6g")),
    _Column("gap", 10, lambda p: _number(p.gap, ".1e")),
    _Column("infeas", 10, lambda p: _number(p.infeasibility or None, ".1e")),  # 0: of solvers that are always feasible
    _Column("oracle calls", 14, lambda p: str(p.oracle_calls) if p.oracle_calls else None),
    _Column("touched", 12, lambda p: str(p.entries_touched) if p.entries_touched else None),
    _Column("time", 10, lambda p: f"{p.seconds:.2f}s", True),
)


class TrainingLog:
    """Logs points of a run, with the columns that have had something in them."""

    def __init__(self) -> None:
        self._shown: list[_Column] = []
        self._last: LearnPoint | None = None

    def __call__(self, point: LearnPoint, measured: bool) -> None:
        if measured or point.seconds >= self._due(point):
            self._row(point)

    def _due(self, point: LearnPoint) -> float:
        if self._last is None:
            return OFTEN if point.primal is None else 0.0
        return self._last.seconds + (HEARTBEAT if point.primal is None else OFTEN)

    def _row(self, point: LearnPoint) -> None:
        self._last = point
        shown = [c for c in _COLUMNS if c.always or c in self._shown or c.text(point) is not None]
        if shown != self._shown:
            self._shown = shown
            logger.info("".join(f"{c.name:>{c.width}}" for c in shown))
        logger.info("".join(f"{c.text(point) or '-':>{c.width}}" for c in shown))
