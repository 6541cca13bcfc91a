"""What the start of a run says about solvers that cannot close a gap, and which one can."""

from __future__ import annotations

from typing import Any
from warnings import warn

from fginfer.core.learn import Kind
from fginfer.learn.oracle import measured_by
from fginfer.log import logger


def tell(solver: Any) -> None:
    """A warning where the run cannot reach what was asked for, a line of the log where that is in its nature."""
    text = cannot_converge(solver)
    if text:
        logger.warning(text)
        warn(text, UserWarning, stacklevel=5)
    elif solver.lacks:
        logger.info(f"{solver.name} has {solver.lacks}: it ends with its passes or its time; bcfw has a gap to close")


def cannot_converge(solver: Any) -> str:
    """Empty, or why no gap will close and which solver closes it."""
    name, learner = solver.name, solver.learner
    if solver.approximates:
        return (
            f"{name} without multipliers minimises an approximation, whose gap does not close: it is for comparisons;"
            " gdmm, or bcfw on chains and trees, converges"
        )
    if not solver.needs_best:  # factorwise oracles, online updates; random fields sum
        return ""
    if measured_by(learner, solver.oracle)[0]:
        return ""
    if learner.data.kind == Kind.SETS and solver.oracle is None:
        return (
            f"{name} finds label sets with interactions by local search, so that it can report no objective and no gap;"
            " gdmm does (solver='gdmm' or 'auto')"
        )
    return f"the oracle does not promise best answers, so that {name} can report no objective and no gap"
