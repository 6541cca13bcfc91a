"""PD-Sparse and PPD-Sparse as solvers that `fginfer.learn.run.loop.drive` runs: limits, log, trace, Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np

from fginfer.core import clock
from fginfer.core.extreme import SEARCHES, ExtremeData, LabelColumns, PdSolver
from fginfer.errors import DataError, SolverError
from fginfer.extreme.workshops import Workshop, chunks
from fginfer.learn.learner import fits, permutation
from fginfer.learn.run.interrupts import Interrupts, look
from fginfer.learn.run.loop import LearnPoint
from fginfer.learn.run.trainer import Measured, Trainer
from fginfer.log import logger, thousands

JOINT_FROM, JOINT_EVERY = 64, 32  # passes of pd-sparse before the first joint step, and from one to the next
REFIT_SLICE = 0.1  # seconds between two looks for Ctrl-C
NEVER = 1e300  # as the bound after the last joint step: there was none


class ExtremePoint(NamedTuple):
    """A LearnPoint and the sparsity at that moment (Yan 2018, Table 2.3).

    k_A: non-zero dual variables per row; k_W: non-zero weights per feature.
    """

    passes: int
    seconds: float
    primal: float | None
    dual: float | None
    gap: float | None
    infeasibility: float | None
    oracle_calls: int
    entries_touched: int
    k_A: float
    k_W: float


class Sparsities:
    """Notes k_A and k_W whenever counters are asked for, so that points of a trace find theirs."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[float, float]] = {}

    def note(self, calls: int, touched: int, k_a: float, k_w: float) -> tuple[int, int]:
        self._seen[calls, touched] = k_a, k_w
        return calls, touched

    def points(self, trace: list[LearnPoint]) -> list[ExtremePoint]:
        return [ExtremePoint(*p[:8], *self._seen[p.oracle_calls, p.entries_touched]) for p in trace]


class Ppd(Trainer):
    """One pass over all labels that are wanted. Finished labels are kept in `results` (a Journal or Memory)."""

    name = "ppd-sparse"

    def __init__(self, data: ExtremeData, workshop: Workshop, results: Any, labels: Any, limit: float = inf) -> None:
        assert data.positives is not None
        self._data, self._results, self._limit = data, results, limit
        self.sparsities = Sparsities()
        self.failure: SolverError | None = None
        self._sums = np.zeros(7)  # labels, primal, dual, support, weights, searches, touched
        done = np.zeros(data.labels.width, bool)
        for columns in results:
            done[columns.labels] = True
            self._count(columns)
        self.resumed = int(done.sum())
        todo = np.asarray(labels)[~done[np.asarray(labels)]]
        self._wanted = len(labels)
        parts = chunks(np.diff(data.positives.begin), todo, workshop.workers)
        self._stream: Iterator[LabelColumns] = workshop.run(parts, self._stop)
        self._told = clock.now()

    def _stop(self) -> bool:
        active = Interrupts.active
        return clock.now() >= self._limit or (active is not None and active.seen)

    def _count(self, c: LabelColumns) -> None:
        i = c.info
        self._sums += [
            len(c.labels), i["primal"].sum(), i["dual"].sum(), i["support"].sum(), i["weights"].sum(),
            i["searches"].sum(), i["touched"].sum(),
        ]  # fmt: skip

    def advance(self, deadline: float) -> bool:
        while self.trained < self._wanted:  # by labels: workshops may join chunks
            try:
                columns = next(self._stream, None)
            except SolverError as error:  # the workers are gone: what they have finished is kept
                self.failure = error
                return True
            if columns is None:
                return not self._stop()  # the loop sees why
            if len(columns.labels):
                self._results.append(columns)
                self._count(columns)
            if clock.now() - self._told > 2.0:
                self._told = clock.now()
                logger.info(
                    f"{int(self._sums[0]):>8} of {self._wanted} labels · {thousands(int(self._sums[4]))} weights · "
                    f"{thousands(int(self._sums[3]))} dual variables"
                )
            if clock.now() >= deadline:
                break
        return self.trained >= self._wanted

    def close(self) -> None:
        """Gives up what is still being worked at."""
        close = getattr(self._stream, "close", None)
        if close is not None:
            close()

    @property
    def trained(self) -> int:
        return int(self._sums[0])

    def wants_certificate(self, tol: float) -> bool:
        return True

    def measure(self, deadline: float = inf) -> Measured:
        if self.trained < self._wanted:
            return Measured()
        return Measured(float(self._sums[1]), float(self._sums[2]))

    def counters(self) -> tuple[int, int]:
        k_a, k_w = self._sums[3] / self._data.rows.n, self._sums[4] / max(1, self._data.rows.width)
        return self.sparsities.note(int(self._sums[5]), int(self._sums[6]), float(k_a), float(k_w))


class Pd(Trainer):
    """Passes over the rows in an order of their own, as Algorithm 1 of the paper; long runs move all rows together now
    and then, which takes those to the end that passes alone do not."""

    name = "pd-sparse"
    measuring = 1.0
    deadline = inf

    def __init__(
        self, data: ExtremeData, threads: int, seed: int, C: float, lam: float, parts: int, search: str
    ) -> None:
        self._data, self._C, self._lambda = data, C, lam
        self.core = PdSolver(data, threads, C=C, parts=parts, seed=seed, search=SEARCHES[search], **{"lambda": lam})
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._order = np.zeros(0, np.int32)
        self._next = self._passes = 0
        self._joint = (
            float(JOINT_FROM),
            float(JOINT_EVERY),
            NEVER,
        )  # the pass it is due at, passes between, last bound
        self.sparsities = Sparsities()

    def advance(self, deadline: float) -> bool:
        if self._next >= len(self._order):
            self._order, self._next = self._rng.permutation(self._data.rows.n).astype(np.int32), 0
        self._next = self.core.run(self._order, self._next, deadline)
        if self._next < len(self._order):
            return False
        self._passes += 1
        if self._passes >= self._joint[0]:
            self._move_together()
        return True

    def _move_together(self) -> None:
        """A joint step; the next one is soon if it raised the bound by more than the passes before it did."""
        _, wait, before = self._joint
        start = float(self.core.info.dual)
        self.core.joint(self.deadline)
        end = float(self.core.info.dual)
        wait = JOINT_EVERY if end - start > start - before else 2.0 * wait
        self._joint = (self._passes + wait, wait, end)

    def refit(self, tol: float, most: int, limit: float) -> None:
        """Without l1 over the weights found, as far as tol and in at most so many passes."""
        self.core.refit()
        self._lambda, self._next, self.deadline = 0.0, len(self._order), limit
        self._joint = (float(self._passes + JOINT_FROM), float(JOINT_EVERY), NEVER)
        for _ in range(most):
            while clock.now() < limit and not self.advance(min(limit, clock.now() + REFIT_SLICE)):
                pass
            if clock.now() >= limit or self.wants_certificate(tol):
                return

    def wants_certificate(self, tol: float) -> bool:
        info = self.core.info
        return bool(info.gap_estimate <= tol * max(1.0, abs(info.dual)))

    def measure(self, deadline: float = inf) -> Measured:
        info, loss, step = self.core.info, 0.0, 4096
        regulariser = 0.5 * info.squared_norm + self._lambda * info.l1_norm
        dual = float(info.dual)
        for first in range(0, self._data.rows.n, step):
            look(deadline)
            loss += self.core.loss(first, min(first + step, self._data.rows.n))
        return Measured(regulariser + self._C * loss, dual)

    def counters(self) -> tuple[int, int]:
        info = self.core.info
        k_a, k_w = info.active / self._data.rows.n, info.weights / max(1, self._data.rows.width)
        return self.sparsities.note(int(info.searches), int(info.touched), float(k_a), float(k_w))

    def export(self) -> dict[str, Any]:
        state = self._rng.bit_generator.state["state"]
        words = [state[name] >> shift & (2**64 - 1) for name in ("state", "inc") for shift in (0, 64)]
        return {
            **self.core.export(), "order": self._order, "next": np.array([self._next]),
            "generator": np.array(words, np.uint64), "joint": np.array([*self._joint, self._passes]),
        }  # fmt: skip

    def restore(self, saved: dict[str, Any]) -> None:
        self.core.restore(saved)
        rows = self._data.rows.n if len(saved["order"]) else 0  # none before the first pass
        self._order = permutation("order", saved["order"], rows).astype(np.int32)
        self._next = int(fits("next", saved["next"], 1, np.int64)[0])
        if self._next > rows:
            raise DataError("its place does not fit the data")
        if "joint" in saved:  # files of 0.1.0 have none
            *due, passes = (float(x) for x in fits("joint", saved["joint"], 4, np.float64))
            if not (0 <= passes < inf and due[1] >= 1 and due[0] > passes):
                raise DataError("its next joint step is out of range")
            self._joint, self._passes = (due[0], due[1], due[2]), int(passes)
        low, high, inc_low, inc_high = (int(w) for w in saved["generator"])
        state: Any = self._rng.bit_generator.state
        state["state"] = {"state": low | high << 64, "inc": inc_low | inc_high << 64}
        self._rng.bit_generator.state = state
