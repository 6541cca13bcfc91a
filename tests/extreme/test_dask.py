"""PPD-Sparse on a Dask cluster: the serial model bit for bit, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
import threading
import time

import distributed
import pytest

from fginfer.errors import SettingsError
from fginfer.extreme import ExtremeClassifier

from .problems import random_problem, same_model


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
    ) as found:
        yield found


@pytest.fixture(scope="module")
def problem():
    return random_problem(9, n=800, d=200, k=200, density=0.1)


@pytest.fixture(scope="module")
def serial(problem):
    return ExtremeClassifier(tol=1e-4).fit(*problem)


def test_a_cluster_gives_the_serial_model(cluster, problem, serial, tmp_path):
    by_address = ExtremeClassifier(tol=1e-4, scheduler=cluster.scheduler_address, checkpoint=tmp_path / "run")
    assert same_model(by_address.fit(*problem).model_, serial.model_)
    assert (tmp_path / "run").stat().st_size > 0  # results were streamed to it
    with distributed.Client(cluster) as client:
        assert same_model(ExtremeClassifier(tol=1e-4, scheduler=client).fit(*problem).model_, serial.model_)


def test_a_killed_worker_costs_its_chunk_only(cluster, problem, serial):
    with distributed.Client(cluster) as client:
        victim = min(client.run(os.getpid).values())
        killed = threading.Event()

        def kill() -> None:
            while not any(client.processing().values()):
                time.sleep(0.001)
            os.kill(victim, signal.SIGKILL)
            killed.set()

        thread = threading.Thread(target=kill)
        thread.start()
        model = ExtremeClassifier(tol=1e-4, scheduler=client).fit(*problem)
        thread.join()
        assert killed.is_set()
        assert model.n_trained_ == len(model.classes_)
        assert same_model(model.model_, serial.model_)


def test_a_scheduler_that_is_not_there():
    X, y = random_problem()
    with pytest.raises(SettingsError, match="no Dask scheduler answers"):
        ExtremeClassifier(scheduler="tcp://127.0.0.1:9").fit(X, y)
