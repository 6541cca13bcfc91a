"""Quadratic assignment (QAPLIB .dat) and graph matching (.dd): costs that are minimised, and labels that must differ.

QAPLIB: n (and perhaps the optimum), then two n x n matrices A and B; the cost of a permutation p is the sum of
A[i][j] B[p(i)][p(j)]. A .dd file lists `p points points assignments edges`, then `a number left right cost` and
`e assignment assignment cost`; each point is in one assignment at most, and label 0 of a left point is none.
"""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.formats.assembly import Assembly
from fginfer.formats.lines import Lines
from fginfer.graph import FactorGraph
from fginfer.names import Names

_MOST = 2**31 - 1
_PER_ASSIGNMENT, _PER_EDGE = 400, 200  # bytes that a reader takes


# -- quadratic assignment --------------------------------------------------------------------------------------


def read_qaplib(path: Path, budget: Budget) -> FactorGraph:
    """Reads a quadratic assignment problem: variable i is what is placed, its label is where."""
    lines = Lines(path, budget)
    header = lines.words(
        lines.next("the size of the problem"), 1, 2, "the size of the problem, and perhaps its optimum"
    )
    n = lines.integer(header[0], "the size of the problem", 0, 10**5)
    if len(header) == 2:
        lines.number(header[1], "the optimum")
    values: list[float] = []
    for words in lines:
        values += [lines.number(word, "an entry of a matrix") for word in words]
        budget.take(40.0 * len(words), "the matrices")
        if len(values) > 2 * n * n:
            lines.fail(f"extra numbers after two matrices of {n} x {n}", words[-1])
    if len(values) < 2 * n * n:
        lines.next(f"entry {len(values) + 1} of {2 * n * n}")
    a, b = np.array(values).reshape(2, n, n)
    return _placements(a, b, budget)


def _placements(a: NDArray[np.float64], b: NDArray[np.float64], budget: Budget) -> FactorGraph:
    """One table for all pairs where a matrix is symmetric, else one for each pair of numbers in A."""
    n = len(a)
    if not n:
        return FactorGraph([])
    unary = 0.0 - np.multiply.outer(np.diag(a), np.diag(b)).reshape(n, n)
    graph = FactorGraph.from_arrays(np.full(n, n, np.int32), unary)
    same = np.where(np.eye(n, dtype=bool), -inf, 0.0)
    mirrored = np.array_equal(a, a.T)
    shared = mirrored or np.array_equal(b, b.T)
    costs = b + b.T if mirrored else b
    weights = a if mirrored else a + a.T
    budget.take(24.0 * n * n, "the tables")
    known = {sign: graph.add_table(same - sign * costs) for sign in (1.0, -1.0)} if shared else {}
    free = graph.add_table(same)
    for i in range(n):
        for j in range(i + 1, n):
            weight = float(weights[i, j])
            if not weight if shared else not (a[i, j] or a[j, i]):
                graph.add_factor([i, j], free)
            elif shared:
                graph.add_factor([i, j], known[1.0 if weight > 0 else -1.0], weight=abs(weight))
            else:
                budget.take(8.0 * n * n, "the tables")
                graph.add_factor([i, j], same - (a[i, j] * b + a[j, i] * b.T))
    return graph


# -- graph matching --------------------------------------------------------------------------------------------


class _Matching:
    """Assignments of left points to right points, and edges between them."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._lines = Lines(path, budget, comments=("c",))
        self._budget = budget
        self._left: list[int] = []  # left point of each assignment
        self._right: list[int] = []
        self._cost: list[float] = []
        self._edges: list[tuple[int, int, float]] = []

    def read(self) -> FactorGraph:
        words = self._lines.words(self._lines.next("'p'"), 5, 5, "p LEFT RIGHT ASSIGNMENTS EDGES")
        if words[0] != "p":
            self._lines.fail("expected p LEFT RIGHT ASSIGNMENTS EDGES", words[0])
        left, right, assignments, edges = (
            self._lines.integer(w, "a number of points, assignments or edges", 0, _MOST) for w in words[1:]
        )
        self._budget.take_unlisted(100.0 * left, f"a model of {left} variables")
        for words in self._lines:
            if words[0] == "a":
                self._assignment(words, left, right)
            elif words[0] == "e":
                self._edge(words)
            elif words[0] not in ("i0", "i1", "n0", "n1"):  # coordinates and neighbours, for pictures
                self._lines.fail("expected a line of a, e, i0, i1, n0 or n1", words[0])
        if len(self._left) != assignments or len(self._edges) != edges:
            self._lines.fail(
                f"{len(self._left)} assignments and {len(self._edges)} edges, not {assignments} and {edges}"
            )
        return self._graph(left)

    def _assignment(self, words: list[str], left: int, right: int) -> None:
        self._lines.words(words, 5, 5, "a NUMBER LEFT RIGHT COST")
        number = self._lines.integer(words[1], "the number of an assignment", 0, _MOST)
        if number != len(self._left):
            self._lines.fail(f"expected assignment {len(self._left)}: they are numbered in order", words[1])
        self._budget.take(_PER_ASSIGNMENT, "the assignments")
        self._left.append(self._lines.integer(words[2], "a left point", 0, left - 1))
        self._right.append(self._lines.integer(words[3], "a right point", 0, right - 1))
        self._cost.append(self._lines.number(words[4], "the cost of an assignment"))

    def _edge(self, words: list[str]) -> None:
        self._lines.words(words, 4, 4, "e ASSIGNMENT ASSIGNMENT COST")
        one, other = (self._lines.integer(w, "an assignment", 0, len(self._left) - 1) for w in words[1:3])
        self._budget.take(_PER_EDGE, "the edges")
        self._edges.append((one, other, self._lines.number(words[3], "the cost of an edge")))

    def _graph(self, left: int) -> FactorGraph:
        labels: list[dict[str, int]] = [{"none": 0} for _ in range(left)]
        state: list[int] = []  # one entry of each assignment: the label of its left point
        for point, other in zip(self._left, self._right, strict=True):
            if str(other) in labels[point]:
                self._lines.fail(f"left point {point} and right point {other} have two assignments")
            state.append(len(labels[point]))
            labels[point][str(other)] = state[-1]
        cards = [len(some) for some in labels]
        unary = [np.zeros(n) for n in cards]
        for k, cost in enumerate(self._cost):
            unary[self._left[k]][state[k]] = 0.0 - cost
        tables: dict[tuple[int, int], NDArray[np.float64]] = {}
        for one, other, cost in self._edges:
            if one == other:
                unary[self._left[one]][state[one]] -= cost
            self._add(tables, cards, state, one, other, 0.0 - cost)
        at: dict[int, list[int]] = {}
        for k, point in enumerate(self._right):
            for other in at.setdefault(point, []):
                self._add(tables, cards, state, other, k, -inf)
            at[point].append(k)
        made = Assembly(np.array(cards, np.int32))
        for point, scores in enumerate(unary):
            made.add((point,), scores)
        for pair in sorted(tables):
            made.add(pair, made.function(tables.pop(pair)))
        graph = made.graph()
        graph.take_names(Names.of({}, {point: list(some) for point, some in enumerate(labels)}))
        return graph

    def _add(
        self,
        tables: dict[tuple[int, int], NDArray[np.float64]],
        cards: list[int],
        state: list[int],
        one: int,
        other: int,
        score: float,
    ) -> None:
        """A score of two assignments together; those of one left point never are."""
        if self._left[one] == self._left[other]:
            return
        if self._left[one] > self._left[other]:
            one, other = other, one
        pair = self._left[one], self._left[other]
        if pair not in tables:
            self._budget.take(8.0 * cards[pair[0]] * cards[pair[1]], "the tables")
            tables[pair] = np.zeros((cards[pair[0]], cards[pair[1]]))
        tables[pair][state[one], state[other]] += score


def read_dd(path: Path, budget: Budget) -> FactorGraph:
    """Reads a matching of two sets of points; a variable is a left point, its labels are the right points, or none."""
    return _Matching(path, budget).read()
