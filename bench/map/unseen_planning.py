"""Families of unseen.py: assignment, planning, scheduling."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from bench.common.edges import random_edges
from bench.common.whole_costs import FORBIDDEN, LargeCase
from bench.map.unseen_family import Family, Rng, all_differ, distance, only, table

# -- assignment and planning ------------------------------------------------------------------------------------------


def quadratic_assignment(rng: Rng, case: LargeCase) -> None:
    n = 9
    flow, distance = rng.integers(0, 10, (n, n)), rng.integers(1, 10, (n, n))
    case.cards = [n] * n
    for i, j in combinations(range(n), 2):
        costs = flow[i, j] * distance + flow[j, i] * distance.T
        case.add([i, j], np.where(np.eye(n, dtype=bool), FORBIDDEN, costs))


def warehouses(rng: Rng, case: LargeCase) -> None:
    stores, houses = 60, 20
    case.cards, x, y = [2] * houses + [houses] * stores, rng.random((houses, 2)), rng.random((stores, 2))
    for w in range(houses):
        case.add([w], [0, int(rng.integers(300, 900))])
    for s in range(stores):
        case.add([houses + s], np.round(1000 * np.linalg.norm(x - y[s], axis=1)))
        for w in range(houses):
            costs = np.zeros((2, houses), np.int64)
            costs[0, w] = FORBIDDEN
            case.add([w, houses + s], costs)


def radio_links(rng: Rng, case: LargeCase) -> None:
    n, k = 40, 24
    case.cards, apart = [k] * n, distance(k)
    for i in range(0, n, 2):
        case.add([i, i + 1], only(apart == k // 2))
    for i, j in random_edges(rng, n, 0.15):
        case.add([i, j], (apart < int(rng.integers(2, 8))) * 10 ** int(rng.integers(0, 4)))


def side_chains(rng: Rng, case: LargeCase) -> None:
    n = 70
    case.cards, place = rng.integers(3, 40, n).tolist(), rng.random((n, 3))
    for i in range(n):
        case.add([i], rng.integers(0, 3000, case.cards[i]))
    for i, j in combinations(range(n), 2):
        if np.linalg.norm(place[i] - place[j]) < 0.3:
            shape = (case.cards[i], case.cards[j])
            clash = rng.random(shape) < 0.15
            case.add([i, j], np.where(clash, rng.integers(5000, 100000, shape), rng.integers(0, 1000, shape)))


def detection(rng: Rng, case: LargeCase) -> None:
    """All pairs, dense tables."""
    n, k = 30, 15
    case.cards = [k] * n
    for i in range(n):
        case.add([i], rng.integers(0, 3000, k))
    for i, j in combinations(range(n), 2):
        case.add([i, j], rng.integers(0, 400, (k, k)))


def matching(rng: Rng, case: LargeCase) -> None:
    """Worms: points to points of an atlas, no target twice, neighbours keep their offset; label 0 is none."""
    n, targets = 50, 70
    where = [np.concatenate([[-1], np.sort(rng.permutation(targets)[:12])]) for _ in range(n)]
    case.cards = [13] * n
    place, atlas = rng.random((n, 2)), rng.random((targets, 2))
    for i in range(n):
        case.add([i], np.concatenate([[900], np.round(1000 * np.linalg.norm(atlas[where[i][1:]] - place[i], axis=1))]))
    for i, j in combinations(range(n), 2):
        same = (where[i][:, None] == where[j]) & (where[i] >= 0)[:, None]
        near = np.linalg.norm(place[i] - place[j]) < 0.2
        offset = atlas[where[i]][:, None] - atlas[where[j]] - (place[i] - place[j])
        soft = np.round(400 * np.linalg.norm(offset, axis=2)).astype(np.int64) * near
        soft[0, :] = soft[:, 0] = 0
        if same.any() or near:
            case.add([i, j], np.where(same, FORBIDDEN, soft))


def latin_square(rng: Rng, case: LargeCase) -> None:
    k = 9
    case.cards = [k] * k**2
    for i in range(k**2):
        case.add([i], rng.integers(0, 100, k))
    for a in range(k):
        all_differ(case, [a * k + b for b in range(k)])
        all_differ(case, [b * k + a for b in range(k)])


def sudoku(rng: Rng, case: LargeCase) -> None:
    """Few numbers given, as a hidden solution has them."""
    k = 9
    case.cards, names = [k] * k**2, rng.permutation(k)
    hidden = [int(names[(3 * (r % 3) + r // 3 + c) % 9]) for r in range(k) for c in range(k)]
    for i in rng.permutation(k**2)[:24].tolist():
        case.add([i], only(np.arange(k) == hidden[i]))
    boxes = [[(3 * b + r) * k + 3 * a + c for r in range(3) for c in range(3)] for a in range(3) for b in range(3)]
    rows = [[a * k + b for b in range(k)] for a in range(k)]
    for group in [*boxes, *rows, *np.transpose(rows).tolist()]:
        all_differ(case, group)


def scheduling(rng: Rng, case: LargeCase) -> None:
    """Jobs of one machine in time slots, some before others; being late costs."""
    n = 14
    case.cards = [n] * n
    due, weight = rng.integers(0, n, n), rng.integers(1, 20, n)
    for i in range(n):
        case.add([i], weight[i] * np.maximum(0, np.arange(n) - due[i]))
    all_differ(case, list(range(n)))
    for i, j in random_edges(rng, n, 0.15):
        case.add([i, j], only(np.arange(n)[:, None] < np.arange(n)))


def planning(rng: Rng, case: LargeCase) -> None:
    """A plan in steps: an action changes one of several facts if others hold; from a state to a goal."""
    facts, actions, steps = 8, 12, 14
    per = facts + 1
    case.cards = ([2] * facts + [actions + 1]) * steps + [2] * facts
    needs = [rng.permutation(facts)[:2].tolist() for _ in range(actions)]
    effect = [int(rng.integers(facts)) for _ in range(actions)]
    value, price = rng.integers(0, 2, actions), rng.integers(1, 10, actions)
    for t in range(steps):
        act = t * per + facts
        case.add([act], [0, *price])
        for f in range(facts):
            before = table((2, actions + 1), lambda x, a, f=f: a == 0 or f not in needs[a - 1] or x == (f + a) % 2)
            case.add([t * per + f, act], before)
            case.add(
                [t * per + f, act, (t + 1) * per + f],
                table((2, actions + 1, 2), lambda x, a, y, f=f: y == (value[a - 1] if a and effect[a - 1] == f else x)),
            )
    for f in range(facts):
        case.add([f], only(np.arange(2) == rng.integers(2)))
        case.add([steps * per + f], [0, int(rng.integers(-30, 31)) + 30])


def rostering(rng: Rng, case: LargeCase) -> None:
    """Nurses over days: rest after nights, and a counter along the nurses for how many work at night."""
    nurses, days, most = 8, 10, 3
    case.cards = [3] * (nurses * days)
    rest = only([[1, 1, 1], [1, 1, 1], [1, 0, 1]])
    for i, d in product(range(nurses), range(days)):
        case.add([i * days + d], rng.integers(0, 20, 3))
        if d + 1 < days:
            case.add([i * days + d, i * days + d + 1], rest)
    for d in range(days):
        before = None
        for i in range(nurses):
            case.cards.append(most + 1)
            count, shift = len(case.cards) - 1, i * days + d
            if before is None:
                case.add([shift, count], table((3, most + 1), lambda s, c: c == (s == 2)))
            else:
                case.add(
                    [before, shift, count], table((most + 1, 3, most + 1), lambda b, s, c: c == min(b + (s == 2), 3))
                )
            before = count
        case.add([before], [FORBIDDEN, FORBIDDEN, 0, 15])


FAMILIES: tuple[Family, ...] = (
    quadratic_assignment,
    warehouses,
    radio_links,
    side_chains,
    detection,
    matching,
    latin_square,
    sudoku,
    scheduling,
    planning,
    rostering,
)
