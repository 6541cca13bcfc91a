"""Arrays of an .npz archive that anybody may have written: no code runs, and no more is unpacked than is announced.

What we write has one more member, `checksum`: it covers the names, the sizes and the check sums of all the others.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import UNPACKED, Budget
from fginfer.errors import FginferError, FormatError, MissingFileError
from fginfer.options import file_named
from fginfer.unpacking import PIECE, Unpacking

# What a damaged file can raise in code that takes its parts for what they should be.
DAMAGE = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError, AssertionError,
    FginferError,
)  # fmt: skip
CHECKSUM = "checksum"
_HEAD = 1 << 16  # bytes in which the header of an array ends: numpy takes no longer ones, but would read them


class Announced(NamedTuple):
    """What the header of a member says, and where its data begin."""

    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[Any]
    begin: int
    size: int  # bytes of data


def other_archive(members: Collection[str]) -> str:
    """What an archive with these members holds, and what reads it, to be added to an error; "" if it is not ours."""
    if "fginfer" in members:
        return "; it is a factor graph, for fginfer.read"
    if "result" in members:
        return "; it is a saved result, for Result.load"
    if "header" in members:
        return "; it may be a model that was learned, for `fginfer predict` or the `load` of its class"
    return ""


class Archive:
    """The members of an open .zip by name. ValueError for what is wrong with one, whoever wrote it."""

    def __init__(self, stream: Any, budget: Budget) -> None:
        self._zip, self._stream, self._budget = zipfile.ZipFile(stream), stream, budget
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self.members:
                raise ValueError(f"two members are called {name!r}")
            self.members[name] = info
        # A few kilobytes can be listed as the data of thousands of members, which then are gigabytes.
        if sum(info.compress_size for info in self.members.values()) > stream.seek(0, os.SEEK_END):
            raise ValueError("its members overlap")

    def __getitem__(self, name: str) -> NDArray[Any]:
        info = self.members[name]
        with Unpacking(self._zip, info) as member:
            head = member.read(min(_HEAD, info.file_size))
            said = _announced(info, head)
            what = f"member {info.filename!r}"
            if info.compress_type == zipfile.ZIP_STORED:
                self._budget.take(2.0 * said.size, what)
            else:
                self._budget.take_unlisted(2.0 * said.size, what, UNPACKED)
            data, at = np.empty(said.size, np.uint8), len(head) - said.begin  # writable, as arrays of one's own are
            room = data.data
            room[:at] = head[said.begin :]
            while at < said.size:
                piece = member.read(PIECE)
                room[at : at + len(piece)] = piece
                at += len(piece)
            member.finish()
        return data.view(said.dtype).reshape(said.shape, order="F" if said.column_major else "C")

    def announced(self, name: str) -> Announced:
        """What the header of a member says. Nothing is allocated for it."""
        info = self.members[name]
        with Unpacking(self._zip, info) as member:
            return _announced(info, member.read(min(_HEAD, info.file_size)))

    def place(self, name: str) -> int | None:
        """Where in the stream a member begins that is stored as it is: after its header, whose last lengths vary."""
        info = self.members[name]
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        self._stream.seek(info.header_offset)
        local = self._stream.read(30)
        return info.header_offset + 30 + sum(int.from_bytes(local[k : k + 2], "little") for k in (26, 28))

    def check(self) -> None:
        """ValueError unless the archive has a check sum, and these very members. Reading checks what is in them."""
        if CHECKSUM not in self.members:
            raise ValueError("its check sum is missing")
        found = (i for name, i in self.members.items() if name != CHECKSUM)
        if self[CHECKSUM].tolist() != _checksum(found):
            raise ValueError("its check sum is wrong")


def _checksum(infos: Iterable[zipfile.ZipInfo]) -> int:
    lines = sorted(f"{info.filename} {info.file_size} {info.CRC}\n" for info in infos)
    return zlib.crc32("".join(lines).encode())


def _announced(info: zipfile.ZipInfo, head: bytes) -> Announced:
    stream = io.BytesIO(head)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, column_major, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError(f"{info.filename} holds Python objects")
    if not dtype.itemsize or any(length < 0 for length in shape):
        raise ValueError(f"{info.filename} announces {dtype} of the shape {shape}")
    size = dtype.itemsize
    for length in shape:
        size *= length
    there = info.file_size - stream.tell()
    if size != there:
        raise ValueError(f"{info.filename} announces {size} bytes, the archive holds {there}")
    return Announced(shape, column_major, dtype, stream.tell(), size)


def load_arrays(
    path: str | os.PathLike[str],
    what: str,
    max_memory: float | None = None,
    has_checksum: Callable[[dict[str, NDArray[Any]]], bool] = lambda arrays: False,
) -> dict[str, NDArray[Any]]:
    """All members by name; FormatError (`not {what}`) for everything else that can be in a file. `has_checksum` says
    of the members whether a file like this was written with a check sum; one that is there is checked in any case."""
    file = file_named(path, "load")
    budget = Budget(file, max_memory, allows="")
    try:
        with open(file, "rb") as stream:
            archive = Archive(stream, budget)
            arrays = {name: archive[name] for name in archive.members}
            if CHECKSUM in arrays or has_checksum(arrays):
                archive.check()
                del arrays[CHECKSUM]
            return arrays
    except FileNotFoundError:
        raise MissingFileError("there is no such file", str(path)) from None
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror or error})", str(path)) from None
    except (FormatError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy have a dozen kinds of them for damaged archives
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FormatError(f"not {what}, or damaged ({reason})", str(path)) from None


def begins_with(path: str | os.PathLike[str], name: str, size: int = 1 << 10) -> bytes:
    """The first bytes of a member, its header included; none where there is no such archive or member."""
    try:
        with zipfile.ZipFile(path) as archive, Unpacking(archive, archive.getinfo(f"{name}.npy")) as member:
            return member.read(size)
    except Exception:  # whatever is wrong with it, whoever reads the whole file says so
        return b""


def write_arrays(stream: Any, arrays: Mapping[str, Any]) -> None:
    """An archive of these members, stored as they are, with its check sum in place of one that may be among them. The
    same arrays give the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            if name != CHECKSUM:
                _write(archive, name, array)
        _write(archive, CHECKSUM, np.array(_checksum(archive.infolist()), np.uint32))


def _write(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    with archive.open(info, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
