"""Again: a model that was solved, kept up to date while a few of its numbers change.

Where sweeps have proven the last answer their messages prove most of the next one, too. A keeper of the core has them,
and works around what has changed; see csrc/again. What it cannot prove within a share of what a new start is likely to
take is left to the portfolio, which begins with its labels.
"""

from __future__ import annotations

import logging
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.keeper import Keeper, KeptFactor
from fginfer.core.model import Model
from fginfer.core.solver import EVENT, is_proof
from fginfer.engine import Settings
from fginfer.errors import FginferError
from fginfer.graph import FactorGraph
from fginfer.growing import Growing
from fginfer.journal import Added, Changes, Closed, Constant, Removed, Table, Unaries
from fginfer.portfolio.known import Given
from fginfer.portfolio.members.relaxation import Sweeps
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.run import Run
from fginfer.portfolio.stages import Policy
from fginfer.result import Progress, Result, Trace, known
from fginfer.table_values import KINDS, Dense, implicit_params

log = logging.getLogger("fginfer")


def sweeps_of(run: Run) -> Sweeps | None:
    """Those of the whole model that are still there."""
    if run.proven_by is not None or run.sweeps is not None:
        return run.proven_by or run.sweeps
    division = run.division
    if division is None or not division.is_whole or len(division.parts) != 1:
        return None
    return next((m for m in division.parts[0].members if isinstance(m, Sweeps)), None)


def begin_again(run: Policy, given: Given, settings: Settings, rules: Rules) -> Again | None:
    """After a run that sweeps have ended; None: they have not, or the model is not one to be kept up to date.

    Members and messages of the run go before the keeper has its own: both at once would be the peak of memory.
    """
    sweeps = sweeps_of(run) if run.status in ("optimal", "gap_reached") else None
    if sweeps is None or run.known.labels is None or settings.cutoff > -inf or not given.is_as_given:
        return None
    if run.known.bound_by not in (None, Sweeps.name):
        return None
    try:
        messages = sweeps.engine.messages()
        labels = np.ascontiguousarray(run.known.labels, np.int32)
        if messages is None:
            return None
        del sweeps
        run.forget()
        return Again(given.model, messages, labels, settings, rules)
    except (FginferError, MemoryError) as error:
        log.debug("no keeper: %s", error)
        return None


class Again:
    """A keeper at work under the settings of a solver. After an error it is good for nothing."""

    def __init__(
        self, model: Model, messages: NDArray[np.float64], labels: NDArray[np.int32], settings: Settings, rules: Rules
    ) -> None:
        self._keeper = Keeper(model, messages, labels)
        self._settings, self._rules = settings, rules
        self._numbers = Growing(np.arange(model.n_factors))  # how the keeper calls the factor at each place
        self._is_base = True  # no factor has come or gone
        self._start = 0.0
        full = model.pass_work + rules.again_factor * model.n_factors
        self._allowed = rules.again_sweeps * full
        self._end = 0.0  # work
        self.status = "running"
        self.is_stuck = False
        self.trace: list[tuple[float, float, float, int]] = []

    # -- changes -----------------------------------------------------------------------------------------------

    def take(self, graph: FactorGraph, changes: Changes, start: float) -> bool:
        """Takes what has changed; False: it cannot."""
        try:
            taken = self._take(graph, changes)
        except (FginferError, MemoryError) as error:
            log.debug("a keeper is left: %s", error)
            return False
        self._start, self.status, self.is_stuck, self.trace = start, "running", False, []
        self._end = self._keeper.info.work + self._allowed
        return taken

    def _take(self, graph: FactorGraph, changes: Changes) -> bool:
        some, tables, everywhere = list[NDArray[np.int32]](), list[int](), False
        for entry in changes.entries:
            if isinstance(entry, Unaries):
                everywhere |= entry.variables is None
                if entry.variables is not None:
                    some.append(entry.variables)
            elif isinstance(entry, Table) and self._is_base:
                tables.append(entry.table)
            elif not self._take_structure(entry):
                return False
        if tables:
            if not self._is_base or graph.built_model is None:
                return False
            self._keeper.take_tables(graph.built_model, np.unique(np.array(tables, np.int32)))
        if everywhere or some:
            return self._take_unary(graph, None if everywhere else np.unique(np.concatenate(some)))
        return True

    def _take_unary(self, graph: FactorGraph, which: NDArray[np.int32] | None) -> bool:
        model = graph.built_model
        if model is not None:
            if not model.has_leftovers:
                self._keeper.take_unary(model, which)
            return not model.has_leftovers
        scores = graph.kept_unary(which)
        if scores is None:
            return False
        self._keeper.set_unary(np.arange(graph.n_variables, dtype=np.int32) if which is None else which, scores)
        return True

    def _take_structure(self, entry: object) -> bool:
        if isinstance(entry, Constant):
            self._keeper.set_constant(entry.value)
            return True
        if isinstance(entry, Removed):
            self._is_base = False
            self._keeper.remove_factor(int(self._numbers.values[entry.place]))
            return True
        if isinstance(entry, Closed):
            self._numbers = Growing(np.delete(self._numbers.values, entry.places))
            return True
        if isinstance(entry, Added):
            self._is_base = False
            number = np.array([self._keeper.add_factor(_kept(entry))])
            if entry.place < len(self._numbers.values):
                self._numbers.values[entry.place] = number[0]
            else:
                self._numbers.append(number)
            return True
        return False

    # -- work --------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Until it is done, stuck, or the time is over."""
        deadline, gap = clock.now() + seconds if seconds >= 0 else inf, self._settings.gap
        asked = gap if gap > self._rules.proof_gap else 0.0
        while self.status == "running" and not self.is_stuck:
            said = self._keeper.run(asked, min(self._rules.again_slice, self._end - self._work))
            if said == "done":
                self.status = self._reached()
            elif said == "stuck" or self._work >= self._end:
                self.is_stuck = True
            elif clock.now() >= deadline:
                break
        if self.status != "running":
            self.trace = [(clock.now() - self._start, self.score, self.bound, 0)]

    def _reached(self) -> str:
        return "optimal" if is_proof(self.bound, self.score, -inf, self.unit) else "gap_reached"

    @property
    def _work(self) -> float:
        return float(self._keeper.info.work)

    # -- what is known -----------------------------------------------------------------------------------------

    @property
    def score(self) -> float:
        return float(self._keeper.info.score)

    @property
    def bound(self) -> float:
        return float(self._keeper.info.bound)

    @property
    def unit(self) -> float:
        return float(self._keeper.info.unit)

    def labels(self) -> NDArray[np.int32] | None:
        return self._keeper.labels() if self.score > -inf else None

    def model(self) -> Model:
        """The model as it is now."""
        return self._keeper.model()

    def progress(self) -> Progress:
        return Progress(clock.now() - self._start, 0, known(self.score), known(self.bound), unit=self.unit)

    def result(self) -> Result:
        info, s = self._keeper.info, self._settings
        told = {"again.work": float(info.work), "again.visits": float(info.visits), "again.rounds": float(info.rounds)}
        labels = self.labels()
        return Result(
            s.method,
            self.status,  # type: ignore[arg-type]
            labels,
            known(self.score),
            self.bound,
            0,
            clock.now() - self._start,
            0.0,
            s.threads,
            s.seed,
            Trace(np.array(self.trace, EVENT)),
            statistics=told,
            unit=self.unit,
            found_by=None if labels is None else "again",
            proved_by="again" if self.status != "running" else None,
        )


def _kept(entry: Added) -> KeptFactor:
    variables = np.array(entry.variables, np.int32)
    if isinstance(entry.table, Dense):
        values = np.ascontiguousarray(entry.table.values, np.float64)
        return KeptFactor(variables, values=values, weight=entry.weight, transposed=entry.transposed)
    params = implicit_params(entry.table)
    return KeptFactor(variables, KINDS[type(entry.table)], None, params, entry.weight)
