"""Which part owns which variable, and the parts that come of it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays, begins, owners
from fginfer.errors import SettingsError
from fginfer.options import is_number
from fginfer.parts.rules import RULES
from fginfer.parts.shard import Shard, ragged, subset

Owner = NDArray[np.int32]


def owners_of(arrays: ModelArrays, parts: Any) -> Owner:
    """The part of every variable: as given, one a variable, or so many parts by coordinates or by growth."""
    n = len(arrays.cards)
    if is_number(parts, whole=True):
        if not 1 <= parts <= max(1, n):
            raise SettingsError(f"parts must be from 1 to the number of variables, {n}, not {parts}")
        shape = grid_shape(arrays)
        return by_coordinates(shape, int(parts)) if shape is not None else by_growth(arrays, int(parts))
    try:
        given = np.asarray(parts)
    except ValueError:
        given = np.zeros(0)
    if given.shape != (n,) or given.dtype.kind not in "iu" or (n and given.min() < 0):
        raise SettingsError(f"parts must be a number of parts, or the part of each of the {n} variables, 0 or more")
    used, numbers = np.unique(given, return_inverse=True)
    if len(used) and used[-1] != len(used) - 1:
        missing = int(np.flatnonzero(used != np.arange(len(used)))[0])
        raise SettingsError(f"no variable is in part {missing}, and part {int(used[-1])} is the last")
    return numbers.astype(np.int32)


def with_auxiliary(arrays: ModelArrays, parts: Any, n: int) -> Any:
    """Parts that are given for the first n variables, for all: auxiliary ones go where a neighbour is."""
    given = np.asarray(parts) if not is_number(parts) and np.ndim(parts) == 1 else np.zeros(0)
    if given.shape != (n,) or given.dtype.kind not in "iu" or len(arrays.cards) == n:
        return parts  # a number of parts, or what owners_of refuses
    out = np.append(given.astype(np.int64), np.full(len(arrays.cards) - n, -1))
    links = _links(arrays).tocoo()
    while True:
        new = (out[links.row] < 0) & (out[links.col] >= 0)
        if not new.any():
            return np.maximum(out, 0)
        np.maximum.at(out, links.row[new], out[links.col[new]])


# -- grids -----------------------------------------------------------------------------------------------------


def grid_shape(arrays: ModelArrays) -> tuple[int, ...] | None:
    """The shape of a grid in which neighbours are joined, numbered in C order; None where the model is none."""
    n = len(arrays.cards)
    if arrays.var_begin is not None or arrays.n_factors == 0:
        return None
    ends = arrays.vars.reshape(-1, 2)
    steps = np.abs(ends[:, 1] - ends[:, 0])
    seen = np.unique(steps[: 1 << 16])
    strides = np.unique(steps) if len(seen) <= 4 else seen
    if len(strides) > 4 or strides[0] != 1 or (strides[1:] % strides[:-1]).any() or n % strides[-1]:
        return None
    shape = (n // int(strides[-1]), *(int(b // a) for a, b in zip(strides[-2::-1], strides[:0:-1], strict=True)))
    wanted = sum(prod(m - (k == axis) for k, m in enumerate(shape)) for axis in range(len(shape)))
    low = np.minimum(ends[:, 0], ends[:, 1])
    for axis, stride in enumerate(int(s) for s in strides[::-1]):
        at = (low[steps == stride] // stride) % shape[axis]
        if len(at) and at.max() >= shape[axis] - 1:
            return None
    return shape if arrays.n_factors == wanted and len(shape) > 1 else None


def cuts_of(shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """Into how many pieces each axis is cut, so that separators are as small as they can be."""

    def choices(left: int, axes: tuple[int, ...]) -> list[tuple[int, ...]]:
        if len(axes) == 1:
            return [(left,)] if left <= axes[0] else []
        sizes = [d for d in range(1, left + 1) if left % d == 0 and d <= axes[0]]
        return [(d, *rest) for d in sizes for rest in choices(left // d, axes[1:])]

    found = choices(parts, shape)
    if not found:
        return (min(parts, shape[0]), *(1 for _ in shape[1:]))
    whole = prod(shape)
    return min(found, key=lambda cut: (sum((c - 1) * whole // m for c, m in zip(cut, shape, strict=True)), cut[::-1]))


def by_coordinates(shape: tuple[int, ...], parts: int) -> Owner:
    """Blocks of a grid."""
    cut = cuts_of(shape, parts)
    out = np.zeros(shape, np.int32)
    for axis, (pieces, length) in enumerate(zip(cut, shape, strict=True)):
        piece = (np.arange(length, dtype=np.int64) * pieces // length).astype(np.int32)
        out *= pieces
        out += piece.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return out.reshape(-1)


# -- other graphs ----------------------------------------------------------------------------------------------


def by_growth(arrays: ModelArrays, parts: int) -> Owner:
    """Halves of halves: each grows from a variable at the rim until it has its share, then its edge is smoothed."""
    links = _links(arrays)
    owner = np.zeros(len(arrays.cards), np.int32)
    _halve(links, np.arange(len(owner)), 0, parts, owner)
    return owner


def _links(arrays: ModelArrays) -> Any:
    """Which variables share a factor, as a sparse matrix; of a wide factor each variable with the next one."""
    from scipy.sparse import coo_matrix  # type: ignore[import-untyped, unused-ignore]

    begin = arrays.factor_begin()
    of = owners(begin)
    first, second = arrays.vars[:-1], arrays.vars[1:]
    same = of[:-1] == of[1:] if len(of) else np.zeros(0, bool)
    a, b = first[same], second[same]
    n = len(arrays.cards)
    return coo_matrix((np.ones(2 * len(a), np.int32), (np.append(a, b), np.append(b, a))), shape=(n, n)).tocsr()


def _halve(links: Any, members: NDArray[np.int64], first: int, parts: int, owner: Owner) -> None:
    if parts == 1:
        owner[members] = first
        return
    left = parts // 2
    order = _outwards(links)
    wanted = len(members) * left // parts
    inside = np.zeros(len(members), bool)
    inside[order[:wanted]] = True
    _smooth(links, inside, wanted)
    for side, begin, count in ((inside, first, left), (~inside, first + left, parts - left)):
        chosen = np.flatnonzero(side)
        _halve(links[chosen][:, chosen], members[chosen], begin, count, owner)


def _outwards(links: Any) -> NDArray[np.int64]:
    """All variables, breadth first from one that is far from others, component after component."""
    from scipy.sparse.csgraph import breadth_first_order, connected_components  # type: ignore[import-untyped, unused-ignore]

    n_parts, of = connected_components(links, directed=False)
    if n_parts == 1:
        far = breadth_first_order(links, 0, directed=False, return_predecessors=False)[-1]
        found: NDArray[np.int64] = breadth_first_order(links, far, directed=False, return_predecessors=False)
        return found.astype(np.int64)
    sizes = np.bincount(of)
    large = int(sizes.argmax())
    inside = np.flatnonzero(of == large)
    rest = np.flatnonzero(of != large)
    return np.concatenate([inside[_outwards(links[inside][:, inside])], rest[np.argsort(of[rest], kind="stable")]])


def _smooth(links: Any, inside: NDArray[np.bool_], wanted: int) -> None:
    """Variables with more neighbours on the other side go there, as long as both sides keep about their sizes."""
    slack = int((RULES.balance - 1) * wanted)
    degree = np.asarray(links.sum(1)).reshape(-1)
    for _ in range(RULES.smoothing):
        within = links @ inside.astype(np.int32)
        gain = np.where(inside, degree - 2 * within, 2 * within - degree)
        out, into = np.flatnonzero(inside & (gain > 0)), np.flatnonzero(~inside & (gain > 0))
        # Neighbours that change sides together gain nothing: every second number waits for the next pass.
        out, into = out[out % 2 == _ % 2], into[into % 2 == _ % 2]
        size = int(inside.sum())
        inside[out[: max(0, size - wanted + slack + len(into))]] = False
        inside[into[: max(0, wanted + slack - int(inside.sum()))]] = True


# -- the parts -------------------------------------------------------------------------------------------------


class Cut:
    """A model and who owns its variables. A factor goes to the first of the parts that own one of its variables."""

    def __init__(self, arrays: ModelArrays, owner: Owner) -> None:
        self.arrays, self.owner = arrays, owner
        self.n_parts = int(owner.max()) + 1 if len(owner) else 1
        begin = arrays.factor_begin()
        if arrays.n_factors == 0:
            self.factor_part = np.zeros(0, np.int32)
        elif arrays.var_begin is None:
            self.factor_part = owner[arrays.vars].reshape(-1, 2).min(1)
        else:
            self.factor_part = np.minimum.reduceat(owner[arrays.vars], begin[:-1])
        self._shared = np.zeros(len(owner), bool)
        slots = np.repeat(self.factor_part, np.diff(begin))
        self._shared[arrays.vars[slots != owner[arrays.vars]]] = True

    def variables(self, part: int) -> tuple[NDArray[np.int64], int]:
        """The variables of a part, and how many of them, the first ones, other parts have, too."""
        owner = self.owner
        factors = np.flatnonzero(self.factor_part == part)
        touched = self._scopes(factors)
        copies = np.unique(touched[owner[touched] != part]).astype(np.int64)
        own = np.flatnonzero(owner == part)
        border = np.union1d(copies, own[self._shared[own]])
        return np.concatenate([border, own[~self._shared[own]]]), len(border)

    def _scopes(self, factors: NDArray[np.int64]) -> NDArray[np.int32]:
        a = self.arrays
        if a.var_begin is None:
            return a.vars.reshape(-1, 2)[factors].reshape(-1)
        return a.vars[ragged(a.var_begin, factors)]

    def shard(self, part: int) -> Shard:
        """One part, made afresh."""
        a = self.arrays
        variables, n_border = self.variables(part)
        place = np.zeros(len(self.owner), np.int32)
        place[variables] = np.arange(len(variables), dtype=np.int32)
        arrays = subset(a, np.flatnonzero(self.factor_part == part), variables, place)
        arrays.unary = self._unary(variables, part)
        arrays.constant = a.constant if part == 0 else 0.0
        return Shard(arrays, variables, n_border)

    def _unary(self, variables: NDArray[np.int64], part: int) -> NDArray[np.float64]:
        """The scores of what the part owns; a copy has 0, and what is forbidden is so in every copy."""
        a = self.arrays
        if a.unary is None:
            return np.zeros(int(a.cards[variables].sum()))
        unary = a.unary[ragged(begins(a.cards), variables)]
        copied = np.repeat(self.owner[variables] != part, a.cards[variables])
        return np.where(copied, np.where(unary == -np.inf, -np.inf, 0.0), unary)
