"""Engines: what a Solver drives. NativeEngine wraps a solver of the C core; methods written in Python look the same."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.result import EVENT, Marginals, Progress, Result, Trace, known

STATUSES = (
    "running",
    "optimal",
    "gap_reached",
    "converged",
    "time_limit",
    "iteration_limit",
    "interrupted",
    "infeasible",
)
# Fields of fgi_settings that solve() sets itself; the others are options of methods.
_OWN = {"method", "threads", "seed", "gap", "max_iterations", "start_time"}


@dataclass(frozen=True)
class Settings:
    """What an engine is asked to do. `options` are those of one method."""

    method: str
    gap: float = 1e-6
    seed: int = 0
    threads: int = 1
    max_iterations: int | None = None
    start_time: float = -1.0  # fgi_clock() value that counts as second 0; negative: now
    options: dict[str, Any] = field(default_factory=dict)


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


def _c_settings(code: int, settings: Settings) -> Any:
    c = ffi.new("fgi_settings *", lib.fgi_settings_default())
    c.method = code
    try:
        c.threads, c.seed, c.gap, c.start_time = settings.threads, settings.seed, settings.gap, settings.start_time
        c.max_iterations = -1 if settings.max_iterations is None else settings.max_iterations
        for name, value in settings.options.items():
            if name in _OWN or not hasattr(c, name):
                known_names = sorted(name for name in dir(c) if name not in _OWN)
                raise SettingsError(f"unknown option {name!r} for method {settings.method}; there are {known_names}")
            setattr(c, name, value)
    except (TypeError, OverflowError) as error:
        raise SettingsError(f"a setting is out of range: {error}") from None
    return c


def check_settings(settings: Settings) -> None:
    """Refuses what all methods refuse, for engines written in Python; their options are their own business."""
    error = new_error()
    check(lib.fgi_settings_check(_c_settings(lib.FGI_ICM, replace(settings, options={})), error), error)


class NativeEngine:
    """A solver of the C core."""

    def __init__(self, graph: FactorGraph, settings: Settings, code: int) -> None:
        self.settings = settings
        self.graph_cards = graph.cards
        self._c_settings = _c_settings(code, settings)
        self.info = ffi.new("fgi_info *")
        self.model: Any = None
        self.solver = self._create(graph)

    def _create(self, graph: FactorGraph) -> Any:
        out, error = ffi.new("fgi_solver **"), new_error()
        with graph.lock:  # the core takes its snapshot inside
            model = graph.model
            if self.model is not None and not lib.fgi_model_same_structure(self.model, model):
                raise SolverError("the graph has changed its structure since the solver was made; make a new one")
            before = lib.fgi_clock()
            rc = lib.fgi_solver_create(model, self._c_settings, out, error)
        check(rc, error)
        start = self._c_settings.start_time
        self.before = before - start if start >= 0 else 0.0  # set-up that the core did not see, such as conditioning
        self.model = model
        solver = ffi.gc(out[0], lib.fgi_solver_free)
        lib.fgi_solver_info(solver, self.info)
        return solver

    def run(self, seconds: float, iterations: int) -> str:
        rc = lib.fgi_solver_run(self.solver, seconds, iterations, self.info)
        if rc != lib.FGI_OK:
            if rc == lib.FGI_NO_MEMORY:
                raise MemoryError(f"{self.settings.method} ran out of memory")
            raise SolverError(f"{self.settings.method} cannot go on with this model (code {rc})")
        return STATUSES[self.info.status]

    @property
    def status(self) -> str:
        return STATUSES[self.info.status]

    def progress(self) -> Progress:
        i = self.info
        infeasibility = max(i.primal_infeasibility, i.dual_infeasibility)
        active = i.active_per_factor or None
        seconds = lib.fgi_clock() - self._c_settings.start_time
        return Progress(seconds, i.iterations, known(i.score), known(i.bound), known(infeasibility), active)

    def offer(self, labels: NDArray[np.int32]) -> None:
        error = new_error()
        check(lib.fgi_solver_offer(self.solver, pointer(labels), error), error, bad_argument=ModelError)
        lib.fgi_solver_info(self.solver, self.info)

    def offer_bound(self, bound: float) -> None:
        lib.fgi_solver_offer_bound(self.solver, bound)
        lib.fgi_solver_info(self.solver, self.info)

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        """Starts from messages; False if the method has none, or none of this size."""
        if lib.fgi_solver_message_size(self.solver) != len(messages):
            return False
        error, mu = new_error(), np.ascontiguousarray(messages, np.float64)
        rc = lib.fgi_solver_warm_start(self.solver, pointer(mu), error)
        if rc == lib.FGI_UNSUPPORTED:
            return False
        check(rc, error)
        return True

    def update(self, graph: FactorGraph) -> None:
        """Goes on with the graph's present numbers from the labels and messages found so far."""
        error = new_error()
        with graph.lock:
            if not lib.fgi_model_same_structure(self.model, graph.model):
                raise SolverError("the graph has changed its structure since the solver was made; make a new one")
            rc = lib.fgi_solver_update(self.solver, graph.model, error)
        if rc != lib.FGI_UNSUPPORTED:
            check(rc, error)
            self._c_settings.start_time = lib.fgi_clock()
            lib.fgi_solver_info(self.solver, self.info)
            return
        labels, messages = self.labels(), self.messages()
        self._c_settings.start_time = lib.fgi_clock()
        self.solver = self._create(graph)
        if messages is not None:
            self.warm_start(messages)
        if labels is not None:
            self.offer(labels)

    # -- what it has found -------------------------------------------------------------------------------------

    def labels(self) -> NDArray[np.int32] | None:
        if self.info.score == -inf:
            return None
        labels = np.empty(len(self.graph_cards), np.int32)
        lib.fgi_solver_labels(self.solver, pointer(labels))
        return labels

    def messages(self) -> NDArray[np.float64] | None:
        size = lib.fgi_solver_message_size(self.solver)
        if size < 0:
            return None
        mu = np.zeros(size)
        return mu if lib.fgi_solver_messages(self.solver, pointer(mu)) == lib.FGI_OK else None

    def marginals(self) -> Marginals | None:
        if not lib.fgi_solver_marginals(self.solver, ffi.NULL):
            return None
        x = np.zeros(int(self.graph_cards.sum(dtype=np.int64)))
        return Marginals(x, self.graph_cards) if lib.fgi_solver_marginals(self.solver, pointer(x)) else None

    def trace(self) -> Trace:
        n = lib.fgi_solver_trace(self.solver, 0, 0, ffi.NULL)
        events = np.empty(n, EVENT)
        lib.fgi_solver_trace(self.solver, 0, n, ffi.cast("fgi_event *", events.ctypes.data))
        return Trace(events)

    def statistics(self) -> dict[str, float]:
        i = self.info
        return {name: getattr(i, name) for name in _STATISTICS}

    def result(
        self, status: str | None = None, seconds: float | None = None, trace: bool = True, dual: bool = True
    ) -> Result:
        i, settings = self.info, self.settings
        return Result(
            settings.method,
            self.status if status is None else status,
            self.labels(),
            known(i.score),
            i.bound if i.bound < inf else None,
            i.iterations,
            i.seconds if seconds is None else seconds,
            self.before + i.seconds_setup,
            settings.threads,
            settings.seed,
            self.trace() if trace else (),
            self.marginals() if dual else None,
            self.messages() if dual else None,
            self.statistics(),
        )


_STATISTICS = (
    "primal_infeasibility",
    "dual_infeasibility",
    "rho",
    "active_per_factor",
    "oracle_calls",
    "entries_touched",
    "seconds_oracle",
    "seconds_update",
    "seconds_bound",
    "seconds_decode",
    "memory",
)
