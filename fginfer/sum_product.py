"""Loopy belief propagation for sums: approximate marginals and log Z, damped, all factors of one shape at a time."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.graph import FactorGraph
from fginfer.table_values import StoredTables
from fginfer.tables import expand

Reals = NDArray[np.float64]

LOWEST = -700.0  # the least of a log message whose largest entry is 0: exp of less is no double
DAMPING = 0.5  # the part of an old message that stays (chosen)
CLOSE = 1e-9  # change of a probability below which messages have converged (chosen)
MOST_ENTRIES = 1e8  # entries of all tables together, 0.8 GB: past that there is no such pass (chosen)


class _Shape:
    """All factors with the same label counts."""

    def __init__(self, scopes: list[tuple[int, ...]], tables: list[Reals], begin: NDArray[np.int64]) -> None:
        self.scores = np.maximum(np.stack(tables), LOWEST * 100)  # forbidden states stay out of the sums
        where = np.array(scopes, np.int64)
        cards = self.scores.shape[1:]
        self.at = [begin[where[:, k]][:, None] + np.arange(card) for k, card in enumerate(cards)]
        self.said = [np.zeros((len(scopes), card)) for card in cards]

    def heard(self, beliefs: Reals, k: int) -> Reals:
        """What the variable at place k says to its factor."""
        return beliefs[self.at[k]] - self.said[k]

    def totals(self, heard: list[Reals]) -> Reals:
        """Scores of states with what all variables say."""
        total = self.scores
        for k, message in enumerate(heard):
            total = total + message.reshape([len(message), *(-1 if j == k else 1 for j in range(len(heard)))])
        return total

    def speak(self, beliefs: Reals) -> None:
        """New messages to all variables."""
        heard = [self.heard(beliefs, k) for k in range(len(self.said))]
        total = self.totals(heard)
        for k, old in enumerate(self.said):
            new = _log_sum(total, k) - heard[k]
            new = np.maximum(new - new.max(axis=1, keepdims=True), LOWEST)
            self.said[k] = DAMPING * old + (1 - DAMPING) * new


def _log_sum(total: Reals, keep: int) -> Reals:
    """log sum exp over all axes but that of the factors and one more."""
    rows = np.moveaxis(total, keep + 1, 1).reshape(total.shape[0], total.shape[keep + 1], -1)
    top = rows.max(axis=2)
    out: Reals = top + np.log(np.exp(rows - top[:, :, None]).sum(axis=2))
    return out


class SumProduct:
    """Messages and the beliefs they make; `run` sends them until they change no more."""

    def __init__(self, graph: FactorGraph) -> None:
        self.cards = graph.cards
        self._begin = np.concatenate([[0], np.cumsum(self.cards)]).astype(np.int64)
        self.constant, self.converged = graph.constant, False
        self.change = inf  # the largest of a probability in the last round
        self._owner = np.repeat(np.arange(len(self.cards)), self.cards)
        arrays = graph.table_arrays()
        unary, stored_tables = np.array(arrays.unary), StoredTables(arrays)
        self.unary: Reals = np.maximum(unary, LOWEST * 100)
        shapes: dict[tuple[int, ...], tuple[list[tuple[int, ...]], list[Reals]]] = {}
        for factor in graph.factors():
            scope = tuple(int(v) for v in factor.variables)
            shape = tuple(int(self.cards[v]) for v in scope)
            stored = stored_tables[factor.table]
            table = stored if isinstance(stored, np.ndarray) else expand(stored, shape[0], shape[1])
            dense = factor.weight * (table.T if factor.transposed else table.reshape(shape))
            scopes, tables = shapes.setdefault(shape, ([], []))
            scopes.append(scope)
            tables.append(dense)
        self._shapes = [_Shape(*every, self._begin) for every in shapes.values()]

    @staticmethod
    def fits(graph: FactorGraph) -> bool:
        """Whether all tables can be listed."""
        return sum(float(np.prod(graph.cards[list(f.variables)])) for f in graph.factors()) <= MOST_ENTRIES

    def beliefs(self) -> Reals:
        """Logarithms, up to a constant for each variable, one label after the other."""
        total = np.array(self.unary)
        for shape in self._shapes:
            for at, said in zip(shape.at, shape.said, strict=True):
                np.add.at(total, at, said)
        return total

    def run(self, rounds: int, end: float = inf) -> None:
        """So many rounds at most, until the clock says `end` or probabilities change no more."""
        before = self.flat()
        for _ in range(rounds):
            beliefs = self.beliefs()
            for shape in self._shapes:
                shape.speak(beliefs)
            now = self.flat()
            self.change = float(np.abs(now - before).max(initial=0.0))
            self.converged = self.change < CLOSE
            if self.converged or clock.now() >= end:
                return
            before = now

    def flat(self) -> Reals:
        """P(variable = label), approximately, one label after the other."""
        beliefs, begin = self.beliefs(), self._begin[:-1]
        if not len(beliefs):
            return beliefs
        p = np.exp(beliefs - np.maximum.reduceat(beliefs, begin)[self._owner])
        out: Reals = p / np.add.reduceat(p, begin)[self._owner]
        return out

    def log_z(self) -> float:
        """Bethe's approximation, which is no bound."""
        beliefs, total = self.beliefs(), self.constant
        if not len(beliefs):
            return total
        top = np.maximum.reduceat(beliefs, self._begin[:-1])
        total += float((top + np.log(np.add.reduceat(np.exp(beliefs - top[self._owner]), self._begin[:-1]))).sum())
        for shape in self._shapes:
            heard = [shape.heard(beliefs, k) for k in range(len(shape.said))]
            flat = shape.totals(heard).reshape(len(shape.scores), -1)
            total += float(np.logaddexp.reduce(flat, axis=1).sum())
            for k, at in enumerate(shape.at):
                assert heard[k].shape == at.shape
                total -= float(np.logaddexp.reduce(beliefs[at], axis=1).sum())
        return total
