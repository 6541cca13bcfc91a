"""Families of unseen.py: grids and random models."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from bench.common.edges import grid_edges, random_edges
from bench.common.whole_costs import FORBIDDEN, Costs, LargeCase
from bench.map.unseen_family import Family, Rng, distance, only

# -- grids ------------------------------------------------------------------------------------------------------------


def _ising(rng: Rng, case: LargeCase, side: int, wrapped: bool, strength: float) -> None:
    case.cards = [2] * side**2
    for i in range(side**2):
        case.add([i], rng.integers(0, 1000, 2))
    for i, j in grid_edges(side, side, wrapped):
        w = round(1000 * strength * rng.normal())
        case.add([i, j], [[max(w, 0), max(-w, 0)], [max(-w, 0), max(w, 0)]])


def ising_weak(rng: Rng, case: LargeCase) -> None:
    _ising(rng, case, 60, False, 0.3)


def ising_strong(rng: Rng, case: LargeCase) -> None:
    _ising(rng, case, 25, False, 3.0)


def ising_wrapped(rng: Rng, case: LargeCase) -> None:
    _ising(rng, case, 14, True, 2.0)


def spins_3d(rng: Rng, case: LargeCase) -> None:
    """Plus and minus one on the edges of a cube: many ties."""
    side = 6
    case.cards, at = [2] * side**3, np.arange(side**3).reshape(side, side, side)
    for axis in range(3):
        for i, j in zip(at.ravel(), np.roll(at, 1, axis).ravel(), strict=True):
            case.add([i, j], np.eye(2, dtype=int) if rng.random() < 0.5 else 1 - np.eye(2, dtype=int))


def _regions(rng: Rng, side: int, k: int) -> Costs:
    return np.kron(rng.integers(0, k, (side // 5, side // 5)), np.ones((5, 5), int)).ravel()


def segmentation(rng: Rng, case: LargeCase) -> None:
    side, k = 40, 12
    case.cards, true = [k] * side**2, _regions(rng, side, k)
    for i in range(side**2):
        case.add([i], rng.integers(0, 300, k) - 100 * (np.arange(k) == true[i]) + 100)
    for i, j in grid_edges(side, side):
        case.add([i, j], int(rng.integers(40, 120)) * (1 - np.eye(k, dtype=int)))


def stereo(rng: Rng, case: LargeCase) -> None:
    side, k = 30, 16
    case.cards, true = [k] * side**2, _regions(rng, side, k)
    for i in range(side**2):
        case.add([i], 10 * np.abs(np.arange(k) - true[i]) + rng.integers(0, 120, k))
    for i, j in grid_edges(side, side):
        case.add([i, j], 20 * np.minimum(distance(k), 3))


def inpainting(rng: Rng, case: LargeCase) -> None:
    """Cliques of 2 x 2 pixels: straight edges are cheap, corners are not."""
    side, k = 24, 3
    case.cards, true = [k] * side**2, np.resize(_regions(rng, 25, k), side**2)
    squares = np.array(
        [30 * (len(set(x)) - 1) + 40 * (x[0] != x[3] and x[1] != x[2]) for x in product(range(k), repeat=4)]
    )
    for i in range(side**2):
        if rng.random() < 0.5:
            case.add([i], 60 * (np.arange(k) != true[i]) + rng.integers(0, 50, k))
    for r, c in product(range(side - 1), range(side - 1)):
        i = r * side + c
        case.add([i, i + 1, i + side, i + side + 1], squares.reshape((k,) * 4))


# -- random ------------------------------------------------------------------------------------------------------------


def _random(rng: Rng, case: LargeCase, n: int, k: int, arity: int, factors: int) -> None:
    case.cards = [k] * n
    for _ in range(factors):
        case.add(rng.permutation(n)[:arity], rng.integers(0, 1000, (k,) * arity))


def ternary(rng: Rng, case: LargeCase) -> None:
    _random(rng, case, 50, 3, 3, 90)


def quaternary(rng: Rng, case: LargeCase) -> None:
    _random(rng, case, 45, 2, 4, 80)


def max_sat(rng: Rng, case: LargeCase) -> None:
    case.cards = [2] * 60
    for _ in range(400):
        costs = np.zeros((2, 2, 2), np.int64)
        costs[tuple(rng.integers(0, 2, 3))] = 1
        case.add(rng.permutation(60)[:3], costs)


def partial_max_sat(rng: Rng, case: LargeCase) -> None:
    n = 200
    case.cards = [2] * n
    for i in range(n):
        case.add([i], [0, int(rng.integers(1, 50))])
    for _ in range(760):
        costs = np.zeros((2, 2, 2), np.int64)
        costs[tuple(rng.integers(0, 2, 3))] = FORBIDDEN
        case.add(rng.permutation(n)[:3], costs)


def csp(rng: Rng, case: LargeCase) -> None:
    """Model RB near its threshold: satisfiable or not, nothing else."""
    n, k = 35, 12
    case.cards = [k] * n
    for i, j in rng.permutation(random_edges(rng, n, 1.0))[:210].tolist():
        case.add([i, j], only(rng.permutation(k * k).reshape(k, k) >= 0.34 * k * k))


def max_csp(rng: Rng, case: LargeCase) -> None:
    n, k = 40, 5
    case.cards = [k] * n
    for i, j in rng.permutation(random_edges(rng, n, 1.0))[:200].tolist():
        case.add([i, j], rng.random((k, k)) < 0.5)


def max_cut(rng: Rng, case: LargeCase) -> None:
    case.cards = [2] * 50
    for i, j in random_edges(rng, 50, 0.3):
        case.add([i, j], int(rng.integers(1, 20)) * np.eye(2, dtype=int))


def qubo(rng: Rng, case: LargeCase) -> None:
    case.cards = [2] * 250
    for i, j in random_edges(rng, 250, 0.1):
        w = int(rng.integers(-100, 101))
        case.add([i, j], [[max(0, -w)] * 2, [max(0, -w), max(0, w)]])


def max_clique(rng: Rng, case: LargeCase) -> None:
    n = 150
    case.cards = [2] * n
    for i in range(n):
        case.add([i], [1, 0])
    for i, j in random_edges(rng, n, 0.25):
        case.add([i, j], [[0, 0], [0, FORBIDDEN]])


def auction(rng: Rng, case: LargeCase) -> None:
    """Bids for several goods each: no good is sold twice."""
    n, goods = 150, 60
    case.cards, bids = [2] * n, [set(rng.permutation(goods)[: int(rng.integers(2, 7))].tolist()) for _ in range(n)]
    for i in range(n):
        case.add([i], [int(len(bids[i]) * rng.integers(50, 100)), 0])
    for i, j in combinations(range(n), 2):
        if bids[i] & bids[j]:
            case.add([i, j], [[0, 0], [0, FORBIDDEN]])


FAMILIES: tuple[Family, ...] = (
    ising_weak,
    ising_strong,
    ising_wrapped,
    spins_3d,
    segmentation,
    stereo,
    inpainting,
    ternary,
    quaternary,
    max_sat,
    partial_max_sat,
    csp,
    max_csp,
    max_cut,
    qubo,
    max_clique,
    auction,
)
