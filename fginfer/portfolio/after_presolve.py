"""Step 3 of a run (policy.py): what presolve leaves, in parts, and who goes on with them."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from dataclasses import replace
from math import inf

from fginfer.core.exact import Component, split
from fginfer.core.model import Model
from fginfer.core.presolve import Presolved
from fginfer.errors import ModelError
from fginfer.portfolio.before_presolve import REDUCED
from fginfer.portfolio.division import Division
from fginfer.portfolio.part import Part
from fginfer.portfolio.run import Run
from fginfer.portfolio.shares import NEAR_PROOF
from fginfer.portfolio.team import Team

log = logging.getLogger("fginfer")

KEPT = 0.95  # of the states of a small model: where presolve leaves as many, the proofs under way go on instead
KEPT_NEAR = 0.8  # the same where sweeps have left a small gap: they would have to begin again, too


def reduce_and_divide(run: Run) -> Iterator[None]:
    """From here on the run has teams at work on the parts of what presolve leaves, or of the model as it is."""
    presolved, least, whole = None, -inf, run.size.is_huge
    if run.options.presolve and not (run.size.is_huge or run.is_hopeless):
        presolved = yield from run.reduction.finish(max(run.known.score, run.known.cutoff))
        run.reduction.forget()
    if presolved is not None:
        log.info("%s", presolved.log_line())
        if presolved.statistics.penalties:
            least = run.reduction.allowed
        if presolved.infeasible:
            run.finish_infeasible(least)
            return
        if run.sweeps is not None and presolved.model.pass_work > REDUCED * run.model.pass_work:
            presolved, least = None, -inf  # what the first sweeps have done is worth more
        elif _is_kept(run, presolved):
            presolved, least = None, -inf  # what the first proofs have done is worth more
        elif _is_near(run, presolved):
            presolved, least, whole = None, -inf, True  # and what the sweeps before them have
    run.division = yield from _divide(run, presolved, least, whole)
    for part in run.division.parts:
        yield from run.workers.aside(part.prepare)
    if run.known.labels is not None:
        run.division.offer(run.known.labels, run.known.score)
    run.setup_seconds = run.known.seconds()
    if not run.size.is_huge:
        run.combine()


def _is_kept(run: Run, presolved: Presolved) -> bool:
    """Is it the model as it was, but for little, with proofs of it under way? Parts of it would need their own."""
    if run.division is None or presolved.statistics.penalties:
        return False
    return presolved.model.states >= KEPT * run.model.states and len(split(run.model)) == 1


def _is_near(run: Run, presolved: Presolved) -> bool:
    """Have sweeps left a small gap, and presolve much of the model? It would have to be closed again."""
    if run.messages is None or presolved.statistics.penalties:
        return False
    near = run.known.bound - run.known.score <= NEAR_PROOF * max(run.known.unit, abs(run.known.score))
    return near and presolved.model.states >= KEPT_NEAR * run.model.states


def _divide(run: Run, presolved: Presolved | None, least: float, whole: bool) -> Generator[None, None, Division]:
    """What is left, in connected parts, or as a whole."""
    model = run.model if presolved is None else presolved.model
    parts = None if whole else (yield from run.workers.aside(lambda: _parts_of(model)))
    if parts is None:
        presolved, least, model = None, -inf, run.model
    if parts is None or len(parts) == 1:
        division = Division(run.model, [], presolved, least=least)
        own = replace(run.own, cutoff=division.into(run.own.cutoff))
        team = Team(model, None, own, run.options.memory)
        division.parts = [team]
        if division.is_whole:
            team.messages = run.messages
            proofs = [] if run.division is None else run.division.parts[0].members
            team.begun = [*([] if run.sweeps is None else [run.sweeps]), *proofs]
    else:
        # Gaps of parts could add up to more than the gap allowed, and what a part may cost depends on the others.
        exact = replace(run.own, gap=0.0, cutoff=-inf)
        teams: list[Part] = [Team(c.model, c.variables, exact, run.options.memory) for c in parts]
        division = Division(run.model, teams, presolved, model.constant, least)
    run.sweeps = None  # elsewhere its messages are about another model
    return division


def _parts_of(model: Model) -> list[Component] | None:
    """Its connected parts; None where solvers take the model and not these: what scores are seen beside is in none."""
    try:
        parts = split(model)
        if not all(m.has_unit for m in ([part.model for part in parts] if len(parts) > 1 else [model])):
            return None
    except ModelError:
        return None
    return parts
