"""Arrays of an .npz archive that anybody may have written: no code runs, and no more is unpacked than is plausible."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import UNPACKED, Budget
from fginfer.errors import FginferError, FormatError, MissingFileError

# What a damaged file can raise in code that takes its parts for what they should be.
DAMAGE = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError, AssertionError,
    FginferError,
)  # fmt: skip


def other_archive(members: Collection[str]) -> str:
    """What an archive with these members holds, and what reads it, to be added to an error; "" if it is not ours."""
    if "fginfer" in members:
        return "; it is a factor graph, for fginfer.read"
    if "result" in members:
        return "; it is a saved result, for Result.load"
    if "header" in members:
        return "; it may be a model that was learned, for `fginfer predict` or the `load` of its class"
    return ""


def load_arrays(path: str | os.PathLike[str], what: str, max_memory: float | None = None) -> dict[str, NDArray[Any]]:
    """All members by name; FormatError (`not {what}`) for everything else that can be in a file."""
    file = Path(path)
    budget = Budget(file, max_memory, allows="")
    try:
        with open(file, "rb") as stream, zipfile.ZipFile(stream) as archive:
            return {i.filename.removesuffix(".npy"): _member(archive, i, budget) for i in archive.infolist()}
    except FileNotFoundError:
        raise MissingFileError("there is no such file", str(path)) from None
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror or error})", str(path)) from None
    except (FormatError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy have a dozen kinds of them for damaged archives
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FormatError(f"not {what}, or damaged ({reason})", str(path)) from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> NDArray[Any]:
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, column_major, dtype = read(member)
        if dtype.hasobject:
            raise ValueError(f"{info.filename} holds Python objects")
        size = dtype.itemsize
        for length in shape:
            size *= length
        there = info.file_size - member.tell()
        if size != there:
            raise ValueError(f"{info.filename} announces {size} bytes, the archive holds {there}")
        if info.compress_type == zipfile.ZIP_STORED:
            budget.take(2.0 * size, f"member {info.filename!r}")
        else:
            budget.take_unlisted(2.0 * size, f"member {info.filename!r}", UNPACKED)
        if not size:
            return np.zeros(shape, dtype)
        data = bytearray(member.read())  # writable, as arrays of one's own are
        return np.frombuffer(data, dtype).reshape(shape, order="F" if column_major else "C")
