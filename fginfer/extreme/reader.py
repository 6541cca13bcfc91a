"""Streams svmlight and XMLRepo files: blocks of rows, in memory or, past a limit, in files that are mapped.

    label,label index:value index:value ...        svmlight: indices begin at 1 (or, if said so, at 0)
    N D K                                          XMLRepo: a first line with the numbers of rows, features and
    label,label index:value ...                    labels, and everything counted from 0

A row may have no label. Indices ascend. Labels are whole numbers or text.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.core.extreme import ExtremeData, Lines
from fginfer.errors import FormatError
from fginfer.extreme.data import unit_rows
from fginfer.formats.streams import open_binary, open_checked, whole_lines

BLOCK = 1 << 23  # bytes of text read at once
_HEADER = 200  # bytes of a first line that can be a header
_LONGEST = 1 << 25  # bytes of a row
_DIGITS = 18  # digits of a label that is a number: those of the header have ten
BLOCK_SHARE = 64  # part of a memory limit: a block takes about 20 times its text while it is parsed
# What training keeps at the least: counters, offsets and the working memory of one thread, names and biases.
BYTES_A_FEATURE, BYTES_A_LABEL = 64, 32


@dataclass(frozen=True)
class Block:
    """Some rows of a file: features and values as in Lines, labels as text."""

    counts: NDArray[np.int64]
    index: NDArray[np.int64]
    value: NDArray[np.float64]
    labels: list[list[bytes]]

    def lines(self, width: int, unit: bool) -> Lines:
        """As rows for a model of that many features: further ones are left out."""
        keep = self.index < width
        row = np.repeat(np.arange(len(self.counts)), self.counts)[keep]
        begin = begins(np.bincount(row, minlength=len(self.counts)))
        lines = Lines(begin, self.index[keep].astype(np.int32), self.value[keep].astype(np.float32), width)
        return unit_rows(lines) if unit else lines


class _After:
    """A stream with what was read of it before."""

    def __init__(self, before: bytes, stream: Any) -> None:
        self._before, self._stream = before, stream

    def read(self, size: int) -> bytes:
        before, self._before = self._before, b""
        return before or bytes(self._stream.read(size))


class Reader:
    """One file, read once from beginning to end; `header` is (N, D, K) for XMLRepo files, else None."""

    def __init__(
        self, path: str | os.PathLike[str], zero_based: bool = False, memory: float | None = None
    ) -> None:  # fmt: skip
        self.path, self._zero_based = Path(path), zero_based
        self._block = BLOCK if memory is None else max(1, min(BLOCK, int(memory / BLOCK_SHARE)))
        self.header: tuple[int, int, int] | None = None
        self.rows = 0
        self._opened = ExitStack()
        self._pipe: Any = None
        if os.path.isfile(self.path):
            with open_checked(self.path) as file:
                line = file.readline(_HEADER)
        else:  # a pipe can be opened once
            self._pipe = self._opened.enter_context(open_binary(self.path))
            line = self._pipe.readline(_HEADER)
        self._first = line
        first = line.split() if len(line) < _HEADER else []
        if len(first) == 3 and all(t.isdigit() for t in first):
            self.header = (int(first[0]), int(first[1]), int(first[2]))
            if max(self.header) >= 2**31 - 1:
                raise FormatError("the header is out of range", str(path), 1, max(first, key=len).decode())

    def _fail(self, message: str, line: int, token: bytes = b"") -> FormatError:
        return FormatError(message, str(self.path), line, token.decode("utf-8", "replace") or None)

    def __iter__(self) -> Iterator[Block]:
        number = 0 if self.header is None else 1
        self.rows = 0
        with self._opened:
            file = self._pipe or self._opened.enter_context(open_binary(self.path))
            if self._pipe is not None:
                file = _After(b"" if self.header is not None else self._first, file)
            elif self.header is not None:
                file.readline(_HEADER)
            for _, text in whole_lines(file, self.path, _LONGEST, self._block):
                if self.header is None and text.isspace():
                    number += text.count(b"\n")
                    continue
                lines = text.removesuffix(b"\n").split(b"\n")
                block = self._parse(lines, number)
                number += len(lines)
                self.rows += len(block.counts)
                if self.header is not None and self.rows > self.header[0]:
                    raise self._fail(f"there are more rows than the {self.header[0]} of the header", number)
                yield block
        if self.header is not None and self.rows != self.header[0]:
            raise self._fail(f"there are {self.rows} rows, the header says {self.header[0]}", number)
        if self.rows == 0:
            raise FormatError("there are no rows", str(self.path))

    def _parse(self, lines: list[bytes], before: int) -> Block:
        labels: list[list[bytes]] = []
        texts: list[bytes] = []
        numbers: list[int] = []
        for at, line in enumerate(lines, before + 1):
            if b"#" in line:
                line = line.partition(b"#")[0]
            if not line.strip():
                if self.header is None:
                    continue  # XMLRepo: a row without labels and features
                line = b""
            head, _, rest = line.partition(b" ") if not line[:1].isspace() else (b"", b"", line)
            if b":" in head:
                head, rest = b"", line
            labels.append([_plain(label) for label in head.strip().split(b",") if label.strip()])
            texts.append(rest)
            numbers.append(at)
        counts = np.array([t.count(b":") for t in texts], np.int64)
        flat = self._numbers(texts, int(counts.sum()), numbers)
        index, value = flat[0::2] - (0 if self.header is not None or self._zero_based else 1), flat[1::2]
        self._check(index, value, counts, numbers)
        self._check_labels(labels, numbers)
        return Block(counts, index.astype(np.int64), value, labels)

    def _numbers(self, texts: list[bytes], pairs: int, numbers: list[int]) -> NDArray[np.float64]:
        """All indices and values of a block; where something is no number, the line is found one by one."""
        try:
            flat = np.array(b" ".join(texts).replace(b":", b" ").split(), np.float64)
            if len(flat) == 2 * pairs:
                return flat
        except ValueError:
            pass  # the line is looked for below
        for text, line in zip(texts, numbers, strict=True):
            for token in text.split():
                try:
                    name, _, number = token.partition(b":")
                    float(number)
                    if not name.isdigit() or b"_" in number:
                        raise ValueError
                except ValueError:
                    raise self._fail("expected index:value", line, token) from None
        raise self._fail("expected index:value", numbers[0])

    def _check(self, index: Any, value: Any, counts: Any, numbers: list[int]) -> None:
        row = np.repeat(np.arange(len(counts)), counts)
        width = 2**31 - 1 if self.header is None else self.header[1]
        first = begins(counts)[:-1][counts > 0]
        follows = np.ones(len(index), bool)
        follows[first] = False
        repeated = np.zeros(len(index), bool)
        repeated[1:] = follows[1:] & (index[1:] <= index[:-1])
        hints = {
            "low": "indices begin at 1 (those of this file at 0? then say so: --zero-based)",
            "high": f"the header says {width} features, so indices go from 0 to {width - 1}"
            + (" (those of this file begin at 1?)" if len(index) and index.max() == width and index.min() >= 1 else ""),
        }
        for wrong, message in (
            (index != np.floor(index), "an index must be a whole number"),
            (index < 0, hints["low"]),
            (index >= width, hints["high"]),
            (repeated, "indices must ascend, each at most once in a row"),
            (~np.isfinite(value), "the value is not finite"),
            (np.abs(value) > np.finfo(np.float32).max, "the value is larger than single precision holds"),
        ):
            if np.any(wrong):
                at = int(np.argmax(wrong))
                shown = f"{index[at] + (0 if self.header is not None or self._zero_based else 1):.17g}"  # inf, too
                raise self._fail(message, numbers[int(row[at])], f"{shown}:{value[at]:g}".encode())

    def _check_labels(self, labels: list[list[bytes]], numbers: list[int]) -> None:
        for found, line in zip(labels, numbers, strict=True):
            if len(found) > 1 and len(set(found)) < len(found):
                raise self._fail("a label is given twice", line, b",".join(found))
            if self.header is None:
                continue
            for label in found:
                if not label.isdigit() or len(label) > _DIGITS or int(label) >= self.header[2]:
                    raise self._fail(f"labels go from 0 to {self.header[2] - 1}, as the header says", line, label)


def _plain(label: bytes) -> bytes:
    """Without spaces; numbers without leading zeros, so that a label has one name."""
    label = label.strip()
    return label.lstrip(b"0") or b"0" if label[:1] == b"0" and label.isdigit() else label


def _check_header(reader: Reader) -> None:
    """A header can claim more features and labels than this machine can count: what it would take, at the least."""
    if reader.header is None or not hasattr(os, "sysconf"):
        return
    _, features, labels = reader.header
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if BYTES_A_FEATURE * features + BYTES_A_LABEL * labels > memory:
        raise FormatError(
            f"the header says {features} features and {labels} labels, more than fit into memory", str(reader.path), 1
        )


class Spool:
    """An array that grows: in memory up to `limit` bytes, then in a file of `folder` that is mapped."""

    def __init__(self, dtype: Any, folder: Path, name: str, limit: float) -> None:
        self._dtype, self._path, self._limit = np.dtype(dtype), folder / name, limit
        self._parts: list[NDArray[Any]] = []
        self._file: Any = None
        self._n = 0

    def append(self, array: NDArray[Any]) -> None:
        part = np.ascontiguousarray(array, self._dtype)
        self._n += len(part)
        if self._file is None and self._n * self._dtype.itemsize > self._limit:
            self._file = open(self._path, "wb")  # noqa: SIM115
            for old in self._parts:
                old.tofile(self._file)
            self._parts = []
        if self._file is None:
            self._parts.append(part)
        else:
            part.tofile(self._file)

    def array(self) -> NDArray[Any]:
        if self._file is None:
            return np.concatenate(self._parts) if self._parts else np.zeros(0, self._dtype)
        self._file.close()
        return np.memmap(self._path, self._dtype, "r", shape=(self._n,))


@dataclass
class FileData:
    """Training data of a file, and the folder (if any) that holds what did not fit into memory."""

    data: ExtremeData
    classes: NDArray[Any]
    folder: Any
    mapped: bool


def read_training(
    path: str | os.PathLike[str], zero_based: bool, unit: bool, by_label: bool, memory: float | None = None
) -> FileData:
    """Reads a file for training. `memory` (bytes) bounds what is kept of it; the rest is in mapped temporary files.
    Numbers of a few bytes a row, a feature and a label are kept in any case."""
    folder = tempfile.TemporaryDirectory(prefix="fginfer-")
    limit = float("inf") if memory is None else memory / 8  # features, values, labels; and the transposes of these
    place = Path(folder.name)
    reader = Reader(path, zero_based, memory)
    _check_header(reader)
    index, value = Spool(np.int32, place, "index", limit), Spool(np.float32, place, "value", limit)
    label, counts, label_counts, width = Spool(np.int32, place, "label", limit), [], [], 0
    names: dict[bytes, int] = {}
    for block in reader:
        lines = block.lines(2**31 - 1, unit)
        width = max(width, int(block.index.max(initial=-1)) + 1)
        index.append(lines.index)
        value.append(lines.value)  # type: ignore[arg-type]
        counts.append(np.diff(lines.begin))
        label.append(np.array([names.setdefault(k, len(names)) for row in block.labels for k in row], np.int32))
        label_counts.append(np.array([len(row) for row in block.labels], np.int64))
    width = width if reader.header is None else reader.header[1]
    rows = Lines(begins(np.concatenate(counts)), index.array(), value.array(), width)
    classes, number = _classes(names, reader.header)
    if not len(classes):
        raise FormatError("no row has a label", str(path))
    found = _labels(label.array(), begins(np.concatenate(label_counts)), number, len(classes), place, limit)
    mapped = isinstance(rows.index, np.memmap)
    if not by_label:
        return FileData(ExtremeData(rows, found), classes, folder, mapped)
    part = None if memory is None else int(memory / 4)
    columns = rows.transposed(part, _room(rows, place, "column") if mapped else None)
    positives = found.transposed(part, _room(found, place, "positive") if isinstance(found.index, np.memmap) else None)
    return FileData(ExtremeData(rows, found, columns, positives), classes, folder, mapped)


def _room(lines: Lines, place: Path, name: str) -> Lines:
    """Mapped files for the transpose of a matrix."""
    index = np.memmap(place / f"{name}_index", np.int32, "w+", shape=(lines.nnz,))
    value = None
    if lines.value is not None:
        value = np.memmap(place / f"{name}_value", np.float32, "w+", shape=(lines.nnz,))
    return Lines(np.zeros(lines.width + 1, np.int64), index, value, lines.n)


def _labels(
    given: NDArray[Any], begin: NDArray[np.int64], number: NDArray[np.int64], n: int, place: Path, limit: float
) -> Lines:
    """Labels as they were met, as numbers of classes, ascending in every row; some rows at a time."""
    out, first, step = Spool(np.int32, place, "labels", limit), 0, 1 << 16
    while first < len(begin) - 1:
        last = max(first + 1, int(np.searchsorted(begin, begin[first] + step, side="right")) - 1)
        labels = number[given[begin[first] : begin[last]]]
        row = np.repeat(np.arange(last - first), np.diff(begin[first : last + 1]))
        out.append(labels[np.lexsort((labels, row))])
        first = last
    return Lines(begin, out.array(), None, n)


def _classes(names: dict[bytes, int], header: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """(classes, the number of every name): all of 0 .. K-1 with a header, else the labels seen, ascending."""
    texts = [name.decode("utf-8", "replace") for name in names]
    whole = all(t.isdigit() and len(t) < 19 for t in texts)
    seen: NDArray[Any] = np.array([int(t) for t in texts] if whole else texts)
    classes = np.arange(header[2]) if header is not None else np.unique(seen)
    return classes, np.searchsorted(classes, seen) if len(seen) else np.zeros(0, np.int64)
