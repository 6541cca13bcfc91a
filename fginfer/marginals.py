"""log Z and marginals of a factor graph: exactly where elimination fits into memory and time, else approximately.

P(x) = exp(score(x)) / Z; -inf forbids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.approximate import NOTHING, Approximation
from fginfer.beliefs import MOST_STATES, by_variable, probabilities
from fginfer.condition import Conditioned
from fginfer.errors import Interrupted, ModelError, SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.lower import summable
from fginfer.names import NamedArrays, Names
from fginfer.options import check_number, check_settings
from fginfer.solve import _model
from fginfer.solver import check_seconds

__all__ = ["Marginals", "marginals"]

Reals = NDArray[np.float64]

STATES_A_SECOND = 3e7  # that are summed, below what machines do: elimination begins where it ends in time (chosen)


@dataclass(frozen=True)
class Marginals(NamedArrays):
    """log Z, and P(variable = label) as one array a variable; `found["rain"]["yes"]` where they have names.

    >>> from fginfer import FactorGraph, marginals
    >>> found = marginals(FactorGraph([2]))
    >>> found.variables[0].tolist(), found.exact
    ([0.5, 0.5], True)
    """

    log_z: float
    variables: list[Reals]
    exact: bool = True  # up to rounding; else approximations, log_z among them
    log_z_low: float = -inf  # where they are not exact: log Z is between these two
    log_z_high: float = inf
    names: Names | None = None

    def confidence(self) -> tuple[Reals, Reals]:
        """The probability of each variable's most probable label, as a pair that is twice the same.

        >>> marginals(FactorGraph.from_arrays([2], [np.log([0.25, 0.75])])).confidence()[0].round(2).tolist()
        [0.75]
        """
        top = np.array([p.max() for p in self.variables])
        return top, top


def marginals(
    graph: FactorGraph | str | PathLike[str],
    memory: float = 1 << 30,
    *,
    evidence: Mapping[Any, Any] | str | PathLike[str] | None = None,
    approximate: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
) -> Marginals:
    """log Z and the marginals of all variables; ModelError where no labeling is allowed.

    graph        a FactorGraph, or the name of a model file
    memory       bytes for the tables of elimination
    evidence     variables that are known, as solve takes it
    approximate  an answer, too, where exact sums take too long
    time_limit   seconds, for approximate answers
    seed         of approximate answers

    They are exact, by two passes of elimination in logs. Where its tables need more than `memory` bytes, variables are
    held, and each joint label of them is summed on its own; SolverError, before anything is summed, where that would
    take too long.

    With `approximate` there is an answer then, too: `exact` is False, the variables are averages of exact conditionals
    over a chain of Gibbs sampling by large blocks (or sums over most of the probability, where that is in few joint
    labels), and log Z is certainly between `log_z_low` and `log_z_high`. `time_limit` is in seconds; without one it
    takes some hundred passes. `seed` is that of the chain.

    With evidence ({variable: label}) the marginals are those given what was seen, and Z sums over the labelings that
    agree with it: log P(evidence) is this log_z minus the one without evidence.

    >>> from fginfer import FactorGraph, marginals
    >>> graph = FactorGraph([2, 2])
    >>> tie = graph.add_factor([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    >>> found = marginals(graph)
    >>> round(found.log_z, 6), found.variables[0].tolist()
    (2.006409, [0.5, 0.5])
    """
    check_number("memory", memory, "a positive number of bytes")
    if memory <= 0:
        raise SettingsError(f"memory must be a positive number of bytes, not {memory!r}")
    if not isinstance(approximate, bool | np.bool_):
        raise SettingsError(f"approximate must be True or False, not {approximate!r}")
    time_limit = check_seconds("time_limit", time_limit)
    if time_limit is not None and not approximate:
        raise SettingsError(
            "time_limit is for approximate=True; exact marginals take the time they take, or are refused"
        )
    check_settings(0.0, seed, 1, None, None)
    whole, _ = _model(graph, None)
    model, given = _model(whole, evidence)
    try:
        found = _marginals(model, memory, approximate, time_limit, seed)
    except Interrupted as stop:
        part: Any = stop.found
        raise Interrupted(_given(given, whole, part)) from None
    return _given(given, whole, found)


def _marginals(graph: FactorGraph, memory: float, approximate: bool, time_limit: float | None, seed: int) -> Marginals:
    n, graph = graph.n_variables, summable(graph)
    model = graph.snapshot()
    most = MOST_STATES if time_limit is None else min(MOST_STATES, STATES_A_SECOND * time_limit)
    try:
        log_z, p = probabilities(model, memory, most)
    except SolverError:
        if not approximate:
            raise
        return _approximate(graph, n, seed, time_limit)
    if log_z == -inf:
        raise ModelError(NOTHING)
    return Marginals(log_z, by_variable(p, model.cards)[:n], True, log_z, log_z)


def _approximate(graph: FactorGraph, n: int, seed: int, time_limit: float | None) -> Marginals:
    work = Approximation(graph, seed, time_limit)
    try:
        work.run()
    except KeyboardInterrupt:
        try:
            found = work.estimate()
        except SolverError:
            raise KeyboardInterrupt from None
        raise Interrupted(Marginals(found.log_z, found.variables[:n], False, found.low, found.high)) from None
    found = work.estimate()
    return Marginals(found.log_z, found.variables[:n], False, found.low, found.high)


def _given(given: Conditioned | None, whole: FactorGraph, rest: Marginals) -> Marginals:
    """Marginals of all variables from those that are free: the others have the label that was seen."""
    names = whole.shared_names()
    if given is None:
        return replace(rest, names=names)
    variables = [np.zeros(card) for card in whole.cards]
    for variable, label in given.evidence.items():
        variables[variable][label] = 1.0
    for variable, p in zip(given.free.tolist(), rest.variables, strict=True):
        variables[variable] = p
    return Marginals(rest.log_z, variables, rest.exact, rest.log_z_low, rest.log_z_high, names)
