"""pgmpy's discrete models to graphs and back: scores are logarithms of its potentials."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from fginfer.errors import ModelError, SettingsError
from fginfer.formats.assembly import Factors
from fginfer.formats.network import conditionals, written_names
from fginfer.graph import FactorGraph
from fginfer.interop.labelled import give_names


class Read(NamedTuple):
    """A model of pgmpy as a graph, and what its variables and states are called there."""

    graph: FactorGraph
    variables: list[Hashable]
    states: list[list[Hashable]]


def read_model(model: Any) -> Read:
    """See from_pgmpy."""
    if not hasattr(model, "get_cpds") and not hasattr(model, "get_factors"):
        raise ModelError(f"from_pgmpy takes a discrete model of pgmpy, not {type(model).__name__}")
    try:
        model.check_model()
        factors = [cpd.to_factor() for cpd in model.get_cpds()] if hasattr(model, "get_cpds") else model.get_factors()
    except (AttributeError, ValueError, TypeError) as error:
        raise ModelError(f"the {type(model).__name__} is no complete discrete model: {error}") from None
    states: dict[Hashable, list[Hashable]] = {}
    for factor in factors:
        for variable in factor.variables:
            states.setdefault(variable, list(factor.state_names[variable]))
    variables = list(states)
    number = {variable: i for i, variable in enumerate(variables)}
    graph = FactorGraph([len(states[variable]) for variable in variables])
    for factor in factors:
        values = _in_order(factor, states)
        if not ((values >= 0) & (values < math.inf)).all():
            raise ModelError(f"the factor over {list(factor.variables)} has a value that is no potential, 0 or more")
        with np.errstate(divide="ignore"):  # a potential of 0 forbids
            graph.add_factor([number[variable] for variable in factor.variables], np.log(values))
    return Read(graph, variables, [states[variable] for variable in variables])


def _in_order(factor: Any, states: dict[Hashable, list[Hashable]]) -> NDArray[np.float64]:
    """The values of a factor, its states in the order in which the graph has them."""
    values = np.asarray(factor.values, np.float64)
    for axis, variable in enumerate(factor.variables):
        mine = list(factor.state_names[variable])
        if mine != states[variable]:
            if set(mine) != set(states[variable]):
                raise ModelError(f"the factors disagree about the states of {variable!r}")
            values = np.take(values, [mine.index(state) for state in states[variable]], axis)
    return values


def from_pgmpy(model: Any) -> FactorGraph:
    """A Bayesian network, Markov network, factor graph or junction tree of pgmpy, with its names."""
    graph, variables, states = read_model(model)
    give_names(graph, variables, dict(enumerate(states)))
    return graph


def to_pgmpy(graph: FactorGraph, kind: str = "markov") -> Any:
    """A DiscreteMarkovNetwork with the potentials exp(score), or with kind="bayes" a DiscreteBayesianNetwork.

    Variables and states without names are called x0, x1, ... and "0", "1", ... there. ModelError where that is not
    what the graph says: a constraint, a cutoff, a potential that a double does not hold, and for "bayes" a graph whose
    factors are no conditional distributions.
    """
    if not isinstance(graph, FactorGraph):
        raise ModelError(f"to_pgmpy takes a FactorGraph, not {type(graph).__name__}")
    if kind not in ("markov", "bayes"):
        raise SettingsError(f"kind must be 'markov' or 'bayes', not {kind!r}")
    if graph.cutoff > -math.inf:
        raise ModelError("a network has no place for the cutoff")
    names, labels = written_names(graph)
    states = dict(zip(names, labels, strict=True))
    if kind == "bayes":
        return _bayes(graph, names, states)
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(names)
    every = Factors(graph)
    factors = [((i,), scores) for i, scores in every.unaries()] + [(scope, every.scores(key)) for scope, key in every]
    seen = {v for scope, _ in factors for v in scope}
    factors += [((i,), np.zeros(n)) for i, n in enumerate(graph.cards.tolist()) if i not in seen]
    constant = math.fsum(every.constants())
    if constant and not factors:
        raise ModelError("a network without variables has no place for a constant")
    for scope, scores in factors:
        values = _potentials(scores + constant)
        constant = 0.0
        here = [names[v] for v in scope]
        network.add_edges_from((a, b) for k, a in enumerate(here) for b in here[:k])
        shape = [len(states[name]) for name in here]
        network.add_factors(DiscreteFactor(here, shape, values, state_names={name: states[name] for name in here}))
    return network


def _potentials(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore", under="ignore"):
        values = np.exp(scores)
    if (values == math.inf).any() or ((values == 0.0) & (scores > -math.inf)).any():
        raise ModelError("a score is too large or too low for a potential: exp of it is no double")
    return values


def _bayes(graph: FactorGraph, names: Sequence[str], states: dict[str, list[str]]) -> Any:
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(names)
    for child, parents, probabilities in conditionals(graph):
        given = [names[v] for v in parents]
        network.add_edges_from((parent, names[child]) for parent in given)
        network.add_cpds(
            TabularCPD(
                names[child],
                probabilities.shape[-1],
                probabilities.reshape(-1, probabilities.shape[-1]).T,
                evidence=given or None,
                evidence_card=list(probabilities.shape[:-1]) or None,
                state_names={name: states[name] for name in (names[child], *given)},
            )
        )
    return network
