"""Random constraints for the other testers; tests/constraints/meanings.py says what they mean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.constraints import meanings
from tests.constraints.meanings import LIMITS, LOGIC, Said

Rng = np.random.Generator
Cards = Sequence[int]
SCORES = (0.0, 1.0, -2.5, 0.25, -inf, 4.0)


def _pick(rng: Rng, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _literal(rng: Rng, cards: Cards) -> tuple[Any, ...]:
    v = int(rng.integers(len(cards)))
    short = v, int(rng.integers(cards[v]))
    return short if rng.random() < 0.5 else (*short, bool(rng.random() < 0.5))


def _literals(rng: Rng, cards: Cards) -> list[tuple[Any, ...]]:
    return [_literal(rng, cards) for _ in range(int(rng.integers(0, 7)))]


def _penalty(rng: Rng) -> tuple[float | None, bool]:
    penalty = _pick(rng, (None, None, None, 0.0, 0.5, 1.0, 3.75))
    return penalty, penalty is not None and bool(rng.random() < 0.5)


def _scope(rng: Rng, cards: Cards) -> list[int]:
    chosen: list[int] = rng.permutation(len(cards))[: int(rng.integers(1, len(cards) + 1))].tolist()
    return chosen


def _weight(rng: Rng) -> float:
    return float(rng.integers(-4, 5)) if rng.random() < 0.7 else float(_pick(rng, (0.1, 0.25, -0.3, 1.5)))


def linear(rng: Rng, cards: Cards) -> Said:
    some = _literals(rng, cards)
    low, high = sorted(_weight(rng) for _ in range(2))
    kind = int(rng.integers(3))
    when = _literal(rng, cards) if rng.random() < 0.3 else None
    by = [_weight(rng) for _ in some]
    return meanings.linear(some, by, low if kind else None, high if kind < 2 else None, *_penalty(rng), when)


def counted(rng: Rng, cards: Cards) -> Said:
    return meanings.counted(_pick(rng, list(LIMITS)), int(rng.integers(0, 5)), _literals(rng, cards), *_penalty(rng))


def cardinality(rng: Rng, cards: Cards) -> Said:
    some = _literals(rng, cards)
    when = _literal(rng, cards) if rng.random() < 0.3 else None
    return meanings.cardinality(some, [_pick(rng, SCORES) for _ in range(len(some) + 1)], when)


def logic(rng: Rng, cards: Cards) -> Said:
    return meanings.logic(_pick(rng, LOGIC), _literals(rng, cards), _literal(rng, cards), _penalty(rng)[0])


def occurrences(rng: Rng, cards: Cards) -> Said:
    scope = _scope(rng, cards)
    n, different = max(cards[v] for v in scope), bool(rng.random() < 0.5)
    low = [0] * n if different else rng.integers(0, 2, n).tolist()
    high = [1] * n if different else [least + int(rng.integers(0, 4)) for least in low]
    return meanings.occurrences(scope, low, high, _penalty(rng)[0], different)


def regular(rng: Rng, cards: Cards) -> Said:
    moves = [(*rng.integers(0, 3, 3).tolist(), _pick(rng, SCORES)) for _ in range(int(rng.integers(4, 20)))]
    final = {s: _pick(rng, SCORES) for s in range(3) if rng.random() < 0.7}
    return meanings.regular(_scope(rng, cards), moves, final)


def sparse(rng: Rng, cards: Cards) -> Said:
    scope = _scope(rng, cards)
    every = list(product(*(range(cards[v]) for v in scope)))
    states = [every[k] for k in rng.permutation(len(every))[: int(rng.integers(0, 7))]]
    return meanings.sparse(scope, states, [_pick(rng, SCORES) for _ in states], _pick(rng, SCORES))


KINDS: tuple[Callable[[Rng, Cards], Said], ...] = (linear, counted, cardinality, logic, occurrences, regular, sparse)


def random_rule(rng: Rng, cards: Cards) -> Said:
    said: Said = _pick(rng, KINDS)(rng, cards)
    return said
