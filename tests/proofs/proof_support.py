"""Exact scores of small models, and proofs taken apart."""

from __future__ import annotations

import itertools
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np

from fginfer import FactorGraph, write
from fginfer.checker import MAGIC, NotVerified, Verdict, verify
from fginfer.tables import expand


def exact_optimum(graph: FactorGraph) -> Fraction | None:
    """The best score over all labelings, without rounding; None: all are forbidden."""
    tables = [(f.variables, f) for f in graph.factors()]
    dense = []
    for variables, factor in tables:
        table = graph.table(factor.table)
        shape = [int(graph.cards[v]) for v in variables]
        if not isinstance(table, np.ndarray):
            table = expand(table, shape[0], shape[1])
        elif factor.transposed:
            table = table.T
        full = factor.weight * table
        dense.append((tuple(variables), _exact(full)))
    unary = [_exact(graph.unary(v)) for v in range(graph.n_variables)]
    arrays, at = graph.table_arrays(), 0
    for v in arrays.leftover_var.tolist():  # what was rounded off when scores were added up
        size = 1 if v < 0 else int(graph.cards[v])
        dense.append(
            ((v,) if v >= 0 else (), _exact(arrays.leftover[at : at + size].reshape((size,) if v >= 0 else ())))
        )
        at += size
    best: Fraction | None = None
    for labels in itertools.product(*(range(int(k)) for k in graph.cards)):
        parts = [unary[v][a,] for v, a in enumerate(labels)] + [t[tuple(labels[v] for v in s)] for s, t in dense]
        if None not in parts:
            total = sum(parts, Fraction(graph.constant))
            best = total if best is None else max(best, total)
    return best


def _exact(table: np.ndarray) -> dict[tuple[int, ...], Fraction | None]:
    return {i: None if x == -np.inf else Fraction(float(x)) for i, x in np.ndenumerate(table)}


def check(graph: FactorGraph, folder: Path, proof: bytes | None = None) -> Verdict | str:
    """The verdict about folder/run.proof, or about these steps; a sentence if it is none."""
    write(graph, folder / "model.npz")
    if proof is not None:
        (folder / "run.proof").write_bytes(MAGIC + zlib.compress(proof, 1))
    try:
        return verify(str(folder / "model.npz"), str(folder / "run.proof"))
    except NotVerified as error:
        return str(error)


def steps_of(proof: Path) -> bytes:
    data = proof.read_bytes()
    assert data.startswith(MAGIC)
    return zlib.decompress(data[len(MAGIC) :])


def counted(numbers: list[int]) -> bytes:
    return struct.pack("<q", len(numbers)) + np.array(numbers, "<i4").tobytes()


def head(graph: FactorGraph, floor: float | None = None) -> bytes:
    sizes = (graph.n_variables, int(graph.cards.sum()), len(graph.factors()))
    shown = "null" if floor is None else f'"{floor.hex()}"'
    text = b'{"variables": %d, "labels": %d, "factors": %d, "floor": %s}' % (*sizes, shown.encode())
    return struct.pack("<q", len(text)) + text
