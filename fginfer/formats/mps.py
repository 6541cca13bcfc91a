"""MPS, fixed and free: rows, then columns with their entries, right sides, ranges and bounds.

Whole variables stand between markers, or have bounds of type BV, LI or UI; without bounds they are binary. QUADOBJ
lists one half of a symmetric Q and QMATRIX both, and x'Qx / 2 counts. A right side of the objective is minus a
constant. Words are separated by blanks, so names with blanks inside are refused.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from fginfer.budget import Budget
from fginfer.formats.boolean import Exact
from fginfer.formats.lines import Lines
from fginfer.formats.programs import Program, Row
from fginfer.graph import FactorGraph
from fginfer.names import shown

_INFINITE = 10**20  # numbers that say that there is no limit, as solvers have it
_WORDS = {"INF": "1e30", "INFINITY": "1e30", "+INF": "1e30", "-INF": "-1e30", "-INFINITY": "-1e30", "+INFINITY": "1e30"}
_NOT_READ = {"SOS": "special ordered sets", "SOS1": "special ordered sets", "SOS2": "special ordered sets"}
_NOT_READ |= {"QCMATRIX": "quadratic constraints", "CSECTION": "cones", "GENCONS": "general constraints"}
_NOT_READ |= {"PWLOBJ": "piecewise-linear objectives", "SCENARIOS": "scenarios"}


class _Reader:
    """Sections one after the other; a line of one word begins one."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._lines = Lines(path, budget, comments=("*",))
        self._program = Program(budget, self._lines)
        self._rows: dict[str, Row] = {}
        self._types: dict[str, str] = {}
        self._objective: str | None = None
        self._inside = False  # whether the columns that follow are whole
        self._bounded: set[int] = set()  # columns that have a bound

    def read(self) -> FactorGraph:
        lines = self._lines
        parts = {
            "OBJSENSE": self._sense,
            "ROWS": self._row,
            "LAZYCONS": self._row,
            "USERCUTS": self._row,
            "COLUMNS": self._column,
            "RHS": self._right_side,
            "RANGES": self._range,
            "BOUNDS": self._bound,
            "QUADOBJ": self._half,
            "QSECTION": self._half,
            "QMATRIX": self._both,
            "INDICATORS": self._indicator,
        }
        section = ""
        while True:
            words = lines.next("ENDATA")
            first = words[0].upper()
            if first == "ENDATA" and len(words) == 1:
                break
            if (first == "NAME" and not section) or (first == "OBJSENSE" and len(words) == 2):
                if first == "OBJSENSE":
                    self._sense(words[1:])
            elif (len(words) == 1 and first in parts) or (first == "QSECTION" and len(words) == 2):
                section = first
            elif first in _NOT_READ and len(words) <= 2:
                lines.fail(f"{_NOT_READ[first]} are not read", words[0])
            elif not section:
                lines.fail("expected NAME, OBJSENSE or ROWS", words[0])
            else:
                parts[section](words)
        if (extra := lines.next_or_none()) is not None:
            lines.fail("text after ENDATA", extra[0])
        return self._finished()

    def _finished(self) -> FactorGraph:
        for column in self._bounded ^ set(range(len(self._program.columns))):
            if self._program.columns[column].whole:
                self._program.columns[column].high = 1
        return self._program.graph()

    # -- words -------------------------------------------------------------------------------------------------

    def _number(self, word: str) -> Exact:
        return self._lines.exact(_WORDS.get(word.upper(), word), "a number")

    def _pairs(self, words: list[str], what: str) -> list[tuple[str, str]]:
        """One or two names with numbers; before them may stand the name of a set."""
        self._lines.words(words, 2, 5, f"{what}: one or two names of rows, each with a number")
        some = words[len(words) % 2 :]
        return list(zip(some[::2], some[1::2], strict=True))

    def _row_of(self, name: str) -> Row | None:
        """None for the objective and for other rows without limits."""
        if name not in self._types:
            self._lines.fail(f"there is no row {shown(name)}", name)
        return self._rows.get(name)

    def _variable(self, name: str) -> int:
        found = self._program.find(name)
        if found is None:
            self._lines.fail(f"there is no column {shown(name)}", name)
        return found

    # -- sections ----------------------------------------------------------------------------------------------

    def _sense(self, words: list[str]) -> None:
        sense = words[0].upper()
        if len(words) != 1 or sense not in ("MIN", "MAX", "MINIMIZE", "MAXIMIZE", "MINIMISE", "MAXIMISE"):
            self._lines.fail("expected MIN or MAX", words[0])
        self._program.maximise = sense.startswith("MAX")

    def _row(self, words: list[str]) -> None:
        kind, name = self._lines.words(words, 2, 2, "the type of a row and its name")
        kind = kind.upper()
        if kind not in ("N", "L", "G", "E"):
            self._lines.fail("expected the type of a row: N, L, G or E", words[0])
        if name in self._types:
            self._lines.fail(f"there are two rows {shown(name)}", name)
        self._types[name] = kind
        if kind != "N":
            row = self._rows[name] = self._program.row(name)
            row.low, row.high = (0 if kind in "GE" else None), (0 if kind in "LE" else None)
        elif self._objective is None:
            self._objective = name

    def _column(self, words: list[str]) -> None:
        if len(words) == 3 and words[1].strip("'").upper() == "MARKER":
            kind = words[2].strip("'").upper()
            if kind not in ("INTORG", "INTEND"):
                self._lines.fail("expected the marker 'INTORG' or 'INTEND'", words[2])
            self._inside = kind == "INTORG"
            return
        if len(words) % 2 == 0:
            self._lines.fail("expected a column, and one or two rows, each with a number", words[-1])
        new = self._program.find(words[0]) is None
        at = self._program.column(words[0])
        if new:
            self._program.columns[at].whole = self._inside
        for name, word in self._pairs(words, "a column"):
            row = self._row_of(name)
            if row is not None:
                self._program.add(row.terms, at, self._number(word))
            elif name == self._objective:
                self._program.add(self._program.linear, at, self._number(word))

    def _right_side(self, words: list[str]) -> None:
        for name, word in self._pairs(words, "a right side"):
            row, value = self._row_of(name), self._number(word)
            if row is None:
                self._program.constant = -value if name == self._objective else self._program.constant
                continue
            row.low = None if row.low is None or value <= -_INFINITE else value
            row.high = None if row.high is None or value >= _INFINITE else value

    def _range(self, words: list[str]) -> None:
        for name, word in self._pairs(words, "a range"):
            row, value = self._row_of(name), Fraction(self._number(word))
            kind = self._types[name]
            if row is not None and row.high is not None and (kind == "L" or (kind == "E" and value < 0)):
                row.low = row.high - abs(value)
            elif row is not None and row.low is not None and kind != "L":
                row.high = row.low + abs(value)

    def _bound(self, words: list[str]) -> None:
        kind = self._lines.words(words, 2, 4, "a type, a column and a number")[0].upper()
        bare = kind in ("FR", "MI", "PL", "BV")
        if kind not in ("UP", "LO", "FX", "UI", "LI", "SC") and not bare:
            self._lines.fail("expected the type of a bound: UP, LO, FX, FR, MI, PL, BV, LI or UI", words[0])
        if kind == "SC":
            self._lines.fail("semi-continuous variables are not read", words[0])
        named = len(words) == 4 or (bare and len(words) == 3 and self._program.find(words[2]) is not None)
        at = self._variable(words[2 if named else 1])
        if not bare and len(words) < 4 - (not named):
            self._lines.fail("the bound has no number", words[-1])
        column, value = self._program.columns[at], Fraction(0) if bare else self._number(words[-1])
        self._bounded.add(at)
        if kind in ("UP", "UI"):
            column.high = None if value >= _INFINITE else value
            column.low = None if value < 0 and column.low == 0 else column.low
        elif kind in ("LO", "LI"):
            column.low = None if value <= -_INFINITE else value
        elif kind == "FX":
            column.low = column.high = value
        else:
            column.low = None if kind in ("FR", "MI") else column.low
            column.high = 1 if kind == "BV" else None if kind in ("FR", "PL") else column.high
            column.low = 0 if kind == "BV" else column.low
        column.whole |= kind in ("BV", "UI", "LI")

    def _half(self, words: list[str]) -> None:
        """An entry of one half of Q."""
        one, other, word = self._lines.words(words, 3, 3, "two columns and a number")
        i, j = self._variable(one), self._variable(other)
        self._program.add_product(i, j, self._number(word) * (Fraction(1, 2) if i == j else 1))

    def _both(self, words: list[str]) -> None:
        """An entry of the whole of Q."""
        one, other, word = self._lines.words(words, 3, 3, "two columns and a number")
        self._program.add_product(self._variable(one), self._variable(other), Fraction(self._number(word)) / 2)

    def _indicator(self, words: list[str]) -> None:
        """`IF row column value`: the row holds where the column has the value."""
        kind, name, column, value = self._lines.words(words, 4, 4, "IF, a row, a column, and 0 or 1")
        row = self._row_of(name)
        if kind.upper() != "IF" or row is None:
            self._lines.fail("expected IF, a row, a column, and 0 or 1", name)
        row.when = self._variable(column), self._lines.integer(value, "the value at which the row holds", 0, 1)


def read_mps(path: Path, budget: Budget) -> FactorGraph:
    """Reads a program in MPS; the score is the objective, or minus it if it is minimised."""
    return _Reader(path, budget).read()
