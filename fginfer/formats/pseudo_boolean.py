"""Pseudo-Boolean .opb and .wbo: linear constraints over literals x1, ~x1, and a sum of products that is minimised.

In .wbo files `[3]` before a constraint makes it soft at that cost, and `soft: top;` says that the costs must stay below
top, which becomes the graph's cutoff.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from fginfer.budget import Budget
from fginfer.errors import FormatError
from fginfer.formats.boolean import Boolean, Literal
from fginfer.formats.lines import Lines
from fginfer.graph import FactorGraph

_TOKEN = re.compile(r"[+-]?\d+|~?[A-Za-z_]\w*|>=|<=|=|[;:\[\]+-]", re.ASCII)
_LITERAL = re.compile(r"(~?)x(\d{1,10})", re.ASCII)
_MOST = 2**31 - 1


class _Term(NamedTuple):
    """A weight times a product of literals."""

    weight: int
    literals: list[Literal]


class _Reader:
    """Statements that end with a semicolon, one after the other."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._path = path
        self._lines = Lines(path, budget, comments=("*",))
        self._words = self._split()
        self._word: str | None = ""
        budget.fail = self.fail
        self.model = Boolean(budget, self.fail)
        self.cutoff = -math.inf

    def _split(self) -> Iterator[str]:
        for words in self._lines:
            for word in words:
                at = 0
                while at < len(word):
                    found = _TOKEN.match(word, at)
                    if found is None:
                        self._lines.fail("expected a number, a literal such as ~x1, a relation or ';'", word[at:])
                    yield found[0]
                    at = found.end()

    def fail(self, message: str) -> NoReturn:
        """Raises a FormatError at the word that was read last."""
        self._lines.fail(message, "end of file" if self._word is None else self._word)

    def _next(self, expected: str) -> str:
        self._word = next(self._words, None)
        if self._word is None:
            self.fail(f"the file ends where {expected} was expected")
        return self._word

    def _integer(self, word: str, expected: str, low: int | None = None) -> int:
        """A whole number of any size, as the big integers of pseudo-Boolean competitions."""
        number = self._lines.exact(word, expected) if word.lstrip("+-").isdigit() else None
        if not isinstance(number, int):
            self._lines.fail(f"expected {expected}, a whole number", word)
        if low is not None and number < low:
            self._lines.fail(f"expected {expected}, at least {low}", word)
        return number

    def statement(self) -> bool:
        """One objective or constraint; False at the end of the file."""
        self._word = next(self._words, None)
        word = self._word
        if word is None:
            return False
        if word.lower() in ("min", "max"):
            self._sign(":")
            self._objective(-1.0 if word.lower() == "min" else 1.0)
        elif word.lower() == "soft":
            self._sign(":")
            self._top()
        elif word == "[":
            cost = self._exact(self._integer(self._next("a cost"), "the cost of a soft constraint", 1))
            self._sign("]")
            self._constraint(self._next("a constraint"), cost)
        else:
            self._constraint(word, math.inf)
        return True

    def _sign(self, sign: str) -> None:
        if self._next(f"'{sign}'") != sign:
            self.fail(f"expected '{sign}'")

    def _top(self) -> None:
        word = self._next("a number or ';'")
        if word != ";":
            self.cutoff = 0.0 - self._exact(self._integer(word, "the top of the costs", 0))
            self._sign(";")

    def _exact(self, number: int) -> float:
        if float(number) != number:
            self.fail("a number that a double does not hold exactly")
        return float(number)

    def _terms(self, word: str, ends: tuple[str, ...]) -> tuple[list[_Term], str]:
        """Terms until one of the ends, and which."""
        terms: list[_Term] = []
        fresh = True  # the next literal begins a term
        while word not in ends:
            if word in ("+", "-"):
                number = self._next("a number")
                word = word + number if number.isdigit() else f"{word}1"
                terms.append(_Term(self._integer(word, "a coefficient"), []))
                word = self._next("a term") if number.isdigit() else number
                fresh = False
                continue
            literal = _LITERAL.fullmatch(word)
            if literal is None:
                terms.append(_Term(self._integer(word, "a coefficient, a literal such as ~x1, or " + ends[0]), []))
                fresh = False
            else:
                number_of = self._lines.integer(literal[2], "the number of a variable", 1, _MOST)
                self.model.variables(number_of)
                if fresh:
                    terms.append(_Term(1, []))
                    fresh = False
                terms[-1].literals.append((number_of - 1, int(not literal[1])))
            word = self._next(f"a term or {ends[0]}")
        if any(not term.literals for term in terms):
            self.fail("a coefficient has no literal")
        return terms, word

    def _objective(self, sign: float) -> None:
        terms, _ = self._terms(self._next("a term or ';'"), (";",))
        for weight, literals in terms:
            self.model.product(literals, sign * self._exact(weight))

    def _constraint(self, word: str, penalty: float) -> None:
        terms, relation = self._terms(word, (">=", "=", "<="))
        limit = self._integer(self._next("a whole number"), "the right side of a constraint")
        self._sign(";")
        if any(len(term.literals) > 1 for term in terms):
            self.fail("a constraint has a product of literals, which is not read (products may be in the objective)")
        low, high = (None if relation == "<=" else limit), (None if relation == ">=" else limit)
        self.model.linear([term.literals[0] for term in terms], [term.weight for term in terms], low, high, penalty)


def read_opb(path: Path, budget: Budget) -> FactorGraph:
    """Reads an OPB or WBO file, whatever its extension says."""
    reader = _Reader(path, budget)
    statements = 0
    while reader.statement():
        statements += 1
    if not statements:
        raise FormatError("the file has no objective and no constraint", str(path), 1, "end of file")
    graph = reader.model.graph()
    if reader.cutoff > -math.inf:
        graph.cutoff = reader.cutoff
    return graph
