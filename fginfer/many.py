"""solve_many(): many models, on several threads; models of one structure may follow each other, each from the last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.cluster import cluster_map
from fginfer.core import clock
from fginfer.core.arrays import ModelArrays, owners
from fginfer.crew import Crew
from fginfer.errors import FginferError, ModelError, SettingsError
from fginfer.from_arrays import unary_array
from fginfer.graph import FactorGraph
from fginfer.options import check_flag, check_whole
from fginfer.result import Progress, Result
from fginfer.solve import finish, solve
from fginfer.solver import Callback, Solver, check_seconds
from fginfer.tables import TableRef

BLOCK = 32  # models that follow each other; the next one begins anew, whoever solves it (chosen)
Rows = ArrayLike | Sequence[ArrayLike]
Change = Callable[[FactorGraph], None]


def solve_many(
    graphs: Iterable[FactorGraph] | FactorGraph,
    method: str | None = None,
    *,
    unaries: Rows | None = None,
    tables: Mapping[int | TableRef, Rows] | None = None,
    warm: bool = False,
    workers: int | None = None,
    client: Any = None,
    security: Any = None,
    **settings: Any,
) -> list[Result]:
    """Solves many models on a pool of threads (the core works outside the interpreter lock); results in order.

    graphs    independent graphs; or one, with numbers for each model in `unaries` and `tables`
    unaries   all unary scores of each model: an array with a leading axis of models, or a sequence of arrays
    tables    dense tables by their handles or numbers, each with such an axis
    warm      the models have one structure, and neighbours in the list are alike: each begins from the messages and
              labels of the one before, and pays for what has changed. Scores and proofs are those of `solve`; of
              labelings that are equally good another one may be found
    workers   how many models at once; results do not depend on it
    settings  those of solve

    With a `client` (a dask.distributed.Client, or the address of a scheduler) the graphs are spread over a cluster;
    what a lost worker had under way is done again by another one. There is no callback then. `security`, a
    distributed.Security, has the certificates for an address that begins with tls://. Results come back as pickles,
    which can run any code: a cluster must be one that you trust.

    >>> from fginfer import FactorGraph, Potts
    >>> chains = [FactorGraph.from_arrays([2, 2], [[0, a], [1, 0]], [[0, 1]], tables=[Potts(0, -2)]) for a in (0.5, 3)]
    >>> [result.labels.tolist() for result in solve_many(chains, workers=2)]
    [[0, 0], [1, 1]]
    >>> [result.score for result in solve_many(chains[0], unaries=[[0, 0.5, 1, 0], [0, 3, 1, 0]], warm=True)]
    [1.0, 3.0]
    """
    _check(graphs, unaries, tables, warm, workers, client, security, settings)
    if isinstance(graphs, FactorGraph):
        jobs = _blocks_of_rows(graphs, unaries, dict(tables or {}), warm)
    elif client is not None:
        if settings.get("callback") is not None:
            raise SettingsError("a callback cannot be called from the workers of a cluster")
        work = partial(_solve_there, method, settings)
        answers = dict(cluster_map(work, list(graphs), client, security))
        return [answers[k] for k in range(len(answers))]
    else:
        jobs = _blocks_of_graphs(list(graphs), warm)
    return _on_threads(jobs, method, workers or os.cpu_count() or 1, settings)


def _check(
    graphs: Any,
    unaries: Any,
    tables: Any,
    warm: Any,
    workers: Any,
    client: Any,
    security: Any,
    settings: dict[str, Any],
) -> None:
    if settings.get("proof") is not None:
        raise SettingsError("solve_many writes no proofs: one file cannot hold those of many graphs")
    has_rows = unaries is not None or bool(tables)
    if isinstance(graphs, str | PathLike) or (isinstance(graphs, FactorGraph) and not has_rows):
        raise SettingsError(
            "solve_many takes a list of graphs; solve takes one, solve_many one with unaries= or tables= for each "
            "model, solve_batch very many small ones"
        )
    if has_rows and not isinstance(graphs, FactorGraph):
        raise SettingsError("unaries and tables are numbers for one graph, not for a list of graphs")
    check_flag("warm", warm)
    if workers is not None:
        check_whole("workers", workers)
        if workers < 1:
            raise SettingsError(f"workers must be at least 1, or None for one a core, not {workers}")
    if client is None and security is not None:
        raise SettingsError("security is for a cluster: give the address of a scheduler as client")
    if client is not None and (warm or has_rows):
        raise SettingsError("models that follow each other, or come as arrays, are solved here: leave out the client")
    if warm:
        strange = {"evidence", "parts", "checkpoint", "resume", "warm_start"} & {k for k, v in settings.items() if v}
        if strange:
            raise SettingsError(f"{sorted(strange)[0]} does not go with warm=True")


# -- models that follow each other ---------------------------------------------------------------------------------


class _Block:
    """A graph of our own, and what to do to it before each solve."""

    def __init__(self, first: int, begin: Callable[[], FactorGraph], changes: list[Change]) -> None:
        self.first, self.begin, self.changes = first, begin, changes

    def solve(self, method: str | None, callback: Callback, settings: dict[str, Any]) -> list[Result]:
        given = dict(settings)
        time_limit = check_seconds("time_limit", given.pop("time_limit", None))
        trace, dual = given.pop("trace", True), given.pop("dual", True)
        graph, solver, out = self.begin(), None, list[Result]()
        for k, change in enumerate(self.changes, self.first):
            start = clock.now()
            try:
                change(graph)
            except FginferError as error:
                raise type(error)(f"model {k}: {error}") from None
            if len(self.changes) == 1:
                return [solve(graph, method, callback=callback, **settings)]
            if solver is None:
                solver = Solver(graph, method, start_time=start, **given)
            else:
                solver.update()
            out.append(finish(solver, start, time_limit, callback, trace, dual))
        if solver is not None:
            solver.close()
        return out


def _blocks_of_rows(graph: FactorGraph, unaries: Any, tables: dict[int | TableRef, Any], warm: bool) -> list[_Block]:
    given = {"unaries": unaries, **{f"table {table!r}": values for table, values in tables.items()}}
    lengths = {what: _length(what, values) for what, values in given.items() if values is not None}
    if len(set(lengths.values())) != 1:
        raise ModelError(f"there must be as many models in all arrays, not {lengths}")
    n, size = next(iter(lengths.values())), BLOCK if warm else 1

    def put(k: int, to: FactorGraph) -> None:
        if unaries is not None:
            _put_unary(to, unary_array(to.cards, unaries[k], to.names))
        for table, values in tables.items():
            _put_table(to, table, values[k])

    return [
        _Block(first, graph.copy, [partial(put, k) for k in range(first, min(first + size, n))])
        for first in range(0, n, size)
    ]


def _length(what: str, values: Any) -> int:
    try:
        return len(values)
    except TypeError:
        raise ModelError(f"{what} must be an array or a sequence with an entry per model") from None


def _blocks_of_graphs(graphs: list[FactorGraph], warm: bool) -> list[_Block]:
    for k, graph in enumerate(graphs):
        if not isinstance(graph, FactorGraph):
            raise SettingsError(f"solve_many takes FactorGraphs; number {k} is a {type(graph).__name__}")
    if not warm:
        return [_Block(k, lambda graph=graph: graph, [_nothing]) for k, graph in enumerate(graphs)]  # type: ignore[misc]
    blocks = []
    for first in range(0, len(graphs), BLOCK):
        some = graphs[first : first + BLOCK]
        blocks.append(_Block(first, some[0].copy, [partial(_become, source=graph) for graph in some]))
    return blocks


def _nothing(graph: FactorGraph) -> None:
    del graph


_STRUCTURE = ("cards", "table_kind", "table_arity", "dims", "factor_table", "factor_transposed", "var_begin", "vars")
_SCALES = ("params", "factor_weight", "leftover_var", "leftover")


def _become(graph: FactorGraph, source: FactorGraph) -> None:
    """Gives a graph the numbers of another one with the same factors."""
    with source.lock:
        rules, cutoff, new = source.rules, source.cutoff, source.table_snapshot()
    old = graph.table_snapshot()
    a, b = ModelArrays.of_model(old), ModelArrays.of_model(new)
    if not old.same_structure(new):
        if not all(_same(getattr(a, name), getattr(b, name)) for name in _STRUCTURE):
            raise ModelError(
                "it has other variables or factors than the models before it; warm=True wants one structure"
            )
        if a.constant != b.constant or not all(_same(getattr(a, name), getattr(b, name)) for name in _SCALES):
            raise ModelError("it has other weights or parameters than the models before it; give tables that differ")
    elif new.has_leftovers or old.has_leftovers:
        raise ModelError(
            "unary scores of the models were rounded when they were added up: solve them without warm=True"
        )
    if rules != graph.rules:
        raise ModelError("it has other constraints than the models before it; warm=True wants one structure")
    graph.cutoff = cutoff
    assert b.unary is not None
    _put_unary(graph, np.array(b.unary))
    begin = b.values_begin()
    for table in np.flatnonzero(b.is_dense()).tolist():
        mine, yours = a.values[begin[table] : begin[table + 1]], b.values[begin[table] : begin[table + 1]]
        if not np.array_equal(mine, yours):
            graph.set_table(table, np.array(yours))


def _same(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _put_unary(graph: FactorGraph, scores: NDArray[np.float64]) -> None:
    """What differs is told, so that solvers work there alone."""
    before = ModelArrays.of_model(graph.table_snapshot()).unary
    assert before is not None
    entries = np.flatnonzero(before != scores)
    if len(entries) > len(scores) // 4:
        graph.set_unaries(scores)
    elif len(entries):
        begin = np.concatenate(([0], np.cumsum(graph.cards, dtype=np.int64)))
        owner = owners(begin)
        which = np.unique(owner[entries])
        chosen = np.zeros(graph.n_variables, bool)
        chosen[which] = True
        graph.set_unaries(scores[chosen[owner]], which.astype(np.int32))


def _put_table(graph: FactorGraph, table: int | TableRef, values: Any) -> None:
    before = graph.table(table)
    if not isinstance(before, np.ndarray) or not np.array_equal(before, values):
        graph.set_table(table, values)


# -- threads -------------------------------------------------------------------------------------------------------


def _on_threads(blocks: list[_Block], method: str | None, workers: int, settings: dict[str, Any]) -> list[Result]:
    stop, given = Event(), settings.pop("callback", None)

    def look(progress: Progress) -> bool:
        return stop.is_set() or bool(given is not None and given(progress))

    def one(block: _Block) -> list[Result]:
        if stop.is_set():
            raise KeyboardInterrupt  # nobody asks for this result any more
        return block.solve(method, look, settings)

    crew = Crew(workers)
    tasks = [crew.submit(partial(one, block)) for block in blocks]
    try:
        return [result for task in tasks for result in task.result()]
    finally:  # after an error or Ctrl-C the others end at their next slice
        stop.set()
        crew.close()
        for task in tasks:
            task.wait()


def _solve_there(method: str | None, settings: dict[str, Any], graph: FactorGraph) -> Result:
    return solve(graph, method, **settings)
