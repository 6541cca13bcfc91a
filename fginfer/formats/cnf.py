"""DIMACS .cnf and .wcnf: clauses that must hold, or that cost their weight where they do not.

Old .wcnf files begin with `p wcnf variables clauses top`, and weights of top or more are hard; since 2022 a hard clause
begins with `h`, and there is no header. Label 1 is true, and variable 1 of the file is variable 0 here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.errors import FormatError, ModelError
from fginfer.formats.assembly import Factors
from fginfer.formats.boolean import Boolean, Literal
from fginfer.formats.lines import Lines
from fginfer.formats.streams import write_atomically
from fginfer.graph import FactorGraph
from fginfer.names import variable_text
from fginfer.rules import Rule, SumRule

_MOST = 2**31 - 1  # variables

# -- reading ---------------------------------------------------------------------------------------------------


def _words(lines: Lines) -> Iterator[str]:
    for words in lines:
        if words[0] == "%":  # SATLIB's files end with this, and a zero
            return
        yield from words


def _weight(lines: Lines, word: str, what: str) -> int:
    """A whole number of any size: tops of 2^64 are about."""
    weight = lines.exact(word, what) if word.lstrip("+-").isdigit() else None
    if not isinstance(weight, int):
        lines.fail(f"expected {what}, a whole number", word)
    if weight < 0:
        lines.fail(f"expected {what}, at least 0", word)
    return weight


def _literals(lines: Lines, words: Iterator[str], n: int) -> list[Literal]:
    """Literals until a zero."""
    out: list[Literal] = []
    for word in words:
        literal = lines.integer(word, "a literal, or 0 at the end of a clause", -n, n)
        if literal == 0:
            return out
        out.append((abs(literal) - 1, int(literal > 0)))
    lines.fail("the file ends inside a clause; a clause ends with 0", "end of file")


def read_cnf(path: Path, budget: Budget) -> FactorGraph:
    """Reads a CNF file, or a WCNF file that has a header."""
    return _read(path, budget, headless=False)


def read_wcnf(path: Path, budget: Budget) -> FactorGraph:
    """Reads a WCNF file, with a header or without one, or a CNF file."""
    return _read(path, budget, headless=True)


def _read(path: Path, budget: Budget, headless: bool) -> FactorGraph:
    lines = Lines(path, budget, comments=("c",))
    model = Boolean(budget, lines.fail)
    header = lines.peek()
    if not header:
        lines.next("clauses")
    n, clauses, weighted = _MOST, None, True
    top: int | None = None
    if header[0] == "p" or not headless:
        n, clauses, top, weighted = _read_header(lines)
        model.variables(n)
    words = _words(lines)
    read = largest = 0
    for word in words:
        penalty = math.inf
        if weighted:
            penalty = _penalty(lines, word, top, clauses is None)
            literals = _literals(lines, words, n)
        else:
            literals = _literals(lines, chain([word], words), n)
        largest = max([largest, *(variable + 1 for variable, _ in literals)])
        model.variables(largest)
        model.clause(literals, penalty)
        read += 1
    if clauses is not None and read != clauses:
        raise FormatError(f"the header announces {clauses} clauses, and there are {read}", str(path))
    return model.graph()


def _read_header(lines: Lines) -> tuple[int, int, int | None, bool]:
    """Variables, clauses, the weight of hard clauses, and whether clauses have weights."""
    words = lines.next("'p cnf'")
    if words[0] != "p":
        lines.fail("expected p cnf VARIABLES CLAUSES (a file of weighted clauses without it ends in .wcnf)", words[0])
    lines.words(words, 4, 5, "p cnf VARIABLES CLAUSES or p wcnf VARIABLES CLAUSES TOP")
    weighted = words[1].lower() == "wcnf"
    if words[1].lower() not in ("cnf", "wcnf") or len(words) > 4 + weighted:
        lines.fail("expected p cnf VARIABLES CLAUSES or p wcnf VARIABLES CLAUSES TOP", words[1])
    n = lines.integer(words[2], "the number of variables", 0, _MOST)
    clauses = lines.integer(words[3], "the number of clauses")
    top = _weight(lines, words[4], "the weight of hard clauses") if len(words) == 5 else None
    if top == 0:
        lines.fail("expected the weight of hard clauses, at least 1", words[4])
    return n, clauses, top, weighted


def _penalty(lines: Lines, word: str, top: int | None, since_2022: bool) -> float:
    if word == "h" and since_2022:
        return math.inf
    weight = _weight(lines, word, "the weight of a clause")
    if top is not None and weight >= top:
        return math.inf
    if float(weight) != weight:
        lines.fail("a weight that a double does not hold exactly", word)
    return float(weight)


# -- writing ---------------------------------------------------------------------------------------------------


def write_wcnf(graph: FactorGraph, path: Path) -> None:
    """Writes a model of binary variables and whole scores in the layout of 2022: a clause for each state that costs."""
    lines = [f"{_text(cost)} {literals} 0\n" for cost, literals in _every_clause(graph)]
    with write_atomically(path) as stream:
        # A variable that no clause has would be lost, but a clause that is always true costs nothing.
        stream.write(f"c {graph.n_variables} variables\n".encode())
        if graph.n_variables:
            stream.write(f"h {graph.n_variables} -{graph.n_variables} 0\n".encode())
        stream.writelines(line.replace("  ", " ").encode() for line in lines)


def write_cnf(graph: FactorGraph, path: Path) -> None:
    """Writes a model of binary variables whose labelings are allowed, with a score of 0, or forbidden."""
    clauses = _every_clause(graph)
    soft = next((cost for cost, _ in clauses if cost < math.inf), None)
    if soft is not None:
        raise ModelError(f"a cost of {soft!r}: clauses without weights say what is forbidden alone (.wcnf has weights)")
    with write_atomically(path) as stream:
        stream.write(f"p cnf {graph.n_variables} {len(clauses)}\n".encode())
        stream.writelines(f"{literals} 0\n".lstrip().encode() for _, literals in clauses)


def _every_clause(graph: FactorGraph) -> list[tuple[float, str]]:
    """Clauses and what it costs to violate each, so that the costs add up to minus the score."""
    if not (graph.cards == 2).all():
        who = variable_text(graph.names, int(np.argmax(graph.cards != 2)))
        raise ModelError(f"{who} does not have two labels: clauses cannot say it")
    out = [(cost, literals) for cost, literals in map(_clause_of, graph.rules) if cost]
    factors = Factors(graph, beside_rules=True)
    constant = math.fsum(factors.constants())
    every: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [
        ((variable,), scores) for variable, scores in factors.unaries()
    ]
    every += [(scope, factors.scores(key)) for scope, key in factors]
    for scope, scores in every:
        best = float(scores.max())
        if best == -math.inf:
            constant = -math.inf
            continue
        constant += best
        out += _clauses(scope, best - scores)
    if constant > 0:
        raise ModelError(f"the best scores of all factors add up to {constant!r}, and weights cannot be negative")
    return [*out, (0.0 - constant, "")] if constant else out


def _clause_of(rule: Rule) -> tuple[float, str]:
    """The weight and the literals of a constraint that is a clause."""
    if not (isinstance(rule, SumRule) and rule.kind in ("clause", "implication") and not rule.modulus):
        raise ModelError(f"a constraint ({rule.kind}) is no clause; .npz holds it")
    literals = [str(v + 1 if add[1] else -(v + 1)) for v, add in zip(rule.variables, rule.adds, strict=True)]
    return 0.0 - rule.steps(0), " ".join(literals)


def _text(cost: float) -> str:
    if cost == math.inf:
        return "h"
    if cost != math.floor(cost) or cost >= 2.0**53:
        raise ModelError(f"a cost of {cost!r} is no whole number below 2^53, as weights are (convert --scale)")
    return str(int(cost))


def _clauses(scope: tuple[int, ...], costs: NDArray[np.float64]) -> list[tuple[float, str]]:
    out = []
    for state in np.argwhere(costs > 0).tolist():
        literals = " ".join(str(-(v + 1) if a else v + 1) for v, a in zip(scope, state, strict=True))
        out.append((float(costs[tuple(state)]), literals))
    return out
