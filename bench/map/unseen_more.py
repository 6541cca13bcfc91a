"""Families of unseen.py: more of what users of the CFN, MRF and UAI benchmarks have."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from bench.common.edges import grid_edges, random_edges
from bench.common.whole_costs import FORBIDDEN, LargeCase
from bench.map.unseen_family import Family, Rng, all_differ, distance, from_probabilities, table


def protein_design(rng: Rng, case: LargeCase) -> None:
    """Few positions with hundreds of rotamers each."""
    n = 18
    case.cards, place = rng.integers(40, 200, n).tolist(), rng.random((n, 3))
    for i in range(n):
        case.add([i], rng.integers(0, 4000, case.cards[i]))
    for i, j in combinations(range(n), 2):
        if np.linalg.norm(place[i] - place[j]) < 0.6:
            shape = case.cards[i], case.cards[j]
            costs = rng.integers(0, 1500, shape) * (rng.random(shape) < 0.5)
            case.add([i, j], np.where(rng.random(shape) < 0.1, 30000, costs))


def determinism(rng: Rng, case: LargeCase) -> None:
    """A Bayesian network most of whose tables are functions, with evidence at its leaves."""
    n, k = 120, 3
    case.cards = [k] * n
    for i in range(n):
        parents = rng.permutation(np.arange(max(0, i - 15), i))[: int(rng.integers(1, 4))].tolist() if i > 5 else []
        shape = (k,) * len(parents)
        if parents and rng.random() < 0.7:
            p = np.eye(k)[rng.integers(0, k, shape)]
        else:
            p = rng.dirichlet([0.7] * k, size=shape)
        case.add([*parents, i], from_probabilities(p))
        if i >= n - 10:
            case.add([i], from_probabilities(0.9 * np.eye(k)[rng.integers(k)] + 0.1 / k))


def arrangement(rng: Rng, case: LargeCase) -> None:
    """Vertices in a row, edges short."""
    n = 13
    case.cards = [n] * n
    all_differ(case, list(range(n)))
    for i, j in random_edges(rng, n, 0.3):
        case.add([i, j], int(rng.integers(1, 5)) * distance(n))


def alignment(rng: Rng, case: LargeCase) -> None:
    """Points of a mesh that move by one of 49 offsets each: neighbours move alike."""
    side, reach = 9, 3
    moves = np.array(list(product(range(-reach, reach + 1), repeat=2)))
    case.cards = [len(moves)] * side**2
    smooth = 25 * np.abs(moves[:, None] - moves).sum(axis=2)
    for i in range(side**2):
        case.add([i], rng.integers(0, 200, len(moves)))
    for i, j in grid_edges(side, side):
        case.add([i, j], np.minimum(smooth, 150))


def colouring(rng: Rng, case: LargeCase) -> None:
    """Four colours, as few edges as possible within one of them."""
    case.cards = [4] * 60
    for i, j in random_edges(rng, 60, 0.17):
        case.add([i, j], np.eye(4, dtype=int))


def segments(rng: Rng, case: LargeCase) -> None:
    """Labels of pixels, and regions of five of them that want one label, up to a point."""
    side, k = 14, 4
    case.cards = [k] * side**2
    for i in range(side**2):
        case.add([i], rng.integers(0, 100, k))
    for i, j in grid_edges(side, side):
        case.add([i, j], 25 * (1 - np.eye(k, dtype=int)))
    one = np.array([np.bincount(x, minlength=k).max() for x in product(range(k), repeat=5)]).reshape((k,) * 5)
    for r, c in product(range(1, side - 1, 2), range(1, side - 1, 2)):
        i = r * side + c
        case.add([i, i - 1, i + 1, i - side, i + side], int(rng.integers(20, 60)) * np.minimum(5 - one, 2))


def wide_factors(rng: Rng, case: LargeCase) -> None:
    """Factors of five to ten variables that like a few of their states."""
    n = 60
    case.cards = [2] * n
    for i in range(n):
        case.add([i], rng.integers(0, 20, 2))
    for _ in range(45):
        arity = int(rng.integers(5, 11))
        liked = rng.random((2,) * arity) < 0.1
        case.add(rng.permutation(n)[:arity], np.where(liked, rng.integers(0, 30, liked.shape), 100))


def loose_grid(rng: Rng, case: LargeCase) -> None:
    """No unaries, random tables: the relaxation says nothing."""
    side, k = 16, 3
    case.cards = [k] * side**2
    for i, j in grid_edges(side, side, wrapped=True):
        case.add([i, j], rng.integers(0, 1000, (k, k)))


def autocorrelation(rng: Rng, case: LargeCase) -> None:
    """Signs in a row of low autocorrelation, beside a preference of each."""
    n = 22
    case.cards = [2] * n
    for i in range(n):
        case.add([i], rng.integers(0, 3, 2))
    for k in range(1, n):
        for i, j in combinations(range(n - k), 2):
            odd = [v for v in {i, i + k, j, j + k} if [i, i + k, j, j + k].count(v) == 1]
            if odd:
                case.add(
                    odd,
                    2 * np.array([sum(x) % 2 == 0 for x in product((0, 1), repeat=len(odd))]).reshape((2,) * len(odd)),
                )


def dense_max_sat(rng: Rng, case: LargeCase) -> None:
    n = 50
    case.cards = [2] * n
    for _ in range(700):
        arity = int(rng.integers(2, 4))
        costs = np.zeros((2,) * arity, np.int64)
        costs[tuple(rng.integers(0, 2, arity))] = int(rng.integers(1, 50))
        case.add(rng.permutation(n)[:arity], costs)


def covering(rng: Rng, case: LargeCase) -> None:
    """Every element by one of the sets that have it."""
    n, elements = 90, 120
    case.cards = [2] * n
    for i in range(n):
        case.add([i], [0, int(rng.integers(20, 100))])
    uncovered = table((2,) * 5, lambda *x: any(x))
    for _ in range(elements):
        case.add(rng.permutation(n)[:5], uncovered)


def queens(rng: Rng, case: LargeCase) -> None:
    """A queen a row, no two in line; squares have prices."""
    n = 14
    case.cards = [n] * n
    for i in range(n):
        case.add([i], rng.integers(0, 100, n))
    for i, j in combinations(range(n), 2):
        gap = distance(n)
        case.add([i, j], np.where((gap == 0) | (gap == j - i), FORBIDDEN, 0))


def open_shop(rng: Rng, case: LargeCase) -> None:
    """Jobs on machines, one at a time each, weighted by when they end."""
    jobs, machines, horizon = 5, 3, 22
    case.cards = [horizon] * (jobs * machines)
    length = rng.integers(1, 5, jobs * machines)
    start = np.arange(horizon)
    for v in range(jobs * machines):
        end = start + length[v]
        case.add([v], np.where(end > horizon, FORBIDDEN, int(rng.integers(1, 6)) * end))
    for v, w in combinations(range(jobs * machines), 2):
        if v // machines == w // machines or v % machines == w % machines:
            apart = (start[:, None] + length[v] <= start) | (start + length[w] <= start[:, None])
            case.add([v, w], np.where(apart, 0, FORBIDDEN))


FAMILIES: tuple[Family, ...] = (
    protein_design,
    determinism,
    arrangement,
    alignment,
    colouring,
    segments,
    wide_factors,
    loose_grid,
    autocorrelation,
    dense_max_sat,
    covering,
    queens,
    open_shop,
)
