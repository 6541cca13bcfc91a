"""Sets of variables without cycles between them, which together cover a graph."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from fginfer.graph import FactorGraph


class Trees:
    """Which of n things hang together: at first each is a tree of its own."""

    def __init__(self, n: int) -> None:
        self._root = list(range(n))

    def _find(self, v: int) -> int:
        root = self._root
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    def join(self, several: Collection[int]) -> bool:
        """Makes one tree of the trees of all these; False, and nothing changes, if two are in the same tree."""
        trees = {self._find(v) for v in several}
        if len(trees) < len(several):
            return False
        first = trees.pop()
        for t in trees:
            self._root[t] = first
        return True


class Links:
    """Which factors join which variables."""

    def __init__(self, graph: FactorGraph) -> None:
        self.n = graph.n_variables
        self.scopes = [[int(v) for v in factor.variables] for factor in graph.factors()]
        self.beside: list[list[int]] = [[] for _ in range(self.n)]
        for k, scope in enumerate(self.scopes):
            for v in scope:
                self.beside[v].append(k)

    def part(self, centre: int, size: int, rng: np.random.Generator) -> list[int]:
        """All factors inside of the `size` variables nearest to one, and of the others as many as close no cycle."""
        near, inside = [centre], {centre}
        for v in near:
            for k in self.beside[v]:
                for u in self.scopes[k]:
                    if u not in inside and len(near) < size:
                        inside.add(u)
                        near.append(u)
        core = [k for k, scope in enumerate(self.scopes) if all(v in inside for v in scope)]
        trees = Trees(self.n)
        trees.join(near)
        return core + [k for k in rng.permutation(len(self.scopes)).tolist() if trees.join(self.scopes[k])]


def random_forest(n: int, ends: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Some of the links between two variables (a row of `ends` each), as many as close no cycle: those of a spanning
    forest whose links have the least random numbers, which all trees choose at once."""
    number, tree = rng.permutation(len(ends)), np.arange(n)
    left, chosen = np.arange(len(ends)), list[NDArray[np.int64]]()
    while True:
        first, second = tree[ends[left]].T
        parted = first != second
        left, first, second = left[parted], first[parted], second[parted]
        if not len(left):
            return np.concatenate([np.zeros(0, np.int64), *chosen])
        least = np.full(n, len(ends))
        for side in (first, second):
            np.minimum.at(least, side, number[left])
        is_taken = (number[left] == least[first]) | (number[left] == least[second])
        chosen.append(left[is_taken])
        above = np.arange(n)
        mine = number[left] == least[first]
        above[first[mine]] = second[mine]
        mine = number[left] == least[second]
        above[second[mine]] = first[mine]
        both = above[above] == np.arange(n)  # two trees that chose the same link: one of them is the root
        above = np.where(both & (np.arange(n) < above), np.arange(n), above)
        while not np.array_equal(above, above[above]):
            above = above[above]
        tree = above[tree]


def forest_blocks(graph: FactorGraph, rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """Large blocks, each as the flags of the variables outside of it, until every variable is in one.

    Given the others, the variables of a block are a forest: no factor has three of them, and no two paths join two.
    """
    links = Links(graph)
    covered = np.zeros(graph.n_variables, bool)
    out = []
    while not covered.all():
        order = np.lexsort([rng.random(graph.n_variables), covered])  # those that are in no block yet come first
        inside = _forest(order.tolist(), links.scopes, links.beside)
        covered |= inside
        out.append(np.ascontiguousarray(~inside, np.uint8))
    return out


def _forest(order: list[int], scopes: list[list[int]], beside: list[list[int]]) -> NDArray[np.bool_]:
    """Takes each variable in this order unless it would close a cycle."""
    inside, trees = np.zeros(len(order), bool), Trees(len(order))
    for v in order:
        near, fits = set[int](), True
        for k in beside[v]:
            others = {u for u in scopes[k] if u != v and inside[u]}
            fits &= len(others) < 2
            near |= others
        if fits and trees.join([v, *near]):
            inside[v] = True
    return inside
