"""bcfw: block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013) with kept answers."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from fginfer.core.learn import Update
from fginfer.learn.learner import Learner
from fginfer.learn.oracle import Oracle
from fginfer.learn.run.trainer import Measured
from fginfer.learn.solvers.block import BlockOptions, BlockSolver, Stage, finite


class Bcfw(BlockSolver):
    """Line searches along the answers, and passes over the answers kept."""

    update = Update.BCFW

    def __init__(
        self, name: str, learner: Learner, oracle: Oracle | None, C: float, seed: int, options: BlockOptions
    ) -> None:
        super().__init__(name, learner, oracle, C, seed, options)
        self.measuring = 1.0 + options.averaging

    def _plan(self) -> list[Stage]:
        gaps, n = self.learner.gaps, self.learner.data.n_examples
        if self.options.gap_sampling and np.isfinite(gaps).all():
            weight = gaps + 1e-3 * gaps.mean() + 1e-300  # every example keeps a chance
            first = Stage(cached=False, order=self._rng.choice(n, n, p=weight / weight.sum()).astype(np.int32))
        else:
            first = self._asking()
        return [first, *(self._by_kept() for _ in range(self.options.cached_passes or 0))]

    def _again(self) -> bool:
        """Unless told otherwise: another pass over the kept answers while it raises the dual by half of what the
        oracle pass did. _progress: dual after the last stage, gain of the oracle pass, cached passes done."""
        if self.options.cached_passes is not None or self.options.step == "predefined":
            return False
        before, gain, done = self._progress
        now = self._dual()
        self._progress = np.array([now, gain if done else now - before, done + 1])
        if self.learner.state.steps < 3 * self.learner.data.n_examples:
            return False  # early on every oracle call teaches more
        return bool(done < 10 and (done == 0 or now - before > 0.5 * gain))

    def _scale(self, C: float) -> float:
        return self.C / C  # duals are shares of C

    def _average(self, k: int) -> Any:
        """Weighted by the number of the step, or uniform; see csrc/learn/means.c."""
        if not self.options.averaging:
            return self.learner.blend(lambda w, _: w)
        share = 2.0 / (k * (k + 1.0)) if self.options.mean == "usual" else 1.0 / (k - self._first(k))
        return self.learner.blend(lambda w, sums: w - sums * share)

    def wants_certificate(self, tol: float) -> bool:
        return bool(self.learner.state.gap_estimate <= 2 * tol * abs(self._dual()))

    def measure(self, deadline: float = inf) -> Measured:
        """The measures of the last weights or their average, whichever is better."""
        if not self._sure:  # losses may be larger than those seen; the dual is a bound anyway
            return Measured(None, self._dual())
        dual, tried = self._dual(), [self.learner.blend(lambda w, _: w)]
        if self.options.averaging:
            tried.append(self.averaged())
        primal, self._best = min(((self.primal(w, deadline), w) for w in tried), key=lambda pair: pair[0])
        return Measured(finite(primal), dual)
