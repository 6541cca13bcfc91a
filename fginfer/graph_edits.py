"""GraphEdits: changes of a FactorGraph's structure after the fact: new variables, new weights, factors that go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from fginfer.errors import ModelError
from fginfer.graph_changes import GraphChanges
from fginfer.growing import Growing
from fginfer.handles import FactorLog, Folded, Handle, RuleFactor, TableFactor
from fginfer.journal import Other, Removed
from fginfer.labelings import check_cards
from fginfer.names import Names
from fginfer.options import is_number
from fginfer.rules.make import constant_rule
from fginfer.table_values import Dense, negate_held


class GraphEdits(GraphChanges):
    """What FactorGraph inherits: variables and factors that come or go at any time."""

    _growing: Growing[np.int32] | None = None  # the label counts, once a variable was added

    @property
    def factor_log(self) -> FactorLog:
        """What is remembered about the factors that have handles; their places are their numbers in the model."""
        with self.lock:
            if self._builder is not None and self._builder.removed:
                assert self.table_model is not None  # which closes the empty places
            return self._log

    def add_variable(self, labels: int | Sequence[str], name: str | None = None) -> int:
        """Adds a variable with so many labels, or with labels of these names, and returns its number.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([])
        >>> rain, floor = graph.add_variable(["no", "yes"], name="rain"), graph.add_variable(3)
        >>> graph.cards.tolist(), graph.label("rain", "yes")
        ([2, 3], 1)
        """
        with self.lock:
            new = len(self._cards)
            listed = not is_number(labels, whole=True)
            if listed and (isinstance(labels, str) or not isinstance(labels, Sequence) or not labels):
                raise ModelError(f"a variable has a number of labels or a list of their names, not {labels!r}")
            card = len(labels) if isinstance(labels, Sequence) else int(labels)
            if card < 1:
                raise ModelError(f"variable {new} has {card} labels; between 1 and 2^31-1 are possible")
            check_cards([card])
            names = Names() if self._names is None else self._names
            names = names.copy() if names.shared or name is not None or listed else names
            if isinstance(labels, Sequence):
                names.name_labels(new, labels, card)
            if name is not None:
                names.name_variable(new, name)
            self._building().add_variable(card)
            self.journal.note(Other())
            self._names = names or None
            self._take_card(card)
            return new

    def _take_card(self, card: int) -> None:
        if self._growing is None or len(self._growing.values) != len(self._cards):
            self._growing = Growing(np.array(self._cards))
        self._growing.append(np.array([card], np.int32))
        self._cards = self._growing.values
        self._cards.setflags(write=False)
        self._offsets = None

    # -- weights -----------------------------------------------------------------------------------------------

    def set_weight(self, factor: Handle | str, weight: float) -> None:
        """A new weight for a factor or constraint, called by its handle or name; running solvers keep the old one.

        The scores are those that were given times the weight. What a constraint forbids stays forbidden unless the
        weight is 0; a negative weight is for factors without forbidden states, and for no constraint.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2])
        >>> tie = graph.add_factor([0, 1], [[1.0, 0.0], [0.0, 1.0]])
        >>> graph.set_weight(tie, 3)
        >>> graph.score([1, 1])
        3.0
        """
        with self.lock:
            index = self._log.find(factor)
            if not is_number(weight) or not isfinite(weight):
                raise ModelError(f"the weight of a factor must be a finite number, not {weight!r}")
            record, said = self._log.records[index], f"factor {index}"
            if isinstance(record, Folded):
                self._refuse_fixed(record.scope)
                self._refold(record.scope, {index: replace(record, weight=float(weight))})
                self._log.records[index] = replace(record, weight=float(weight))
                self._note_sum(record.scope)
            elif isinstance(record, TableFactor):
                self._log.records[index] = self._reweigh(said, record, float(weight))
            else:
                self._weigh_rule(said, record, float(weight))
                self.journal.note(Other())

    def _weigh_rule(self, said: str, record: RuleFactor, weight: float) -> None:
        if weight < 0:
            raise ModelError(f"{said}: the weight of a constraint must be 0 or more, not {weight:g}")
        rule = record.rule
        self._rules[record.position] = rule.weighted(weight) if weight else constant_rule(rule.kind, 0.0)

    def _refold(self, scope: tuple[int, ...], changed: dict[int, Folded | None]) -> None:
        """Sums the factors over a variable again, some of them changed or (None) left out."""
        builder = self._building()
        before = builder.sum_at(scope)
        base, members = self._log.folded(scope)
        try:
            builder.put(scope, *(np.zeros((1, before.shape[1])) if base is None else base))
            for k, record in members:
                now = changed.get(k, record)
                if now is not None:
                    builder.add_factor(f"factor {k}", scope, now.values, now.weight, False)
        except BaseException:
            builder.put(scope, *before)
            raise

    def _reweigh(self, said: str, record: TableFactor, weight: float) -> TableFactor:
        """Adds the factor again with its new weight, and puts it in the place of the old one."""
        table: Any = record.given
        builder = self._building()
        if table is None:
            held = builder.table(builder.table_of(record.place))
            held = negate_held(held, said) if record.weight < 0 else held
            assert isinstance(held, Dense)
            table = held.values
        builder.add_factor(said, record.scope, table, weight, record.transposed)
        self.journal.note(Removed(record.place))
        self._note_added(record.scope, record.place)
        builder.replace(record.place)
        keep = table if record.given is not None or weight == 0 else None
        return replace(record, weight=weight, given=keep)

    # -- removal -----------------------------------------------------------------------------------------------

    def remove_factor(self, factor: Handle | str) -> None:
        """Removes a factor or constraint, called by its handle or name; running solvers keep it.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2])
        >>> handle = graph.add_clause([(0, 1), (1, 1)], name="one of them")
        >>> graph.remove_factor("one of them")
        >>> graph.score([0, 0])
        0.0
        """
        with self.lock:
            index = self._log.find(factor)
            record = self._log.records[index]
            if isinstance(record, Folded):
                self._refuse_fixed(record.scope)
                self._refold(record.scope, {index: None})
                self._note_sum(record.scope)
            elif isinstance(record, TableFactor):
                self._building().remove(record.place)
                self.journal.note(Removed(record.place))
            else:
                self.journal.note(Other())
                del self._rules[record.position]
            self._log.remove(index)
            self._given -= 1
