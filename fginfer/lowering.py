"""Lowering: constraints become small tables with auxiliary variables, which come after the variables of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.builder import Builder
from fginfer.core.arrays import ModelArrays, begins
from fginfer.rules import Chain, Rule
from fginfer.rules.rule import Star, Table
from fginfer.table_roles import TableRoles
from fginfer.table_values import Dense
from fginfer.tables import Potts

# Scores of a table that joins layers: fewer auxiliary variables make proofs shorter and passes longer (decision 0016).
# The smaller number is for chains of very many layers.
SMALL, SMALLEST = 256, 64
FEW_LAYERS = 64  # chains of up to so many have the larger tables (chosen)
MOST_AXES = 12  # axes of a table: variables with one label add axes, but no scores (chosen)


class Lowering:
    """Collects auxiliary variables and tables."""

    def __init__(self, cards: Sequence[int], allowed: NDArray[np.bool_]) -> None:
        self.cards = list(cards)
        self.allowed, self.begin = allowed, begins(cards)
        self.factors: list[tuple[tuple[int, ...], Any]] = []
        self.chains: list[tuple[Chain, list[int], list[int]]] = []  # auxiliary variables, and the layers before them
        self.joined: dict[tuple[int, int], tuple[NDArray[np.float64], ...]] = {}  # with the arrays whose ids are keys
        self.stars: list[tuple[Star, int]] = []
        self.partners: list[int] = []

    def rule(self, rule: Rule) -> None:
        if not rule.variables:
            self.table(Table((), np.array(rule.score([]))))
            return
        masks = [self.allowed[self.begin[v] : self.begin[v + 1]] for v in rule.variables]
        for part in rule.parts(masks):
            if isinstance(part, Chain):
                self.chain(part)
            elif isinstance(part, Star):
                self.star(part)
            else:
                self.table(part)

    def table(self, part: Table) -> None:
        self.factor(part.variables, part.scores)

    def factor(self, scope: tuple[int, ...], scores: Any) -> None:
        """One table. Those over one variable or none get partners that have one label, so that no sum is rounded."""
        missing = max(0, 2 - len(scope))
        while len(self.partners) < missing:
            self.partners.append(len(self.cards))
            self.cards.append(1)
        scores = scores if isinstance(scores, Potts) else np.asarray(scores).reshape(*np.shape(scores), *[1] * missing)
        self.factors.append(((*scope, *self.partners[:missing]), scores))

    def chain(self, chain: Chain) -> None:
        if chain.is_broken:  # nothing is allowed
            self.table(Table((), np.array(-inf)))
            return
        blocks = self._blocks(chain)
        first = len(self.cards)
        auxiliary = list(range(first, first + len(blocks) - 1))
        self.cards += [table.shape[-1] for _, table in blocks[:-1]]
        ends = np.cumsum([len(variables) for variables, _ in blocks]).tolist()
        self.chains.append((chain, auxiliary, ends[:-1]))
        for i, (variables, table) in enumerate(blocks):
            before, after = auxiliary[max(0, i - 1) : i], auxiliary[i : i + 1]
            scores = table if before else table[0]
            self.factor((*before, *variables, *after), scores if after else scores[..., 0])

    def _blocks(self, chain: Chain) -> list[tuple[tuple[int, ...], NDArray[np.float64]]]:
        """Layers joined into tables [state, labels of several variables, next state] as long as these are small."""
        most = SMALL if len(chain.tables) <= FEW_LAYERS else SMALLEST
        out: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
        for variable, table in zip(chain.variables, chain.tables, strict=True):
            if out:
                before = out[-1][1]
                size = before.size // before.shape[-1] * table.shape[1] * table.shape[2]
                fits = size <= max(most, 0 if before.ndim > 3 else before.size + table.size)
                if fits and before.ndim < MOST_AXES:
                    out[-1] = ((*out[-1][0], variable), self._join(before, table))
                    continue
            out.append(((variable,), table))
        return out

    def _join(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Two steps in one; equal pairs of layers give one array."""
        key = id(a), id(b)
        if key not in self.joined:
            flat = a.reshape(-1, a.shape[-1])
            both = (flat[:, :, None, None] + b[None]).max(axis=1)
            self.joined[key] = both.reshape(*a.shape[:-1], *b.shape[1:]), a, b
        return self.joined[key][0]

    def star(self, star: Star) -> None:
        variable = len(self.cards)
        self.cards.append(len(star.scores))
        self.stars.append((star, variable))
        self.factor((variable,), star.scores)
        self.factors += [((variable, v), table) for v, table in zip(star.variables, star.tables, strict=True)]


def with_factors(base: ModelArrays, factors: Sequence[tuple[tuple[int, ...], Any]]) -> ModelArrays:
    """Adds factors to arrays; a table that several layers share is looked up once."""
    builder = Builder(base, TableRoles())
    known: dict[int, int] = {}
    for scope, table in factors:
        index = known.get(id(table))
        if index is None:
            held = table if isinstance(table, Potts) else Dense(np.ascontiguousarray(table).reshape(-1), table.shape)
            index = known[id(table)] = builder.share(held)
        builder.factors.append((index, 1.0, False, scope))
    return builder.arrays()
