"""CPLEX's LP format: an objective, rows and bounds as formulas, and lists of whole and binary variables.

The sections are Minimize or Maximize, Subject To, Bounds, General, Binary and End. `3 x + 2 y` is linear, and
`[ 2 x * y + x ^ 2 ] / 2` stands in an objective. `b = 1 -> x + y <= 1` is a row that holds only where b is 1. Variables
are 0 or more, and need not be whole, unless something else is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, NoReturn

from fginfer.budget import Budget
from fginfer.formats.boolean import Exact
from fginfer.formats.lines import Lines
from fginfer.formats.programs import Column, Program, Row, Terms
from fginfer.graph import FactorGraph

_SECTIONS = {
    "several objectives": r"(?:minimi[sz]e|maximi[sz]e|min|max) multi-objectives?",
    "minimize": r"minimi[sz]e|minimum|min",
    "maximize": r"maximi[sz]e|maximum|max",
    "rows": r"subject to|such that|s\.t\.|st\.?|lazy constraints|user cuts",
    "bounds": r"bounds?",
    "semi-continuous variables": r"semi-continuous|semis?",
    "special ordered sets": r"sos[12]?",
    "general constraints": r"general constraints?|gencons?|g\.c\.",
    "general": r"generals?|gen|integers?|int",
    "binary": r"binar(?:y|ies)|bin",
    "end": r"end",
    "piecewise-linear objectives": r"pwlobj",
}
_READ = ("minimize", "maximize", "rows", "bounds", "general", "binary", "end")
_ANY = "|".join(f"(?P<s{k}>{text})" for k, text in enumerate(_SECTIONS.values()))
_SECTION = re.compile(rf"(?:{_ANY})(?=\s|$)(?!\s*:)", re.I)
_NAMED = r"A-Za-z!\"#$%&(),;?@_'`{}|~"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    rf"|(?P<name>[{_NAMED}](?:[{_NAMED}0-9./]|\[[^\[\]\s]*\])*)"
    r"|(?P<sign>->|<=|=<|>=|=>|[<>=+\-*/^:\[\]]))",
)
_RELATIONS = {"<": "<", "<=": "<", "=<": "<", ">": ">", ">=": ">", "=>": ">", "=": "="}
_TURNED = {"<": ">", ">": "<"}
_INFINITY = ("inf", "infinity")


class _Word(NamedTuple):
    """A word: a number, a name, a sign, or a section; "" at the end of the file."""

    kind: str
    text: str
    line: int


class _Words:
    """The words of the text, one by one, of which two can be looked at in advance."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self.lines = Lines(path, budget, tail="\\")
        self.last = _Word("", "", 1)
        self._found = self._split()
        self._waiting: list[_Word] = []
        budget.fail = self.fail

    def _split(self) -> Iterator[_Word]:
        for words in self.lines:
            line, text, at = self.lines.number_of_line, " ".join(words), 0
            section = _SECTION.match(text)
            if section is not None and section.lastgroup is not None:
                yield _Word("section", list(_SECTIONS)[int(section.lastgroup[1:])], line)
                at = section.end()
            while at < len(text):
                found = _TOKEN.match(text, at)
                if found is None or found.lastgroup is None:
                    self.last = _Word("", text[at:].split()[0], line)
                    self.fail("expected a number, a name or a sign")
                yield _Word(found.lastgroup, found[found.lastgroup], line)
                at = found.end()
        yield _Word("end", "", self.lines.number_of_line)

    def peek(self, ahead: int = 0) -> _Word:
        """A word that stays."""
        while len(self._waiting) <= ahead:
            after_end = bool(self._waiting) and self._waiting[-1].kind == "end"
            self._waiting.append(self._waiting[-1] if after_end else next(self._found))
            self.lines.number_of_line = self.last.line
        return self._waiting[ahead]

    def next(self) -> _Word:
        """The next word."""
        self.last = self.peek()
        self.lines.number_of_line = self.last.line
        if self.last.kind != "end":
            self._waiting.pop(0)
        return self.last

    def take(self, *texts: str) -> bool:
        """Whether the next word is one of these signs; it is taken if so."""
        found = self.peek().kind == "sign" and self.peek().text in texts
        if found:
            self.next()
        return found

    def fail(self, message: str, word: str | None = None) -> NoReturn:
        """Raises a FormatError at the word that was read last."""
        self.lines.number_of_line = self.last.line
        self.lines.fail(message, self.last.text or "end of file" if word is None else word)

    def number(self, word: _Word) -> Exact:
        """What a number says, exactly."""
        self.last = word
        return self.lines.exact(word.text, "a number")


class _Side(NamedTuple):
    """A sum of terms and a number, which may be infinite: then its sign is given."""

    terms: Terms
    constant: Exact
    infinite: int = 0


class _Reader:
    """Sections one after the other."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._words = _Words(path, budget)
        self._program = Program(budget, self._words.lines)

    def read(self) -> FactorGraph:
        words = self._words
        self._sense()
        self._objective()
        while (section := words.next()).text != "end" or section.kind != "section":
            if section.kind == "end":
                words.fail("the file ends where End was expected")
            if section.kind != "section":
                words.fail("expected a sign, a section such as Bounds, or End")
            self._section(section.text)
        if words.next().kind != "end":
            words.fail("text after End")
        return self._program.graph()

    def _sense(self) -> None:
        words = self._words
        first, second = words.next(), words.peek()
        if (first.text.lower() in ("max", "min") and second.text == ":") or (first.text, second.text) == ("/", "*"):
            words.fail("this is the LP format of lp_solve, which is not read; write it as MPS or as CPLEX's LP")
        if first.kind != "section" or first.text not in ("minimize", "maximize"):
            found = first.kind == "section" and first.text not in _READ
            words.fail(f"{first.text} are not read" if found else "expected Minimize or Maximize, as LP files begin")
        self._program.maximise = first.text == "maximize"

    def _section(self, name: str) -> None:
        if name not in _READ[2:]:
            self._words.fail(f"{'a second objective is' if name in _READ else f'{name} are'} not read")
        parts = {"rows": self._row, "bounds": self._bound}
        while self._words.peek().kind not in ("section", "end"):
            if name in parts:
                parts[name]()
            else:
                self._declare(name == "binary")

    # -- formulas ----------------------------------------------------------------------------------------------

    def _label(self) -> str | None:
        """A name before a colon."""
        words = self._words
        if words.peek().kind not in ("name", "number") or words.peek(1).text != ":":
            return None
        label = words.next()
        words.next()
        return label.text

    def _sign(self) -> int | None:
        """The product of the signs that stand here; None if there is none."""
        sign = None
        while self._words.take("+", "-"):
            sign = (sign or 1) * (-1 if self._words.last.text == "-" else 1)
        return sign

    def _sum(self, expected: str, objective: bool = False) -> _Side:
        """Terms, of which all but the first begin with a sign."""
        terms: Terms = {}
        constant: Exact = 0
        infinite, words, first = 0, self._words, True
        while True:
            sign = self._sign()
            following = words.peek()
            if sign is None and (not first or (objective and following.kind in ("section", "end"))):
                return _Side(terms, constant, infinite)
            if following.kind == "sign" and following.text == "[":
                self._squares(sign or 1, objective)
            elif following.kind == "name" and following.text.lower() in _INFINITY:
                words.next()
                infinite = sign or 1
            elif following.kind in ("number", "name"):
                constant += self._term(terms, sign or 1)
            else:
                words.next()
                words.fail(f"expected {expected}")
            first = False

    def _term(self, terms: Terms, weight: Exact) -> Exact:
        """A name, a number, or a number and a name; what a number alone adds."""
        words = self._words
        if words.peek().kind == "number":
            weight *= words.number(words.next())
            if words.peek().text == "*" and words.peek(1).kind == "name":
                words.next()
            if words.peek().kind != "name":
                return weight
        self._program.add(terms, self._column("a variable"), weight)
        if words.take("*", "^"):
            words.fail("products stand in brackets: [ 2 x * y ] / 2")
        return 0

    def _number(self, expected: str) -> _Side:
        """A number alone, or infinity."""
        sign, word = self._sign() or 1, self._words.next()
        if word.kind == "name" and word.text.lower() in _INFINITY:
            return _Side({}, 0, sign)
        if word.kind != "number":
            self._words.fail(f"expected {expected}")
        return _Side({}, sign * self._words.number(word))

    def _squares(self, sign: int, objective: bool) -> None:
        """`[ terms ] / 2`: half of the products and squares counts."""
        words = self._words
        words.next()
        if not objective:
            words.fail("quadratic constraints are not read")
        found: list[tuple[int, int, Exact]] = []
        while not words.take("]"):
            weight: Exact = sign * (self._sign() or 1)
            if words.peek().kind == "number":
                weight *= words.number(words.next())
                words.take("*")
            one = self._column("a variable")
            if words.take("^"):
                if words.next().text != "2":
                    words.fail("expected 2: powers are squares")
                found.append((one, one, weight))
            elif words.take("*"):
                found.append((one, self._column("the other variable of a product"), weight))
            else:
                words.next()
                words.fail("expected ^ 2, or * and a variable")
        if not words.take("/") or words.next().text != "2":
            words.fail("expected / 2 behind the bracket of an objective")
        for one, other, weight in found:
            self._program.add_product(one, other, Fraction(weight) / 2)

    def _column(self, expected: str) -> int:
        word = self._words.next()
        if word.kind != "name":
            self._words.fail(f"expected {expected}")
        return self._program.column(word.text)

    # -- what stands in the sections ---------------------------------------------------------------------------

    def _objective(self) -> None:
        self._label()
        side = self._sum("a term of the objective", objective=True)
        if side.infinite:
            self._words.fail("the objective is infinite")
        self._program.linear, self._program.constant = side.terms, side.constant

    def _chain(self, what: str) -> tuple[Terms, list[tuple[str, _Side]]]:
        """A sum, and how it compares to numbers: `terms <= 3`, `3 <= terms` or `1 <= terms <= 3`."""
        words = self._words
        left = self._sum(f"a term of {what}")
        if what == "a bound" and words.peek().text.lower() == "free":
            words.next()
            return left.terms, []
        limits = []
        relation = self._relation()
        if not left.terms:
            limits.append((_TURNED.get(relation, relation), left))
            left = self._sum(f"a term of {what}")
            if not words.take(*_RELATIONS):
                return left.terms, [self._moved(limits[0], left)]
            relation = _RELATIONS[words.last.text]
            if _TURNED.get(relation) != limits[0][0]:
                words.fail("two relations must have one direction, as in 1 <= x <= 3")
        line = words.last.line
        limits.append((relation, self._number("a number: the right side")))
        following = words.peek()
        if what == "a row" and following.line == line and following.kind != "end" and words.peek(1).text != ":":
            words.next()
            words.fail("expected the end of the row: its right side is a number")
        return left.terms, [self._moved(limit, left) for limit in limits]

    def _relation(self) -> str:
        if not self._words.take(*_RELATIONS):
            self._words.next()
            self._words.fail("expected <=, >= or =")
        return _RELATIONS[self._words.last.text]

    @staticmethod
    def _moved(limit: tuple[str, _Side], left: _Side) -> tuple[str, _Side]:
        """The limit without the number that stands among the terms."""
        relation, side = limit
        return relation, _Side({}, side.constant - left.constant, side.infinite - left.infinite)

    def _limit(self, of: Row | Column, relation: str, side: _Side) -> None:
        """Sets what a relation says; an infinite limit is none."""
        wrong = {"<": -1, ">": 1}.get(relation, side.infinite)
        if side.infinite and side.infinite == wrong:
            self._words.fail("nothing can reach this limit")
        limit = None if side.infinite else side.constant
        if relation in "<=":
            of.high = limit
        if relation in ">=":
            of.low = limit

    def _row(self) -> None:
        row = self._program.row(self._label())
        words = self._words
        if words.peek(1).text == "=" and words.peek(3).text == "->":
            condition, _, value = self._column("a variable"), words.next(), words.next()
            if value.text not in ("0", "1"):
                words.fail("expected 0 or 1, the value at which the row holds")
            words.next()
            row.when = condition, int(value.text)
        row.terms, limits = self._chain("a row")
        for relation, side in limits:
            self._limit(row, relation, side)

    def _bound(self) -> None:
        terms, limits = self._chain("a bound")
        if list(terms.values()) != [1]:
            self._words.fail("a bound is for one variable, as in 0 <= x <= 1")
        column = self._program.columns[next(iter(terms))]
        if not limits:
            column.low = column.high = None
        for relation, side in limits:
            self._limit(column, relation, side)

    def _declare(self, binary: bool) -> None:
        column = self._program.columns[self._column("the name of a variable")]
        column.whole = True
        if binary:
            column.low = 0 if column.low is None else column.low
            column.high = 1 if column.high is None else column.high


def read_lp(path: Path, budget: Budget) -> FactorGraph:
    """Reads a program in CPLEX's LP format; the score is the objective, or minus it if it is minimised."""
    return _Reader(path, budget).read()
