"""Kept: a keeper of the core at work, see csrc/again. A change costs what it spreads to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.keeper import Keeper, KeptFactor
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.graph import FactorGraph
from fginfer.growing import Growing
from fginfer.journal import Added, Changes, Closed, Constant, Removed, Table, Unaries
from fginfer.portfolio.again import Again
from fginfer.portfolio.rules import Rules
from fginfer.table_values import KINDS, Dense, implicit_params


class Kept(Again):
    """Begins with messages and labels of a model. Factors may come and go."""

    def __init__(
        self, model: Model, messages: NDArray[np.float64], labels: NDArray[np.int32], settings: Settings, rules: Rules
    ) -> None:
        super().__init__(model.n_variables, settings, rules)
        self._keeper = Keeper(model, messages, labels)
        self._numbers = Growing(np.arange(model.n_factors))  # how the keeper calls the factor at each place
        self._is_base = True  # no factor has come or gone
        full = model.pass_work + rules.again_factor * model.n_factors
        self._allowed = rules.again_sweeps * full
        self._end = 0.0  # work
        self._is_summed = False  # are score and bound those of the model as it is now?
        self._before = self._counts()

    # -- changes -----------------------------------------------------------------------------------------------

    def _take(self, graph: FactorGraph, changes: Changes) -> bool:
        self._before, self._end, self._is_summed = self._counts(), self._work + self._allowed, False
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

    def _work_on(self, deadline: float) -> bool:
        said = self._run(min(self._rules.again_slice, self._end - self._work))
        if said == "done":
            self.status = self._proof()
        elif said == "stuck" or self._work >= self._end:
            self.is_stuck = True
        return clock.now() < deadline

    def _run(self, work: float) -> str:
        gap = self._settings.gap
        self._is_summed = True
        return self._keeper.run(gap if gap > self._rules.proof_gap else 0.0, work)

    @property
    def _work(self) -> float:
        return float(self._keeper.info.work)

    # -- what is known -----------------------------------------------------------------------------------------

    def _sums(self) -> Any:
        """Score and bound of the model as it is now: nobody need have worked on it."""
        if not self._is_summed:
            self._run(0.0)
        return self._keeper.info

    @property
    def score(self) -> float:
        return float(self._sums().score)

    @property
    def bound(self) -> float:
        return float(self._sums().bound)

    @property
    def unit(self) -> float:
        return float(self._sums().unit)

    def labels(self) -> NDArray[np.int32] | None:
        return self._keeper.labels() if self.score > -np.inf else None

    def messages(self) -> NDArray[np.float64] | None:
        return self._keeper.messages() if self._is_base else None

    def model(self) -> Model:
        return self._keeper.model()

    def _counts(self) -> dict[str, float]:
        info = self._keeper.info
        return {"again.work": self._work, "again.visits": float(info.visits), "again.rounds": float(info.rounds)}

    def statistics(self) -> dict[str, float]:
        return {name: count - self._before[name] for name, count in self._counts().items()}


def _kept(entry: Added) -> KeptFactor:
    variables = np.array(entry.variables, np.int32)
    if isinstance(entry.table, Dense):
        values = np.ascontiguousarray(entry.table.values, np.float64)
        return KeptFactor(variables, values=values, weight=entry.weight, transposed=entry.transposed)
    params = implicit_params(entry.table)
    return KeptFactor(variables, KINDS[type(entry.table)], None, params, entry.weight)
