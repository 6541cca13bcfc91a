"""partial_fit: a pass over a few examples at a time, with the solvers that keep nothing but weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import DataError, SettingsError
from fginfer.learn.data.examples import Ints, Longs, Reals
from fginfer.learn.learner import Learner
from fginfer.learn.row_weights import RowWeights, Weights

ONLINE = ("perceptron", "mira")


@dataclass(frozen=True)
class OnlineState:
    """Iterate and sums of averages (of rows, if there are any, and of the rest) after so many steps."""

    rows: tuple[Longs, Ints, Reals, Reals] | None
    weights: Reals
    averages: Reals
    steps: int

    @classmethod
    def of(cls, weights: Weights) -> OnlineState:
        """To go on from weights that were learned otherwise: averages begin anew."""
        if not isinstance(weights, RowWeights):
            return cls(None, weights, np.zeros(len(weights)), 0)
        unary = weights.values[: len(weights.label)]
        rows = (weights.begin, weights.label, unary, np.zeros(len(unary)))
        return cls(rows, weights.pairs, np.zeros(len(weights.pairs)), 0)


def is_online(estimator: Any) -> bool:
    """Whether the estimator has partial_fit; if not, the AttributeError says why."""
    if estimator.solver not in ONLINE:
        raise AttributeError(f"partial_fit needs solver={' or solver='.join(map(repr, ONLINE))}")
    return True


def check_online(class_weight: Any) -> None:
    if isinstance(class_weight, str):
        raise SettingsError("partial_fit cannot balance classes that it has not seen: give their weights in a dict")


def check_classes(classes: Any) -> NDArray[Any]:
    found = np.unique(np.asarray(classes))
    if found.ndim != 1 or len(found) < 2 or found.dtype.kind not in "biufUS":
        raise DataError("classes must list all labels, at least 2")
    return found


def online_pass(solver: Any, state: OnlineState | None) -> tuple[OnlineState, Weights]:
    """One pass over the examples, shuffled; the state after it, and the averaged weights."""
    learner: Learner = solver.learner
    if state is not None:
        learner.dense_weights[:], learner.dense_averages[:] = state.weights, state.averages
        if state.rows is not None:
            learner.set_rows(*state.rows)
        learner.set_state(steps=state.steps)
    while not solver.advance(inf):
        pass
    rows = learner.rows() if learner.sparse else None
    new = OnlineState(rows, learner.dense_weights.copy(), learner.dense_averages.copy(), int(learner.state.steps))
    return new, solver.averaged()
