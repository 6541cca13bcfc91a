"""dcd: dual coordinate descent on squared hinge losses (Chang and Yih 2013), in its variants light, ssvm and cpd."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from fginfer.core.learn import Update
from fginfer.learn.data.examples import Reals
from fginfer.learn.run.trainer import Measured
from fginfer.learn.solvers.block import BlockSolver, Stage, finite

CACHED_PASSES = {"light": 0, "ssvm": 5, "cpd": 10}  # over the kept answers, unless told otherwise


class Dcd(BlockSolver):
    """Coordinate steps on the answers kept; no averages."""

    update = Update.DCD
    measuring = 1.0
    dual_C = 1.0  # its alphas carry no C

    def _averages(self) -> bool:
        return False

    def _batch(self) -> int:
        """cpd finds all answers at one w."""
        return self.learner.data.n_examples if self.options.variant == "cpd" else self.options.batch_size

    def _plan(self) -> list[Stage]:
        """ssvm re-optimises first (Algorithm 3), the others after the answers are found."""
        given, variant = self.options.cached_passes, self.options.variant
        oracle = self._asking()
        cached = [self._by_kept() for _ in range(CACHED_PASSES[variant] if given is None else given)]
        return [*cached, oracle] if variant == "ssvm" else [oracle, *cached]

    def _average(self, k: int) -> Any:
        return self.learner.blend(lambda w, _: w)

    def _loss_sum(self, losses: Reals) -> float:
        return float(np.sum(losses**2))

    def wants_certificate(self, tol: float) -> bool:
        return bool(np.max(self.learner.gaps) <= max(10 * self.options.threshold, tol))

    def measure(self, deadline: float = inf) -> Measured:
        if not self._sure:
            return Measured()
        self._best = last = self.learner.blend(lambda w, _: w)
        dual = self._dual() - self.learner.state.dual_square / (4 * self.C)
        return Measured(finite(self.primal(last, deadline)), dual)
