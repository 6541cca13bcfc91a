"""Readers for learning data: CoNLL columns and svmlight files with several labels a line. Both read .gz, too."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from fginfer.errors import FormatError

Sentence = list[list[str]]


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    opener: Any = gzip.open if str(path).endswith(".gz") else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:  # a byte order mark is no part of the first token
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text ({error.reason})", str(path), number + 1) from None
    except (EOFError, zlib.error) as error:
        raise FormatError(f"damaged gzip file ({error})", str(path), number + 1) from None
    except OSError as error:
        raise FormatError(error.strerror or str(error), str(path)) from None


def read_conll(path: str | os.PathLike[str], separator: str | None = None) -> list[Sentence]:
    """Sentences of a CoNLL file: one token a line, columns split at spaces and tabs (or at `separator`), blank lines
    between sentences. All tokens have the same number of columns; a line that begins with ``#`` and has another one is
    a comment (with the right one it is a token: the pound sign is one in CoNLL-2000). ``-DOCSTART-`` is left out."""
    sentences: list[Sentence] = []
    current: Sentence = []
    width = _conll_width(path, separator)
    for number, line in _lines(path):
        columns = _columns(line, separator)
        if not columns:
            if current:
                sentences.append(current)
                current = []
        elif len(columns) == width and columns[0] != "-DOCSTART-":
            current.append(columns)
        elif not line.startswith(("#", "-DOCSTART-")):
            raise FormatError(f"{len(columns)} columns, the first token has {width}", str(path), number, columns[0])
    if current:
        sentences.append(current)
    return sentences


def _conll_width(path: str | os.PathLike[str], separator: str | None) -> int:
    """The number of columns of the first token."""
    for _, line in _lines(path):
        columns = _columns(line, separator)
        if columns and not line.startswith(("#", "-DOCSTART-")):
            return len(columns)
    raise FormatError("there are no sentences", str(path))


def _columns(line: str, separator: str | None) -> list[str]:
    """Empty for a blank line. Other white space (no-break and ideographic spaces) may be part of a token."""
    if not line.strip(" \t"):
        return []
    return line.split(separator) if separator is not None else re.split("[ \t]+", line.strip(" \t"))


def read_conllu(path: str | os.PathLike[str]) -> list[Sentence]:
    """Sentences of a CoNLL-U file, without multiword ranges (3-4) and empty nodes (3.1)."""
    sentences: list[Sentence] = []
    current: Sentence = []
    for number, line in _lines(path):
        if not line.strip():
            if current:
                sentences.append(current)
                current = []
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 10:
                raise FormatError(f"{len(columns)} columns instead of 10", str(path), number, columns[0])
            if columns[0].isdecimal():
                current.append(columns)
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
    """
    labels: list[list[str]] = []
    indices: list[int] = []
    values: list[float] = []
    begin = [0]
    for number, line in _lines(path):
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
    if not labels:
        raise FormatError("there are no examples", str(path))
    width = n_features if n_features is not None else max(indices, default=-1) + 1
    matrix = sp.csr_matrix((np.array(values), np.array(indices, np.int64), np.array(begin)), shape=(len(labels), width))
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
    if index < 0 or not np.isfinite(value):
        raise FormatError("index below the first one, or value not finite", path, line, field)
    if index >= 2**31 - 1:  # the core counts features with 32 bits
        raise FormatError("the index is too large", path, line, field)
    return index, value
