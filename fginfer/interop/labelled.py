"""Names of other libraries, which may be anything hashable, as names of a graph, which are texts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from fginfer.errors import ModelError
from fginfer.graph import FactorGraph
from fginfer.names import Names


def give_names(
    graph: FactorGraph, variables: Sequence[Hashable], labels: Mapping[int, Sequence[Hashable]] | None = None
) -> None:
    """Names a graph's variables and labels; numbers that count from 0 need no names."""
    names = Names()
    if list(variables) != list(range(len(variables))):
        for i, name in enumerate(variables):
            names.name_variable(i, str(name))
    for i, some in (labels or {}).items():
        if list(some) != list(range(len(some))):
            names.name_labels(i, [str(label) for label in some], len(some))
    if names:
        graph.take_names(names)


def names_of(graph: FactorGraph) -> list[Hashable]:
    """What other libraries call the variables: their names, and their numbers where they have none."""
    names = graph.names or Names()
    called: list[Hashable] = [names.variable(i) for i in range(graph.n_variables)]
    if len(set(called)) < len(called):
        raise ModelError("a variable's name is another one's number")
    return called
