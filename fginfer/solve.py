"""solve(): find the best labeling of a graph."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from os import PathLike
from typing import Any, Unpack

from numpy.typing import ArrayLike

from fginfer.condition import Conditioned
from fginfer.core import clock
from fginfer.core.door import VERSION
from fginfer.errors import SettingsError
from fginfer.formats import read, read_evidence
from fginfer.graph import FactorGraph
from fginfer.log import RunLog, logger, model_line, start_line
from fginfer.notebook import watched
from fginfer.options import Options, check_flags, is_number
from fginfer.parts.plan import PartsPlan
from fginfer.result import Result
from fginfer.solver import Callback, Solver, check_seconds

MOST_COPYING = 0.2  # part of a time limit, left for the copy of the messages
SOON = 0.01  # seconds: a limit is not missed by it


def solve(
    graph: FactorGraph | str | PathLike[str],
    method: str | None = None,
    *,
    evidence: Mapping[Any, Any] | str | PathLike[str] | None = None,
    time_limit: float | None = None,
    gap: float = 1e-6,
    seed: int = 0,
    threads: int = 1,
    max_iterations: int | None = None,
    cutoff: float | None = None,
    warm_start: Result | ArrayLike | None = None,
    callback: Callback | None = None,
    trace: bool = True,
    dual: bool = True,
    verbose: bool = False,
    on_interrupt: str = "raise",
    parts: int | ArrayLike | None = None,
    client: Any = None,
    security: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    resume: bool = False,
    proof: str | PathLike[str] | None = None,
    **options: Unpack[Options],
) -> Result:
    """The best labeling found, with an upper bound on the optimum.

    graph           a FactorGraph, or the name of a model file
    method          a name of fginfer.available_methods(); None chooses
    evidence        variables that are known, {variable: label} or a UAI evidence file; the result has their labels, too
    time_limit      seconds, set-up included; None: until done
    gap             stop when max(0, bound - score) / max(|score|, unit) is at most this; unit: see Result
    seed            the answer depends on it, never on threads
    threads         how many threads work at once
    max_iterations  the most iterations of the method; None: no limit
    cutoff          only labelings with a score above it are wanted; if there is none, the status is infeasible
    warm_start      an earlier Result, or a labeling
    callback        called with a Progress some twenty times a second; a true return value ends the run
    trace           False leaves out the trace, which takes memory on large models
    dual            False leaves out marginals and messages, which take more; they are also left out where their copy
                    alone would take longer than the time limit (20 ns per number)
    verbose         prints the log of the run to stderr; in a notebook, as plain text below a bar that moves
    on_interrupt    "raise": Ctrl-C (Stop in a notebook) raises KeyboardInterrupt; "return": it ends the run, and the
                    Result has what was found, with the status "interrupted"
    parts           solves the model in so many parts, for sizes that one process does not hold; or the part of each
                    variable. Each is solved by trws, or by `method` "gdmm" or "auto" (trws, then proofs of the parts).
                    The answer depends on the parts, not on who works on them
    client          a dask.distributed.Client, or the address of a scheduler: the parts live on its workers. `security`
                    is for an address that begins with tls://
    memory          with a Sharded model and no client: bytes for the parts in memory; the others wait on disk
    checkpoint      a folder in which a solve in parts saves its rounds; `resume` continues from there
    proof           a file that gets a proof of what the result claims, for `fginfer verify`: see docs/proofs.md
    options         options of the method, for instance rho or damping

    >>> from fginfer import FactorGraph, Potts
    >>> chain = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]], [[0, 1]], tables=[Potts(0, -1)])
    >>> solve(chain).labels.tolist()
    [1, 1]

    Limits return the best so far with a status that says so; they never raise. A method that fails after it has found a
    labeling gives a RuntimeWarning and the status "failed". `logging.basicConfig(level="INFO")` shows the log of every
    run.
    """
    start = clock.now()
    time_limit = check_seconds("time_limit", time_limit)
    check_flags(trace=trace, dual=dual, verbose=bool(verbose) if is_number(verbose, whole=True) else verbose)
    if not isinstance(graph, FactorGraph):
        graph, parts = _sharded(graph, parts, evidence)
    plan = _plan(parts, client, security, checkpoint, resume)
    if on_interrupt not in ("raise", "return"):
        raise SettingsError(f'on_interrupt must be "raise" or "return", not {on_interrupt!r}')
    if proof is not None and plan is not None:
        raise SettingsError("a solve in parts writes no proof")
    if proof is not None and evidence is not None:
        raise SettingsError("a proof is about a whole model: write graph.condition(evidence).graph to a file first")
    with watched(callback, time_limit) if verbose else nullcontext(callback) as told:
        graph, given = _model(graph, evidence)
        result = _solve(
            graph,
            method,
            plan,
            start,
            time_limit,
            told,
            trace,
            dual,
            on_interrupt == "return",
            gap=gap,
            seed=seed,
            threads=threads,
            max_iterations=max_iterations,
            cutoff=cutoff,
            warm_start=_restricted(warm_start, given),
            proof=proof,
            **options,
        )
    return result if given is None else given.expand_result(result)


def _plan(parts: Any, client: Any, security: Any, checkpoint: Any, resume: bool) -> PartsPlan | None:
    """How to solve in parts, if that is asked for."""
    folder = None if checkpoint is None else os.fspath(checkpoint)
    plan = PartsPlan(parts, client, security, folder, resume)
    plan.check()
    if parts is None and client is None:
        if folder is not None:
            raise SettingsError("a checkpoint is of a solve in parts: say how many with parts=")
        return None
    return plan


def _sharded(graph: Any, parts: Any, evidence: Any) -> tuple[Any, Any]:
    """A model that is in parts already, or a folder of such parts; others as they are."""
    from fginfer.parts.sharded import Sharded

    if isinstance(graph, str | PathLike) and os.path.isdir(graph):
        graph = Sharded.open(graph)
    if not isinstance(graph, Sharded):
        return graph, parts
    if evidence is not None:
        raise SettingsError("evidence is for a model in one piece: leave the variables out of the parts")
    if parts is not None and parts != graph.n_parts:
        raise SettingsError(f"the model has {graph.n_parts} parts already; parts= is for models in one piece")
    return graph, graph.n_parts


def _model(
    graph: FactorGraph | str | PathLike[str], evidence: Mapping[Any, Any] | str | PathLike[str] | None
) -> tuple[FactorGraph, Conditioned | None]:
    """The graph to be solved; with evidence the smaller one, and the way back."""
    if isinstance(graph, str | PathLike):
        graph = read(graph)
    if type(graph).__name__ == "Sharded":
        return graph, None
    if not isinstance(graph, FactorGraph):
        raise SettingsError(f"solve takes a FactorGraph or the name of a model file, not {type(graph).__name__}")
    if evidence is None:
        return graph, None
    observed = read_evidence(evidence, graph) if isinstance(evidence, str | PathLike) else evidence
    given = graph.condition(observed)
    return given.graph, given


def _restricted(start: Result | ArrayLike | None, given: Conditioned | None) -> Result | ArrayLike | None:
    """A warm start of the whole graph, for the variables that are free."""
    if start is None or given is None:
        return start
    labels = start.labels if isinstance(start, Result) else start
    return None if labels is None else given.reduce(labels)


def _solve(
    graph: FactorGraph,
    method: str | None,
    plan: PartsPlan | None,
    start: float,
    time_limit: float | None,
    callback: Callback | None,
    trace: bool,
    dual: bool,
    keep: bool,
    /,
    **settings: Any,
) -> Result:
    if plan is None:
        solver = Solver(graph, method, start_time=start, **settings)
    else:
        from fginfer.parts.solver import PartsSolver

        solver = PartsSolver(graph, plan, method, start_time=start, **settings)
    try:
        result = finish(solver, start, time_limit, callback, trace, dual, keep)
        return result if settings.get("proof") is None else replace(result, proof=solver.prove())
    finally:
        if plan is not None:
            solver.close()


def finish(
    solver: Solver,
    start: float,
    time_limit: float | None,
    callback: Callback | None,
    trace: bool,
    dual: bool,
    keep: bool = False,
) -> Result:
    """Runs a solver for a time, and asks for its result; `keep`: after Ctrl-C, too."""
    graph, end = solver.graph, None
    if time_limit is not None:
        end = start + time_limit
        copying = solver.seconds_to_copy()
        dual = dual and (copying <= time_limit or copying < SOON)
        if dual:
            end -= min(copying, MOST_COPYING * max(0.0, end - clock.now()))
    log = RunLog(solver.settings.method) if logger.isEnabledFor(logging.INFO) else None
    if log is not None:
        logger.info(start_line(VERSION, solver.settings.method, solver.settings.threads, solver.settings.seed))
        logger.info(model_line("", graph.n_variables, graph.n_factors, graph.max_labels, graph.table_entries))
        callback = log.before(callback)
    with _keeping_what_was_found(solver), suppress(KeyboardInterrupt) if keep else nullcontext():
        if end is None:
            solver.run(None, None, callback)
        else:
            solver.run_until(end, callback)
    result = solver.result(trace, dual)
    if log is not None:
        log.end(solver.progress(), result)
    return result


@contextmanager
def _keeping_what_was_found(solver: Solver) -> Iterator[None]:
    """If the method fails after it has found a labeling, warns, and what it has found is not lost."""
    try:
        yield
    except Exception as error:
        if solver.status != "failed" or solver.progress().score is None:
            raise
        text = f"{solver.settings.method} failed with {error!r}; the result is what it had found until then"
        warnings.warn(text, RuntimeWarning, stacklevel=6)  # where solve was called
