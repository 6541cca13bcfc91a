"""The models of unseen.py: a function a family, after public benchmark families of which no instance is kept here.

All costs are whole numbers, so that toulbar2 is exact; probabilities are taken as -1000 log p. Sizes are those at which
one of both solvers has something to do within ten seconds.
"""

from __future__ import annotations

import numpy as np

from bench.common.whole_costs import LargeCase
from bench.map import unseen_more, unseen_networks, unseen_planning, unseen_random, unseen_spins

FAMILIES = {
    f.__name__: f
    for part in (unseen_random, unseen_spins, unseen_planning, unseen_networks, unseen_more)
    for f in part.FAMILIES
}


def unseen_case(name: str, seed: int) -> LargeCase:
    case = LargeCase(seed, name, [], 1.0)
    FAMILIES[name](np.random.default_rng([seed, *name.encode()]), case)
    return case
