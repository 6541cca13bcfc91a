"""Shrinking: a model made smaller in the words of a proof, before a tree proves what is left of it.

Variables go whose elimination leaves no more entries than it takes, and labels that another label of their variable
dominates, or with which the bound of messages is not above the floor. The checker's own arithmetic does it, so the
model that is left is the one that a checker has then."""

from __future__ import annotations

from math import frexp, inf, ldexp, prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import ArrayLike

from fginfer.checker import File, NotVerified, State, Tree, floored, power
from fginfer.core.solver import NativeSolver, native_settings
from fginfer.errors import SettingsError, SolverError
from fginfer.formats import write
from fginfer.graph import FactorGraph
from fginfer.proof import ProofFile

# What is worth a look in Python (chosen): more variables, entries of a table that replaces others, entries that are
# compared for a variable, labels by each of two rankings that may dominate others, rounds.
MOST_VARIABLES, SMALL_TABLE, MOST_COMPARED, PROMISING, MOST_ROUNDS = 20_000, 4096, 2_000_000, 3, 5
# What messages are asked for (chosen): entries of a model, sweeps, times, and the share of labels that has to go for
# another time.
MOST_ENTRIES, SWEEPS, MOST_TIMES, ENOUGH = 10_000_000, 60, 4, 0.05


class Shrunk:
    """What is left, and the steps that led to it, which go to the file of the proof."""

    def __init__(self, graph: FactorGraph, floor: float, file: ProofFile, labels: ArrayLike | None) -> None:
        """`labels`: a labeling that the proof will stand on."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            write(graph, path)
            self.state = State(File(str(path)), floor)
        self.file, self.floor = file, floor
        self.steps = 0
        # The number of each label that is left in the numbering of a checker, and the best labeling in it.
        self.best = None if labels is None else np.array(labels, np.int64)
        self._rounds()
        for _ in range(MOST_TIMES):
            if not self._stripped():
                break
            self._rounds()

    def _rounds(self) -> None:
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
        if len(live) < 2:
            return False
        every = [np.moveaxis(state.tables[s], s.index(v), 0).reshape(k, -1)[live] for s in sorted(state.of[v])]
        tables = [rows[:, (rows > -np.inf).any(axis=0)] for rows in every]
        others = _promising(tables)
        if sum(rows.size for rows in tables) * len(others) > MOST_COMPARED:
            return False
        gains = np.zeros((len(live), len(others)))
        with np.errstate(invalid="ignore"):
            for rows in tables:
                for j, other in enumerate(others):
                    change = np.where(rows == -np.inf, np.inf, rows[other] - rows)
                    gains[:, j] += change.min(axis=1, initial=np.inf)
        gains[others, np.arange(len(others))] = -np.inf
        found = False
        for mine, j in np.argwhere(gains >= 0):
            other = others[j]
            if state.tables[v,][live[mine]] == -np.inf or state.tables[v,][live[other]] == -np.inf:
                continue
            try:
                state.replace(v, int(live[mine]), int(live[other]))
            except NotVerified:
                continue
            self.file.replace(v, int(live[mine]), int(live[other]))
            if self.best is not None and self.best[v] == live[mine]:
                self.best[v] = live[other]
            self.steps += 1
            found = True
        return found

    def _stripped(self) -> bool:
        """Labels go that are in no labeling above the floor, by the messages of sweeps. Says whether many have gone."""
        state = self.state
        variables = [v for v in range(len(state.cards)) if state.has(v)]
        scopes = sorted(s for s in state.tables if len(s) > 1)
        if state.dead or self.floor == -inf or not scopes or state.entries > MOST_ENTRIES:
            return False
        graph, number = self.graph(variables, scopes), {v: k for k, v in enumerate(variables)}
        try:
            native = NativeSolver(graph.snapshot(), native_settings("trws", gap=0.0))
        except (SettingsError, SolverError, MemoryError):
            return False
        native.run(inf, SWEEPS)
        messages, bound = native.messages(), native.info.bound
        if messages is None:
            return False
        # A message is rounded to some part of what its share of the gap is.
        gap = bound - float((floored(self.floor, state.unit) - state.constant) * power(state.unit))
        share = gap / (16 * len(messages)) if 0 < gap < inf else 0.0
        exponent = max(state.unit, frexp(share)[1] - 1 if share > 0 else state.unit)
        amounts = np.rint(np.ldexp(np.where(np.isfinite(messages), messages, 0.0), -exponent))
        if np.abs(amounts).max(initial=0) >= 2.0**50:
            return False
        places = np.flatnonzero(amounts)
        try:
            tree = Tree(state, variables, [[number[v] for v in s] for s in scopes], [])
            tree.send(places, np.ldexp(amounts[places], exponent - state.unit))
            tree.raise_threshold(np.full(len(variables), -1), self.floor)
            gone = _hopeless(tree)
        except NotVerified:
            return False
        if not gone:
            return False
        self.file.tree(variables, [len(s) for s in scopes], [number[v] for s in scopes for v in s])
        self.file.messages(exponent, places, amounts[places].astype(np.int64))
        self.file.threshold(self.floor, len(variables))
        for labels in gone:
            self.file.remove(labels)
        self.file.leave()
        self._renumber(tree, variables)
        tree.leave()
        self.steps += 1
        return sum(map(len, gone)) > ENOUGH * tree.n_labels

    def _renumber(self, tree: Tree, variables: list[int]) -> None:
        if self.best is not None:
            for v, first in zip(variables, tree.begin.tolist(), strict=False):
                left = tree.value[first : first + self.state.cards[v]] > -np.inf
                self.best[v] = np.count_nonzero(left[: self.best[v]]) if left[self.best[v]] else -1

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

    def labels(self, variables: list[int]) -> list[int] | None:
        """What the best labeling has, in the numbering of what is left; None: that has gone."""
        labels = None if self.best is None else self.best[variables].tolist()
        return None if labels is None or min(labels, default=0) < 0 else labels

    def lead(self, share: float) -> float:
        """How far the threshold of a part may be above its best labeling, by its share of all that is left."""
        state = self.state
        if state.step > 1:
            return ldexp(0.999 * state.step, state.unit)
        terms = state.budget / 64
        return ldexp(max(1.0, share * (state.budget - 2 * terms)), state.unit)


def _hopeless(tree: Tree) -> list[np.ndarray]:
    """The labels at the root of a tree with which the bound is at most the threshold; what goes helps the others."""
    gone: list[np.ndarray] = []
    while len(gone) < MOST_ROUNDS and (bound := tree.bound()) is not None and tree.threshold is not None:
        live = np.flatnonzero(tree.value[: tree.n_labels] > -np.inf)
        room = float(tree.threshold - bound)
        labels = live[tree.falls(live) <= (room if room > -(2.0**53) else -np.inf)]
        if not len(labels):
            break
        tree.remove(labels)
        gone.append(labels)
    return gone


def _promising(tables: list[np.ndarray]) -> list[int]:
    """The labels that others are compared with: what they have at best, or at worst, is most."""
    best, worst = (sum(f(rows, axis=1, initial=b) for rows in tables) for f, b in ((np.max, -inf), (np.min, inf)))
    return sorted({int(a) for x in (best, worst) for a in np.argsort(-np.asarray(x), kind="stable")[:PROMISING]})
