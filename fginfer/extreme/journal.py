"""Journal: trained columns in a file that only grows. A killed run loses the record it was writing, nothing else."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.extreme import INFO, ExtremeData, LabelColumns, Lines
from fginfer.errors import DataError, FormatError, SettingsError, UnwritableError
from fginfer.log import logger

MAGIC = b"FGIXJRNL"
RECORD = b"COLUMNS\0"


def fingerprint(data: ExtremeData, settings: dict[str, Any]) -> str:
    """A digest of data and settings: a journal is never continued on something else."""
    digest = sha256(json.dumps(settings, sort_keys=True).encode())
    for lines in (data.rows, data.labels):
        digest.update(repr((lines.n, lines.width, lines.nnz)).encode())
        for array in (lines.begin, lines.index, lines.value):
            if array is not None:
                digest.update(np.ascontiguousarray(array).view(np.uint8).data if len(array) else b"")
    return digest.hexdigest()


class Journal:
    """Columns on disk. `path` is created, or continued if it belongs to the same data and settings."""

    def __init__(self, path: str | os.PathLike[str], mark: str, n_features: int, n_labels: int) -> None:
        self.path, self._width, self._labels = Path(path), n_features, n_labels
        self._beyond: list[LabelColumns] | None = None  # what came after the disk was full
        head = MAGIC + mark.encode()
        if os.path.exists(self.path) and self.path.stat().st_size > 0:
            with open(self.path, "rb") as file:
                found = file.read(len(head))
            if not found.startswith(MAGIC) and not MAGIC.startswith(found):
                raise FormatError("this is no checkpoint of ppd-sparse", str(path))
            if found != head and len(found) == len(head):
                raise SettingsError(f"the checkpoint {path} was written for other data or settings")
        self._start = len(head)
        end = self._start
        if os.path.exists(self.path) and self.path.stat().st_size >= self._start:
            end = max((place for _, place in self._records()), default=end)
            self._file = open(self.path, "r+b")  # noqa: SIM115
            self._file.truncate(end)  # what a killed run left half-written
            self._file.seek(end)
        else:
            try:
                self._file = open(self.path, "w+b")  # noqa: SIM115
            except (OSError, ValueError) as error:
                raise UnwritableError(f"cannot be written ({getattr(error, 'strerror', error)})", str(path)) from None
            self._file.write(head)
            self._file.flush()

    def append(self, columns: LabelColumns) -> None:
        body = b"".join(np.ascontiguousarray(a).tobytes() for a in _arrays(columns))
        head = np.array([len(columns.labels), columns.weights.nnz, zlib.crc32(body)], np.uint64)
        if self._beyond is None:
            place = self._file.tell()
            try:
                self._file.write(RECORD + head.tobytes() + body)
                self._file.flush()
                return
            except OSError as error:  # a full disk must not cost what was learned
                logger.warning(f"{self.path}: the checkpoint grows no more ({error.strerror}), training goes on")
                self._beyond = []
                self._cut(place)
        self._beyond.append(columns)

    def _cut(self, place: int) -> None:
        """Without what was written of a record that found no room."""
        with suppress(OSError):
            self._file.close()  # it may try to write once more what is left in its buffer
        with suppress(OSError):
            os.truncate(self.path, place)
        self._file = open(self.path, "r+b")  # noqa: SIM115

    def __iter__(self) -> Iterator[LabelColumns]:
        """All columns so far."""
        self._file.flush()
        yield from (columns for columns, _ in self._records())
        yield from self._beyond or ()

    def _records(self) -> Iterator[tuple[LabelColumns, int]]:
        with open(self.path, "rb") as file:
            file.seek(self._start)
            size = os.fstat(file.fileno()).st_size
            while True:
                head = file.read(32)
                if len(head) < 32 or head[:8] != RECORD:
                    return
                n, nnz, crc = (int(x) for x in np.frombuffer(head, np.uint64, 3, 8))
                length = n * 4 + (n + 1) * 8 + nnz * 8 + n * 4 + n * INFO.itemsize
                if length > size - file.tell():
                    return
                body = file.read(length)
                if zlib.crc32(body) != crc:
                    return
                yield self._columns(body, n, nnz), file.tell()

    def _columns(self, body: bytes, n: int, nnz: int) -> LabelColumns:
        place = 0

        def take(kind: Any, count: int) -> NDArray[Any]:
            nonlocal place
            array = np.frombuffer(body, kind, count, place)
            place += array.nbytes
            return array

        labels, begin = take(np.int32, n), take(np.int64, n + 1)
        weights = Lines(begin, take(np.int32, nnz), take(np.float32, nnz), self._width)
        columns = LabelColumns(labels, weights, take(np.float32, n), take(INFO, n))
        try:
            self._check(columns, nnz)
        except DataError as error:
            raise FormatError(f"damaged checkpoint ({error})", str(self.path)) from None
        return columns

    def _check(self, columns: LabelColumns, nnz: int) -> None:
        """The check sum says that a record is as it was written, not that a run of ours has written it."""
        if columns.weights.nnz != nnz:
            raise DataError(f"columns of {columns.weights.nnz} weights in a record of {nnz}")
        columns.weights.check("its columns")
        if not ((columns.labels >= 0) & (columns.labels < self._labels)).all():
            raise DataError(f"a label is not from 0 to {self._labels - 1}")
        if not np.isfinite(columns.bias).all():
            raise DataError("a bias is not finite")

    def close(self) -> None:
        self._file.close()


def _arrays(columns: LabelColumns) -> list[NDArray[Any]]:
    w = columns.weights
    assert w.value is not None
    return [columns.labels, w.begin, w.index, w.value, columns.bias, columns.info]


class Memory:
    """The same without a file."""

    def __init__(self) -> None:
        self._all: list[LabelColumns] = []

    def append(self, columns: LabelColumns) -> None:
        self._all.append(columns)

    def __iter__(self) -> Iterator[LabelColumns]:
        return iter(self._all)

    def close(self) -> None:
        pass
