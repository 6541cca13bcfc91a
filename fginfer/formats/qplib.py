"""QPLIB's text format for binary variables: a quadratic objective, and linear constraints.

Two kinds of files are about. One lists the lower triangle of a symmetric Q and means x'Qx / 2, so that an entry off the
diagonal counts whole; the other says that it lists the upper triangle of H, and there an entry counts half.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.formats.boolean import Exact, Linear
from fginfer.formats.lines import Lines
from fginfer.formats.quadratic import Entries, quadratic_graph
from fginfer.graph import FactorGraph

_MOST = 2**31 - 1
_PER_VARIABLE, _PER_ENTRY, _BLOCK = 300, 300, 1024  # bytes that a reader takes; entries that are asked for together


class _Reader:
    """Values line by line; what stands after the words that are wanted is a remark."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._lines = Lines(path, budget, comments=("!", "%", "#"))
        self._budget = budget
        self._remark = ""

    def _words(self, n: int, what: str) -> list[str]:
        words = self._lines.words(self._lines.next(what), n, None, what)
        self._remark = " ".join(words[n:]).lower()
        return words[:n]

    def _count(self, what: str) -> int:
        return self._lines.integer(self._words(1, what)[0], what, 0, _MOST)

    def _number(self, what: str) -> Exact:
        return self._lines.exact(self._words(1, what)[0], what)

    def _entries(self, count: int, indices: tuple[int, ...], what: str) -> Iterator[tuple[list[int], str]]:
        """Lines of as many indices, each up to its limit, and a word."""
        for k in range(count):
            words = self._words(len(indices) + 1, f"{what} {k + 1} of {count}")
            if k % _BLOCK == 0:
                self._budget.take(float(_BLOCK * _PER_ENTRY), "the entries")
            at = [self._lines.integer(w, "an index", 1, n) - 1 for w, n in zip(words[:-1], indices, strict=True)]
            yield at, words[-1]

    def _vector(self, n: int, what: str) -> list[Exact]:
        """A default, and the entries that differ."""
        out = [self._number(f"the default of {what}")] * n
        count = self._count(f"how many entries of {what} differ")
        for (at,), word in self._entries(count, (n,), f"an entry of {what},"):
            out[at] = self._lines.exact(word, f"an entry of {what}")
        return out

    def _quadratic(self, n: int) -> Entries:
        """Rows, columns, and what an entry counts."""
        count = self._count("the number of quadratic terms")
        said_upper = "upper" in self._remark
        rows, cols, values = [], [], []
        for (row, col), word in self._entries(count, (n, n), "quadratic term"):
            rows.append(row)
            cols.append(col)
            values.append(self._lines.number(word, "a quadratic term"))
        i, j, value = np.array(rows, np.int64), np.array(cols, np.int64), np.array(values, np.float64)
        upper, lower = bool((i < j).any()), bool((i > j).any())
        if upper and (lower or not said_upper):
            self._lines.fail("there are terms above the diagonal, and it is not said whether they count whole or half")
        return i, j, np.where((i == j) | upper, 0.5, 1.0) * value

    def _constraints(self, n: int, m: int) -> list[Linear]:
        """Rows of a matrix, between two limits."""
        terms: list[dict[int, Exact]] = [{} for _ in range(m)]
        count = self._count("the number of linear terms")
        for (row, variable), word in self._entries(count, (m, n), "linear term"):
            terms[row][variable] = terms[row].get(variable, 0) + self._lines.exact(word, "a linear term")
        infinity = self._number("the value of infinity")
        low, high = self._vector(m, "the lower limits"), self._vector(m, "the upper limits")
        rules = []
        for row, some in enumerate(terms):
            rules.append(
                Linear.of(
                    [(variable, 1) for variable in some],
                    list(some.values()),
                    low[row] if low[row] > -infinity else None,
                    high[row] if high[row] < infinity else None,
                )
            )
        return rules

    def _type(self) -> str:
        word = self._words(1, "the type of the problem, such as QBL")[0].upper()
        if len(word) != 3 or word[0] not in "LDCQ" or word[1] not in "CBMIG" or word[2] not in "NBLDCQ":
            self._lines.fail("expected the type of the problem, three letters such as QBL", word)
        if word[1] != "B":
            self._lines.fail("only problems whose variables are all binary are read (a type such as QBL)", word)
        if word[2] not in "NBL":
            self._lines.fail("quadratic constraints are not read", word)
        return word

    def _sense(self) -> float:
        word = self._words(1, "minimize or maximize")[0].lower()
        if word not in ("minimize", "maximize", "minimise", "maximise", "min", "max"):
            self._lines.fail("expected minimize or maximize", word)
        return 1.0 if word.startswith("max") else -1.0

    def read(self) -> FactorGraph:
        self._lines.next("the name of the problem")
        kind, sign = self._type(), self._sense()
        n = self._count("the number of variables")
        m = self._count("the number of constraints") if kind[2] == "L" else 0
        self._budget.take_unlisted(_PER_VARIABLE * float(n + m), f"a model of {n} variables and {m} constraints")
        none = np.zeros(0, np.int64)
        i, j, value = self._quadratic(n) if kind[0] != "L" else (none, none, np.zeros(0))
        linear = np.array([float(v) for v in self._vector(n, "the linear terms")])
        constant = float(self._number("the constant"))
        rules: list[Linear] = []
        if kind[2] == "L":
            rules = self._constraints(n, m)
        else:
            self._number("the value of infinity")
        graph = self._graph(n, sign, (i, j, value), linear, constant)
        for rule in rules:
            rule.add_to(graph)
        self._read_names(graph, kind)
        return graph

    @staticmethod
    def _graph(n: int, sign: float, entries: Entries, linear: NDArray[np.float64], constant: float) -> FactorGraph:
        i, j, value = entries
        own = np.flatnonzero(linear)
        rows, cols, values = np.append(i, own), np.append(j, own), np.append(value, linear[own])
        return quadratic_graph(n, rows, cols, sign * values, 0.0 + sign * constant)

    def _read_names(self, graph: FactorGraph, kind: str) -> None:
        """After starting values, which are not for us, names of some variables; a file may end before either."""
        n = graph.n_variables
        if not self._lines.peek():
            return
        self._vector(n, "the starting values")
        if kind[2] == "L":
            self._skip("the multipliers of the constraints")
        self._vector(n, "the multipliers of the bounds")
        if self._lines.peek():
            count = self._count("the number of names")
            for (at,), name in self._entries(count, (n,), "name"):
                graph.name(at, name)

    def _skip(self, what: str) -> None:
        self._number(f"the default of {what}")
        for _ in range(self._count(f"how many entries of {what} differ")):
            self._words(2, f"an entry of {what}")


def read_qplib(path: Path, budget: Budget) -> FactorGraph:
    """Reads a problem of binary variables; the score is the objective, or minus it if it is minimised."""
    return _Reader(path, budget).read()
