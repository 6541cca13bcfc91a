"""Chain: a layered weighted automaton. Layer i reads the label of variable i and goes from a state to a state.

A rule as a chain is a tree of small tables (Allouche et al. 2016 decompose global cost functions the same way, and soft
arc consistency loses nothing by it); every question about the rule is then dynamic programming.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chain:
    """`tables[i][s, label, t]` is the score of going from state s to t by a label of variables[i]; -inf: no way.

    There is one state before the first layer and one after the last. Equal layers are the same array. In a chain
    that is `deterministic` a state and a label have at most one next state.
    """

    variables: tuple[int, ...]
    tables: tuple[Table, ...]
    deterministic: bool = True

    @property
    def is_broken(self) -> bool:
        """Whether some layer has no state that leads anywhere."""
        return any(0 in table.shape for table in self.tables)

    def path(self, labels: Sequence[int]) -> list[int] | None:
        """The states between the layers for labels of its variables; None if there is no way."""
        if self.is_broken:
            return None
        if self.deterministic:
            return self._walk(labels)
        value, back = np.zeros(1), []
        for table, label in zip(self.tables, labels, strict=True):
            ways = value[:, None] + table[:, label, :]
            back.append(ways.argmax(axis=0))
            value = ways.max(axis=0)
        if value[0] == -inf:
            return None
        return self._retraced(back)

    def _walk(self, labels: Sequence[int]) -> list[int] | None:
        states, at = [], 0
        for table, label in zip(self.tables, labels, strict=True):
            row = table[at, label]
            at = int(row.argmax())
            if row[at] == -inf:
                return None
            states.append(at)
        return states[:-1]

    @staticmethod
    def _retraced(back: list[NDArray[np.intp]]) -> list[int]:
        at, states = 0, []
        for choice in reversed(back):
            at = int(choice[at])
            states.append(at)
        return states[::-1][1:]

    def score(self, labels: Sequence[int]) -> float:
        """The score of labels of its variables."""
        states = self.path(labels)
        if states is None:
            return -inf
        ends = zip([0, *states], labels, [*states, 0], strict=True)
        return float(sum(t[s, x, e] for t, (s, x, e) in zip(self.tables, ends, strict=True)))

    def best(self, gains: Sequence[NDArray[np.float64]]) -> tuple[list[int], float] | None:
        """The labels with the largest score plus gains (one per label), and that sum; None if there are none."""
        if self.is_broken:
            return None
        value, back = np.zeros(1), []
        for table, gain in zip(self.tables, gains, strict=True):
            ways = value[:, None, None] + table + gain[None, :, None]
            flat = ways.reshape(-1, ways.shape[2])
            back.append((flat.argmax(axis=0), ways.shape[1]))
            value = flat.max(axis=0)
        if value[0] == -inf:
            return None
        at, labels = 0, []
        for choice, n_labels in reversed(back):
            at, label = divmod(int(choice[at]), n_labels)
            labels.append(label)
        return labels[::-1], float(value[0])

    def supported(self, allowed: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """The allowed labels that some labeling with a finite score uses."""
        forward = [np.ones(1, bool)]
        for table, mask in zip(self.tables, allowed, strict=True):
            ways = (table > -inf) & forward[-1][:, None, None] & mask[None, :, None]
            forward.append(np.asarray(ways.any(axis=(0, 1))))
        after, found = np.ones(1, bool), []
        for table, mask, before in zip(reversed(self.tables), reversed(allowed), reversed(forward[:-1]), strict=True):
            ways = (table > -inf) & after[None, None, :] & mask[None, :, None]
            found.append(np.asarray((ways & before[:, None, None]).any(axis=(0, 2))))
            after = np.asarray(ways.any(axis=(1, 2)))
        return found[::-1]
