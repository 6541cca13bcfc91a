"""SgdSolver: stochastic gradients with the cumulative l1 penalty (Tsuruoka, Tsujii, Ananiadou 2009), a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.crf import CrfLoss
from fginfer.errors import DataError, SettingsError
from fginfer.learn.crf.solver import CrfMeasured, CrfPoint
from fginfer.learn.data.examples import Encoded, Reals
from fginfer.learn.run.trainer import Measured, Trainer


@dataclass
class SgdOptions:
    """rate : of the first pass; that of pass k (from 0) is rate / (1 + k)."""

    rate: float = 0.1


class SgdSolver(Trainer):
    """One step an example. It has no stopping rule: it runs as many passes as it may. The objective after each pass is
    measured, which is not counted as training."""

    name = "sgd"
    measuring = 0.5

    def __init__(self, loss: CrfLoss, data: Encoded, l1: float, l2: float, seed: int, options: dict[str, Any]) -> None:
        from fginfer.learn.solvers.registry import build

        if l2 != 0:
            raise SettingsError("sgd has the l1 penalty only: l2 must be 0")
        self.rate = build(SgdOptions, options, "sgd").rate
        if not 0 < self.rate < inf:
            raise SettingsError(f"sgd: the option rate must be a positive number, not {self.rate!r}")
        self.loss, self.l1, self.seed = loss, l1, seed
        self.learner = SimpleNamespace(data=data, threads=loss.threads, dimension=loss.dimension)
        self._w, self._penalty, self._due = np.zeros(loss.dimension), np.zeros(loss.dimension), 0.0
        self._passes = self._place = 0
        self.history: list[CrfPoint] = []
        self.seconds = 0.0

    def advance(self, deadline: float) -> bool:
        begin = clock.now()
        order = np.random.default_rng((self.seed, self._passes)).permutation(self.loss.n_examples).astype(np.int32)
        self._place, self._due = self.loss.sgd(
            self._w, self._penalty, self._due, order, self._place, self.rate / (1 + self._passes), self.l1, deadline
        )
        self.seconds += clock.now() - begin
        if self._place < len(order):
            return False
        self._place = 0
        self._passes += 1
        nonzeros = int(np.count_nonzero(self._w))
        self.history.append(
            CrfPoint(
                self._passes, self.seconds, self._objective(), nonzeros, inf, self.loss.dimension, self._passes, 0.0
            )
        )
        return True

    def _objective(self) -> float:
        return self.loss.value(self._w) + self.l1 * float(np.abs(self._w).sum())

    def wants_certificate(self, tol: float) -> bool:
        return False

    def measure(self, deadline: float = inf) -> Measured:
        return CrfMeasured(self._objective())

    def counters(self) -> tuple[int, int]:
        info = self.loss.info
        return int(info.passes) * self.loss.n_examples, int(info.touched)

    def weights(self) -> Reals:
        return self._w.copy()

    def export(self) -> dict[str, NDArray[Any]]:
        return {
            "w": self._w.copy(), "penalty": self._penalty.copy(), "reals": np.array([self._due, self.seconds]),
            "place": np.array([self._passes, self._place]),
        }  # fmt: skip

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        from fginfer.learn.learner import fits

        self._w = fits("w", saved["w"], self.loss.dimension, np.float64).copy()
        self._penalty = fits("penalty", saved["penalty"], self.loss.dimension, np.float64).copy()
        self._due, self.seconds = (float(x) for x in fits("reals", saved["reals"], 2, np.float64))
        self._passes, self._place = (int(x) for x in fits("place", saved["place"], 2, np.int64))
        if self._place > self.loss.n_examples:
            raise DataError("its place does not fit the data")
