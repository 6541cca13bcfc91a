"""Online solvers: perceptron, mira, and stochastic subgradients (ssg)."""

from __future__ import annotations

from math import inf
from typing import Any

from scipy.special import digamma

from fginfer.core.learn import Update
from fginfer.learn.run.trainer import Measured
from fginfer.learn.solvers.block import BlockSolver, finite


class _Online(BlockSolver):
    """No objective: nothing is measured. The average is that of all iterates."""

    needs_best = False
    lacks = "no objective"

    def _average(self, k: int) -> Any:
        averaging, count = self.options.averaging, k - self._first(k)
        return self.learner.blend(lambda w, sums: w - sums / count if averaging else w)


class Perceptron(_Online):
    """The structured perceptron (Collins 2002): asks without the loss."""

    update = Update.PERCEPTRON

    def _factor(self) -> float:
        return 0.0


class Mira(_Online):
    """MIRA (Crammer and Singer 2003): the smallest step that makes the answer worse than the truth by its loss."""

    update = Update.MIRA


class Ssg(BlockSolver):
    """Stochastic subgradient descent with weighted averages; its weights are kept scaled (csrc/learn/online.c)."""

    update = Update.SSG
    movable = False  # its weights belong to the number of steps
    lacks = "no bound on its objective"
    measuring = 1.0

    def _factor(self) -> float:
        steps = self.learner.state.steps
        return steps / (self.learner.data.n_examples * self.C) if steps else 1.0

    def _average(self, k: int) -> Any:
        scale = self.learner.data.n_examples * self.C
        if not self.options.averaging:
            return self.learner.blend(lambda w, _: w * (scale / k))
        if self.options.mean == "usual":
            return self.learner.blend(lambda w, sums: (k * w - sums) * (2.0 * scale / (k * (k + 1.0))))
        first = self._first(k)
        total = float(digamma(k + 1) - digamma(first + 1))  # 1/(first + 1) + ... + 1/k
        return self.learner.blend(lambda w, sums: (total * w - sums) * (scale / (k - first)))

    def measure(self, deadline: float = inf) -> Measured:
        if not self._sure:
            return Measured()
        self._best = averaged = self.averaged()
        return Measured(finite(self.primal(averaged, deadline)))
