"""Families of unseen.py: spins that cannot have all they want, sparse (where `cycles` proves most) and dense."""

from __future__ import annotations

from itertools import combinations, product

import networkx as nx

from bench.common.edges import grid_edges
from bench.common.whole_costs import LargeCase
from bench.map.unseen_family import Family, Rng


def _glass(rng: Rng, case: LargeCase, n: int, edges: list[tuple[int, int]], field: float = 0.0) -> None:
    case.cards = [2] * n
    for i in range(n) if field else ():
        h = round(1000 * field * rng.normal())
        case.add([i], [max(h, 0), max(-h, 0)])
    for i, j in edges:
        w = round(1000 * rng.normal())
        case.add([i, j], [[max(w, 0), max(-w, 0)], [max(-w, 0), max(w, 0)]])


def glass_torus(rng: Rng, case: LargeCase) -> None:
    _glass(rng, case, 900, grid_edges(30, 30, wrapped=True), field=0.3)


def glass_3d(rng: Rng, case: LargeCase) -> None:
    at = {place: k for k, place in enumerate(product(range(8), repeat=3))}
    steps = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    ends = [((x, y, z), (x + a, y + b, z + c)) for x, y, z in at for a, b, c in steps]
    _glass(rng, case, len(at), [(at[p], at[q]) for p, q in ends if q in at])


def glass_of_degree_4(rng: Rng, case: LargeCase) -> None:
    _glass(rng, case, 200, list(nx.random_regular_graph(4, 200, seed=int(rng.integers(2**31))).edges))


def glass_of_degree_6(rng: Rng, case: LargeCase) -> None:
    _glass(rng, case, 150, list(nx.random_regular_graph(6, 150, seed=int(rng.integers(2**31))).edges))


def glass_dense(rng: Rng, case: LargeCase) -> None:
    _glass(rng, case, 45, list(combinations(range(45), 2)))


FAMILIES: tuple[Family, ...] = (glass_torus, glass_3d, glass_of_degree_4, glass_of_degree_6, glass_dense)
