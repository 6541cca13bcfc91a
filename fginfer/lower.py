"""Lowered: a graph with constraints as a graph of small tables with auxiliary variables, and the way back.

The variables of the graph keep their numbers; auxiliary ones come after them. A labeling of the graph has the score of
the best labeling of the auxiliary variables that goes with it, so the optimum is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nextafter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.alone import NOTHING, Settled, settle
from fginfer.core.arrays import begins
from fginfer.core.model import Model
from fginfer.core.solver import proof_tolerance
from fginfer.errors import ModelError, SolverError
from fginfer.labelings import check_labels, check_range
from fginfer.lowering import Lowering, with_factors
from fginfer.result import RelaxedMarginals, Result, TracePoint, relative_gap
from fginfer.rules import Chain, Rule
from fginfer.rules.narrowing import allowed_labels
from fginfer.rules.question import Question
from fginfer.rules.rule import Star, Table
from fginfer.rules.scores import score_with_rules
from fginfer.rules.steps import smallest

if TYPE_CHECKING:
    from fginfer.graph import FactorGraph


MOST_ENTRIES = 300_000  # scores in the chains of a constraint; larger ones stay apart from tables (chosen)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A graph of tables that stands for a graph with constraints, and the way back.

    >>> from fginfer import FactorGraph
    >>> graph = FactorGraph([2] * 10)
    >>> rule = graph.add_at_most(2, [(i, 1) for i in range(10)])
    >>> lowered = graph.lowered()
    >>> lowered.graph.score(lowered.complete([1, 1, 1] + [0] * 7))
    -inf
    """

    graph: FactorGraph
    _chains: list[tuple[Chain, list[int], list[int]]]
    _stars: list[tuple[Star, int]]
    _model: Model  # the tables of the original with the numbers that were taken last
    _rules: tuple[Rule, ...]
    _allowed: NDArray[np.bool_]  # labels that were not forbidden in any case
    rounding: float  # how far scores of the lowered graph may be from those of the original
    _settled: Settled = NOTHING

    @property
    def cards(self) -> NDArray[np.int32]:
        """Label counts of the original."""
        return self._model.cards

    def complete(self, labels: ArrayLike) -> NDArray[np.int32]:
        """A labeling of the graph with the best labels of the auxiliary variables."""
        x = check_range(check_labels(labels, self._model.cards), self._model.cards)
        out = np.zeros(self.graph.n_variables, np.int32)
        out[: len(x)] = x
        if not self._settled.is_broken:
            out[self._settled.variables] = self._settled.labels
        whole = out.tolist()
        for chain, auxiliary, layers in self._chains:
            states = chain.path([whole[v] for v in chain.variables])
            if states is not None:
                out[auxiliary] = [states[layer - 1] for layer in layers]
        for star, variable in self._stars:
            value = np.array(star.scores)
            for v, table in zip(star.variables, star.tables, strict=True):
                value += table[:, whole[v]]
            out[variable] = value.argmax()
        return out

    @property
    def tables(self) -> Model:
        """The tables of the original."""
        return self._model

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The constraints of the original."""
        return self._rules

    def unsettled(self) -> tuple[list[Rule], tuple[float, ...], NDArray[np.bool_]]:
        """The constraints that the labels left do not decide, the scores of the others, and these labels."""
        left = [rule for k, rule in enumerate(self._rules) if k not in self._settled.rules]
        return left, self._settled.scores, self._allowed

    @property
    def one_to_one(self) -> bool:
        """Whether every labeling goes with one labeling of the auxiliary variables only, so that sums are the same."""
        return not self._stars and all(chain.deterministic for chain, _, _ in self._chains)

    def cutoff(self, cutoff: float) -> float:
        """What the lowered graph must score above, so that nothing above the cutoff is lost."""
        if self.rounding == 0 or not -inf < cutoff < inf:
            return cutoff
        return nextafter(nextafter(cutoff - self.rounding, -inf), -inf)

    def result(self, result: Result, cutoff: float = -inf, gap: float = 0.0) -> Result:
        """The result for the graph: labels and marginals without auxiliary variables, scored by the graph.

        Bounds are raised by what rounding may have taken from penalties per unit, which may be more than a proof
        allows: then a `gap` may have been reached. Messages stay as they are.
        """
        n = self._model.n_variables
        # What constraints alone have decided has no second score in the lowered graph.
        unit = smallest((result.unit, self._model.unit, self._settled.unit)) if self._settled.rules else result.unit
        labels = None if result.labels is None else np.array(result.labels[:n])
        score = None if labels is None else score_with_rules(self._model, self._rules, labels)
        bound, status = self._raised(result.bound), result.status
        if score is not None and score <= cutoff:
            labels = score = None
            status = "converged" if status in ("optimal", "gap_reached") else status
        if score is not None and bound is not None:
            bound = max(bound, score)
            if status in ("optimal", "gap_reached") and 2 * self.rounding > proof_tolerance(score, unit):
                left = relative_gap(score, bound, unit)
                status = "gap_reached" if left is not None and left <= gap else "converged"
        marginals = result.marginals
        if isinstance(marginals, RelaxedMarginals):
            marginals = RelaxedMarginals(marginals.flat[: self._model.n_labels], self._model.cards)
        trace = result.trace
        if self.rounding or score != result.score:
            trace = [TracePoint(p.seconds, _at(p, result, score), self._raised(p.bound)) for p in trace]
        return replace(
            result, labels=labels, score=score, bound=bound, status=status, marginals=marginals, trace=trace, unit=unit
        )

    def _raised(self, bound: float | None) -> float | None:
        if bound is None or self.rounding == 0 or abs(bound) == inf:
            return bound
        return nextafter(bound + self.rounding, inf)

    def updated(self, graph: FactorGraph) -> Lowered | None:
        """The same graph of tables with the present numbers of the original; None: that must be lowered again, since
        factors, constraints, or labels that are allowed have come or gone."""
        with graph.lock:
            arrays, model, rules = graph.table_arrays(), graph.table_snapshot(), graph.rules
        if not model.same_structure(self._model) or rules != self._rules:
            return None
        assert arrays.unary is not None
        if self._settled.rules or self.graph.rules:
            return None
        allowed = allowed_labels(arrays.unary, begins(arrays.cards), rules)
        if bool((allowed & ~self._allowed).any()):
            return None
        more = int(self.graph.cards.sum(dtype=np.int64)) - len(arrays.unary)
        self.graph.set_unaries(_lowered_unary(arrays.unary, allowed, more))
        self.graph.model.take_leftovers(model)
        dense = np.flatnonzero(arrays.is_dense()).astype(np.int32)
        self.graph.model.set_tables(dense, np.array(arrays.values))
        fresh = replace(self, _model=model)
        if self.graph.origin is not None:
            self.graph.origin = fresh
        return fresh


def summable(graph: FactorGraph) -> FactorGraph:
    """A graph of tables with the same sums over labelings; SolverError where constraints have no such tables.

    Variables that it has beside those of the graph come last. Sums go over all labelings, whatever the cutoff is.
    """
    graph = without_cutoff(graph)
    if not graph.rules:
        return graph
    lowered = graph.lowered()
    if not lowered.one_to_one:
        raise SolverError(
            "a constraint here (add_sparse, or add_regular with several ways to accept a word) has no tables whose sums"
            " are right; write it as a table, or ask for max_marginals"
        )
    return lowered.graph


def without_cutoff(graph: FactorGraph) -> FactorGraph:
    """The same labelings with the same scores, none of them too low to count."""
    if graph.cutoff == -inf:
        return graph
    out = graph.copy()
    out.cutoff = -inf
    return out


def _lowered_unary(unary: NDArray[np.float64], allowed: NDArray[np.bool_], more: int) -> NDArray[np.float64]:
    """Unary scores without the labels that rules forbid in any case, and zeros for auxiliary variables."""
    return np.concatenate((np.where(allowed, unary, -inf), np.zeros(more)))


def _at(point: TracePoint, said: Result, score: float | None) -> float | None:
    """The score at a point of the trace: of the last labeling where it is that, and no more than that before."""
    if point.score is None or score is None:
        return None
    return score if point.score == said.score else min(point.score, score)


def lower(graph: FactorGraph) -> Lowered:
    """See FactorGraph.lowered. Memory is that of the chains: see the manual on constraints."""
    return _lower(graph, NOTHING, ())


def lower_for_solving(graph: FactorGraph) -> Lowered:
    """The same for who wants the best labeling alone: constraints that stand alone are answered by their oracles, and
    their variables have no other labels any more. Those that are too large for tables stay constraints of the graph."""
    with graph.lock:
        settled = settle(graph.table_arrays(), graph.rules)
        large = [k for k, rule in enumerate(graph.rules) if k not in settled.rules and _stays_apart(rule)]
        made = _lower(graph, settled, large)
        if not settled.is_broken:
            made.graph.origin = made
        return made


def _stays_apart(rule: Rule) -> bool:
    if not rule.variables or rule.entries() <= MOST_ENTRIES:
        return False
    try:
        Question(rule)
    except (ModelError, SolverError):  # its numbers do not fit into the core: tables may hold them
        return False
    return True


def _lower(graph: FactorGraph, settled: Settled, large: Sequence[int]) -> Lowered:
    with graph.lock:
        arrays, model, rules = graph.table_arrays(), graph.table_snapshot(), graph.rules
    assert arrays.unary is not None
    left = [rule for k, rule in enumerate(rules) if k not in settled.rules and k not in large]
    begin = begins(arrays.cards)
    allowed = allowed_labels(arrays.unary, begin, left)
    made = Lowering(arrays.cards.tolist(), allowed)
    for rule in left:
        made.rule(rule)
    for score in settled.scores:
        made.table(Table((), np.array(score)))
    if not settled.is_broken:
        _keep_alone(allowed, begin, settled)
    extra = made.cards[len(arrays.cards) :]
    base = replace(
        arrays,
        cards=np.concatenate((arrays.cards, np.array(extra, np.int32))),
        unary=_lowered_unary(arrays.unary, allowed, sum(extra)),
    )
    rounding = sum(rule.rounding() for rule in left) + settled.rounding
    if large:  # what rounding took from unary scores is put back when the result is scored
        base = replace(base, leftover=arrays.leftover[:0], leftover_var=arrays.leftover_var[:0])
        rounding += 2 * float(np.abs(arrays.leftover[arrays.leftover > -inf]).sum())
    plain = graph.from_model_arrays(with_factors(base, made.factors))
    plain.cutoff = graph.cutoff
    plain.take_rules([rules[k] for k in large])
    return Lowered(plain, made.chains, made.stars, model, rules, allowed, rounding, settled)


def _keep_alone(allowed: NDArray[np.bool_], begin: NDArray[np.int64], settled: Settled) -> None:
    """Variables that are settled keep their label alone."""
    kept = begin[settled.variables] + settled.labels
    before = allowed[kept]
    mine = np.zeros(len(begin) - 1, bool)
    mine[settled.variables] = True
    allowed[np.repeat(mine, np.diff(begin))] = False
    allowed[kept] = before
