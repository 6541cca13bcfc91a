"""Dense tables that depend on the distance of two labels alone: products read a band of them, with the same bits."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fginfer import AbsDiff, FactorGraph, Potts, Solver, SqDiff, solve
from fginfer.tables import ImplicitTable, expand

LABELS = 24


def image(table: NDArray[np.float64] | ImplicitTable, seed: int = 0) -> FactorGraph:
    rng = np.random.default_rng(seed)
    at = np.arange(30).reshape(5, 6)
    across, down = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in (across, down)])
    weights = rng.uniform(0.1, 2, len(edges))
    return FactorGraph.from_arrays(
        np.full(30, LABELS), rng.normal(size=(30, LABELS)), edges, tables=[table], weights=weights
    )


def entries(graph: FactorGraph, method: str) -> int:
    result = solve(graph, method=method, max_iterations=4, gap=0)
    return int(result.statistics["entries_touched"])


@pytest.mark.parametrize("method", ["trws", "mplp", "bp", "gdmm", "psdd", "ad3"])
@pytest.mark.parametrize("table", [AbsDiff(0.7, 3.5), SqDiff(0.3, 20), Potts(0.25, -0.5)], ids=str)
def test_a_band_has_the_bits_of_the_implicit_table(table: ImplicitTable, method: str) -> None:
    written, implicit = (
        solve(image(t), method=method, max_iterations=6, gap=0) for t in (expand(table, LABELS, LABELS), table)
    )
    np.testing.assert_array_equal(written.labels, implicit.labels)
    assert written.score == implicit.score
    assert written.bound == implicit.bound


@pytest.mark.parametrize("method", ["trws", "mplp", "gdmm"])
def test_a_band_is_less_work_than_the_table(method: str) -> None:
    near = expand(AbsDiff(1, 2), LABELS, LABELS)
    other = near.copy()
    other[-1, 0] -= 1e-9  # one entry that is not like the others of its distance
    assert entries(image(near), method) < 0.3 * entries(image(other), method)


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(lambda t: t.T @ np.diag(np.arange(LABELS)), id="rows differ"),
        pytest.param(lambda t: -t, id="far labels are better"),
        pytest.param(lambda t: np.triu(t, 1) - 3, id="one side only"),
    ],
)
def test_other_tables_are_read_whole_after_an_update(spoilt: object) -> None:
    near = expand(AbsDiff(1, 2), LABELS, LABELS)
    graph = image(near)
    solver = Solver(graph, method="trws")
    solver.run(iterations=2)
    table = spoilt(near)  # type: ignore[operator]
    graph.set_table(0, table)
    solver.update()
    solver.run(iterations=400)
    fresh = solve(image(table), method="trws", max_iterations=400)
    assert solver.result().bound == pytest.approx(fresh.bound, rel=1e-2)
    assert solver.result().bound >= solve(image(table), time_limit=20).score - 1e-9


@pytest.mark.parametrize("method", ["trws", "gdmm"])
def test_threads_share_bands_with_the_same_bits(method: str) -> None:
    labels, rng = 300, np.random.default_rng(5)
    chain = np.stack([np.arange(39), np.arange(1, 40)], 1)
    graph = FactorGraph.from_arrays(
        np.full(40, labels), rng.normal(size=(40, labels)), chain, tables=[expand(SqDiff(0.01, 200), labels, labels)]
    )
    one, two = (solve(graph, method=method, max_iterations=5, gap=0, threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert (one.score, one.bound, one.iterations) == (two.score, two.bound, two.iterations)
