"""Best labelings of a batch: by elimination of all items at once where it fits, else by a method item by item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.crew import Crew
from fginfer.errors import ModelError, SolverError
from fginfer.graph import FactorGraph
from fginfer.nn.plan import Plan
from fginfer.nn.scores import Scores
from fginfer.nn.sums import best_labels
from fginfer.solve import solve

Labels = NDArray[np.int32]

CHUNK_STATES = 1 << 21  # states of a table on the way, all items of a chunk: it should stay in the cache (chosen)


@dataclass
class Report:
    """How the last call went: items of the batch, and how many of their answers are proven to be what was asked for."""

    items: int = 0
    proven: int = 0
    by: str = ""
    iterations: int = 0
    warm: int = 0  # items that began with the answer of an earlier call


@dataclass
class Memory:
    """What was found for each key, from epoch to epoch."""

    found: dict[int, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def get(self, key: int | None) -> Any:
        with self.lock:
            return None if key is None else self.found.get(key)

    def put(self, key: int | None, value: Any) -> None:
        if key is not None:
            with self.lock:
                self.found[key] = value


def do_all(jobs: Sequence[Callable[[Event], Any]], threads: int) -> list[Any]:
    """All jobs on so many threads, results in order; after an error or Ctrl-C the others are told to stop."""
    stop = Event()
    if threads == 1 or len(jobs) < 2:
        return [job(stop) for job in jobs]
    crew = Crew(threads)
    tasks = [crew.submit(partial(job, stop)) for job in jobs]
    try:
        return [task.result() for task in tasks]
    finally:
        stop.set()
        crew.close()
        for task in tasks:
            task.wait()


def chunks(scores: Scores, states: int) -> Iterable[Scores]:
    """The batch in pieces whose tables on the way have at most CHUNK_STATES states."""
    step = max(1, CHUNK_STATES // max(1, states))
    for a in range(0, scores.batch, step):
        yield piece(scores, slice(a, a + step))


def piece(scores: Scores, rows: slice) -> Scores:
    def cut(x: Any) -> Any:
        return x if x is None or len(x) == 1 else x[rows]

    own = scores.unaries[rows]
    return Scores(scores.structure, own, cut(scores.tables), cut(scores.weights))


def by_elimination(scores: Scores, plan: Plan, threads: int) -> tuple[Labels, Report]:
    jobs = [lambda stop, part=part: best_labels(part, plan) for part in chunks(scores, plan.widest)]
    found = do_all(jobs, threads)
    values = np.concatenate([v for _, v in found]) if found else np.zeros(0)
    if np.isneginf(values).any():
        raise ModelError(f"item {int(np.argmax(np.isneginf(values)))}: no labeling is allowed")
    n = scores.structure.n_variables
    labels = np.concatenate([x for x, _ in found]) if found else np.zeros((0, n), np.int32)
    return labels, Report(scores.batch, scores.batch, "elimination")


def graph_of(scores: Scores, item: int) -> FactorGraph:
    """The model of one item."""
    s, unary = scores.structure, scores.row("unaries", item)
    if not s.n_factors:
        return FactorGraph.from_arrays(s.cards, unary)
    if scores.weights is not None and s.known is not None and len(s.by_arity) == 1:
        order = s.by_arity[0][0]
        given: dict[str, Any] = {
            "table_ids": s.table_ids[order],
            "tables": s.known,
            "weights": scores.row("weights", item)[order],
        }
        return FactorGraph.from_arrays(s.cards, unary, s.by_arity[0][1], **given)
    ids, shapes, values = s.table_ids, s.table_shapes, scores.row("tables", item)
    if scores.weights is not None:  # each factor gets a table of its own
        shapes = [s.table_shapes[t] for t in ids.tolist()]
        values = values[s.state_value] * scores.row("weights", item)[s.state_factor]
        ids = np.arange(s.n_factors)
    return FactorGraph.from_model_arrays(
        ModelArrays(
            cards=s.cards,
            unary=unary,
            table_arity=np.array([len(shape) for shape in shapes], np.int32),
            dims=np.array([d for shape in shapes for d in shape], np.int32),
            values=np.ascontiguousarray(values),
            factor_table=ids.astype(np.int32),
            var_begin=np.concatenate(([0], np.cumsum([len(x) for x in s.scopes], dtype=np.int64))),
            vars=np.array([v for x in s.scopes for v in x], np.int32),
        )
    )


def by_method(
    scores: Scores,
    method: str | None,
    threads: int,
    memory: Memory,
    keys: Sequence[int | None],
    settings: dict[str, Any],
) -> tuple[Labels, Report]:
    """One solve an item, from the labeling that its key had last."""
    report = Report(scores.batch, 0, method or "auto")

    def one(item: int, stop: Event) -> tuple[Labels, bool, int]:
        if stop.is_set():
            raise KeyboardInterrupt
        start = memory.get(keys[item])
        told = {"warm_start": start, "callback": lambda _: stop.is_set(), "trace": False, "dual": False}
        found = solve(graph_of(scores, item), method, **told, **settings)
        if found.labels is None:
            if found.status == "infeasible":
                raise ModelError(f"item {item}: no labeling is allowed")
            raise SolverError(f"item {item}: no labeling was found within the limits ({found.status})")
        memory.put(keys[item], found.labels)
        return found.labels, found.status == "optimal", start is not None

    done = do_all([partial(one, item) for item in range(scores.batch)], threads)
    report.proven, report.warm = sum(proven for _, proven, _ in done), sum(warm for _, _, warm in done)
    n = scores.structure.n_variables
    return np.array([x for x, _, _ in done], np.int32).reshape(scores.batch, n), report
