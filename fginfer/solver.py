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

from numpy.typing import ArrayLike

from fginfer.core import clock
from fginfer.engine import NativeEngine, Settings
from fginfer.errors import SettingsError, SolverError
from fginfer.follower import Follower
from fginfer.graph import FactorGraph
from fginfer.methods import default_method, make_engine
from fginfer.options import Options, check_flags, check_settings, check_whole
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


class Solver(Follower):
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
        self.settings = Settings(
            default_method() if method is None else method,
            min(gap, float_info.max),  # that of a missing bound or labeling, inf, is never reached
            seed,
            threads,
            max_iterations,
            -inf,
            self._start,
            dict(options),
        )
        self._least = -inf if cutoff is None else float(cutoff)
        self._lock = RLock()
        self._at_work = False  # inside a slice
        self._process = os.getpid()
        self._proves = proof is not None
        self._take(graph)
        self._status = "running"
        self._stopped_by = "time_limit"  # why work paused while the method itself could go on
        self._prover = None if proof is None else Prover(proof, self._tables, self._unproven)
        if self._prover is not None and self._native and self.settings.cutoff == -inf:
            self._prover.listen(self._engine.native)
        self._seconds = clock.now() - self._start
        if warm_start is not None:
            self.warm_start(warm_start)

    @staticmethod
    def _check_graph(graph: Any) -> None:
        if not isinstance(graph, FactorGraph):
            raise SettingsError(f"Solver takes a FactorGraph, not {type(graph).__name__}; fginfer.read reads a file")

    def _make_engine(self, tables: FactorGraph, settings: Settings) -> Any:
        return make_engine(tables, settings)

    def __repr__(self) -> str:
        state = "closed" if self._engine is None else self._status
        return f"<Solver: {self.settings.method} on {self.graph!r}, {state}>"

    def __reduce__(self) -> Any:
        """A copy elsewhere starts from the labels and messages found so far; its trace and iterations start anew."""
        known = dataclasses.replace(self.result(trace=False), marginals=None)
        if not self._is_up_to_date():
            known = dataclasses.replace(known, labels=self._for_graph(known.labels), messages=None)
        return _restore, (self.graph, dataclasses.replace(self.settings, start_time=-1.0, cutoff=self._least), known)

    def __enter__(self) -> Solver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees what the method holds; the solver cannot be used afterwards.

        >>> solver = Solver(FactorGraph([2, 2]))
        >>> solver.close()
        """
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

        >>> solver = Solver(FactorGraph.grid((5, 5), np.eye(25, 2).reshape(5, 5, 2), Potts(0, -0.3)), "trws")
        >>> solver.run(seconds=10) != "running"
        True
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

    @property
    def _native(self) -> bool:
        """Whether the method at work is one of the core: changes of the graph may bring another engine."""
        return isinstance(self._engine, NativeEngine)

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
        """A short look at where it stands.

        >>> Solver(FactorGraph.from_arrays([2], [[0.0, 1.0]])).progress().seconds < 10
        True
        """
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
        """The best labeling and bound so far. `trace` and `dual` (marginals, messages) may be left out.

        >>> solver = Solver(FactorGraph.from_arrays([2], [[0.0, 1.0]]))
        >>> state = solver.run()
        >>> solver.result().labels.tolist(), solver.result().status
        ([1], 'optimal')
        """
        check_flags(trace=trace, dual=dual)
        with self._locked():
            found = self._result(self._stopped_by if self._status == "running" else self._status, trace, dual)
            if self._prover is not None:
                found = dataclasses.replace(found, proof=self._prover.said)
            if self._lowered is not None:
                found = self._lowered.result(found, self._cutoff, self.settings.gap)
            return found if self._names is None else dataclasses.replace(found, names=self._names)

    def _found(self) -> Result:
        return self.result(trace=False, dual=False)

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

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: ArrayLike) -> None:
        """A labeling from elsewhere: kept if it is better than what is known, and used as a start where possible.

        Raises ModelError for a labeling of another length.

        >>> solver = Solver(FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]]))
        >>> solver.offer([1, 0])
        >>> solver.result().score
        1.5
        """
        with self._locked():
            self._opened()
            self._offer(labels)

    def warm_start(self, start: Result | ArrayLike) -> None:
        """Starts from an earlier result (its labels, and its messages where both methods have them) or a labeling.

        >>> graph = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]])
        >>> solver = Solver(graph, "trws")
        >>> solver.warm_start(solve(graph, "trws"))
        """
        if not isinstance(start, Result):
            self.offer(start)
            return
        with self._locked():
            labels = None if start.labels is None else self._check_labels(start.labels)  # before anything changes
            if start.messages is not None:
                self._opened().warm_start(start.messages)
            if labels is not None:
                self.offer(labels)

    def update(self) -> None:
        """Takes what the graph is now (numbers, factors, constraints, names, cutoff), and goes on from the messages and
        the labeling it has. Until then changes of the graph are not seen. Where the method refuses the graph, all stays
        as it was.

        The trace and the iteration count start again. What a change costs follows how much it changes, where the method
        can; factors and variables that have come or gone mean a new start from the labels.

        >>> graph = FactorGraph.from_arrays([2], [[0.0, 1.0]])
        >>> solver = Solver(graph)
        >>> graph.set_unary(0, [3.0, 1.0])
        >>> solver.update()
        >>> state = solver.run()
        >>> solver.result().labels.tolist()
        [0]
        """
        with self._locked(), self.graph.lock:
            self._opened()
            if self._prover is not None:
                raise SolverError("a proof is about the numbers that the solver was made with; make a new one")
            began = clock.now()
            self._look_again()
            self._status = "running"
            self._seconds = clock.now() - began


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
