"""Size: what the sizes of a model say about which methods suit it."""

from __future__ import annotations

import numpy as np

from fginfer.core.model import Model
from fginfer.portfolio.member import Member
from fginfer.portfolio.relaxations import Greedy, Sweeps
from fginfer.portfolio.trees import Proof

# Commits say on which instances a rule was tried. Most numbers are round ones: chosen, not measured.
FEW_BITS = 300.0  # of a labeling: such a model is tried by edac first
FEWER_BITS, FEWER_TIMES = 100.0, 2.0  # with so few its shares are so many times as large
TRIAL_STATES = 1e5  # of a small model, which edac and branch and bound try before anything else
LONG_PASS = 1.5e8  # entries: beyond this a model is huge, and sweeps over its tables are too slow ...
LARGE_TABLE, MANY_TABLES = 2.5e4, 50_000  # ... if they have so many entries, and are not as many as those of an image:
# gdmm reads a few rows of each, and TRW-S no more where one table is shared (250,000 pixels of 256 labels, 12 s: gaps
# of .23 and 3e-6; a million of 12: .09, and proven in 2 s)
FEW_LABELS = 8  # so few that messages take no time
DENSE_DEGREE = 50  # factors a variable: TRW-S sends so many messages by halves, thirds, ... that its bound stays behind
PASS_TOO_LONG = 2e7  # and beyond this, too slow for branch and bound: TRW-S alone
MANY_FACTORS = 1_000_000  # beyond this there is one relaxation, and no presolve: their memory and time are needed
MANY_BINARY, BINARY_DEGREE = 100_000, 20  # binary factors, and so many a variable: ...
FEW_ATTRACT = 0.1  # ... if no more than this part of them rewards two ones, gdmm touches few of them, else nearly all
CROWDED = 8  # binary factors a variable: if the gap is HOPELESS (opening.py) it stays so, and presolve removes nothing
MANY_CYCLES = 40_000  # binary factors, beyond which cycles take long to begin: 80,000, 12 s: gap .014 instead of .038,
# score 53077 instead of 53245
LATE_SEARCH = 50  # iterations of that relaxation, by which it has found what it will soon
SOON = 4  # the same on dense graphs of binary variables, where its labelings are poor from the first to the last


class Size:
    """How large a model is, and which relaxation that calls for."""

    def __init__(self, model: Model) -> None:
        self.pass_work = model.pass_work
        self._states = model.states
        cards, factors = model.cards, model.n_factors
        self._most_labels = int(cards.max(initial=1))
        binary = self._most_labels == 2 and self.pass_work == 4 * factors
        self._dense_binary = binary and factors > max(MANY_BINARY, BINARY_DEGREE * len(cards))
        self.touches_few = self._dense_binary and model.attraction <= FEW_ATTRACT  # gdmm finds the labelings, too
        self.is_sparse = factors < len(cards)  # as forests are, on which TRW-S ends after a sweep or two
        self._dense = factors > DENSE_DEGREE * len(cards) and self._most_labels > FEW_LABELS
        self.is_huge = factors > MANY_FACTORS or self.pass_work > LONG_PASS
        bits = float(np.log2(np.maximum(cards, 1)).sum()) if self._states <= TRIAL_STATES else np.inf
        self.few_labelings = bits <= FEW_BITS  # a tree may have seen all of them soon
        self.is_crowded = binary and factors > CROWDED * len(cards) and not (self.few_labelings or self.touches_few)
        self.may_be_frustrated = binary and len(cards) <= factors <= MANY_CYCLES and not self.is_crowded
        self.tree_times = FEWER_TIMES if self.few_labelings and bits <= FEWER_BITS else 1.0
        self._large_tables = (
            self.pass_work > LONG_PASS and self.pass_work > LARGE_TABLE * factors and factors <= MANY_TABLES
        )

    @property
    def is_small(self) -> bool:
        """A proof is worth a try before anything else."""
        return not self.is_huge and not self._dense_binary and self._states <= PASS_TOO_LONG

    @property
    def relaxation(self) -> type[Member]:
        """gdmm where sweeps over all tables would take too long, branch and bound where they take little time."""
        if self.touches_few or self._large_tables:
            return Greedy
        if self.is_small:
            return Proof
        return Greedy if self._dense else Sweeps

    @property
    def begins_with_unaries(self) -> bool:
        """The relaxation's own first labeling is that of the unaries: nobody else needs to score it."""
        return self.touches_few or self.relaxation is Sweeps

    @property
    def search_is_due(self) -> int:
        """Iterations of the relaxation of a huge model after which a search pays: 0, at once."""
        if not self._dense_binary:
            return LATE_SEARCH
        return 0 if self.touches_few else SOON
