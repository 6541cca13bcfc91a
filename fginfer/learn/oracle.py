"""Structured oracles: where answers come from. The core decodes chains, trees, sets and projective parses itself;
anything else is a Python object with :meth:`Oracle.answer`: the MAP engine, matchings, or a user's own."""

from __future__ import annotations

from math import inf
from typing import Any, Protocol
from weakref import ReferenceType, ref

import numpy as np
from scipy.optimize import linear_sum_assignment

from fginfer.core import clock
from fginfer.core.learn import Edges, Kind
from fginfer.errors import DataError, SolverError
from fginfer.graph import FactorGraph
from fginfer.learn.data.examples import Encoded, Ints, Reals
from fginfer.learn.learner import Decoded, Learner, fits
from fginfer.learn.run.interrupts import OutOfTime, interruptible, look
from fginfer.learn.set_graph import SetGraph
from fginfer.result import Result
from fginfer.solve import solve

CHUNK = 64  # examples between two looks at the clock
SEARCHED = 256  # labels of sets up to which search trees measure what local search decodes (chosen)
NODES = 20_000  # nodes of such a tree; after them its bound counts (chosen)


class Oracle(Protocol):
    """Finds argmax over y of <w, phi_i(y)> + loss * loss_i(y), exactly or approximately.

    An answer is a list of whole numbers: for each token the place of its label in ``classes_`` (or the alternative it
    takes), or the ascending places of the labels that are on. `learner` has what there is to know: its ``data``,
    ``token_scores(weights, example, loss)``, ``score(weights, example, answer)``. Labels without transitions::

        class Independent:
            def answer(self, learner, weights, example, loss):
                return learner.token_scores(weights, example, loss).argmax(axis=1)

        StructuredSVM(model="chain", pairwise=False, oracle=Independent())

    An oracle may have more: `exact`, False if its answers need not be best ones (no objective is then claimed); or
    `slack`, how far its last answer may be from the best (objectives are then measured with it, from above);
    `deadline`, at which it raises OutOfTime; `check(data)`, which refuses data before training; `export()` and
    `restore(arrays)`, so that a checkpoint keeps what it remembers."""

    def answer(self, learner: Learner, weights: Reals, example: int, loss: float) -> Ints:
        """The labels with the highest score plus `loss` times their loss."""
        ...


def certifies(learner: Learner, oracle: Oracle | None) -> bool:
    """Whether answers are best answers, so that the losses seen are the losses. Label sets with interactions are
    decoded by local search, which is good enough to predict with, but proves nothing. A given oracle is trusted."""
    return learner.decodes if oracle is None else bool(getattr(oracle, "exact", True))


def measured_by(learner: Learner, oracle: Oracle | None) -> tuple[bool, Oracle | None]:
    """(whether objectives can be measured, by which oracle): the solver's own if its answers are best ones. Label sets
    with interactions that local search decodes are measured by search trees, which say how far they may be off."""
    if certifies(learner, oracle):
        return True, oracle
    if oracle is None and learner.data.kind == Kind.SETS and learner.data.n_labels <= SEARCHED:
        return True, MapOracle("bnb", max_iterations=NODES)
    return False, oracle


def ask(learner: Learner, oracle: Oracle, weights: Reals, loss: float, example: int) -> tuple[Ints, float]:
    """One answer of an oracle, checked, and its slack."""
    before = learner.count()
    with interruptible():
        found = oracle.answer(learner, weights, example, loss)
    learner.count(before + 1 - learner.count())  # it may have asked the core, too
    try:
        answer = np.asarray(found)
        if answer.ndim != 1 or (answer.size and answer.dtype.kind not in "iu"):
            raise ValueError
    except (TypeError, ValueError):
        raise DataError(
            f"example {example}: the oracle must give a list of whole numbers, not {type(found).__name__} {found!r}"
        ) from None
    return np.ascontiguousarray(answer, np.int32), float(getattr(oracle, "slack", 0.0))


def decode(learner: Learner, oracle: Oracle | None, weights: Any, loss: float, examples: Ints | None = None) -> Decoded:
    """Answers to several examples from the core, or one by one from an oracle."""
    if oracle is None:
        return learner.decode(weights, loss, examples)
    found = [
        ask(learner, oracle, weights, loss, int(i)) for i in (learner.everything if examples is None else examples)
    ]
    end = np.cumsum([len(answer) for answer, _ in found], dtype=np.int64)
    labels = np.concatenate([answer for answer, _ in found]) if found else np.zeros(0, np.int32)
    return Decoded(labels, end, np.full(len(found), np.nan), np.array([slack for _, slack in found]))


def losses(learner: Learner, oracle: Oracle | None, weights: Any, deadline: float = inf) -> Reals:
    """The structured hinge losses H_i(w), or upper bounds on them; OutOfTime when the deadline comes first."""
    parts = []
    for start in range(0, learner.data.n_examples, CHUNK):
        examples = learner.everything[start : start + CHUNK]
        for few in [examples] if oracle is None else np.split(examples, len(examples)):
            answers = decode(learner, oracle, weights, 1.0, few)
            # an approximate oracle may do worse than the truth, whose loss is 0
            parts.append(np.maximum(learner.hinges(weights, answers, few), 0.0) + answers.slack)
            look(deadline)
    return np.concatenate(parts)


def edges_of(data: Encoded, example: int) -> tuple[Any, Any]:
    """(pairs of tokens, rows of pairwise features or None) of one example."""
    length = int(data.token_begin[example + 1] - data.token_begin[example])
    if data.edges == Edges.CHAIN:
        begin, count = int(data.token_begin[example]) - example, length - 1
        pairs = np.column_stack([np.arange(count), np.arange(1, length)])
    elif (
        data.edges == Edges.LIST and data.edge_begin is not None and data.edge_u is not None and data.edge_v is not None
    ):
        begin, count = int(data.edge_begin[example]), int(data.edge_begin[example + 1] - data.edge_begin[example])
        pairs = np.column_stack([data.edge_u[begin : begin + count], data.edge_v[begin : begin + count]])
    else:
        begin, count, pairs = 0, 0, np.zeros((0, 2), np.int64)
    return pairs, None if data.edge_rows is None else data.edge_rows[begin : begin + count]


class MapOracle:
    """Any problem with labels or label sets through fginfer.solve: each example starts from its last answer, and with
    a method that has messages (gdmm, trws, ...) from its last messages. The estimators take it for graphs with cycles.

    Training calls the oracle in a fixed order, so results are reproducible as long as the method is (limit it by
    ``max_iterations`` or ``gap``, not by time). Answers need not be optimal: objectives are then measured with the
    bounds of the engine. Graphs are kept between calls, as far as they fit into `keep_bytes`, and get new numbers;
    label sets share one.

    >>> from fginfer.learn import StructuredSVM
    >>> X, y = [[[0.0], [1.0]], [[1.0], [0.0]]], [["a", "b"], ["b", "a"]]
    >>> StructuredSVM(oracle=MapOracle("trws", max_iterations=50)).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self, method: str | None = None, gap: float = 1e-6, *, keep_bytes: int = 1 << 28, **options: Any
    ) -> None:
        self.method, self.gap, self.keep_bytes, self.options = method, gap, keep_bytes, options
        self.slack, self.deadline = 0.0, inf
        self._last: dict[int, Ints] = {}  # the last answers to the examples of one learner
        self._messages: dict[int, Reals] = {}  # and the last messages, where the method has any
        self._graphs: dict[int, FactorGraph] = {}
        self._sets: SetGraph | None = None
        self._pairs: Ints | None = None  # pairs of label sets, from a checkpoint
        self._kept = 0  # bytes of graphs and messages
        self._learner: ReferenceType[Learner] | None = None

    def answer(self, learner: Learner, weights: Reals, example: int, loss: float) -> Ints:
        """The labels with the highest score plus `loss` times their loss."""
        if self._learner is None or self._learner() is not learner:
            if self._learner is not None:
                self._last, self._messages, self._pairs = {}, {}, None
            self._graphs, self._sets, self._kept = {}, None, sum(m.nbytes for m in self._messages.values())
            self._learner = ref(learner)
        graph, options = self._present_graph(learner, weights, example, loss), dict(self.options)
        left = self.deadline - clock.now()
        if left < options.get("time_limit", inf):
            options["time_limit"] = max(0.0, left)
        result = solve(graph, self.method, gap=self.gap, warm_start=self._start(example), trace=False, **options)
        if clock.now() >= self.deadline and result.status == "time_limit":
            raise OutOfTime
        if result.labels is None or result.score is None:
            raise SolverError(f"example {example}: no labeling found ({result.status})")
        self._last[example] = labels = result.labels
        self._keep_messages(example, result.messages)
        bound = inf if result.bound is None else result.bound
        self.slack = max(0.0, bound - result.score) if result.status != "optimal" else 0.0
        return labels if learner.data.kind == Kind.LABELS else np.flatnonzero(labels).astype(np.int32)

    def _start(self, example: int) -> Result | Ints | None:
        labels, messages = self._last.get(example), self._messages.get(example)
        if labels is None or messages is None:
            return labels
        if self._sets is not None:  # pairs that had no weight then have no messages yet
            if len(messages) > self._sets.n_messages:
                return labels
            messages = np.concatenate([messages, np.zeros(self._sets.n_messages - len(messages))])
        return Result("", "running", labels, None, None, 0, 0.0, 0.0, 1, 0, messages=messages)

    def _keep_messages(self, example: int, messages: Reals | None) -> None:
        if messages is None or (example not in self._messages and self._kept + messages.nbytes > self.keep_bytes):
            return
        self._kept += messages.nbytes if example not in self._messages else 0
        self._messages[example] = messages

    def _present_graph(self, learner: Learner, weights: Reals, example: int, loss: float) -> FactorGraph:
        if learner.data.kind == Kind.SETS:
            return self._set_graph(learner, weights, example, loss)
        graph = self._graphs.get(example)
        if graph is not None:
            self._renumber(graph, learner, weights, example, loss)
            return graph
        graph = self.graph(learner, weights, example, loss)
        size = graph.model.memory
        if self._kept + size <= self.keep_bytes:
            self._graphs[example] = graph
            self._kept += size
        return graph

    def _set_graph(self, learner: Learner, weights: Reals, example: int, loss: float) -> FactorGraph:
        data, k = learner.data, learner.data.n_labels
        if self._sets is None:
            self._sets = SetGraph(k, self._pairs)
        pairs = None if data.edges == Edges.NONE else weights[k * data.rows.shape[1] :].reshape(-1, k, k)[0]
        return self._sets.present(self._scores(learner, weights, example, loss)[0], pairs)

    def _renumber(self, graph: FactorGraph, learner: Learner, weights: Reals, example: int, loss: float) -> None:
        """The numbers of now in a graph made earlier."""
        graph.set_unaries(self._scores(learner, weights, example, loss).ravel())
        for k, table in enumerate(self._tables(learner, weights, example)):
            graph.set_table(k, table)

    def export(self) -> dict[str, Any]:
        """Last answers and messages, for checkpoints."""
        known, dual = sorted(self._last), sorted(self._messages)
        labels, messages = [self._last[i] for i in known], [self._messages[i] for i in dual]
        return {
            "examples": np.array(known, np.int64),
            "sizes": np.array([len(x) for x in labels], np.int64),
            "labels": np.concatenate(labels).astype(np.int32) if labels else np.zeros(0, np.int32),
            "message_examples": np.array(dual, np.int64),
            "message_sizes": np.array([len(m) for m in messages], np.int64),
            "messages": np.concatenate(messages) if messages else np.zeros(0),
            "pairs": np.zeros(0, np.int64) if self._sets is None else self._sets.pairs.ravel(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Takes what `export` gave for a checkpoint."""

        def parts(examples: str, sizes: str, values: str) -> dict[int, Any]:
            known = saved.get(examples, np.zeros(0, np.int64))
            lengths = fits(sizes, saved.get(sizes, known), len(known))
            pieces = np.split(fits(values, saved.get(values, np.zeros(0)), lengths.sum()), np.cumsum(lengths)[:-1])
            return dict(zip(known.tolist(), pieces if len(known) else (), strict=True))

        self._last = parts("examples", "sizes", "labels")
        self._messages = parts("message_examples", "message_sizes", "messages")
        pairs = np.asarray(saved.get("pairs", np.zeros(0, np.int64)))
        self._pairs = fits("pairs", pairs, pairs.size // 2 * 2, np.int64)
        self._graphs, self._sets, self._learner = {}, None, None

    def check(self, data: Encoded) -> None:
        """Refuses what it cannot decode."""
        if data.kind == Kind.CHOICES:
            raise DataError("the MAP engine decodes tokens with labels and label sets, not choices")

    def graph(self, learner: Learner, weights: Reals, example: int, loss: float) -> FactorGraph:
        """The (loss-augmented) decoding problem of one example; labels that are not candidates are forbidden. A label
        set is a binary variable for each label."""
        data, k = learner.data, learner.data.n_labels
        scores = self._scores(learner, weights, example, loss)
        if data.kind == Kind.SETS:
            pairs = None if data.edges == Edges.NONE else weights[k * data.rows.shape[1] :].reshape(-1, k, k)[0]
            return SetGraph(k).present(scores[0], pairs)
        cards, (edges, rows) = [k] * len(scores), edges_of(data, example)
        if not len(edges):
            return FactorGraph.from_arrays(cards, scores)
        tables = self._tables(learner, weights, example)
        more: dict[str, Any] = {}
        if rows is None:
            more = {"table_ids": np.zeros(len(edges), np.int64)}
        elif (np.diff(rows.indptr) == 1).all():  # types: the tables stay shared
            more = {"table_ids": rows.indices.astype(np.int64), "weights": rows.data}
        return FactorGraph.from_arrays(cards, scores, edges, tables=tables, **more)

    def _scores(self, learner: Learner, weights: Reals, example: int, loss: float) -> Reals:
        """Token scores, -inf for labels that are no candidates."""
        data = learner.data
        scores: Reals = learner.token_scores(weights, example, loss)
        if data.choice_begin is None or data.choice is None or data.kind != Kind.LABELS:
            return scores
        first = data.token_begin[example]  # packed to the left: spread them out
        spread = np.full(scores.shape, -np.inf)
        for t in range(len(scores)):
            allowed = data.choice[data.choice_begin[first + t] : data.choice_begin[first + t + 1]]
            spread[t, allowed] = scores[t, : len(allowed)]
        return spread

    def _tables(self, learner: Learner, weights: Reals, example: int) -> Any:
        """The tables of the example's graph: one for each pairwise feature, or one for each edge with several."""
        data, k = learner.data, learner.data.n_labels
        edges, rows = edges_of(data, example)
        if not len(edges):
            return ()
        tables = weights[k * data.rows.shape[1] :].reshape(-1, k, k)
        if rows is None:
            return tables[:1]
        return tables if (np.diff(rows.indptr) == 1).all() else np.tensordot(rows.toarray(), tables, 1)

    def __getstate__(self) -> dict[str, Any]:  # warm starts and graphs belong to this process
        nothing: dict[str, Any] = {
            "_last": {},
            "_messages": {},
            "_graphs": {},
            "_sets": None,
            "_pairs": None,
            "_learner": None,
        }
        return {**self.__dict__, **nothing, "_kept": 0}


class MatchingOracle:
    """Every token takes a different alternative (scipy's assignment). null: alternative 0 is free for all.

    >>> from fginfer.learn import Choices, StructuredSVM
    >>> pairs = Choices([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], counts=[2, 2])  # each with both alternatives
    >>> svm = StructuredSVM("choices", oracle=MatchingOracle()).fit([pairs], [[0, 1]])
    >>> svm.predict([pairs])[0].tolist()
    [0, 1]
    """

    def __init__(self, null: bool = False) -> None:
        self.null = null

    def check(self, data: Encoded) -> None:
        """Whether the true answers are matchings."""
        assert data.choice_begin is not None
        for i in range(data.n_examples):
            first, last = data.token_begin[i], data.token_begin[i + 1]
            counts = np.diff(data.choice_begin[first : last + 1])
            if (counts != counts[0]).any():
                raise DataError(f"example {i}: in a matching all tokens have the same alternatives")
            if not self.null and len(counts) > counts[0]:
                raise DataError(f"example {i}: {len(counts)} tokens cannot take {counts[0]} different alternatives")
            taken = data.truth[first:last]
            taken = taken[taken > 0] if self.null else taken
            if len(np.unique(taken)) != len(taken):
                raise DataError(f"example {i}: two tokens take the same alternative")

    def answer(self, learner: Learner, weights: Reals, example: int, loss: float) -> Ints:
        """The labels with the highest score plus `loss` times their loss."""
        data = learner.data
        assert data.choice_begin is not None
        first, last = data.token_begin[example], data.token_begin[example + 1]
        counts = np.diff(data.choice_begin[first : last + 1])
        if (counts != counts[0]).any() or (not self.null and len(counts) > counts[0]):
            raise DataError(f"example {example}: in a matching tokens share their alternatives, at least one for each")
        scores = learner.token_scores(weights, example, loss).reshape(len(counts), -1)
        if self.null:  # one private copy of the null alternative for each token
            private = np.full((len(counts), len(counts)), -1e18)
            np.fill_diagonal(private, scores[:, 0])
            scores = np.hstack([scores[:, 1:], private])
        _, column = linear_sum_assignment(-scores)
        if self.null:
            column = np.where(column < counts[0] - 1, column + 1, 0)
        return np.asarray(column, np.int32)
