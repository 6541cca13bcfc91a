"""max_marginals(): the best score that each label of each variable can be part of, exactly or between two bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import best_scores, by_variable
from fginfer.condition import Conditioned
from fginfer.errors import Interrupted, ModelError, SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.intervals import Intervals
from fginfer.lower import without_cutoff
from fginfer.names import NamedArrays, Names
from fginfer.options import check_number, check_settings
from fginfer.solve import _model
from fginfer.solver import check_seconds

__all__ = ["MaxMarginals", "max_marginals"]

Reals = NDArray[np.float64]

FORBIDDEN = "no labeling is allowed, so there is no best one with any label"


@dataclass(frozen=True)
class MaxMarginals(NamedArrays):
    """An array of scores a variable: entry l is the best score of a labeling in which it has label l; -inf: there is
    none. Where they are not `exact`, each is between `low` (a labeling has it) and `high` (none has more), and
    `variables` are the lows. `found["rain"]["yes"]` is one of them where they have names.

    >>> from fginfer import FactorGraph, max_marginals
    >>> graph = FactorGraph([2, 2])
    >>> factor = graph.add_factor([0, 1], [[3.0, 1.0], [0.0, 2.0]])
    >>> found = max_marginals(graph)
    >>> found.losses()[0].tolist()
    [0.0, 1.0]
    """

    score: float  # the best one of all, or the best that was found
    bound: float  # no labeling has more
    variables: list[Reals]
    low: list[Reals]
    high: list[Reals]
    exact: bool
    asked: tuple[int, ...]  # the variables that the arrays are about, in this order
    names: Names | None = None

    def _asked(self) -> tuple[int, ...]:
        return self.asked

    def losses(self) -> list[Reals]:
        """What each label costs against the best labeling: how sure its variable is of another one.

        >>> [loss.tolist() for loss in max_marginals(FactorGraph.from_arrays([2], [[0.0, 1.0]])).losses()]
        [[1.0, 0.0]]
        """
        return [self.score - scores for scores in self.variables]

    def confidence(self) -> tuple[Reals, Reals]:
        """What each variable's second label loses against the first, at least and at most; inf: there is no second.

        >>> max_marginals(FactorGraph.from_arrays([2], [[0.0, 1.0]])).confidence()[0].tolist()
        [1.0]
        """
        least, most = np.full(len(self.low), inf), np.full(len(self.low), inf)
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            others = np.arange(len(low)) != np.lexsort([high, low])[-1]
            if others.any():
                least[k] = max(0.0, self.score - float(high[others].max()))
                most[k] = max(least[k], self.score - float(low[others].max()))
        return least, most


def max_marginals(
    graph: FactorGraph | str | PathLike[str],
    variables: Sequence[int | str] | None = None,
    *,
    evidence: Mapping[Any, Any] | str | PathLike[str] | None = None,
    time_limit: float | None = None,
    memory: float = 1 << 30,
    seed: int = 0,
) -> MaxMarginals:
    """For every label the best score of a labeling that has it: why not this label, and at what price?

    graph       a FactorGraph, or the name of a model file
    variables   those that are asked about (by number or name; None: all), in this order
    evidence    variables that are known, as solve takes it
    time_limit  seconds for the intervals, where elimination does not fit; None: until they do not shrink any more
    memory      bytes for the tables of elimination

    Two passes of elimination give all of them exactly where they fit. Else messages give upper bounds and labelings
    lower ones, both better the longer it works: low from blocks of variables that are best given the rest of a good
    labeling, high from parts of the reparametrised model that elimination can take, the rest at its maximum.

    >>> from fginfer import FactorGraph, max_marginals
    >>> graph = FactorGraph(variables={"rain": ["no", "yes"], "wind": ["no", "yes"]})
    >>> factor = graph.add_factor(["rain", "wind"], [[3.0, 1.0], [0.0, 2.0]])
    >>> max_marginals(graph, ["wind"]).variables[0].tolist()
    [3.0, 2.0]
    """
    time_limit = check_seconds("time_limit", time_limit)
    check_settings(0.0, seed, 1, None, None)
    check_number("memory", memory, "a positive number of bytes")
    if memory <= 0:
        raise SettingsError(f"memory must be a positive number of bytes, not {memory!r}")
    whole, _ = _model(graph, None)
    reduced, given = _model(whole, evidence)
    asked = _asked(whole, variables)
    cards = reduced.cards
    n = int(cards.sum())
    reduced = without_cutoff(reduced)
    reduced = reduced.lowered().graph if reduced.rules else reduced  # auxiliary variables come last
    model, stopped = reduced.snapshot(), False
    try:
        score, flat = best_scores(model, memory)
        low = high = flat
        bound, exact = score, True
    except SolverError:
        found = Intervals(reduced, model, seed, time_limit)
        try:
            found.run()
        except KeyboardInterrupt:
            stopped = True
        score, bound, low, high, exact = found.score, found.bound, found.low, found.high, found.closed
    if score == -inf and (exact or bound == -inf):
        raise ModelError(FORBIDDEN)
    low, high = low[:n], high[:n]
    lows, highs = (
        _expanded(by_variable(x, cards), given, whole.cards, best) for x, best in ((low, score), (high, bound))
    )
    lows, highs = [lows[v] for v in asked], [highs[v] for v in asked]
    out = MaxMarginals(score, bound, lows, lows, highs, exact, asked, whole.shared_names())
    if stopped:
        raise Interrupted(out)
    return out


def _asked(graph: FactorGraph, variables: Sequence[Any] | None) -> tuple[int, ...]:
    if variables is None:
        return tuple(range(graph.n_variables))
    if isinstance(variables, str) or not isinstance(variables, Sequence | np.ndarray):
        raise SettingsError(f"variables must be a list of variables, by number or name, not {variables!r}")
    return tuple(graph.variable(v) for v in variables)


def _expanded(
    arrays: list[Reals], given: Conditioned | None, cards: NDArray[np.int32], best: float
) -> list[Reals]:  # fmt: skip
    """The scores of all variables: those that were seen have no other label."""
    if given is None:
        return arrays
    out = [np.full(int(card), -inf) for card in cards]
    for variable, label in given.evidence.items():
        out[variable][label] = best
    for variable, scores in zip(given.free.tolist(), arrays, strict=True):
        out[variable] = scores
    return out
