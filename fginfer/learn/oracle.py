"""Structured oracles: where answers come from. The core decodes chains, trees, sets and projective parses itself;
anything else is a Python object with :meth:`Oracle.answer`: the MAP engine, matchings, or a user's own."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment

from fginfer.errors import DataError, SolverError
from fginfer.graph import FactorGraph
from fginfer.learn.data import Ints, Reals
from fginfer.learn.learner import Answers, Learner
from fginfer.solve import solve


class Oracle(Protocol):
    """Finds argmax over y of <w, phi_i(y)> + loss * loss_i(y), exactly or approximately."""

    def answer(self, learner: Learner, weights: Reals, example: int, loss: float) -> Ints: ...


def certifies(learner: Learner, oracle: Oracle | None) -> bool:
    """Whether answers are best answers, so that the losses seen are the losses. Label sets with interactions are
    decoded by local search, which is good enough to predict with, but proves nothing. A given oracle is trusted."""
    return oracle is not None or learner.decodes


def decode(
    learner: Learner, oracle: Oracle | None, weights: Reals, loss: float, examples: Ints | None = None
) -> Answers:
    """Answers to several examples from the core, or one by one from an oracle."""
    if oracle is None:
        return learner.decode(weights, loss, examples)
    parts = [
        np.asarray(oracle.answer(learner, weights, int(i), loss), np.int32)
        for i in (learner.everything if examples is None else examples)
    ]
    end = np.cumsum([len(p) for p in parts], dtype=np.int64)
    labels = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return Answers(np.ascontiguousarray(labels, np.int32), end, np.full(len(parts), np.nan))


class MapOracle:
    """Graphs with cycles through fginfer.solve: each example starts from its last answer.

    Training calls the oracle in a fixed order, so results are reproducible as long as the method is (limit it by
    ``max_iterations`` or ``gap``, not by time). Answers need not be optimal; then measured objectives are estimates.
    """

    def __init__(self, method: str | None = None, gap: float = 1e-6, **options: Any) -> None:
        self.method, self.gap, self.options = method, gap, options
        self._last: dict[tuple[int, int], Ints] = {}  # (learner, example) -> labels

    def answer(self, learner: Learner, weights: Reals, example: int, loss: float) -> Ints:
        graph = self.graph(learner, weights, example, loss)
        key = (id(learner), example)
        result = solve(
            graph, self.method, gap=self.gap, warm_start=self._last.get(key), trace=False, dual=False, **self.options
        )
        if result.labels is None:
            raise SolverError(f"example {example}: no labeling found ({result.status})")
        self._last[key] = result.labels
        return result.labels

    def graph(self, learner: Learner, weights: Reals, example: int, loss: float) -> FactorGraph:
        """The (loss-augmented) decoding problem of one example; labels that are not candidates are forbidden."""
        data, k = learner.data, learner.data.n_labels
        first, last = data.token_begin[example], data.token_begin[example + 1]
        scores = learner.token_scores(weights, example, loss)
        if data.choice_begin is not None and data.choice is not None:  # packed to the left: spread them out
            packed, scores = scores, np.full(scores.shape, -np.inf)
            for t in range(last - first):
                allowed = data.choice[data.choice_begin[first + t] : data.choice_begin[first + t + 1]]
                scores[t, allowed] = packed[t, : len(allowed)]
        if data.edge_begin is None or data.edge_u is None or data.edge_v is None:
            raise DataError("the MAP engine decodes problems with edge lists")
        b, e = data.edge_begin[example], data.edge_begin[example + 1]
        edges = np.column_stack([data.edge_u[b:e], data.edge_v[b:e]])
        tables = weights[k * data.rows.shape[1] :].reshape(-1, k, k)
        if data.edge_rows is not None:
            tables = np.tensordot(data.edge_rows[b:e].toarray(), tables, 1)
            return FactorGraph.from_arrays([k] * int(last - first), scores, edges, tables=tables)
        ids = np.zeros(len(edges), np.int64)
        return FactorGraph.from_arrays([k] * int(last - first), scores, edges, tables=tables, table_ids=ids)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": {}}  # warm starts belong to this process


class MatchingOracle:
    """Every token takes a different alternative (scipy's assignment). null: alternative 0 is free for all."""

    def __init__(self, null: bool = False) -> None:
        self.null = null

    def answer(self, learner: Learner, weights: Reals, example: int, loss: float) -> Ints:
        data = learner.data
        assert data.choice_begin is not None
        first, last = data.token_begin[example], data.token_begin[example + 1]
        counts = np.diff(data.choice_begin[first : last + 1])
        if (counts != counts[0]).any():
            raise DataError(f"example {example}: in a matching all tokens have the same alternatives")
        scores = learner.token_scores(weights, example, loss).reshape(len(counts), -1)
        if self.null:  # one private copy of the null alternative for each token
            private = np.full((len(counts), len(counts)), -1e18)
            np.fill_diagonal(private, scores[:, 0])
            scores = np.hstack([scores[:, 1:], private])
        elif len(counts) > counts[0]:
            raise DataError(f"example {example}: {len(counts)} tokens cannot take {counts[0]} different alternatives")
        _, column = linear_sum_assignment(-scores)
        if self.null:
            column = np.where(column < counts[0] - 1, column + 1, 0)
        return np.asarray(column, np.int32)
