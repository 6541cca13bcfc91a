"""solve_batch against solve, model by model."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from fginfer import FactorGraph, ModelError, Potts, SettingsError, solve, solve_batch


def ring(n: int, labels: int, rng: np.random.Generator) -> tuple[FactorGraph, object]:
    graph = FactorGraph([labels] * n)
    table = graph.add_table(rng.normal(size=(labels, labels)))
    for i in range(n):
        graph.add_factor([i, (i + 1) % n], table)
        graph.add_factor([i, (i + 3) % n], Potts(0, float(rng.normal())))
    return graph, table


@pytest.mark.parametrize(("own_unaries", "own_tables"), [(True, False), (False, True), (True, True)])
def test_each_model_is_solved(own_unaries: bool, own_tables: bool) -> None:
    rng = np.random.default_rng(int(own_unaries) + 2 * int(own_tables))
    graph, table = ring(7, 3, rng)
    graph.set_unaries(rng.normal(size=(7, 3)))
    n = 150
    unaries = rng.normal(size=(n, 7, 3)) * rng.choice([1.0, 100.0], size=(n, 1, 1)) if own_unaries else None
    values = rng.normal(size=(n, 3, 3)) if own_tables else None
    if unaries is not None:
        unaries[5, 2] = [-inf, 0.0, 0.0]
        unaries[6, 2] = -inf
    tables = None if values is None else {table: values}
    found = solve_batch(graph, unaries, tables)  # type: ignore[arg-type]
    several = solve_batch(graph, unaries, tables, threads=3)  # type: ignore[arg-type]
    assert np.array_equal(found.labels, several.labels)
    assert np.array_equal(found.bounds, several.bounds)
    assert len(found) == n
    for k in range(n):
        if unaries is not None:
            graph.set_unaries(unaries[k])
        if values is not None:
            graph.set_table(table, values[k])  # type: ignore[arg-type]
        alone = solve(graph, gap=0.0)
        assert found.statuses[k] == alone.status
        if alone.status == "infeasible":
            assert found.scores[k] == -inf
            continue
        assert found.scores[k] == graph.score(found.labels[k])
        assert found.scores[k] == pytest.approx(alone.score, rel=1e-11)
        assert found.scores[k] <= found.bounds[k] <= found.scores[k] + 1e-9 * max(1, abs(found.scores[k]))


def test_rounding_keeps_none_from_being_proven() -> None:
    """Two of these have scores so near 0 that branch and bound ends above the tolerance."""
    rng = np.random.default_rng(0)
    chain = FactorGraph.from_arrays([3] * 20, edges=[[i, i + 1] for i in range(19)], tables=[Potts(0, -0.5)])
    unaries = rng.normal(size=(20000, 20, 3))
    found = solve_batch(chain, unaries)
    assert set(found.statuses) == {"optimal"}
    row = int(np.abs(found.scores).argmin())
    chain.set_unaries(unaries[row])
    assert found.scores[row] == chain.score(found.labels[row])


def test_what_is_refused() -> None:
    rng = np.random.default_rng(0)
    graph, table = ring(5, 2, rng)
    good = np.zeros((4, 5, 2))
    bad = good.copy()
    bad[3, 1, 0] = np.nan
    for arguments, error, match in (
        ((bad,), ModelError, "model 3"),
        ((good[:, :4],), ModelError, "shape"),
        ((good, {table: np.zeros((3, 2, 2))}), ModelError, "row per model"),
        ((good, {table: np.zeros((4, 2, 3))}), ModelError, "shape"),
        ((), SettingsError, "give unaries"),
        (([[1.0], [2.0, 3.0]],), ModelError, "numbers"),
        ((good, {99: np.zeros((4, 2, 2))}), ModelError, "no table 99"),
    ):
        with pytest.raises(error, match=match):
            solve_batch(graph, *arguments)  # type: ignore[arg-type]
    with pytest.raises(SettingsError):
        solve_batch([graph], good)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="threads"):
        solve_batch(graph, good, threads=0)
    assert len(solve_batch(graph, good[:0])) == 0
    assert solve_batch(graph, good).statuses == ["optimal"] * 4
