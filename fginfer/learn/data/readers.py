"""Readers for learning data: CoNLL columns and svmlight files with several labels a line, also in .gz, .xz and .bz2."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fginfer.budget import Budget
from fginfer.errors import FormatError
from fginfer.formats.streams import open_checked, whole_lines

Sentence = list[list[str]]


_LONGEST = 1 << 24  # bytes of a line
_OFTEN = 1024  # tokens of a sentence
_TOKEN, _COLUMN = 150.0, 70.0  # bytes that a line (or a sentence) and a word take as Python objects
_PER_BYTE = 400  # bytes in memory a byte of the file: text takes 30, times 5 to 10 where it is compressed


def _budget(path: str | os.PathLike[str]) -> Budget:
    return Budget(Path(path), allows="")


def _tokens(budget: Budget, width: int) -> Callable[[int], None]:
    """Counts tokens of `width` columns; sentences may be without end, and need not be asked for a token at a time."""
    return lambda n: budget.take_unlisted(_TOKEN + (_TOKEN + _COLUMN * width) * n, "the sentences", _PER_BYTE)


def _lines(path: str | os.PathLike[str], budget: Budget) -> Iterator[tuple[int, str]]:
    """Numbers and texts of lines; of many blank ones in a row perhaps the last only."""
    file, coding = Path(path), "utf-8-sig"  # a byte order mark is no part of the first token
    with open_checked(file, budget) as stream:
        for first, data in whole_lines(stream, file, _LONGEST):
            if data.isspace():
                yield first + data.count(b"\n"), ""
                continue
            try:
                text = data.decode(coding)
            except UnicodeDecodeError as error:
                number = first + data.count(b"\n", 0, error.start)
                raise FormatError(f"not UTF-8 text ({error.reason})", str(path), number) from None
            coding = "utf-8"
            yield from enumerate(text.removesuffix("\n").split("\n"), first)


def read_conll(path: str | os.PathLike[str], separator: str | None = None) -> list[Sentence]:
    """Sentences of a CoNLL file: one token a line, columns split at spaces and tabs (or at `separator`), blank lines
    between sentences. All tokens have the same number of columns; a line that begins with ``#`` and has another one is
    a comment (with the right one it is a token: the pound sign is one in CoNLL-2000). ``-DOCSTART-`` is left out.

    >>> with open("train.txt", "w") as file:
    ...     _ = file.write("the D\\ndog N\\n\\na D\\n")
    >>> read_conll("train.txt")
    [[['the', 'D'], ['dog', 'N']], [['a', 'D']]]
    """
    sentences: list[Sentence] = []
    current: Sentence = []
    budget = _budget(path)
    lines = _lines(path, budget)
    before: list[tuple[int, str]] = []  # the first token, and what may be comments before it
    width = 0
    for number, line in lines:
        columns = _columns(line, separator)
        if columns:
            budget.take_unlisted(_TOKEN + len(line), "the comments", _PER_BYTE)
            before.append((number, line))
        if columns and not line.startswith(("#", "-DOCSTART-")):
            width = len(columns)
            break
    if not width:
        raise FormatError("there are no sentences", str(path))
    taken = _tokens(budget, width)
    for number, line in chain(before, lines):
        columns = _columns(line, separator)
        if not columns:
            if current:
                taken(len(current) % _OFTEN)
                sentences.append(current)
                current = []
        elif len(columns) == width and columns[0] != "-DOCSTART-":
            current.append(columns)
            if len(current) % _OFTEN == 0:
                taken(_OFTEN)
        elif not line.startswith(("#", "-DOCSTART-")):
            raise FormatError(f"{len(columns)} columns, the first token has {width}", str(path), number, columns[0])
    if current:
        sentences.append(current)
    return sentences


def _columns(line: str, separator: str | None) -> list[str]:
    """Empty for a blank line. Other white space (no-break and ideographic spaces) may be part of a token."""
    if not line.strip(" \t"):
        return []
    return line.split(separator) if separator is not None else re.split("[ \t]+", line.strip(" \t"))


def read_conllu(path: str | os.PathLike[str]) -> list[Sentence]:
    """Sentences of a CoNLL-U file, without multiword ranges (3-4) and empty nodes (3.1).

    >>> with open("train.conllu", "w") as file:
    ...     _ = file.write("1\\tdogs\\tdog\\tNOUN" + 6 * "\\t_" + "\\n")
    >>> [token[3] for token in read_conllu("train.conllu")[0]]
    ['NOUN']
    """
    sentences: list[Sentence] = []
    current: Sentence = []
    budget = _budget(path)
    taken = _tokens(budget, 10)
    for number, line in _lines(path, budget):
        if not line.strip():
            if current:
                taken(len(current) % _OFTEN)
                sentences.append(current)
                current = []
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 10:
                raise FormatError(f"{len(columns)} columns instead of 10", str(path), number, columns[0])
            if columns[0].isdecimal():
                current.append(columns)
                if len(current) % _OFTEN == 0:
                    taken(_OFTEN)
            elif not re.fullmatch(r"\d+[-.]\d+", columns[0]):
                raise FormatError("expected the number of a token", str(path), number, columns[0])
    if current:
        sentences.append(current)
    if not sentences:
        raise FormatError("there are no sentences", str(path))
    return sentences


def read_svmlight(
    path: str | os.PathLike[str], n_features: int | None = None, zero_based: bool = False
) -> tuple[sp.csr_matrix, list[list[str]]]:
    """(features, labels) of lines ``label,label index:value index:value ...``; a line may have no label.

    Labels are kept as text. Indices start at 1 unless `zero_based`; with `n_features` (from training) larger ones are
    dropped. Empty lines and what follows a ``#`` are left out.

    >>> with open("train.svm", "w") as file:
    ...     _ = file.write("red,warm 1:0.5 3:2\\nblue 2:1\\n")
    >>> rows, labels = read_svmlight("train.svm")
    >>> rows.toarray().tolist(), labels
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [['red', 'warm'], ['blue']])
    """
    labels: list[list[str]] = []
    indices, values, begin = array("q"), array("d"), array("q", [0])
    budget = _budget(path)
    for number, line in _lines(path, budget):
        fields = line.split("#", 1)[0].split()
        if not fields:
            continue
        first = [] if ":" in fields[0] else fields.pop(0).split(",")
        labels.append([label for label in first if label])
        seen: set[int] = set()
        for field in fields:
            index, value = _svmlight_pair(field, zero_based, str(path), number)
            if index in seen:
                raise FormatError("the index is given twice", str(path), number, field)
            seen.add(index)
            if n_features is None or index < n_features:
                indices.append(index)
                values.append(value)
        begin.append(len(indices))
        budget.take_unlisted(_TOKEN + _COLUMN * len(first) + 32.0 * len(fields), "the examples", _PER_BYTE)
    if not labels:
        raise FormatError("there are no examples", str(path))
    width = n_features if n_features is not None else max(indices, default=-1) + 1
    arrays = np.array(values), np.array(indices), np.array(begin)
    matrix = sp.csr_matrix(arrays, shape=(len(labels), width))
    matrix.sort_indices()
    return matrix, labels


def _svmlight_pair(field: str, zero_based: bool, path: str, line: int) -> tuple[int, float]:
    try:
        name, text = field.split(":")
        if not name.isascii() or not name.isdigit() or "_" in text:
            raise ValueError
        index, value = int(name) - (not zero_based), float(text)
    except ValueError:
        raise FormatError("expected index:value", path, line, field) from None
    if index < 0:
        raise FormatError("indices begin at 1, unless --zero-based (zero_based=True) says 0", path, line, field)
    if not np.isfinite(value):
        raise FormatError("the value is not finite", path, line, field)
    if index >= 2**31 - 1:  # the core counts features with 32 bits
        raise FormatError("the index is too large", path, line, field)
    return index, value
