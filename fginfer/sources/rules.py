"""Constraints as sources: what a table is asked, and what constraints are asked besides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.oracles import address, whole_numbers
from fginfer.core.rules import TallyHandle
from fginfer.errors import ModelError
from fginfer.rules import Rule
from fginfer.sources.answers import Argmax, Message, Questions, flat_states
from fginfer.sources.tables import Source, path_number


class RuleOracle(Source):
    """A constraint of a graph (one of `graph.rules`) as a source of the oracle.

    Its state is the labels of `rule.variables`, in their order, and may have any number of them. Best states and
    max-marginals come from the constraint's own algorithm: sorting for counts, dynamic programming or a search around
    a price for sums, an assignment for occurrences, Viterbi for automata, the listed states for sparse tables. Ties go
    to the lowest state, but in sums of very many totals. path="scan" looks at every state instead, to compare.

    >>> from fginfer import FactorGraph
    >>> graph = FactorGraph([2] * 1000)
    >>> handle = graph.add_at_most(2, [(i, 1) for i in range(1000)])
    >>> oracle = RuleOracle(graph.rules[0])
    >>> best = oracle.argmax([{1: -1.0 - i} for i in range(1000)])
    >>> best.value, best.state[-3:]
    (1999.0, (0, 1, 1))
    """

    def __init__(self, rule: Rule, threads: int = 1) -> None:
        super().__init__(threads)
        if not isinstance(rule, Rule):
            raise ModelError(f"rule must be one of graph.rules, not {type(rule).__name__}")
        if not rule.variables:
            raise ModelError(f"this constraint ({rule.kind}) is about no variable: its score is {rule.score([]):g}")
        self.rule, self._native = rule, rule.native()
        self.shape = tuple(int(n) for n in self._native.cards)

    def argmax(self, messages: Sequence[Message] | None = None, *, excluded: Sequence[int] | None = None) -> Argmax:
        """The best state under messages, other than `excluded`."""
        return self.best(1, messages, excluded=excluded)[0]

    def best(
        self,
        n: int,
        messages: Sequence[Message] | None = None,
        *,
        excluded: Sequence[int] | Iterable[Sequence[int]] | None = None,
        path: str = "auto",
    ) -> list[Argmax]:
        """The n best states, best first."""
        arity = len(self.shape)
        batch = Questions(self._native.source, 1, n, path_number(path))
        batch.messages(messages, arity)
        batch.excluded(flat_states(excluded, self.shape))
        labels = np.full((n, arity), -1, np.int32)
        batch.queries["labels"] = address(labels)
        answers = batch.ask(self._oracle)
        found = zip(labels.tolist(), np.atleast_1d(answers.values.ravel()), strict=True)
        return [Argmax(tuple(x), float(v)) if v > -inf else Argmax(None, -inf) for x, v in found]

    def max_marginals(self, variable: int, messages: Sequence[Message] | None = None) -> NDArray[np.float64]:
        """What every label of one variable of the rule (by its position) has at best; its own message is left out."""
        if not 0 <= variable < len(self.shape):
            raise ModelError(f"there is no variable {variable} in a factor of {len(self.shape)}")
        batch = Questions(self._native.source, 1)
        batch.messages(messages, len(self.shape))
        return batch.marginals(self._oracle, variable, self.shape[variable])

    def score(self, state: ArrayLike) -> float:
        """The score of a state; -inf if it is forbidden."""
        return self._native.score(self._checked(state))

    def propagate(self, allowed: Sequence[ArrayLike]) -> list[NDArray[np.bool_]]:
        """The labels of `allowed` (a mask for each variable) that are left when those without support are removed.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([3, 3, 3])
        >>> handle = graph.add_all_different([0, 1, 2])
        >>> oracle = RuleOracle(graph.rules[0])
        >>> [mask.tolist() for mask in oracle.propagate([[1, 1, 0], [1, 1, 0], [1, 1, 1]])]
        [[True, True, False], [True, True, False], [False, False, True]]
        >>> oracle.reason([[1, 1, 0], [1, 1, 0], [1, 1, 1]], 2, 0)
        [0, 1]
        """
        flat = self._flat(allowed)
        self._native.propagate(flat)
        return [mask.astype(bool) for mask in np.split(flat, self._native.begin[1:-1])]

    def reason(self, allowed: Sequence[ArrayLike], variable: int, label: int) -> list[int]:
        """Why a label goes under `allowed`: positions of variables whose missing labels do it, all of them needed."""
        return self._native.reason(self._flat(allowed), variable, label)

    def tally(self, state: ArrayLike) -> Tally:
        """A state that moves: what a search asks."""
        return Tally(self, self._checked(state))

    @property
    def memory(self) -> int:
        """Bytes held by the core."""
        return self._native.memory()

    def _checked(self, state: ArrayLike) -> NDArray[np.int32]:
        labels = np.ascontiguousarray(whole_numbers("state", state, np.int32))
        if labels.shape != (len(self.shape),) or (labels < 0).any() or (labels >= self._native.cards).any():
            raise ModelError(f"a state of this rule is {len(self.shape)} labels in range")
        return labels

    def _flat(self, allowed: Sequence[ArrayLike]) -> NDArray[np.uint8]:
        masks = [np.asarray(mask, bool).astype(np.uint8) for mask in allowed]
        if [mask.shape for mask in masks] != [(n,) for n in self.shape]:
            raise ModelError("allowed must hold a mask for each variable, with an entry for each label")
        return np.concatenate(masks)


class Tally:
    """A state of a rule and its score, kept while variables move: O(1) a variable for sums and occurrences.

    >>> from fginfer import FactorGraph
    >>> graph = FactorGraph([2, 2, 2])
    >>> handle = graph.add_at_most(1, [(0, 1), (1, 1), (2, 1)], penalty=1.5)
    >>> tally = RuleOracle(graph.rules[0]).tally([1, 0, 0])
    >>> tally.after({1: 1}), tally.after({0: 0, 1: 1}), tally.score
    (-1.5, 0.0, 0.0)
    """

    def __init__(self, oracle: RuleOracle, state: NDArray[np.int32]) -> None:
        self._shape, self._native = oracle.shape, TallyHandle(oracle._native, state)

    @property
    def score(self) -> float:
        """The score of the state as it is."""
        return self._native.score()

    def after(self, moves: Mapping[int, int]) -> float:
        """The score if variables had other labels: `moves` are {position: label}."""
        return self._native.after(*self._moves(moves))

    def move(self, moves: Mapping[int, int]) -> None:
        """The `moves` are made: the state has these labels from now on."""
        self._native.move(*self._moves(moves))

    def _moves(self, moves: Mapping[int, int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        for variable, label in moves.items():
            if not 0 <= variable < len(self._shape) or not 0 <= label < self._shape[variable]:
                raise ModelError(f"there is no label {label} of variable {variable} in this rule")
        return np.array(list(moves), np.int32), np.array(list(moves.values()), np.int32)
