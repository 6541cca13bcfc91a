"""Calls of a graph whose last argument, or whose last entry, is no good: each must be refused and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np

from fginfer import FactorGraph


def bad_call(rng: np.random.Generator, g: FactorGraph, handles: list[Any]) -> tuple[str, Callable[[], Any]]:
    """One of them, and what it is called."""
    n, cards = g.n_variables, g.cards.tolist()
    v, zeros, every = n - 1, [0.0] * cards[-1], list(range(n))
    flat = [0.0] * (sum(cards) - 1) + [nan]
    wide = np.zeros(cards)
    wide.reshape(-1)[-1] = nan
    handle = handles[int(rng.integers(len(handles)))] if handles else 0
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("set_unary nan", lambda: g.set_unary(v, [*zeros[:-1], nan])),
        ("set_unary inf", lambda: g.set_unary(v, [*zeros[:-1], inf])),
        ("set_unary short", lambda: g.set_unary(v, zeros[:-1])),
        ("set_unaries nan", lambda: g.set_unaries(flat)),
        ("set_unaries nan in the last", lambda: g.set_unaries([np.zeros(k) for k in cards[:-1]] + [[nan] * cards[-1]])),
        ("set_unaries bad variable", lambda: g.set_unaries([zeros, zeros], [v, n])),
        ("set_unaries twice", lambda: g.set_unaries([zeros, zeros], [v, v])),
        ("add_factor nan", lambda: g.add_factor(every, wide)),
        ("add_factor weight", lambda: g.add_factor([v], zeros, weight=nan)),
        ("add_factor transposed", lambda: g.add_factor([v], zeros, transposed="no")),
        ("add_factor name", lambda: g.add_factor([v], zeros, name="")),
        ("add_factor scope", lambda: g.add_factor([*every, n], wide)),
        ("add_table nan", lambda: g.add_table([[0.0, nan]])),
        ("set_table number", lambda: g.set_table(10**6, [0.0])),
        ("set_weight nan", lambda: g.set_weight(handle, nan)),
        ("set_weight inf", lambda: g.set_weight(handle, inf)),
        ("remove_factor number", lambda: g.remove_factor(0)),
        ("fix label", lambda: g.fix(v, cards[v])),
        ("fix variable", lambda: g.fix(n, 0)),
        ("free variable", lambda: g.free(n)),
        ("add_variable 0", lambda: g.add_variable(0)),
        ("add_variable name", lambda: g.add_variable(2, name="")),
        ("add_variable labels", lambda: g.add_variable(["a", "a"])),
        ("cutoff nan", lambda: setattr(g, "cutoff", nan)),
        ("name labels", lambda: g.name(v, "a", ["x"] * (cards[v] + 1))),
        ("linear weights", lambda: g.add_linear([(v, 0)], [1.0, nan], 0, 1)),
        ("linear penalty", lambda: g.add_linear([(v, 0)], [1.0], 0, 1, penalty=nan)),
        ("linear when", lambda: g.add_linear([(v, 0)], [1.0], 0, 1, when=(n, 0))),
        ("at_most literal", lambda: g.add_at_most(1, [(v, 0), (v, cards[v])])),
        ("cardinality scores", lambda: g.add_cardinality([(v, 0)], [0.0, nan])),
        ("clause literal", lambda: g.add_clause([(v, 0), (n, 0)])),
        ("clause penalty", lambda: g.add_clause([(v, 0)], penalty=-1.0)),
        ("clause name", lambda: g.add_clause([(v, 0)], name="")),
        ("implication", lambda: g.add_implication([(v, 0)], (v, -1))),
        ("all different", lambda: g.add_all_different([*every, v])),
        ("global cardinality", lambda: g.add_global_cardinality(every, {0: 2}, {0: 1})),
        ("sparse states", lambda: g.add_sparse([v], [[0], [cards[v]]], [0.0, 0.0], 0.0)),
        ("sparse default", lambda: g.add_sparse([v], [[0]], [0.0], nan)),
        ("condition", lambda: g.condition({v: cards[v]})),
    ]  # fmt: skip
    return calls[int(rng.integers(len(calls)))]
