"""Solvers that ask the oracle about every example before each step: batch Frank-Wolfe and one-slack cutting planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fginfer.core import clock
from fginfer.errors import DataError, SettingsError, SolverError
from fginfer.learn.data.examples import Reals
from fginfer.learn.learner import Learner, fits
from fginfer.learn.oracle import CHUNK, Oracle, certifies, decode, losses, measured_by
from fginfer.learn.run.trainer import TOO_LARGE, Measured, Trainer


class _Batch(Trainer):
    """The shared part: one call of the oracle gives the plane (sum of psi, sum of losses) and the primal value at w."""

    needs_best = True
    options_type: type | None = None  # a dataclass, where there are options

    def __init__(self, learner: Learner, oracle: Oracle | None, C: float) -> None:
        self.learner, self.oracle, self.C = learner, oracle, C
        self._w: Reals = np.zeros(learner.dimension)
        self._primal, self._dual, self._sure = np.inf, 0.0, certifies(learner, oracle)
        self._seen, self._judged, self._judged_w = self._w.copy(), np.inf, self._w.copy()
        self._judge = None if self._sure else measured_by(learner, oracle)
        self._best: Reals = self._w.copy()
        self._place, self._sum, self._sum_loss, self._slack = 0, np.zeros(learner.dimension), 0.0, 0.0

    def _plane(self, deadline: float) -> tuple[Reals, float] | None:
        """(sum of psi, sum of losses) at the current w, or None when the deadline came first: call again to go on.

        Also notes the primal value and keeps the best weights seen.
        """
        n, chunk = self.learner.data.n_examples, CHUNK if self.oracle is None else 1
        while self._place < n:
            examples = self.learner.everything[self._place : self._place + chunk]
            answers = decode(self.learner, self.oracle, self._w, 1.0, examples)
            self._sum_loss += self.learner.add_psi(answers, 1.0, self._sum, examples)
            self._slack += float(np.sum(answers.slack))
            self._place += len(examples)
            if clock.now() >= deadline and self._place < n:
                return None
        self._sure &= self._slack < np.inf
        loss = self._sum_loss - float(self._w @ self._sum) + (self._slack if self._sure else 0.0)
        primal = 0.5 * float(self._w @ self._w) + self.C * loss
        self._seen = self._w.copy()
        if not np.isfinite(primal):
            raise SolverError(TOO_LARGE)
        if primal < self._primal:
            self._primal, self._best = primal, self._w.copy()
        plane, sum_loss = self._sum, self._sum_loss
        self._place, self._sum, self._sum_loss, self._slack = 0, np.zeros(self.learner.dimension), 0.0, 0.0
        return plane, sum_loss

    def weights(self) -> Reals:
        return self._best if self._judged == np.inf else self._judged_w

    def measure(self, deadline: float = np.inf) -> Measured:
        if self._judge is not None and self._judge[0]:
            return self._measure_otherwise(self._judge[1], deadline)
        return Measured(self._primal if self._sure and self._primal < np.inf else None, self._dual)

    def _measure_otherwise(self, oracle: Oracle | None, deadline: float) -> Measured:
        """The point that the last plane was made at, by other answers than the solver's own, which may not be the best.
        What is found here is for the user: steps never depend on when somebody measures."""
        w = self._seen
        primal = 0.5 * float(w @ w) + self.C * float(np.sum(losses(self.learner, oracle, w, deadline)))
        if primal < self._judged:
            self._judged, self._judged_w = primal, w.copy()
        return Measured(self._judged if self._judged < np.inf else None, self._dual)

    def wants_certificate(self, tol: float) -> bool:
        return True  # primal and dual are known anyway

    def counters(self) -> tuple[int, int]:
        state = self.learner.state
        return int(state.oracle_calls), int(state.entries_touched)

    def export(self) -> dict[str, Any]:
        return {
            "w": self._w.copy(), "best": self._best.copy(), "values": np.array([self._primal, self._dual, self._sure]),
            "counters": np.array(self.counters()), "place": np.array(self._place), "sum": self._sum.copy(),
            "sum_loss": np.array([self._sum_loss, self._slack]),
        }  # fmt: skip

    def restore(self, saved: dict[str, Any]) -> None:
        n = self.learner.dimension
        self._w, self._best, self._sum = (fits(name, saved[name], n, np.float64) for name in ("w", "best", "sum"))
        self._primal, self._dual, self._sure = (
            float(saved["values"][0]),
            float(saved["values"][1]),
            bool(saved["values"][2]),
        )
        self._sum_loss, self._slack = (float(x) for x in saved["sum_loss"])
        self._place = int(saved["place"])
        if not 0 <= self._place <= self.learner.data.n_examples:
            raise DataError("its place does not fit the data")
        calls, touched = (int(x) for x in saved["counters"])
        self.learner.set_state(oracle_calls=calls, entries_touched=touched)


@dataclass(frozen=True)
class FrankWolfeOptions:
    """step: "search" (the best step, in closed form) or "predefined": 2 / (k + 2) at step k, for comparisons."""

    step: str = "search"

    def __post_init__(self) -> None:
        if self.step not in ("search", "predefined"):
            raise SettingsError(f"step must be search or predefined, not {self.step!r}")


BEST_STEPS = FrankWolfeOptions()


class FrankWolfe(_Batch):
    """Batch Frank-Wolfe (Lacoste-Julien et al. 2013, Algorithm 2); its gap comes with every step."""

    name = "fw"
    options_type = FrankWolfeOptions

    def __init__(
        self,
        learner: Learner,
        oracle: Oracle | None,
        C: float,
        options: FrankWolfeOptions = BEST_STEPS,
    ) -> None:
        super().__init__(learner, oracle, C)
        self.options = options
        self._loss, self._steps = 0.0, 0

    def advance(self, deadline: float) -> bool:
        found = self._plane(deadline)
        if found is None:
            return False
        plane, loss = found
        direction, change = self.C * plane - self._w, self.C * loss - self._loss
        norm = float(direction @ direction)
        gap = change - float(self._w @ direction)
        step = min(1.0, gap / norm) if norm > 0 else 1.0
        if self.options.step == "predefined":
            step = 2.0 / (self._steps + 2.0)
        self._steps += 1
        if gap > 0 or self.options.step == "predefined":
            self._w += step * direction
            self._loss += step * change
        self._dual = max(self._dual, self._loss - 0.5 * float(self._w @ self._w))
        return True

    def export(self) -> dict[str, Any]:
        return {**super().export(), "loss": np.array(self._loss), "steps": np.array(self._steps)}

    def restore(self, saved: dict[str, Any]) -> None:
        super().restore(saved)
        self._loss, self._steps = float(saved["loss"]), int(saved["steps"])


class CuttingPlane(_Batch):
    """One-slack cutting planes: each pass adds the plane of the current w, then the dual over all planes is solved.

    Taking planes near the best weights so far, instead of at the optimum of the planes, halves the passes (measured).

    max over alpha >= 0, sum alpha <= C of  sum_k alpha_k loss_k - 1/2 |sum_k alpha_k g_k|^2,  w = sum_k alpha_k g_k.
    """

    name = "cutting-plane"
    idle_limit = 30  # a plane without weight for so many passes is dropped
    caution = 0.1  # the next plane is taken this far on the way from the best weights to the optimum of the planes

    def __init__(self, learner: Learner, oracle: Oracle | None, C: float) -> None:
        super().__init__(learner, oracle, C)
        self._planes: list[tuple[Any, Reals]] = []  # (indices, values)
        self._losses = np.zeros(0)
        self._gram = np.zeros((0, 0))
        self._alpha = np.zeros(0)
        self._idle = np.zeros(0, np.int64)
        self._rounds, self._wanted = -1, 0.0  # rounds of solving the dual over the planes; -1: a plane is being made

    def advance(self, deadline: float) -> bool:
        if self._rounds < 0:
            found = self._plane(deadline)
            if found is None:
                return False
            self._add(*found)
            self._rounds = 0
            self._wanted = 0.02 * max(0.0, self._primal - self._dual) / self.C  # the planes are no more exact either
        while self._rounds < QP_ROUNDS:
            self._alpha, solved = improve_simplex_qp(self._gram, self._losses, self.C, self._alpha, self._wanted)
            self._rounds = QP_ROUNDS if solved else self._rounds + 1
            if clock.now() >= deadline and not solved:
                return False
        self._rounds = -1
        self._dual = max(
            self._dual, float(self._losses @ self._alpha) - 0.5 * float(self._alpha @ self._gram @ self._alpha)
        )
        self._w = np.zeros(self.learner.dimension)
        for a, (index, value) in zip(self._alpha, self._planes, strict=True):
            if a > 0:
                self._w[index] += a * value
        self._w = self.caution * self._w + (1 - self.caution) * self._best
        self._idle = np.where(self._alpha > 0, 0, self._idle + 1)
        self._drop(self._idle <= self.idle_limit)
        return True

    def _add(self, plane: Reals, loss: float) -> None:
        index = np.flatnonzero(plane)
        products = np.array([value @ plane[old] for old, value in self._planes])
        n = len(self._planes)
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n], gram[n, :n], gram[:n, n], gram[n, n] = self._gram, products, products, plane @ plane
        if not np.isfinite(gram).all():
            raise SolverError(TOO_LARGE)
        self._gram = gram
        self._planes.append((index, plane[index]))
        self._losses = np.append(self._losses, loss)
        self._alpha = np.append(self._alpha, 0.0)
        self._idle = np.append(self._idle, 0)

    def _drop(self, keep: Any) -> None:
        if keep.all():
            return
        self._planes = [plane for plane, k in zip(self._planes, keep, strict=True) if k]
        self._losses, self._alpha, self._idle = self._losses[keep], self._alpha[keep], self._idle[keep]
        self._gram = self._gram[np.ix_(keep, keep)]

    def export(self) -> dict[str, Any]:
        saved = super().export()
        saved["losses"], saved["alpha"], saved["idle"] = self._losses, self._alpha, self._idle
        saved["gram"], saved["solving"] = self._gram, np.array([self._rounds, self._wanted])
        saved["plane_size"] = np.array([len(i) for i, _ in self._planes], np.int64)
        saved["plane_index"] = np.concatenate([i for i, _ in self._planes]) if self._planes else np.zeros(0, np.int64)
        saved["plane_value"] = np.concatenate([v for _, v in self._planes]) if self._planes else np.zeros(0)
        return saved

    def restore(self, saved: dict[str, Any]) -> None:
        super().restore(saved)
        sizes, n = saved["plane_size"], len(saved["plane_size"])
        self._losses, self._alpha = (fits(name, saved[name], n, np.float64) for name in ("losses", "alpha"))
        self._idle = fits("idle", saved["idle"], n, np.int64)
        self._gram = fits("gram", saved["gram"].ravel(), n * n, np.float64).reshape(n, n)
        rounds, self._wanted = (float(x) for x in saved["solving"])
        self._rounds = int(rounds)
        index = fits("plane_index", saved["plane_index"], sizes.sum(), np.int64)
        value = fits("plane_value", saved["plane_value"], sizes.sum(), np.float64)
        if (index >= self.learner.dimension).any():
            raise DataError("the planes do not fit the data")
        cuts = np.cumsum(sizes)[:-1]
        self._planes = list(zip(np.split(index, cuts), np.split(value, cuts), strict=True)) if n else []


QP_ROUNDS, QP_STEPS = 40, 100


def improve_simplex_qp(
    gram: Reals, gain: Reals, C: float, start: Reals, wanted: float = 0.0, tol: float = 1e-9
) -> tuple[Reals, bool]:
    """max gain.a - a.gram.a / 2 over a >= 0, sum a <= C, from a feasible `start`: (a, whether that is it). One call is
    one round; between rounds there is time to look at the clock.

    The unused part of C is one more coordinate with gain 0 and zero rows. Pairwise steps move weight from the
    coordinate with the smallest gradient among those that have any to the one with the largest, until the two differ
    by at most `wanted` (or a relative `tol`); they find the support, and Newton steps on it end the round.
    """
    n = len(gain)
    full = np.zeros((n + 1, n + 1))
    full[:n, :n] = gram
    gains = np.append(gain, 0.0)
    a = np.append(start, max(0.0, C - start.sum()))
    gradient = gains - full @ a
    scale = max(wanted, tol * max(1.0, float(np.abs(gain).max(initial=0.0))))
    for _ in range(QP_STEPS):
        up = int(np.argmax(gradient))
        down = int(np.argmin(np.where(a > 0, gradient, np.inf)))
        excess = gradient[up] - gradient[down]
        if excess <= scale:
            return a[:n], True
        curvature = full[up, up] + full[down, down] - 2 * full[up, down]
        step = min(a[down], excess / curvature) if curvature > 0 else a[down]
        a[up] += step
        a[down] = 0.0 if step == a[down] else a[down] - step
        gradient -= step * (full[:, up] - full[:, down])
    return _newton(full, gains, a)[:n], False


def _newton(full: Reals, gains: Reals, a: Reals) -> Reals:
    """The maximum over the coordinates that have weight, with their sum fixed; those that would go below 0 leave one
    after the other. Never worse than `a`."""
    total = a.sum()
    for _ in range(len(a)):
        on = np.flatnonzero(a > 0)
        size = max(1.0, float(full[on, on].max()))
        system = np.ones((len(on) + 1, len(on) + 1))
        system[-1, -1] = 0.0
        system[:-1, :-1] = full[np.ix_(on, on)] / size
        direction = np.linalg.lstsq(system, np.append(gains[on] / size, total), rcond=None)[0][:-1] - a[on]
        slope = float((gains - full @ a)[on] @ direction)
        if not np.isfinite(slope) or slope <= 0:
            break
        curvature = float(direction @ full[np.ix_(on, on)] @ direction)
        back = direction < 0
        room = np.min(-a[on][back] / direction[back], initial=np.inf)
        step = min(slope / curvature if curvature > 0 else np.inf, room)
        if not np.isfinite(step):
            break
        moved = a[on] + step * direction
        moved[back & (moved <= 1e-15 * total)] = 0.0
        a = a.copy()
        a[on] = moved * (total / moved.sum())
        if step < room:
            break
    return a
