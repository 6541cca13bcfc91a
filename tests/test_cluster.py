"""Many models over a Dask cluster: the answers of one machine, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
import threading
import time

import distributed
import numpy as np
import pytest

from fginfer import FactorGraph, Potts, SettingsError, SolverError, solve, solve_many
from fginfer.cluster import cluster_map
from fginfer.compare import compare


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def graphs(n: int) -> list[FactorGraph]:
    rng = np.random.default_rng(n)
    return [FactorGraph.grid((4, 5), rng.normal(size=(4, 5, 3)), Potts(0, -0.5)) for _ in range(n)]


def test_results_are_those_of_one_machine(client) -> None:
    models = graphs(6)
    there = solve_many(models, "trws", client=client, max_iterations=30)
    for graph, result in zip(models, there, strict=True):
        here = solve(graph, "trws", max_iterations=30)
        assert (here.score, here.bound, here.status) == (result.score, result.bound, result.status)
        assert np.array_equal(here.labels, result.labels)


def test_a_lost_worker_costs_its_jobs_only(client) -> None:
    def slow(job: int) -> tuple[int, int]:  # inside, so that it travels by value: workers do not know the tests
        time.sleep(0.3)
        return job * job, os.getpid()

    victim = next(iter(client.run(os.getpid).values()))
    threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
    answers = dict(cluster_map(slow, list(range(8)), client))
    assert {k: square for k, (square, _) in answers.items()} == {k: k * k for k in range(8)}
    assert any(pid != victim for _, pid in answers.values())


def test_a_cluster_without_workers_ends_with_an_error(monkeypatch) -> None:
    monkeypatch.setattr("fginfer.cluster.PATIENCE", 0.5)
    options = {"dashboard_address": None, "worker_dashboard_address": None, "processes": False}
    with distributed.LocalCluster(1, threads_per_worker=1, **options) as cluster, distributed.Client(cluster) as client:
        jobs = cluster_map(lambda job: time.sleep(2) if job else 0, [0, 1, 1, 1], client)
        assert next(jobs) == (0, 0)
        cluster.scale(0)
        with pytest.raises(SolverError, match="no workers for"):
            list(jobs)
        with pytest.raises(SettingsError, match="has no workers"):
            solve_many(graphs(1), client=client)


def test_comparisons_spread_out(client, tmp_path) -> None:
    path = tmp_path / "m.npz"
    from fginfer import write

    write(graphs(1)[0], path)
    serial = compare([path], ["icm", "trws"], time_limit=5)
    spread = compare([path], ["icm", "trws"], time_limit=5, scheduler=client)
    assert [(r.method, r.score, r.bound) for r in spread.runs] == [(r.method, r.score, r.bound) for r in serial.runs]


@pytest.mark.slow
def test_errors(client) -> None:
    with pytest.raises(SettingsError, match="no scheduler at"):
        solve_many(graphs(1), client="tcp://127.0.0.1:1")
    with pytest.raises(SettingsError, match="Client or an address"):
        solve_many(graphs(1), client=3)
    with pytest.raises(SettingsError, match="callback"):
        solve_many(graphs(1), client=client, callback=print)
