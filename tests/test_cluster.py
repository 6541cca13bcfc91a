"""Many models over a Dask cluster: the answers of one machine, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import distributed
import numpy as np
import pytest

from fginfer import FactorGraph, Potts, SettingsError, SolverError, solve, solve_many, write
from fginfer.cluster import cluster_map
from fginfer.compare import compare
from fginfer.extreme import ExtremeClassifier

# A certificate that signs itself, for these tests and nothing else; it is good until 2126.
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtv76uuR69yR+8iVL
PWugjWWyv/HkmXE46LdK2teQ+ZOhRANCAARaS1KlRGMQWY3w7cB3vigeWHqnOwNe
dLif7RQExMS+pfMFSa18IfTG8uaJZ6DAXkuYSXL3wuFysEjKOUsBrcS+
-----END PRIVATE KEY-----
"""
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBhjCCASugAwIBAgIUXdM0h2RN2pM8YkkerWdknkV3WfkwCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMZmdpbmZlci10ZXN0MCAXDTI2MTExODE3NTEwN1oYDzIxMjYx
MDI1MTc1MTA3WjAXMRUwEwYDVQQDDAxmZ2luZmVyLXRlc3QwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAARaS1KlRGMQWY3w7cB3vigeWHqnOwNedLif7RQExMS+pfMF
Sa18IfTG8uaJZ6DAXkuYSXL3wuFysEjKOUsBrcS+o1MwUTAdBgNVHQ4EFgQUnZLw
Z1i8pOa+rHCBfvOPR+pHYEMwHwYDVR0jBBgwFoAUnZLwZ1i8pOa+rHCBfvOPR+pH
YEMwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAw6GHpGxoIjSk
QJqGs5CrQxvamqTmRqrDEpqRl6y+Xl8CIQCVMWakQyjkS8BbzmrBSGExuGd4vfyE
uE2HO6Raxx/nhw==
-----END CERTIFICATE-----
"""


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
    write(graphs(1)[0], path)
    serial = compare([path], ["icm", "trws"], time_limit=5)
    spread = compare([path], ["icm", "trws"], time_limit=5, scheduler=client)
    assert [(r.method, r.score, r.bound) for r in spread.runs] == [(r.method, r.score, r.bound) for r in serial.runs]


def certificates(folder: Path) -> distributed.Security:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    key.write_text(KEY)
    certificate.write_text(CERTIFICATE)
    files = {f"tls_{who}_key": str(key) for who in ("client", "scheduler", "worker")}
    files |= {f"tls_{who}_cert": str(certificate) for who in ("client", "scheduler", "worker")}
    return distributed.Security(tls_ca_file=str(certificate), require_encryption=True, **files)


def test_certificates_are_passed_on(tmp_path: Path) -> None:
    security, path = certificates(tmp_path), tmp_path / "m.npz"
    write(graphs(1)[0], path)
    options = {"dashboard_address": None, "worker_dashboard_address": None, "processes": False, "protocol": "tls://"}
    with distributed.LocalCluster(1, threads_per_worker=1, security=security, **options) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        there = solve_many(graphs(2), "trws", client=address, security=security, max_iterations=10)
        assert [r.score for r in there] == [solve(g, "trws", max_iterations=10).score for g in graphs(2)]
        found = compare([path], ["icm"], time_limit=5, scheduler=address, security=security)
        assert [r.score for r in found.runs] == [solve(graphs(1)[0], "icm").score]
        for other in (address, address.replace("tls", "tcp")):
            with pytest.raises(SettingsError, match="give security= if it wants TLS"):
                solve_many(graphs(1), client=other)
        with distributed.Client(address, security=security) as client:
            with pytest.raises(SettingsError, match="a Client has its own already"):
                solve_many(graphs(1), client=client, security=security)
            labels = [0, 1, 0, 1]
            model = ExtremeClassifier(lam=0.01, solver="ppd-sparse", scheduler=client).fit(np.eye(4), labels)
            assert model.predict(np.eye(4)).tolist() == [0, 1, 0, 1]
    for call in (lambda: solve_many(graphs(1), security=security), lambda: compare([path], ["icm"], security=security)):
        with pytest.raises(SettingsError, match="security is for a cluster"):
            call()


@pytest.mark.slow
def test_errors(client) -> None:
    with pytest.raises(SettingsError, match="no scheduler at"):
        solve_many(graphs(1), client="tcp://127.0.0.1:1")
    with pytest.raises(SettingsError, match="Client or an address"):
        solve_many(graphs(1), client=3)
    with pytest.raises(SettingsError, match="callback"):
        solve_many(graphs(1), client=client, callback=print)
