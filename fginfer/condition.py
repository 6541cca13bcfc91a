"""Evidence: the smaller graph that is left when some variables are fixed, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.model import Model
from fginfer.errors import ModelError
from fginfer.labelings import check_labels, check_range
from fginfer.names import Names, label_of, number_of, variable_text
from fginfer.result import Result
from fginfer.rules import Rule
from fginfer.rules.make import constant_rule

if TYPE_CHECKING:
    from fginfer.graph import FactorGraph


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A graph over the free variables, in their old order. Scores are those of the whole labeling in the old graph.

    >>> from fginfer import FactorGraph, solve
    >>> graph = FactorGraph([2, 2, 2])
    >>> factor = graph.add_factor([0, 1, 2], range(8))
    >>> given = graph.condition({1: 0})
    >>> given.expand(solve(given.graph).labels).tolist()
    [1, 0, 1]
    """

    graph: FactorGraph
    evidence: dict[int, int]
    free: NDArray[np.int64]  # the old numbers of the variables that are left
    _labels: NDArray[np.int32]
    _original: Model | _WithRules
    _names: Names | None = None  # names of the old graph

    def expand(self, labels: ArrayLike) -> NDArray[np.int32]:
        """The labeling of the old graph: the given labels for the free variables, the evidence for the others.

        >>> FactorGraph([2, 2, 2]).condition({1: 1}).expand([0, 1]).tolist()
        [0, 1, 1]
        """
        x = self.graph.check_labels(labels)
        out = self._labels.copy()
        out[self.free] = x
        return out

    def reduce(self, labels: ArrayLike) -> NDArray[np.int32]:
        """A labeling of the old graph without the fixed variables, whose labels need not be those of the evidence.

        >>> FactorGraph([2, 2, 2]).condition({1: 1}).reduce([0, 0, 1]).tolist()
        [0, 1]
        """
        cards = self._original.cards
        return check_range(check_labels(labels, cards, self._names), cards, self._names)[self.free]

    def expand_result(self, result: Result) -> Result:
        """A result of the reduced graph with labels of the old one. Its score and bound are the same there, since sums
        are exact. Where evidence leaves no choice, and so no unit, rounding is judged by that of the old graph.

        >>> given = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]]).condition({0: 0})
        >>> given.expand_result(solve(given.graph)).labels.tolist()
        [0, 0]
        """
        unit = result.unit if result.unit > 0 else self._original.unit
        labels = None if result.labels is None else self.expand(result.labels)
        result = replace(result, names=self._names, unit=unit, labels=labels)
        score = None if labels is None else self._original.score(labels)
        if score is None or score == result.score:
            return result
        # The penalty of a constraint that evidence has made smaller may be rounded in another way.
        bound = None if result.bound is None else max(result.bound, score)
        trace = [p._replace(score=score if p.score == result.score else p.score) for p in result.trace]
        return replace(result, score=score, bound=bound, trace=trace)


class _WithRules:
    """A graph with constraints as it was, with what Conditioned asks of a Model."""

    def __init__(self, graph: FactorGraph) -> None:
        self.score = graph.score
        self.unit, self.cards = graph.table_model.unit, graph.cards


def _restricted(rule: Rule, fixed: Mapping[int, int], numbers: Mapping[int, int]) -> Rule:
    found = rule.restricted(fixed, numbers)
    return found if isinstance(found, Rule) else constant_rule(rule.kind, found)


def observed(evidence: Mapping[Any, Any], names: Names | None = None) -> dict[int, int]:
    """The labels of variables that are known: from a dict, or a pandas Series whose index names the variables."""
    if not isinstance(evidence, Mapping) and not (hasattr(evidence, "iloc") and evidence.ndim == 1):
        raise ModelError(f"evidence must be a dict of variables and labels, not {type(evidence).__name__}")
    fixed: dict[int, int] = {}
    for key, value in evidence.items():
        try:
            variable = number_of(names, key).__index__()
            label = label_of(names, variable, value).__index__()
        except AttributeError:
            raise ModelError(f"evidence maps variables to labels, numbers or names, not {key!r}: {value!r}") from None
        if fixed.setdefault(variable, label) != label:
            who = variable_text(names, variable)
            raise ModelError(f"evidence gives {who} two labels, {fixed[variable]} and {label}")
    return fixed


def condition(graph: FactorGraph, evidence: Mapping[Any, Any]) -> Conditioned:
    """See FactorGraph.condition."""
    names = graph.shared_names()
    fixed, cards = observed(evidence, names), graph.cards
    for variable, label in fixed.items():
        if not 0 <= variable < len(cards):
            raise ModelError(f"evidence for variable {variable}; there are {len(cards)}")
        if not 0 <= label < cards[variable]:
            who = variable_text(names, variable)
            raise ModelError(f"evidence gives {who} label {label}, out of range 0..{cards[variable] - 1}")
    variables, labels = np.array(list(fixed), np.int32), np.array(list(fixed.values()), np.int32)
    with graph.lock:
        tables, rules = graph.table_snapshot(), graph.rules
        original = _WithRules(graph.copy()) if rules else tables
    model = tables.condition(variables, labels)
    whole, free = np.zeros(len(cards), np.int32), np.ones(len(cards), bool)
    whole[variables], free[variables] = labels, False
    left = graph.from_model(model, graph.n_factors)
    left.cutoff = graph.cutoff  # scores are those of the whole
    remaining = np.flatnonzero(free)
    if rules:
        numbers = {old: new for new, old in enumerate(remaining.tolist())}
        left.take_rules([_restricted(rule, fixed, numbers) for rule in rules])
    if names is not None:
        left.take_names(names.restricted(remaining.tolist()))
    return Conditioned(left, fixed, remaining, whole, original, names)
