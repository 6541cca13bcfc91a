"""Edges of the graphs that benches draw models on."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np


def grid_edges(height: int, width: int, wrapped: bool = False) -> list[tuple[int, int]]:
    """Neighbours on a grid, or on a torus, node by node."""
    edges = []
    for r, c in product(range(height), range(width)):
        if c + 1 < width or wrapped:
            edges.append((r * width + c, r * width + (c + 1) % width))
        if r + 1 < height or wrapped:
            edges.append((r * width + c, (r + 1) % height * width + c))
    return edges


def raster(height: int, width: int) -> np.ndarray:
    """The same neighbours as an array: those to the right, then those below."""
    at = np.arange(height * width, dtype=np.int32).reshape(height, width)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in pairs])


def random_edges(rng: np.random.Generator, n: int, density: float) -> list[tuple[int, int]]:
    """Every pair with this probability."""
    return [pair for pair in combinations(range(n), 2) if rng.random() < density]


def noisy_blocks(rng: np.random.Generator, side: int, labels: int, block: int, signal: float) -> np.ndarray:
    """Unary scores of a picture of square blocks: noise, and `signal` more for the true label."""
    tiles = rng.integers(0, labels, (side // block + 1, side // block + 1))
    truth = np.kron(tiles, np.ones((block, block), int))[:side, :side]
    unary = rng.normal(size=(side, side, labels))
    np.put_along_axis(unary, truth[..., None], np.take_along_axis(unary, truth[..., None], 2) + signal, 2)
    return unary
