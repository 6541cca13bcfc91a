"""SparseModel: trained weights stored by feature, the best labels of rows, pruning, and files that are mapped."""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import DAMAGE
from fginfer.core.arrays import begins
from fginfer.core.extreme import Floats, Ints, LabelColumns, Lines, Scorer
from fginfer.errors import DataError, FormatError, MissingFileError, UnwritableError
from fginfer.extreme.data import select, stacked
from fginfer.extreme.dense import ROWS, SPARE, DenseTop, is_dense
from fginfer.learn.data.strings import string_array
from fginfer.options import file_named
from fginfer.replacing import replacing

MAGIC, WITHOUT_SUM = b"FGIXMOD2", b"FGIXMODL"  # how files begin: ours, and those of version 1, which have no check sum
VERSION = 2
ALIGN = 64
SUM = 4  # bytes at the end: the CRC-32 of all before them
_PIECE = 1 << 24  # bytes between two chances for Ctrl-C


class SparseModel:
    """Weights (a line a feature: labels and values), a bias a label, the names of the labels.

    ``header`` is a JSON-able dict that travels with the model (settings, statistics).
    """

    def __init__(
        self, weights: Lines, bias: Floats, classes: NDArray[Any], header: dict[str, Any], order: Ints | None = None
    ) -> None:
        self.weights, self.bias, self.classes, self.header = weights, bias, classes, header
        self.order: Ints = bias_order(bias) if order is None else order
        self._scorer = Scorer(weights, bias, self.order)
        self._dense: DenseTop | None = None
        self._looked = False

    @classmethod
    def from_columns(
        cls, parts: Iterable[LabelColumns], n_features: int, classes: NDArray[Any], bias: float, header: dict[str, Any]
    ) -> SparseModel:
        """From columns of weights in any order; labels without one have no weights and the given bias."""
        parts = list(parts)
        n = len(classes)
        biases = np.full(n, bias, np.float32)
        labels = np.concatenate([p.labels for p in parts]) if parts else np.zeros(0, np.int32)
        if len(np.unique(labels)) != len(labels) or (len(labels) and not 0 <= labels.min() <= labels.max() < n):
            raise DataError("columns of labels that are there twice, or not at all")
        if parts:
            biases[labels] = np.concatenate([p.bias for p in parts])
        order = np.argsort(labels, kind="stable")  # so that the transpose has them ascending
        lines = select(stacked([p.weights for p in parts], n_features), order)
        counts = np.zeros(n, np.int64)
        counts[labels[order]] = np.diff(lines.begin)
        full = Lines(begins(counts), lines.index, lines.value, n_features)
        return cls(full.transposed(), biases, classes, header)

    # ---- what it knows

    @property
    def n_features(self) -> int:
        return self.weights.n

    @property
    def n_labels(self) -> int:
        return self.weights.width

    def topk(self, rows: Lines, k: int, threads: int = 1) -> tuple[Ints, Floats]:
        """(rows, k) label numbers and scores, best first; k is cut to the number of labels."""
        k = min(k, self.n_labels)
        dense = self._dense_top(rows, k, threads)
        if dense is None:
            return self._scorer.topk(rows, k, threads)
        labels, scores, left = dense.topk(rows, k)
        if len(left):
            labels[left], scores[left] = self._scorer.topk(select(rows, left), k, threads)
        return labels, scores

    def _dense_top(self, rows: Lines, k: int, threads: int) -> DenseTop | None:
        """The index of dense weights, if these rows are dense and it pays: it is made by the first call of many."""
        if 8 * (k + SPARE) > self.n_labels or not is_dense(rows, self.n_features):
            return None
        if rows.value is not None and not np.isfinite(rows.value).all():
            return None
        stale = self._dense is not None and self._dense.threads != threads
        if rows.n >= ROWS and (stale or not self._looked):
            self._dense, self._looked = DenseTop.of(self.weights, self.bias, threads), True
        return self._dense

    def scores(self, rows: Lines, labels: NDArray[Any], threads: int = 1) -> Floats:
        """The scores of these labels, one row of them for each row."""
        return self._scorer.scores(rows, labels, threads)

    @property
    def touched(self) -> int:
        """Weights read by the last topk that went by features."""
        return self._scorer.touched

    def above(self, rows: Lines, threshold: float, threads: int = 1) -> Lines:
        """The labels of every row with scores above the threshold, ascending."""
        found: list[Ints] = [np.zeros(0, np.int32)] * rows.n
        open_rows, k = np.arange(rows.n), min(8, self.n_labels)
        while len(open_rows):
            labels, scores = self.topk(select(rows, open_rows), k, threads)
            full = (scores[:, -1] > threshold) & (k < self.n_labels)
            for at in np.flatnonzero(~full):
                found[open_rows[at]] = np.sort(labels[at][scores[at] > threshold])
            open_rows, k = open_rows[full], min(4 * k, self.n_labels)
        begin = begins([len(f) for f in found])
        return Lines(begin, np.concatenate([np.zeros(0, np.int32), *found]), None, self.n_labels)

    def pruned(self, threshold: float) -> SparseModel:
        """Without weights of at most this size; biases stay."""
        w = self.weights
        assert w.value is not None
        keep = np.abs(w.value) > threshold
        begin = begins(keep)[w.begin]
        return SparseModel(
            Lines(begin, w.index[keep], w.value[keep], w.width), self.bias, self.classes, self.header, self.order
        )  # fmt: skip

    def with_columns(self, parts: list[LabelColumns]) -> SparseModel:
        """With the weights of some labels replaced."""
        w = self.weights
        assert w.value is not None
        fresh = np.zeros(w.width, bool)
        bias = self.bias.copy()
        for p in parts:
            fresh[p.labels] = True
            bias[p.labels] = p.bias
        keep = ~fresh[w.index]
        begin = begins(keep)[w.begin]
        old = Lines(begin, w.index[keep], w.value[keep], w.width).transposed()
        kept = np.flatnonzero(~fresh).astype(np.int32)
        rest = LabelColumns(kept, select(old, kept), bias[kept], np.zeros(0))
        return SparseModel.from_columns([rest, *parts], w.n, self.classes, 0.0, self.header)

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes beside the target, then renames. Arrays are aligned, so that :meth:`load` maps them; a check sum
        comes last."""
        text, names = _packed(self.classes)
        arrays = {
            "begin": self.weights.begin, "label": self.weights.index, "value": self.weights.value, "bias": self.bias,
            "order": self.order, **names,
        }  # fmt: skip
        table: dict[str, dict[str, Any]] = {}
        place = 0
        for name, array in arrays.items():
            place = -(-place // ALIGN) * ALIGN
            table[name] = {"dtype": array.dtype.str, "n": len(array), "at": place}  # type: ignore[union-attr, arg-type]
            place += array.nbytes  # type: ignore[union-attr]
        header = json.dumps(
            {"version": VERSION, "n_labels": self.n_labels, "classes": text, "arrays": table, "header": self.header}
        ).encode()
        start = -(-(16 + len(header)) // ALIGN) * ALIGN
        try:
            with replacing(file_named(path, "save"), durable=True) as file:
                out = _Summed(file)
                out.write(MAGIC + len(header).to_bytes(8, "little") + header)
                for name, array in arrays.items():
                    out.write(bytes(start + table[name]["at"] - out.length))
                    out.write(np.ascontiguousarray(array).view(np.uint8).data)
                file.write(out.sum.to_bytes(SUM, "little"))
        except OSError as error:
            raise UnwritableError(f"cannot be written ({error.strerror or error})", str(path)) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Maps the file, once its check sum is found to be right: a second a gigabyte. Files of version 1 have none."""
        try:
            with open(path, "rb") as file:
                begin = file.read(8)
                if begin not in (MAGIC, WITHOUT_SUM):
                    raise FormatError("not a model of extreme classification", str(path))
                length = int.from_bytes(file.read(8), "little")
                size = os.fstat(file.fileno()).st_size
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                if begin == MAGIC:
                    size -= SUM
                    _check_sum(content, size)
                if length > size:
                    raise FormatError("damaged: its header is longer than the file", str(path))
                header = json.loads(file.read(length))
        except FileNotFoundError:
            raise MissingFileError("there is no such file", str(path)) from None
        except OSError as error:
            raise FormatError(f"cannot be read ({error.strerror or error})", str(path)) from None
        except (ValueError, RecursionError) as error:
            raise FormatError(f"damaged ({error})", str(path)) from None
        try:
            if header["version"] != (VERSION if begin == MAGIC else 1):
                raise FormatError(f"version {header['version']}, this fginfer reads up to {VERSION}", str(path))
            start = -(-(16 + length) // ALIGN) * ALIGN
            arrays = {name: _mapped(content, size, start, spec) for name, spec in header["arrays"].items()}
            classes = _unpacked(header["classes"], arrays)
            model = cls._of(arrays, classes, int(header["n_labels"]), dict(header["header"]))
        except DAMAGE as error:
            raise FormatError(f"damaged ({error})", str(path)) from None
        return model

    @classmethod
    def _of(cls, arrays: dict[str, Any], classes: NDArray[Any], n: int, header: dict[str, Any]) -> Self:
        kinds = {"begin": "<i8", "label": "<i4", "value": "<f4", "bias": "<f4", "order": "<i4"}
        for name, kind in kinds.items():
            if arrays[name].dtype.str != kind:
                raise ValueError(f"{name} of type {arrays[name].dtype}")
        begin, order = arrays["begin"], arrays["order"]
        if len(classes) != n or len(arrays["bias"]) != n or len(order) != n or len(begin) < 1:
            raise ValueError("sizes that do not fit together")
        if begin[0] != 0 or np.any(begin[1:] < begin[:-1]) or not (
            begin[-1] == len(arrays["label"]) == len(arrays["value"])
        ):  # fmt: skip
            raise ValueError("its lines are out of order")
        if not np.isfinite(arrays["bias"]).all() or not np.isfinite(arrays["value"]).all():
            raise ValueError("a weight is not finite")
        if n and not (0 <= order.min() <= order.max() < n and np.bincount(order, minlength=n).all()):
            raise ValueError("an order of labels that are not there")
        if (np.diff(arrays["bias"][order]) > 0).any():
            raise ValueError("an order of labels that is not that of their biases")
        return cls(Lines(begin, arrays["label"], arrays["value"], n), arrays["bias"], classes, header, order)


class _Summed:
    """Writes and adds up."""

    def __init__(self, file: Any) -> None:
        self._file, self.length, self.sum = file, 0, 0

    def write(self, data: Any) -> None:
        self._file.write(data)
        self.length += len(data)
        self.sum = zlib.crc32(data, self.sum)


def _check_sum(content: mmap.mmap, size: int) -> None:
    found, whole = 0, memoryview(content)
    for at in range(0, size, _PIECE):
        found = zlib.crc32(whole[at : min(size, at + _PIECE)], found)
    if size < 0 or found.to_bytes(SUM, "little") != whole[size:]:
        raise ValueError("its check sum is wrong")


def bias_order(bias: Floats) -> Ints:
    """Labels by descending bias, ties to the lower one."""
    return np.lexsort((np.arange(len(bias)), -bias)).astype(np.int32)


def _mapped(content: mmap.mmap, size: int, start: int, spec: dict[str, Any]) -> NDArray[Any]:
    kind, n, at = np.dtype(str(spec["dtype"])), int(spec["n"]), start + int(spec["at"])
    if kind.hasobject or n < 0 or at < start or at + n * kind.itemsize > size:
        raise ValueError("an array beyond the end of the file")
    return np.frombuffer(content, kind, n, at) if n else np.zeros(0, kind)


def _packed(classes: NDArray[Any]) -> tuple[str, dict[str, NDArray[Any]]]:
    """Names of labels as plain arrays: numbers as they are, text as UTF-8 with offsets."""
    if classes.dtype.kind in "biuf":
        return "numbers", {"names": classes}
    if not all(isinstance(c, str) for c in classes):
        raise DataError("model files keep labels that are numbers or text")
    encoded = [str(c).encode() for c in classes]
    ends = np.cumsum([len(e) for e in encoded], dtype=np.int64)
    return "text", {"names": np.frombuffer(b"".join(encoded), np.uint8), "name_ends": ends}


def _unpacked(kind: str, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    names = arrays["names"]
    if kind == "numbers":
        if names.dtype.kind not in "biuf":
            raise ValueError(f"names of type {names.dtype}")
        return names
    text, ends = names.tobytes(), arrays["name_ends"]
    begin = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    if kind != "text" or ends.dtype != np.int64 or (ends < begin).any():  # else few bytes could be very many names
        raise ValueError("names that are not one after the other")
    return string_array([text[a:b].decode() for a, b in zip(begin.tolist(), ends.tolist(), strict=True)], "labels")
