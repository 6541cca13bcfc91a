"""OpenGM models in HDF5 (needs h5py): energies are minimised there, so a score is minus a value.

A model is a group (usually `gm`) of `header`, `numbers-of-states`, one group `function-id-T` per type of function with
`indices` and `values`, and `factors`: function, its type, the number of variables, the variables. Explicit tables list
the first variable fastest. Functions shared by factors stay shared, Potts and differences are never expanded.
"""

from __future__ import annotations

import io
import math
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import DAMAGE
from fginfer.budget import PER_BYTE, UNPACKED, Budget
from fginfer.core.arrays import ModelArrays, begins
from fginfer.errors import FormatError, ModelError
from fginfer.formats.assembly import Factors
from fginfer.formats.chunks import check_chunks, chunk_size
from fginfer.formats.opengm_model import (
    ABSOLUTE,
    EXPLICIT,
    PARAMETERS,
    POTTS,
    POTTS_N,
    SQUARED,
    TRUNCATED_ABSOLUTE,
    TRUNCATED_SQUARED,
    Collector,
    Functions,
    ListedFactors,
)
from fginfer.formats.streams import is_regular, open_binary, read_whole, write_atomically
from fginfer.graph import FactorGraph
from fginfer.tables import AbsDiff, ImplicitTable, Potts


def _inside(path: Path, group: Any, name: str) -> Any:
    """A member of the group whose data are in this very file; None if there is none of that name.

    HDF5 can point into other files and keep data there: a model from elsewhere could so read any file of its user.
    """
    h5py = _h5py()
    at = group
    for part in name.split("/"):
        link = at.get(part, getlink=True) if isinstance(at, h5py.Group) else None
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise FormatError(f"{name!r} is a link to elsewhere; models must be in one file", str(path))
        at = at[part]
    if isinstance(at, h5py.Dataset) and (at.external or at.is_virtual):
        raise FormatError(f"dataset {name!r} keeps its data in other files; models must be in one file", str(path))
    return at


def _h5py() -> Any:
    try:
        import h5py  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise FormatError("OpenGM files need h5py: pip install 'fginfer[opengm]'") from None
    return h5py


# -- reading ---------------------------------------------------------------------------------------------------


def _starts(numbers: NDArray[np.int64], count: int, head: int, length: int) -> tuple[NDArray[np.int64], int]:
    """Where records begin, as many as there are up to `count`, and where the last of them ends. A record is `head`
    numbers, and as many more as the one at `length` says."""
    runs: list[NDArray[np.int64]] = []
    at = found = 0
    while found < count and at + head <= len(numbers):
        extra = int(numbers[at + length])
        width = head + extra
        room = min(count - found, (len(numbers) - at) // width)
        if room == 0:
            break
        n, look = 1, 16
        while n < room:  # those that follow and are as long
            end = min(room, n + look)
            same = numbers[at + n * width + length : at + end * width : width] == extra
            if not same.all():
                n += int(np.argmin(same))
                break
            n, look = end, 2 * look
        runs.append(at + width * np.arange(n))
        at += n * width
        found += n
    return np.concatenate([np.zeros(0, np.int64), *runs]), at


class _Reader:
    def __init__(self, path: Path, group: Any, budget: Budget) -> None:
        self.path = path
        self.budget = budget
        self.group = group

    def fail(self, message: str) -> NoReturn:
        raise FormatError(message, str(self.path))

    def array(self, name: str, dtype: Any, each: float = 16.0) -> NDArray[Any]:
        """A dataset, of `each` bytes a number, refused where its announced size cannot be what is in the file."""
        dataset = _inside(self.path, self.group, name)
        if dataset is None:
            self.fail(f"not an OpenGM model: there is no dataset {name!r}")
        if not isinstance(dataset, _h5py().Dataset):
            self.fail(f"{name!r} is not a dataset")
        if dataset.dtype.kind not in "iuf" or dataset.shape is None:
            self.fail(f"dataset {name!r} does not hold numbers")
        if dataset.size * dataset.dtype.itemsize > 4096 * dataset.id.get_storage_size() + 2**20:
            self.fail(f"dataset {name!r} announces {dataset.size} numbers, far more than the file holds")
        per_byte = PER_BYTE if dataset.chunks is None else 2 * UNPACKED  # in chunks: perhaps compressed
        needed = each * dataset.size + 2.0 * chunk_size(dataset)
        self.budget.take_unlisted(needed, f"dataset {name!r}, {dataset.size} numbers,", per_byte)
        try:
            check_chunks(dataset)
        except (ValueError, zlib.error) as error:
            self.fail(f"dataset {name!r} {error if isinstance(error, ValueError) else f'is damaged ({error})'}")
        return np.asarray(dataset[()]).reshape(-1).astype(dtype, copy=False)

    def indices(self, name: str) -> NDArray[np.int64]:
        values = self.array(name, np.int64, 16.0 + 16.0)
        if len(values) and values.min() < 0:
            self.fail(f"dataset {name!r} holds a negative number")
        return values

    def read(self) -> tuple[ModelArrays, int]:
        """The model, and how many factors it was given."""
        header = self.indices("header").tolist()
        if len(header) < 5 or len(header) < 5 + 2 * header[4]:
            self.fail("the header is too short")
        n_variables, n_factors, n_types = header[2:5]
        cards = self.array("numbers-of-states", np.int64)
        if len(cards) != n_variables:
            self.fail(f"the header announces {n_variables} variables, there are {len(cards)} numbers of states")
        if len(cards) and (cards.min() < 1 or cards.max() > 2**31 - 1):
            self.fail("a variable needs between 1 and 2^31-1 labels")
        self.budget.take_unlisted(8.0 * float(cards.sum()), f"{cards.sum()} labels")
        types = [(header[5 + 2 * t], header[6 + 2 * t]) for t in range(n_types)]
        parts = [self.functions(type_, count) for type_, count in types]
        first = begins(np.array([len(p.kind) for p in parts], np.int64))  # the first of each type among all functions
        numbers = self.indices("factors") if n_factors else np.zeros(0, np.int64)
        at, end = _starts(numbers, n_factors, 3, 2)
        if len(at) < n_factors:
            self.fail(f"the header announces {n_factors} factors, there are {len(at)}")
        if end != len(numbers):
            self.fail(f"{len(numbers) - end} extra numbers after {n_factors} factors")
        index, kind, arity = numbers[at], numbers[at + 1], numbers[at + 2]
        missing = kind >= n_types
        missing[~missing] = index[~missing] >= np.diff(first)[kind[~missing]]
        if missing.any():
            f = int(np.argmax(missing))
            self.fail(f"factor {f} refers to function {index[f]} of type number {kind[f]}, which is not there")
        joined, factors = _joined(parts), ListedFactors(first[kind] + index, arity, at + 3, numbers)
        del parts
        self.check(joined, factors, cards)
        return Collector(joined, factors, self.budget).arrays(cards.astype(np.int32)), n_factors

    def functions(self, type_: int, count: int) -> Functions:
        none = np.zeros(0, np.int64)
        if count == 0:
            return Functions(none, none, none, none, none, np.zeros(0))
        if type_ != EXPLICIT and type_ not in PARAMETERS:
            known = ", ".join(map(str, (EXPLICIT, *PARAMETERS)))
            self.fail(f"function type {type_} is not supported; these are: {known}")
        indices = self.indices(f"function-id-{type_}/indices")
        energies = self.array(f"function-id-{type_}/values", np.float64)
        if np.isnan(energies).any() or (energies == -np.inf).any():
            bad = int(np.argmax(np.isnan(energies) | (energies == -np.inf)))
            self.fail(f"value {bad} of function type {type_} is {energies[bad]}; energies must be finite or +inf")
        if type_ in (EXPLICIT, POTTS_N):
            at, end = _starts(indices, count, 1, 0)
            arity, shape_begin = indices[at], at + 1
        else:
            n = min(count, len(indices) // 2)
            arity, shape_begin, end = np.full(n, 2), 2 * np.arange(n), 2 * n
        sizes = _sizes(indices, shape_begin, arity) if type_ == EXPLICIT else np.full(len(arity), PARAMETERS[type_])
        sizes = np.minimum(sizes, len(energies) + 1).astype(np.int64)
        there = int(np.searchsorted(np.cumsum(sizes), len(energies), side="right"))
        if there < count:
            self.fail(f"function type {type_}: {count} functions are announced, the data of {there} is there")
        begin = begins(sizes)
        if end != len(indices) or begin[-1] != len(energies):
            self.fail(f"function type {type_}: extra numbers after {count} functions")
        return Functions(np.full(count, type_), arity, shape_begin, indices, begin[:-1], energies)

    def check(self, functions: Functions, factors: ListedFactors, cards: NDArray[np.int64]) -> None:
        """Variables that are there, each once in a factor, with the labels of its function."""
        function, arity, begin, numbers = factors
        bad = functions.arity[function] != arity
        for n in np.unique(arity).tolist():
            which = np.flatnonzero(arity == n)
            scopes = numbers[begin[which][:, None] + np.arange(n)]
            ordered = np.sort(scopes, axis=1)
            wrong = bad[which] | (scopes >= len(cards)).any(axis=1) | (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
            fine = np.flatnonzero(~wrong)
            shapes = functions.shapes[functions.shape_begin[function[which[fine]]][:, None] + np.arange(n)]
            wrong[fine] = (shapes != cards[scopes[fine]]).any(axis=1)
            bad[which[wrong]] = True
        if bad.any():
            f = int(np.argmax(bad))
            variables = numbers[begin[f] : begin[f] + arity[f]].tolist()
            self.refuse(f, variables, functions.shape(int(function[f])), cards)

    def refuse(self, f: int, variables: list[int], shape: tuple[int, ...], cards: NDArray[np.int64]) -> NoReturn:
        """What is wrong with factor f."""
        for v in variables:
            if v >= len(cards):
                self.fail(f"factor {f} refers to variable {v} of {len(cards)}")
        if len(set(variables)) != len(variables):
            self.fail(f"factor {f} names a variable twice: {variables}")
        labels = tuple(int(cards[v]) for v in variables)
        self.fail(f"factor {f}: its function has the shape {shape}, its variables have {labels} labels")


def _sizes(indices: NDArray[np.int64], begin: NDArray[np.int64], arity: NDArray[np.int64]) -> NDArray[np.float64]:
    """Products of stretches of the indices; as floats, which no hostile shape overflows."""
    sizes = np.ones(len(begin))
    for n in np.unique(arity).tolist():
        which = np.flatnonzero(arity == n)
        with np.errstate(over="ignore"):
            sizes[which] = np.prod(indices[begin[which][:, None] + np.arange(n)].astype(float), axis=1)
    return sizes


def _joined(parts: list[Functions]) -> Functions:
    if len(parts) == 1:
        return parts[0]
    shapes = begins(np.array([len(p.shapes) for p in parts], np.int64))
    energies = begins(np.array([len(p.energies) for p in parts], np.int64))
    none = np.zeros(0, np.int64)
    return Functions(
        kind=np.concatenate([none, *(p.kind for p in parts)]),
        arity=np.concatenate([none, *(p.arity for p in parts)]),
        shape_begin=np.concatenate([none, *(p.shape_begin + shapes[k] for k, p in enumerate(parts))]),
        shapes=np.concatenate([none, *(p.shapes for p in parts)]),
        begin=np.concatenate([none, *(p.begin + energies[k] for k, p in enumerate(parts))]),
        energies=np.concatenate([np.zeros(0), *(p.energies for p in parts)]),
    )


def read_opengm(path: Path, budget: Budget | None = None) -> FactorGraph:
    """Reads an OpenGM model, from the group `gm` or from the only group that holds one."""
    h5py = _h5py()
    budget = Budget(path) if budget is None else budget
    with open_binary(path, budget) as stream:  # says what is wrong if there is no such file
        source = str(path) if is_regular(path) else io.BytesIO(read_whole(stream, budget))
    try:
        with h5py.File(source, "r") as file:
            named = _inside(path, file, "gm")
            own = [file[k] for k in file if isinstance(file.get(k, getlink=True), h5py.HardLink)]
            groups = [g for g in own if isinstance(g, h5py.Group) and "header" in g]
            group = named if isinstance(named, h5py.Group) else groups[0] if len(groups) == 1 else None
            if group is None:
                raise FormatError(
                    f"there are {len(groups)} OpenGM models in this file, none of them called 'gm'", str(path)
                )
            arrays, given = _Reader(path, group, budget).read()
        return FactorGraph.from_model_arrays(arrays, given)
    except FormatError:
        raise
    except ModelError as error:
        raise FormatError(str(error), str(path)) from None
    except (*DAMAGE, OSError, RuntimeError) as error:  # what h5py has for damaged files
        reason = " ".join(str(error).split())[:200]
        raise FormatError(f"not an HDF5 file of an OpenGM model ({reason})", str(path)) from error


# -- writing ---------------------------------------------------------------------------------------------------


class _Writer:
    """Functions by type, each stored once, and the factors that refer to them."""

    def __init__(self) -> None:
        self.indices: dict[int, list[int]] = {}
        self.values: dict[int, list[NDArray[np.float64]]] = {}
        self.count: dict[int, int] = {}
        self.known: dict[Any, tuple[int, int]] = {}
        self.factors: list[tuple[int, int, tuple[int, ...]]] = []

    def function(self, type_: int, indices: list[int], values: NDArray[np.float64]) -> tuple[int, int]:
        self.indices.setdefault(type_, []).extend(indices)
        self.values.setdefault(type_, []).append(values)
        self.count[type_] = self.count.get(type_, 0) + 1
        return type_, self.count[type_] - 1

    def explicit(self, scores: NDArray[np.float64]) -> tuple[int, int]:
        energies = (0.0 - scores).reshape(-1, order="F")
        return self.function(EXPLICIT, [scores.ndim, *scores.shape], energies)

    def implicit(self, table: ImplicitTable, weight: float, shape: tuple[int, ...]) -> tuple[int, int]:
        if isinstance(table, Potts):
            return self.function(POTTS, list(shape), 0.0 - weight * np.array([table.same, table.different]))
        absolute = isinstance(table, AbsDiff)
        if table.truncation == math.inf:
            return self.function(ABSOLUTE if absolute else SQUARED, list(shape), np.array([weight * table.weight]))
        values = np.array([table.truncation, weight * table.weight])
        return self.function(TRUNCATED_ABSOLUTE if absolute else TRUNCATED_SQUARED, list(shape), values)


def write_opengm(graph: FactorGraph, path: Path) -> None:
    """Writes an OpenGM model. Variables of a factor are sorted, as OpenGM wants them, and its table with them."""
    h5py = _h5py()
    factors, out = Factors(graph), _Writer()
    for constant in factors.constants():
        out.factors.append((*out.explicit(np.array(constant)), ()))
    for variable, scores in factors.unaries():
        same = scores.tobytes()
        if same not in out.known:
            out.known[same] = out.explicit(scores)
        out.factors.append((*out.known[same], (variable,)))
    for variables, key in factors:
        order = sorted(range(len(variables)), key=variables.__getitem__)
        wanted = (key, tuple(order))
        if wanted not in out.known:
            implicit = factors.implicit(key[0])
            shape = tuple(key[2][k] for k in order)
            if implicit is not None and _keeps_implicit(implicit, key[1], max(shape)):
                out.known[wanted] = out.implicit(implicit, key[1], shape)
            else:
                out.known[wanted] = out.explicit(factors.scores(key).transpose(order))
        out.factors.append((*out.known[wanted], tuple(variables[k] for k in order)))
    types = sorted(out.count)
    header = [2, 0, graph.n_variables, len(out.factors), len(types)]
    for type_ in types:
        header += [type_, out.count[type_]]
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        group = file.create_group("gm")
        _put(group, "header", np.array([*header, 1], np.uint64))  # 1: values are doubles
        _put(group, "numbers-of-states", graph.cards.astype(np.uint64))
        for type_ in types:
            functions = group.create_group(f"function-id-{type_}")
            _put(functions, "indices", np.array(out.indices[type_], np.uint64))
            _put(functions, "values", np.concatenate(out.values[type_]))
        if out.factors:
            numbers = [x for type_, index, v in out.factors for x in (index, types.index(type_), len(v), *v)]
            _put(group, "factors", np.array(numbers, np.uint64))
    with write_atomically(path) as stream:
        stream.write(content.getbuffer())


def _keeps_implicit(table: ImplicitTable, weight: float, labels: int) -> bool:
    """Whether the weight can go into the parameters without changing a bit of any score."""
    if isinstance(table, Potts) or weight == 1.0:
        return True
    d = np.arange(labels, dtype=float)
    d = np.minimum(d if isinstance(table, AbsDiff) else d * d, table.truncation)
    return bool((weight * (table.weight * d) == (weight * table.weight) * d).all())


def _put(group: Any, name: str, data: NDArray[Any]) -> None:
    group.create_dataset(name, data=data).attrs["reverse-shape"] = np.array([1], np.uint8)
