"""PPD-Sparse on a Dask cluster: the serial model bit for bit, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
import threading
import time

import dask
import distributed
import pytest

from fginfer.errors import SettingsError, SolverError
from fginfer.extreme import ExtremeClassifier, journal

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


@pytest.mark.slow
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


class Counting:
    """A client that counts what is scattered and submitted."""

    def __init__(self, client):
        self._client, self.scattered, self.keys = client, 0, []

    def scatter(self, *args, **more):
        self.scattered += 1
        return self._client.scatter(*args, **more)

    def submit(self, *args, key, **more):
        self.keys.append(key)
        return self._client.submit(*args, key=key, **more)

    def __getattr__(self, name):
        return getattr(self._client, name)


def test_data_go_out_once_and_the_dashboard_shows_one_bar(cluster, problem, serial):
    with distributed.Client(cluster) as client:
        counting = Counting(client)
        model = ExtremeClassifier(tol=1e-4, scheduler=counting).fit(*problem)
        assert same_model(model.model_, serial.model_)
        assert counting.scattered == 1
        assert len(counting.keys) > 20  # chunks
        assert {dask.utils.key_split(key) for key in counting.keys} == {
            "fginfer-extreme"
        }  # what the dashboard groups by


def test_a_cluster_without_workers_keeps_to_the_time_limit(problem):
    """Chunks may run on a worker that does not exist only, as when all of them are lost: nothing ever comes back."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, worker_dashboard_address=None
    ) as found, distributed.Client(found) as client:  # fmt: skip
        waiting = Counting(client)
        submit = waiting.submit
        waiting.submit = lambda *args, **more: submit(*args, workers=["127.0.0.1:9"], **more)
        begin = time.monotonic()
        model = ExtremeClassifier(tol=1e-4, scheduler=waiting, time_limit=2.0).fit(*problem)
        assert time.monotonic() - begin < 20.0
        assert model.status_ == "time_limit"
        assert model.n_trained_ == 0
        assert model.predict_topk(problem[0], 2)[0].shape == (800, 2)


def test_a_lost_scheduler_keeps_what_was_trained(problem, serial, tmp_path):
    path, finished = tmp_path / "run", []
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, worker_dashboard_address=None
    ) as found:  # fmt: skip
        client = distributed.Client(found)
        model = ExtremeClassifier(tol=1e-4, scheduler=client, checkpoint=path)
        append = journal.Journal.append

        def append_and_lose(self, columns):
            append(self, columns)
            finished.append(columns)
            if len(finished) == 3:
                client.close()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal.Journal, "append", append_and_lose)
            with pytest.raises(SolverError, match="another fit goes on"):
                model.fit(*problem)
    assert 0 < model.n_trained_ < len(model.classes_)
    assert model.status_ == "failed"
    on = ExtremeClassifier(tol=1e-4, checkpoint=path).fit(*problem)
    assert same_model(on.model_, serial.model_)


def test_ctrl_c_keeps_what_was_trained(cluster, problem, serial, tmp_path):
    path, seen = tmp_path / "run", []
    append = journal.Journal.append

    def append_and_interrupt(self, columns):
        append(self, columns)
        seen.append(columns)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    model = ExtremeClassifier(tol=1e-4, scheduler=cluster.scheduler_address, checkpoint=path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal.Journal, "append", append_and_interrupt)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            model.fit(*problem)
        assert time.monotonic() - begin < 20.0
    assert model.status_ == "interrupted"
    assert 0 < model.n_trained_ < len(model.classes_)
    assert model.predict_topk(problem[0], 2)[0].shape == (800, 2)
    on = ExtremeClassifier(tol=1e-4, scheduler=cluster.scheduler_address, checkpoint=path).fit(*problem)
    assert same_model(on.model_, serial.model_)  # the cluster is as good as before


@pytest.mark.slow
def test_a_scheduler_that_is_not_there():
    X, y = random_problem()
    with pytest.raises(SettingsError, match="no Dask scheduler answers"):
        ExtremeClassifier(scheduler="tcp://127.0.0.1:9").fit(X, y)
