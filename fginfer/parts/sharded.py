"""Sharded: a model that is nowhere whole. Its parts are built by a function, or read from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.errors import FormatError, MissingFileError, ModelError, SettingsError, UnwritableError
from fginfer.graph import FactorGraph
from fginfer.journal import Journal
from fginfer.options import check_whole
from fginfer.parts.shard import Shard
from fginfer.parts.split import cuts_of
from fginfer.tables import ImplicitTable

Box = tuple[slice, ...]
_NAME = "part-{:05d}.npz"


class Sharded:
    """A model in `parts` parts. `build(k)` makes part k wherever it is to work: it must give the same part each time.

    >>> from fginfer import Potts, solve
    >>> def build(k):
    ...     pair = FactorGraph.from_arrays([2, 2], [[0, 1], [0, 0]], edges=[[0, 1]], tables=[Potts(0, -0.5)])
    ...     return Shard.of(pair, variables=[k, k + 1], border={0: [1], 1: [1, 2], 2: [2]}[k])
    >>> solve(Sharded(build, parts=3)).labels.tolist()
    [1, 1, 1, 1]

    Scores of the parts add up. A variable that several parts have is named in the border of each of them; its unary
    scores are added up, too, so that most callers give them to one part alone.
    """

    rules: tuple[()] = ()
    names = None
    cutoff = -inf

    def __init__(self, build: Callable[[int], Shard], parts: int) -> None:
        check_whole("parts", parts, least=1, bits=20)
        if not callable(build):
            raise SettingsError(f"build must be a function of the number of a part, not {build!r}")
        self.build, self.n_parts = build, int(parts)
        self.journal = Journal()  # stays empty: numbers of parts do not change
        self.n_variables = self.n_factors = self.max_labels = self.table_entries = 0  # known once parts are made

    def __repr__(self) -> str:
        return f"<Sharded: {self.n_parts} parts>"

    def shard(self, part: int) -> Shard:
        """A part, checked."""
        made = self.build(part)
        if not isinstance(made, Shard):
            raise ModelError(f"build({part}) must give a Shard, not {type(made).__name__}")
        return made

    def check_labels(self, labels: ArrayLike) -> NDArray[np.int32]:
        """The labeling as the parts take it."""
        x = np.asarray(labels)
        if x.dtype.kind not in "iu" or x.ndim != 1:
            raise ModelError("a labeling is a list of whole numbers")
        return np.ascontiguousarray(x, np.int32)

    # -- files -------------------------------------------------------------------------------------------------

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes every part to a file of a folder, one after the other."""
        into = Path(folder)
        try:
            into.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnwritableError(f"cannot be made ({error.strerror or error})", str(into)) from None
        for k in range(self.n_parts):
            self.shard(k).save(into / _NAME.format(k), place=(k, self.n_parts))

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Sharded:
        """The model whose parts are files of a folder, as `save` and `fginfer shard` write them. They are read by who
        works on them, so that all must see the folder under this name."""
        path = Path(folder)
        if not path.is_dir():
            raise MissingFileError("there is no such folder", str(path))
        found = sorted(p.name for p in path.glob("part-*.npz"))
        if not found:
            raise FormatError("holds no shards (part-00000.npz and so on)", str(path))
        for k, name in enumerate(found):
            if name != _NAME.format(k):
                raise MissingFileError(f"there is no such file, but a later part, {name}", str(path / _NAME.format(k)))
        return cls(_Files(path, len(found)), len(found))

    # -- grids -------------------------------------------------------------------------------------------------

    @classmethod
    def grid(
        cls,
        shape: Sequence[int],
        parts: int,
        unary: Callable[[Box], ArrayLike],
        pairwise: ArrayLike | ImplicitTable,
    ) -> Sharded:
        """A grid as FactorGraph.grid, cut into blocks. `unary(box)` gives the scores of a block, whose slices say where
        in the grid it is: an array of its shape with one axis more, the labels.

        >>> from fginfer import Potts, solve
        >>> def unary(box):
        ...     y, x = np.mgrid[box]
        ...     return np.stack([np.zeros(y.shape), np.where(x > 2, 0.6, -0.5)], -1)
        >>> solve(Sharded.grid((2, 6), 3, unary, Potts(0, -0.1))).labels.tolist()
        [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
        """
        size = tuple(int(n) for n in shape)
        if not size or min(size) < 1:
            raise ModelError(f"a grid needs a shape of positive numbers, not {shape!r}")
        check_whole("parts", parts, least=1, bits=20)
        cut = cuts_of(size, int(parts))
        return cls(_Grid(size, cut, unary, pairwise), int(np.prod(cut)))


class _Files:
    """Reads parts of a folder."""

    def __init__(self, folder: Path, n_parts: int) -> None:
        self._folder, self._n_parts = str(folder.absolute()), n_parts

    def __call__(self, part: int) -> Shard:
        path = Path(self._folder) / _NAME.format(part)
        shard = Shard.load(path)
        if shard.place is not None and shard.place != (part, self._n_parts):
            number, of = shard.place
            raise FormatError(f"is part {number} of {of}, but part {part} of {self._n_parts} in this folder", str(path))
        return shard


class _Grid:
    """Builds blocks of a grid. A block has the pairs that begin in it, and so copies of the layer after it on each
    axis; it is the last on an axis whose pairs all end in it."""

    def __init__(self, shape: tuple[int, ...], cut: tuple[int, ...], unary: Any, pairwise: Any) -> None:
        self._shape, self._cut, self._unary, self._pairwise = shape, cut, unary, pairwise

    def __call__(self, part: int) -> Shard:
        at = np.unravel_index(part, self._cut)
        low = [-(-int(k) * n // c) for k, n, c in zip(at, self._shape, self._cut, strict=True)]
        high = [-(-(int(k) + 1) * n // c) for k, n, c in zip(at, self._shape, self._cut, strict=True)]
        wide = [min(h + 1, n) for h, n in zip(high, self._shape, strict=True)]
        own = np.asarray(self._unary(tuple(map(slice, low, high))), np.float64)
        size = tuple(h - b for b, h in zip(low, high, strict=True))
        if own.shape[:-1] != size:
            raise ModelError(f"unary must have the shape ({', '.join(map(str, size))}, labels), not {own.shape}")
        whole = tuple(w - b for b, w in zip(low, wide, strict=True))
        edges, used = _edges(whole, size)
        labels = own.shape[-1]
        scores = np.zeros((*whole, labels))
        scores[tuple(map(slice, size))] = own
        steps = np.cumprod([1, *self._shape[:0:-1]])[::-1]
        numbers = np.zeros(whole, np.int64)
        border = np.zeros(whole, bool)
        for axis, (b, w) in enumerate(zip(low, wide, strict=True)):
            along = [-1 if k == axis else 1 for k in range(len(whole))]
            numbers += ((b + np.arange(w - b)) * steps[axis]).reshape(along)
            place = np.arange(w - b)
            shared = (place >= size[axis]) | ((place == 0) & (b > 0))
            border |= shared.reshape(along)
        kept = used.reshape(-1)
        number = np.cumsum(kept) - 1
        graph = FactorGraph.from_arrays(
            np.full(int(kept.sum()), labels), scores.reshape(-1, labels)[kept], number[edges], tables=[self._pairwise]
        )
        return Shard.of(graph, numbers.reshape(-1)[kept], numbers.reshape(-1)[border.reshape(-1) & kept])


def _edges(whole: tuple[int, ...], own: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The pairs that begin in a block, and which pixels of the larger one they or the block have."""
    pixel = np.arange(int(np.prod(whole))).reshape(whole)
    used = np.zeros(whole, bool)
    used[tuple(map(slice, own))] = True
    pairs = []
    for axis in range(len(whole)):
        begin = [slice(0, n) for n in own]
        begin[axis] = slice(0, min(own[axis], whole[axis] - 1))
        end = list(begin)
        end[axis] = slice(1, begin[axis].stop + 1)
        used[tuple(end)] = True
        pairs.append(np.stack([pixel[tuple(begin)].reshape(-1), pixel[tuple(end)].reshape(-1)], 1))
    return np.concatenate(pairs), used
