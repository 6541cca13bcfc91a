"""explain(): why no labeling is allowed, and what to give up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from os import PathLike
from typing import Any

import numpy as np

from fginfer.condition import observed
from fginfer.core import clock
from fginfer.core.clauses import Clauses
from fginfer.errors import Interrupted, SettingsError, SolverError
from fginfer.formats import read_evidence
from fginfer.graph import FactorGraph
from fginfer.handles import Handle
from fginfer.hard_parts import Group, HardParts, hard_parts
from fginfer.names import variable_text
from fginfer.relax import Relaxed, cheapest
from fginfer.solve import _model, solve
from fginfer.solver import check_seconds

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """A set of things that contradict each other, each of which is needed for that, and what to give up instead.

    `infeasible` is None where the time was not enough to tell. `minimal`: without any one of them the rest can be
    satisfied, which was proven for each. `relaxation` lists what to drop so that a labeling is allowed; it is the
    cheapest such list where `cheapest`, and `labels` is what the graph then allows.

    >>> from fginfer import FactorGraph, explain
    >>> print(explain(FactorGraph([2])))
    a labeling is allowed
    """

    infeasible: bool | None
    factors: tuple[Handle | int, ...] = ()  # factors and constraints: by handle, those of a file by number
    labels: tuple[int, ...] = ()  # variables whose forbidden labels take part
    evidence: tuple[int, ...] = ()  # variables whose observations take part
    cutoff: float | None = None  # hard constraints allow labelings, but none scores above this
    minimal: bool = False
    relaxation: tuple[str, ...] = ()
    cost: float = inf
    cheapest: bool = False
    text: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.infeasible is None:
            return "the time was not enough to tell whether a labeling is allowed"
        if not self.infeasible:
            return "a labeling is allowed"
        if self.cutoff is not None:
            return f"labelings are allowed, but none scores above the cutoff {self.cutoff:.12g}"
        few = "each is needed for it" if self.minimal else "perhaps not all are needed"
        lines = [f"these contradict each other ({few}):", *(f"  {line}" for line in self.text)]
        if self.relaxation:
            how = "the cheapest way out" if self.cheapest else "a way out"
            lines += [f"{how} is to drop (cost {self.cost:.6g}):", *(f"  {line}" for line in self.relaxation)]
        return "\n".join(lines)


def explain(
    graph: FactorGraph | str | PathLike[str],
    *,
    evidence: Mapping[Any, Any] | str | PathLike[str] | None = None,
    weights: Mapping[Any, float] | None = None,
    time_limit: float | None = None,
    callback: Callable[[str], object] | None = None,
) -> Explanation:
    """Why a graph has no labeling: a minimal set of factors that contradict each other, and what to give up.

    graph       a FactorGraph, or the name of a model file
    evidence    variables that are known, as solve takes it; they may be to blame
    weights     what it costs to drop a factor, by handle, name or number (1 unless said)
    time_limit  seconds; what was found until then is told, `minimal` says whether it is all. After Ctrl-C it is the
                `found` of the KeyboardInterrupt. Without one, the way out is looked for about as long as it took to
                find what contradicts; `cheapest` says whether nothing is cheaper
    callback    called with a line of text at each step

    Every forbidden state becomes a clause that counts while its factor does. A solver that learns from conflicts
    refutes them together and says which it used; then each of these is left out in turn: either the rest still has no
    solution, and is taken, or it has one, and the factor stays. At the end every factor was proven to be needed.

    >>> from fginfer import FactorGraph, explain
    >>> graph = FactorGraph([2, 2, 2])
    >>> differ = [[float("-inf"), 0.0], [0.0, float("-inf")]]
    >>> ring = [graph.add_factor([i, (i + 1) % 3], differ, name=f"edge {i}") for i in range(3)]
    >>> [handle.name for handle in explain(graph).factors]
    ['edge 0', 'edge 1', 'edge 2']
    """
    check_limit = check_seconds("time_limit", time_limit)
    if callback is not None and not callable(callback):
        raise SettingsError(f"callback must be a function of a line of text, not {callback!r}")
    whole, _ = _model(graph, None)
    if evidence is None:
        seen: dict[int, int] = {}
    else:
        given = read_evidence(evidence, whole) if isinstance(evidence, str | PathLike) else evidence
        seen = observed(given, whole.shared_names())
        whole.condition(seen)  # says what is wrong with it
    known = _Names(whole)
    costs = known.costs(weights)
    began = clock.now()
    search = _Search(hard_parts(whole, seen), check_limit, callback or (lambda line: None))
    try:
        core = search.core()
        if core is None:
            return _of_the_cutoff(whole, seen, search)
        prices = [costs.get(g, 1.0) for g in search.parts.groups]
        relaxed = cheapest(search.parts, prices, search.left, clock.now() - began)
    except KeyboardInterrupt:
        if not search.found:
            raise
        raise Interrupted(_explanation(known, search, None)) from None
    return _explanation(known, search, relaxed)


def _explanation(known: _Names, search: _Search, relaxed: Relaxed | None) -> Explanation:
    blamed = [search.parts.groups[g] for g in search.found]
    dropped = () if relaxed is None else tuple(known.text(search.parts.groups[g]) for g in relaxed.dropped)
    return Explanation(
        True,
        tuple(known.handle(g) for g in blamed if g.kind in ("factor", "rule", "constant")),
        tuple(g.at for g in blamed if g.kind == "labels"),
        tuple(g.at for g in blamed if g.kind == "evidence"),
        None,
        search.minimal,
        dropped,
        inf if relaxed is None else relaxed.cost,
        relaxed is not None and relaxed.proven,
        tuple(known.text(g) for g in blamed),
    )


def _of_the_cutoff(graph: FactorGraph, seen: dict[int, int], search: _Search) -> Explanation:
    """Hard constraints allow a labeling; is one of them above the cutoff?"""
    if search.undecided:
        return Explanation(None)
    if graph.cutoff == -inf:
        return Explanation(False)
    result = solve(graph, evidence=seen or None, time_limit=search.left(), trace=False, dual=False)
    if result.status == "infeasible":
        return Explanation(True, cutoff=graph.cutoff)
    return Explanation(False if result.labels is not None else None)


class _Search:
    """The clauses at work, within a time limit."""

    def __init__(self, parts: HardParts, limit: float | None, say: Callable[[str], object]) -> None:
        self.parts, self._say = parts, say
        self._end = None if limit is None else clock.now() + limit
        self._clauses = Clauses(*parts.clauses())
        self.undecided, self.minimal = False, False
        self.found: list[int] = []  # groups that contradict each other, fewer and fewer

    def left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - clock.now())

    def _ask(self, groups: list[int]) -> bool | None:
        """Whether these can hold together; None: no time."""
        if self.left() == 0.0:
            return None
        answer = self._clauses.ask([2 * g for g in groups])
        while answer is None and self.left() != 0.0:
            answer = self._clauses.go_on()
        return answer

    def core(self) -> list[int] | None:
        """The groups to blame, ascending; None: they can all hold, or (`undecided`) there was no time."""
        groups = list(range(len(self.parts.groups)))
        self._say(f"{len(groups)} factors, constraints and labels forbid something")
        answer = self._ask(groups)
        if answer is None:
            self.undecided = True
            return None
        if answer:
            return None
        core, needed = sorted(x // 2 for x in self._clauses.core()), list[int]()
        self.found = core
        self._say(f"{len(core)} of them contradict each other")
        while True:
            waiting = [g for g in core if g not in needed]
            if not waiting:
                self.minimal = True
                return core
            out = waiting[-1]
            answer = self._ask([*needed, *(g for g in waiting if g != out)])
            if answer is None:
                return core
            if answer:
                needed.append(out)
            else:
                core = sorted({x // 2 for x in self._clauses.core()})
                needed = [g for g in needed if g in core]
                self.found = core
            self._say(f"{len(core)} contradict each other, {len(needed)} of them proven to be needed")


class _Names:
    """How the user calls what is to blame."""

    def __init__(self, graph: FactorGraph) -> None:
        self._graph = graph
        with graph.lock:
            self._log = graph.factor_log
            self._handles = self._log.handles()

    def handle(self, group: Group) -> Handle | int:
        return self._handles.get((group.kind, group.at), group.at)

    def text(self, group: Group) -> str:
        names = self._graph.shared_names()
        if group.kind == "labels":
            return f"the forbidden labels of {variable_text(names, group.at)}"
        if group.kind == "evidence":
            return f"the evidence for {variable_text(names, group.at)}"
        if group.kind == "constant":
            return "a constant that forbids everything"
        handle = self.handle(group)
        scope = (self._graph.rules[group.at] if group.kind == "rule" else self._graph.factors()[group.at]).variables
        what = "constraint" if group.kind == "rule" else "factor"
        called = f"{what} {group.at if isinstance(handle, int) else handle.name or handle.index}"
        shown = ", ".join(variable_text(names, int(v)) for v in scope[:6])
        return f"{called} over {shown}{', ...' if len(scope) > 6 else ''}"

    def costs(self, weights: Mapping[Any, float] | None) -> dict[Group, float]:
        if weights is None:
            return {}
        if not isinstance(weights, Mapping):
            raise SettingsError(f"weights must be a dict of factors and costs, not {type(weights).__name__}")
        places = {handle.index: place for place, handle in self._handles.items()}
        out: dict[Group, float] = {}
        for factor, cost in weights.items():
            if isinstance(cost, bool) or not isinstance(cost, int | float | np.number) or not 0 <= cost < inf:
                raise SettingsError(f"the cost of dropping {factor!r} must be a number >= 0, not {cost!r}")
            if isinstance(factor, int | np.integer):
                out[Group("factor", int(factor))] = float(cost)
                continue
            place = places.get(self._log.find(factor))
            if place is None:
                raise SolverError(f"{factor!r} forbids nothing by itself, so it has no cost")
            out[Group(*place)] = float(cost)
        return out
