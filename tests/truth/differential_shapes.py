"""Shapes of models that differential_models.py draws besides random ones: what solvers have special ways for.

A shape is three functions: label counts, scopes, and what becomes of the scores drawn for a table (some forbidden, some
made alike). Scores are -inf where forbidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Scopes = list[tuple[int, ...]]
Rng = np.random.Generator


@dataclass(frozen=True)
class Shape:
    cards: Callable[[Rng], list[int]]
    scopes: Callable[[Rng, list[int]], Scopes]
    form: Callable[[Rng, Scores], Scores]


def _as_drawn(rng: Rng, scores: Scores) -> Scores:
    return scores


def _finite(scores: Scores) -> Scores:
    return np.where(np.isfinite(scores), scores, 0.0)


# -- relations: many variables in a factor, few of their states allowed ------------------------------------------


def _relation_scopes(rng: Rng, cards: list[int]) -> Scopes:
    return [
        tuple(rng.permutation(len(cards))[: int(rng.integers(3, 7))].tolist()) for _ in range(int(rng.integers(2, 6)))
    ]


def _few_states(rng: Rng, scores: Scores) -> Scores:
    few = np.zeros(scores.size, bool)
    few[rng.integers(0, scores.size, int(rng.integers(1, 9)))] = True
    few[0] |= rng.random() < 0.7  # often the same state everywhere: else most models are infeasible
    return np.where(few.reshape(scores.shape), _finite(scores), -inf)


# -- functions: the last variable of a factor follows from the others --------------------------------------------


def _function_scopes(rng: Rng, cards: list[int]) -> Scopes:
    chosen = [rng.permutation(k)[: int(rng.integers(1, min(k, 3) + 1))].tolist() for k in range(1, len(cards))]
    return [(*parents, k + 1) for k, parents in enumerate(chosen)]


def _functional(rng: Rng, scores: Scores) -> Scores:
    if scores.ndim < 2 or rng.random() < 0.2:
        return scores
    value = rng.integers(0, scores.shape[-1], scores.shape[:-1])
    return np.where(np.arange(scores.shape[-1]) == value[..., None], _finite(scores), -inf)


# -- permutations: no two variables share a label; with too few labels there is none -----------------------------


def _all_pairs(rng: Rng, cards: list[int]) -> Scopes:
    return list(combinations(range(len(cards)), 2))


def _different(rng: Rng, scores: Scores) -> Scores:
    if scores.ndim != 2:
        return scores
    return np.where(np.eye(*scores.shape, dtype=bool), -inf, scores if rng.random() < 0.5 else 0.0)


# -- symmetric: labels that could be renamed ---------------------------------------------------------------------


def _symmetric_scopes(rng: Rng, cards: list[int]) -> Scopes:
    count = int(rng.integers(len(cards), 3 * len(cards)))
    return [tuple(rng.permutation(len(cards))[: int(rng.choice([2, 2, 2, 3]))].tolist()) for _ in range(count)]


def _by_equality(rng: Rng, scores: Scores) -> Scores:
    """A score for each number of distinct labels; now and then one state is an exception."""
    distinct = np.array([len(set(state)) for state in np.ndindex(scores.shape)]).reshape(scores.shape)
    out = scores.ravel()[np.minimum(distinct, scores.size) - 1]
    if rng.random() < 0.1:
        out[tuple(int(rng.integers(k)) for k in scores.shape)] = scores.ravel()[-1]
    return out


# -- parts: small components, variables of one label, variables in no factor -------------------------------------


def _part_scopes(rng: Rng, cards: list[int]) -> Scopes:
    out: Scopes = []
    begin = 0
    while begin < len(cards):
        size = min(int(rng.integers(1, 4)), len(cards) - begin)
        out += [tuple(range(begin, begin + size))[:: 1 if rng.random() < 0.5 else -1]] * int(rng.integers(0, 3))
        begin += size
    return [scope for scope in out if len(scope) > 1]


# -- chains of implications and equalities, longer than others ---------------------------------------------------


def _implied(rng: Rng, scores: Scores) -> Scores:
    kind = int(rng.integers(4))
    if scores.ndim != 2 or kind == 0:
        return scores
    rows, columns = np.indices(scores.shape)
    allowed = [rows == columns, rows <= columns, np.abs(rows - columns) <= 1][kind - 1]
    return np.where(allowed, scores if rng.random() < 0.5 else 0.0, -inf)


def _path(rng: Rng, cards: list[int]) -> Scopes:
    edges: Scopes = [(i, i + 1) for i in range(len(cards) - 1)]
    return edges + ([(len(cards) - 1, 0)] if rng.random() < 0.3 and len(cards) > 2 else [])


def _some(low: int, high: int, least: int, most: int) -> Callable[[Rng], list[int]]:
    """low to high variables of least to most labels."""

    def cards(rng: Rng) -> list[int]:
        drawn: Any = rng.integers(least, most + 1, int(rng.integers(low, high + 1)))
        return [int(k) for k in drawn]

    return cards


def _alike(low: int, high: int, least: int, most: int) -> Callable[[Rng], list[int]]:
    return lambda rng: [int(rng.integers(least, most + 1))] * int(rng.integers(low, high + 1))


SHAPES: dict[str, Shape] = {
    "relations": Shape(_alike(6, 10, 2, 3), _relation_scopes, _few_states),
    "functions": Shape(_some(4, 9, 2, 3), _function_scopes, _functional),
    "permutation": Shape(_alike(3, 5, 3, 5), _all_pairs, _different),
    "symmetric": Shape(_alike(4, 7, 2, 4), _symmetric_scopes, _by_equality),
    "parts": Shape(_some(5, 12, 1, 3), _part_scopes, _as_drawn),
    "implied": Shape(_some(5, 10, 2, 3), _path, _implied),
}
