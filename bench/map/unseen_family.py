"""What the families of unseen.py share: edges and small tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np

from bench.common.whole_costs import FORBIDDEN, Costs, LargeCase

Rng = np.random.Generator
Family = Callable[[Rng, LargeCase], None]


def from_probabilities(p: Any) -> Costs:
    with np.errstate(divide="ignore"):
        costs = -1000 * np.log(np.asarray(p, float))
    return np.where(np.isinf(costs), FORBIDDEN, np.round(np.where(np.isinf(costs), 0, costs))).astype(np.int64)


def only(allowed: Any) -> Costs:
    return np.where(np.asarray(allowed), 0, FORBIDDEN)


def table(shape: tuple[int, ...], allowed: Callable[..., bool]) -> Costs:
    return only([allowed(*x) for x in product(*map(range, shape))]).reshape(shape)


def distance(k: int) -> Costs:
    return np.abs(np.subtract.outer(np.arange(k), np.arange(k)))


def all_differ(case: LargeCase, variables: list[int]) -> None:
    for i, j in combinations(variables, 2):
        case.add([i, j], only(np.arange(case.cards[i])[:, None] != np.arange(case.cards[j])))
