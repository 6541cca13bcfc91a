"""Linear and quadratic programs over binary variables, as .lp and .mps files say them.

The readers (`lp.py`, `mps.py`) collect columns, rows and an objective here; `graph` makes a model of them. A column
with the bounds 0 and 1 that must be whole becomes a variable with two labels, a row a constraint with its name, and
the objective becomes scores, negated where it is minimised. Numbers are exact until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import NoReturn

import numpy as np

from fginfer.budget import Budget
from fginfer.errors import ModelError
from fginfer.formats.boolean import FEW, Exact, Linear
from fginfer.formats.lines import Lines
from fginfer.formats.quadratic import quadratic_graph
from fginfer.graph import FactorGraph
from fginfer.names import Names, shown

_PER_COLUMN, _PER_ROW, _PER_ENTRY = 600, 1200, 400  # bytes that a reader takes
Terms = dict[int, Exact]  # a weight for each column


@dataclass(slots=True)
class Column:
    """A variable of the program, and the line that names it first; None is no bound."""

    name: str
    line: int
    low: Exact | None = 0
    high: Exact | None = None
    whole: bool = False


@dataclass(slots=True)
class Row:
    """The terms add up to something from low to high, always or where a column has a value."""

    name: str | None
    line: int
    terms: Terms = field(default_factory=dict)
    low: Exact | None = None
    high: Exact | None = None
    when: tuple[int, int] | None = None


class Program:
    """What the lines of a file say."""

    def __init__(self, budget: Budget, lines: Lines) -> None:
        self._budget, self._lines = budget, lines
        self.columns: list[Column] = []
        self.rows: list[Row] = []
        self.linear: Terms = {}
        self.quadratic: dict[tuple[int, int], Exact] = {}
        self.constant: Exact = 0
        self.maximise = False
        self._index: dict[str, int] = {}

    def column(self, name: str) -> int:
        """The number of a column, which is new if nobody has named it yet."""
        at = self._index.setdefault(name, len(self.columns))
        if at == len(self.columns):
            self._budget.take(_PER_COLUMN, "the columns")
            self.columns.append(Column(name, self._lines.number_of_line))
        return at

    def find(self, name: str) -> int | None:
        """The number of a column that has been named."""
        return self._index.get(name)

    def row(self, name: str | None) -> Row:
        """A new row."""
        self._budget.take(_PER_ROW, "the rows")
        self.rows.append(Row(name, self._lines.number_of_line))
        return self.rows[-1]

    def add(self, terms: Terms, column: int, weight: Exact) -> None:
        """Adds to the weight of a column."""
        if column not in terms:
            self._budget.take(_PER_ENTRY, "the entries")
        terms[column] = terms.get(column, 0) + weight

    def add_product(self, one: int, other: int, weight: Exact) -> None:
        """Adds to the weight of a product of two columns in the objective."""
        pair = (min(one, other), max(one, other))
        if pair not in self.quadratic:
            self._budget.take(_PER_ENTRY, "the entries")
        self.quadratic[pair] = self.quadratic.get(pair, 0) + weight

    def graph(self) -> FactorGraph:
        """The model."""
        for column in self.columns:
            self._check_binary(column)
        graph = self._objective()
        graph.take_names(Names.of({k: column.name for k, column in enumerate(self.columns)}, {}))
        for k, column in enumerate(self.columns):
            allowed = [(column.low or 0) <= 0, column.high is None or column.high >= 1]
            if not all(allowed):
                graph.add_factor([k], np.where(allowed, 0.0, -inf))
        taken: set[str] = set()
        for row in self.rows:
            if row.name is not None and row.name in taken:
                self._fail(row, "another row has this name")
            taken.add(row.name or "")
            self._add_row(graph, row)
        return graph

    def _check_binary(self, column: Column) -> None:
        low, high = column.low, column.high
        if low == high and low in (0, 1):
            return
        if not column.whole or low is None or low < 0 or high is None or high > 1:
            limits = f"from {'-inf' if low is None else low} to {'inf' if high is None else high}"
            what = "whole" if column.whole else "not whole"
            self._fail(column, f"variable {shown(column.name)} is not binary: it is {what}, {limits}")

    def _fail(self, of: Row | Column, message: str) -> NoReturn:
        self._lines.number_of_line = of.line
        self._lines.fail(message, of.name)

    def _objective(self) -> FactorGraph:
        sign = 1 if self.maximise else -1
        entries = [(k, k, weight) for k, weight in self.linear.items()]
        entries += [(i, j, weight) for (i, j), weight in self.quadratic.items()]
        try:
            values = np.array([float(sign * weight) for _, _, weight in entries])
            constant = float(sign * self.constant)
        except OverflowError:
            self._lines.fail("the objective has a coefficient that is too large for a double")
        rows, cols = (np.array([entry[k] for entry in entries], np.int64) for k in (0, 1))
        return quadratic_graph(len(self.columns), rows, cols, values, constant)

    def _add_row(self, graph: FactorGraph, row: Row) -> None:
        terms = {column: weight for column, weight in row.terms.items() if weight}
        low, high = row.low, row.high
        if low is not None and high is not None and low > high:
            self._fail(row, f"the row has the lower limit {low}, above the upper limit {high}")
        if low is None and high is None:
            return
        columns, weights = list(terms), list(terms.values())
        try:
            if row.when is None and len(terms) <= FEW:
                graph.add_factor(columns, Linear(columns, weights, low, high, inf).table(), name=row.name)
            else:
                literals = [(column, 1) for column in columns]
                graph.add_linear(literals, weights, low, high, when=row.when, name=row.name)  # type: ignore[arg-type]
        except ModelError as error:
            self._fail(row, f"the row is refused: {error}")
