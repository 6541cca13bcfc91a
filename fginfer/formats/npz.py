"""fginfer's own format: a .npz archive of the flat arrays of a model (see fginfer.core.arrays), shared tables and all.

The members are stored uncompressed, so a reader can map them instead of loading them; `numpy.load` opens the file, too.
"""

from __future__ import annotations

import io
import zlib
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import CHECKSUM, Archive, other_archive, write_arrays
from fginfer.budget import Budget
from fginfer.core.arrays import ModelArrays
from fginfer.errors import FormatError, ModelError
from fginfer.formats.streams import STANDARD, is_regular, open_binary, read_whole, split_compression, write_atomically
from fginfer.graph import FactorGraph
from fginfer.names import Names
from fginfer.rules.files import rules_from_json, rules_to_json

# The versions: the third may have a cutoff, and has a check sum; the fourth has constraints, too, and the fifth may
# have constraints and has leftovers.
_FIRST, _WITH_CUTOFF, _WITH_CHECKSUM, _WITH_RULES, _WITH_LEFTOVERS = 1, 2, 3, 4, 5
_REQUIRED = ("cards", "unary", "table_arity", "dims", "values", "factor_table", "vars")
_OPTIONAL = ("table_kind", "params", "factor_weight", "factor_transposed", "var_begin")
_LEFTOVERS = ("leftover_var", "leftover")
_WANTED: dict[str, type[np.generic]] = {  # the others are 32-bit integers
    **dict.fromkeys(("values", "unary", "params", "factor_weight", "constant", "cutoff", "leftover"), np.float64),
    **dict.fromkeys(("fginfer", "given_factors", "var_begin"), np.int64),
    "names": np.uint8,
    "rules": np.uint8,
}


def write_npz(graph: FactorGraph, path: Path) -> None:
    """Writes every array as it is in memory."""
    with graph.lock:
        arrays, rules = graph.table_arrays(), graph.rules
    version = _WITH_LEFTOVERS if len(arrays.leftover_var) else _WITH_RULES if rules else _WITH_CHECKSUM
    members: dict[str, NDArray[Any]] = {
        "fginfer": np.array(version, np.int64),
        "given_factors": np.array(graph.n_factors, np.int64),
        "constant": np.array(arrays.constant, np.float64),
    }
    if graph.cutoff > -inf:
        members["cutoff"] = np.array(graph.cutoff, np.float64)
    if graph.names is not None:
        members["names"] = np.frombuffer(graph.names.to_json().encode(), np.uint8)
    if rules:
        members["rules"] = np.frombuffer(rules_to_json(rules).encode(), np.uint8)
    members |= {name: getattr(arrays, name) for name in _REQUIRED}
    members |= {name: getattr(arrays, name) for name in _OPTIONAL if getattr(arrays, name) is not None}
    members |= {name: getattr(arrays, name) for name in _LEFTOVERS if len(arrays.leftover_var)}
    with write_atomically(path) as stream:
        seeks = not split_compression(path)[1] and path != STANDARD  # archives do, compressors and pipes do not
        whole = stream if seeks and stream.seekable() else io.BytesIO()
        write_arrays(whole, members)
        if whole is not stream:
            stream.write(whole.getbuffer())


def read_npz(path: Path, budget: Budget | None = None) -> FactorGraph:
    """Reads a model written by `write_npz`."""
    budget = Budget(path) if budget is None else budget
    with open_binary(path, budget) as stream:
        source = stream if is_regular(path) else io.BytesIO(read_whole(stream, budget))
        try:
            arrays, given, cutoff, names, rules = _load(path, source, source is stream, budget)
            graph = FactorGraph.from_model_arrays(arrays, given)
            graph.cutoff = cutoff
            if names is not None:
                graph.take_names(Names.from_json(names, graph.cards.tolist(), graph.n_variables))
            if rules is not None:
                graph.take_rules(rules_from_json(rules, graph.cards.tolist()))
            return graph
        except (FormatError, MemoryError, OSError):  # open_binary says what the system has to say
            raise
        except ModelError as error:
            raise FormatError(str(error), str(path)) from None
        except Exception as error:  # zipfile and numpy have a dozen kinds of them for damaged archives
            raise FormatError(f"not a .npz archive ({_one_line(error)})", str(path)) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


Loaded = tuple[ModelArrays, int, float, bytes | None, bytes | None]  # factors as given, cutoff, names, constraints


def _load(path: Path, source: Any, mapped: bool, budget: Budget) -> Loaded:
    load = _Loader(path, Archive(source, budget), mapped, budget)
    members = load.archive.members
    if "fginfer" not in members:
        missing = f"not a factor graph: the archive has no member 'fginfer'{other_archive(members)}"
        raise FormatError(missing, str(path))
    version = int(load("fginfer"))
    if not _FIRST <= version <= _WITH_LEFTOVERS:
        raise FormatError(f"version {version} of the format; this fginfer reads up to {_WITH_LEFTOVERS}", str(path))
    if version >= _WITH_CHECKSUM or CHECKSUM in members:
        load.archive.check()
    has_cutoff = version == _WITH_CUTOFF or (version >= _WITH_CHECKSUM and "cutoff" in members)
    cutoff = float(load("cutoff")) if has_cutoff else -inf
    arrays = ModelArrays(
        constant=float(load("constant")),
        **{name: load(name) for name in _REQUIRED},
        **{name: load(name) for name in _OPTIONAL if name in members},
        **{name: load(name) for name in _LEFTOVERS if version == _WITH_LEFTOVERS},
    )
    given = int(load("given_factors"))
    if given < len(arrays.factor_table):
        there = len(arrays.factor_table)
        raise FormatError(f"member 'given_factors' says {given}, the archive holds {there} factors", str(path))
    names = load("names").tobytes() if "names" in members else None
    has_rules = version == _WITH_RULES or (version == _WITH_LEFTOVERS and "rules" in members)
    return arrays, given, cutoff, names, load("rules").tobytes() if has_rules else None


class _Loader:
    def __init__(self, path: Path, archive: Archive, mapped: bool, budget: Budget) -> None:
        self.path, self.archive, self.mapped, self.budget = path, archive, mapped, budget

    def __call__(self, name: str) -> NDArray[Any]:
        """One member, as an array over the file itself where that is possible."""
        if name not in self.archive.members:
            raise FormatError(f"not a factor graph: the archive has no member {name!r}", str(self.path))
        said = self.archive.announced(name)
        wanted = _WANTED.get(name, np.int32)
        axes, scalar = len(said.shape), name in ("fginfer", "given_factors", "constant", "cutoff")
        if not np.can_cast(said.dtype, wanted) or axes != (0 if scalar else 1):
            raise FormatError(f"member {name!r} has the wrong type ({said.dtype}, {axes} axes)", str(self.path))
        begin = self.archive.place(name)
        if not self.mapped or begin is None or scalar or not said.size:
            return self.archive[name]
        info = self.archive.members[name]
        member = np.memmap(self.path, np.uint8, "r", begin, info.file_size)
        if zlib.crc32(member.data) != info.CRC:  # as is done with what is read
            raise FormatError(f"member {name!r} is damaged: its check sum is wrong", str(self.path))
        self.budget.take(said.size, f"member {name!r}")  # the model copies it
        return member[said.begin :].view(said.dtype).reshape(said.shape)
