"""Tables that are equal, or each other's transpose, found for many of one shape at a time: by a hash, then entry by
entry."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 18  # entries that are looked at together
FEW = 4  # tables that are not worth a hash


@dataclass(frozen=True)
class EqualShapes:
    """Dense tables of one shape: stretches of `entries` that begin at `begin`, in which the last variable is the
    fastest, or the first where `reversed` says so."""

    shape: tuple[int, ...]
    entries: NDArray[np.float64]
    begin: NDArray[np.int64]
    reversed: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def rows(self, which: NDArray[np.int64], transposed: bool = False) -> NDArray[np.uint64]:
        """The bits of some of the tables, the last variable fastest; or of their transposes."""
        at, size = self.begin[which], self.size
        if (np.diff(at) == size).all():
            rows = self.entries[at[0] : at[0] + size * len(at)].reshape(-1, size)
        else:
            rows = self.entries[at[:, None] + np.arange(size)]
        turn = self.reversed[which] != transposed
        if turn.any():
            rows = rows.copy()
            proper = [n for n in (self.shape if transposed else self.shape[::-1]) if n > 1]
            axes, shape = (0, *range(len(proper), 0, -1)), proper
            rows[turn] = rows[turn].reshape(-1, *shape).transpose(axes).reshape(-1, size)
        bits: NDArray[np.uint64] = np.ascontiguousarray(rows).view(np.uint64)
        return bits

    def blocks(self, which: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        step = max(1, BLOCK // max(1, self.size))
        for k in range(0, len(which), step):
            yield which[k : k + step]

    def first_of_equals(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """For every table the first that is equal to it, or has it as its transpose; and whether it is the transpose.
        Transposes are looked for where there are two variables, with as many labels."""
        n = len(self.begin)
        if n <= FEW:
            return self._first_of_few()
        keys = self._hashes()
        leader = self._leaders(keys)
        if not self._is_square:
            return leader, np.zeros(n, bool)
        leaders = np.flatnonzero(leader == np.arange(n))
        order = np.argsort(keys[leaders], kind="stable")
        known, wanted = keys[leaders][order], self._hashes(transposed=True)[leaders]
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        partner = leaders[order[at]]
        found = np.flatnonzero((known[at] == wanted) & (partner < leaders))
        other = np.arange(n)
        for block in self.blocks(found):
            same = (self.rows(leaders[block], transposed=True) == self.rows(partner[block])).all(axis=1)
            other[leaders[block[same]]] = partner[block[same]]
        return other[leader], other[leader] != leader

    @property
    def _is_square(self) -> bool:
        return len(self.shape) == 2 and self.shape[0] == self.shape[1]

    def _first_of_few(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """One by one: there are models with as many shapes as tables."""
        leader, is_transpose = np.arange(len(self.begin)), np.zeros(len(self.begin), bool)
        known: dict[bytes, int] = {}
        for k in range(len(leader) if len(leader) > 1 else 0):
            one = np.array([k])
            found = known.get(self.rows(one).tobytes())
            if found is None and self._is_square:
                found = known.get(self.rows(one, transposed=True).tobytes())
                is_transpose[k] = found is not None
            if found is None:
                known[self.rows(one).tobytes()] = k
            leader[k] = k if found is None else found
        return leader, is_transpose

    def _hashes(self, transposed: bool = False) -> NDArray[np.uint64]:
        factors = np.random.default_rng(0).integers(0, 2**63, self.size, np.uint64) * np.uint64(2) + np.uint64(1)
        out = np.empty(len(self.begin), np.uint64)
        for block in self.blocks(np.arange(len(out))):
            bits = self.rows(block, transposed)
            bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # small numbers differ in few bits
            bits ^= bits >> np.uint64(29)
            out[block] = (bits * factors).sum(axis=1, dtype=np.uint64)
        return out

    def _leaders(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The first that is equal."""
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        leader = first[group.reshape(-1)].astype(np.int64)
        for block in self.blocks(np.flatnonzero(leader != np.arange(len(leader)))):
            wrong = (self.rows(block) != self.rows(leader[block])).any(axis=1)
            leader[block[wrong]] = block[wrong]  # where two have one hash by chance, each is its own
        return leader
