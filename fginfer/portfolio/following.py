"""How auto follows changes: who takes them, and how that begins after a run of the portfolio."""

from __future__ import annotations

import logging
from contextlib import suppress
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import NativeEngine, Settings
from fginfer.errors import FginferError
from fginfer.journal import Changes, Unaries
from fginfer.portfolio.again import Again
from fginfer.portfolio.kept import Kept
from fginfer.portfolio.known import Given
from fginfer.portfolio.members.relaxation import Sweeps
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.run import Run
from fginfer.portfolio.stages import Policy
from fginfer.portfolio.swept import Swept

log = logging.getLogger("fginfer")


def is_wide(changes: Changes, n_variables: int, rules: Rules) -> bool:
    """Have so many variables new scores, and nothing else has changed, that whole sweeps take less?"""
    unaries = [entry for entry in changes.entries if isinstance(entry, Unaries)]
    if not unaries or len(unaries) < len(changes.entries):
        return False
    seen = sum(n_variables if e.variables is None else len(e.variables) for e in unaries)
    return seen >= rules.again_wide * n_variables


def sweeps_of(run: Run) -> Sweeps | None:
    """Those of the whole model that are still there."""
    if run.proven_by is not None or run.sweeps is not None:
        return run.proven_by or run.sweeps
    division = run.division
    if division is None or not division.is_whole or len(division.parts) != 1:
        return None
    return next((m for m in division.parts[0].members if isinstance(m, Sweeps)), None)


def after_run(run: Policy, given: Given, settings: Settings, rules: Rules, changes: Changes) -> Again | None:
    """After a run that sweeps have ended; None: they have not, or the model is not one to be followed.

    Members and messages of the run go before a keeper has its own: both at once would be the peak of memory.
    """
    sweeps = sweeps_of(run) if run.status in ("optimal", "gap_reached") else None
    if sweeps is None or run.known.labels is None or settings.cutoff > -inf or not given.is_as_given:
        return None
    if run.known.bound_by not in (None, Sweeps.name):
        return None
    engine, labels = sweeps.engine, np.ascontiguousarray(run.known.labels, np.int32)
    del sweeps
    with suppress(FginferError, MemoryError):
        wide = is_wide(changes, given.model.n_variables, rules)
        if wide and engine.settings.gap == _asked(settings, rules):
            engine.offer(labels)
            run.forget()
            return Swept(engine, settings, rules)
        messages = engine.messages()
        if messages is not None:
            del engine
            run.forget()
            make = _swept if wide else Kept
            return make(given.model, messages, labels, settings, rules)
    log.debug("changes of this model cannot be followed")
    return None


def after_changes(again: Again, settings: Settings, rules: Rules, changes: Changes) -> Again:
    """The kind that suits the changes. To become the other one takes as long as some changes, so that a keeper goes on
    where much changes once; memory or numbers that do not allow it leave all as it is."""
    wide, is_kept = is_wide(changes, again.n_variables, rules), isinstance(again, Kept)
    before, again.was_wide = again.was_wide, wide
    if wide != is_kept or (is_kept and not before):
        return again
    messages, labels = again.messages(), again.labels()
    if messages is None or labels is None:
        return again
    with suppress(FginferError, MemoryError):
        make = _swept if wide else Kept
        return make(again.model(), messages, labels, settings, rules)
    return again


def _asked(settings: Settings, rules: Rules) -> float:
    """The gap at which work ends: a small one is no reason not to try a proof."""
    return settings.gap if settings.gap > rules.proof_gap else 0.0


def _swept(
    model: Model, messages: NDArray[np.float64], labels: NDArray[np.int32], settings: Settings, rules: Rules
) -> Swept:
    own = Settings(Sweeps.name, _asked(settings, rules), settings.seed, settings.threads)
    engine = NativeEngine(model, own)
    engine.warm_start(messages)
    engine.offer(labels)
    return Swept(engine, settings, rules)
