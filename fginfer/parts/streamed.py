"""A UAI file cut into shards without ever being whole in memory: only who shares a factor with whom is.

The first pass reads the variables and scopes, which decide the parts. The second one copies the text of every table to
the part that has it, as a UAI file of its own. These are then read one after the other, each as any UAI file is.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.core.arrays import ModelArrays, begins
from fginfer.errors import FormatError
from fginfer.formats.tokens import Tokens
from fginfer.formats.uai import read_uai
from fginfer.parts.rules import RULES
from fginfer.parts.shard import Shard, ragged
from fginfer.parts.sharded import Sharded
from fginfer.parts.split import Cut, owners_of

_MOST = 2**31 - 1


class _Head(NamedTuple):
    """What stands before the tables."""

    cards: NDArray[np.int32]
    begin: NDArray[np.int64]  # where the variables of each function begin
    scopes: NDArray[np.int32]


def shard_uai(path: Path, folder: Path, parts: int, log_values: bool, budget: Budget | None = None) -> int:
    """Writes the parts of a UAI file to a folder, as Sharded.save does; how many there are."""
    tokens = Tokens(path, budget)
    head = _read_head(tokens)
    cut, part_of = _cut(head, parts)
    with TemporaryDirectory(prefix="fginfer-shard-") as spool:
        texts = [_Text(Path(spool) / f"{part}.uai") for part in range(cut.n_parts)]
        for part, text in enumerate(texts):
            _write_head(text, head, cut, part, np.flatnonzero(part_of == part))
        _copy_tables(tokens, head, part_of, texts, log_values)

        def build(part: int) -> Shard:
            variables, n_border = cut.variables(part)
            graph = read_uai(texts[part].path, log_values=log_values)
            texts[part].path.unlink()
            return Shard.of(graph, variables, variables[:n_border])

        Sharded(build, cut.n_parts).save(folder)
    return cut.n_parts


def _read_head(tokens: Tokens) -> _Head:
    kind = tokens.next("MARKOV or BAYES")
    if kind not in ("MARKOV", "BAYES"):
        tokens.fail("expected MARKOV or BAYES")
    n = tokens.integer("the number of variables", high=_MOST)
    cards = array("i")
    for _ in range(n):
        cards.append(tokens.integer("a number of labels", 1, _MOST))
    sizes, scopes = array("q"), array("i")
    for _ in range(tokens.integer("the number of functions", high=_MOST)):
        size = tokens.integer("the number of variables of a function", high=n)
        sizes.append(size)
        for _ in range(size):
            scopes.append(tokens.integer("a variable", high=n - 1))
    return _Head(np.array(cards, np.int32), begins(np.array(sizes, np.int64)), np.array(scopes, np.int32))


def _cut(head: _Head, parts: int) -> tuple[Cut, NDArray[np.int32]]:
    """The cut, and the part of every function: those of no variable go to the first one."""
    sizes = np.diff(head.begin)
    wide = np.flatnonzero(sizes > 1)
    arrays = ModelArrays(head.cards, factor_table=np.zeros(len(wide), np.int32))
    arrays.vars = head.scopes[np.repeat(sizes > 1, sizes)]
    arrays.var_begin = None if (sizes[wide] == 2).all() else begins(sizes[wide])
    cut = Cut(arrays, owners_of(arrays, parts))
    part_of = np.zeros(len(sizes), np.int32)
    part_of[wide] = cut.factor_part
    part_of[sizes == 1] = cut.owner[head.scopes[head.begin[:-1][sizes == 1]]]
    return cut, part_of


class _Text:
    """A file that grows by pieces; not open meanwhile, for there may be more of them than a process may have."""

    def __init__(self, path: Path) -> None:
        self.path, self._held = path, bytearray()

    def write(self, text: bytes) -> None:
        self._held += text
        if len(self._held) >= RULES.spool_bytes:
            self.flush()

    def write_numbers(self, numbers: NDArray[Any]) -> None:
        self.write(" ".join(map(str, numbers.tolist())).encode() + b" ")

    def flush(self) -> None:
        try:
            with open(self.path, "ab") as stream:
                stream.write(self._held)
        except OSError as error:
            raise FormatError(f"cannot be written ({error.strerror})", str(self.path)) from error
        self._held.clear()


def _write_head(text: _Text, head: _Head, cut: Cut, part: int, functions: NDArray[np.int64]) -> None:
    variables, _ = cut.variables(part)
    place = np.zeros(len(head.cards), np.int32)
    place[variables] = np.arange(len(variables), dtype=np.int32)
    text.write(b"MARKOV %d\n" % len(variables))
    text.write_numbers(head.cards[variables])
    text.write(b"\n%d\n" % len(functions))
    for few in np.array_split(functions, 1 + len(functions) // RULES.spool_functions):
        scopes = ragged(head.begin, few)
        sizes = head.begin[few + 1] - head.begin[few]
        text.write_numbers(np.insert(place[head.scopes[scopes]], begins(sizes)[:-1], sizes))
    text.write(b"\n")


def _copy_tables(tokens: Tokens, head: _Head, part_of: NDArray[np.int32], texts: list[_Text], log_values: bool) -> None:
    functions = np.arange(len(part_of))
    for few in np.array_split(functions, 1 + len(functions) // RULES.spool_functions):
        for f, size, part in zip(few.tolist(), _sizes(head, few), part_of[few].tolist(), strict=True):
            if tokens.integer("the number of entries of a table") != size:
                tokens.fail(f"function {f} has {size} states, so many entries are expected")
            texts[part].write(b"%d" % size)
            for block in tokens.blocks(size, f"an entry of function {f}"):
                _check(tokens, block, log_values)
                texts[part].write(b" " + b" ".join(block))
            texts[part].write(b"\n")
    tokens.end("the last table")
    for text in texts:
        text.flush()


def _sizes(head: _Head, functions: NDArray[np.int64]) -> list[int]:
    """How many states these functions have; whole numbers of any size, for a file may claim what it likes."""
    cards = head.cards[head.scopes[ragged(head.begin, functions)]].tolist()
    ends = np.cumsum(head.begin[functions + 1] - head.begin[functions]).tolist()
    return [prod(cards[a:b]) for a, b in pairwise([0, *ends])]


def _check(tokens: Tokens, block: list[bytes], log_values: bool) -> None:
    """Every entry is a number, here, where its line is known."""
    try:
        values = np.array(block).astype(np.float64)
    except ValueError:
        for k, word in enumerate(block):
            try:
                float(word)
            except ValueError:
                tokens.fail_in("expected a number", block, k)
        raise
    bad = np.isnan(values) | (values == np.inf) | ((values < 0) & (not log_values))
    if bad.any():
        what = "a score below inf" if log_values else "a potential, 0 or more,"
        tokens.fail_in(f"expected {what} that is a number", block, int(np.flatnonzero(bad)[0]))
