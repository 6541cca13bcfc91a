"""fginfer's own format: a .npz archive of the flat arrays of a model (see fginfer.core.arrays), shared tables and all.

The members are stored uncompressed, so a reader can map them instead of loading them; `numpy.load` opens the file, too.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import other_archive
from fginfer.budget import UNPACKED, Budget
from fginfer.core.arrays import ModelArrays
from fginfer.errors import FormatError, ModelError
from fginfer.formats.streams import STANDARD, is_regular, open_binary, read_whole, split_compression, write_atomically
from fginfer.graph import FactorGraph

_VERSION, _WITH_CUTOFF = 1, 2  # a version that does not know cutoffs must not read a model that has one
_REQUIRED = ("cards", "unary", "table_arity", "dims", "values", "factor_table", "vars")
_OPTIONAL = ("table_kind", "params", "factor_weight", "factor_transposed", "var_begin")
_DOUBLES = ("values", "unary", "params", "factor_weight", "constant", "cutoff")
_INT64 = ("fginfer", "given_factors", "var_begin")


def write_npz(graph: FactorGraph, path: Path) -> None:
    """Writes every array as it is in memory."""
    arrays = graph.to_arrays()
    members: dict[str, NDArray[Any]] = {
        "fginfer": np.array(_VERSION if graph.cutoff == -inf else _WITH_CUTOFF, np.int64),
        "given_factors": np.array(graph.n_factors, np.int64),
        "constant": np.array(arrays.constant, np.float64),
    }
    if graph.cutoff > -inf:
        members["cutoff"] = np.array(graph.cutoff, np.float64)
    members |= {name: getattr(arrays, name) for name in _REQUIRED}
    members |= {name: getattr(arrays, name) for name in _OPTIONAL if getattr(arrays, name) is not None}
    with write_atomically(path) as stream:
        seeks = not split_compression(path)[1] and path != STANDARD  # archives do, compressors and pipes do not
        whole = stream if seeks and stream.seekable() else io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
            for name, array in members.items():
                info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))  # the same model gives the same bytes
                with archive.open(info, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
        if whole is not stream:
            stream.write(whole.getbuffer())


def read_npz(path: Path, budget: Budget | None = None) -> FactorGraph:
    """Reads a model written by `write_npz`."""
    budget = Budget(path) if budget is None else budget
    with open_binary(path, budget) as stream:
        source = stream if is_regular(path) else io.BytesIO(read_whole(stream, budget))
        try:
            arrays, given, cutoff = _load(path, source, source is stream, budget)
            graph = FactorGraph.from_model_arrays(arrays, given)
            graph.cutoff = cutoff
            return graph
        except (FormatError, MemoryError):
            raise
        except ModelError as error:
            raise FormatError(str(error), str(path)) from None
        except Exception as error:  # zipfile and numpy have a dozen kinds of them for damaged archives
            raise FormatError(f"not a .npz archive ({_one_line(error)})", str(path)) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _load(path: Path, source: Any, mapped: bool, budget: Budget) -> tuple[ModelArrays, int, float]:
    with zipfile.ZipFile(source) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if "fginfer" not in members:
            missing = f"not a factor graph: the archive has no member 'fginfer'{other_archive(members)}"
            raise FormatError(missing, str(path))
        load = _Loader(path, archive, members, mapped, budget)
        version = int(load("fginfer"))
        if version not in (_VERSION, _WITH_CUTOFF):
            raise FormatError(f"version {version} of the format; this fginfer reads up to {_WITH_CUTOFF}", str(path))
        cutoff = float(load("cutoff")) if version == _WITH_CUTOFF else -inf
        arrays = ModelArrays(
            constant=float(load("constant")),
            **{name: load(name) for name in _REQUIRED},
            **{name: load(name) for name in _OPTIONAL if name in members},
        )
        given = int(load("given_factors"))
        if given < len(arrays.factor_table):
            there = len(arrays.factor_table)
            raise FormatError(f"member 'given_factors' says {given}, the archive holds {there} factors", str(path))
        return arrays, given, cutoff


class _Loader:
    def __init__(
        self, path: Path, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], mapped: bool, budget: Budget
    ) -> None:
        self.path, self.archive, self.members, self.mapped, self.budget = path, archive, members, mapped, budget

    def __call__(self, name: str) -> NDArray[Any]:
        """One member, as an array over the file itself where that is possible."""
        if name not in self.members:
            raise FormatError(f"not a factor graph: the archive has no member {name!r}", str(self.path))
        info = self.members[name]
        with self.archive.open(info) as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(member)
            header, size = member.tell(), dtype.itemsize
            for length in shape:
                size *= length
            wanted = np.float64 if name in _DOUBLES else np.int64 if name in _INT64 else np.int32
            scalar = name in ("fginfer", "given_factors", "constant", "cutoff")
            if not np.can_cast(dtype, wanted) or len(shape) != (0 if scalar else 1):
                raise FormatError(f"member {name!r} has the wrong type ({dtype}, {len(shape)} axes)", str(self.path))
            if size != info.file_size - header:
                announced = f"member {name!r} announces {size} bytes, the archive holds {info.file_size - header}"
                raise FormatError(announced, str(self.path))
            if self.mapped and info.compress_type == zipfile.ZIP_STORED and shape and size:
                member_bytes = np.memmap(self.path, np.uint8, "r", self._offset(info), info.file_size)
                if zlib.crc32(member_bytes.data) != info.CRC:  # as zipfile checks what it reads
                    raise FormatError(f"member {name!r} is damaged: its check sum is wrong", str(self.path))
                self.budget.take(size, f"member {name!r}")  # the model copies it
                return member_bytes[header:].view(dtype).reshape(shape)
            if info.compress_type == zipfile.ZIP_STORED:
                self.budget.take(2.0 * size, f"member {name!r}")
            else:
                self.budget.take_unlisted(2.0 * size, f"member {name!r}", UNPACKED)
            return np.frombuffer(member.read(), dtype).reshape(shape)

    def _offset(self, info: zipfile.ZipInfo) -> int:
        """Where the data of a member begins in the file: after its local header, whose two last lengths vary."""
        with open(self.path, "rb") as file:
            file.seek(info.header_offset)
            local = file.read(30)
            return (
                info.header_offset
                + 30
                + int.from_bytes(local[26:28], "little")
                + int.from_bytes(local[28:30], "little")
            )
