"""What goes into a question and what comes out: messages, states, answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.oracles import ANSWER, MESSAGE, QUERY, OracleHandle, address, whole_numbers
from fginfer.errors import ModelError

Message = Mapping[int, float] | tuple[ArrayLike, ArrayLike] | None


class Argmax(NamedTuple):
    """The best state (one label per variable; None if all are forbidden or excluded) and its value (-inf then)."""

    state: tuple[int, ...] | None
    value: float


class Answers(NamedTuple):
    """Answers to a batch: flat indices of the states (-1: there is none) and their values, a row for each question
    where several best states were asked for."""

    states: NDArray[np.int64]
    values: NDArray[np.float64]


class Messages(NamedTuple):
    """The messages of a batch, one after the other: message j (of variable k of question q: j = q * variables + k) has
    labels[begin[j]:begin[j+1]], ascending, with those values."""

    begin: ArrayLike
    labels: ArrayLike
    values: ArrayLike


def message_arrays(message: Message) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    if message is None:
        return np.zeros(0, np.int32), np.zeros(0)
    if isinstance(message, Mapping):
        order = sorted(message)
        return whole_numbers("labels", order), np.array([message[a] for a in order], np.float64)
    if isinstance(message, str) or len(message) != 2:
        raise ModelError("a message is a dict {label: value}, a pair (labels, values) or None")
    labels = np.ascontiguousarray(whole_numbers("labels", message[0]))
    values = np.ascontiguousarray(message[1], np.float64)
    if labels.ndim != 1 or labels.shape != values.shape:
        raise ModelError("a message needs as many values as labels")
    return labels, values


def flat_state(state: Sequence[int] | None, shape: Sequence[int]) -> int:
    if state is None:
        return -1
    if np.shape(state) != (len(shape),) or any(not 0 <= a < n for a, n in zip(state, shape, strict=True)):
        raise ModelError(f"there is no state {tuple(state)} in a table of shape {tuple(shape)}")
    return int(np.ravel_multi_index(tuple(state), tuple(shape)))


def flat_states(states: Sequence[int] | Iterable[Sequence[int]] | None, shape: Sequence[int]) -> NDArray[np.int64]:
    """One state or several, as ascending flat indices."""
    if states is None:
        return np.zeros(0, np.int64)
    given = list(states)
    several: list[Any] = [given] if given and np.isscalar(given[0]) else given
    return np.unique(np.array([flat_state(s, shape) for s in several], np.int64))


def unpacked(state: int, value: float, shape: Sequence[int]) -> Argmax:
    if state < 0:
        return Argmax(None, -inf)
    return Argmax(tuple(int(a) for a in np.unravel_index(state, tuple(shape))), float(value))


def _plain(name: str, given: ArrayLike, dtype: Any, length: int) -> NDArray[Any]:
    numbers = given if dtype == np.float64 else whole_numbers(name, given, dtype)
    array = np.ascontiguousarray(numbers, dtype)
    if array.shape != (length,):
        raise ModelError(f"{name} must be a flat array of {length} numbers, not of shape {array.shape}")
    return array


class Questions:
    """Questions as the core takes them, and the arrays they point into."""

    def __init__(self, source: int, n: int, n_best: int = 1, path: int = 0) -> None:
        if n_best < 1:
            raise ModelError(f"n_best must be 1 or more, not {n_best}")
        if n < 0:
            raise ModelError(f"there cannot be {n} questions")
        self.queries = np.zeros(n, QUERY)
        self.queries["source"], self.queries["hint"] = source, -1
        self.queries["n_best"], self.queries["path"] = n_best, path
        self.n_best = n_best
        self.keep: list[Any] = []

    def messages(self, given: Sequence[Message] | None, arity: int) -> None:
        """One question's messages."""
        if given is None:
            return
        if len(given) != arity:
            raise ModelError(f"{arity} messages are needed, one per variable, not {len(given)}")
        arrays = [message_arrays(m) for m in given]
        structs = np.zeros(arity, MESSAGE)
        for k, (labels, values) in enumerate(arrays):
            structs[k] = (len(labels), address(labels), address(values))
        self.queries["messages"] = address(structs)
        self.keep += [structs, arrays]

    def all_messages(self, given: Messages | None, arity: int) -> None:
        """The messages of all questions."""
        if given is None:
            return
        n = len(self.queries) * arity
        begin = _plain("begin", given.begin, np.int64, n + 1)
        labels = _plain("labels", given.labels, np.int32, int(begin[-1]))
        values = _plain("values", given.values, np.float64, int(begin[-1]))
        if begin[0] != 0 or (np.diff(begin) < 0).any():
            raise ModelError("begin must start at 0 and not descend")
        structs = np.zeros(n, MESSAGE)
        structs["n"] = np.diff(begin)
        structs["labels"] = address(labels) + np.uint64(4) * begin[:-1].astype(np.uint64)
        structs["values"] = address(values) + np.uint64(8) * begin[:-1].astype(np.uint64)
        self.queries["messages"] = address(structs) + np.uint64(arity * MESSAGE.itemsize) * np.arange(
            len(self.queries), dtype=np.uint64
        )
        self.keep += [structs, labels, values]

    def excluded(self, states: NDArray[np.int64]) -> None:
        """One question's excluded states."""
        if len(states):
            self.queries["excluded"], self.queries["n_excluded"] = address(states), len(states)
            self.keep.append(states)

    def all_excluded(self, states: ArrayLike | None) -> None:
        """One excluded state a question, -1 for none."""
        if states is None:
            return
        flat = _plain("excluded", states, np.int64, len(self.queries))
        self.queries["excluded"] = address(flat) + np.uint64(8) * np.arange(len(flat), dtype=np.uint64)
        self.queries["n_excluded"] = flat >= 0
        self.keep.append(flat)

    def set(self, field: str, given: ArrayLike | None) -> None:
        if given is not None:
            numbers = whole_numbers(field, given, np.int64)
            if numbers.ndim and numbers.shape != self.queries.shape:
                raise ModelError(f"{field}: {len(self.queries)} numbers are needed, not of shape {numbers.shape}")
            self.queries[field] = numbers

    def marginals(self, oracle: OracleHandle, variable: int, labels: int) -> NDArray[np.float64]:
        """The max-marginals of one variable, which has so many labels, one question's after the other's."""
        out = np.empty(len(self.queries) * labels)
        oracle.ask_marginals(self.queries, np.full(len(self.queries), variable, np.int32), out)
        return out

    def ask(self, oracle: OracleHandle) -> Answers:
        out = np.zeros(len(self.queries) * self.n_best, ANSWER)
        oracle.ask(self.queries, out)
        states, values = out["state"].copy(), out["value"].copy()
        if self.n_best > 1:
            states, values = states.reshape(-1, self.n_best), values.reshape(-1, self.n_best)
        return Answers(states, values)
