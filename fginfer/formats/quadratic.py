"""Binary quadratic models and maximum cuts as lists of entries: rudy, BiqMac's .sparse and .bq, qbsolv's .qubo.

Rudy and .mc: `n m`, then `i j w`: the weight of the edges between two sides is maximised. BiqMac: `n m`, then `i j q`
for a symmetric Q, of which one half is listed: x'Qx is minimised, so an entry off the diagonal counts twice. Where both
halves are listed, each entry counts once. qbsolv: `p qubo 0 n diagonals couplers`, entries from 0, each counts once.
"""

from __future__ import annotations

from math import fsum, isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.errors import FormatError, ModelError
from fginfer.folding import expansion
from fginfer.formats.assembly import Factors
from fginfer.formats.lines import Lines
from fginfer.formats.streams import write_atomically
from fginfer.graph import FactorGraph
from fginfer.names import variable_text
from fginfer.tables import Potts

_MOST = 2**31 - 1
_BOTH = np.array([[0.0, 0.0], [0.0, 1.0]])  # 1 where both variables are 1
_PER_VARIABLE, _PER_ENTRY = 64, 200  # bytes that a reader takes

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _entries(lines: Lines, budget: Budget, n: int, m: int, what: str, first: int) -> Entries:
    """m lines `i j value`, numbered from `first`."""
    budget.take_unlisted(_PER_VARIABLE * float(n), f"a model of {n} variables")
    rows, cols, values = [], [], []
    for k in range(m):
        words = lines.words(lines.next(f"{what} {k + 1} of {m}"), 2, 3, "two variables and a value")
        rows.append(lines.integer(words[0], "a variable", first, n - 1 + first) - first)
        cols.append(lines.integer(words[1], "a variable", first, n - 1 + first) - first)
        values.append(lines.number(words[2], "the value of an entry") if len(words) > 2 else 1.0)
        if k % 4096 == 0:
            budget.take(_PER_ENTRY * 4096.0, "the entries")
    extra = lines.next_or_none()
    if extra is not None:
        lines.fail(f"extra text after {m} entries", extra[0])
    return np.array(rows, np.int64), np.array(cols, np.int64), np.array(values, np.float64)


def _summed(n: int, rows: NDArray[np.int64], cols: NDArray[np.int64], values: NDArray[np.float64]) -> Entries:
    """Pairs (i <= j) with the sum of what is listed for each; pairs with a sum of 0 are left out. A pair comes again
    with what rounding took from its sum."""
    keys = np.minimum(rows, cols) * n + np.maximum(rows, cols)
    known, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
    once = counts[where] == 1
    several: dict[int, list[float]] = {int(key): [] for key in known[counts > 1]}
    for key, value in zip(keys[~once].tolist(), values[~once].tolist(), strict=True):
        several[key].append(value)
    try:
        parts = [(key, part) for key, terms in several.items() for part in expansion(terms)]
    except OverflowError:
        raise ModelError("the entries of a pair add up to more than a double holds") from None
    keys = np.concatenate((keys[once], np.array([key for key, _ in parts], np.int64)))
    sums = np.concatenate((values[once], np.array([part for _, part in parts], np.float64)))
    if not np.isfinite(sums).all():
        raise ModelError("the entries of a pair add up to more than a double holds")
    order = np.flatnonzero(sums)[np.argsort(keys[sums != 0], kind="stable")]
    return keys[order] // n, keys[order] % n, sums[order]


def quadratic_graph(
    n: int, rows: NDArray[np.int64], cols: NDArray[np.int64], values: NDArray[np.float64], constant: float = 0.0
) -> FactorGraph:
    """The model whose score is constant + sum value_k x_i x_j, for binary x; pairs (i, i) are linear."""
    i, j, weights = _summed(n, rows, cols, values) if len(rows) else (rows, cols, values)
    alone, first, unary = i[i == j], np.ones(int((i == j).sum()), bool), np.zeros((n, 2))
    first[1:] = alone[1:] != alone[:-1]
    linear, i, j, weights = weights[i == j], i[i != j], j[i != j], weights[i != j]
    unary[alone[first], 1] = linear[first]
    graph = FactorGraph.from_arrays(
        np.full(n, 2, np.int32),
        unary if n else None,
        np.stack([i, j], axis=1) if len(i) else None,
        tables=[_BOTH] if len(i) else None,
        weights=weights if len(i) else None,
        constant=constant,
    )
    for variable, rest in zip(alone[~first].tolist(), linear[~first].tolist(), strict=True):
        graph.add_factor([variable], [0.0, rest])
    return graph


def _header(lines: Lines) -> tuple[int, int]:
    words = lines.words(
        lines.next("the numbers of variables and entries"), 2, 2, "the numbers of variables and entries"
    )
    n = lines.integer(words[0], "the number of variables", 0, _MOST)
    return n, lines.integer(words[1], "the number of entries", 0)


def read_rudy(path: Path, budget: Budget) -> FactorGraph:
    """Reads a maximum cut: the score is the weight of the edges whose ends have different labels."""
    lines = Lines(path, budget, comments=("#", "%"))
    n, m = _header(lines)
    rows, cols, weights = _entries(lines, budget, n, m, "edge", 1)
    other = rows != cols  # an edge from a vertex to itself is never cut
    i, j, w = _summed(n, rows[other], cols[other], weights[other]) if other.any() else (rows[:0], cols[:0], weights[:0])
    cards = np.full(n, 2, np.int32)
    if not len(i):
        return FactorGraph.from_arrays(cards)
    return FactorGraph.from_arrays(cards, None, np.stack([i, j], axis=1), tables=[Potts(0.0, 1.0)], weights=w)


def read_biqmac(path: Path, budget: Budget) -> FactorGraph:
    """Reads x'Qx, which is minimised: the score is minus that."""
    lines = Lines(path, budget, comments=("#", "%"))
    n, m = _header(lines)
    rows, cols, values = _entries(lines, budget, n, m, "entry", 1)
    off = rows != cols
    upper, lower = (rows < cols).any(), (rows > cols).any()
    times = 1.0 if _mirrored(n, rows[off], cols[off]) else 2.0
    if upper and lower and times == 2.0 and _listed_twice(n, rows[off], cols[off]):
        raise FormatError("some pairs are listed in both orders and some in one: it is not said what counts", str(path))
    with np.errstate(over="ignore"):  # what overflows is refused where pairs are summed
        counted = 0.0 - np.where(off, times, 1.0) * values
    return quadratic_graph(n, rows, cols, counted)


def _mirrored(n: int, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> bool:
    """Whether every pair stands in both orders."""
    return len(rows) > 0 and set((rows * n + cols).tolist()) == set((cols * n + rows).tolist())


def _listed_twice(n: int, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> bool:
    return not set((rows * n + cols).tolist()).isdisjoint((cols * n + rows).tolist())


def read_qubo(path: Path, budget: Budget) -> FactorGraph:
    """Reads qbsolv's .qubo, a sum to be minimised."""
    lines = Lines(path, budget, comments=("c", "#"))
    words = lines.words(lines.next("'p qubo'"), 6, 6, "p qubo TOPOLOGY VARIABLES DIAGONALS COUPLERS")
    if words[0] != "p" or words[1].lower() != "qubo":
        lines.fail("expected 'p qubo'", words[0])
    n = lines.integer(words[3], "the number of variables", 0, _MOST)
    m = lines.integer(words[4], "the number of diagonal entries") + lines.integer(words[5], "the number of couplers")
    rows, cols, values = _entries(lines, budget, n, m, "entry", 0)
    return quadratic_graph(n, rows, cols, 0.0 - values)


# -- writing ---------------------------------------------------------------------------------------------------


def as_quadratic(graph: FactorGraph) -> tuple[float, NDArray[np.float64], dict[tuple[int, int], float]]:
    """(constant, linear, quadratic) of the score of a binary pairwise model; ModelError if it is no such model."""
    if graph.n_variables and not (graph.cards == 2).all():
        who = variable_text(graph.names, int(np.argmax(graph.cards != 2)))
        raise ModelError(f"{who} does not have two labels: this is not binary")
    factors = Factors(graph)
    constant, linear = fsum(factors.constants()), np.zeros(graph.n_variables)
    quadratic: dict[tuple[int, int], float] = {}
    for i, scores in factors.unaries():
        constant += float(scores[0])
        linear[i] += float(scores[1] - scores[0])
    for scope, key in factors:
        if len(scope) != 2:
            raise ModelError(f"a factor over {len(scope)} variables is not quadratic")
        (a, b), (c, d) = factors.scores(key).tolist()
        i, j = scope
        constant, linear[i], linear[j] = constant + a, linear[i] + (c - a), linear[j] + (b - a)
        pair = (min(i, j), max(i, j))
        quadratic[pair] = quadratic.get(pair, 0.0) + (a - b - c + d)
    if not (isfinite(constant) and np.isfinite(linear).all() and all(map(isfinite, quadratic.values()))):
        raise ModelError("a state is forbidden, which a quadratic function without constraints cannot say")
    return constant, linear, quadratic


def write_qubo(graph: FactorGraph, path: Path) -> None:
    """Writes minus the score as qbsolv's .qubo, which has no place for a constant."""
    constant, linear, quadratic = as_quadratic(graph)
    diagonal = [(i, v) for i, v in enumerate((0.0 - linear).tolist()) if v != 0]
    pairs = [(pair, 0.0 - v) for pair, v in sorted(quadratic.items()) if v != 0]
    if constant:
        raise FormatError(f"the format has no place for the constant, {constant!r}", str(path))
    with write_atomically(path) as stream:
        stream.write(f"p qubo 0 {graph.n_variables} {len(diagonal)} {len(pairs)}\n".encode())
        stream.writelines(f"{i} {i} {v!r}\n".encode() for i, v in diagonal)
        stream.writelines(f"{i} {j} {v!r}\n".encode() for (i, j), v in pairs)
