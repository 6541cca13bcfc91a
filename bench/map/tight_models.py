"""Families of tight.py whose relaxation is tight, or nearly, and that are not grids and chains of one table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from fginfer import AbsDiff, FactorGraph, Potts, SqDiff

Pairs = list[tuple[int, int]]


def tracking(frames: int = 40, cells: int = 25, seed: int = 0) -> FactorGraph:
    """Detections and transitions; what comes into a detection and goes out of it, in factors of up to nine."""
    rng = np.random.default_rng(seed)
    places = [rng.random((cells, 2)) for _ in range(frames)]
    unary = [float(rng.normal(1.0, 1.0)) for _ in range(frames * cells)]
    out: dict[int, list[int]] = {}
    into: dict[int, list[int]] = {}
    for t in range(frames - 1):
        far = ((places[t][:, None] - places[t + 1][None]) ** 2).sum(2)
        for i in range(cells):
            for j in np.argsort(far[i])[:4]:
                out.setdefault(t * cells + i, []).append(len(unary))
                into.setdefault((t + 1) * cells + int(j), []).append(len(unary))
                unary.append(1.2 - 20 * float(far[i, j]))
    graph = FactorGraph([2] * len(unary))
    for v, u in enumerate(unary):
        graph.add_factor([v], [0, u])
    for moves, divides in ((out, True), (into, False)):
        for detection, taken in moves.items():
            taken = taken[:8]
            table = np.full((2,) * (len(taken) + 1), -np.inf)
            for x in product((0, 1), repeat=len(taken)):
                if sum(x) == 0:
                    table[(0, *x)], table[(1, *x)] = 0, -1.5
                elif sum(x) == 1 or (sum(x) == 2 and divides):
                    table[(1, *x)] = 0 if sum(x) == 1 else -3
            graph.add_factor([detection, *taken], table)
    return graph


def montage(height: int = 100, width: int = 120, labels: int = 6) -> FactorGraph:
    """Seams between photographs, with regions that must come from one of them."""
    rng = np.random.default_rng(0)
    image = rng.random((labels, height, width)).cumsum(1).cumsum(2)
    image = image / image.max((1, 2), keepdims=True) + rng.normal(0, 0.05, image.shape)
    unary = np.zeros((height, width, labels))
    for k, _ in product(range(labels), range(3)):
        y, x = rng.integers(0, height - 20), rng.integers(0, width - 20)
        unary[y : y + 15, x : x + 15] = -1e6
        unary[y : y + 15, x : x + 15, k] = 0
    at = np.arange(height * width).reshape(height, width)
    edges = np.concatenate(
        [np.stack([at[:-1].ravel(), at[1:].ravel()], 1), np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1)]
    )
    pixels = image.reshape(labels, -1)
    a, b = edges.T
    cost = np.abs(pixels[:, None, a] - pixels[None, :, a]) + np.abs(pixels[:, None, b] - pixels[None, :, b])
    cards = np.full(height * width, labels)
    return FactorGraph.from_arrays(cards, unary.reshape(-1, labels), edges, tables=-np.moveaxis(cost, 2, 0))


def parsing(words: int, seed: int = 0) -> FactorGraph:
    """A head for every word; siblings that like each other, and no cycles of two."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph([words + 1] * words)
    for i in range(words):
        scores = 2 * rng.normal(size=words + 1) - 0.1 * np.abs(np.arange(words + 1) - i - 1)
        scores[i + 1] = -np.inf
        graph.add_factor([i], scores)
    for i in range(words):
        for j in range(i + 1, min(words, i + 6)):
            table = 0.3 * rng.normal(size=(words + 1, words + 1))
            table[j + 1, i + 1] = -np.inf
            graph.add_factor([i, j], table)
    return graph


def pose(parts: int, labels: int) -> FactorGraph:
    """A tree of parts at places in a picture, and springs between left and right."""
    rng = np.random.default_rng(1)
    places = rng.random((labels, 2))
    offset = places[:, None] - places[None]
    edges: Pairs = [(int(rng.integers(max(0, i - 3), i)), i) for i in range(1, parts)]
    edges += [(i, i + 4) for i in range(0, parts - 4, 4)]
    tables = [-8 * ((offset - rng.normal(0, 0.3, 2)) ** 2).sum(2) for _ in edges]
    unary = 1.5 * rng.normal(size=(parts, labels))
    return FactorGraph.from_arrays(np.full(parts, labels), unary, np.array(edges, np.int32), tables=np.array(tables))


def windows(n: int, labels: int, arity: int, seed: int = 2) -> FactorGraph:
    """A chain of overlapping factors."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph([labels] * n)
    for i in range(n):
        graph.add_factor([i], 2 * rng.normal(size=labels))
    for i in range(0, n - arity + 1, 2):
        graph.add_factor(range(i, i + arity), rng.normal(size=(labels,) * arity))
    return graph


def loopy_tree(n: int, labels: int, more: int, strength: float = 3.0) -> FactorGraph:
    """A tree and some more edges."""
    rng = np.random.default_rng(3)
    edges: Pairs = [(int(rng.integers(max(0, i - 20), i)), i) for i in range(1, n)]
    edges += [(int(i), int(j)) for i, j in rng.integers(0, n, (more, 2)) if i != j]
    tables = rng.normal(size=(len(edges), labels, labels))
    unary = strength * rng.normal(size=(n, labels))
    return FactorGraph.from_arrays(np.full(n, labels), unary, np.array(edges, np.int32), tables=tables)


def segmentation(side: int, labels: int) -> FactorGraph:
    """Regions of superpixels: Potts terms by the strength of an edge, eight neighbours."""
    rng = np.random.default_rng(4)
    at = np.arange(side * side).reshape(side, side)
    truth = np.add.outer(np.arange(side) // 11, np.arange(side) // 13) % labels
    unary = rng.normal(size=(side, side, labels)) + 1.5 * (np.arange(labels) == truth[..., None])
    pairs = [(at[:-1], at[1:]), (at[:, :-1], at[:, 1:]), (at[:-1, :-1], at[1:, 1:]), (at[:-1, 1:], at[1:, :-1])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in pairs]).astype(np.int32)
    same = truth.ravel()[edges[:, 0]] == truth.ravel()[edges[:, 1]]
    weights = np.where(same, 0.8, 0.2) * rng.random(len(edges))
    cards = np.full(side * side, labels)
    return FactorGraph.from_arrays(cards, unary.reshape(-1, labels), edges, tables=[Potts(0.0, -1.0)], weights=weights)


def stereo(height: int, width: int, labels: int) -> FactorGraph:
    rng = np.random.default_rng(5)
    depth = (np.add.outer(np.arange(height) // 15, np.arange(width) // 20) * 3) % labels
    unary = -np.minimum(np.abs(np.arange(labels) - depth[..., None] - rng.normal(0, 1.0, (height, width, 1))), 4.0)
    unary = unary + 0.3 * rng.normal(size=unary.shape)
    return FactorGraph.grid((height, width), unary, AbsDiff(0.5, 2.0))


def displacement(side: int, reach: int) -> FactorGraph:
    """Two directions of a displacement, smooth: squares."""
    rng = np.random.default_rng(6)
    labels = 2 * reach + 1
    truth = reach * np.sin(np.add.outer(np.arange(side), np.arange(side)) / 9)
    unary = -0.3 * (np.arange(-reach, reach + 1) - truth[..., None]) ** 2 + rng.normal(size=(side, side, labels))
    return FactorGraph.grid((side, side), unary, SqDiff(0.2))


def network(n: int, labels: int, parents: int, seed: int = 7) -> FactorGraph:
    """A Bayesian network with some evidence."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph([labels] * n)
    for i in range(n):
        above = [int(j) for j in rng.choice(np.arange(max(0, i - 8), i), min(i, parents), replace=False)] if i else []
        shares = rng.dirichlet(0.5 * np.ones(labels), size=(labels,) * len(above))
        graph.add_factor([*above, i], np.log(np.maximum(shares, 1e-9)))
        if i % 3 == 2:
            graph.add_factor([i], 4 * rng.normal(size=labels))
    return graph


def second_differences(side: int, labels: int, seed: int = 8) -> FactorGraph:
    """Depth that may slope, but not bend: factors of three in rows and columns."""
    rng = np.random.default_rng(seed)
    depth = (np.add.outer(np.arange(side), 2 * np.arange(side)) / 6) % labels
    away = np.abs(np.arange(labels) - depth[..., None] - rng.normal(0, 0.8, (side, side, 1)))
    unary = 0.2 * rng.normal(size=(side, side, labels)) - np.minimum(away, 3)
    graph = FactorGraph([labels] * side**2)
    for v, scores in enumerate(unary.reshape(-1, labels)):
        graph.add_factor([v], scores)
    a = np.arange(labels)
    table = -0.4 * np.minimum(np.abs(a[:, None, None] - 2 * a[None, :, None] + a[None, None, :]), 3.0)
    at = np.arange(side**2).reshape(side, side)
    for lines in (at, at.T):
        for line, j in product(lines, range(side - 2)):
            graph.add_factor([int(v) for v in line[j : j + 3]], table)
    return graph


def assignment(n: int, near: int, seed: int = 9) -> FactorGraph:
    """Points against points, a variable a pair: at most one pair of each, in factors of up to ten."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    far = np.linalg.norm(places[:, None] - (places + 0.03 * rng.normal(size=(n, 2)))[None], axis=2)
    pairs = [(i, int(j)) for i in range(n) for j in np.argsort(far[i])[:near]]
    graph = FactorGraph([2] * len(pairs))
    excluding: dict[tuple[int, int], list[int]] = {}
    for v, pair in enumerate(pairs):
        graph.add_factor([v], [0.0, 1 - 10 * float(far[pair]) + 0.3 * rng.normal()])
        for side, point in enumerate(pair):
            excluding.setdefault((side, point), []).append(v)
    for among in excluding.values():
        table = np.where(np.indices((2,) * len(among[:10])).sum(0) <= 1, 0.0, -np.inf)
        graph.add_factor(among[:10], table)
    return graph


def code(n: int, noise: float, seed: int = 10) -> FactorGraph:
    """Gallager's: every bit in three checks of six, some of them flipped."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph([2] * n)
    for i in range(n):
        graph.add_factor([i], [0.0, (1.0 if rng.random() < noise else -1.0) + 0.01 * rng.normal()])
    even = np.where(np.indices((2,) * 6).sum(0) % 2 == 0, 0.0, -np.inf)
    for check in np.concatenate([rng.permutation(n).reshape(-1, 6) for _ in range(3)]):
        graph.add_factor([int(v) for v in check], even)
    return graph


FAMILIES: dict[str, Callable[[], FactorGraph]] = {
    "tracking 40 x 25": tracking,
    "tracking 12 x 10": lambda: tracking(12, 10, 1),
    "tracking 20 x 25": lambda: tracking(20, 25, 5),
    "tracking 30 x 40": lambda: tracking(30, 40, 3),
    "differences 16, 8 labels": lambda: second_differences(16, 8),
    "differences 20, 5 labels": lambda: second_differences(20, 5),
    "assignment 150 x 6": lambda: assignment(150, 6),
    "assignment 80 x 10": lambda: assignment(80, 10),
    "code 600": lambda: code(600, 0.04),
    "montage": montage,
    "parsing 12 words": lambda: parsing(12),
    "parsing 30 words": lambda: parsing(30),
    "parsing 50 words": lambda: parsing(50),
    "pose 14 x 40": lambda: pose(14, 40),
    "pose 20 x 200": lambda: pose(20, 200),
    "windows of 4, 3 labels": lambda: windows(300, 3, 4),
    "windows of 6, binary": lambda: windows(400, 2, 6),
    "windows of 10, binary": lambda: windows(100, 2, 10),
    "loopy tree 100 x 5": lambda: loopy_tree(100, 5, 20),
    "loopy tree 1000 x 5": lambda: loopy_tree(1000, 5, 200),
    "loopy tree 1000 x 30": lambda: loopy_tree(1000, 30, 200, 4.0),
    "loopy tree 5000 x 2": lambda: loopy_tree(5000, 2, 2500, 2.0),
    "loopy tree 300 x 50": lambda: loopy_tree(300, 50, 100, 4.0),
    "segmentation 30, 5 labels": lambda: segmentation(30, 5),
    "segmentation 120, 5 labels": lambda: segmentation(120, 5),
    "segmentation 80, 21 labels": lambda: segmentation(80, 21),
    "stereo 40 x 60, 12 labels": lambda: stereo(40, 60, 12),
    "stereo 100 x 140, 16 labels": lambda: stereo(100, 140, 16),
    "displacement 40, 17 labels": lambda: displacement(40, 8),
    "network 40 x 2, 2 parents": lambda: network(40, 2, 2),
    "network 60 x 4, 2 parents": lambda: network(60, 4, 2),
    "network 200 x 3, 3 parents": lambda: network(200, 3, 3),
}
