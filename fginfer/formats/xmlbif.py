"""XMLBIF, Bayesian networks in XML (Weka, SamIam, pgmpy): tables list the child fastest, unlike those of BIF.

Entities other than XML's own are refused, so that a small file cannot become a large one.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape

import numpy as np

from fginfer.budget import Budget
from fginfer.errors import FormatError
from fginfer.formats.lines import NUMBER
from fginfer.formats.network import Network, add_up, conditionals, written_names
from fginfer.formats.streams import open_checked, write_atomically
from fginfer.graph import FactorGraph
from fginfer.names import shown

_PIECE = 1 << 16
_TEXTS = {"NAME", "VALUE", "OUTCOME", "FOR", "GIVEN", "TABLE"}  # elements whose text matters
_SKIPPED = {"PROPERTY"}
_INSIDE = {  # which element may stand in which
    "BIF": {""},
    "NETWORK": {"BIF"},
    "NAME": {"NETWORK", "VARIABLE"},
    "VARIABLE": {"NETWORK"},
    "VALUE": {"VARIABLE"},
    "OUTCOME": {"VARIABLE"},
    "DEFINITION": {"NETWORK"},
    "PROBABILITY": {"NETWORK"},
    "FOR": {"DEFINITION", "PROBABILITY"},
    "GIVEN": {"DEFINITION", "PROBABILITY"},
    "TABLE": {"DEFINITION", "PROBABILITY"},
}


class _Reader:
    """Follows the elements of a file and collects its network."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._path, self._budget = path, budget
        budget.fail = self.fail
        self.network = Network(budget, self.fail)
        self._open: list[str] = []  # elements around this place
        self._text: list[str] = []  # text of the innermost of them
        self._variable = ""
        self._labels: list[str] = []
        self._for: list[str] = []
        self._given: list[str] = []
        self._table: str | None = None
        self._kept: list[tuple[int, list[str], list[str], str]] = []  # definitions: a variable may come after them
        self._line = 0
        self._word = ""
        self._parser: Any = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity
        self._parser.ExternalEntityRefHandler = self._external

    def fail(self, message: str) -> NoReturn:
        """Raises a FormatError at the word that was looked at last."""
        token = "".join(c if c.isprintable() else "?" for c in self._word[:60]) or "end of file"
        raise FormatError(message, str(self._path), self._line or self._parser.CurrentLineNumber, token)

    def read(self) -> FactorGraph:
        try:
            with open_checked(self._path, self._budget) as stream:
                while piece := stream.read(_PIECE):
                    self._budget.take(len(piece), "the text")
                    self._parser.Parse(piece, False)
                self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise FormatError(f"no good XML ({reason})", str(self._path), error.lineno) from None
        except (LookupError, ValueError, UnicodeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"no good XML ({error})", str(self._path), self._parser.CurrentLineNumber) from None
        for kept in self._kept:
            self._add_definition(*kept)
        self._line, self._word = 0, ""
        return self.network.graph()

    # -- what the parser meets ---------------------------------------------------------------------------------

    def _entity(self, name: str, *_: Any) -> None:
        self._word = name
        self.fail("entities of a file's own are not read")

    def _external(self, *_: Any) -> int:
        self._word = "&"
        self.fail("entities from other files are not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._word = tag = name.upper()
        self._text.clear()
        around = self._open[-1] if self._open else ""
        if tag in _SKIPPED or around in _SKIPPED:
            self._open.append("PROPERTY")
            return
        if tag not in _INSIDE or around not in _INSIDE[tag]:
            self.fail(f"an element <{tag[:20]}> is not expected {f'in <{around}>' if around else 'here'}")
        kind = next((value for key, value in attributes.items() if key.upper() == "TYPE"), "nature")
        if tag == "VARIABLE" and kind.lower() not in ("nature", "discrete"):
            self._word = kind
            self.fail("only variables of type nature are read")
        if tag in ("DEFINITION", "PROBABILITY"):
            self._for, self._given, self._table = [], [], None
        if tag == "VARIABLE":
            self._variable, self._labels = "", []
        self._open.append(tag)

    def _characters(self, text: str) -> None:
        if self._open and self._open[-1] in _TEXTS:
            self._text.append(text)
        elif self._open and self._open[-1] not in _SKIPPED and text.strip():
            self._word = text.strip()
            self.fail(f"text is not expected in <{self._open[-1]}>")

    def _end(self, _: str) -> None:
        tag = self._open.pop()
        text = "".join(self._text).strip()
        self._text.clear()
        if tag == "NAME" and self._open[-1] == "VARIABLE":
            self._word, self._variable = text, text
        elif tag in ("VALUE", "OUTCOME"):
            self._labels.append(text)
        elif tag == "FOR":
            self._for.append(text)
        elif tag == "GIVEN":
            self._given.append(text)
        elif tag == "TABLE":
            self._word = "TABLE"
            if self._table is not None:
                self.fail("a definition has two tables")
            self._table = text
        elif tag == "VARIABLE":
            self._add_variable()
        elif tag in ("DEFINITION", "PROBABILITY"):
            self._word = tag
            if self._table is None or len(self._for) != 1:
                self.fail("a definition needs one <FOR> and one <TABLE>")
            self._kept.append((self._parser.CurrentLineNumber, self._for, self._given, self._table))

    # -- what it means -----------------------------------------------------------------------------------------

    def _add_variable(self) -> None:
        variable = self.network.declare(self._variable)
        for label in self._labels:
            self._word = label
            self.network.add_label(variable, label)
        if not self._labels:
            self._word = self._variable
            self.fail(f"variable {shown(self._variable)} has no values")

    def _add_definition(self, line: int, child: list[str], given: list[str], text: str) -> None:
        self._line, self._word = line, child[0]
        last = self.network.variable(child[0])
        parents = []
        for name in given:
            self._word = name
            parents.append(self.network.variable(name))
        scope = self.network.scope(last, parents)
        shape = self.network.shape(scope)
        size = math.prod(shape)
        words = text.split()
        self._word = child[0]
        if len(words) != size:
            self.fail(f"the table of {shown(child[0])} has {len(words)} numbers, not {size}")
        self.network.room(scope, listed=True)
        values = []
        for self._word in words:
            if not NUMBER.fullmatch(self._word):
                self.fail("expected a probability, a number from 0 to 1")
            values.append(self.network.probability(float(self._word)))
        table = np.array(values).reshape(shape)
        first = np.moveaxis(np.array(values).reshape(shape[-1:] + shape[:-1]), 0, -1)
        self._word = child[0]
        if not add_up(table, -1) and add_up(first, -1):
            self.fail("the table lists the child slowest, as BIF does; in XMLBIF it is fastest")
        self.network.add_table(scope, table)


def read_xmlbif(path: Path, budget: Budget) -> FactorGraph:
    """Reads a Bayesian network with its names; scores are logarithms of probabilities."""
    return _Reader(path, budget).read()


# -- writing ---------------------------------------------------------------------------------------------------

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n<NAME>fginfer</NAME>\n'


def write_xmlbif(graph: FactorGraph, path: Path) -> None:
    """Writes a Bayesian network; a graph that is none is refused."""
    tables = conditionals(graph)
    variables, labels = written_names(graph)
    called = [_escaped(name, path) for name in variables]
    with write_atomically(path) as stream:
        stream.write(_HEAD.encode())
        for name, some in zip(called, labels, strict=True):
            values = "".join(f"<OUTCOME>{_escaped(label, path)}</OUTCOME>" for label in some)
            stream.write(f'<VARIABLE TYPE="nature"><NAME>{name}</NAME>{values}</VARIABLE>\n'.encode())
        for child, parents, probabilities in tables:
            given = "".join(f"<GIVEN>{called[v]}</GIVEN>" for v in parents)
            stream.write(f"<DEFINITION><FOR>{called[child]}</FOR>{given}<TABLE>\n".encode())
            for row in probabilities.reshape(-1, probabilities.shape[-1]).tolist():
                stream.write(f"{' '.join(map(repr, row))}\n".encode())
            stream.write(b"</TABLE></DEFINITION>\n")
        stream.write(b"</NETWORK>\n</BIF>\n")


def _escaped(name: str, path: Path) -> str:
    held = all(c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff" for c in name)
    if name != name.strip() or not held:
        raise FormatError(f"the name {shown(name)} cannot be written: XML does not hold such text", str(path))
    return escape(name)
