"""OpenGM models in HDF5 (needs h5py): energies are minimised there, so a score is minus a value.

A model is a group (usually `gm`) of `header`, `numbers-of-states`, one group `function-id-T` per type of function with
`indices` and `values`, and `factors`: function, its type, the number of variables, the variables. Explicit tables list
the first variable fastest. Functions shared by factors stay shared, Potts and differences are never expanded.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import PER_BYTE, UNPACKED, Budget
from fginfer.errors import FormatError, ModelError
from fginfer.formats.assembly import Assembly, Factors, Function
from fginfer.formats.streams import is_regular, open_binary, read_whole, write_atomically
from fginfer.graph import FactorGraph
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff

EXPLICIT, ABSOLUTE, TRUNCATED_ABSOLUTE, SQUARED, TRUNCATED_SQUARED, POTTS, POTTS_N = (
    16000,
    16002,
    16003,
    16004,
    16005,
    16006,
    16007,
)
_PARAMETERS = {ABSOLUTE: 1, TRUNCATED_ABSOLUTE: 2, SQUARED: 1, TRUNCATED_SQUARED: 2, POTTS: 2, POTTS_N: 2}


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


class _Function:
    """One function of the file: where it is, its shape, and its table once a factor has asked for it."""

    __slots__ = ("begin", "shape", "table", "type")

    def __init__(self, type_: int, shape: tuple[int, ...], begin: int) -> None:
        self.type, self.shape, self.begin = type_, shape, begin
        self.table: Function | None = None


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
        if not hasattr(dataset, "dtype") or dataset.dtype.kind not in "iuf":
            self.fail(f"dataset {name!r} does not hold numbers")
        if dataset.size * dataset.dtype.itemsize > 4096 * dataset.id.get_storage_size() + 2**20:
            self.fail(f"dataset {name!r} announces {dataset.size} numbers, far more than the file holds")
        per_byte = PER_BYTE if dataset.chunks is None else 2 * UNPACKED  # in chunks: perhaps compressed
        self.budget.take_unlisted(each * dataset.size, f"dataset {name!r}, {dataset.size} numbers,", per_byte)
        return np.asarray(dataset[()]).reshape(-1).astype(dtype)

    def indices(self, name: str) -> list[int]:
        values = self.array(name, np.int64, 16.0 + 40.0)
        if len(values) and values.min() < 0:
            self.fail(f"dataset {name!r} holds a negative number")
        out: list[int] = values.tolist()
        return out

    def read(self) -> FactorGraph:
        header = self.indices("header")
        if len(header) < 5 or len(header) < 5 + 2 * header[4]:
            self.fail("the header is too short")
        n_variables, n_factors, n_types = header[2:5]
        cards = self.array("numbers-of-states", np.int64)
        if len(cards) != n_variables:
            self.fail(f"the header announces {n_variables} variables, there are {len(cards)} numbers of states")
        if len(cards) and (cards.min() < 1 or cards.max() > 2**31 - 1):
            self.fail("a variable needs between 1 and 2^31-1 labels")
        self.budget.take_unlisted(8.0 * float(cards.sum()), f"{cards.sum()} labels")
        self.cards: list[int] = cards.tolist()
        self.assembly = Assembly(cards.astype(np.int32))
        types = [(header[5 + 2 * t], header[6 + 2 * t]) for t in range(n_types)]
        self.values: dict[int, NDArray[np.float64]] = {}
        functions = [self.functions(type_, count) for type_, count in types]
        factors = self.indices("factors") if n_factors else []
        at = 0
        for f in range(n_factors):
            if at + 3 > len(factors) or at + 3 + factors[at + 2] > len(factors):
                self.fail(f"the header announces {n_factors} factors, there are {f}")
            index, kind, arity = factors[at : at + 3]
            variables = factors[at + 3 : at + 3 + arity]
            at += 3 + arity
            if kind >= n_types or index >= len(functions[kind]):
                self.fail(f"factor {f} refers to function {index} of type number {kind}, which is not there")
            self.factor(f, variables, functions[kind][index])
        if at != len(factors):
            self.fail(f"{len(factors) - at} extra numbers after {n_factors} factors")
        return self.assembly.graph()

    def functions(self, type_: int, count: int) -> list[_Function]:
        if count == 0:
            return []
        if type_ != EXPLICIT and type_ not in _PARAMETERS:
            known = ", ".join(map(str, (EXPLICIT, *_PARAMETERS)))
            self.fail(f"function type {type_} is not supported; these are: {known}")
        indices = self.indices(f"function-id-{type_}/indices")
        energies = self.array(f"function-id-{type_}/values", np.float64)
        if np.isnan(energies).any() or (energies == -np.inf).any():
            bad = int(np.argmax(np.isnan(energies) | (energies == -np.inf)))
            self.fail(f"value {bad} of function type {type_} is {energies[bad]}; energies must be finite or +inf")
        self.values[type_] = energies
        out, at, begin = [], 0, 0
        for k in range(count):
            counted = type_ in (EXPLICIT, POTTS_N)
            dimension = (indices[at] if at < len(indices) else 0) if counted else 2
            at += counted
            shape = tuple(indices[at : at + dimension])
            at += dimension
            size = math.prod(shape) if type_ == EXPLICIT else _PARAMETERS[type_]
            if at > len(indices) or len(shape) != dimension or begin + size > len(energies):
                self.fail(f"function type {type_}: {count} functions are announced, the data of {k} is there")
            out.append(_Function(type_, shape, begin))
            begin += size
        if at != len(indices) or begin != len(energies):
            self.fail(f"function type {type_}: extra numbers after {count} functions")
        return out

    def factor(self, f: int, variables: list[int], function: _Function) -> None:
        for v in variables:
            if v >= len(self.cards):
                self.fail(f"factor {f} refers to variable {v} of {len(self.cards)}")
        if len(set(variables)) != len(variables):
            self.fail(f"factor {f} names a variable twice: {variables}")
        shape = tuple(self.cards[v] for v in variables)
        if function.shape != shape:
            self.fail(f"factor {f}: its function has the shape {function.shape}, its variables have {shape} labels")
        if function.table is None:
            function.table = self.table(function)
        self.assembly.add(variables, function.table)

    def table(self, function: _Function) -> Function:
        energies = self.values[function.type]
        if function.type == EXPLICIT:
            listed = energies[function.begin : function.begin + math.prod(function.shape)]
            scores = 0.0 - listed.reshape(function.shape, order="F")
        else:
            implicit = _implicit(
                function.type, *energies[function.begin : function.begin + _PARAMETERS[function.type]].tolist()
            )
            if len(function.shape) == 2 and implicit is not None:
                return self.assembly.implicit(implicit)
            size = math.prod(function.shape)
            self.budget.take_unlisted(8.0 * size, f"a function of type {function.type} with {size} entries")
            scores = 0.0 - _expanded(function, energies)
        return self.assembly.function(scores)


def _implicit(type_: int, first: float, second: float = math.inf) -> ImplicitTable | None:
    """The table that needs no expansion; None if the parameters leave its range."""
    if type_ in (POTTS, POTTS_N):
        return Potts(0.0 - first, 0.0 - second)
    weight, truncation = (first, math.inf) if type_ in (ABSOLUTE, SQUARED) else (second, first)
    if not (0.0 <= weight < math.inf and truncation > 0.0):
        return None
    return (AbsDiff if type_ in (ABSOLUTE, TRUNCATED_ABSOLUTE) else SqDiff)(weight, truncation)


def _expanded(function: _Function, energies: NDArray[np.float64]) -> NDArray[np.float64]:
    parameters = energies[function.begin : function.begin + _PARAMETERS[function.type]]
    if function.type in (POTTS, POTTS_N):
        out = np.full(function.shape, parameters[1])
        same = np.arange(min(function.shape, default=1))
        out[tuple(same for _ in function.shape)] = parameters[0]
        return out
    d = np.abs(np.subtract.outer(np.arange(function.shape[0], dtype=float), np.arange(function.shape[1], dtype=float)))
    d = d if function.type in (ABSOLUTE, TRUNCATED_ABSOLUTE) else d * d
    weight = parameters[-1]
    if function.type in (TRUNCATED_ABSOLUTE, TRUNCATED_SQUARED):
        d = np.where(d > parameters[0], parameters[0], d)
    energies_of_pairs: NDArray[np.float64] = d * weight
    return energies_of_pairs


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
            return _Reader(path, group, budget).read()
    except ModelError as error:
        raise FormatError(str(error), str(path)) from None
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:  # what h5py has for damaged files
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
    if factors.constant is not None:
        out.factors.append((*out.explicit(np.array(factors.constant)), ()))
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
