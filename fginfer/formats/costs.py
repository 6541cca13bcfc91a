"""What the two formats of toulbar2 share: costs with an upper bound on the total, which becomes the graph's cutoff."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import NoReturn, TypeVar

from fginfer.budget import Budget
from fginfer.core.costs import CfnReader, WcspReader
from fginfer.errors import FormatError, ModelError
from fginfer.formats.streams import open_binary, pieces, split_compression
from fginfer.graph import FactorGraph

_PIECE = 1 << 20
_FEW_STATES = 4096  # of a table whose labels are worth remembering as text
T = TypeVar("T")


def _fail_at(error: FormatError, message: str) -> NoReturn:
    raise FormatError(message, error.path, error.line, error.token) from None


def read_costs(path: Path, budget: Budget, make: Callable[[], WcspReader | CfnReader]) -> FactorGraph:
    """The graph of a file that is pushed through a reader of the core, within the budget."""
    unpacks = budget.threads > 1 and split_compression(path)[1] != ""
    with open_binary(path, budget) as stream:
        reader = make()
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
    if cutoff > -math.inf:
        graph.cutoff = cutoff
    return graph


# -- writing ---------------------------------------------------------------------------------------------------


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
    """Of several, the one that comes first."""
    count: dict[T, int] = {}
    for item in items:
        count[item] = count.get(item, 0) + 1
    return max(count, key=count.__getitem__)
