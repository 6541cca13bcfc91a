"""What the two formats of toulbar2 share: costs with an upper bound on the total, which becomes the graph's cutoff."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from fginfer.budget import Budget
from fginfer.core.costs import CfnReader, WcspReader
from fginfer.errors import FormatError, ModelError
from fginfer.formats.streams import open_binary, pieces, split_compression
from fginfer.graph import FactorGraph

_PIECE = 1 << 20


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
