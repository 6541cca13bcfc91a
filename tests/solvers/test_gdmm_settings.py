"""gdmm as a user sees it: settings for what runs, and a result that says what did."""

from __future__ import annotations

import numpy as np
import pytest

import fginfer
from fginfer.log import end_line


def chain_of(k: int, n: int = 12, seed: int = 0) -> fginfer.FactorGraph:
    """One shared table, all of whose states are possible."""
    rng = np.random.default_rng(seed)
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    return fginfer.FactorGraph.from_arrays(
        [k] * n, rng.normal(size=(n, k)), edges, np.zeros(n - 1, np.int32), [rng.normal(size=(k, k))]
    )


def test_access_sweep_and_search_are_settings():
    graph = chain_of(40)
    best = fginfer.solve(graph, "trws").score
    runs = {
        (access, sweep, search): fginfer.solve(
            graph, "gdmm", access=access, sweep=sweep, search=search, gap=1e-5, max_iterations=3000
        )
        for access in ("sorted", "dense")
        for sweep in ("auto", "off")
        for search in ("auto", "off")
    }
    for (access, sweep, search), r in runs.items():
        s = r.statistics
        assert r.access == access
        assert r.bound >= best - 1e-6
        assert (s["sweeps"] > 0) == (sweep == "auto")
        assert (s["sweep_entries"] > 0) == (s["sweeps"] > 0)
        if s["oracle_calls"]:
            assert (s["scans"] == s["oracle_calls"]) == (access == "dense")
        if search == "off":
            assert s["search_operations"] == 0
            assert s["local_operations"] == 0
            assert r.found_by == ("sweep" if s["sweeps"] else "rounding")
        assert r.score == pytest.approx(best)
    with pytest.raises(fginfer.SettingsError, match="one of auto, sorted, dense"):
        fginfer.solve(graph, "gdmm", access="fast")


def test_access_is_chosen_by_cost():
    """Large shared tables are searched, tables of their own and small ones are read whole."""
    assert fginfer.solve(chain_of(1200, n=400), "gdmm", max_iterations=1).access == "sorted"
    assert fginfer.solve(chain_of(50, n=400), "gdmm", max_iterations=1).access == "dense"
    rng = np.random.default_rng(0)
    own = fginfer.FactorGraph([800] * 3)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        own.add_factor([i, j], rng.normal(size=(800, 800)))
    assert fginfer.solve(own, "gdmm", max_iterations=1).access == "dense"


def lattice_of(k: int, side: int = 4, seed: int = 0, loose: bool = False) -> fginfer.FactorGraph:
    """A grid with one table for both directions that falls with the distance of the labels (loose: random scores)."""
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    table = -0.05 * np.abs(np.arange(k)[:, None] - np.arange(k) - 3) + 0.01 * rng.normal(size=(k, k))
    if loose:
        table = rng.normal(size=(k, k))
    table[rng.random((k, k)) < 0.01] = -np.inf
    return fginfer.FactorGraph.from_arrays([k] * side**2, rng.normal(size=(side**2, k)), edges, tables=[table])


@pytest.mark.parametrize("loose", [False, True])
def test_sorted_reading_closes_what_dense_reading_closes(loose: bool):
    """Sweeps and then iterations with messages on all labels: bounds where labels are far from the best cost no sweep
    its worth, and the number of threads changes nothing."""
    runs = {
        (access, threads): fginfer.solve(
            lattice_of(200, side=3, loose=loose),
            "gdmm",
            access=access,
            gap=0.0,
            max_iterations=200,
            search="off",
            threads=threads,
        )
        for access, threads in (("sorted", 1), ("sorted", 2), ("dense", 1))
    }
    a, same, b = runs.values()
    assert a.bound <= b.bound + 1e-4 * abs(b.bound)
    assert a.bound >= max(a.score, b.score) - 1e-9
    share = 0.7 if loose else 0.3
    assert a.statistics["sweep_entries"] < share * b.statistics["sweep_entries"]
    assert a.statistics["entries_touched"] < 1.1 * b.statistics["entries_touched"]
    assert (a.bound, a.score, a.iterations) == (same.bound, same.score, same.iterations)
    np.testing.assert_array_equal(a.messages, same.messages)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_sorted_sweeps_are_bounds(seed: int):
    """Trees, where sweeps alone reach the optimum: never below it on the way, and there in the end."""
    rng = np.random.default_rng(seed)
    n, k = 9, int(rng.integers(20, 90))
    tables = [rng.normal(size=(k, k)) * rng.choice([0.1, 1.0, 10.0]) for _ in range(2)]
    for table in tables:
        table[rng.random((k, k)) < 0.1] = -np.inf
    edges = np.array([(int(rng.integers(0, i)), i) for i in range(1, n)])
    graph = fginfer.FactorGraph.from_arrays(
        [k] * n, rng.normal(size=(n, k)), edges, rng.integers(0, 2, n - 1).astype(np.int32), tables
    )
    best = fginfer.solve(graph, "auto").score
    for steps in (1, 2, 40):
        r = fginfer.solve(graph, "gdmm", access="sorted", search="off", gap=0.0, max_iterations=steps)
        assert r.bound >= best - 1e-9
    assert r.bound == pytest.approx(best, abs=1e-6)


def test_entries_read_grow_less_than_tables():
    """Four times the labels, sixteen times the table: a sweep reads an ever smaller part of it."""
    read = {}
    for k in (150, 600):
        r = fginfer.solve(lattice_of(k), "gdmm", access="sorted", search="off", gap=0.0, max_iterations=6)
        read[k] = r.statistics["sweep_entries"] / r.statistics["sweeps"]
    assert read[600] < 11 * read[150]
    assert read[600] < 0.25 * 2 * 24 * 600**2  # two products a factor read as much


def test_slices_follow_new_numbers():
    """A solver keeps what it has made of its tables while they stay, and makes it anew when they change."""
    graph = lattice_of(200, side=3)
    with fginfer.Solver(graph, "gdmm", access="sorted") as solver:
        solver.run(iterations=5)
        graph.set_unary(4, np.linspace(0.0, 3.0, 200))
        solver.update()
        solver.run(iterations=400)
        assert solver.result().score == pytest.approx(fginfer.solve(graph, "trws").score)
        graph.set_table(0, np.random.default_rng(5).normal(size=(200, 200)))
        solver.update()
        solver.run(iterations=3)
        least = fginfer.solve(graph, "gdmm", access="dense", sweep="off", max_iterations=300).bound
        found = solver.result()
        assert found.bound >= graph.score(found.labels) - 1e-9
        assert found.bound <= least + 0.05 * abs(least)


def test_tables_that_slices_do_not_help_are_read_whole():
    """Many factors share a table with entries in no order at all, small enough for that to cost more than it saves."""
    r = fginfer.solve(lattice_of(60), "gdmm", max_iterations=2)
    assert r.access == "dense"
    r = fginfer.solve(lattice_of(500, side=6), "gdmm", max_iterations=2)
    assert r.access == "sorted"


def test_sweeps_are_no_iterations_but_limits_count_them():
    r = fginfer.solve(chain_of(30, seed=3), "gdmm", access="dense", gap=0.0, max_iterations=4)
    assert r.statistics["sweeps"] + r.iterations <= 4
    assert r.iterations < 4


@pytest.mark.parametrize("eta", [0.1, 0.5, 1.2])
def test_eta_is_a_setting(eta: float):
    graph = chain_of(8, n=5, seed=1)
    best = fginfer.solve(graph, "trws").score
    r = fginfer.solve(graph, "gdmm", access="sorted", eta=eta, gap=1e-4, max_iterations=5000)
    assert r.bound >= best - 1e-6
    assert r.gap <= 1e-4
    with pytest.raises(fginfer.SettingsError):
        fginfer.solve(graph, "gdmm", eta=-1.0)


@pytest.mark.parametrize(("share", "strength"), [(0.002, 0.03), (0.05, 0.03), (0.2, 0.5)])
def test_crowded_models_go_on_by_sweeps(share: float, strength: float):
    """Where many factors matter, sequential message passing takes over from the multipliers and only gains."""
    n, rng = 120, np.random.default_rng(1)
    i, j = np.triu_indices(n, 1)
    t = -np.abs(rng.normal(0, strength, len(i)))
    up = rng.random(len(i)) < share
    t[up] = np.abs(rng.normal(0, 1, int(up.sum())))
    graph = fginfer.FactorGraph.from_arrays(
        [2] * n,
        np.column_stack([np.zeros(n), rng.normal(-2, 1, n)]),
        np.column_stack([i, j]),
        (t < 0).astype(np.int32),
        np.array([[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, -1.0]]]),
        np.abs(t),
    )
    plain = fginfer.solve(graph, "trws", max_iterations=2000)
    full = fginfer.solve(graph, "gdmm", formulation="binary", max_iterations=4000)
    pure = fginfer.solve(graph, "gdmm", formulation="binary", sweep="off", max_iterations=400)
    assert pure.statistics["sweeps"] == 0
    assert full.bound <= plain.bound + 1e-3 * abs(plain.bound)
    assert full.bound >= max(r.score for r in (plain, full, pure))


def test_false_switches_sweeps_off():
    """False is 0 in C, where 0 leaves the choice to the method."""
    rng = np.random.default_rng(0)
    g = fginfer.FactorGraph.grid((12, 12), rng.normal(size=(12, 12, 6)), rng.normal(size=(6, 6)))
    assert fginfer.solve(g, "gdmm", sweep=False, max_iterations=5).statistics["sweeps"] == 0
    assert fginfer.solve(g, "gdmm", sweep=True, max_iterations=5).statistics["sweeps"] > 0


def test_labelings_beside_iterations_do_not_depend_on_threads_or_pauses():
    """A loose relaxation: sweeps end, and the search and ascents go on beside the factor passes that follow."""
    rng = np.random.default_rng(4)
    graph = fginfer.FactorGraph([6] * 14)
    for i in range(14):
        graph.set_unary(i, rng.normal(size=6))
        for j in range(i):
            graph.add_factor([j, i], rng.normal(size=(6, 6)))
    seen = []
    for threads in (1, 2, 3):
        for iterations in (1, 200):
            with fginfer.Solver(graph, "gdmm", threads=threads, gap=0.0, max_iterations=200) as solver:
                while solver.run(iterations=iterations) == "running":
                    pass
                r = solver.result()
            counted = {k: v for k, v in r.statistics.items() if not k.startswith("seconds") and k != "memory"}
            seen.append((r.score, r.bound, list(r.labels), r.found_by, r.iterations, counted))
    assert seen[0][4] > 50  # iterations, after the sweeps
    assert seen[0][5]["search_operations"] > 0
    assert all(one == seen[0] for one in seen)


def test_no_work_is_hidden():
    """Every part of a run has its own counter, and the end of the log shows what is no oracle's."""
    rng = np.random.default_rng(1)
    graph = fginfer.FactorGraph([2] * 12 + [50] * 4)
    for i in range(16):
        graph.set_unary(i, rng.normal(size=graph.cards[i]))
    for i in range(12):
        for j in range(i):
            graph.add_factor([j, i], rng.normal(size=(2, 2)))
    for i in range(12, 16):
        for j in range(12, i):
            graph.add_factor([j, i], rng.normal(size=(50, 50)))
    n_binary, n_large = 66, 6
    for access in ("sorted", "dense"):
        r = fginfer.solve(graph, "gdmm", access=access, sweep="off", gap=0.0, max_iterations=40)
        s = r.statistics
        assert s["closed_forms"] == 40 * n_binary
        certificates = 1 + 40 // 8  # the first one, and one every eight iterations
        assert s["oracle_calls"] == (40 + certificates) * n_large
        assert (s["scans"] == s["oracle_calls"]) == (access == "dense")
        assert s["sweep_entries"] == 0
        assert s["local_operations"] > 0
        if access == "dense":
            assert s["entries_touched"] >= s["oracle_calls"] * 50 * 50
    swept = fginfer.solve(graph, "gdmm", access="dense", gap=0.0, max_iterations=3, search="off")
    reads = 2 * 4 * (n_binary + n_large * 625)  # three sweeps there and back: every factor is read once in each half
    assert swept.statistics["sweep_entries"] >= 3 * reads
    assert swept.statistics["oracle_calls"] == swept.statistics["closed_forms"] == 0
    line = end_line(r)
    assert "dense oracles" in line
    assert f"labeling by {r.found_by}" in line
    assert "closed-form updates" in line
    assert "operations of local search" in line


def test_the_binary_formulation_counts_what_it_does():
    rng = np.random.default_rng(2)
    graph = fginfer.FactorGraph([2] * 40)
    for i in range(40):
        graph.set_unary(i, [0.0, rng.normal(-1, 1)])
        for j in range(i):
            graph.add_factor([j, i], [[0.0, 0.0], [0.0, rng.normal(-0.3, 0.5)]])
    r = fginfer.solve(graph, "gdmm", formulation="binary", sweep="off", gap=0.0, max_iterations=60)
    s = r.statistics
    assert 0 < s["entries_touched"] <= graph.n_factors  # factors that were made active
    assert s["entries_touched"] <= s["closed_forms"] <= r.iterations * s["entries_touched"]
    assert 0 < s["oracle_calls"] < s["closed_forms"]  # the joint oracle over factors that are not active yet
    assert s["local_operations"] > 0


@pytest.mark.parametrize("method", ["gdmm", "ad3"])
def test_a_rho_far_from_the_scores_is_refused_or_harmless(method: str):
    """Quotients of scores and a rho 2^1060 times as small were no numbers, and feasible models called infeasible."""
    rng = np.random.default_rng(5)
    edges = [(i, j) for i in range(5) for j in range(i)]
    graph = fginfer.FactorGraph.from_arrays([3] * 5, rng.normal(size=(5, 3)), edges, tables=rng.normal(size=(10, 3, 3)))
    optimum = fginfer.solve(graph, gap=0.0).score
    options = (
        [{"access": a, "sweep": "off", "search": "off"} for a in ("dense", "sorted")] if method == "gdmm" else [{}]
    )
    for exponent in (-1000, -310, -290, 290, 310, 1000):
        for option in options:
            if abs(exponent) > 300:
                with pytest.raises(fginfer.SettingsError, match="too far apart"):
                    fginfer.solve(graph, method=method, rho=2.0**exponent, max_iterations=30, **option)
                continue
            result = fginfer.solve(graph, method=method, rho=2.0**exponent, max_iterations=30, **option)
            assert result.status != "infeasible"
            assert result.bound >= optimum >= result.score
