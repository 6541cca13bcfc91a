"""One model on a Dask cluster: the answers of one process, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from time import sleep

import distributed
import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, Potts, SettingsError, Shard, Sharded, SolverError, solve
from fginfer.core.arrays import ModelArrays
from fginfer.parts import dask_crew
from fginfer.parts.plan import PartsPlan
from fginfer.parts.rules import RULES
from fginfer.parts.solver import PartsSolver
from fginfer.parts.split import Cut, owners_of

CLIENT = distributed.Client
QUIET = {"threads_per_worker": 1, "dashboard_address": None, "worker_dashboard_address": None}


def grid() -> FactorGraph:
    return FactorGraph.grid((14, 15), np.random.default_rng(5).normal(size=(14, 15, 4)), Potts(0, -0.8))


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, processes=False, **QUIET) as cluster,
        CLIENT(cluster) as found,
    ):
        found.wait_for_workers(2, timeout=60)
        yield found


def test_the_answer_is_that_of_one_process(client, tmp_path: Path) -> None:
    graph, settings = grid(), {"gap": 0.0, "max_iterations": 8}
    here = solve(graph, parts=3, **settings)
    there = solve(graph, parts=3, client=client, **settings)
    assert (here.bound, here.score, here.labels.tobytes()) == (there.bound, there.score, there.labels.tobytes())
    assert there.statistics["workers"] == 2
    arrays = ModelArrays.of_model(graph.snapshot())
    Sharded(Cut(arrays, owners_of(arrays, 3)).shard, 3).save(tmp_path)
    sharded = solve(tmp_path, client=client.scheduler.address, **settings)
    assert (here.bound, here.labels.tobytes()) == (sharded.bound, sharded.labels.tobytes())
    assert not dask_crew._HERE  # parts go when the solve is over


def test_errors_come_before_any_work(client, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("fginfer.cluster.CONNECT", 0.5)
    with pytest.raises(SettingsError, match="no scheduler at"):
        solve(grid(), client="tcp://127.0.0.1:1", parts=2)
    with pytest.raises(SettingsError, match="Client or an address"):
        solve(grid(), client=3, parts=2)
    with pytest.raises(SettingsError, match="security is for a cluster"):
        solve(grid(), security=3, parts=2)
    (tmp_path / "part-00000.npz").write_bytes(b"nothing")
    with pytest.raises(FormatError, match=r"part-00000\.npz"):
        solve(tmp_path, client=client)

    def two(k: int) -> Shard:
        graph = FactorGraph.from_arrays([2, 2], None, [[0, 1]], tables=[Potts(0, -1)])
        return Shard.of(graph, [k, k + 1], [])

    with pytest.raises(ValueError, match="parts overlap"):
        solve(Sharded(two, 2), client=client)
    monkeypatch.setattr(dask_crew, "VERSION", "0.0")
    with pytest.raises(SettingsError, match=r"has fginfer .*, this is 0\.0; install the same"):
        solve(grid(), client=client, parts=2)


@pytest.mark.skipif(sys.platform == "win32", reason="no signal kills there")
def test_a_killed_worker_costs_a_few_rounds_and_changes_nothing() -> None:
    graph = grid()
    here = solve(graph, parts=3, gap=0.0, max_iterations=9)
    with distributed.LocalCluster(n_workers=2, **QUIET) as cluster, CLIENT(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        victim = next(iter(client.run(os.getpid).values()))
        plan = PartsPlan(3, client=client, keep_every=3)
        with PartsSolver(graph, plan, gap=0.0, max_iterations=9) as solver:
            solver.run(iterations=5)
            before = solver.progress()
            os.kill(victim, signal.SIGKILL)
            solver.run()
            result = solver.result()
    assert result.statistics["faults"] >= 1
    assert result.bound <= before.bound
    assert (result.bound, result.labels.tobytes()) == (here.bound, here.labels.tobytes())


def test_questions_from_before_a_fault_change_nothing() -> None:
    arrays = ModelArrays.of_model(grid().snapshot())
    shard = Cut(arrays, owners_of(arrays, 2)).shard(0)
    dask_crew.make_there("run", 0, shard, {"precision": "double"})
    try:
        facts = dask_crew.ask_there("run", 0, "facts", 1, ())
        none = np.zeros(int(facts.cards.sum()))
        with pytest.raises(dask_crew.Forgotten, match="before a fault"):
            dask_crew.ask_there("run", 0, "round", 0, (none, 1))
        first = dask_crew.ask_there("run", 0, "round", 1, (none, 1))
        dask_crew.ask_there("run", 0, "restart", 2, ())
        assert dask_crew.ask_there("run", 0, "round", 2, (none, 1)).bound == first.bound
    finally:
        dask_crew.forget_there("run")
    with pytest.raises(dask_crew.Forgotten, match="part 0"):
        dask_crew.ask_there("run", 0, "facts", 3, ())


@pytest.mark.skipif(sys.platform == "win32", reason="no signal kills there")
def test_a_worker_that_dies_between_its_work_and_its_answer(monkeypatch) -> None:
    graph = grid()
    here = solve(graph, parts=3, gap=0.0, max_iterations=6)
    with distributed.LocalCluster(n_workers=2, **QUIET) as cluster, CLIENT(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        victims = client.run(os.getpid)
        take, taken = dask_crew.DaskCrew._take, []

        def die_first(crew: dask_crew.DaskCrew, number: int, future: distributed.Future) -> None:
            taken.append(number)
            if len(taken) == 7:
                address = crew._place[number]
                os.kill(victims[address], signal.SIGKILL)
                while address in client.nthreads():
                    sleep(0.01)
            take(crew, number, future)

        monkeypatch.setattr(dask_crew.DaskCrew, "_take", die_first)
        with PartsSolver(graph, PartsPlan(3, client=client, keep_every=2), gap=0.0, max_iterations=6) as solver:
            solver.run()
            result = solver.result()
    assert result.statistics["faults"] >= 1
    assert (result.bound, result.labels.tobytes()) == (here.bound, here.labels.tobytes())


@pytest.mark.skipif(sys.platform == "win32", reason="no signal stops a process there")
def test_a_stalled_worker_is_worked_around(monkeypatch) -> None:
    graph = grid()
    here = solve(graph, parts=3, gap=0.0, max_iterations=6)
    monkeypatch.setattr(dask_crew, "RULES", RULES._replace(stalled_seconds=1.0, stalled_ratio=1.0))
    with distributed.LocalCluster(n_workers=2, **QUIET) as cluster, CLIENT(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        victim = next(iter(client.run(os.getpid).values()))
        try:
            with PartsSolver(graph, PartsPlan(3, client=client, keep_every=2), gap=0.0, max_iterations=6) as solver:
                solver.run(iterations=3)
                os.kill(victim, signal.SIGSTOP)
                solver.run()
                result = solver.result()
        finally:
            os.kill(victim, signal.SIGCONT)
    assert result.statistics["faults"] == 1
    assert result.statistics["workers"] == 1
    assert (result.bound, result.labels.tobytes()) == (here.bound, here.labels.tobytes())


@pytest.mark.parametrize("times", [1, 99])
def test_parts_that_are_lost_before_the_first_round(client, monkeypatch, times: int) -> None:
    take, lost = dask_crew.DaskCrew._take, []

    def lose(crew: dask_crew.DaskCrew, number: int, future: distributed.Future) -> None:
        if number == 1 and len(lost) < times:
            lost.append(number)
            crew._lose([number])
        take(crew, number, future)

    monkeypatch.setattr(dask_crew.DaskCrew, "_take", lose)
    graph, settings = grid(), {"gap": 0.0, "max_iterations": 4}
    if times == 1:
        found = solve(graph, parts=3, client=client, **settings)
        assert (found.statistics["faults"], found.bound) == (1, solve(graph, parts=3, **settings).bound)
    else:
        with pytest.raises(SolverError, match="part 1: 5 workers were lost one after the other"):
            solve(graph, parts=3, client=client, **settings)


def test_a_scheduler_that_is_lost() -> None:
    with distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as cluster, CLIENT(cluster) as client:
        solver = PartsSolver(grid(), PartsPlan(2, client=client), gap=0.0)
        solver.run(iterations=2)
        client.close()
        with pytest.raises(SolverError, match="the Dask scheduler can no longer be reached"):
            solver.run(iterations=2)
        assert solver.result().bound >= solver.result().score > -np.inf  # what was found is not lost
        solver.close()


def test_a_late_worker_with_another_fginfer_gets_nothing(monkeypatch) -> None:
    with (
        distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as cluster,
        CLIENT(cluster) as client,
        PartsSolver(grid(), PartsPlan(4, client=client, keep_every=2), gap=0.0, max_iterations=6) as solver,
    ):
        solver.run(iterations=1)
        monkeypatch.setattr(dask_crew, "versions", lambda client, workers: dict.fromkeys(workers, "0.0"))
        cluster.scale(2)
        client.wait_for_workers(2, timeout=60)
        solver.run()
        assert solver.result().statistics["workers"] == 1


def test_a_worker_that_comes_late_gets_parts() -> None:
    graph = grid()
    here = solve(graph, parts=4, gap=0.0, max_iterations=6)
    with (
        distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as cluster,
        CLIENT(cluster) as client,
    ):
        plan = PartsPlan(4, client=client, keep_every=2)
        with PartsSolver(graph, plan, gap=0.0, max_iterations=6) as solver:
            solver.run(iterations=1)
            assert solver.result().statistics["workers"] == 1
            cluster.scale(2)
            client.wait_for_workers(2, timeout=60)
            solver.run()
            result = solver.result()
    assert result.statistics["workers"] == 2
    assert result.statistics["faults"] == 0
    assert (result.bound, result.labels.tobytes()) == (here.bound, here.labels.tobytes())
