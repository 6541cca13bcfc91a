"""Online solvers: perceptron, mira, and stochastic subgradients (ssg)."""

from __future__ import annotations

from math import inf

from fginfer.core.learn import Update
from fginfer.learn.data.examples import Reals
from fginfer.learn.oracle import certifies
from fginfer.learn.run.loop import Measured
from fginfer.learn.solvers.block import BlockSolver, finite


class _Online(BlockSolver):
    """No objective: nothing is measured. The average is that of all iterates."""

    def _average(self, k: int) -> Reals:
        out: Reals = self.learner.weights.copy()
        if self.options.averaging:
            out -= self.learner.averages / k
        return out


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
    measuring = 1.0

    def _factor(self) -> float:
        steps = self.learner.state.steps
        return steps / (self.learner.data.n_examples * self.C) if steps else 1.0

    def _average(self, k: int) -> Reals:
        out, scale = self.learner.weights.copy(), self.learner.data.n_examples * self.C
        if not self.options.averaging:
            return out * (scale / k)
        weighted: Reals = (k * out - self.learner.averages) * (2.0 * scale / (k * (k + 1.0)))
        return weighted

    def measure(self, deadline: float = inf) -> Measured:
        if not certifies(self.learner, self.oracle):
            return Measured()
        self._best = averaged = self.averaged()
        return Measured(finite(self.primal(averaged, deadline)))
