"""How gdmm begins where sweeps cost much: a look, sparse iterations on trial, sweeps (csrc/gdmm/opening.c)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer


def nearly_tight(seed: int, size: int = 80, places: int = 12, spoiled: int = 3, above: float = 0.1):
    """A labeling that has the best entry of every part but for a few tables that have a better one elsewhere."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, size, places)
    edges = np.argwhere(np.triu(rng.random((places, places)) < 0.5, 1))
    scores = rng.random((places, size))
    scores[np.arange(places), truth] = 2
    tables = [rng.random((size, size)) for _ in edges]
    for table, (a, b) in zip(tables, edges, strict=True):
        table[truth[a], truth[b]] = 1.0
    for table in tables[:spoiled]:
        table[rng.integers(size), rng.integers(size)] = 1.0 + above
    return fginfer.FactorGraph.from_arrays([size] * places, scores, edges, np.arange(len(edges)), tables)


def test_a_tight_first_bound_ends_the_run_before_anything_is_set_up():
    graph = nearly_tight(1, spoiled=0)
    swept = fginfer.solve(graph, "gdmm", sweep="on")
    r = fginfer.solve(graph, "gdmm")
    assert r.status == swept.status == "optimal"
    assert r.score == pytest.approx(swept.score)
    assert r.statistics["oracle_calls"] == r.statistics["sweep_entries"] == 0
    assert 4 * r.statistics["memory"] < swept.statistics["memory"]


def test_sparse_iterations_are_tried_and_sweeps_follow():
    graph = nearly_tight(1, places=20)
    r = fginfer.solve(graph, "gdmm", gap=1e-9)
    assert r.statistics["oracle_calls"] > 0, "the trial did not run"
    assert r.statistics["sweep_entries"] > 0, "no sweeps followed"
    assert r.status == "optimal"
    assert r.score == pytest.approx(fginfer.solve(graph, "gdmm", sweep="on", gap=1e-9).score)


def test_settings_that_name_a_way_are_obeyed():
    graph = nearly_tight(1, spoiled=3)
    assert fginfer.solve(graph, "gdmm", sweep="on").statistics["oracle_calls"] == 0
    sparse = fginfer.solve(graph, "gdmm", sweep="off", access="sorted", max_iterations=20)
    assert sparse.statistics["sweeps"] == sparse.statistics["sweep_entries"] == 0


@pytest.mark.parametrize("above", [0.01, 0.1, 3.0])
def test_slices_and_threads_change_nothing(above: float):
    graph = nearly_tight(2, places=20, above=above)
    seen = []
    for threads, seconds in ((1, None), (2, None), (1, 1e-4)):
        with fginfer.Solver(graph, "gdmm", gap=0.0, max_iterations=40, threads=threads) as solver:
            while solver.status == "running":
                solver.run(seconds=seconds)
            r = solver.result(dual=False)
        seen.append((r.score, r.bound, r.iterations, r.statistics["sweeps"], r.statistics["oracle_calls"]))
    assert seen[0] == seen[1] == seen[2]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 6), st.sampled_from([0.01, 0.3, 3.0]), st.booleans())
def test_bounds_hold_through_changes(seed: int, spoiled: int, above: float, forbid: bool):
    """Also when the numbers change in the middle, and from messages of an earlier run: a chain has an exact answer."""
    rng = np.random.default_rng(seed)
    size, places = 72, 5
    graph = nearly_tight(seed, size=size, places=places, spoiled=spoiled, above=above)
    with fginfer.Solver(graph, "gdmm", gap=0.0, max_iterations=60) as solver:
        for step in range(3):
            solver.run(iterations=int(rng.integers(1, 20)))
            r = solver.result()
            best = fginfer.solve(graph, "bnb", gap=0.0).score
            assert r.bound >= best - 1e-9 * abs(best)
            if r.score is not None:
                assert r.score == pytest.approx(graph.score(r.labels))
                assert r.score <= best + 1e-9 * abs(best)
            scores = np.array(graph.unary(step)) + rng.normal(0, 0.5, size)
            if forbid:
                scores[rng.integers(size)] = -np.inf
            graph.set_unary(step, scores)
            solver.update()
    again = fginfer.solve(graph, "gdmm", gap=0.0, max_iterations=60, warm_start=r)
    best = fginfer.solve(graph, "bnb", gap=0.0).score
    assert again.bound >= best - 1e-9 * abs(best)


def test_more_messages_than_have_room_are_swept():
    """20.2 million message labels: beyond them gdmm had sparse iterations only."""
    size, places = 1000, 10100
    apart = np.abs(np.arange(size)[:, None] - np.arange(size)).astype(float)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(places, size)).astype(np.float32).astype(float)
    edges = np.column_stack([np.arange(places - 1), np.arange(1, places)])
    graph = fginfer.FactorGraph.from_arrays([size] * places, scores, edges, tables=[-np.minimum(apart, 20.0) / 4])
    r = fginfer.solve(graph, "gdmm", max_iterations=1, dual=False)
    assert r.statistics["sweeps"] >= 1 or r.status == "optimal"
    assert r.statistics["oracle_calls"] == 0
    assert r.bound >= r.score
