"""Size: what the sizes of a model say about which methods suit it."""

from __future__ import annotations

import numpy as np

from fginfer.core.model import Model
from fginfer.portfolio.rules import Rules


class Size:
    """How large a model is, and which relaxation that calls for."""

    def __init__(self, model: Model, rules: Rules) -> None:
        self._rules = rules
        self.pass_work = model.pass_work
        self._states = model.states
        cards, factors = model.cards, model.n_factors
        self._most_labels = int(cards.max(initial=1))
        binary = self._most_labels == 2 and self.pass_work == 4 * factors
        self._dense_binary = binary and factors > max(rules.many_binary, rules.binary_degree * len(cards))
        self.touches_few = self._dense_binary and model.attraction <= rules.few_attract  # gdmm finds the labelings, too
        self.is_sparse = factors < len(cards)  # as forests are, on which TRW-S ends after a sweep or two
        self._dense = factors > rules.dense_degree * len(cards) and self._most_labels > rules.few_labels
        self.is_huge = factors > rules.many_factors or self.pass_work > rules.long_pass
        bits = float(np.log2(np.maximum(cards, 1)).sum()) if self._states <= rules.trial_states else np.inf
        self.few_labelings = bits <= rules.few_bits  # a tree may have seen all of them soon
        self.is_crowded = (
            binary and factors > rules.crowded * len(cards) and not (self.few_labelings or self.touches_few)
        )
        self.may_be_frustrated = binary and len(cards) <= factors <= rules.many_cycles and not self.is_crowded
        self.suits_spins = binary and len(cards) <= rules.sdp_variables and factors >= rules.sdp_degree * len(cards)
        self.suits_triples = (
            not binary
            and rules.triples_degree * len(cards) <= factors <= rules.triples_factors
            and model.max_arity == 2
        )
        pairs = len(cards) * (len(cards) - 1) // 2
        self.suits_assignment = (
            rules.least_places <= len(cards) <= rules.most_places
            and self._most_labels <= rules.most_places
            and factors >= pairs
        )  # the method itself looks whether all of them must differ
        self.tree_times = rules.fewer_times if self.few_labelings and bits <= rules.fewer_bits else 1.0
        self._large_tables = (
            self.pass_work > max(rules.long_pass, rules.large_table * factors) and factors <= rules.many_tables
        )

    @property
    def is_small(self) -> bool:
        """A proof is worth a try before anything else."""
        return not self.is_huge and not self._dense_binary and self._states <= self._rules.pass_too_long

    @property
    def relaxation(self) -> str:
        """gdmm where sweeps over all tables would take too long, branch and bound where they take little time."""
        if self.touches_few or self._large_tables:
            return "gdmm"
        if self.is_small:
            return "bnb"
        return "gdmm" if self._dense else "trws"

    @property
    def begins_with_unaries(self) -> bool:
        """The relaxation's own first labeling is that of the unaries: nobody else needs to score it."""
        return self.touches_few or self.relaxation == "trws"

    @property
    def search_is_due(self) -> int:
        """Iterations of the relaxation of a huge model after which a search pays: 0, at once."""
        if not self._dense_binary:
            return self._rules.late_search
        return 0 if self.touches_few else self._rules.dense_search
