"""The chain of a sum: its states are totals so far, merged where the rest cannot tell them apart.

A total whose score lies on one constant piece whatever follows is one state with all others of that score; on a sloped
piece the score is paid as the total grows, so that these are one state, too. "At most k of n" has k + 2 states or less.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from fginfer.errors import SolverError
from fginfer.rules.chain import Chain, Table
from fginfer.rules.steps import Piece, Steps

MOST_ENTRIES = 150_000_000  # scores of the distinct tables of one chain, that is 1.2 GB (chosen)
FEW_ENTRIES = 4_000_000  # up to here each layer has only the states that it can reach (chosen)

State = Any  # an int: the total so far; ("constant", score) or ("line", piece): one piece from here on


class SumChain:
    """Makes the layers one after the other."""

    def __init__(self, name: str, adds: tuple[tuple[int, ...], ...], steps: Steps, modulus: int, whole: bool) -> None:
        self.name, self.adds, self.steps, self.modulus = name, adds, steps, modulus
        self.whole = whole  # every layer has every state: more states, but equal layers
        rest = [0]
        for add in reversed(adds):
            rest.append(rest[-1] + max(add))
        self.rest = rest[::-1]  # what may still be added before each layer, and after the last
        self.kept: dict[Any, tuple[Table, tuple[State, ...]]] = {}
        self.entries = 0

    def tables(self) -> tuple[Table, ...] | None:
        """The layers; None if they are larger than allowed."""
        states: tuple[State, ...] = (0,)
        out: list[Table] = []
        most = FEW_ENTRIES if not self.whole else MOST_ENTRIES
        for i, add in enumerate(self.adds):
            table, states = self._layer(i, add, states)
            if self.entries > most:
                return None
            out.append(table)
        return tuple(out)

    def _layer(self, i: int, add: tuple[int, ...], states: tuple[State, ...]) -> tuple[Table, tuple[State, ...]]:
        last = i == len(self.adds) - 1
        key = (states, add, self._end(states, i + 1)) if not last else None
        if key is not None and key[2] is not None and key in self.kept:
            return self.kept[key]
        ways = {(s, a): self._next(s, a, i + 1) for a in set(add) for s in states}
        if last:
            after: tuple[State, ...] = ("end",)
        elif self.whole:
            after = self._every_state()
        else:
            after = tuple(sorted({t for t, score in ways.values() if score > -inf}, key=_order))
        self.entries += len(states) * len(add) * len(after)
        if self.entries > MOST_ENTRIES:
            return np.zeros((0, 0, 0)), after
        at = {t: k for k, t in enumerate(after)}
        table = np.full((len(states), len(add), len(after)), -inf)
        own = np.array(add, object if max(add) >= 2**62 else np.int64)
        for a in set(add):
            labels = np.flatnonzero(own == a)
            for k, s in enumerate(states):
                t, score = ways[s, a]
                if last and score > -inf:
                    table[k, labels, 0] = score + (0.0 if isinstance(t, tuple) else self.steps(t))
                elif score > -inf and t in at:
                    table[k, labels, at[t]] = score
        if key is not None and key[2] is not None:
            self.kept[key] = table, after
        return table, after

    def _end(self, states: tuple[State, ...], i: int) -> Any:
        """The piece in which the largest totals of all states end, if it is the same one: layers depend on it alone."""
        if self.modulus:
            return "modulus"
        if self.whole:
            return "whole"
        totals = [s for s in states if isinstance(s, int)]
        if not totals:
            return "none"
        low, high = totals[0] + self.rest[i], totals[-1] + self.rest[i - 1]
        piece = self.steps.piece(min(low, self.steps.most))
        return piece.start if piece == self.steps.piece(min(high, self.steps.most)) else None

    def _next(self, state: State, add: int, i: int) -> tuple[State, float]:
        """The state before layer i, and the score that is paid on the way; -inf if it leads nowhere."""
        if isinstance(state, tuple):
            return state, state[1].slope * add if state[0] == "line" and add else 0.0
        total = state + add
        if self.modulus:
            return total % self.modulus, 0.0
        piece = self.steps.piece(total)
        settled = piece.start == self.steps.last if self.whole else self._stays(piece, total + self.rest[i])
        if not settled or (piece.slope and i == len(self.adds)):
            return total, 0.0
        if piece.slope:
            return ("line", piece), piece(total)
        return ("constant", piece.base), piece.base

    def _stays(self, piece: Piece, most: int) -> bool:
        return self.steps.piece(most) == piece

    def _every_state(self) -> tuple[State, ...]:
        if self.modulus:
            return tuple(range(self.modulus))
        piece = self.steps.pieces[-1]
        settled: list[State] = [("line", piece)] if piece.slope else [("constant", piece.base)]
        return (*range(self.steps.last), *(settled if piece.base > -inf else []))


def _order(state: State) -> tuple[int, float, float]:
    if isinstance(state, int):
        return 0, state, 0.0
    return (1, state[1], 0.0) if state[0] == "constant" else (2, state[1].start, 0.0)


def sum_chain(
    name: str, variables: tuple[int, ...], adds: tuple[tuple[int, ...], ...], steps: Steps, modulus: int
) -> Chain:
    """The smallest of: layers with their own states, and layers with every state, counted up or down."""
    tables = SumChain(name, adds, steps, modulus, whole=False).tables()
    if tables is None:
        tops = [max(add) for add in adds]
        turned = tuple(tuple(top - a for a in add) for add, top in zip(adds, tops, strict=True))
        over = Steps(steps.pieces, sum(tops)).mirrored() if not modulus else steps
        if not modulus and over.last < steps.last:
            adds, steps = turned, over
        if not modulus and (steps.last + 1) ** 2 > MOST_ENTRIES:
            tables = None
        else:
            tables = SumChain(name, adds, steps, modulus, whole=True).tables()
    if tables is None:
        raise SolverError(
            f"{name}: its sum has more totals than tables can hold ({MOST_ENTRIES:.2g} scores); "
            "smaller or coarser weights, or a smaller limit, need fewer"
        )
    return Chain(variables, tables)
