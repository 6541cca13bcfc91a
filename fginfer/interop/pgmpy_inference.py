"""fginfer as an inference class of pgmpy: `PgmpyInference(model)` in the place of `VariableElimination(model)`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from math import exp, inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.inference.base import Inference

from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.interop.pgmpy_models import read_model
from fginfer.marginals import marginals
from fginfer.solve import solve

MOST_RUNS = 100_000  # passes of elimination for a joint distribution, one for each label of all variables but one

Evidence = Mapping[Hashable, Any]


class PgmpyInference(Inference):  # type: ignore[misc, unused-ignore]
    """`query`, `map_query` and `max_marginal` of a model of pgmpy, answered by fginfer.

    All are exact, or a SolverError says why not. What these methods of pgmpy take beside variables and
    evidence (an order, a progress bar) is taken and not needed. `graph` is the model as a FactorGraph; its variables
    have the order of `names`.
    """

    def __init__(self, model: Any, **settings: Any) -> None:
        """`settings` are those of fginfer.solve, for `map_query` of all variables and `max_marginal`."""
        super().__init__(model)
        self.graph, self.names, self._states = read_model(model)
        self._number = {name: i for i, name in enumerate(self.names)}
        self._settings = settings

    def query(
        self,
        variables: Sequence[Hashable],
        evidence: Evidence | None = None,
        virtual_evidence: Sequence[Any] | None = None,
        joint: bool = True,
        **_: Any,
    ) -> Any:
        """The joint distribution of the variables given the evidence; with joint=False one for each of them."""
        asked = self._variables(variables, evidence)
        if not asked:
            raise SettingsError("query takes a list of one variable or more")
        graph, fixed = self._given(virtual_evidence), self._evidence(evidence)
        if joint:
            return self._factor(asked, self._joint(graph, fixed, asked))
        found = marginals(graph, evidence=fixed).variables
        return {self.names[v]: self._factor([v], found[v]) for v in asked}

    def map_query(
        self,
        variables: Sequence[Hashable] | None = None,
        evidence: Evidence | None = None,
        virtual_evidence: Sequence[Any] | None = None,
        **_: Any,
    ) -> dict[Hashable, Any]:
        """The most probable states of the variables, the others summed out; of all variables without a list."""
        graph, fixed = self._given(virtual_evidence), self._evidence(evidence)
        asked = self._variables(variables or (), evidence)
        if asked and len(asked) < len(self.names) - len(fixed):
            p = self._joint(graph, fixed, asked)
            best: Sequence[int] = [int(a) for a in np.unravel_index(int(np.argmax(p)), p.shape)]
        else:
            asked = asked or [v for v in range(len(self.names)) if v not in fixed]
            best = self._best(graph, fixed)[0][asked].tolist()
        return {self.names[v]: self._states[v][a] for v, a in zip(asked, best, strict=True)}

    def max_marginal(
        self, variables: Sequence[Hashable] | None = None, evidence: Evidence | None = None, **_: Any
    ) -> float:
        """The largest product of potentials, the probability of the most probable states in a Bayesian network."""
        self._variables(variables or (), evidence)
        return exp(self._best(self.graph, self._evidence(evidence))[1])

    # -- pieces ------------------------------------------------------------------------------------------------

    def _best(self, graph: FactorGraph, fixed: dict[int, int]) -> tuple[NDArray[np.int32], float]:
        result = solve(graph, evidence=fixed, **self._settings)
        if result.status == "infeasible":
            raise ModelError("no states are possible given the evidence")
        if result.labels is None or result.score is None:
            raise SolverError(f"no states were found: {result.status}")
        return result.labels, result.score

    def _given(self, virtual: Sequence[Any] | None) -> FactorGraph:
        """The graph with a factor for each distribution that stands for uncertain evidence."""
        if not virtual:
            return self.graph
        graph = self.graph.copy()
        for cpd in virtual:
            (variable,) = self._variables([cpd.variables[0]], None)
            with np.errstate(divide="ignore"):
                graph.add_factor([variable], np.log(np.asarray(cpd.values, np.float64).reshape(-1)))
        return graph

    def _variables(self, given: Sequence[Hashable], evidence: Evidence | None) -> list[int]:
        if isinstance(given, str):
            raise SettingsError(f"variables must be a list of names, not {given!r}")
        for name in given:
            if name not in self._number:
                raise ModelError(f"the model has no variable {name!r}")
            if name in (evidence or {}):
                raise ModelError(f"variable {name!r} is asked for and given as evidence")
        if len(set(given)) < len(given):
            raise SettingsError("a variable is asked for twice")
        return [self._number[name] for name in given]

    def _evidence(self, evidence: Evidence | None) -> dict[int, int]:
        out = {}
        for name, state in (evidence or {}).items():
            (variable,) = self._variables([name], None)
            if state not in self._states[variable]:
                raise ModelError(f"variable {name!r} has no state {state!r}; it has {self._states[variable]}")
            out[variable] = self._states[variable].index(state)
        return out

    def _joint(self, graph: FactorGraph, fixed: dict[int, int], asked: list[int]) -> NDArray[np.float64]:
        """P(asked | fixed): one pass for each joint label of all but the last."""
        cards = [len(self._states[v]) for v in asked]
        if prod(cards[:-1]) > MOST_RUNS:
            raise SolverError(
                f"a joint distribution of {prod(cards):.3g} states takes too long; the limit is {MOST_RUNS:,} for all "
                "variables but the last"
            )
        *first, last = asked
        log_z, rows = [], []
        for labels in product(*map(range, cards[:-1])):
            try:
                found = marginals(graph, evidence=fixed | dict(zip(first, labels, strict=True)))
                log_z.append(found.log_z)
                rows.append(found.variables[last])
            except ModelError:
                log_z.append(-inf)
                rows.append(np.zeros(cards[-1]))
        top = max(log_z)
        if top == -inf:
            raise ModelError("the evidence is impossible: no states are allowed with it")
        p: NDArray[np.float64] = np.exp(np.array(log_z) - top)[:, None] * np.array(rows)
        p /= p.sum()
        return p.reshape(cards)

    def _factor(self, asked: list[int], p: NDArray[np.float64]) -> Any:
        names = {self.names[v]: self._states[v] for v in asked}
        return DiscreteFactor([self.names[v] for v in asked], list(p.shape), p, state_names=names)
