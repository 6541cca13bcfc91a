"""Solver: stepwise use of a method. Work happens in slices of some 30 ms, so that limits and Ctrl-C are prompt."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from math import inf
from numbers import Real
from os import PathLike
from sys import float_info
from threading import RLock
from types import TracebackType
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.engine import NativeEngine, Settings
from fginfer.errors import SettingsError, SolverError
from fginfer.exact_scores import ExactScores
from fginfer.graph import FactorGraph
from fginfer.journal import Changes
from fginfer.methods import default_method, make_engine
from fginfer.options import Options, check_settings, check_whole
from fginfer.proving import Prover
from fginfer.result import Progress, Result, Status

SLICE = 0.03  # seconds of work between two looks at signals, limits and callbacks
COPY_SECONDS = 2e-8  # a number of the messages
Callback = Callable[[Progress], object]


def check_seconds(name: str, value: float | None) -> float | None:
    """A number of seconds, 0 or more; None is no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not value >= 0:
        raise SettingsError(f"{name} must be a number of seconds >= 0, not {value!r}")
    return float(value)


class Solver:
    """One method at work on one graph.

    >>> from fginfer import FactorGraph, Potts
    >>> graph = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]], [[0, 1]], tables=[Potts(0, -1)])
    >>> with Solver(graph, method="icm") as solver:
    ...     status = solver.run(iterations=10)
    ...     result = solver.result()
    >>> result.labels.tolist(), result.score
    ([1, 1], 1.0)

    The solver keeps the numbers the graph had when it was made; `update` takes new ones. It may be used from several
    threads: each slice of work holds a lock. With `proof`, the name of a file, the steps of the method go there while
    it works, and `prove` brings the proof to its end.
    """

    def __init__(
        self,
        graph: FactorGraph,
        method: str | None = None,
        *,
        gap: float = 1e-6,
        seed: int = 0,
        threads: int = 1,
        max_iterations: int | None = None,
        cutoff: float | None = None,
        warm_start: Result | ArrayLike | None = None,
        start_time: float | None = None,
        proof: str | PathLike[str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._check_graph(graph)
        check_settings(gap, seed, threads, max_iterations, cutoff)
        self._start = clock.now() if start_time is None else start_time
        self._mark = graph.journal.mark()
        least = graph.cutoff if cutoff is None else max(cutoff, graph.cutoff)
        lowered = graph.lowered() if graph.rules else None
        self.settings = Settings(
            default_method() if method is None else method,
            min(gap, float_info.max),  # that of a missing bound or labeling, inf, is never reached
            seed,
            threads,
            max_iterations,
            least if lowered is None else lowered.cutoff(least),
            self._start,
            dict(options),
        )
        self.graph = graph
        self._lowered, self._cutoff = lowered, least
        self._lock = RLock()
        self._at_work = False  # inside a slice
        self._process = os.getpid()
        self._exact: ExactScores | None = None
        self._engine: Any = self._make_engine()
        self._native = isinstance(self._engine, NativeEngine)
        self._status = "running"
        self._stopped_by = "time_limit"  # why work paused while the method itself could go on
        self._prover = None if proof is None else Prover(proof, self._tables)
        if self._prover is not None and self._native and self.settings.cutoff == -inf:
            self._prover.listen(self._engine.native)
        self._seconds = clock.now() - self._start
        if warm_start is not None:
            self.warm_start(warm_start)

    @staticmethod
    def _check_graph(graph: Any) -> None:
        if not isinstance(graph, FactorGraph):
            raise SettingsError(f"Solver takes a FactorGraph, not {type(graph).__name__}; fginfer.read reads a file")

    def _make_engine(self) -> Any:
        """At work on the numbers that the graph has now. Methods see no leftovers: `_exact` puts them back."""
        model, settings = self._tables.snapshot(), self.settings
        self._model = model
        self._exact = ExactScores(model, settings.cutoff, settings.gap) if model.has_leftovers else None
        if self._exact is None:
            return self._engine_on(self._tables, settings)
        return self._engine_on(self._plain(model), dataclasses.replace(settings, cutoff=self._exact.plain_cutoff))

    def _engine_on(self, graph: FactorGraph, settings: Settings) -> Any:
        return make_engine(graph, settings)

    @property
    def _tables(self) -> FactorGraph:
        """The graph, with tables in the place of constraints."""
        return self.graph if self._lowered is None else self._lowered.graph

    def _plain(self, model: Model) -> FactorGraph:
        return FactorGraph.from_model(model.plain(), self._tables.n_factors)

    def __repr__(self) -> str:
        state = "closed" if self._engine is None else self._status
        return f"<Solver: {self.settings.method} on {self.graph!r}, {state}>"

    def __reduce__(self) -> Any:
        """A copy elsewhere starts from the labels and messages found so far; its trace and iterations start anew."""
        result = self.result(trace=False)
        known = dataclasses.replace(result, marginals=None)
        return _restore, (self.graph, dataclasses.replace(self.settings, start_time=-1.0, cutoff=self._cutoff), known)

    def __enter__(self) -> Solver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees what the method holds; the solver cannot be used afterwards."""
        with self._locked():
            close = getattr(self._engine, "close", None)  # engines with threads of their own have one
            self._engine = None
            if close is not None:
                close()

    # -- work --------------------------------------------------------------------------------------------------

    def run(self, seconds: float | None = None, iterations: int | None = None, callback: Callback | None = None) -> str:
        """Works for some more seconds or iterations (None: no limit) and returns "running" or why it is done.

        `callback` sees a Progress after every slice; the run ends if it returns something true. Ctrl-C raises
        KeyboardInterrupt, after which `result()` still has the best labeling and bound; so it has after an exception
        that is not the callback's, with the status "failed".
        """
        seconds = check_seconds("seconds", seconds)
        if iterations is not None:
            check_whole("iterations", iterations)
            if iterations < 0:
                raise SettingsError(f"iterations must be >= 0, not {iterations}")
        if callback is not None and not callable(callback):
            raise SettingsError(f"callback must be a function of a Progress, not {callback!r}")
        began = clock.now()
        deadline = inf if seconds is None else began + seconds
        part = SLICE if seconds is None else min(SLICE, seconds / 20)
        target = None if iterations is None else self._iterations() + iterations
        most = None if self._native else self.settings.max_iterations  # the core looks after its own
        if most is not None:
            target = most if target is None else min(target, most)
        try:
            while True:
                left = min(part, deadline - clock.now())
                more = -1 if target is None else target - self._iterations()
                if left <= 0 or (target is not None and more <= 0):
                    self._stopped_by = "time_limit" if target is None or more > 0 else "iteration_limit"
                    return self._status
                with self._locked():
                    self._status = self._run_engine(left, more)
                if self._status != "running":
                    if callback is not None:
                        callback(self.progress())
                    return self._status
                if callback is not None and callback(self.progress()):
                    self._stopped_by = "interrupted"
                    return self._status
        except KeyboardInterrupt:
            self._stopped_by = "interrupted"
            raise
        finally:
            self._seconds += clock.now() - began

    def run_until(self, end: float, callback: Callback | None = None) -> str:
        """Works until a moment of core.clock by which labels and bound are wanted, found or not, and memory freed."""
        while True:
            left = end - clock.now() - self._seconds_to_end()
            self._stopped_by = "time_limit"
            if left <= 0 or self.run(left, None, callback) != "running" or self._stopped_by != "time_limit":
                return self._status
            # What was found meanwhile need not be made up at the end: there may be some time left.

    def _seconds_to_end(self) -> float:
        with self._locked():
            estimate = getattr(self._opened(), "seconds_to_end", None)  # not every engine has one
            return 0.0 if estimate is None else float(estimate())

    def _run_engine(self, seconds: float, iterations: int) -> str:
        if self._prover is not None and self._prover.said is not None:
            raise SolverError("the proof is closed; make a new solver to go on")
        engine, self._at_work = self._opened(), True
        try:
            status: str = engine.run(seconds, iterations)
        except Exception:
            self._status = "failed"  # what was found until now stays: result() has it
            raise
        finally:
            self._at_work = False
        if self._prover is not None:
            self._prover.hear()
        if self._exact is not None and status != "running":
            return self._result(status, trace=False, dual=False).status
        return status

    def _locked(self) -> RLock:
        """The lock of this process: a forked child must not wait for threads that stayed behind."""
        if self._process != os.getpid():
            if self._at_work:
                raise SolverError("the process was forked while the solver was at work in it; make a new one")
            self._lock, self._process = RLock(), os.getpid()
        return self._lock

    def _opened(self) -> Any:
        if self._engine is None:
            raise SolverError("the solver is closed")
        return self._engine

    def _iterations(self) -> int:
        if self._native:
            return int(self._opened().steps)
        return int(self._opened().progress().iterations)

    # -- what it knows -----------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """ "running" while there is more to do, else why the method is done."""
        return self._status

    def progress(self) -> Progress:
        """A short look at where it stands."""
        with self._locked():
            engine = self._opened()
            progress: Progress = engine.progress()
            if self._exact is None:
                return progress
            return self._exact.progress(progress, engine.labels() if self._native else engine.now().labels)

    def seconds_to_copy(self) -> float:
        """About what a result with marginals and messages costs: on millions of factors, part of a time limit."""
        with self._locked():
            return COPY_SECONDS * float(self._opened().dual_size) if self._native else 0.0

    def result(self, trace: bool = True, dual: bool = True) -> Result:
        """The best labeling and bound so far. `trace` and `dual` (marginals, messages) may be left out."""
        with self._locked():
            return self._as_given(
                self._result(self._stopped_by if self._status == "running" else self._status, trace, dual)
            )

    def _result(self, status: str, trace: bool, dual: bool) -> Result:
        """The result of the method, with what rounding took from unary scores."""
        engine = self._opened()
        if self._native:
            result: Result = engine.result(status, self._seconds, trace, dual)
        else:
            found: Result = engine.result()
            shown = found.trace if trace else ()
            result = dataclasses.replace(found, status=cast(Status, status), seconds=self._seconds, trace=shown)
        return result if self._exact is None else self._exact.result(result)

    def prove(self) -> str:
        """Closes the file of the proof: what the method has not said itself is proven again, which takes as long as it
        takes. Returns what `Result.proof` says: "complete", or what is without proof. There is no work afterwards.
        """
        with self._locked():
            if self._prover is None:
                raise SolverError("the solver was made without a file for a proof")
            if self._prover.said is None:
                found = self._result(self._stopped_by if self._status == "running" else self._status, False, True)
                self._prover.finish(found, self.settings.cutoff)
            assert self._prover.said is not None
            return self._prover.said

    def _lower_again(self) -> None:
        """Labels that constraints had ruled out are allowed now, or constraints have come or gone: a new start from the
        labeling so far."""
        labels = self._as_before(self.result(trace=False, dual=False).labels)
        self._lowered = self.graph.lowered() if self.graph.rules else None
        cutoff = self._cutoff if self._lowered is None else self._lowered.cutoff(self._cutoff)
        self.settings = dataclasses.replace(self.settings, start_time=clock.now(), cutoff=cutoff)
        self._engine = self._make_engine()
        if labels is not None:
            self.offer(labels)

    def _as_given(self, result: Result) -> Result:
        """The same for the graph with its constraints and names."""
        if self._prover is not None:
            result = dataclasses.replace(result, proof=self._prover.said)
        if self._lowered is not None:
            result = self._lowered.result(result, self._cutoff)
        return dataclasses.replace(result, names=self.graph.shared_names()) if self.graph.names else result

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: ArrayLike) -> None:
        """A labeling from elsewhere: kept if it is better than what is known, and used as a start where possible."""
        x = self.graph.check_labels(labels)
        with self._locked():
            self._opened().offer(x if self._lowered is None else self._lowered.complete(x))

    def warm_start(self, start: Result | ArrayLike) -> None:
        """Starts from an earlier result (its labels, and its messages where both methods have them) or a labeling."""
        if not isinstance(start, Result):
            self.offer(start)
            return
        labels = None if start.labels is None else self.graph.check_labels(start.labels)  # before anything changes
        with self._locked():
            if start.messages is not None:
                self._opened().warm_start(start.messages)
            if labels is not None:
                self.offer(labels)

    def update(self) -> None:
        """Takes the graph's present numbers, and goes on from the messages and the labeling it has.

        The trace and the iteration count start again. What a change costs follows how much it changes, where the method
        can; factors and variables that have come or gone mean a new start from the labels.
        """
        with self._locked(), self.graph.lock:
            self._opened()
            if self._prover is not None:
                raise SolverError("a proof is about the numbers that the solver was made with; make a new one")
            began, changes = clock.now(), self.graph.journal.since(self._mark)
            self._mark = self.graph.journal.mark()
            if self._lowered is not None or self.graph.rules:
                self._update_lowered()
            elif changes is None or not self._follow(changes):
                self._update_engine()
            self._status = "running"
            self._seconds = clock.now() - began

    def _follow(self, changes: Changes) -> bool:
        """Lets a method that can do so take nothing but the changes."""
        follow = getattr(self._opened(), "follow", None)  # not every engine has one
        return follow is not None and self._exact is None and bool(follow(self.graph, changes))

    def _update_lowered(self) -> None:
        if self._lowered is not None and self._lowered.keeps_structure() and self._lowered.update():
            self._update_engine()
        else:
            self._lower_again()

    def _update_engine(self) -> None:
        engine, model = self._opened(), self._tables.snapshot()
        before = self._model if self._exact is None else self._exact.model
        self._model = model
        if not model.same_structure(before):
            self._start_anew()
            return
        if self._exact is None and not model.has_leftovers:
            engine.update(self._tables)
            return
        labels = engine.labels() if self._native else engine.now().labels
        if self._exact is not None and self.settings.cutoff == -inf:
            engine.update(self._plain(model))
            self._exact = ExactScores(model, -inf, self.settings.gap)
            return
        self._engine = self._make_engine()  # the cutoff that it is told may be another one
        if labels is not None:
            self._engine.offer(labels)

    def _start_anew(self) -> None:
        """On another structure, from the labels so far."""
        labels = self._as_before(self.result(trace=False, dual=False).labels)
        self.settings = dataclasses.replace(self.settings, start_time=clock.now())
        self._engine = self._make_engine()
        if labels is not None:
            self.offer(labels)

    def _as_before(self, labels: NDArray[np.int32] | None) -> NDArray[np.int32] | None:
        """Labels of the graph as it was; variables that have come since have their first one."""
        if labels is None or len(labels) > self.graph.n_variables:
            return None
        return np.append(labels, np.zeros(self.graph.n_variables - len(labels), np.int32))


def _restore(graph: FactorGraph, settings: Settings, known: Result) -> Solver:
    s = settings
    return Solver(
        graph,
        s.method,
        gap=s.gap,
        seed=s.seed,
        threads=s.threads,
        max_iterations=s.max_iterations,
        cutoff=s.cutoff,
        warm_start=known,
        **s.options,
    )
