"""Readers for learning data: CoNLL columns and svmlight files with several labels a line. Both read .gz, too."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from fginfer.errors import FormatError

Sentence = list[list[str]]


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    opener: Any = gzip.open if str(path).endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text ({error.reason})", str(path)) from None
    except OSError as error:
        raise FormatError(error.strerror or str(error), str(path)) from None


def read_conll(path: str | os.PathLike[str], separator: str | None = None) -> list[Sentence]:
    """Sentences of a CoNLL file: one token a line, columns split at white space (or at `separator`), blank lines
    between sentences. Lines that begin with ``# `` or ``-DOCSTART-`` are left out. All tokens have the same columns."""
    sentences: list[Sentence] = []
    current: Sentence = []
    width = 0
    for number, line in _lines(path):
        if not line.strip():
            if current:
                sentences.append(current)
                current = []
            continue
        if line.startswith(("# ", "-DOCSTART-")):
            continue
        columns = line.split(separator)
        width = width or len(columns)
        if len(columns) != width:
            raise FormatError(f"{len(columns)} columns, the first token has {width}", str(path), number, columns[0])
        current.append(columns)
    if current:
        sentences.append(current)
    if not sentences:
        raise FormatError("there are no sentences", str(path))
    return sentences


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
            if columns[0].isdigit():
                current.append(columns)
    if current:
        sentences.append(current)
    return sentences


def read_svmlight(
    path: str | os.PathLike[str], n_features: int | None = None, zero_based: bool = False
) -> tuple[sp.csr_matrix, list[list[str]]]:
    """(features, labels) of lines ``label,label index:value index:value ...``; a line may have no label.

    Labels are kept as text. Indices start at 1 unless `zero_based`; with `n_features` (from training) larger ones are
    dropped.
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
        previous = -1
        for field in fields:
            try:
                name, text = field.split(":")
                index, value = int(name) - (not zero_based), float(text)
            except ValueError:
                raise FormatError("expected index:value", str(path), number, field) from None
            if index < 0 or not np.isfinite(value):
                raise FormatError("index below the first one, or value not finite", str(path), number, field)
            if index == previous:
                raise FormatError("the index is given twice", str(path), number, field)
            previous = index
            if n_features is None or index < n_features:
                indices.append(index)
                values.append(value)
        begin.append(len(indices))
    if not labels:
        raise FormatError("there are no examples", str(path))
    width = n_features if n_features is not None else max(indices, default=-1) + 1
    matrix = sp.csr_matrix((np.array(values), np.array(indices, np.int64), np.array(begin)), shape=(len(labels), width))
    matrix.sum_duplicates()
    return matrix, labels
