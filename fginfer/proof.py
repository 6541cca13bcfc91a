"""ProofFile: the steps of a proof on their way to a file, packed. docs/proofs.md has the format."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.errors import FormatError
from fginfer.options import file_named

MAGIC = b"FGPROOF2\n"
LEVEL = 1  # level 6 takes three times as long and saves a tenth (measured)
STRATEGY = zlib.Z_RLE  # repeats that are apart take as long again to find, and save a thirtieth (measured)


def _packer() -> Any:
    return zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, STRATEGY)


class ProofFile:
    """A proof under way. What the disk refuses ends the proof, and not the run: see `broken`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = file_named(path, "proof=")
        self.broken: str | None = None  # why nothing is written any more
        self.full = False  # the disk is why
        self._packer = _packer()
        try:
            self._file = self.path.open("wb")
        except OSError as error:
            raise FormatError(f"the proof cannot be written: {error.strerror}", str(path)) from None
        self._write(MAGIC)

    def _write(self, data: bytes) -> None:
        if self.broken is not None or not data:
            return
        try:
            self._file.write(data)
        except OSError as error:
            self.full = True
            self.break_off(f"the file could not be written: {error.strerror}")

    def restart(self) -> bool:
        """Begins again; False where the file does not let go of what it has."""
        if self.full:
            return False
        try:
            self._file.seek(0)
            self._file.truncate()
        except OSError:
            return False
        self.broken, self._packer = None, _packer()
        self._write(MAGIC)
        return True

    def break_off(self, why: str) -> None:
        self.broken = self.broken or why

    def raw(self, steps: bytes | None) -> None:
        """Steps as they are; None: they were lost."""
        if steps is None:
            self.break_off("numbers too large for a proof, or no memory for it")
        else:
            self._write(self._packer.compress(steps))

    def _counted(self, numbers: ArrayLike) -> bytes:
        flat = np.asarray(numbers, "<i4")
        return struct.pack("<q", len(flat)) + flat.tobytes()

    def head(self, arrays: ModelArrays, floor: float = -inf) -> None:
        """`floor`: of labelings that score no more nothing is said."""
        sizes = {"variables": len(arrays.cards), "labels": int(arrays.cards.sum(dtype=np.int64)),
                 "factors": arrays.n_factors}  # fmt: skip
        text = json.dumps({**sizes, "floor": None if floor == -inf else floor.hex()}).encode()
        self.raw(struct.pack("<q", len(text)) + text)

    def solution(self, labels: ArrayLike) -> None:
        self.raw(b"S" + np.asarray(labels, "<i4").tobytes())

    def eliminate(self, variables: Sequence[int]) -> None:
        self.raw(b"X" + self._counted(variables))

    def replace(self, variable: int, label: int, by: int) -> None:
        """The first of these labels is never better than the second."""
        self.raw(b"D" + struct.pack("<iii", variable, label, by))

    def tree(self, variables: Sequence[int], arity: ArrayLike, flat: ArrayLike, links: Sequence[int] = ()) -> None:
        """`flat`: of each table the places of its variables in the list; `links`: pairs of tables."""
        places = np.asarray(flat, "<i4").tobytes()
        self.raw(b"T" + self._counted(variables) + self._counted(arity) + places + self._counted(links))

    def whole_tree(self, arrays: ModelArrays) -> None:
        """A tree over a model as it is."""
        self.tree(range(len(arrays.cards)), np.diff(arrays.factor_begin()), arrays.vars)

    def threshold(self, score: float, n: int) -> None:
        """The threshold of a tree over n variables is where the whole model has this score."""
        self.raw(b"K" + struct.pack("<d", score) + np.full(n, -1, "<i4").tobytes())

    def messages(self, exponent: int, places: NDArray[np.int64], amounts: NDArray[np.int64]) -> None:
        """`places` ascend."""
        gaps, exponent_bytes = np.diff(places, prepend=0), struct.pack("<h", exponent)
        self.raw(b"M" + exponent_bytes + self._packed(gaps, "u") + self._packed(amounts, "i"))

    def remove(self, labels: NDArray[np.int64]) -> None:
        self.raw(b"R" + self._packed(labels, "u"))

    def leave(self) -> None:
        self.raw(b"L")

    def _packed(self, numbers: NDArray[np.int64], sign: str) -> bytes:
        largest = int(np.abs(numbers).max(initial=0))
        width = next(w for w in (1, 2, 4, 8) if largest < 1 << (8 * w - 1))
        return struct.pack("<qB", len(numbers), width) + numbers.astype(f"<{sign}{width}").tobytes()

    def conclude(self, claim: bytes, value: float) -> None:
        self.raw(b"Q" + claim + struct.pack("<d", value))

    def close(self) -> None:
        self._write(self._packer.flush())
        try:
            self._file.close()
        except OSError as error:
            self.break_off(f"the file could not be written: {error.strerror}")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0
