"""Algorithm 8 of Yan, "Sublinear-time learning and inference for high-dimensional models" (2018), section 3.2: the
greedy direction method of multipliers for MAP, as printed. What the core does is this, with better step sizes.

    L = - sum_i theta_i.x_i - sum_f theta_f.y_f + sum_(i,f) [ mu_if.(M_if y_f - x_i) + rho/2 |M_if y_f - x_i|^2 ]

Sorted lists, one projected step for each factor, a fixed penalty rho and a fixed multiplier step eta: the two numbers
that its theorems are about, to be tried here. Signs as in docs/mathematics.md (in print, (3.27) leaves mu undivided by
the degree, (3.29) leaves rho M'M y out of the gradient, and (3.31) says argmax of the gradient where the steepest
descent is meant).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedList

from fginfer.graph import FactorGraph
from fginfer.reference.table import ReferenceTable

State = tuple[int, int]
Sparse = dict[int, float]  # by label; what is not listed is 0


def project_simplex(point: dict[int, float] | dict[State, float]) -> dict[int, float] | dict[State, float]:
    """The nearest point of the simplex over the same keys, without zeros."""
    values = sorted(point.values(), reverse=True)
    total, threshold = 0.0, 0.0
    for k, v in enumerate(values, 1):
        total += v
        if v - (total - 1) / k > 0:
            threshold = (total - 1) / k
    return {key: v - threshold for key, v in point.items() if v > threshold}  # type: ignore[return-value]


@dataclass
class ReferenceFactor:
    """A pairwise factor: its sorted table, its active states with their shares y, its multipliers."""

    variables: State
    table: ReferenceTable
    weight: float
    y: dict[State, float] = field(default_factory=dict)
    mu: tuple[Sparse, Sparse] = field(default_factory=lambda: (defaultdict(float), defaultdict(float)))

    def marginal(self, side: int) -> Sparse:
        """M_if y_f."""
        sums: Sparse = defaultdict(float)
        for state, share in self.y.items():
            sums[state[side]] += share
        return sums


class ReferenceGdmm:
    """Algorithm 8 on a graph with pairwise factors.

    >>> graph = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]], [[0, 1]], tables=[[[0.0, -1.0], [-1.0, 0.0]]])
    >>> method = ReferenceGdmm(graph, rho=0.5)
    >>> for _ in range(50):
    ...     method.iterate()
    >>> method.labels(), round(method.bound(), 6)
    ([1, 1], 1.0)
    """

    def __init__(self, graph: FactorGraph, rho: float = 1.0, eta: float | None = None) -> None:
        self.graph, self.rho = graph, rho
        self.eta = rho if eta is None else eta  # rho is the classical choice
        self.theta = [graph.unary(i) for i in range(graph.n_variables)]
        # Labels by score: the best one without a message comes from here (3.30).
        self.order = [SortedList((-float(s), a) for a, s in enumerate(row) if s > -inf) for row in self.theta]
        tables: dict[tuple[int, bool], ReferenceTable] = {}
        self.factors: list[ReferenceFactor] = []
        for f in graph.factors():
            if len(f.variables) != 2:
                raise ValueError("the reference takes pairwise factors")
            key = (f.table, f.transposed)
            if key not in tables:
                tables[key] = ReferenceTable(_dense(graph, f.table, f.variables, f.transposed))
            self.factors.append(ReferenceFactor((f.variables[0], f.variables[1]), tables[key], f.weight))
        self.of: list[list[tuple[ReferenceFactor, int]]] = [[] for _ in self.theta]
        for factor in self.factors:
            for side in (0, 1):
                self.of[factor.variables[side]].append((factor, side))
        self.x: list[Sparse] = [{row[0][1]: 1.0} if row else {} for row in self.order]

    def messages(self, f: ReferenceFactor) -> list[Sparse]:
        """delta_if = mu_if + rho (M_if y_f - x_i), zeros left out."""
        both = []
        for side in (0, 1):
            m, x = f.marginal(side), self.x[f.variables[side]]
            delta = {a: f.mu[side].get(a, 0.0) + self.rho * (m.get(a, 0.0) - x.get(a, 0.0))
                     for a in f.mu[side].keys() | m.keys() | x.keys()}  # fmt: skip
            both.append({a: d for a, d in delta.items() if d != 0.0})
        return both

    def iterate(self) -> None:
        """All factors, then all variables, then the multipliers."""
        for f in self.factors:
            self.factor_step(f)
        for i in range(len(self.x)):
            if self.of[i]:
                self.variable_step(i)
        for f in self.factors:
            for side in (0, 1):
                m, x = f.marginal(side), self.x[f.variables[side]]
                for a in m.keys() | x.keys():
                    f.mu[side][a] += self.eta * (m.get(a, 0.0) - x.get(a, 0.0))

    def factor_step(self, f: ReferenceFactor) -> None:
        """The oracle's state joins the active set; then one projected step y <- P(y - grad / Q)."""
        delta = self.messages(f)
        best = f.table.argmax(delta, weight=f.weight)
        if best.state is None:
            raise ValueError("a factor has no possible state")
        active = {**f.y} if f.y else {(best.state[0], best.state[1]): 1.0}
        active.setdefault((best.state[0], best.state[1]), 0.0)
        # Q = rho * (most states that share a label, summed over the variables) bounds the Hessian on the active set.
        shared = sum(max(_counts(active, side).values()) for side in (0, 1))
        step = 1.0 / (self.rho * shared)
        moved = {
            s: share + step * (f.weight * f.table[s] - delta[0].get(s[0], 0.0) - delta[1].get(s[1], 0.0))
            for s, share in active.items()
        }
        f.y = project_simplex(moved)  # type: ignore[assignment]

    def variable_step(self, i: int) -> None:
        """x_i = P( [ theta_i / rho + sum_f (M_if y_f + mu_if / rho) ] / degree ) over the labels that matter."""
        degree = len(self.of[i])
        sums: Sparse = {a: 0.0 for a in self.x[i]}
        for f, side in self.of[i]:
            for a, m in f.marginal(side).items():
                sums[a] = sums.get(a, 0.0) + m
            for a, mu in f.mu[side].items():
                sums[a] = sums.get(a, 0.0) + mu / self.rho
        free = next((a for _, a in self.order[i] if a not in sums), None)
        if free is not None:
            sums[free] = 0.0
        point = {
            a: (float(self.theta[i][a]) / self.rho + s) / degree for a, s in sums.items() if self.theta[i][a] > -inf
        }
        self.x[i] = project_simplex(point)  # type: ignore[assignment]

    def bound(self) -> float:
        """D(mu), at least the optimum whatever mu is: the same oracles with mu in place of delta."""
        total = self.graph.constant
        for i, row in enumerate(self.theta):
            score: NDArray[np.float64] = row.copy()
            for f, side in self.of[i]:
                for a, mu in f.mu[side].items():
                    score[a] += mu
            total += float(score.max())
        return total + sum(f.table.argmax(list(f.mu), weight=f.weight).value for f in self.factors)

    def labels(self) -> list[int]:
        """x rounded."""
        return [
            max(x, key=lambda a, x=x: (x[a], -a)) if self.of[i] else int(np.argmax(self.theta[i]))  # type: ignore[misc]
            for i, x in enumerate(self.x)
        ]


def _counts(active: dict[State, float], side: int) -> dict[int, int]:
    counts: dict[int, int] = defaultdict(int)
    for state in active:
        counts[state[side]] += 1
    return counts


def _dense(graph: FactorGraph, table: int, variables: tuple[int, ...], transposed: bool) -> NDArray[np.float64]:
    """The table as the factor sees it."""
    found = graph.table(table)
    rows, cols = (int(graph.cards[i]) for i in variables)
    if isinstance(found, np.ndarray):
        return found.T if transposed else found
    from fginfer.tables import Potts

    a, b = np.indices((rows, cols))
    if isinstance(found, Potts):
        return np.where(a == b, found.same, found.different)
    distance = np.abs(a - b) if type(found).__name__ == "AbsDiff" else (a - b) ** 2
    dense: NDArray[np.float64] = -found.weight * np.minimum(distance, found.truncation)
    return dense
