"""WhatIf: variables that are fixed for a while, and changes that are taken back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.core.model import Model
from fginfer.errors import ModelError
from fginfer.graph_edits import GraphEdits
from fginfer.handles import FactorLog
from fginfer.journal import Added, Changes, Closed, Constant, Entry, Other, Removed, Table, Unaries
from fginfer.names import Names, variable_text
from fginfer.rules import Rule
from fginfer.table_roles import TableRoles
from fginfer.table_values import StoredTables


class _State(NamedTuple):
    model: Model
    cards: NDArray[np.int32]
    given: int
    roles: TableRoles
    rules: list[Rule]
    log: FactorLog
    names: Names | None
    cutoff: float
    fixed: dict[int, tuple[int, NDArray[np.float64]]]
    mark: int


class WhatIf(GraphEdits):
    """What FactorGraph inherits: questions about a model that is soon as it was."""

    _states: list[_State] | None = None

    # -- variables that are fixed ------------------------------------------------------------------------------

    def fix(self, variable: int | str, label: int | str) -> None:
        """Forbids all labels of a variable but `label`, until `free`. One that is fixed may be fixed to another label.

        >>> from fginfer import FactorGraph, Potts, solve
        >>> graph = FactorGraph.from_arrays([2, 2], [[0, 1], [0, 1]], [[0, 1]], tables=[Potts(0, -3)])
        >>> graph.fix(0, 0)
        >>> solve(graph).labels.tolist()
        [0, 0]
        >>> graph.free(0)
        >>> solve(graph).labels.tolist()
        [1, 1]
        """
        with self.lock:
            i = self.variable(variable)
            chosen = self.label(i, label)
            rows = self._fixed[i][1] if i in self._fixed else self._rows(i)
            scores = np.full(int(self._cards[i]), -np.inf)
            scores[chosen] = rows[0][chosen]
            self._put_rows(i, scores[np.newaxis] if scores[chosen] == -np.inf else _only(rows, chosen))
            self._fixed[i] = chosen, rows

    def free(self, variable: int | str | None = None) -> None:
        """Gives a fixed variable (None: all of them) the scores back that it had.

        >>> g = FactorGraph.from_arrays([2], [[0.0, 1.0]])
        >>> g.fix(0, 0)
        >>> g.free(0)
        >>> g.unary(0).tolist()
        [0.0, 1.0]
        """
        with self.lock:
            which = list(self._fixed) if variable is None else [self.variable(variable)]
            if any(i not in self._fixed for i in which):
                raise ModelError(f"{variable_text(self._names, which[0])} is not fixed")
            for i in which:
                self._put_rows(i, self._fixed.pop(i)[1])

    @property
    def fixed(self) -> dict[int, int]:
        """The variables that are fixed, and their labels."""
        return {i: label for i, (label, _) in self._fixed.items()}

    def _rows(self, i: int) -> NDArray[np.float64]:
        """Unary scores, and what rounding took from them row by row."""
        if self._builder is None and not self.table_model.has_leftovers:
            begin = self._unary_begin()
            unary = ModelArrays.of_model(self.table_model).unary
            assert unary is not None
            return np.array(unary[np.newaxis, begin[i] : begin[i + 1]])
        return self._building().sum_at((i,))

    def _put_rows(self, i: int, rows: NDArray[np.float64]) -> None:
        if self._builder is None and len(rows) == 1:
            self.table_model.set_unary(i, np.ascontiguousarray(rows[0]))
        else:
            self._building().put((i,), *rows)
        self.journal.note(Unaries(np.array([i], np.int32)))

    # -- changes that are taken back ---------------------------------------------------------------------------

    def push(self) -> None:
        """Remembers the graph as it is, for `pop`: as often as one likes, the last one first.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2])
        >>> graph.push()
        >>> graph.set_unary(0, [5.0, 0.0])
        >>> graph.pop()
        >>> graph.unary(0).tolist()
        [0.0, 0.0]
        """
        with self.lock:
            state = _State(
                self.table_model.snapshot(),
                self._cards,
                self._given,
                self._roles.copy(),
                list(self._rules),
                self._log.copy(),
                self.shared_names(),
                self._cutoff,
                dict(self._fixed),
                self.journal.mark(),
            )
            self._states = [*(self._states or []), state]

    def pop(self) -> None:
        """Takes back every change since the last `push` that was not taken back. Handles of factors added since are
        good for nothing then.

        >>> g = FactorGraph([2])
        >>> g.push()
        >>> g.set_unary(0, [0.0, 1.0])
        >>> g.pop()
        >>> g.unary(0).tolist()
        [0.0, 0.0]
        """
        with self.lock:
            if not self._states:
                raise ModelError("there is no push to go back to")
            state = self._states.pop()
            changes = self.journal.since(state.mark)
            back = None if changes is None or self._rules != state.rules else taken_back(changes, state.model)
            self.journal.note_all([Other()] if back is None else back)
            self._remembered = None
            self._model, self._builder, self._shapes, self._offsets = state.model.snapshot(), None, None, None
            self._cards, self._given, self._roles, self._rules = state.cards, state.given, state.roles, state.rules
            self._log, self._names, self._cutoff, self._fixed = state.log, state.names, state.cutoff, state.fixed


def taken_back(changes: Changes, model: Model) -> list[Entry] | None:
    """What brings the model of before back, as followers hear of it; None: that cannot be said more exactly."""
    out: list[Entry] = [e for e in changes.entries if isinstance(e, Unaries | Table)]
    n = model.n_factors
    gone, added, last = set[int](), set[int](), n
    changed = list[int]()
    for entry in changes.entries:
        if isinstance(entry, Removed):
            (gone if entry.place < n else added).symmetric_difference_update({entry.place})
            changed.append(entry.place)
        elif isinstance(entry, Added):
            (gone if entry.place < n else added).symmetric_difference_update({entry.place})
            last = max(last, entry.place + 1)
        elif isinstance(entry, Constant):
            out.append(Constant(model.constant))
        elif not isinstance(entry, Unaries | Table):
            return None
    out.extend(Removed(place) for place in sorted(added))
    before = sorted({place for place in changed if place < n})
    out.extend(Removed(place) for place in before if place not in gone)
    if before:
        arrays = ModelArrays.of_model(model)
        out.extend(_factor_at(arrays, StoredTables(arrays), place) for place in before)
    if last > n:
        out.append(Closed(np.arange(n, last)))
    return out


def _factor_at(arrays: ModelArrays, tables: StoredTables, place: int) -> Added:
    begin = 2 * place if arrays.var_begin is None else int(arrays.var_begin[place])
    end = begin + 2 if arrays.var_begin is None else int(arrays.var_begin[place + 1])
    weight = 1.0 if arrays.factor_weight is None else float(arrays.factor_weight[place])
    flag = arrays.factor_transposed is not None and bool(arrays.factor_transposed[place])
    scope = tuple(arrays.vars[begin:end].tolist())
    return Added(scope, tables.held(int(arrays.factor_table[place])), weight, flag, place)


def _only(rows: NDArray[np.float64], label: int) -> NDArray[np.float64]:
    """The rows of one label; the others are forbidden."""
    out: NDArray[Any] = np.zeros_like(rows)
    out[0] = -np.inf
    out[:, label] = rows[:, label]
    return out
