"""Names beside a file whose format has none: model.uai.names, JSON in the words of FactorGraph(variables=...).

    {"rain": ["no", "yes"], "floor": 3}

Variables come in the order of the model, each with the names of its labels or their number. Where only some variables
have names the file says which, as `Names.to_json` has it: {"variables": [[0, "rain"]], "labels": [[0, ["no", "yes"]]]}.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from fginfer.budget import Budget
from fginfer.errors import FormatError, ModelError
from fginfer.formats.streams import STANDARD, open_checked, read_text, split_compression, write_atomically
from fginfer.graph import FactorGraph
from fginfer.names import Names, cards_of, shown

_PER_BYTE = 30  # bytes that a byte of JSON takes once it is read


def side_file(path: Path) -> Path:
    """Where the names of a model file are: model.uai.gz has model.uai.names."""
    plain = split_compression(path)[0]
    return plain.with_name(plain.name + ".names")


def find_names(path: Path) -> Path | None:
    """The side file of a model, if there is one."""
    side = side_file(path)
    return side if path != STANDARD and os.path.isfile(side) else None


def read_names(path: Path, graph: FactorGraph, budget: Budget) -> None:
    """Gives the graph the names of a side file."""
    with open_checked(path, budget) as stream:
        text = read_text(stream, path, budget)
    budget.take(float(_PER_BYTE * len(text)), "the names")
    try:
        given = json.loads(text, object_pairs_hook=_distinct)
        graph.take_names(_names(given, text, graph))
    except json.JSONDecodeError as error:
        raise FormatError(f"no JSON of names ({error.msg})", str(path), error.lineno) from None
    except (ModelError, RecursionError, ValueError) as error:
        raise FormatError(str(error) or "no JSON of names", str(path)) from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ModelError(f"there are two variables {shown(twice)}")
    return out


def _names(given: Any, text: str, graph: FactorGraph) -> Names | None:
    if not isinstance(given, dict):
        raise ModelError(f'names are an object such as {{"rain": ["no", "yes"]}}, not {shown(text.strip()[:40])}')
    if set(given) == {"variables", "labels"} and all(
        isinstance(some, list) and all(isinstance(one, list) for one in some) for some in given.values()
    ):
        return Names.from_json(text, graph.cards.tolist(), graph.n_variables)
    counts, names = cards_of(None, given)
    if len(counts) != graph.n_variables:
        raise ModelError(f"there are names for {len(counts)} variables, and the model has {graph.n_variables}")
    for (name, count), card in zip(zip(given, counts, strict=True), graph.cards.tolist(), strict=True):
        if count != card:
            raise ModelError(f"variable {shown(name)} has {card} labels in the model, and {count} here")
    return names


def write_names(graph: FactorGraph, path: Path) -> None:
    """Writes the names of a graph that has some."""
    names = graph.names or Names()
    called = [names.variable(i) for i in range(graph.n_variables)]
    if all(isinstance(name, str) for name in called):
        each = [names.labels(i) or card for i, card in enumerate(graph.cards.tolist())]
        lines = (f"{json.dumps(name)}: {json.dumps(some)}" for name, some in zip(called, each, strict=True))
        text = "{\n" + ",\n".join(lines) + "\n}\n"
    else:
        text = names.to_json() + "\n"
    with write_atomically(path) as stream:
        stream.write(text.encode())
