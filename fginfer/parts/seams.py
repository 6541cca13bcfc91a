"""Seams: the variables that parts share, and the multipliers on their labels.

Multipliers are whole multiples of one power of two and are kept as integers, so their sum over the copies of a variable
is exactly 0. A step shares out again what the parts together believe of a label: the sum of the parts' dual functions
never gets worse by it, and the parts' sweeps do the rest.
"""

from __future__ import annotations

from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.errors import ModelError
from fginfer.parts.part import PartFacts
from fginfer.parts.rules import RULES
from fginfer.parts.shard import from_runs, ragged

Reals = NDArray[np.float64]


class Seams:
    """Who shares what."""

    def __init__(self, facts: list[PartFacts]) -> None:
        self.n_variables = check_numbers(facts)
        borders = [f.border for f in facts]
        self.variables, where = np.unique(np.concatenate([np.zeros(0, np.int64), *borders]), return_inverse=True)
        ends = np.cumsum([len(b) for b in borders])[:-1]
        self._rows = np.split(where.reshape(-1).astype(np.int64), ends)  # rows of each part: its border in `variables`
        self._cards = self._check_cards(facts)
        begin = begins(self._cards)
        self.n_labels = int(begin[-1])
        self._slots = [ragged(begin, rows) for rows in self._rows]
        copies, degrees = np.zeros(self.n_labels), np.zeros(self.n_labels)
        seen, forbidden = np.zeros(self.n_labels, bool), np.zeros(self.n_labels, bool)
        self._begins = [begins(f.cards) for f in facts]
        self._first = []  # labels of each part: the labels whose first copy it has
        for slots, f in zip(self._slots, facts, strict=True):
            self._first.append(~seen[slots])
            seen[slots] = True
            copies[slots] += 1
            degrees[slots] += np.repeat(f.degree, f.cards)
            forbidden[slots[f.forbidden]] = True
        self._fixed = forbidden | (copies < 2)
        self._shares = [
            np.where(
                degrees[slots] > 0, np.repeat(f.degree, f.cards) / np.maximum(degrees[slots], 1), 1 / copies[slots]
            )
            for slots, f in zip(self._slots, facts, strict=True)
        ]
        self._holder = self._holders(facts)
        self.quantum = _power_below(max((f.largest for f in facts), default=1.0)) * 2.0**-RULES.quantum_bits
        self._counts = [np.zeros(len(slots), np.int64) for slots in self._slots]

    def _check_cards(self, facts: list[PartFacts]) -> NDArray[np.int32]:
        cards = np.zeros(len(self.variables), np.int32)
        for p, (rows, f) in enumerate(zip(self._rows, facts, strict=True)):
            wrong = (cards[rows] != 0) & (cards[rows] != f.cards)
            if wrong.any():
                k = int(np.flatnonzero(wrong)[0])
                v, n, m = int(f.border[k]), int(f.cards[k]), int(cards[rows[k]])
                raise ModelError(f"variable {v} has {n} labels in part {p} and {m} in another part")
            cards[rows] = f.cards
        return cards

    def _holders(self, facts: list[PartFacts]) -> NDArray[np.int32]:
        """The part whose label a shared variable gets at first: the one with most of its factors."""
        most = np.full(len(self.variables), -1, np.int32)
        holder = np.zeros(len(self.variables), np.int32)
        for p, (rows, f) in enumerate(zip(self._rows, facts, strict=True)):
            better = f.degree > most[rows]
            most[rows[better]], holder[rows[better]] = f.degree[better], p
        return holder

    # -- multipliers -------------------------------------------------------------------------------------------

    def multipliers(self, part: int) -> Reals:
        """Those of a part's border: doubles that are exactly the multiples."""
        return np.asarray(self._counts[part] * self.quantum, np.float64)

    @property
    def counts(self) -> list[NDArray[np.int64]]:
        """The multiples; what is kept of a round."""
        return self._counts

    @counts.setter
    def counts(self, counts: list[NDArray[np.int64]]) -> None:
        total = np.zeros(self.n_labels, np.int64)
        for slots, own in zip(self._slots, counts, strict=True):
            if own.shape != slots.shape:
                raise ModelError("the multipliers are of other parts")
            total[slots] += own
        if total.any():
            raise ModelError("the multipliers do not sum to 0")
        self._counts = counts

    def step(self, beliefs: list[Reals], number: int = 0) -> None:
        """Every copy gets a share of the sum of the copies' beliefs: on average as much of it as it has factors. Any
        shares are as good at once; drawn anew in every round they end fewer times where only several of them together
        would gain. The round says which are drawn, so that a round that is done again is the same."""
        finite = [_without_infinities(b) for b in beliefs]
        whole = np.zeros(self.n_labels)
        for slots, b in zip(self._slots, finite, strict=True):
            whole[slots] += b
        pairs = zip(self._slots, self._drawn(number), finite, strict=True)
        self._move([share * whole[slots] - b for slots, share, b in pairs])

    def _drawn(self, number: int) -> list[Reals]:
        """The shares of a round: one for all labels of a copy."""
        draws, total = [], np.zeros(self.n_labels)
        for p, (slots, share, begin) in enumerate(zip(self._slots, self._shares, self._begins, strict=True)):
            each = np.random.default_rng((number, p)).random(len(begin) - 1) + RULES.least_draw
            draws.append(share * np.repeat(each, np.diff(begin)))
            total[slots] += draws[-1]
        positive = np.maximum(total, np.finfo(float).tiny)
        return [draw / positive[slots] for slots, draw in zip(self._slots, draws, strict=True)]

    def kick(self, labels: list[NDArray[np.int32]], size: float) -> bool:
        """A step along a subgradient: a part that has a label where the others have another one is to like it less.
        Steps of `step` alone may end where no single one gains. The bound is to gain `size` by it. False: all agree."""
        chosen, whole = [], np.zeros(self.n_labels)
        for slots, begin, own in zip(self._slots, self._begins, labels, strict=True):
            x = np.zeros(len(slots))
            x[begin[:-1] + own] = 1
            whole[slots] += x
            chosen.append(x)
        apart = [x - share * whole[slots] for slots, share, x in zip(self._slots, self._shares, chosen, strict=True)]
        length = sum(float(x @ x) for x in apart)
        if length > 0:
            self._move([-size / length * x for x in apart])
        return length > 0

    def _move(self, wanted: list[Reals]) -> None:
        """Adds these to the multipliers, as multiples that sum to 0."""
        total, large = np.zeros(self.n_labels, np.int64), self._fixed.copy()
        moves = []
        for slots, by, own in zip(self._slots, wanted, self._counts, strict=True):
            move = np.rint(np.clip(by / self.quantum, -(2.0**60), 2.0**60)).astype(np.int64)
            total[slots] += move
            large[slots[np.abs(own + move) > RULES.most_multiplier]] = True
            moves.append(move)
        new = []
        for slots, first, move, own in zip(self._slots, self._first, moves, self._counts, strict=True):
            move -= np.where(first, total[slots], 0)  # what rounding to multiples has left over
            new.append(own + np.where(large[slots], 0, move))
        self._counts = new

    # -- labels ------------------------------------------------------------------------------------------------

    def agree(self, labels: list[NDArray[np.int32]]) -> list[NDArray[np.int32]]:
        """One label for each shared variable, that of its holder, as every part needs them."""
        chosen = np.zeros(len(self.variables), np.int32)
        for p, (rows, own) in enumerate(zip(self._rows, labels, strict=True)):
            held = self._holder[rows] == p
            chosen[rows[held]] = own[held]
        return [chosen[rows] for rows in self._rows]

    def border(self, part: int) -> NDArray[np.int64]:
        """The numbers of the variables that a part shares."""
        return np.asarray(self.variables[self._rows[part]])


def check_numbers(facts: list[PartFacts]) -> int:
    """How many variables there are in all. ModelError where parts overlap, or leave one out."""
    ends = [int(f.border.max(initial=-1)) for f in facts]
    ends += [int((f.interior.sum(1)).max(initial=0)) - 1 for f in facts]
    n = max(ends, default=-1) + 1
    held = sum(int(f.interior[:, 1].sum()) + len(f.border) for f in facts)
    if n > held:
        raise ModelError(f"the parts number their variables up to {n - 1}, but have no more than {held}")
    seen = np.zeros(n, np.uint8)
    for f in facts:
        seen[f.border] = 1
    for p, f in enumerate(facts):
        for first, count in f.interior.tolist():
            block = seen[first : first + count]
            if block.any():
                v = first + int(np.flatnonzero(block)[0])
                raise ModelError(f"parts overlap: part {p} has variable {v} for itself, but another part has it, too")
            block[:] = 2
    if n and not seen.all():
        raise ModelError(f"no part has variable {int(np.flatnonzero(seen == 0)[0])}; there are {n}")
    return n


def assemble(facts: list[PartFacts], n: int, labels: list[NDArray[Any]]) -> NDArray[np.int32]:
    """The labeling of the whole out of those of the parts."""
    out = np.zeros(n, np.int32)
    for f, own in zip(facts, labels, strict=True):
        out[f.border] = own[: len(f.border)]
        at = len(f.border)
        for first, count in f.interior.tolist():
            out[first : first + count] = own[at : at + count]
            at += count
    return out


def numbers_of(facts: PartFacts) -> NDArray[np.int64]:
    """The numbers of a part's variables, in its order."""
    return np.concatenate([facts.border, from_runs(facts.interior)])


def _without_infinities(beliefs: Reals) -> Reals:
    """A label that a part knows to be forbidden counts as much worse than all others."""
    known = np.isfinite(beliefs)
    if known.all():
        return beliefs
    low, high = (beliefs[known].min(), beliefs[known].max()) if known.any() else (0.0, 0.0)
    out: Reals = np.where(known, beliefs, low - RULES.forbidden_drop * (high - low))
    return out


def _power_below(x: float) -> float:
    """The largest power of two that is no larger; 1 for 0."""
    return 2.0 ** max(-900, frexp(x)[1] - 1) if 0 < x < float("inf") else 1.0
