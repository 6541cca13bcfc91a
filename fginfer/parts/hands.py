"""Hands: the methods that work on a part. A hand takes unary scores of the border, works, and says bound and beliefs.

trws goes on where it was. gdmm begins each round anew with the messages of the last one, so that these alone are its
state: another worker goes on from them as the first one would have. auto works as trws does until rounds have
converged, and then solves the part itself (Prover).
"""

from __future__ import annotations

from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.core.solver import NativeSolver, native_settings
from fginfer.graph import FactorGraph
from fginfer.parts.rules import RULES
from fginfer.solver import Solver

Reals = NDArray[np.float64]
Labels = NDArray[np.int32]
METHODS = ("trws", "gdmm", "auto")


class Hand(Protocol):
    """`begin` is called with all unary scores of the border before every round, `run` until it says that it is done."""

    def begin(self, unary: Reals, iterations: int) -> None: ...
    def run(self, seconds: float) -> bool: ...
    def bound(self) -> float: ...
    def beliefs(self) -> Reals: ...
    def labels(self) -> Labels | None: ...
    def state(self) -> Reals: ...
    def set_state(self, unary: Reals, state: Reals) -> None: ...
    @property
    def state_size(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def has_worked(self) -> bool: ...


class Trws:
    """Sequential tree-reweighted message passing, whose messages stay as they are when unary scores move."""

    def __init__(self, model: Model, n_border: int, options: dict[str, Any], threads: int) -> None:
        self._native = NativeSolver(model, native_settings("trws", gap=0.0, threads=threads, options=options))
        self._border, self._target = np.arange(n_border, dtype=np.int32), 0

    def begin(self, unary: Reals, iterations: int) -> None:
        self._native.move_unary(self._border, unary)
        self._target = self._native.steps + iterations

    def run(self, seconds: float) -> bool:
        self._native.run(seconds, self._target - self._native.steps)
        return self._native.status != "running" or self._native.steps >= self._target

    def bound(self) -> float:
        return float(self._native.info.bound)

    def beliefs(self) -> Reals:
        return self._native.beliefs(self._border)

    def labels(self) -> Labels | None:
        return self._native.labels()

    def state(self) -> Reals:
        return self._native.state()

    def set_state(self, unary: Reals, state: Reals) -> None:
        self._native.move_unary(self._border, unary)
        self._native.set_state(state)

    @property
    def state_size(self) -> int:
        return self._native.state_size

    @property
    def memory(self) -> int:
        return int(self._native.info.memory)

    @property
    def has_worked(self) -> bool:
        return self._native.steps > 0


class Anew:
    """A method whose rounds begin with nothing but messages."""

    def __init__(self, model: Model, n_border: int, method: str, options: dict[str, Any], threads: int) -> None:
        self._model, self._border = model.snapshot(), np.arange(n_border, dtype=np.int32)
        self._settings = method, threads, options
        self._native, self._target, self.has_worked = self._new(), 0, False
        self._messages = np.zeros(max(0, self._native.message_size))
        self._beliefs, self._bound = np.zeros(int(model.cards[:n_border].sum(dtype=np.int64))), inf

    def _new(self) -> NativeSolver:
        method, threads, options = self._settings
        return NativeSolver(self._model, native_settings(method, gap=0.0, threads=threads, options=options))

    def _move(self, unary: Reals) -> None:
        self._model = self._model.snapshot()
        self._model.set_some_unary(self._border, unary)
        self._native = self._new()
        if self.has_worked:
            self._native.warm_start(self._messages)

    def begin(self, unary: Reals, iterations: int) -> None:
        self._move(unary)
        self._target = iterations

    def run(self, seconds: float) -> bool:
        self._native.run(seconds, self._target - self._native.steps)
        if self._native.status == "running" and self._native.steps < self._target:
            return False
        self.has_worked, messages = True, self._native.messages()
        if messages is not None:
            self._messages = messages
        self._close()
        return True

    def _close(self) -> None:
        """A sweep of trws brings what factors know of the border's labels to these, where the others can see it."""
        sweep = NativeSolver(self._model, native_settings("trws", gap=0.0, max_iterations=1))
        sweep.warm_start(self._messages)
        sweep.run(-1.0, 1)
        self._beliefs, messages = sweep.beliefs(self._border), sweep.messages()
        self._bound = min(float(self._native.info.bound), float(sweep.info.bound))
        if messages is not None:
            self._messages = messages

    def bound(self) -> float:
        return self._bound

    def beliefs(self) -> Reals:
        return self._beliefs

    def labels(self) -> Labels | None:
        return self._native.labels()

    def state(self) -> Reals:
        return self._messages

    def set_state(self, unary: Reals, state: Reals) -> None:
        self._messages, self.has_worked = state, True
        self._move(unary)

    @property
    def state_size(self) -> int:
        return len(self._messages)

    @property
    def memory(self) -> int:
        return int(self._native.info.memory) + 8 * len(self._messages)


def hand_for(model: Model, n_border: int, options: dict[str, Any]) -> Hand:
    """The hand that the options of a part ask for; auto begins as trws does, and proves later."""
    left = dict(options)
    method, threads = left.pop("method", "trws"), left.pop("threads", 1)
    if method == "gdmm":
        return Anew(model, n_border, "gdmm", {"formulation": "tables", **left}, threads)
    return Trws(model, n_border, left, threads)


def default_sweeps(method: str) -> int:
    """Iterations of a part in a round."""
    return RULES.anew_sweeps if method == "gdmm" else RULES.sweeps


class Prover:
    """`auto` at work on a part under fixed multipliers; `run` until it is done."""

    def __init__(self, model: Model, unary: Reals, n_border: int, iterations: int, seed: int, threads: int) -> None:
        moved = model.snapshot()
        moved.set_some_unary(np.arange(n_border, dtype=np.int32), unary)
        graph = FactorGraph.from_model(moved.snapshot(), moved.n_factors)
        self._solver = Solver(graph, "auto", gap=0.0, seed=seed, threads=threads, max_iterations=iterations)

    def run(self, seconds: float) -> bool:
        return self._solver.run(seconds if seconds >= 0 else None) != "running"

    def found(self) -> tuple[float, Labels | None]:
        """Bound and labels."""
        result = self._solver.result(trace=False, dual=False)
        bound = -np.inf if result.status == "infeasible" else np.inf if result.bound is None else result.bound
        return float(bound), result.labels
