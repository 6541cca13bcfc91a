"""GraphChanges: the state of a FactorGraph, and every way to change it. A change happens whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.builder import Builder, Remembered
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.model import Model
from fginfer.errors import ModelError
from fginfer.from_arrays import unary_array, variables_array
from fginfer.handles import FactorLog, Handle, record_of
from fginfer.journal import Added, Closed, Constant, Journal, Other, Table, Unaries
from fginfer.labelings import DenseShapes, check_cards, check_index
from fginfer.names import Named, Names, cards_of, variable_text
from fginfer.options import is_flag, is_number
from fginfer.rules import Rule
from fginfer.table_roles import TableRoles
from fginfer.table_values import StoredTables, check_dense, negate
from fginfer.tables import ImplicitTable, TableRef


class GraphChanges(Named):
    """What FactorGraph inherits: its state, adders and setters."""

    def __init__(
        self, cards: ArrayLike | None = None, *, variables: Mapping[str, int | Sequence[str]] | None = None
    ) -> None:
        cards, self._names = cards_of(cards, variables)
        self._cards = check_cards(cards, self._names)
        self.lock = RLock()  # held while the model is built or changed
        self._given = 0  # factors as given, arity 0 and 1 included
        self._roles = TableRoles()
        self._rules: list[Rule] = []  # constraints; the model has tables only
        self._log = FactorLog()
        self._offsets: NDArray[np.int64] | None = None
        self._shapes: DenseShapes | None = None
        # Either a builder that collects factors, or the finished model.
        self._builder: Builder | None = None
        self._model: Model | None = None
        self._remembered: Remembered | None = None  # for the next builder
        self._cutoff = -inf
        self._fixed: dict[int, tuple[int, NDArray[np.float64]]] = {}  # label and former scores of fixed variables
        self.journal = Journal()  # what solvers that follow the graph read

    # -- the model ---------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model of the core, built on first use; ModelError if there are constraints, which it cannot hold."""
        self._refuse_rules()
        return self.table_model

    def _refuse_rules(self) -> None:
        if self._rules:
            kinds = ", ".join(dict.fromkeys(rule.kind for rule in self._rules))
            raise ModelError(f"the graph has constraints ({kinds}); graph.lowered() has the same in tables")

    @property
    def table_model(self) -> Model:
        """The model of the factors that have tables: all but the constraints."""
        with self.lock:
            if self._builder is not None or self._model is None:
                builder = self._building()
                self._model = builder.arrays().build()
                self._remembered, self._builder, self._shapes = builder.remembered, None, None
                if builder.removed:
                    self._close(np.array(sorted(builder.removed), np.int64))
            return self._model

    def _building(self) -> Builder:
        if self._builder is None:
            base = ModelArrays(cards=self._cards) if self._model is None else ModelArrays.of_model(self._model)
            self._builder = Builder(base, self._roles, self._remembered)
        self._builder.names = self._names
        return self._builder

    def _close(self, places: NDArray[np.int64]) -> None:
        """The places of factors that were removed are closed, those behind them move up."""
        self._log.close(places)
        self.journal.note(Closed(places))

    # -- additions ---------------------------------------------------------------------------------------------

    def add_table(self, table: ArrayLike | ImplicitTable) -> TableRef:
        """A table that factors share by its handle: `set_table` changes it for all of them, and for no others.

        Copies and pickles of the graph take the handle as well; other graphs refuse it.

        >>> from fginfer import FactorGraph
        >>> g = FactorGraph([2, 2, 2])
        >>> mine = g.add_table([[1.0, 0.0], [0.0, 1.0]])
        >>> first = g.add_factor([0, 1], mine)
        >>> second = g.add_factor([1, 2], mine, weight=-1)
        >>> g.set_table(mine, [[5.0, 0.0], [0.0, 0.0]])
        >>> g.score([0, 0, 1])
        5.0
        """
        with self.lock:
            return self._building().add_own_table(table)

    def add_factor(
        self,
        variables: Sequence[int | str],
        table: ArrayLike | ImplicitTable | TableRef,
        *,
        weight: float = 1.0,
        transposed: bool = False,
        name: str | None = None,
    ) -> Handle:
        """Adds a factor with scores `weight * table` over `variables`, the last variable fastest.

        The table is an array with one axis per variable (or flat), `Potts`, `AbsDiff` or `SqDiff` (never expanded),
        or a handle from `add_table`. Equal arrays are stored once. A weight may be negative (not with -inf entries)
        or zero (then nothing is forbidden either). `transposed` (pairwise) reads it as table[x_second, x_first].
        The handle that is returned, and the name if there is one, are for `set_weight` and `remove_factor`.

        Raises ModelError if variables repeat or are not there, the sizes differ, or an entry is NaN or +inf.

        >>> g = FactorGraph([2, 2])
        >>> agree = g.add_factor([0, 1], Potts(1.0, 0.0), weight=2.0, name="agree")
        >>> g.score([1, 1])
        2.0
        """
        with self.lock:
            said = f"factor {self._given}" if name is None else f"factor {name!r}"
            self._log.check_name(name)
            if not is_number(weight):
                raise ModelError(f"{said}: the weight must be a number, not {weight!r}")
            if not is_flag(transposed):
                raise ModelError(f"{said}: transposed must be True or False, not {transposed!r}")
            builder = self._building()
            scope, place = builder.scope(said, self._scope(variables)), builder.n_places
            if len(scope) == 1:
                self._refuse_fixed(scope)
            before = builder.sum_at(scope) if len(scope) < 2 else None
            builder.add_factor(said, scope, table, float(weight), bool(transposed))
            self._given += 1
            self._note_added(scope, place)
            record = record_of(scope, table, float(weight), bool(transposed), place)
            return self._log.add(self._given, name, record, before)

    def _note_added(self, scope: tuple[int, ...], place: int) -> None:
        """The journal hears of the factor that the builder took last; of one over a variable, or none, of the sum."""
        if len(scope) < 2:
            self._note_sum(scope)
        elif self.journal.is_followed:
            builder = self._building()
            table, weight, transposed, variables = builder.factors[-1]
            self.journal.note(Added(variables, builder.table(table), weight, transposed, place))

    def _note_sum(self, scope: tuple[int, ...]) -> None:
        builder = self._building()
        if builder.leftovers.rows:
            self.journal.note(Other())
        else:
            sums = Unaries(np.array(scope, np.int32)) if scope else Constant(float(builder.constant))
            self.journal.note(sums)

    def _refuse_fixed(self, variables: Iterable[int] | None = None) -> None:
        """ModelError if one of these (None: any at all) is fixed."""
        found = (
            next(iter(self._fixed), None)
            if variables is None
            else next(filter(self._fixed.__contains__, variables), None)
        )
        if self._fixed and found is not None:
            label = (self._names or Names()).label_text(found, self._fixed[found][0])
            who = variable_text(self._names, found)
            raise ModelError(f"{who} is fixed to label {label}; free it before its scores change")

    # -- new numbers -------------------------------------------------------------------------------------------

    @property
    def cutoff(self) -> float:
        """Only labelings with a score above it count; -inf (the default): all without a forbidden state.

        Formats with a bound on the total cost set it, and solve takes one of its own as well. A model whose best score
        is at most the cutoff is infeasible.
        """
        return self._cutoff

    @cutoff.setter
    def cutoff(self, score: float) -> None:
        if not is_number(score) or not score < inf:  # NaN, too
            raise ModelError(f"the cutoff must be a number, finite or -inf, not {score!r}")
        self._cutoff = float(score)

    def set_unary(self, variable: int | str, scores: ArrayLike) -> None:
        """Replaces the unary scores of a variable; running solvers keep the old ones.

        >>> g = FactorGraph([2])
        >>> g.set_unary(0, [0.0, 3.0])
        >>> g.score([1])
        3.0
        """
        variable = self.variable(variable)
        values = self._unary_scores(variable, scores)
        with self.lock:
            self._refuse_fixed((variable,))
            if self._builder is not None:
                self._builder.put((variable,), values)
            else:
                self.table_model.set_unary(variable, values)
                self._see(values)
            self.journal.note(Unaries(np.array([variable], np.int32)))
            self._log.forget_sums((variable,))

    def _unary_scores(self, variable: int, scores: ArrayLike) -> NDArray[np.float64]:
        shape, who = (int(self._cards[variable]),), variable_text(self._names, variable)
        return check_dense(who, scores, shape, (variable,), self._names).values

    def set_unaries(
        self, scores: ArrayLike | Sequence[ArrayLike], variables: Sequence[int | str] | NDArray[Any] | None = None
    ) -> None:
        """Replaces the unary scores of these variables (None: of all); running solvers keep the old ones.

        `scores`: concatenated, a list with one array per variable, or (variables, labels).

        All of them change, or none: one NaN is a ModelError.

        >>> g = FactorGraph([2, 2, 2])
        >>> g.set_unaries([[0.0, 1.0], [5.0, 0.0]], [0, 2])
        >>> g.score([1, 0, 0])
        6.0
        """
        if variables is not None:
            return self._set_some(scores, variables)
        values = unary_array(self._cards, scores, self._names)
        with self.lock:
            self._refuse_fixed()
            self.table_model.set_all_unary(values)
            self._see(values)
            self.journal.note(Unaries(None))
            self._log.forget_sums()

    def _set_some(self, scores: ArrayLike | Sequence[ArrayLike], variables: Sequence[int | str] | NDArray[Any]) -> None:
        which = variables_array(variables, len(self._cards), self.variable)
        values = unary_array(self._cards[which], scores, self._names, which)
        with self.lock:
            self._refuse_fixed(which.tolist() if self._fixed else ())
            if self._builder is None:
                self.table_model.set_some_unary(which, values)
                self._see(values)
            else:
                self._put_some(self._builder, which.tolist(), values)
            self.journal.note(Unaries(which))
            if self._log.has_sums:
                for variable in which.tolist():
                    self._log.forget_sums((variable,))

    def _see(self, unary: NDArray[np.float64]) -> None:
        if self._remembered is not None:
            self._remembered.see(unary)

    def _put_some(self, builder: Builder, variables: list[int], values: NDArray[np.float64]) -> None:
        begin, before = begins(self._cards[variables]), []
        try:
            for k, variable in enumerate(variables):
                before.append((variable, builder.sum_at((variable,))))
                builder.put((variable,), self._unary_scores(variable, values[begin[k] : begin[k + 1]]))
        except BaseException:
            for variable, rows in before:
                builder.put((variable,), *rows)
            raise

    def set_table(self, table: int | TableRef, values: ArrayLike) -> None:
        """Replaces the entries of a dense table, for all factors that share it; running solvers keep the old ones.

        `table` is a handle from `add_table`, an id given to `from_arrays`, or a number that `factors()` lists: then all
        factors change that list this number, and these are more than one where equal arrays were given to `add_factor`.
        Arrays that are given later never share a table that was changed by its number. A factor of negative
        weight lists the negative of the table it was given; who changes the one changes the other as well.

        Raises ModelError for a table that is implicit (`Potts`), another shape, NaN or +inf.

        >>> g = FactorGraph([2, 2])
        >>> table = g.add_table([[0.0, 1.0], [1.0, 0.0]])
        >>> tie = g.add_factor([0, 1], table)
        >>> g.set_table(table, [[4.0, 0.0], [0.0, 0.0]])
        >>> g.score([0, 0])
        4.0
        """
        with self.lock:
            index = self._table_number(table)
            new = check_dense(f"table {index}", values, self._table_shape(index), ()).values
            opposite = self._roles.opposite(index)
            if opposite is not None and self._may_part(index, opposite, new):
                self.table_model.set_table(index, new)
                self._roles.part(index)
            elif opposite is None:
                self.table_model.set_table(index, new)
            else:
                self._set_pair(index, new, opposite, np.asarray(negate(new, f"table {index}")))
            self._remembered = None
            self.journal.note_all(Table(t) for t in (index, opposite) if t is not None)
            self._roles.shared.discard(index)

    def _may_part(self, index: int, opposite: int, new: NDArray[np.float64]) -> bool:
        """Whether forbidden states have come into a table whose opposite scores no factor uses any more."""
        if index not in self._roles.negatives or not bool((new == -np.inf).any()):
            return False
        return not bool((ModelArrays.of_model(self.table_model).factor_table == opposite).any())

    def _set_pair(self, index: int, new: NDArray[np.float64], opposite: int, negative: NDArray[np.float64]) -> None:
        """Two tables, or none of them: the core may find that sums overflow at the second one only."""
        before = StoredTables(ModelArrays.of_model(self.table_model)).held(index)
        old = np.array(before.values)  # type: ignore[union-attr]
        del before  # a view would make the change copy all tables
        self.table_model.set_table(index, new)
        try:
            self.table_model.set_table(opposite, negative)
        except BaseException:
            self.table_model.set_table(index, old)
            raise

    # -- for those who follow ----------------------------------------------------------------------------------

    @property
    def built_model(self) -> Model | None:
        """The model, unless factors were added since it was built."""
        return self._model if self._builder is None else None

    def kept_unary(self, variables: NDArray[np.int32] | None) -> NDArray[np.float64] | None:
        """The unary scores of these variables (None: of all) while factors are being added, one after the other; None
        where rounding took something from any."""
        builder = self._builder
        if builder is None or builder.leftovers.rows:
            return None
        if variables is None:
            return np.array(builder.unary)
        begin = self._unary_begin()
        return np.concatenate([builder.unary[begin[v] : begin[v + 1]] for v in variables.tolist()] or [np.zeros(0)])

    # -- small helpers -----------------------------------------------------------------------------------------

    def table_number(self, table: int | TableRef) -> int:
        """The number of a `table`, from its handle or number."""
        with self.lock:
            return self._table_number(table)

    def _table_number(self, table: Any) -> int:
        if isinstance(table, TableRef):
            return self._roles.index(table, "set_table and table")
        return check_index("table", table)

    def _table_shape(self, index: int) -> tuple[int, ...]:
        """The shape of a dense table, from copies: a view held here would make the next change copy all tables."""
        model = self.table_model
        if self._shapes is None:
            self._shapes = DenseShapes(ModelArrays.of_model(model))
        return self._shapes[index]

    def _unary_begin(self) -> NDArray[np.int64]:
        if self._offsets is None:
            self._offsets = begins(self._cards)
        return self._offsets
