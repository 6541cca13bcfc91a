"""The models of differential_large.py: 20 to 200 variables of many kinds, all costs whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.common.whole_costs import FORBIDDEN, STEPS, Costs, LargeCase

Draw = Callable[[tuple[int, ...]], Costs]


def _draw(rng: np.random.Generator) -> Draw:
    """How the costs of a model are drawn."""
    most = int(rng.choice([1, 3, 10, 1000, 10**6]))
    ties, hard = float(rng.choice([0.0, 0.5, 0.9])), float(rng.choice([0.0, 0.0, 0.05, 0.2]))

    def draw(shape: tuple[int, ...]) -> Costs:
        costs = rng.integers(0, most + 1, size=shape)
        costs = np.where(rng.random(shape) < ties, 0, costs)
        return np.where(rng.random(shape) < hard, FORBIDDEN, costs)

    return draw


def _cards(rng: np.random.Generator, n: int, most: int) -> list[int]:
    return [int(rng.integers(2, most + 1))] * n if rng.random() < 0.5 else rng.integers(1, most + 1, n).tolist()


def _shape(case: LargeCase, scope: Any) -> tuple[int, ...]:
    return tuple(case.cards[int(v)] for v in scope)


# -- kinds: each fills a case -----------------------------------------------------------------------------------------


def sparse(rng: np.random.Generator, case: LargeCase) -> None:
    n = int(rng.integers(20, 201))
    case.cards, draw = _cards(rng, n, 6), _draw(rng)
    for i in range(n):
        case.add([i], draw((case.cards[i],)))
    for _ in range(int(n * rng.uniform(0.8, 2.0))):
        scope = rng.permutation(n)[:2]
        case.add(scope, draw(_shape(case, scope)))


def dense(rng: np.random.Generator, case: LargeCase) -> None:
    n = int(rng.integers(20, 36))
    case.cards, draw = _cards(rng, n, 4), _draw(rng)
    for i in range(n):
        for j in range(i):
            if rng.random() < 0.6:
                case.add([i, j], draw(_shape(case, [i, j])))


def higher(rng: np.random.Generator, case: LargeCase) -> None:
    n = int(rng.integers(20, 81))
    case.cards, draw = _cards(rng, n, 3), _draw(rng)
    for _ in range(int(n * rng.uniform(0.5, 1.5))):
        scope = rng.permutation(n)[: int(rng.choice([2, 3, 3, 4]))]
        case.add(scope, draw(_shape(case, scope)))


def max_csp(rng: np.random.Generator, case: LargeCase) -> None:
    n, k = int(rng.integers(20, 61)), int(rng.integers(2, 6))
    case.cards, tight = [k] * n, rng.uniform(0.2, 0.8)
    for _ in range(int(n * rng.uniform(1.2, 3.0))):
        scope = rng.permutation(n)[:2]
        case.add(scope, rng.random((k, k)) < tight)


def csp(rng: np.random.Generator, case: LargeCase) -> None:
    """Hard constraints near the point where no labeling is left, costs on labels."""
    n, k = int(rng.integers(20, 81)), int(rng.integers(2, 6))
    case.cards, tight = [k] * n, rng.uniform(0.1, 0.5)
    for i in range(n):
        case.add([i], rng.integers(0, 20, k))
    for _ in range(int(n * rng.uniform(1.0, 2.5))):
        scope = rng.permutation(n)[: int(rng.choice([2, 2, 3]))]
        case.add(scope, np.where(rng.random((k,) * len(scope)) < tight, FORBIDDEN, 0))


def colouring(rng: np.random.Generator, case: LargeCase) -> None:
    n, k = int(rng.integers(20, 81)), int(rng.integers(3, 6))
    case.cards = [k] * n
    hard = rng.random() < 0.5
    for i in range(n):
        case.add([i], rng.integers(0, int(rng.choice([2, 10])), k))
    for _ in range(int(n * rng.uniform(1.0, 2.5))):
        cost = FORBIDDEN if hard else int(rng.integers(1, 10))
        case.add(rng.permutation(n)[:2], np.diag([cost] * k))


def packing(rng: np.random.Generator, case: LargeCase) -> None:
    """Sets of which no two may share an element: cliques of at most one."""
    n, elements = int(rng.integers(30, 121)), int(rng.integers(15, 40))
    case.cards, sets = [2] * n, [set(rng.permutation(elements)[: int(rng.integers(2, 6))].tolist()) for _ in range(n)]
    same = rng.random() < 0.4
    for i in range(n):
        case.add([i], [1 if same else int(rng.integers(1, 50)), 0])
        for j in range(i):
            if sets[i] & sets[j]:
                case.add([i, j], [[0, 0], [0, FORBIDDEN]])


def clauses(rng: np.random.Generator, case: LargeCase) -> None:
    n = int(rng.integers(20, 81))
    case.cards = [2] * n
    for _ in range(int(n * rng.uniform(2.0, 5.0))):
        size = int(rng.choice([2, 3, 3, 4]))
        costs = np.zeros((2,) * size, np.int64)
        costs[tuple(rng.integers(0, 2, size))] = FORBIDDEN if rng.random() < 0.1 else int(rng.integers(1, 6))
        case.add(rng.permutation(n)[:size], costs)


def warehouses(rng: np.random.Generator, case: LargeCase) -> None:
    stores, houses = int(rng.integers(10, 40)), int(rng.integers(4, 13))
    case.cards = [2] * houses + [houses] * stores
    for w in range(houses):
        case.add([w], [0, int(rng.integers(20, 200))])
    for s in range(houses, houses + stores):
        case.add([s], rng.integers(0, 100, houses))
        for w in range(houses):
            costs = np.zeros((2, houses), np.int64)
            costs[0, w] = FORBIDDEN
            case.add([w, s], costs)


def frequencies(rng: np.random.Generator, case: LargeCase) -> None:
    n, k = int(rng.integers(20, 41)), int(rng.integers(6, 15))
    case.cards = [k] * n
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    for i in range(0, n - 1, 2):
        case.add([i, i + 1], np.where(distance == k // 2, 0, FORBIDDEN))
    for _ in range(int(n * rng.uniform(1.0, 2.0))):
        case.add(rng.permutation(n)[:2], (distance < rng.integers(1, k // 2)) * 10 ** int(rng.integers(0, 4)))


def grid(rng: np.random.Generator, case: LargeCase) -> None:
    side, k = int(rng.integers(5, 15)), int(rng.integers(2, 4))
    case.cards, draw = [k] * side**2, _draw(rng)
    for r in range(side):
        for c in range(side):
            case.add([r * side + c], draw((k,)))
            for r2, c2 in ((r + 1, c), (r, c + 1)):
                if r2 < side and c2 < side:
                    case.add([r * side + c, r2 * side + c2], draw((k, k)))


def chain(rng: np.random.Generator, case: LargeCase) -> None:
    n = int(rng.integers(20, 201))
    case.cards, draw = _cards(rng, n, 25), _draw(rng)
    for i in range(n - 1):
        case.add([i, i + 1], draw(_shape(case, [i, i + 1])))
    for _ in range(int(rng.integers(0, 5))):
        scope = rng.permutation(n)[:2]
        case.add(scope, draw(_shape(case, scope)))


def network(rng: np.random.Generator, case: LargeCase) -> None:
    """As Bayesian networks with determinism: a label follows from its parents', for certain or at a cost."""
    n = int(rng.integers(20, 121))
    case.cards = _cards(rng, n, 4)
    for i in range(n):
        scope = [*rng.permutation(i)[: int(rng.integers(0, 4))].tolist(), i]
        costs = rng.integers(0, 30, _shape(case, scope))
        if rng.random() < 0.5:
            other = np.argmin(costs, axis=-1)[..., None] != np.arange(case.cards[i])
            costs = np.where(other, FORBIDDEN, 0)
        case.add(scope, costs)
    for i in rng.permutation(n)[: n // 5].tolist():
        case.add([i], rng.integers(0, 40, case.cards[i]))


def different(rng: np.random.Generator, case: LargeCase) -> None:
    """Cliques of variables that must all differ, as in a Latin square, and preferences."""
    k = int(rng.integers(4, 7))
    case.cards = [k] * (k * k)
    apart = np.diag([FORBIDDEN] * k)
    for r in range(k):
        for a in range(k):
            case.add([r * k + a], rng.integers(0, 10, k))
            for b in range(a):
                case.add([r * k + a, r * k + b], apart)
                case.add([a * k + r, b * k + r], apart)


KINDS: dict[str, Callable[[np.random.Generator, LargeCase], None]] = {
    kind.__name__: kind
    for kind in (
        *(sparse, dense, higher, max_csp, csp, colouring, packing, clauses),
        *(warehouses, frequencies, grid, chain, network, different),
    )
}


def large_case(seed: int, kind: str | None = None) -> LargeCase:
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(KINDS))) if kind is None else kind
    case = LargeCase(seed, name, [], float(rng.choice(STEPS)))
    KINDS[name](rng, case)
    return case
