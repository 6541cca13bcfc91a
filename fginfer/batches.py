"""solve_batch: very many small models of one structure, in one call of the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.keeper import batch_solve
from fginfer.core.solver import STATUSES
from fginfer.errors import ModelError, SettingsError
from fginfer.graph import FactorGraph
from fginfer.options import check_number, check_whole
from fginfer.solve import solve
from fginfer.tables import TableRef


@dataclass(frozen=True)
class BatchResult:
    """An answer per model: row k of each array is about model k. Rows of infeasible models have no labels (all 0)."""

    labels: NDArray[np.int32]
    scores: NDArray[np.float64]
    bounds: NDArray[np.float64]
    codes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def statuses(self) -> list[str]:
        """ "optimal", "gap_reached" or "infeasible", as in a Result."""
        return [STATUSES[code] for code in self.codes.tolist()]


def solve_batch(
    graph: FactorGraph,
    unaries: ArrayLike | None = None,
    tables: Mapping[int | TableRef, ArrayLike] | None = None,
    *,
    gap: float = 0.0,
    threads: int = 1,
) -> BatchResult:
    """Solves many models with the factors of one graph, each with numbers of its own; there is no Python per model.

    graph    its structure, and every number that is not given below
    unaries  (models, sum of all label counts), or (models, variables, labels) where all variables have as many
    tables   dense tables by their handles or numbers, each (models, shape of the table)
    gap      each is solved until its relative gap is at most this
    threads  how many threads work at once; results do not depend on it

    Meant for models of tens of variables: each is solved to the end, by local steps from the messages of the one before
    and, where these do not prove it, by branch and bound. A bad number anywhere raises before anything is solved.

    >>> from fginfer import FactorGraph, Potts, solve_batch
    >>> pair = FactorGraph.from_arrays([2, 2], edges=[[0, 1]], tables=[Potts(0, -2)])
    >>> found = solve_batch(pair, [[[0, 0.5], [1, 0]], [[0, 3], [1, 0]]])
    >>> found.labels.tolist(), found.scores.tolist(), found.statuses
    ([[0, 0], [1, 1]], [1.0, 3.0], ['optimal', 'optimal'])
    """
    if not isinstance(graph, FactorGraph):
        raise SettingsError(f"solve_batch takes one FactorGraph and arrays, not {type(graph).__name__}")
    check_whole("threads", threads)
    if not 1 <= threads <= 1024:
        raise SettingsError(f"threads must be 1 to 1024, not {threads}")
    check_number("gap", gap, "a number, 0 or more", least=0)
    if unaries is None and not tables:
        raise SettingsError("give unaries, tables or both: each with a row per model")
    model = graph.snapshot()
    if unaries is None and model.has_leftovers:
        raise ModelError("unary scores of this graph were rounded when they were added up; give unaries as well")
    rows = None if unaries is None else _rows(unaries, "unaries", (model.n_labels,), graph)
    numbers, blocks = list[int](), list[NDArray[np.float64]]()
    for table, values in (tables or {}).items():
        stored = graph.table(table)
        if not isinstance(stored, np.ndarray):
            raise ModelError(f"table {table!r} is a {type(stored).__name__}; only dense tables can differ")
        numbers.append(graph.table_number(table))
        blocks.append(_rows(values, f"table {table!r}", stored.shape, graph))
    lengths = {len(block) for block in ([] if rows is None else [rows]) + blocks}
    if len(lengths) != 1:
        raise ModelError(f"all arrays must have a row per model, not {', '.join(map(str, sorted(lengths)))}")
    if len(set(numbers)) < len(numbers):
        raise ModelError("a table is given twice")
    order = np.array(numbers, np.int32)
    joined = np.concatenate(blocks, axis=1) if blocks else None
    found = BatchResult(*batch_solve(model, lengths.pop(), rows, order, joined, float(gap), threads))
    for item in np.flatnonzero(found.codes == STATUSES.index("converged")).tolist():
        own = {table: np.asarray(values)[item] for table, values in (tables or {}).items()}
        _solve_again(graph.copy(), found, item, None if rows is None else rows[item], own, gap)
    return found


def _solve_again(
    graph: FactorGraph,
    found: BatchResult,
    item: int,
    unaries: NDArray[np.float64] | None,
    tables: Mapping[int | TableRef, ArrayLike],
    gap: float,
) -> None:
    """One of the few whose search was complete, with a bound that rounding kept from being a proof."""
    if unaries is not None:
        graph.set_unaries(unaries)
    for table, values in tables.items():
        graph.set_table(table, values)
    result = solve(graph, gap=gap, warm_start=found.labels[item])
    if result.labels is not None and result.score is not None and result.bound is not None:
        found.labels[item], found.scores[item], found.bounds[item] = result.labels, result.score, result.bound
        found.codes[item] = STATUSES.index(result.status)


def _rows(values: ArrayLike, what: str, shape: tuple[int, ...], graph: FactorGraph) -> NDArray[np.float64]:
    """One row per model; every number is a score."""
    try:
        given = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be numbers, in rows of as many") from None
    shapes = [shape]
    if what == "unaries" and graph.n_variables * graph.max_labels == shape[0]:
        shapes.append((graph.n_variables, graph.max_labels))
    if given.ndim < 1 or given.shape[1:] not in shapes:
        raise ModelError(f"{what} must have the shape (models, {', '.join(map(str, shapes[-1]))}), not {given.shape}")
    bad = np.isnan(given) | (given == np.inf)
    if bad.any():
        item = int(np.argwhere(bad)[0][0])
        raise ModelError(f"{what} of model {item} have a NaN or +inf; scores must be finite or -inf")
    return given.reshape(len(given), int(np.prod(shape)))
