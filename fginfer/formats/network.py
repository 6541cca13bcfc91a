"""Bayesian networks, as BIF and XMLBIF have them: named variables, and for each a table given its parents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.errors import ModelError
from fginfer.formats.assembly import MOST_VARIABLES, Assembly, Factors
from fginfer.graph import FactorGraph
from fginfer.names import Names, shown, variable_text

_PER_LABEL = 200  # bytes that a name takes
_SLACK = 1e-6  # excess of a probability above 1, from rounding
_SUM_SLACK = 1e-2  # slack of probabilities that should add up to 1 when two readings of a table are told apart
_NOTHING = 1e-12  # scores of a certain event, log 1, with their rounding
_WRITTEN_SLACK = 1e-3  # the same when a graph is written, as in UAI files


class Network:
    """Collects what a file says, in any order of variables and tables. `fail` raises an error at the word read last."""

    def __init__(self, budget: Budget, fail: Callable[[str], NoReturn]) -> None:
        self._budget, self._fail = budget, fail
        self._index: dict[str, int] = {}
        self._labels: list[dict[str, int]] = []
        self._tables: dict[int, tuple[tuple[int, ...], NDArray[np.float64]]] = {}

    def declare(self, name: str) -> int:
        """A new variable, whose labels come one by one."""
        if not name:
            self._fail("a variable has no name")
        if name in self._index:
            self._fail(f"there are two variables {shown(name)}")
        self._index[name] = len(self._labels)
        self._labels.append({})
        return self._index[name]

    def add_label(self, variable: int, label: str) -> None:
        """One more label of a variable."""
        if not label:
            self._fail("a value has no name")
        if label in self._labels[variable]:
            self._fail(f"variable {shown(self.name(variable))} has two values {shown(label)}")
        self._budget.take(_PER_LABEL, "the names")
        self._labels[variable][label] = len(self._labels[variable])

    def name(self, variable: int) -> str:
        """The name of a variable."""
        return list(self._index)[variable]

    def variable(self, name: str) -> int:
        """The number of a variable that was declared."""
        if name not in self._index:
            self._fail(f"there is no variable {shown(name)}")
        return self._index[name]

    def label(self, variable: int, name: str) -> int:
        """The number of a label of a variable."""
        if name not in self._labels[variable]:
            self._fail(f"variable {shown(self.name(variable))} has no value {shown(name)}")
        return self._labels[variable][name]

    def card(self, variable: int) -> int:
        """How many labels a variable has."""
        return len(self._labels[variable])

    def scope(self, child: int, parents: Sequence[int]) -> tuple[int, ...]:
        """The variables of a table, the child last; refuses what no table can have."""
        every = (*parents, child)
        if child in self._tables:
            self._fail(f"variable {shown(self.name(child))} has two tables")
        if len(set(every)) < len(every):
            self._fail(f"the table of {shown(self.name(child))} names a variable twice")
        if len(every) > MOST_VARIABLES:
            self._fail(f"a table over {len(every)} variables; at most {MOST_VARIABLES} are possible")
        return every

    def shape(self, scope: Sequence[int]) -> tuple[int, ...]:
        """The label counts of variables."""
        return tuple(map(self.card, scope))

    def room(self, scope: Sequence[int], listed: bool) -> None:
        """Asks for the memory of a table before it is made."""
        size = float(math.prod(self.shape(scope)))
        what = f"a table of {size:.6g} entries"
        (self._budget.take if listed else self._budget.take_unlisted)(24 * size, what)

    def add_table(self, scope: tuple[int, ...], probabilities: NDArray[np.float64]) -> None:
        """The probabilities of the last variable of the scope given the others."""
        self._tables[scope[-1]] = scope, probabilities

    def probability(self, value: float) -> float:
        """A number from the file, if it is a probability."""
        if not 0.0 <= value <= 1.0 + _SLACK:
            self._fail("expected a probability, from 0 to 1")
        return value

    def graph(self) -> FactorGraph:
        """The model: scores are natural logarithms."""
        for variable, name in enumerate(self._index):
            if variable not in self._tables:
                self._fail(f"variable {shown(name)} has no table of probabilities")
        made = Assembly(np.array([len(labels) for labels in self._labels], np.int32))
        for variable in range(len(self._labels)):
            scope, table = self._tables.pop(variable)
            scores = np.array([math.log(p) if p else -math.inf for p in table.reshape(-1).tolist()])
            made.add(scope, made.function(scores.reshape(table.shape)))
        graph = made.graph()
        names = {i: name for name, i in self._index.items()}
        graph.take_names(Names.of(names, {i: list(labels) for i, labels in enumerate(self._labels)}))
        return graph


def add_up(probabilities: NDArray[np.float64], axis: int) -> bool:
    """Whether the probabilities along an axis add up to 1, as files with few digits have it."""
    return bool((np.abs(probabilities.sum(axis=axis) - 1.0) <= _SUM_SLACK).all())


# -- writing ---------------------------------------------------------------------------------------------------


class Conditional(NamedTuple):
    """The distribution of a variable: probabilities with an axis for each parent, the child's last."""

    child: int
    parents: tuple[int, ...]
    probabilities: NDArray[np.float64]


def conditionals(graph: FactorGraph) -> list[Conditional]:
    """A table for each variable whose product is the model; ModelError if it is no Bayesian network.

    A variable that is in one factor only must be the child there: taking such factors away one after the other finds
    the children and an order of the variables at once. Variables with one label, and factors without a score, say
    nothing and are left out of that.
    """
    factors = Factors(graph)
    if factors.constants():
        raise ModelError("not a Bayesian network: it has a constant score")
    cards = graph.cards.tolist()
    every: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [((i,), scores) for i, scores in factors.unaries()]
    every += [(scope, factors.scores(key)) for scope, key in factors]
    every = [one for one in every if np.abs(one[1]).max() > _NOTHING]
    inside: list[set[int]] = [set() for _ in cards]
    for k, (scope, _) in enumerate(every):
        for variable in scope:
            inside[variable].add(k)
    found = {i: Conditional(i, (), np.ones(1)) for i, n in enumerate(cards) if n == 1}
    left = len(every)
    ready = [i for i, some in enumerate(inside) if len(some) == 1]
    while ready:
        child = ready.pop()
        if child in found or len(inside[child]) != 1:
            continue
        (k,) = inside[child]
        scope, scores = every[k]
        found[child] = _conditional(child, scope, scores, variable_text(graph.names, child))
        left -= 1
        for variable in scope:
            inside[variable].discard(k)
        ready += [variable for variable in scope if len(inside[variable]) == 1]
    missing = next((i for i in range(len(cards)) if i not in found), None)
    if missing is not None:
        who = variable_text(graph.names, missing)
        raise ModelError(f"not a Bayesian network: no factor can be the distribution of {who}")
    if left:
        raise ModelError("not a Bayesian network: it has more factors than variables")
    return [found[i] for i in range(len(cards))]


def _conditional(child: int, scope: tuple[int, ...], scores: NDArray[np.float64], who: str) -> Conditional:
    at = scope.index(child)
    last = np.moveaxis(scores, at, -1)
    probabilities = np.array([_probability(s, who) for s in last.reshape(-1).tolist()]).reshape(last.shape)
    if not (np.abs(probabilities.sum(axis=-1) - 1.0) <= _WRITTEN_SLACK).all():
        raise ModelError(f"not a Bayesian network: the probabilities of {who} do not sum to 1")
    return Conditional(child, scope[:at] + scope[at + 1 :], probabilities)


def _probability(score: float, who: str) -> float:
    """The double whose logarithm is the score, or as near as there is one."""
    p = math.exp(min(score, 1.0))
    if p == 0.0 and score > -math.inf:
        raise ModelError(f"a score of {who}, {score!r}, is too low for a probability")
    for other in (p, math.nextafter(p, 2.0), math.nextafter(p, 0.0)):
        if other and math.log(other) == score:
            return other
    return p


def written_names(graph: FactorGraph) -> tuple[list[str], list[list[str]]]:
    """A name for every variable and every label: x0, x1, ... and 0, 1, ... where there are none."""
    names = graph.names or Names()
    labels = [list(names.labels(i) or map(str, range(n))) for i, n in enumerate(graph.cards.tolist())]
    return names.all_variables(graph.n_variables), labels
