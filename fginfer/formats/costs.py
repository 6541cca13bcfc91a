"""What the two formats of toulbar2 share: costs with an upper bound on the total, which becomes the graph's cutoff."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.core.costs import CfnReader, WcspReader
from fginfer.errors import FormatError, ModelError
from fginfer.formats.assembly import MOST_VARIABLES
from fginfer.formats.global_rules import add_global
from fginfer.formats.global_text import Split, UnknownGlobalError
from fginfer.formats.lines import NUMBER
from fginfer.formats.streams import open_binary, pieces, read_text, split_compression
from fginfer.graph import FactorGraph
from fginfer.names import Names

_PIECE = 1 << 20
_OF_VARIABLES, _OF_FUNCTIONS = -1, -2  # owners of names in the reader of the core; else a variable, of its labels
_PER_BYTE = 150  # bytes that a byte of text takes while it is looked through for global functions
_MOST_DECIMALS = 15
_DECIMALS = re.compile(r"\d\.(\d+)", re.ASCII)
_MAXIMISES = re.compile(r"mustbe\"?\s*:?\s*\"?>")
_FEW_STATES = 4096  # states of a table whose labels are worth remembering as text
T = TypeVar("T")


def _fail_at(error: FormatError, message: str) -> NoReturn:
    raise FormatError(message, error.path, error.line, error.token) from None


def read_costs(
    path: Path,
    budget: Budget,
    make: Callable[[Budget], WcspReader | CfnReader],
    split: Callable[[Path, str], Split],
) -> FactorGraph:
    """The graph of a file that is pushed through a reader of the core, within the budget.

    A file that the core refuses may have global functions: it is read again without these, which become constraints.
    """
    try:
        with open_binary(path, budget) as stream:
            return _read_tables(path, budget, make(budget), stream)
    except FormatError as refused:
        # A global function over many variables is first refused for the table that it would be.
        signs = ("global", " entries", " are the most")
        if not os.path.isfile(path) or not any(sign in refused.message for sign in signs):
            raise
        try:
            parts = _split(path, budget.fresh(), split)
        except UnknownGlobalError:
            raise
        except FormatError as error:
            raise error if "global" in refused.message else refused from None
        if not parts.found:
            raise
    again = budget.fresh()
    return _with_globals(path, again, make(again), parts)


def _split(path: Path, budget: Budget, split: Callable[[Path, str], Split]) -> Split:
    with open_binary(path, budget) as stream:
        text = read_text(stream, path, budget)
    budget.take(float(_PER_BYTE * len(text)), "the text")
    return split(path, text)


def _with_globals(path: Path, budget: Budget, reader: WcspReader | CfnReader, parts: Split) -> FactorGraph:
    graph = _read_tables(path, budget, reader, io.BytesIO(parts.text.encode("utf-8", "surrogateescape")))
    if parts.bound.startswith(">"):
        given = parts.found[0]
        raise FormatError("global functions of a file that maximises are not read", str(path), given.line, given.kind)
    # Costs of a .wcsp are not negative, so one that reaches the bound is forbidden whatever the others are.
    top = float(parts.bound) if isinstance(reader, WcspReader) and NUMBER.fullmatch(parts.bound) else math.inf
    for given in parts.found:
        try:
            add_global(graph, given, top, _network(path, budget, given.inside))
        except ModelError as error:
            raise FormatError(str(error), str(path), given.line, given.kind) from None
    if graph.cutoff == -math.inf and NUMBER.fullmatch(parts.bound.lstrip("<")):
        graph.cutoff = _cutoff(parts)
    return graph


def _network(path: Path, budget: Budget, text: str) -> FactorGraph | None:
    """A network inside of a file, which minimises as the file does."""
    if not text:
        return None
    if _MAXIMISES.search(text):
        raise ModelError("the network inside maximises, and the file minimises")
    reader = CfnReader(str(path), MOST_VARIABLES, budget.room, budget.most)
    return _read_tables(path, budget, reader, io.BytesIO(text.encode("utf-8", "surrogateescape")))


def _cutoff(parts: Split) -> float:
    """Minus the bound. The core leaves it out where no total of tables gets there, but constraints add to that.

    Totals of decimal costs are rounded, so the line is drawn half a last digit below the bound, where no total lies.
    """
    bound = float(parts.bound.lstrip("<"))
    numbers = (text for given in [parts.bound, parts.text, *map(str, parts.found)] for text in _DECIMALS.findall(given))
    decimals = max(map(len, numbers), default=0)
    return 0.0 - (bound - 0.5 * 10.0**-decimals if 0 < decimals < _MOST_DECIMALS else bound)


def _read_tables(path: Path, budget: Budget, reader: WcspReader | CfnReader, stream: Any) -> FactorGraph:
    unpacks = budget.threads > 1 and split_compression(path)[1] != ""
    try:
        for piece, n in pieces(stream, _PIECE, ahead=unpacks):
            reader.feed(piece, n)
            budget.hold(reader.held, "the model")
        model, given, cutoff = reader.finish()
    except FormatError as error:
        size, listed = reader.refused
        if size:
            budget.fail = partial(_fail_at, error)
            (budget.hold if listed else budget.take_unlisted)(size, error.message)
        raise
    except ModelError as error:
        raise FormatError(str(error), str(path)) from None
    graph = FactorGraph.from_model(model, given)
    if isinstance(reader, CfnReader):
        graph.take_names(_names(*reader.names()))
    if cutoff > -math.inf:
        graph.cutoff = cutoff
    return graph


def _names(text: bytes, begin: NDArray[np.int64], owner: NDArray[np.int32], value: NDArray[np.int32]) -> Names:
    """Those of variables and labels; a variable with a label whose name is empty has labels without names."""
    variables: dict[int, str] = {}
    labels: dict[int, list[str]] = {}
    ends = begin.tolist()
    for k, (whose, what) in enumerate(zip(owner.tolist(), value.tolist(), strict=True)):
        if whose == _OF_FUNCTIONS:
            continue
        name = text[ends[k] : ends[k + 1]].decode("utf-8", "surrogateescape")
        if whose == _OF_VARIABLES and name:
            variables[what] = name
        elif whose >= 0:
            labels.setdefault(whose, []).append(name)
    return Names.of(variables, {i: some for i, some in labels.items() if all(some)})


# -- writing ---------------------------------------------------------------------------------------------------


def problem_name(path: Path) -> str:
    """The name of a file as one plain word: spaces, tabs and line ends would end it, and not all bytes are text."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", split_compression(path)[0].stem) or "model"


def label_texts(shape: tuple[int, ...], between: str) -> list[str]:
    """The labels of every state of a table, the last variable's fastest."""
    few = math.prod(shape) <= _FEW_STATES
    return _remembered_labels(shape, between) if few else _label_texts(shape, between)


def _label_texts(shape: tuple[int, ...], between: str) -> list[str]:
    texts = [""]
    for k, n in enumerate(shape):
        labels = [(between if k else "") + str(a) for a in range(n)]
        texts = [before + label for before in texts for label in labels]
    return texts


_remembered_labels = lru_cache(maxsize=256)(_label_texts)


def most_frequent(items: Iterable[T]) -> T:
    """The one of several that comes first."""
    count: dict[T, int] = {}
    for item in items:
        count[item] = count.get(item, 0) + 1
    return max(count, key=count.__getitem__)
