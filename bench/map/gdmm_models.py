"""Models on which sorted oracles have to work: loose or unlucky enough that the bound at mu = 0 proves nothing."""

from __future__ import annotations

import gzip
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import fginfer
from bench.papers.matching import distances


def rewired_matching(folder: Path, ego: str, sub: str, share: float, seed: int = 0) -> fginfer.FactorGraph:
    """matching.py's problem against a network in which a share of the edges goes elsewhere and the labels are
    permuted: no labeling fits everywhere, and no order of the labels helps."""
    rng = np.random.default_rng([seed, int(1000 * share)])
    features = np.loadtxt(folder / f"{ego}.feat", dtype=np.int64)
    names = {int(name): k for k, name in enumerate(features[:, 0])}
    n, rows = len(names), features[:, 1:].astype(np.float64)
    pairs = np.array([(names[a], names[b]) for a, b in np.loadtxt(folder / f"{ego}.edges", dtype=np.int64)])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    nodes = [names[int(v)] for v in (folder / f"{ego}.sub{sub}.txt").read_text().split()]
    here = np.zeros((n, n), bool)
    here[pairs[:, 0], pairs[:, 1]] = here[pairs[:, 1], pairs[:, 0]] = True
    edges = np.argwhere(np.triu(here[np.ix_(nodes, nodes)]))
    moved = rng.random(len(pairs)) < share
    pairs[moved, 1] = rng.integers(0, n, int(moved.sum()))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    there = np.zeros((n, n), bool)
    there[pairs[:, 0], pairs[:, 1]] = there[pairs[:, 1], pairs[:, 0]] = True
    order = rng.permutation(n)
    table = distances(there)[np.ix_(order, order)]
    return fginfer.FactorGraph.from_arrays([n] * len(nodes), (rows[nodes] @ rows.T)[:, order], edges, tables=[table])


def _sentences(path: Path, most: int) -> list[tuple[list[str], list[str]]]:
    """(syllables, characters) of each line; the file has one sequence a line, the two tab-separated and spaced."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            left, right = line.rstrip("\n").split("\t")[:2]
            first, second = left.split(), right.split()
            if len(first) != len(second):
                second = list(right.replace(" ", ""))
            if len(first) == len(second):
                found.append((first, second))
            if len(found) == most:
                break
    return found


@cache
def _pinyin_scores(folder: Path, length: int) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """A text of so many syllables, scores of its characters, and of pairs of characters."""
    train = _sentences(folder / "train.tsv.gz", 10**9)
    ids: dict[str, int] = {}
    pairs: Counter[tuple[int, int]] = Counter()
    spoken: Counter[tuple[str, int]] = Counter()
    for syllables, characters in train:
        row = [ids.setdefault(c, len(ids)) for c in characters]
        spoken.update(zip(syllables, row, strict=True))
        pairs.update(pairwise(row))
    k = len(ids)
    counts = np.full((k, k), 0.01)
    for (a, b), n in pairs.items():
        counts[a, b] += n
    table = np.log(counts) - np.log(counts.sum(axis=1, keepdims=True))
    text: list[str] = []
    for syllables, _ in _sentences(folder / "test.tsv.gz", 1000):
        text += syllables
        if len(text) >= length:
            break
    text = text[:length]
    unary = np.full((length, k), np.log(0.01))
    for (syllable, c), n in spoken.items():
        for place in (p for p, s in enumerate(text) if s == syllable):
            unary[place, c] = np.log(n + 0.01)
    return text, unary, table


def pinyin_decoding(folder: Path, skip: bool, length: int = 60) -> fginfer.FactorGraph:
    """Characters for syllables with all 4424 characters allowed at every place: smoothed log frequencies of characters
    given syllables, and of pairs of characters. With `skip`, places with the same syllable like the same character."""
    text, unary, table = _pinyin_scores(folder, length)
    k = len(table)
    graph = fginfer.FactorGraph([k] * length)
    for place in range(length):
        graph.set_unary(place, unary[place])
    shared = graph.add_table(table)
    for place in range(length - 1):
        graph.add_factor([place, place + 1], shared)
    if skip:
        for p in range(length):
            for q in range(p + 2, length):
                if text[p] == text[q]:
                    graph.add_factor([p, q], fginfer.Potts(1.0, 0.0))
    return graph


def flow(k: int, side_points: int = 15, seed: int = 0) -> fginfer.FactorGraph:
    """Matching under a smooth displacement: a grid of points, each with the k displacements of a square window, a noisy
    cost for each, and two dense tables, one for each direction, that want neighbours to move alike."""
    rng = np.random.default_rng([seed, k])
    side = int(np.ceil(np.sqrt(k)))
    moves = np.array([(i, j) for i in range(side) for j in range(side)], float)[:k] / side
    at = [(r, c) for r in range(side_points) for c in range(side_points)]
    place = {point: p for p, point in enumerate(at)}
    step, true = 0.5 / side_points, np.array([0.25, 0.25])
    unary = np.empty((len(at), k))
    for p, (r, c) in enumerate(at):
        here = true + step * np.array([r, c]) + rng.normal(0, 0.05, 2)
        unary[p] = -4.0 * np.minimum(np.linalg.norm(moves - here, axis=1), 0.3) - np.abs(rng.normal(0, 0.5, k))
    edges, ids, tables = [], [], []
    for t, (dr, dc) in enumerate(((0, 1), (1, 0))):
        gap = moves[:, None] + step * np.array([dr, dc]) - moves[None]
        tables.append(-6.0 * np.minimum(np.sqrt(np.linalg.norm(gap, axis=2)), 0.6) + rng.normal(0, 0.02, (k, k)))
        for p, (r, c) in enumerate(at):
            if (r + dr, c + dc) in place:
                edges.append((p, place[r + dr, c + dc]))
                ids.append(t)
    return fginfer.FactorGraph.from_arrays([k] * len(at), unary, np.array(edges), np.array(ids), tables)


def complete(k: int, variables: int = 6, seed: int = 0) -> fginfer.FactorGraph:
    """Random scores on every pair: as loose as it gets."""
    rng = np.random.default_rng([seed, k])
    edges = np.argwhere(np.triu(np.ones((variables, variables)), 1))
    tables = rng.normal(size=(len(edges), k, k))
    return fginfer.FactorGraph.from_arrays(
        [k] * variables, rng.normal(size=(variables, k)), edges, np.arange(len(edges)), tables
    )


def bound_at_zero(graph: fginfer.FactorGraph) -> float:
    """D(0): every variable and every factor by itself."""
    tops: dict[int, float] = {}
    total = graph.constant + sum(float(graph.unary(i).max()) for i in range(graph.n_variables))
    for f in graph.factors():
        if f.table not in tops:
            table = graph.table(f.table)
            if isinstance(table, np.ndarray):
                tops[f.table] = float(table.max())
            elif isinstance(table, fginfer.Potts):
                tops[f.table] = max(table.same, table.different)
            else:
                tops[f.table] = 0.0
        total += f.weight * tops[f.table]
    return total
