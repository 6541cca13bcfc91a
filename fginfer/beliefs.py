"""Exact sums and maxima over labelings, a run for each joint label of a cut set where memory is short."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fginfer.core.beliefs import Beliefs
from fginfer.core.model import Model
from fginfer.errors import SolverError

Reals = NDArray[np.float64]

SLICE = 0.03  # seconds of work between two looks at signals
MOST_STATES = 3e10  # joint states that are summed, all runs and both passes: some minutes (chosen)
STEPS = 200.0  # steps of the search for an order, for each variable and factor: what a forest of any size needs


def by_variable(flat: Reals, cards: NDArray[np.int32]) -> list[Reals]:
    """Numbers of all labels, one array for each variable."""
    return np.split(flat, np.cumsum(cards)[:-1]) if len(cards) else []


def beliefs(model: Model, memory: float, maxima: bool, most: float = MOST_STATES) -> Beliefs:
    """The passes at their beginning; SolverError where they would not fit, or sum more than `most` states."""
    effort = max(2e7, STEPS * (model.n_variables + model.n_factors))
    found = Beliefs(model, maxima, memory, effort)
    states = 2 * found.work * found.runs
    if states > most:
        raise SolverError(
            f"elimination within {memory:.3g} bytes takes {states:.3g} joint states, the limit is {most:.3g}"
        )
    return found


def runs(found: Beliefs, model: Model, both: bool = True) -> Iterator[NDArray[np.int32]]:
    """Runs them for one joint label of the cut set after the other."""
    cards = model.cards
    for labels in product(*(range(int(cards[v])) for v in found.cut)):
        held = np.array(labels, np.int32)
        found.hold(held)
        while not found.run(SLICE, both):
            pass
        yield held


def best_scores(model: Model, memory: float) -> tuple[float, Reals]:
    """The best score, and that of the labelings with each label (one after the other); -inf: there is none."""
    found = beliefs(model, memory, True)
    value, labels = -np.inf, np.full(int(model.cards.sum()), -np.inf)
    for _ in runs(found, model):
        if found.value > -np.inf:
            value = max(value, found.value)
            labels = np.maximum(labels, found.labels())
    return value, labels


def probabilities(model: Model, memory: float, most: float = MOST_STATES) -> tuple[float, Reals]:
    """log Z, and P(variable = label) of all labels, one after the other; -inf: no labeling is allowed."""
    found = beliefs(model, memory, False, most)
    log_z, p = -np.inf, np.zeros(int(model.cards.sum()))
    for _ in runs(found, model):
        if found.value == -np.inf:
            continue
        both = float(np.logaddexp(log_z, found.value))
        p = p * np.exp(log_z - both) + found.labels() * np.exp(found.value - both)
        log_z = both
    return log_z, p
