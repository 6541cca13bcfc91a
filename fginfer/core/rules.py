"""Handles on the constraints of the core (csrc/include/fginfer_rules.h): five kinds, and the four questions to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model
from fginfer.errors import ModelError


class RuleHandle:
    """A rule of the core. The functions below make one of each kind."""

    def __init__(self, handle: Any, cards: NDArray[np.int32]) -> None:
        error, out = new_error(), ffi.new("fgi_source **")
        self.handle, self.cards = ffi.gc(handle, lib.fgi_rule_free), cards
        check(lib.fgi_rule_source_create(handle, out, error), error, bad_argument=ModelError)
        self._source = ffi.gc(out[0], lib.fgi_rule_source_free)
        self.source = int(ffi.cast("uintptr_t", out[0]))
        self.begin = np.concatenate(([0], np.cumsum(cards, dtype=np.int64)))

    def score(self, labels: NDArray[np.int32]) -> float:
        return float(lib.fgi_rule_score(self.handle, pointer(labels)))

    def memory(self) -> int:
        """In bytes."""
        return int(lib.fgi_rule_memory(self.handle))

    def best(self, gains: NDArray[np.float64]) -> tuple[NDArray[np.int32] | None, float, int]:
        """The best state under gains, how much better another one may be, and the work."""
        labels, found = np.zeros(len(self.cards), np.int32), ffi.new("int *")
        above, work = ffi.new("double *"), ffi.new("int64_t *")
        check(lib.fgi_rule_best(self.handle, pointer(gains), pointer(labels), found, above, work), new_error())
        return labels if found[0] else None, float(above[0]), int(work[0])

    def marginals(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """What every label has at best, flat."""
        out, work = np.zeros(len(gains)), ffi.new("int64_t *")
        check(lib.fgi_rule_marginals(self.handle, pointer(gains), pointer(out), work), new_error())
        return out

    def propagate(self, allowed: NDArray[np.uint8]) -> int:
        """Takes labels without support out of `allowed`; how many."""
        removed = ffi.new("int64_t *")
        check(lib.fgi_rule_propagate(self.handle, pointer(allowed), removed), new_error())
        return int(removed[0])

    def reason(self, allowed: NDArray[np.uint8], variable: int, label: int) -> list[int]:
        """The variables whose missing labels remove this one."""
        out, error = np.zeros(len(self.cards), np.uint8), new_error()
        rc = lib.fgi_rule_reason(self.handle, pointer(allowed), variable, label, pointer(out), error)
        check(rc, error, bad_argument=ModelError)
        return [int(k) for k in np.flatnonzero(out)]


class TallyHandle:
    """A state of a rule that moves."""

    def __init__(self, rule: RuleHandle, labels: NDArray[np.int32]) -> None:
        out, error = ffi.new("fgi_tally **"), new_error()
        check(lib.fgi_tally_create(rule.handle, pointer(labels), out, error), error, bad_argument=ModelError)
        self._handle = ffi.gc(out[0], lib.fgi_tally_free)

    def score(self) -> float:
        return float(lib.fgi_tally_score(self._handle))

    def after(self, variables: NDArray[np.int32], labels: NDArray[np.int32]) -> float:
        return float(lib.fgi_tally_after(self._handle, len(variables), pointer(variables), pointer(labels)))

    def move(self, variables: NDArray[np.int32], labels: NDArray[np.int32]) -> None:
        lib.fgi_tally_move(self._handle, len(variables), pointer(variables), pointer(labels))


class MenderHandle:
    """Looks for labelings of a model that rules of the core allow. `excess` measures violations, rule by rule."""

    def __init__(
        self,
        model: Model,
        rules: Sequence[RuleHandle],
        excess: Sequence[RuleHandle | None],
        variables: NDArray[np.int32],
    ) -> None:
        out, error = ffi.new("fgi_mender **"), new_error()
        own = ffi.new("fgi_rule *[]", [rule.handle for rule in rules])
        over = ffi.new("fgi_rule *[]", [ffi.NULL if rule is None else rule.handle for rule in excess])
        given = _numbers(variables, np.int32)
        rc = lib.fgi_mender_create(model.handle, len(rules), own, over, pointer(given), out, error)
        check(rc, error, bad_argument=ModelError)
        self._handle, self._n = ffi.gc(out[0], lib.fgi_mender_free), model.n_variables

    def run(
        self, labels: NDArray[np.int32], prices: NDArray[np.float64], work: int, seed: int
    ) -> NDArray[np.int32] | None:
        """A labeling near these that no rule forbids, improved for some work; None: it found none."""
        out, found, error = np.zeros(self._n, np.int32), ffi.new("int *"), new_error()
        rc = lib.fgi_mender_run(self._handle, pointer(labels), pointer(prices), work, seed, found, pointer(out), error)
        check(rc, error, bad_argument=ModelError)
        return out if found[0] else None


def _made(rc: Any, out: Any, error: Any, cards: NDArray[np.int32]) -> RuleHandle:
    check(rc, error, bad_argument=ModelError)
    return RuleHandle(out[0], cards)


def _numbers(values: Any, kind: Any) -> NDArray[Any]:
    return np.ascontiguousarray(values, kind).reshape(-1)


def sum_rule(
    cards: Sequence[int], adds: Any, pieces: Sequence[tuple[int, float, float, int]], modulus: int
) -> RuleHandle:
    """A score by the sum of `adds`, flat by label; pieces are (start, base, slope, anchor)."""
    out, error, own = ffi.new("fgi_rule **"), new_error(), _numbers(cards, np.int32)
    given, flat = ffi.new("fgi_piece[]", pieces), _numbers(adds, np.int64)
    rc = lib.fgi_rule_sum(len(own), pointer(own), pointer(flat), len(pieces), given, modulus, out, error)
    return _made(rc, out, error, own)


def occurrence_rule(cards: Sequence[int], low: Any, high: Any, price: float) -> RuleHandle:
    """How often labels may occur."""
    out, error, own = ffi.new("fgi_rule **"), new_error(), _numbers(cards, np.int32)
    least, most = _numbers(low, np.int64), _numbers(high, np.int64)
    rc = lib.fgi_rule_occurrences(len(own), pointer(own), len(least), pointer(least), pointer(most), price, out, error)
    return _made(rc, out, error, own)


def automaton_rule(cards: Sequence[int], n_states: int, arcs: Any, end: Any, given: Any) -> RuleHandle:
    """A weighted automaton: arcs are (from, label, to, score), `end` has a score per state."""
    out, error, own = ffi.new("fgi_rule **"), new_error(), _numbers(cards, np.int32)
    all_arcs, last, positions = ffi.new("fgi_arc[]", arcs), _numbers(end, np.float64), _numbers(given, np.int32)
    rc = lib.fgi_rule_automaton(
        len(own),
        pointer(own),
        n_states,
        len(arcs),
        all_arcs,
        pointer(last),
        len(positions),
        pointer(positions),
        out,
        error,
    )
    return _made(rc, out, error, own)


def sparse_rule(cards: Sequence[int], states: Any, scores: Any, otherwise: float) -> RuleHandle:
    """Listed states with their scores, and one score for the others."""
    out, error, own = ffi.new("fgi_rule **"), new_error(), _numbers(cards, np.int32)
    rows, values = _numbers(states, np.int32), _numbers(scores, np.float64)
    rc = lib.fgi_rule_sparse(len(own), pointer(own), len(values), pointer(rows), pointer(values), otherwise, out, error)
    return _made(rc, out, error, own)


class ConflictsHandle:
    """A search for values of Booleans that satisfy clauses and linear constraints; literals as in the header."""

    def __init__(self, n: int) -> None:
        out, error = ffi.new("fgi_conflicts **"), new_error()
        check(lib.fgi_conflicts_create(n, out, error), error, bad_argument=ModelError)
        self._handle, self._n = ffi.gc(out[0], lib.fgi_conflicts_free), n
        self._values, self.work = np.zeros(n, np.uint8), 0

    def add(self, clauses: Sequence[Sequence[int]]) -> None:
        """Before the first run."""
        begin = np.concatenate(([0], np.cumsum([len(clause) for clause in clauses], dtype=np.int64)))
        flat, error = _numbers([x for clause in clauses for x in clause], np.int32), new_error()
        rc = lib.fgi_conflicts_add(self._handle, len(clauses), pointer(begin), pointer(flat), error)
        check(rc, error, bad_argument=ModelError)

    def linear(self, literals: Sequence[int], weights: Sequence[int], limit: int, number: int = -1) -> int:
        """A linear constraint, or another one in the place of that number; returns its number."""
        at, error = ffi.new("int32_t *", number), new_error()
        own, by = _numbers(literals, np.int32), _numbers(weights, np.int64)
        rc = lib.fgi_conflicts_linear(self._handle, len(own), pointer(own), pointer(by), limit, at, error)
        check(rc, error, bad_argument=ModelError)
        return int(at[0])

    def limit(self, number: int, limit: int) -> None:
        """A lower limit."""
        error = new_error()
        check(lib.fgi_conflicts_limit(self._handle, number, limit, error), error, bad_argument=ModelError)

    def prefer(self, values: NDArray[np.uint8], activity: NDArray[np.float64] | None = None) -> None:
        """What is tried first; activities before the first run only."""
        error, early = new_error(), ffi.NULL if activity is None else pointer(activity)
        check(lib.fgi_conflicts_prefer(self._handle, pointer(values), early, error), error, bad_argument=ModelError)

    def run(self, work: int) -> str:
        """ "running", "satisfied" or "none": there are no such values."""
        state, done, error = ffi.new("fgi_conflicts_state *"), ffi.new("int64_t *"), new_error()
        check(lib.fgi_conflicts_run(self._handle, work, state, pointer(self._values), done, error), error)
        self.work = int(done[0])
        return ("running", "satisfied", "none")[int(state[0])]

    def values(self) -> NDArray[np.uint8]:
        """Once satisfied."""
        return self._values.copy()

    def memory(self) -> int:
        """In bytes."""
        return int(lib.fgi_conflicts_memory(self._handle))
