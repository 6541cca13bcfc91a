"""Oracles: the message-augmented argmax over the states of one factor, at a cost far below the number of states.

    argmax over y of  theta(y) - sum_k delta_k(y_k)

Messages delta_k are sparse and signed: a dict {label: value} (labels that are not listed have 0), a pair of arrays
(labels ascending, values), or None. Answers are exact; ties go to the lowest state in the order of a C array (the last
variable fastest); the value is ((theta - delta_1) - delta_2) - ..., bit for bit what a dense scan computes.

GraphOracle      the factors of a FactorGraph: dense tables of any arity, Potts, truncated differences
UpdatableTable   a pairwise table that changes at a few entries at a time, for learning
Ranking          a vector that changes: one unary factor, or one value per binary factor (the joint oracle)
scores_argmax    scores computed on the spot, all of them or every k-th
ReferenceTable   the pairwise oracle in plain Python on sorted lists: what the others are tested against
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sortedcontainers import SortedList

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import ModelError
from fginfer.graph import FactorGraph

Message = Mapping[int, float] | tuple[ArrayLike, ArrayLike] | None


class Argmax(NamedTuple):
    """The best state (one label per variable; None if all are forbidden or excluded) and its value (-inf then)."""

    state: tuple[int, ...] | None
    value: float


def _arrays(message: Message) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    if message is None:
        return np.zeros(0, np.int32), np.zeros(0)
    if isinstance(message, Mapping):
        order = sorted(message)
        return np.array(order, np.int32), np.array([message[a] for a in order], np.float64)
    labels, values = (np.ascontiguousarray(message[0], np.int32), np.ascontiguousarray(message[1], np.float64))
    if labels.ndim != 1 or labels.shape != values.shape:
        raise ModelError("a message needs as many values as labels")
    return labels, values


class _Messages:
    """fgi_message structs, and the arrays they point into."""

    def __init__(self, messages: Sequence[Message] | None, n: int) -> None:
        if messages is not None and len(messages) != n:
            raise ModelError(f"{n} messages are needed, one per variable, not {len(messages)}")
        self.keep = [_arrays(m) for m in messages] if messages is not None else []
        self.pointer = ffi.new("fgi_message[]", n) if messages is not None else ffi.NULL
        for k, (labels, values) in enumerate(self.keep):
            self.pointer[k].n, self.pointer[k].labels, self.pointer[k].values = (
                len(labels),
                pointer(labels),
                pointer(values),
            )


class _Scratch:
    """Working memory and counters of one oracle object. Not to be shared between threads."""

    def __init__(self, max_card: int, max_arity: int) -> None:
        handle = lib.fgi_oracle_scratch_create(max_card, max_arity)
        if handle == ffi.NULL:
            raise MemoryError("out of memory")
        self._scratch = ffi.gc(handle, lib.fgi_oracle_scratch_free)

    @property
    def calls(self) -> int:
        """Questions answered so far."""
        return int(lib.fgi_oracle_calls(self._scratch))

    @property
    def touched(self) -> int:
        """Entries read so far: by walks along sorted lists, by bounds, and by sorting."""
        return int(lib.fgi_oracle_touched(self._scratch))


def _flat(state: Sequence[int] | None, shape: Sequence[int]) -> int:
    if state is None:
        return -1
    if len(state) != len(shape) or any(not 0 <= a < n for a, n in zip(state, shape, strict=True)):
        raise ModelError(f"there is no state {tuple(state)} in a table of shape {tuple(shape)}")
    return int(np.ravel_multi_index(tuple(state), tuple(shape)))


def _answer(out: Any, shape: Sequence[int]) -> Argmax:
    if out.state < 0:
        return Argmax(None, -inf)
    return Argmax(tuple(int(a) for a in np.unravel_index(int(out.state), tuple(shape))), float(out.value))


class GraphOracle(_Scratch):
    """The oracles of the factors of a graph (in the order of `graph.factors()`), with the numbers it has now.

    >>> graph = FactorGraph([2, 3])
    >>> graph.add_factor([0, 1], [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    >>> GraphOracle(graph).argmax(0, [{1: 1.5}, None])
    Argmax(state=(0, 0), value=1.0)
    """

    def __init__(self, graph: FactorGraph) -> None:
        self._model = graph.snapshot().handle
        self._shapes = [tuple(int(graph.cards[i]) for i in f.variables) for f in graph.factors()]
        super().__init__(max(graph.max_labels, 1), max(map(len, self._shapes), default=2))

    def argmax(
        self,
        factor: int,
        messages: Sequence[Message] | None = None,
        *,
        excluded: Sequence[int] | None = None,
        hint: Sequence[int] | None = None,
    ) -> Argmax:
        """The best state of a factor other than `excluded`. A good `hint` saves work and changes nothing else."""
        return self._ask(factor, messages, excluded, hint, 0)

    def scan(
        self, factor: int, messages: Sequence[Message] | None = None, *, excluded: Sequence[int] | None = None
    ) -> Argmax:
        """The same by a dense scan."""
        return self._ask(factor, messages, excluded, None, 1)

    def _ask(
        self,
        factor: int,
        messages: Sequence[Message] | None,
        excluded: Sequence[int] | None,
        hint: Sequence[int] | None,
        scan: int,
    ) -> Argmax:
        if not 0 <= factor < len(self._shapes):
            raise ModelError(f"there is no factor {factor}; there are {len(self._shapes)}")
        shape = self._shapes[factor]
        given = _Messages(messages, len(shape))
        out, error = ffi.new("fgi_argmax *"), new_error()
        skip, try_first = _flat(excluded, shape), _flat(hint, shape)
        rc = lib.fgi_model_argmax(self._model, factor, given.pointer, skip, try_first, scan, self._scratch, out, error)
        check(rc, error, bad_argument=ModelError)
        return _answer(out, shape)


class UpdatableTable(_Scratch):
    """A pairwise score table, sparse and changing, that keeps its rows and columns in order.

    Point updates cost O(log K); memory is that of the non-zero entries. For the factor step of GDMM learning
    (gradient v(y) + rho * sum m), pass messages of value -rho * m and exclude the true state.

    >>> table = UpdatableTable((3, 3))
    >>> table.add([0, 2], [1, 2], [1.0, 0.5])
    >>> table.argmax([{0: 0.75}, None])
    Argmax(state=(2, 2), value=0.5)
    """

    def __init__(self, shape: tuple[int, int], values: ArrayLike | None = None) -> None:
        rows, cols = int(shape[0]), int(shape[1])
        super().__init__(max(rows, cols, 1), 2)
        given = None if values is None else np.ascontiguousarray(values, np.float64)
        if given is not None and given.shape != (rows, cols):
            raise ModelError(f"values must have the shape {(rows, cols)}, not {given.shape}")
        out, error = ffi.new("fgi_updatable **"), new_error()
        check(lib.fgi_updatable_create(rows, cols, pointer(given), out, error), error, bad_argument=ModelError)
        self._table = ffi.gc(out[0], lib.fgi_updatable_free)
        self.shape = (rows, cols)

    def set(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> None:
        """Entries (rows[k], cols[k]) become values[k]."""
        self._update(lib.fgi_updatable_set, rows, cols, values)

    def add(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> None:
        """Entries (rows[k], cols[k]) grow by values[k]; repeated entries grow repeatedly."""
        self._update(lib.fgi_updatable_add, rows, cols, values)

    def _update(self, function: Any, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> None:
        given = np.broadcast_arrays(
            np.atleast_1d(np.asarray(rows, np.int32)), np.asarray(cols, np.int32), np.asarray(values, np.float64)
        )
        r, c, v = (np.ascontiguousarray(a) for a in given)
        if r.ndim != 1:
            raise ModelError("rows, cols and values must be flat")
        error = new_error()
        check(function(self._table, len(r), pointer(r), pointer(c), pointer(v), error), error, bad_argument=ModelError)

    def __getitem__(self, at: tuple[int, int]) -> float:
        _flat(at, self.shape)
        return float(lib.fgi_updatable_get(self._table, at[0], at[1]))

    def entries(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Rows, columns and values of the non-zero entries, in no particular order."""
        n = int(lib.fgi_updatable_entries(self._table, 0, ffi.NULL, ffi.NULL, ffi.NULL))
        r, c, v = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n)
        lib.fgi_updatable_entries(self._table, n, pointer(r), pointer(c), pointer(v))
        return r, c, v

    def to_array(self) -> NDArray[np.float64]:
        dense = np.zeros(self.shape)
        r, c, v = self.entries()
        dense[r, c] = v
        return dense

    @property
    def memory(self) -> int:
        """Bytes held."""
        return int(lib.fgi_updatable_memory(self._table))

    def argmax(
        self,
        messages: Sequence[Message] | None = None,
        *,
        excluded: Sequence[int] | None = None,
        hint: Sequence[int] | None = None,
    ) -> Argmax:
        """The best entry less its row's and its column's message."""
        given = _Messages(messages, 2)
        out, error = ffi.new("fgi_argmax *"), new_error()
        skip, try_first = _flat(excluded, self.shape), _flat(hint, self.shape)
        rc = lib.fgi_updatable_argmax(self._table, given.pointer, skip, try_first, self._scratch, out, error)
        check(rc, error, bad_argument=ModelError)
        return _answer(out, self.shape)


class Ranking(_Scratch):
    """A vector in descending order that changes; items can be taken off and put back.

    >>> ranking = Ranking([0.5, 2.0, 1.0], floor=0.0)
    >>> ranking.take(ranking.top()[0])
    True
    >>> ranking.top()
    (2, 1.0)
    """

    def __init__(self, values: ArrayLike, floor: float = -inf) -> None:
        given = np.ascontiguousarray(values, np.float64)
        if given.ndim != 1:
            raise ModelError("a ranking is made from a flat array")
        super().__init__(1, 2)
        out, error = ffi.new("fgi_ranking **"), new_error()
        check(lib.fgi_ranking_create(len(given), pointer(given), floor, out, error), error, bad_argument=ModelError)
        self._ranking = ffi.gc(out[0], lib.fgi_ranking_free)

    def top(self) -> tuple[int, float] | None:
        """The item with the largest value, and the value; None if none is left above the floor."""
        value = ffi.new("double *")
        item = int(lib.fgi_ranking_top(self._ranking, value))
        return None if item < 0 else (item, float(value[0]))

    def take(self, item: int) -> bool:
        """Takes an item off; False if it was not there."""
        return bool(lib.fgi_ranking_take(self._ranking, item))

    def set(self, item: int, value: float) -> None:
        """A new value; puts the item back if it had been taken off."""
        error = new_error()
        check(lib.fgi_ranking_set(self._ranking, item, value, error), error, bad_argument=ModelError)

    def argmax(self, message: Message = None, *, excluded: int | None = None) -> Argmax:
        """The item with the largest value - message."""
        given = _Messages([message], 1)
        out, error = ffi.new("fgi_argmax *"), new_error()
        skip = -1 if excluded is None else excluded
        rc = lib.fgi_ranking_argmax(self._ranking, given.pointer, skip, self._scratch, out, error)
        check(rc, error, bad_argument=ModelError)
        return Argmax(None, -inf) if out.state < 0 else Argmax((int(out.state),), float(out.value))


def scores_argmax(
    scores: ArrayLike, message: Message = None, *, first: int = 0, step: int = 1, excluded: int | None = None
) -> Argmax:
    """The best label among first, first + step, ..., with scores[k] - message(label): one sampled part of the labels.

    >>> scores_argmax([0.5, 3.0], {4: 3.0}, first=1, step=3)
    Argmax(state=(1,), value=0.5)
    """
    given, messages = np.ascontiguousarray(scores, np.float64), _Messages([message], 1)
    if given.ndim != 1:
        raise ModelError("scores must be flat")
    out, error = ffi.new("fgi_argmax *"), new_error()
    skip = -1 if excluded is None else excluded
    rc = lib.fgi_scores_argmax(pointer(given), len(given), first, step, messages.pointer, skip, out, error)
    check(rc, error, bad_argument=ModelError)
    return Argmax(None, -inf) if out.state < 0 else Argmax((int(out.state),), float(out.value))


class ReferenceTable:
    """The pairwise oracle as appendix C-1 of the GDMM paper has it, on sorted lists, in plain Python."""

    def __init__(self, values: ArrayLike) -> None:
        self._values = np.array(values, np.float64)
        rows, cols = self._values.shape
        # Keys sort by descending score, then ascending (row, column); -inf entries are in no list.
        self._whole: Any = SortedList()
        self._row: list[Any] = [SortedList() for _ in range(rows)]
        self._col: list[Any] = [SortedList() for _ in range(cols)]
        for a in range(rows):
            for b in range(cols):
                self._enter(a, b)

    def _enter(self, a: int, b: int) -> None:
        theta = float(self._values[a, b])
        if theta > -inf:
            for sorted_list in (self._whole, self._row[a], self._col[b]):
                sorted_list.add((-theta, a, b))

    def set(self, a: int, b: int, value: float) -> None:
        old = float(self._values[a, b])
        if old > -inf:
            for sorted_list in (self._whole, self._row[a], self._col[b]):
                sorted_list.remove((-old, a, b))
        self._values[a, b] = value
        self._enter(a, b)

    def argmax(
        self,
        messages: Sequence[Mapping[int, float]],
        *,
        excluded: Sequence[int] | None = None,
        weight: float = 1.0,
    ) -> Argmax:
        """The best of the four regions: both labels have a message, one of them has, neither has."""
        first, second = messages
        skip = None if excluded is None else tuple(excluded)

        def candidates(sorted_list: Any, delta: float, side: int | None) -> Iterator[tuple[float, int, int]]:
            """Entries without a message on the other side(s), down to the first value below the best of them."""
            best = -inf
            for minus, a, b in sorted_list:
                value = weight * -minus - delta
                if value < best:
                    return
                if (side != 0 and a in first) or (side != 1 and b in second) or (a, b) == skip:
                    continue
                best = value
                yield -value, a, b

        found = list(candidates(self._whole, 0.0, None))
        for a, delta in first.items():
            found += candidates(self._row[a], delta, 0)
            found += [
                (-((weight * float(self._values[a, b]) - delta) - other), a, b)
                for b, other in second.items()
                if self._values[a, b] > -inf and (a, b) != skip
            ]
        for b, delta in second.items():
            found += candidates(self._col[b], delta, 1)
        if not found:
            return Argmax(None, -inf)
        minus, a, b = min(found)
        return Argmax((a, b), -minus)
