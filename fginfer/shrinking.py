"""Shrinking: a model made smaller in the words of a proof, before a tree proves what is left of it.

Variables go whose elimination leaves no more entries than it takes, and labels that another label of their variable
dominates. The checker's own arithmetic does it, so the model that is left is the one that a checker has then."""

from __future__ import annotations

from math import ldexp, prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fginfer.checker import File, NotVerified, State
from fginfer.formats import write
from fginfer.graph import FactorGraph
from fginfer.proof import ProofFile

# What is worth a look in Python (chosen): more variables, entries of a table that replaces others, labels that are
# compared pair by pair, rounds.
MOST_VARIABLES, SMALL_TABLE, FEW_LABELS, MOST_ROUNDS = 20_000, 4096, 32, 5


class Shrunk:
    """What is left, and the steps that led to it, which go to the file of the proof."""

    def __init__(self, graph: FactorGraph, floor: float, file: ProofFile) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            write(graph, path)
            self.state = State(File(str(path)), floor)
        self.file = file
        self.steps = 0
        again = set(range(len(self.state.cards)))
        for _ in range(MOST_ROUNDS):
            if self.state.dead or not again:
                break
            again = self._round(again)

    def _round(self, variables: set[int]) -> set[int]:
        """Looks at variables; returns those that are worth another look."""
        state, again = self.state, set()
        for v in sorted(variables, key=lambda v: len(state.of[v])):
            if state.dead:
                break
            if not state.has(v):
                continue
            near = {w for s in state.of[v] for w in s} - {v}
            if self._dominated(v) or self._eliminated(v, near):
                again |= near | {v}
        return again

    def _eliminated(self, v: int, near: set[int]) -> bool:
        state = self.state
        made = prod(state.cards[w] for w in near)
        gone = sum(state.tables[s].size for s in state.of[v])
        if made > min(SMALL_TABLE, gone) and np.isfinite(state.tables[v,]).sum() > 1:
            return False
        try:
            state.eliminate(v)
        except NotVerified:
            return False
        self.file.eliminate([v])
        self.steps += 1
        return True

    def _dominated(self, v: int) -> bool:
        """A label goes where another one gains in all tables together, whatever the others do."""
        state, k = self.state, self.state.cards[v]
        live = np.flatnonzero(state.tables[v,] > -np.inf)
        if not 1 < len(live) <= FEW_LABELS:
            return False
        gains = np.zeros((len(live), len(live)))
        with np.errstate(invalid="ignore"):
            for s in state.of[v]:
                rows = np.moveaxis(state.tables[s], s.index(v), 0).reshape(k, -1)[live]
                if rows.size * len(live) > 16 * SMALL_TABLE:
                    return False
                change = rows[None, :, :] - rows[:, None, :]
                gains += np.where(rows[:, None, :] == -np.inf, np.inf, change).min(axis=2)
        np.fill_diagonal(gains, -np.inf)
        found = False
        for mine, other in np.argwhere(gains >= 0):
            if state.tables[v,][live[mine]] == -np.inf or state.tables[v,][live[other]] == -np.inf:
                continue
            try:
                state.replace(v, int(live[mine]), int(live[other]))
            except NotVerified:
                continue
            self.file.replace(v, int(live[mine]), int(live[other]))
            self.steps += 1
            found = True
        return found

    def parts(self) -> list[tuple[list[int], list[tuple[int, ...]]]]:
        """Variables that are left, with their tables of two variables and more, by what is connected."""
        seen: set[int] = set()
        parts = []
        for v in range(len(self.state.cards)):
            if v in seen or not self.state.has(v):
                continue
            part, todo = {v}, [v]
            while todo:
                for w in {w for s in self.state.of[todo.pop()] for w in s} - part:
                    part.add(w)
                    todo.append(w)
            seen |= part
            scopes = {s for w in part for s in self.state.of[w] if len(s) > 1}
            parts.append((sorted(part), sorted(scopes)))
        return parts

    def graph(self, variables: list[int], scopes: list[tuple[int, ...]]) -> FactorGraph:
        """A part, in whole numbers times the unit: no score is rounded."""
        state, number = self.state, {v: k for k, v in enumerate(variables)}
        graph = FactorGraph([state.cards[v] for v in variables])
        for s in [(v,) for v in variables] + scopes:
            graph.add_factor([number[v] for v in s], np.ldexp(state.tables[s], state.unit))
        return graph

    def lead(self, share: float) -> float:
        """How far the threshold of a part may be above its best labeling, by its share of all that is left."""
        state = self.state
        if state.step > 1:
            return ldexp(0.999 * state.step, state.unit)
        terms = state.budget / 64
        return ldexp(max(1.0, share * (state.budget - 2 * terms)), state.unit)
