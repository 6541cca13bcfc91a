"""Engines: what a Solver drives. NativeEngine wraps a solver of the C core; methods written in Python look the same."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.solver import NativeSolver, check_native_settings, is_proof, native_settings
from fginfer.errors import SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.result import PROOFS, Progress, RelaxedMarginals, Result, Status, Trace, known, relative_gap


@dataclass(frozen=True)
class Settings:
    """What an engine is asked to do. `options` are those of one method."""

    method: str
    gap: float = 1e-6
    seed: int = 0
    threads: int = 1
    max_iterations: int | None = None
    cutoff: float = -inf  # only labelings with a score above it are wanted
    start_time: float = -1.0  # core.clock.now() value that counts as second 0; negative: now
    options: dict[str, Any] = field(default_factory=dict)


# A factor in the score of a labeling, which looks anywhere, and in a bound; a label in a pass for either; a byte that
# is freed. Measured on 4 M variables and 8 M factors, and on 1 M and 3 M.
SCORE_SECONDS, BOUND_SECONDS, LABEL_SECONDS, FREE_SECONDS = 2.5e-8, 1e-8, 1.5e-9, 5e-11


def seconds_to_fill(model: Model, score: float, bound: float) -> float:
    """About what `_found_so_far` takes: nothing where both are known, on millions of factors part of a time limit."""
    seconds = 0.0
    if score == -inf:
        seconds += SCORE_SECONDS * model.n_factors + LABEL_SECONDS * model.n_labels
    if bound == inf:
        seconds += BOUND_SECONDS * model.n_factors + LABEL_SECONDS * model.n_labels
    return seconds


class Engine(Protocol):
    """What a method written in Python provides; it is made with (graph, settings).

    run works for about `seconds` or `iterations` more iterations (negative: no limit of that kind), whichever ends
    first, and returns "running" or why it stopped (a status of Result). It must come back within milliseconds of
    the deadline and keep its place. result may be asked for at any time between runs.
    """

    def run(self, seconds: float, iterations: int) -> str: ...
    def result(self) -> Result: ...
    def progress(self) -> Progress: ...
    def offer(self, labels: NDArray[np.int32]) -> None: ...
    def warm_start(self, messages: NDArray[np.float64]) -> bool: ...
    def update(self, graph: FactorGraph) -> None: ...


def _native_settings(settings: Settings, method: str, options: dict[str, Any]) -> Any:
    return native_settings(
        method,
        threads=settings.threads,
        seed=settings.seed,
        gap=settings.gap,
        max_iterations=settings.max_iterations,
        cutoff=settings.cutoff,
        start_time=settings.start_time,
        options=options,
    )


def check_settings(settings: Settings) -> None:
    """Refuses what all methods refuse, for engines written in Python; their options are their own business."""
    check_native_settings(_native_settings(settings, "icm", {}))


class NativeEngine:
    """A solver of the C core. `model` is a snapshot: nobody else changes it."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.settings = settings
        self._c_settings = _native_settings(settings, settings.method, settings.options)
        self.native = self._create(model)

    def _create(self, model: Model) -> NativeSolver:
        before, start = clock.now(), self._c_settings.start_time
        self.before = before - start if start >= 0 else 0.0  # set-up that the core did not see, such as conditioning
        return NativeSolver(model, self._c_settings)

    @property
    def info(self) -> Any:
        """The fgi_info of the core."""
        return self.native.info

    @property
    def steps(self) -> int:
        """Iterations, and sweeps before them: what limits count."""
        return self.native.steps

    def run(self, seconds: float, iterations: int) -> str:
        try:
            self.native.run(seconds, iterations)
        except (MemoryError, SolverError) as error:
            raise type(error)(f"{self.settings.method}: {error}") from None
        return self.native.status

    @property
    def status(self) -> str:
        return self.native.status

    def progress(self) -> Progress:
        i = self.info
        infeasibility = max(i.primal_infeasibility, i.dual_infeasibility)
        active = i.active_per_factor or None
        seconds = clock.now() - self._c_settings.start_time
        return Progress(seconds, i.iterations, known(i.score), known(i.bound), known(infeasibility), active, i.unit,
                        self.native.found_by)  # fmt: skip

    def offer(self, labels: NDArray[np.int32]) -> None:
        self.native.offer(labels)

    def offer_bound(self, bound: float) -> None:
        self.native.offer_bound(bound)

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        """Starts from messages; False if the method has none, or none of this size."""
        return self.native.warm_start(messages)

    def update(self, graph: FactorGraph) -> None:
        """Goes on with the graph's present numbers from the labels and messages found so far."""
        model = graph.snapshot()
        if not model.same_structure(self.native.model):
            raise SolverError("the graph has changed its structure since the solver was made; make a new one")
        self._c_settings.start_time = clock.now()
        if self.native.update(model):
            return
        labels, messages = self.labels(), self.messages()
        self.native = self._create(model)
        if messages is not None:
            with suppress(SettingsError):  # messages of numbers that were so much larger are no start
                self.warm_start(messages)
        if labels is not None:
            self.offer(labels)

    # -- what it has found -------------------------------------------------------------------------------------

    def labels(self) -> NDArray[np.int32] | None:
        return self.native.labels()

    def messages(self) -> NDArray[np.float64] | None:
        return self.native.messages()

    def seconds_to_end(self) -> float:
        """About what the end of a run takes beside a copy of messages: labels and bound if there are none, freeing."""
        i = self.info
        return seconds_to_fill(self.native.model, i.score, i.bound) + FREE_SECONDS * float(i.memory)

    @property
    def dual_size(self) -> int:
        """Numbers that a result with messages copies."""
        return max(0, self.native.message_size)

    def marginals(self) -> RelaxedMarginals | None:
        x = self.native.marginals()
        return None if x is None else RelaxedMarginals(x, self.native.model.cards)

    def trace(self, score: float = -inf, bound: float = inf) -> Trace:
        """What was found, and when; with what a result says beyond that as its last point."""
        events = self.native.events()
        if score > self.info.score or bound < self.info.bound:
            seconds = max(self.before + self.info.seconds, float(events["seconds"].max(initial=0.0)))
            events = np.append(events, np.array([(seconds, score, bound, self.steps)], events.dtype))
        return Trace(events)

    def _found_so_far(self) -> tuple[NDArray[np.int32] | None, float, float]:
        """Labels, score and bound. Where a limit was over before anything was found: labels by the unaries alone and
        the bound of no messages, for two passes, of which a run that goes on knows nothing."""
        labels, score, bound = self.labels(), float(self.info.score), float(self.info.bound)
        if self.status == "running" and labels is None:
            trivial = self.native.model.unary_labels()
            said = self.native.model.score(trivial)
            if said > max(-inf, self.settings.cutoff):
                labels, score = trivial, said
        if self.status == "running" and bound == inf:
            bound = max(score, self.native.model.trivial_bound)
        return labels, score, bound

    def _reached(self) -> str | None:
        """What is proven or reached where time ended a run in the middle of an iteration: the core has not asked."""
        i = self.info
        if is_proof(i.bound, i.score, self.settings.cutoff, i.unit):
            return "infeasible" if i.score == -inf else "optimal"
        gap = relative_gap(known(i.score), known(i.bound), i.unit)
        return "gap_reached" if gap is not None and gap <= self.settings.gap else None

    def result(
        self, status: str | None = None, seconds: float | None = None, trace: bool = True, dual: bool = True
    ) -> Result:
        i, settings = self.info, self.settings
        labels, score, bound = self._found_so_far()
        finder = "unaries" if score > i.score else self.native.found_by or settings.method
        if status in ("time_limit", "interrupted") and self.status == "running":
            status = self._reached() or status
        return Result(
            settings.method,
            cast(Status, status or self.status),
            labels,
            known(score),
            bound if bound < inf else None,
            i.iterations,
            i.seconds if seconds is None else seconds,
            self.before + i.seconds_setup,
            settings.threads,
            settings.seed,
            self.trace(score, bound) if trace else (),
            self.marginals() if dual else None,
            self.messages() if dual else None,
            self.native.statistics(),
            i.unit,
            None if labels is None else finder,
            self.native.access,
            proved_by=settings.method if (status or self.status) in PROOFS else None,
        )
