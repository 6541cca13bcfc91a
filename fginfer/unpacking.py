"""Unpacking: one member of a .zip archive, piece by piece and never beyond the size that the archive announces.

Python's own `zipfile` unpacks whatever comes out of a piece of the file before it looks at the size: 6.8 kB of bzip2
can so take gigabytes.
"""

from __future__ import annotations

import bz2
import copy
import zipfile
import zlib
from types import TracebackType
from typing import Any, Protocol, Self

PIECE = 1 << 20  # bytes that are unpacked at a time
_PACKED = 1 << 16  # bytes of the file that are read at a time


class Decompressor(Protocol):
    """What bz2 and lzma have."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Inflater:
    """zlib's decompressor in the same form. `wbits` as for zlib: -15 for a raw stream, 15 for one with its header."""

    def __init__(self, wbits: int = -zlib.MAX_WBITS) -> None:
        self._own = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        return self._own.eof

    @property
    def needs_input(self) -> bool:
        return not self._own.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._own.decompress(self._own.unconsumed_tail + data, max(0, max_length))


class _Stored:
    eof, needs_input = False, True

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return data


class Unpacking:
    """A member that is read from its beginning. ValueError where it holds more or less than it announces, or damage."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        stored = info.compress_type == zipfile.ZIP_STORED
        if stored and info.compress_size != info.file_size:
            raise ValueError(
                f"{info.filename} announces {info.file_size} bytes, the archive holds {info.compress_size}"
            )
        raw = copy.copy(info)  # the bytes as they are in the file
        raw.compress_type, raw.file_size = zipfile.ZIP_STORED, info.compress_size
        del raw.CRC
        self._info, self._left, self._crc = info, info.file_size, 0
        self._raw: Any = archive.open(raw)
        self._decompressor = _decompressor(info)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._raw.close()

    def read(self, size: int) -> bytes:
        """So many bytes, or what is left of those that are announced."""
        wanted = min(size, self._left)
        pieces, missing = [], wanted
        while missing:
            piece = self._some(missing)
            if not piece:
                raise ValueError(f"{self._info.filename} ends {self._left} bytes early")
            pieces.append(piece)
            missing -= len(piece)
            self._left -= len(piece)
            self._crc = zlib.crc32(piece, self._crc)
        return b"".join(pieces)

    def finish(self) -> None:
        """After the last byte: there is no more, and what was read is what was written."""
        if self._left or self._some(1):
            raise ValueError(f"{self._info.filename} holds more than the {self._info.file_size} bytes it announces")
        if self._crc != self._info.CRC:
            raise ValueError(f"the check sum of {self._info.filename} is wrong")

    def _some(self, most: int) -> bytes:
        """At least one byte, unless there are no more."""
        packed = self._decompressor
        while not packed.eof:
            data = self._packed(most) if packed.needs_input else b""
            piece = packed.decompress(data, most)
            if piece:
                return piece
            if not data and packed.needs_input:
                break
        return b""

    def _packed(self, most: int) -> bytes:
        """Bytes of the file. What is stored is not held back, so it must be no more than was asked for."""
        data: bytes = self._raw.read(min(most, PIECE) if isinstance(self._decompressor, _Stored) else _PACKED)
        return data


def _decompressor(info: zipfile.ZipInfo) -> Decompressor:
    if info.compress_type == zipfile.ZIP_STORED:
        return _Stored()
    if info.compress_type == zipfile.ZIP_DEFLATED:
        return Inflater()
    if info.compress_type == zipfile.ZIP_BZIP2:
        return bz2.BZ2Decompressor()
    raise ValueError(f"{info.filename} is packed in a way that is not read here; numpy.savez_compressed packs it anew")
