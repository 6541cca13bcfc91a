"""Chunks of an HDF5 dataset: what each holds is compared with what it announces before the library unpacks any.

HDF5's own filters unpack a chunk to whatever comes out, and may stand one upon another: two rounds of deflate make a
gigabyte of a kilobyte.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

from fginfer.unpacking import PIECE, Inflater

_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000  # the numbers that HDF5 has for them
_PACKERS = (_DEFLATE, _LZF)
_SUM = 4  # bytes that fletcher32 adds to a chunk


def chunk_size(dataset: Any) -> int:
    """Bytes of a chunk, unpacked; 0 where the data are not in chunks."""
    return 0 if dataset.chunks is None else math.prod(dataset.chunks) * dataset.id.get_type().get_size()


def check_chunks(dataset: Any) -> None:
    """ValueError, what to say after the dataset's name, where a chunk holds more or less than it announces."""
    size = chunk_size(dataset)
    if not size:
        return
    if dataset.id.get_storage_size() > dataset.file.id.get_filesize():
        raise ValueError("has chunks that overlap")
    filters = _filters(dataset, size)
    if _DEFLATE not in filters:
        return
    at = filters.index(_DEFLATE)
    for place in _places(dataset):
        mask, packed = dataset.id.read_direct_chunk(place)
        done = [number for k, number in enumerate(filters[:at]) if not mask >> k & 1]  # a chunk may leave some out
        if not mask >> at & 1:
            _check_deflated(packed, size + _SUM * done.count(_FLETCHER32), place)


def _filters(dataset: Any, size: int) -> list[int]:
    """Their numbers in the order in which they were applied. Only one of them packs, and nothing is shuffled after."""
    plist = dataset.id.get_create_plist()
    filters: list[int] = []
    for k in range(plist.get_nfilters()):
        number, _, values, name = plist.get_filter(k)
        if number not in (*_PACKERS, _SHUFFLE, _FLETCHER32):
            called = name.decode(errors="replace") or str(number)
            raise ValueError(f"is packed by {called!r}, which is not read here (h5repack -f GZIP=6 packs it anew)")
        if number != _FLETCHER32 and any(packer in filters for packer in _PACKERS):
            raise ValueError("is packed more than once, or shuffled after it was packed")
        if number == _LZF and values[2:3] not in ((), (0,), (size,)):
            raise ValueError(f"announces chunks of {size} bytes, and unpacks them to {values[2]}")
        filters.append(number)
    return filters


def _places(dataset: Any) -> list[tuple[int, ...]]:
    """Where chunks begin, of those that are stored."""
    if not hasattr(dataset.id, "chunk_iter"):  # HDF5 before 1.12.3, slow where there are very many
        return [dataset.id.get_chunk_info(k).chunk_offset for k in range(dataset.id.get_num_chunks())]
    places: list[tuple[int, ...]] = []
    dataset.id.chunk_iter(lambda info: places.append(info.chunk_offset))
    return places


def _check_deflated(packed: bytes, size: int, place: tuple[int, ...]) -> None:
    inflater, found, rest = Inflater(zlib.MAX_WBITS), 0, packed
    while not inflater.eof and found <= size:
        piece = inflater.decompress(rest, PIECE)
        if not piece and not inflater.eof:
            break
        found, rest = found + len(piece), b""
    if found != size:
        than = f"more than {size}" if found > size else str(found)
        raise ValueError(f"announces chunks of {size} bytes, the one at {place} unpacks to {than}")
