"""BIF, the interchange format of Bayesian networks: variables with named values, and their tables of probabilities.

A `table` lists all entries with the child slowest and the last parent fastest; the other form is a row of the child for
each combination of values of the parents, with `default` for those that are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.errors import FormatError
from fginfer.formats.lines import NUMBER
from fginfer.formats.network import Network, add_up, conditionals, written_names
from fginfer.formats.streams import open_checked, read_text, write_atomically
from fginfer.graph import FactorGraph
from fginfer.names import shown

_WORD = re.compile(r'[^\s{}()\[\],;|"]+')
_TOKEN = re.compile(rf'\s+|//[^\n]*|"[^"\n]*"|[{{}}()\[\],;|]|{_WORD.pattern}')


class _Words:
    """The words and signs of the text; remarks are left out."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self.path = path
        self._begin = self._end = 0  # places of the word read last
        self._quoted = False
        with open_checked(path, budget) as stream:
            self._text = read_text(stream, path, budget)
        budget.fail = self.fail

    def fail(self, message: str) -> NoReturn:
        """Raises a FormatError at the word that was read last."""
        word = self._text[self._begin : self._end][:60]
        token = "".join(c if c.isprintable() else "?" for c in word) or "end of file"
        raise FormatError(message, str(self.path), self._text.count("\n", 0, self._begin) + 1, token)

    def _skip(self, at: int) -> int:
        """Where the next word begins."""
        while True:
            found = _TOKEN.match(self._text, at)
            if self._text.startswith("/*", at):
                end = self._text.find("*/", at + 2)
                if end < 0:
                    self._begin, self._end = at, at + 2
                    self.fail("a remark has no end")
                at = end + 2
            elif found is not None and (found[0].isspace() or found[0].startswith("//")):
                at = found.end()
            else:
                return at

    def next_or_none(self) -> str | None:
        """The next word or sign, a quoted name without its quotes."""
        at = self._skip(self._end)
        found = _TOKEN.match(self._text, at)
        if found is None:
            self._begin, self._end = at, min(at + 20, len(self._text))
            if at < len(self._text):
                self.fail("a quoted name does not end on its line")
            return None
        self._begin, self._end = at, found.end()
        self._quoted = found[0].startswith('"')
        return found[0].strip('"') if self._quoted else found[0]

    def next(self, expected: str) -> str:
        """The same; at the end of the file an error that says what was expected."""
        word = self.next_or_none()
        if word is None:
            self.fail(f"the file ends where {expected} was expected")
        return word

    def sign(self, sign: str) -> None:
        """The next word must be this sign."""
        if self.next(f"'{sign}'") != sign or self._quoted:
            self.fail(f"expected '{sign}'")

    def name(self, expected: str) -> str:
        """The next word must be a name."""
        word = self.next(expected)
        if not self._quoted and not _WORD.fullmatch(word):
            self.fail(f"expected {expected}")
        return word

    def until(self, end: str, expected: str) -> Iterator[str]:
        """Names separated by blanks and commas until a sign."""
        while (word := self.next(f"{expected} or '{end}'")) != end or self._quoted:
            if self._quoted or _WORD.fullmatch(word):
                yield word
            elif word != ",":
                self.fail(f"expected {expected} or '{end}'")

    def skip_property(self) -> None:
        """What a property says is not for us."""
        while self.next("';'") != ";" or self._quoted:
            pass


# -- reading ---------------------------------------------------------------------------------------------------


def read_bif(path: Path, budget: Budget) -> FactorGraph:
    """Reads a Bayesian network with its names; scores are logarithms of probabilities."""
    words = _Words(path, budget)
    network = Network(budget, words.fail)
    while (block := words.next_or_none()) is not None:
        if block == "network":
            _read_network(words)
        elif block == "variable":
            _read_variable(words, network)
        elif block == "probability":
            _read_probability(words, network)
        else:
            words.fail("expected 'network', 'variable' or 'probability'")
    return network.graph()


def _read_network(words: _Words) -> None:
    if words.next("the name of the network") != "{":
        words.sign("{")
    while (word := words.next("'property' or '}'")) != "}":
        if word != "property":
            words.fail("expected 'property' or '}'")
        words.skip_property()


def _read_variable(words: _Words, network: Network) -> None:
    name = words.name("the name of a variable")
    variable = network.declare(name)
    words.sign("{")
    while (word := words.next("'type', 'property' or '}'")) != "}":
        if word == "property":
            words.skip_property()
        elif word == "type" and not network.card(variable):
            _read_type(words, network, variable)
        else:
            words.fail("expected one 'type discrete', 'property' or '}'")
    if not network.card(variable):
        words.fail(f"variable {shown(name)} has no values")


def _read_type(words: _Words, network: Network, variable: int) -> None:
    if words.next("'discrete'") != "discrete":
        words.fail("expected 'discrete': variables of other types are not read")
    words.sign("[")
    count = words.name("the number of values")
    words.sign("]")
    words.sign("{")
    for label in words.until("}", "a value"):
        network.add_label(variable, label)
    if count != str(network.card(variable)):
        words.fail(f"variable {shown(network.name(variable))} has {network.card(variable)} values, not {count[:20]}")
    words.sign(";")


def _read_probability(words: _Words, network: Network) -> None:
    words.sign("(")
    child = network.variable(words.name("a variable"))
    parents: list[int] = []
    bar = False
    while (word := words.next("a parent or ')'")) != ")":
        if word == "|" and not parents and not bar:
            bar = True
        elif word not in (",", "|"):
            parents.append(network.variable(word))
        elif word == "|":
            words.fail("expected one variable before '|'")
    scope = network.scope(child, parents)
    words.sign("{")
    _read_table(words, network, scope)


def _row(words: _Words, network: Network, count: int, what: str) -> NDArray[np.float64]:
    """So many probabilities, and a semicolon."""
    values: list[float] = []
    for word in words.until(";", "a probability"):
        if not NUMBER.fullmatch(word) or not isfinite(float(word)):
            words.fail("expected a probability, a number from 0 to 1")
        values.append(network.probability(float(word)))
        if len(values) > count:
            words.fail(f"{what} has {count} probabilities; this is one more")
    if len(values) < count:
        words.fail(f"{what} has {count} probabilities, not {len(values)}")
    return np.array(values)


def _read_table(words: _Words, network: Network, scope: tuple[int, ...]) -> None:
    """The body of a probability block."""
    shape, card = network.shape(scope), network.card(scope[-1])
    default: NDArray[np.float64] | None = None
    rows: dict[tuple[int, ...], NDArray[np.float64]] = {}
    whole: NDArray[np.float64] | None = None
    while (word := words.next("'table', '(', 'default', 'property' or '}'")) != "}":
        if word == "property":
            words.skip_property()
        elif word == "table" and whole is None and not rows and default is None:
            network.room(scope, listed=False)
            whole = _whole_table(words, network, shape)
        elif word == "default" and default is None and whole is None:
            default = _row(words, network, card, "the default")
        elif word == "(" and whole is None:
            values = list(words.until(")", "a value"))
            if len(values) != len(scope) - 1:
                words.fail(f"expected the values of {len(scope) - 1} parents, not {len(values)}")
            at = tuple(network.label(v, value) for v, value in zip(scope[:-1], values, strict=True))
            if at in rows:
                words.fail("this combination of values has two rows")
            rows[at] = _row(words, network, card, "a row")
        else:
            words.fail("expected one 'table', or rows that begin with '(' and at most one 'default', or '}'")
    network.add_table(scope, whole if whole is not None else _filled(words, network, scope, default, rows))


def _whole_table(words: _Words, network: Network, shape: tuple[int, ...]) -> NDArray[np.float64]:
    values = _row(words, network, int(np.prod(shape, dtype=np.float64)), "the table")
    first = values.reshape(shape[-1:] + shape[:-1])  # as the format says: the child is slowest
    table: NDArray[np.float64] = np.moveaxis(first, 0, -1)
    if not add_up(table, -1) and add_up(values.reshape(shape), -1):
        words.fail("the table lists the child fastest, as XMLBIF does; in BIF it is slowest")
    return table


def _filled(
    words: _Words,
    network: Network,
    scope: tuple[int, ...],
    default: NDArray[np.float64] | None,
    rows: dict[tuple[int, ...], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """A table from its rows, and the default for those that are not there."""
    parents = network.shape(scope[:-1])
    combinations = int(np.prod(parents, dtype=object)) if parents else 1
    if default is None and len(rows) < combinations:
        words.fail(f"the table has {len(rows)} rows for {combinations} combinations of values, and no default")
    network.room(scope, listed=default is None)
    table = np.empty(network.shape(scope))
    if default is not None:
        table[...] = default
    for at, row in rows.items():
        table[at] = row
    return table


# -- writing ---------------------------------------------------------------------------------------------------


def write_bif(graph: FactorGraph, path: Path) -> None:
    """Writes a Bayesian network; a graph that is none is refused."""
    tables = conditionals(graph)
    variables, labels = written_names(graph)
    called = [_quoted(name, path) for name in variables]
    values = [[_quoted(name, path) for name in some] for some in labels]
    with write_atomically(path) as stream:

        def put(text: str) -> None:
            stream.write(text.encode("utf-8", "surrogateescape"))

        put("network fginfer {\n}\n")
        for name, some in zip(called, values, strict=True):
            put(f"variable {name} {{\n  type discrete [ {len(some)} ] {{ {', '.join(some)} }};\n}}\n")
        for child, parents, probabilities in tables:
            given = f" | {', '.join(called[v] for v in parents)}" if parents else ""
            put(f"probability ( {called[child]}{given} ) {{\n")
            if not parents:
                put(f"  table {', '.join(map(repr, probabilities.tolist()))};\n")
            for at in np.ndindex(probabilities.shape[:-1]) if parents else ():
                state = ", ".join(values[v][a] for v, a in zip(parents, at, strict=True))
                put(f"  ({state}) {', '.join(map(repr, probabilities[at].tolist()))};\n")
            put("}\n")


def _quoted(name: str, path: Path) -> str:
    """A name that is one word stands as it is, others in quotes."""
    if _WORD.fullmatch(name) and not name.startswith(("//", "/*")):
        return name
    if '"' in name or "\n" in name or "\r" in name:
        raise FormatError(f"the name {shown(name)} cannot be written: BIF has no quotes or lines in names", str(path))
    return f'"{name}"'
