"""What solvers share that visit one example at a time (bcfw, dcd, perceptron, mira, ssg); the inner loops are in C."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from fginfer.core import clock
from fginfer.core.learn import Mean, PassSettings, Update
from fginfer.errors import DataError, SettingsError, SolverError
from fginfer.learn.data.examples import Ints, Reals
from fginfer.learn.learner import Learner, fits, permutation
from fginfer.learn.oracle import CHUNK, Oracle, decode, losses, measured_by
from fginfer.learn.row_weights import Weights, squared_norm
from fginfer.learn.run.trainer import TOO_LARGE, Trainer


@dataclass(frozen=True)
class BlockOptions:
    """averaging: report averaged weights where they are better (bcfw) or always (perceptron, mira, ssg). mean: which
    average: "usual" (bcfw, ssg: iterates weighted by the number of the step; perceptron, mira: all alike), "uniform",
    or "suffix" (alike, since the last step that was a power of two). step: bcfw only, "search" (the best step, in
    closed form) or "predefined": 2n / (k + 2n) at step k, as Frank-Wolfe methods without line search have it, for
    comparisons.

    batch_size: answers found in parallel at the same weights before their updates. max_answers: largest working set of
    one example (bcfw).
    cached_passes: passes over the kept answers, without oracle, after each pass; None lets bcfw decide by the dual they
    gain, and dcd take what its variant says. gap_sampling: bcfw draws examples in proportion to their last gaps
    instead of shuffling. variant: dcd only, "light", "ssvm" or "cpd". threshold: dcd keeps answers violated by more
    than this. brute_force: Viterbi reads whole transition tables, also where bounds show that most rows cannot matter.
    sparse: keep weights by rows of features, made when first touched (None: chosen by the number of weights; tokens
    with labels, built-in decoders).
    """

    averaging: bool = True
    batch_size: int = 1
    max_answers: int = 50
    cached_passes: int | None = None
    gap_sampling: bool = False
    variant: str = "ssvm"
    threshold: float = 1e-3
    brute_force: bool = False
    sparse: bool | None = None
    mean: str = "usual"
    step: str = "search"

    def __post_init__(self) -> None:
        if self.variant not in ("light", "ssvm", "cpd"):
            raise SettingsError(f"dcd has the variants light, ssvm and cpd, not {self.variant!r}")
        if self.mean not in ("usual", "uniform", "suffix"):
            raise SettingsError(f"mean must be usual, uniform or suffix, not {self.mean!r}")
        if self.step not in ("search", "predefined"):
            raise SettingsError(f"step must be search or predefined, not {self.step!r}")
        if self.step == "predefined" and self.cached_passes:
            raise SettingsError("predefined steps are for oracle passes: cached_passes must be 0")
        if self.batch_size < 1 or self.max_answers < 1 or (self.cached_passes or 0) < 0:
            raise SettingsError("batch_size and max_answers must be at least 1, cached_passes at least 0")
        if not 0 <= self.threshold < np.inf:
            raise SettingsError(f"threshold must be a number, 0 or more, not {self.threshold!r}")


class Stage(NamedTuple):
    """A part of a pass: examples in their order, by new answers of the oracle or by those kept (cached)."""

    cached: bool
    order: Ints


class BlockSolver(Trainer):
    """Passes over shuffled examples; a pass is a list of stages."""

    update: Update  # what the core does with an answer
    movable = True
    needs_best = True
    dual_C: float | None = None  # the C of the dual's sums, where it is not the solver's

    def __init__(
        self, name: str, learner: Learner, oracle: Oracle | None, C: float, seed: int, options: BlockOptions
    ) -> None:
        self.name, self.learner, self.oracle, self.C, self.options = name, learner, oracle, C, options
        self._sure, self._judge = measured_by(learner, oracle)
        self._rng = np.random.default_rng(seed)
        self._settings = PassSettings(
            self.update, C, Mean[options.mean.upper()] if self._averages() else Mean.NONE, options.max_answers,
            min(self._batch(), learner.data.n_examples), options.threshold, options.brute_force,
            options.step == "predefined",
        )  # fmt: skip
        self._stages: list[Stage] = []
        self._place = 0
        self._pending: list[Ints] = []  # answers found for the batch at _place, and how many have been used
        self._used = 0
        self._measuring = np.zeros(2, np.int64)  # oracle calls and entries spent on measuring
        self._progress = np.zeros(3)
        self._best: Weights | None = None

    # ---- what a solver has of its own

    def _averages(self) -> bool:
        """Whether the core keeps the sums of averages."""
        return self.options.averaging

    def _batch(self) -> int:
        """Answers found at the same weights."""
        return self.options.batch_size

    def _plan(self) -> list[Stage]:
        """The stages of a pass."""
        return [self._asking()]

    def _again(self) -> bool:
        """Whether another pass over the kept answers is worth it."""
        return False

    def _factor(self) -> float:
        """How much the loss counts when an answer is asked for; as fgi_learn_loss_factor."""
        return 1.0

    def _average(self, k: int) -> Any:
        """The average of the iterates after k >= 1 steps."""
        raise NotImplementedError

    def _first(self, k: int) -> int:
        """The mean after k steps is that of the iterates from the next on; as csrc/learn/means.c."""
        return (1 << (int(k).bit_length() - 1)) - 1 if self.options.mean == "suffix" else 0

    def _loss_sum(self, losses: Reals) -> float:
        return float(np.sum(losses))

    def _scale(self, C: float) -> float:
        """By how much the weights grow when duals found at `C` stay what they are."""
        return 1.0

    def moved(self, saved: dict[str, Any], C: float) -> dict[str, Any]:
        """A state of a run at another C as one to begin with: duals and answers stay, averages and counters do not."""
        scale = self._scale(C)
        for name in ("weights", "row_weights"):
            if name in saved:
                saved[name] = saved[name] * scale
        for name in ("averages", "row_averages", "counters", "measuring", "progress", "place", "used"):
            if name in saved:
                saved[name] = np.zeros_like(saved[name])
        steps, n = saved["stages"], self.learner.data.n_examples
        saved["stages"], saved["orders"] = steps[:0], np.zeros((0, n), np.int32)
        saved["pending_sizes"], saved["pending"] = np.zeros(0, np.int64), np.zeros(0, np.int32)
        saved["gaps"] = np.full(n, np.inf)
        saved["rng"] = np.array(json.dumps(self._rng.bit_generator.state))
        norm, loss, _, square = saved["sums"]
        saved["sums"] = np.array([norm * scale**2, loss * scale, np.inf, square])
        saved["block_loss"] = saved["block_loss"] * scale
        return saved

    # ---- the pass

    def _asking(self) -> Stage:
        return Stage(cached=False, order=self._shuffled())

    def _by_kept(self) -> Stage:
        return Stage(cached=True, order=self._shuffled())

    def _shuffled(self) -> Ints:
        return self._rng.permutation(self.learner.data.n_examples).astype(np.int32)

    def advance(self, deadline: float) -> bool:
        if not self._stages:
            self._stages, self._place, self._best = self._plan(), 0, None
            self._progress = np.array([self._dual(), 0.0, 0.0])
        while self._stages:
            cached, order = self._stages[0]
            if cached or (self.oracle is None and self._settings.batch <= 2 * CHUNK):
                self._place = self.learner.run_pass(self._settings, order, self._place, deadline, cached)
            else:
                self._ask(order, deadline)
            if self._place < len(order):
                return False
            self._stages, self._place = self._stages[1:], 0
            if self._again():
                self._stages.append(self._by_kept())
            if clock.now() >= deadline and self._stages:
                return False
        self.learner.refresh(self.C if self.dual_C is None else self.dual_C)
        if not isfinite(self.learner.state.squared_norm):
            raise SolverError(TOO_LARGE)
        return True

    def _dual(self) -> float:
        state = self.learner.state
        return float(state.dual_loss - 0.5 * state.squared_norm)

    def _ask(self, order: Ints, deadline: float) -> None:
        """As run_pass, with a look at the clock after every answer of a Python oracle, or some of a large batch."""
        learner, batch = self.learner, self._settings.batch
        while self._place < len(order):
            examples = order[self._place : self._place + batch]
            factor = self._factor()
            while len(self._pending) < len(examples) and self._used == 0:
                few = examples[len(self._pending) : len(self._pending) + (CHUNK if self.oracle is None else 1)]
                self._pending += decode(learner, self.oracle, learner.weights, factor, few).split()
                if clock.now() >= deadline and len(self._pending) < len(examples):
                    return
            while self._used < len(examples):
                learner.offer(self._settings, int(examples[self._used]), self._pending[self._used])
                self._used += 1
                if clock.now() >= deadline and self._used < len(examples):
                    return
            self._pending, self._used = [], 0
            self._place += len(examples)
            if clock.now() >= deadline:
                return

    # ---- what comes out

    def averaged(self) -> Any:
        """The (weighted) average of the iterates, where the solver has one."""
        k = self.learner.state.steps
        return self._average(k) if k else self.learner.blend(lambda w, _: w)

    def weights(self) -> Weights:
        """The weights to predict with: the average, or what was best when measured."""
        return self.averaged() if self._best is None else self._best

    def primal(self, weights: Weights, deadline: float = inf) -> float:
        before = self.learner.state
        try:
            loss = losses(self.learner, self._judge, weights, deadline)
        finally:
            after = self.learner.state
            calls, entries = before.oracle_calls, before.entries_touched
            self._measuring += (after.oracle_calls - calls, after.entries_touched - entries)
        return 0.5 * squared_norm(weights) + self.C * self._loss_sum(loss)

    def counters(self) -> tuple[int, int]:
        state = self.learner.state
        return int(state.oracle_calls - self._measuring[0]), int(state.entries_touched - self._measuring[1])

    # ---- checkpoints

    def export(self) -> dict[str, Any]:
        saved: dict[str, Any] = self.learner.export()
        saved["rng"] = np.array(json.dumps(self._rng.bit_generator.state))
        saved["stages"] = np.array([cached for cached, _ in self._stages], bool)
        saved["orders"] = np.array([order for _, order in self._stages], np.int32).reshape(
            len(self._stages), self.learner.data.n_examples
        )
        saved["place"], saved["used"] = np.array(self._place), np.array(self._used)
        saved["pending_sizes"] = np.array([len(answer) for answer in self._pending], np.int64)
        saved["pending"] = np.concatenate(self._pending) if self._pending else np.zeros(0, np.int32)
        saved["measuring"], saved["progress"] = self._measuring.copy(), self._progress.copy()
        return saved

    def restore(self, saved: dict[str, Any]) -> None:
        n = self.learner.data.n_examples
        self.learner.restore(saved)
        self._rng.bit_generator.state = json.loads(str(saved["rng"]))
        stages, sizes = saved["stages"], saved["pending_sizes"]
        orders = fits("orders", saved["orders"].ravel(), len(stages) * n).reshape(-1, n)
        self._stages = [
            Stage(bool(cached), permutation("orders", order, n).astype(np.int32))
            for cached, order in zip(stages, orders, strict=True)
        ]
        self._place, self._used = int(saved["place"]), int(saved["used"])
        pending = fits("pending", saved["pending"], sizes.sum())
        self._pending = np.split(pending, np.cumsum(sizes)[:-1]) if len(sizes) else []
        self._measuring, self._progress = (
            fits("measuring", saved["measuring"], 2, np.int64),
            fits("progress", saved["progress"], 3, np.float64),
        )
        if not 0 <= self._place <= n or not 0 <= self._used <= len(sizes) or (self._place and not len(stages)):
            raise DataError("its place does not fit the data")


def finite(primal: float) -> float | None:
    """An oracle without a bound on its answers gives no upper bound on the objective."""
    return None if primal == inf else primal
