"""Models for constraints.py, each said once: labels, whole scores, pairs, and constraints over literals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from math import isqrt
from typing import Any

import numpy as np


@dataclass
class Problem:
    """Maximise the scores; a literal is (variable, label), and a linear constraint has whole weights."""

    cards: list[int]
    unary: dict[int, list[int]] = field(default_factory=dict)
    pairs: list[tuple[int, int, Any]] = field(default_factory=list)  # variables and an array of whole scores
    different: list[list[int]] = field(default_factory=list)
    linear: list[tuple[list[tuple[int, int]], list[int], int | None, int | None]] = field(default_factory=list)

    def at_most(self, k: int, literals: list[tuple[int, int]]) -> None:
        self.linear.append((literals, [1] * len(literals), None, k))

    def at_least(self, k: int, literals: list[tuple[int, int]]) -> None:
        self.linear.append((literals, [1] * len(literals), k, None))


def sudoku(n: int, given: float, seed: int = 0) -> Problem:
    """A shuffled pattern, of which a part is given. The solution need not be the only one."""
    rng, b = np.random.default_rng(seed), isqrt(n)
    base = np.array([[(b * (r % b) + r // b + c) % n for c in range(n)] for r in range(n)])
    rows = np.concatenate([band * b + rng.permutation(b) for band in rng.permutation(b)])
    cols = np.concatenate([band * b + rng.permutation(b) for band in rng.permutation(b)])
    grid = rng.permutation(n)[base[rows][:, cols]]
    p = Problem([n] * n * n)
    cells = np.arange(n * n).reshape(n, n)
    p.different += [row.tolist() for row in cells] + [col.tolist() for col in cells.T]
    p.different += [cells[r : r + b, c : c + b].ravel().tolist() for r in range(0, n, b) for c in range(0, n, b)]
    for cell in rng.permutation(n * n)[: int(given * n * n)].tolist():
        p.linear.append(([(cell, int(grid.ravel()[cell]))], [1], 1, 1))
    return p


def queens(n: int) -> Problem:
    p = Problem([n] * n)
    p.different.append(list(range(n)))
    for total in range(1, 2 * n - 2):
        p.at_most(1, [(i, total - i) for i in range(n) if 0 <= total - i < n])
        p.at_most(1, [(i, i + total - n + 1) for i in range(n) if 0 <= i + total - n + 1 < n])
    return p


def colouring(n: int, colours: int, degree: float, seed: int = 0) -> Problem:
    """Neighbours differ; colours have prices."""
    rng = np.random.default_rng(seed)
    p = Problem([colours] * n)
    table = np.zeros((colours, colours), int)
    np.fill_diagonal(table, -(10**6))
    for i, j in combinations(range(n), 2):
        if rng.random() < degree / n:
            p.pairs.append((i, j, table))
    for i in range(n):
        p.unary[i] = (-rng.integers(0, 10, colours)).tolist()
    return p


def pigeons(holes: int) -> Problem:
    """One more than there is room for, said hole by hole."""
    p = Problem([holes] * (holes + 1))
    for hole in range(holes):
        p.at_most(1, [(i, hole) for i in range(holes + 1)])
    return p


def timetable(courses: int, slots: int, seed: int = 0) -> Problem:
    """Courses in slots: rooms limit a slot, a teacher has one at a time, and students prefer some slots."""
    rng = np.random.default_rng(seed)
    p = Problem([slots] * courses)
    teacher = rng.integers(0, courses // 4, courses)
    for k in range(courses // 4):
        own = np.flatnonzero(teacher == k).tolist()
        if len(own) > 1:
            p.different.append(own)
    for slot in range(slots):
        p.at_most(-(-courses // slots) + 1, [(c, slot) for c in range(courses)])
    for c in range(courses):
        p.unary[c] = rng.integers(0, 20, slots).tolist()
    for _ in range(courses):
        a, b = rng.choice(courses, 2, replace=False).tolist()
        p.pairs.append((a, b, -int(rng.integers(1, 10)) * np.eye(slots, dtype=int)))  # shared students
    return p


def packing(items: int, sets: int, cover: bool, seed: int = 0) -> Problem:
    """Choose sets: each item in at most one of them, or (cover) in one at least."""
    rng = np.random.default_rng(seed)
    p = Problem([2] * sets)
    member = rng.random((sets, items)) < 4 / items * (2 if cover else 1)
    for item in range(items):
        member[rng.integers(sets), item] = True
        literals = [(int(s), 1) for s in np.flatnonzero(member[:, item])]
        if cover:
            p.at_least(1, literals)
        else:
            p.at_most(1, literals)
    for s in range(sets):
        price = int(rng.integers(5, 20))
        p.unary[s] = [0, -price if cover else price]
    return p


def knapsack(n: int, limits: int, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    p = Problem([2] * n)
    for _ in range(limits):
        weight = rng.integers(5, 50, n).tolist()
        p.linear.append(([(i, 1) for i in range(n)], weight, None, sum(weight) // 3))
    for i in range(n):
        p.unary[i] = [0, int(rng.integers(5, 50))]
    return p


def assignment(jobs: int, agents: int, seed: int = 0) -> Problem:
    """Generalised assignment: each job to an agent, whose capacity is limited."""
    rng = np.random.default_rng(seed)
    p = Problem([agents] * jobs)
    load = rng.integers(5, 25, (jobs, agents))
    for a in range(agents):
        limit = int(0.8 * load[:, a].sum() / agents)
        p.linear.append(([(j, a) for j in range(jobs)], load[:, a].tolist(), None, limit))
    for j in range(jobs):
        p.unary[j] = rng.integers(10, 50, agents).tolist()
    return p


def segmentation(side: int, seed: int = 0) -> Problem:
    """A binary grid with attracting neighbours in which the number of ones is given."""
    rng = np.random.default_rng(seed)
    n = side * side
    p = Problem([2] * n)
    for i in range(n):
        p.unary[i] = [0, int(rng.integers(-20, 21))]
    table = np.array([[0, -6], [-6, 0]])
    for r in range(side):
        for c in range(side):
            i = r * side + c
            if c + 1 < side:
                p.pairs.append((i, i + 1, table))
            if r + 1 < side:
                p.pairs.append((i, i + side, table))
    p.linear.append(([(i, 1) for i in range(n)], [1] * n, n // 3, n // 3))
    return p


def matching(n: int, seed: int = 0) -> Problem:
    """Points to points by complete affinities of pairs."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((n, 2)), None
    b = a + rng.normal(scale=0.03, size=(n, 2))
    p = Problem([n] * n)
    p.different.append(list(range(n)))
    far = np.linalg.norm(b[:, None] - b[None], axis=2)
    for i, j in combinations(range(n), 2):
        d = np.linalg.norm(a[i] - a[j])
        p.pairs.append((i, j, np.round(100 * np.exp(-((far - d) ** 2) / 0.02)).astype(int)))
    return p


MODELS: dict[str, Callable[[], Problem]] = {
    "sudoku9": lambda: sudoku(9, 0.35),
    "sudoku16": lambda: sudoku(16, 0.45),
    "sudoku25": lambda: sudoku(25, 0.5),
    "sudoku36": lambda: sudoku(36, 0.6),
    "queens50": lambda: queens(50),
    "queens100": lambda: queens(100),
    "colouring": lambda: colouring(60, 5, 6.0),
    "pigeons9": lambda: pigeons(9),
    "pigeons12": lambda: pigeons(12),
    "timetable": lambda: timetable(60, 12),
    "packing": lambda: packing(60, 80, False),
    "covering": lambda: packing(60, 80, True),
    "knapsack": lambda: knapsack(60, 1),
    "knapsacks": lambda: knapsack(40, 4),
    "assignment": lambda: assignment(30, 5),
    "segmentation": lambda: segmentation(15),
    "segmentation60": lambda: segmentation(60),
    "budgets": lambda: knapsack(2000, 5),
    "assignment200": lambda: assignment(200, 10),
    "matching": lambda: matching(15),
}
