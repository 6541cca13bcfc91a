"""Tables and vectors as sources. Every source answers single questions (argmax, best) and batches (ask)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.oracles import (
    BY_SCAN,
    BY_SEARCH,
    BY_SIZE,
    ModelSource,
    OracleHandle,
    RankingHandle,
    Updatable,
    whole_numbers,
)
from fginfer.errors import ModelError
from fginfer.graph import FactorGraph
from fginfer.sources.answers import (
    Answers,
    Argmax,
    Message,
    Messages,
    Questions,
    flat_state,
    flat_states,
    message_arrays,
    unpacked,
)

PATHS = {"auto": BY_SIZE, "scan": BY_SCAN, "search": BY_SEARCH}


def path_number(path: str) -> int:
    if path not in PATHS:
        raise ModelError(f"path must be one of {', '.join(PATHS)}, not {path!r}")
    return PATHS[path]


class Source:
    """What all sources share: threads that answer, and counters."""

    def __init__(self, threads: int) -> None:
        self._oracle = OracleHandle(threads)

    @property
    def calls(self) -> int:
        """Questions answered so far."""
        return self._oracle.work()["calls"]

    @property
    def touched(self) -> int:
        """Entries read so far: by walks along sorted lists, by bounds, by sorting, and by scans."""
        return self._oracle.work()["touched"]

    @property
    def work(self) -> dict[str, int]:
        """All counters: calls, scans (calls that looked at every state), touched, products (multiplications of inner
        products), unproven (answers of a search index that proves nothing)."""
        return self._oracle.work()


def _one(batch: Questions, oracle: OracleHandle, shape: Sequence[int]) -> list[Argmax]:
    answers = batch.ask(oracle)
    found = zip(np.atleast_1d(answers.states.ravel()), np.atleast_1d(answers.values.ravel()), strict=True)
    return [unpacked(int(state), float(value), shape) for state, value in found]


def _of(variable: int, shape: Sequence[int]) -> tuple[int, int]:
    """A variable of a factor, and how many labels it has."""
    if not 0 <= variable < len(shape):
        raise ModelError(f"there is no variable {variable} in a factor of {len(shape)}")
    return variable, shape[variable]


class GraphOracle(Source):
    """The oracles of the factors of a graph, in the order of `graph.factors()`. Live: answers are about the numbers the
    graph has when it is asked.

    >>> graph = FactorGraph([2, 3])
    >>> factor = graph.add_factor([0, 1], [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    >>> GraphOracle(graph).argmax(0, [{1: 1.5}, None])
    Argmax(state=(0, 0), value=1.0)
    """

    def __init__(self, graph: FactorGraph, threads: int = 1) -> None:
        super().__init__(threads)
        if not isinstance(graph, FactorGraph):
            raise ModelError(f"graph must be a FactorGraph, not {type(graph).__name__}")
        self._graph, self._shapes, self._counts = graph, [], (-1, -1)  # type: ignore[var-annotated]
        self._shape_of(0)

    def _shape_of(self, factor: int) -> tuple[int, ...]:
        graph = self._graph
        if self._counts != (graph.n_variables, graph.n_factors):
            self._shapes = [tuple(int(graph.cards[i]) for i in f.variables) for f in graph.factors()]
            self._counts = (graph.n_variables, graph.n_factors)
        return self._shapes[factor] if 0 <= factor < len(self._shapes) else ()

    def argmax(
        self,
        factor: int,
        messages: Sequence[Message] | None = None,
        *,
        excluded: Sequence[int] | None = None,
        hint: Sequence[int] | None = None,
    ) -> Argmax:
        """The best state of a factor other than `excluded`. A good `hint` saves work and changes nothing else."""
        return self.best(factor, 1, messages, excluded=excluded, hint=hint)[0]

    def scan(
        self, factor: int, messages: Sequence[Message] | None = None, *, excluded: Sequence[int] | None = None
    ) -> Argmax:
        """The same by a dense scan."""
        return self.best(factor, 1, messages, excluded=excluded, path="scan")[0]

    def best(
        self,
        factor: int,
        n: int,
        messages: Sequence[Message] | None = None,
        *,
        excluded: Sequence[int] | Iterable[Sequence[int]] | None = None,
        hint: Sequence[int] | None = None,
        path: str = "auto",
    ) -> list[Argmax]:
        """The n best states, best first, without the excluded one(s); ``Argmax(None, -inf)`` where there are fewer.
        path: "scan" and "search" force one way; "auto" takes the one that is faster at this size, and gives a search up
        that turns out to be slower: it never takes much longer than a scan."""
        shape = self._shape_of(factor)
        if not shape:
            raise ModelError(f"there is no factor {factor}; there are {len(self._shapes)}")
        source = ModelSource(self._graph.snapshot().handle)
        batch = Questions(source.source, 1, n, path_number(path))
        batch.messages(messages, len(shape))
        batch.excluded(flat_states(excluded, shape))
        batch.set("hint", flat_state(hint, shape))
        batch.set("factor", factor)
        return _one(batch, self._oracle, shape)

    def max_marginals(
        self, factor: int, variable: int, messages: Sequence[Message] | None = None
    ) -> NDArray[np.float64]:
        """What every label of a factor's variable (0, 1, ...: its place in the factor) has at best: the largest score
        of the states with this label, less the messages of the *other* variables; -inf where all are forbidden. Added
        up in an order of its own: equal to values of `best` up to rounding.

        >>> graph = FactorGraph([2, 3])
        >>> factor = graph.add_factor([0, 1], [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
        >>> GraphOracle(graph).max_marginals(0, 0, [None, {2: 1.5}]).tolist()
        [1.0, 0.5]
        """
        shape = self._shape_of(factor)
        if not shape:
            raise ModelError(f"there is no factor {factor}; there are {len(self._shapes)}")
        source = ModelSource(self._graph.snapshot().handle)
        batch = Questions(source.source, 1)
        batch.messages(messages, len(shape))
        batch.set("factor", factor)
        return batch.marginals(self._oracle, *_of(variable, shape))

    def ask(
        self,
        factors: ArrayLike,
        messages: Messages | None = None,
        *,
        excluded: ArrayLike | None = None,
        hints: ArrayLike | None = None,
        n_best: int = 1,
        path: str = "auto",
    ) -> Answers:
        """A batch: one question for each of `factors`, all with the same number of variables, shared by the threads.
        excluded and hints are flat states, one a question, -1 for none."""
        which = np.ascontiguousarray(whole_numbers("factors", factors, np.int64))
        arities = {len(self._shape_of(int(f))) for f in np.unique(which)}
        if 0 in arities or which.ndim != 1:
            raise ModelError(f"factors must be a flat array of numbers 0 to {len(self._shapes) - 1}")
        if len(arities) > 1:
            raise ModelError("the factors of a batch must have the same number of variables")
        source = ModelSource(self._graph.snapshot().handle)
        batch = Questions(source.source, len(which), n_best, path_number(path))
        batch.set("factor", which)
        batch.all_messages(messages, arities.pop() if arities else 2)
        batch.all_excluded(excluded)
        batch.set("hint", hints)
        return batch.ask(self._oracle)


class UpdatableTable(Source):
    """A pairwise score table, sparse and changing, that keeps its rows and columns in order.

    Point updates cost O(log K), scaling all entries O(1); memory is that of the non-zero entries. Tables of up to
    80 x 80 entries are arrays that are scanned, which is faster there; path="search" or "scan" decides otherwise. For
    the factor step of GDMM learning (gradient v(y) + rho * sum m), pass messages of value -rho * m and exclude the true
    state.

    >>> table = UpdatableTable((3, 3))
    >>> table.add([0, 2], [1, 2], [1.0, 0.5])
    >>> table.argmax([{0: 0.75}, None])
    Argmax(state=(2, 2), value=0.5)
    """

    def __init__(
        self, shape: tuple[int, int], values: ArrayLike | None = None, threads: int = 1, path: str = "auto"
    ) -> None:
        super().__init__(threads)
        if np.shape(shape) != (2,):
            raise ModelError(f"the shape of a table is (rows, columns), not {shape!r}")
        rows, cols = int(shape[0]), int(shape[1])
        given = None if values is None else np.ascontiguousarray(values, np.float64)
        if given is not None and given.shape != (rows, cols):
            raise ModelError(f"values must have the shape {(rows, cols)}, not {given.shape}")
        self._table = Updatable(rows, cols, given, path_number(path))
        self.shape = (rows, cols)

    def set(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> None:
        """Entries (rows[k], cols[k]) become values[k]."""
        self._table.update(False, rows, cols, values)

    def add(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> None:
        """Entries (rows[k], cols[k]) grow by values[k]; repeated entries grow repeatedly."""
        self._table.update(True, rows, cols, values)

    def scale(self, factor: float) -> None:
        """All entries times factor >= 0, at no cost: weight decay. Values set later are kept within rounding."""
        self._table.scale(factor)

    def __getitem__(self, at: tuple[int, int]) -> float:
        flat_state(at, self.shape)
        return self._table.get(at[0], at[1])

    def entries(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Rows, columns and values of the non-zero entries, in no particular order."""
        return self._table.entries()

    def to_array(self) -> NDArray[np.float64]:
        """The table as it is now."""
        dense = np.zeros(self.shape)
        r, c, v = self.entries()
        dense[r, c] = v
        return dense

    @property
    def memory(self) -> int:
        """Bytes held."""
        return self._table.memory()

    def argmax(
        self,
        messages: Sequence[Message] | None = None,
        *,
        excluded: Sequence[int] | None = None,
        hint: Sequence[int] | None = None,
    ) -> Argmax:
        """The best entry less its row's and its column's message."""
        return self.best(1, messages, excluded=excluded, hint=hint)[0]

    def best(
        self,
        n: int,
        messages: Sequence[Message] | None = None,
        *,
        excluded: Sequence[int] | Iterable[Sequence[int]] | None = None,
        hint: Sequence[int] | None = None,
        path: str = "auto",
    ) -> list[Argmax]:
        """The n best entries, best first."""
        batch = Questions(self._table.source, 1, n, path_number(path))
        batch.messages(messages, 2)
        batch.excluded(flat_states(excluded, self.shape))
        batch.set("hint", flat_state(hint, self.shape))
        return _one(batch, self._oracle, self.shape)

    def max_marginals(self, variable: int, messages: Sequence[Message] | None = None) -> NDArray[np.float64]:
        """What every row (variable 0) or column (1) has at best, less the messages of the other side."""
        batch = Questions(self._table.source, 1)
        batch.messages(messages, 2)
        return batch.marginals(self._oracle, *_of(variable, self.shape))

    def ask(
        self,
        n: int,
        messages: Messages | None = None,
        *,
        excluded: ArrayLike | None = None,
        hints: ArrayLike | None = None,
        n_best: int = 1,
        path: str = "auto",
    ) -> Answers:
        """A batch of n questions, shared by the threads; two messages each."""
        batch = Questions(self._table.source, n, n_best, path_number(path))
        batch.all_messages(messages, 2)
        batch.all_excluded(excluded)
        batch.set("hint", hints)
        return batch.ask(self._oracle)


class Ranking(Source):
    """A vector in descending order that changes; items can be taken off and put back.

    >>> ranking = Ranking([0.5, 2.0, 1.0], floor=0.0)
    >>> ranking.take(ranking.top()[0])
    True
    >>> ranking.top()
    (2, 1.0)
    """

    def __init__(self, values: ArrayLike, floor: float = -inf, threads: int = 1) -> None:
        super().__init__(threads)
        given = np.ascontiguousarray(values, np.float64)
        if given.ndim != 1:
            raise ModelError("a ranking is made from a flat array")
        self._ranking, self._n = RankingHandle(given, floor), len(given)

    def top(self) -> tuple[int, float] | None:
        """The item with the largest value, and the value; None if none is left above the floor."""
        return self._ranking.top()

    def take(self, item: int) -> bool:
        """Takes an item off; False if it was not there."""
        return self._ranking.take(item)

    def set(self, items: ArrayLike, values: ArrayLike) -> None:
        """items[k] get values[k], one item or several; puts those back that had been taken off."""
        numbers, given = np.atleast_1d(whole_numbers("items", items)), np.asarray(values, np.float64)
        if given.ndim and given.shape != numbers.shape:
            raise ModelError(f"{numbers.size} items need as many values, or one, not {given.size}")
        for item, value in zip(numbers.tolist(), np.broadcast_to(given, numbers.shape).tolist(), strict=True):
            self._ranking.set(item, value)

    def __getitem__(self, item: int) -> float:
        flat_state((item,), (self._n,))
        return self._ranking.get(item)

    def argmax(self, message: Message = None, *, excluded: int | None = None) -> Argmax:
        """The item with the largest value - message."""
        return self.best(1, message, excluded=None if excluded is None else [excluded])[0]

    def best(
        self, n: int, message: Message = None, *, excluded: Iterable[int] | None = None, path: str = "auto"
    ) -> list[Argmax]:
        """The n best items, best first."""
        if self._n == 0:
            return [Argmax(None, -inf)] * n
        batch = Questions(self._ranking.source, 1, n, path_number(path))
        batch.messages([message], 1)
        batch.excluded(flat_states(None if excluded is None else [(k,) for k in excluded], (self._n,)))
        return _one(batch, self._oracle, (self._n,))

    def ask(
        self,
        n: int,
        messages: Messages | None = None,
        *,
        excluded: ArrayLike | None = None,
        n_best: int = 1,
        path: str = "auto",
    ) -> Answers:
        """A batch of n questions, one message each."""
        batch = Questions(self._ranking.source, n, n_best, path_number(path))
        batch.all_messages(messages, 1)
        batch.all_excluded(excluded)
        return batch.ask(self._oracle)


def scores_argmax(
    scores: ArrayLike, message: Message = None, *, first: int = 0, step: int = 1, excluded: int | None = None
) -> Argmax:
    """The best label among first, first + step, ..., with scores[k] - message(label): one sampled part of the labels.

    >>> scores_argmax([0.5, 3.0], {4: 3.0}, first=1, step=3)
    Argmax(state=(1,), value=0.5)
    """
    given = np.array(scores, np.float64)
    if given.ndim != 1 or first < 0 or step < 1:
        raise ModelError("scores must be flat, first not negative and step at least 1")
    labels, values = message_arrays(message)
    here = (labels >= first) & ((labels - first) % step == 0) & (labels < first + step * len(given))
    given[(labels[here] - first) // step] -= values[here]
    if excluded is not None and excluded >= first and (excluded - first) % step == 0:
        given[(excluded - first) // step : (excluded - first) // step + 1] = -inf
    best = int(given.argmax()) if len(given) else 0
    if not len(given) or given[best] == -inf:
        return Argmax(None, -inf)
    return Argmax((first + step * best,), float(given[best]))
