"""AD3's .fg: log-potentials of binary variables, and factors over literals that are logic, budgets, pairs or tables.

The lines are the number of variables, the number of factors, a log-potential of label 1 for each variable, and a factor
each: `XOR 3 1 2 -3` (exactly one is true; 3 is negated), `PAIR 2 1 2 0.5` (a score where both are true).
"""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np

from fginfer.budget import Budget
from fginfer.formats.boolean import Boolean, Literal
from fginfer.formats.lines import Lines
from fginfer.graph import FactorGraph

_MOST = 2**31 - 1
_LOGIC = ("XOR", "XOROUT", "ATMOSTONE", "OR", "OROUT", "ANDOUT")


class _Reader:
    """Factors line by line."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._lines = Lines(path, budget, tail="#")
        self._budget = budget
        self.model = Boolean(budget, self._lines.fail)
        self._n = 0

    def _count(self, what: str) -> int:
        words = self._lines.words(self._lines.next(what), 1, 1, what)
        return self._lines.integer(words[0], what, 0, _MOST)

    def read(self) -> FactorGraph:
        self._n = self._count("the number of variables")
        factors = self._count("the number of factors")
        self.model.variables(self._n)
        for variable in range(self._n):
            what = f"the log-potential of variable {variable + 1}"
            words = self._lines.words(self._lines.next(what), 1, 1, what)
            self.model.product([(variable, 1)], self._lines.number(words[0], what))
        for k in range(factors):
            self._factor(self._lines.next(f"factor {k + 1} of {factors}"))
        extra = self._lines.next_or_none()
        if extra is not None:
            self._lines.fail(f"text after {factors} factors: of several graphs in a file none is read", extra[0])
        return self.model.graph()

    def _factor(self, words: list[str]) -> None:
        kind = words[0].upper()
        if kind not in (*_LOGIC, "BUDGET", "KNAPSACK", "PAIR", "DENSE"):
            self._lines.fail(f"factors of type {words[0][:40]} are not read", words[0])
        self._lines.words(words, 2, None, "a type, the number of variables, and the variables")
        n = self._lines.integer(words[1], "the number of variables of a factor", 1, len(words) - 2)
        literals = [self._literal(word) for word in words[2 : 2 + n]]
        rest = words[2 + n :]
        if kind in _LOGIC:
            self._lines.words(words, 0, 2 + n, f"{n} variables")
            self._logic(kind, literals)
        elif kind == "BUDGET":
            self._lines.words(words, 3 + n, 3 + n, f"{n} variables and a budget")
            self.model.linear(literals, [1] * n, None, self._lines.integer(rest[0], "a budget", -_MOST))
        elif kind == "KNAPSACK":
            self._lines.words(words, 3 + 2 * n, 3 + 2 * n, f"{n} variables, their costs, and a budget")
            costs = [self._lines.exact(word, "a cost") for word in rest]
            self.model.linear(literals, costs[:-1], None, costs[-1])
        elif kind == "PAIR":
            self._lines.words(words, 5, 5, "2 variables and a score")
            self.model.product(literals, self._lines.number(rest[0], "the score of a pair"))
        else:
            self._dense(words, literals, rest)

    def _literal(self, word: str) -> Literal:
        number = self._lines.integer(word, "a variable", -self._n, self._n)
        if number == 0:
            self._lines.fail("expected a variable; they count from 1", word)
        return abs(number) - 1, int(number > 0)

    def _logic(self, kind: str, literals: list[Literal]) -> None:
        *inputs, output = literals
        if kind == "XOR":
            self.model.exactly_one(literals)
        elif kind == "ATMOSTONE":
            self.model.exactly_one(literals, at_most=True)
        elif kind == "OR":
            self.model.clause(literals)
        elif kind == "XOROUT":  # one input is true if the output is, none if it is not
            self.model.exactly_one([*inputs, _opposite(output)])
        else:
            if kind == "ANDOUT":
                inputs, output = [_opposite(one) for one in inputs], _opposite(output)
            for one in inputs:
                self.model.clause([_opposite(one), output])
            self.model.clause([*inputs, _opposite(output)])

    def _dense(self, words: list[str], literals: list[Literal], rest: list[str]) -> None:
        """A table over variables of several labels, each of which is a group of literals one of which is true."""
        self._lines.words(words, 3 + len(literals), None, "the number of groups")
        groups = self._lines.integer(rest[0], "the number of groups", 1, len(rest) - 1)
        counts = [self._lines.integer(word, "the size of a group", 1) for word in rest[1 : 1 + groups]]
        if sum(counts) != len(literals):
            self._lines.fail(f"the groups have {sum(counts)} variables together, not {len(literals)}", rest[groups])
        scores = rest[1 + groups :]
        if len(scores) != math.prod(counts):
            self._lines.fail(f"the table has {len(scores)} scores, not {math.prod(counts)}", rest[-1])
        begin = np.cumsum([0, *counts]).tolist()
        parts = [literals[begin[k] : begin[k + 1]] for k in range(groups)]
        for part in parts:
            self.model.exactly_one(part)
        for state, word in zip(product(*parts), scores, strict=True):
            self.model.product(list(state), self._lines.number(word, "a score of a table"))


def _opposite(literal: Literal) -> Literal:
    return literal[0], 1 - literal[1]


def read_ad3(path: Path, budget: Budget) -> FactorGraph:
    """Reads one factor graph of AD3."""
    return _Reader(path, budget).read()
