"""Runs that end early: limits, slow oracles, Ctrl-C, kill -9; and what a second run makes of their checkpoints."""

from __future__ import annotations

import itertools
import json
import logging
import pickle
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from fginfer.errors import DataError, FormatError, SettingsError, SolverError
from fginfer.learn import Example, MapOracle, StructuredSVM
from fginfer.learn.files import storage
from fginfer.learn.solvers.registry import SOLVERS

from .test_estimator import words

STRUCTURED = [s for s in SOLVERS if s not in ("gdmm", "soft-bcfw")]
RUNS = {
    **{s: {"solver": s} for s in SOLVERS},
    "dcd-light": {"solver": "dcd", "solver_options": {"variant": "light"}},
    "dcd-cpd": {"solver": "dcd", "solver_options": {"variant": "cpd"}},
    "bcfw-gaps": {"solver": "bcfw", "solver_options": {"gap_sampling": True}, "batch_size": 7},
    "gdmm-afw": {"solver": "gdmm", "solver_options": {"variant": "afw", "block_size": 4}},
    "gdmm-parts": {"solver": "gdmm", "solver_options": {"partitions": 2}},
    "sets": {"model": "multilabel", "solver": "gdmm"},
    "sets-bcfw": {"model": "multilabel", "solver": "bcfw", "C": 3.0},
}


def problem(name):
    if "sets" not in name:
        return words(8)
    rng = np.random.default_rng(1)
    return rng.normal(size=(8, 3)), rng.integers(0, 2, (8, 4))


def settings_of(name, **more):
    return {"C": 0.2, "tol": 1e-3, "max_iter": 12, "random_state": 3, "eval_every": 4, **RUNS[name], **more}


def same(a, b):
    assert np.array_equal(a.weights_, b.weights_)
    assert (a.n_iter_, a.status_, a.primal_, a.dual_, a.gap_) == (b.n_iter_, b.status_, b.primal_, b.dual_, b.gap_)
    assert a.trace_[-1]._replace(seconds=0) == b.trace_[-1]._replace(seconds=0)


KILLED = """
import os, pickle, signal, sys
from fginfer.learn import StructuredSVM
from fginfer.learn.run import loop
loop.SLICE = 0.0  # a deadline in the past: one batch between two checkpoints
replace, writes = os.replace, 0

def dying(*args):
    global writes
    writes += 1
    if writes == 11:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*args)

os.replace = dying
with open("runs", "rb") as file:
    runs = pickle.load(file)
for name, settings, X, y in runs:
    if os.fork() == 0:
        StructuredSVM(**settings, checkpoint=f"{name}.npz", checkpoint_interval=0.0).fit(X, y)
        os._exit(0)
    _, status = os.wait()
    print(name, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Checkpoints of runs that were killed while they wrote the 11th, in the middle of a pass where there is one."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "runs").write_bytes(pickle.dumps([(name, settings_of(name), *problem(name)) for name in RUNS]))
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert len(done.stdout.splitlines()) == len(RUNS), done.stderr
    return folder, dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(killed, name):
    folder, signals = killed
    X, y = problem(name)
    path = folder / f"{name}.npz"
    assert signals[name] == "9"
    assert storage.read(path)[0]["progress"]["passes"] < 12
    resumed = StructuredSVM(**settings_of(name, checkpoint=path)).fit(X, y)
    whole = StructuredSVM(**settings_of(name)).fit(X, y)
    same(resumed, whole)
    same(StructuredSVM(**settings_of(name, checkpoint=path)).fit(X, y), whole)  # and a finished one stays as it is


@pytest.mark.parametrize("name", RUNS)
def test_interrupted_runs_keep_what_they_learned(tmp_path, name):
    X, y = problem(name)

    def stop(point):
        if point.passes == 2:
            signal.raise_signal(signal.SIGINT)

    model = StructuredSVM(**settings_of(name, checkpoint=tmp_path / "c.npz", callback=stop))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.n_iter_ == 2
    assert np.isfinite(model.weights_).all()
    model.predict(X)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    whole = StructuredSVM(**settings_of(name)).fit(X, y)
    same(StructuredSVM(**settings_of(name, checkpoint=tmp_path / "c.npz")).fit(X, y), whole)
    whole = StructuredSVM(**settings_of(name, eval_every=1, tol=0.0)).fit(X, y)  # gdmm keeps the best it measured
    warm = StructuredSVM(**settings_of(name, eval_every=1, tol=0.0, warm_start=True, callback=stop))
    with pytest.raises(KeyboardInterrupt):
        warm.fit(X, y)
    warm.set_params(callback=None, max_iter=whole.n_iter_ - 2, tol=0.0).fit(X, y)
    assert np.array_equal(warm.weights_, whole.weights_)


def test_with_a_handler_of_ones_own_nothing_half_done_is_kept(tmp_path):
    X, y = words()

    def own(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGINT, own)
    try:
        model = StructuredSVM(
            max_iter=5,
            warm_start=True,
            checkpoint=tmp_path / "c.npz",
            tol=0.0,
            callback=lambda p: signal.raise_signal(2),
        )
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, old)
    assert model.status_ == "interrupted"
    assert len(model.predict(X)) == len(X)
    assert not (tmp_path / "c.npz").exists()
    assert model._last_run is None


class Signals:
    """An oracle during whose n-th call Ctrl-C is pressed."""

    def __init__(self, at):
        self.at, self.calls = at, 0

    def answer(self, learner, weights, example, loss):
        self.calls += 1
        if self.calls == self.at:
            signal.raise_signal(signal.SIGINT)
            pytest.fail("Ctrl-C had to wait for the oracle")
        return learner.decode(weights, loss, np.array([example], np.int32)).labels


@pytest.mark.parametrize("solver", STRUCTURED)
@pytest.mark.parametrize("batch_size", [1, 7])
def test_ctrl_c_in_an_oracle_leaves_no_trace(tmp_path, solver, batch_size):
    X, y = words()
    settings = {"solver": solver, "C": 0.2, "tol": 0.0, "max_iter": 5, "batch_size": batch_size}
    model = StructuredSVM(**settings, oracle=Signals(40), checkpoint=tmp_path / "c.npz")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.trace_[-1].passes == 1
    assert model.trace_[-1].oracle_calls == 39
    resumed = StructuredSVM(**settings, oracle=Signals(0), checkpoint=tmp_path / "c.npz").fit(X, y)
    same(resumed, StructuredSVM(**settings, oracle=Signals(0)).fit(X, y))
    assert resumed.trace_[-1].oracle_calls == 5 * len(X)
    plain = StructuredSVM(**settings).fit(X, y)
    assert np.allclose(resumed.weights_, plain.weights_)


class Slow:
    def __init__(self, seconds=0.004):
        self.seconds = seconds

    def answer(self, learner, weights, example, loss):
        time.sleep(self.seconds)
        return learner.decode(weights, loss, np.array([example], np.int32)).labels


@pytest.mark.parametrize("name", [*STRUCTURED, "dcd-cpd"])
def test_time_limits_are_looked_at_after_every_answer(name, monkeypatch):
    X, y = words(100)
    clock = [0.0]

    class Ticking(Slow):
        def answer(self, learner, weights, example, loss):
            clock[0] += 1.0
            return learner.decode(weights, loss, np.array([example], np.int32)).labels

    monkeypatch.setattr("fginfer.core.clock.now", lambda: clock[0])
    for limit in (30.0, 130.0, 900.0):
        for every in (0, 1):
            clock[0] = 0.0
            settings = {**RUNS[name], "tol": 0.0, "max_iter": 10**6, "time_limit": limit, "eval_every": every}
            model = StructuredSVM(C=0.2, oracle=Ticking(), batch_size=25, **settings).fit(X, y)
            assert model.status_ == "time_limit"
            assert limit * 0.5 <= clock[0] <= limit * 1.05 + 1
    if name not in ("perceptron", "mira"):
        assert model.primal_ is not None  # there was time to measure


def test_the_map_engine_stops_at_the_limit():
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(40), 2))
    X, y = [Example(rng.normal(size=(40, 3)), edges=edges)], [rng.integers(0, 6, 40)]
    begin = time.monotonic()
    model = StructuredSVM(model="graph", solver="bcfw", C=10.0, time_limit=0.5, max_iter=10**6, tol=0.0).fit(X, y)
    assert time.monotonic() - begin < 20  # and not for ever
    assert model.status_ == "time_limit"


def test_map_oracles_start_again_where_they_were(tmp_path):
    rng = np.random.default_rng(1)
    edges = list(itertools.combinations(range(4), 2))
    X = [Example(rng.integers(-2, 3, (4, 2)), edges=edges) for _ in range(6)]
    y = [rng.integers(0, 3, 4) for _ in X]
    settings = {"model": "graph", "C": 0.3, "tol": 0.0}
    whole = StructuredSVM(max_iter=8, **settings).fit(X, y)
    StructuredSVM(max_iter=3, checkpoint=tmp_path / "c.npz", **settings).fit(X, y)
    assert "oracle_labels" in storage.read(tmp_path / "c.npz")[1]
    resumed = StructuredSVM(max_iter=8, checkpoint=tmp_path / "c.npz", oracle=None, **settings).fit(X, y)
    assert np.array_equal(resumed.weights_, whole.weights_)
    oracle = MapOracle()
    own = StructuredSVM(max_iter=3, oracle=oracle, **settings).fit(X, y)
    longer = [Example(rng.normal(size=(6, 2)), edges=edges)]
    assert [len(a) for a in own.predict(longer)] == [6]  # nothing is left of other data


class Vague(MapOracle):
    """Proves nothing."""

    def answer(self, learner, weights, example, loss):
        answer = super().answer(learner, weights, example, loss)
        self.slack = np.inf
        return answer


@pytest.mark.parametrize("solver", ["bcfw", "dcd", "ssg", "fw", "cutting-plane"])
def test_objectives_are_claimed_only_where_oracles_prove_them(solver):
    X, y = words(10)
    edges = [Example(x, edges=[(t, t + 1) for t in range(len(x) - 1)]) for x in X]
    settings = {"model": "graph", "solver": solver, "C": 0.2, "max_iter": 3, "tol": 0.0}
    exact = StructuredSVM(**settings).fit(edges, y)
    assert StructuredSVM(**settings, oracle=Vague()).fit(edges, y).primal_ is None
    loose = StructuredSVM(**settings, oracle=MapOracle(method="icm", max_iterations=1)).fit(edges, y)
    assert loose.primal_ is None or loose.primal_ >= exact.dual_ if exact.dual_ is not None else True

    class Rough(Slow):
        exact = False

    model = StructuredSVM(**settings, oracle=Rough(0.0)).fit(edges, y)
    assert model.primal_ is None
    assert model.gap_ is None
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize("answer", [None, [0.5], "ab", [[0]], 3, {0: 1}])
def test_answers_that_are_none(answer):
    class Bad:
        def answer(self, *_):
            return answer

    with pytest.raises(DataError, match="the oracle must give a list of whole numbers"):
        StructuredSVM(oracle=Bad()).fit(*words(3))


@pytest.mark.parametrize("answer", [[0] * 99, [-1], [7]])
def test_answers_out_of_range(answer):
    class Bad:
        def answer(self, learner, weights, example, loss):
            return answer

    with pytest.raises((SettingsError, DataError), match="example"):
        StructuredSVM(oracle=Bad()).fit([np.eye(2)[:1]] * 2, [[0], [1]])


@pytest.mark.slow
def test_damaged_checkpoints(tmp_path):
    X, y = words()
    path, good = tmp_path / "c.npz", tmp_path / "good.npz"
    settings = {"C": 0.2, "max_iter": 3, "tol": 0.0}
    afw = {"variant": "afw", "block_size": 3}
    for name, options in (("bcfw", {}), ("gdmm", {}), ("gdmm", afw), ("cutting-plane", {})):
        settings["solver_options"] = options
        good.unlink(missing_ok=True)
        StructuredSVM(solver=name, checkpoint=good, **settings).fit(X, y)
        whole, (header, arrays) = good.read_bytes(), storage.read(good)
        for content in (b"", whole[:100], whole[:-9], b"text"):
            path.write_bytes(content)
            with pytest.raises(FormatError, match=r"c\.npz"):
                StructuredSVM(solver=name, checkpoint=path, **settings).fit(X, y)
        for key in arrays:
            for wrong in (np.zeros(0), np.zeros((2, 2)), arrays[key].repeat(2), np.array("x")):
                storage.write(path, header, {**arrays, key: wrong})
                with suppress(FormatError):  # what says nothing (an empty order) may pass; nothing may crash
                    StructuredSVM(solver=name, checkpoint=path, **settings).fit(X, y)
        storage.write(path, {**header, "progress": 3}, arrays)
        with pytest.raises(FormatError):
            StructuredSVM(solver=name, checkpoint=path, **settings).fit(X, y)
    settings["solver_options"] = None
    StructuredSVM(max_iter=1).fit(X, y).save(path)
    with pytest.raises(FormatError, match="no checkpoint"):
        StructuredSVM(checkpoint=path, **settings).fit(X, y)


def test_checkpoints_belong_to_data_settings_and_seed(tmp_path):
    X, y = words()
    path = tmp_path / "c.npz"
    StructuredSVM(checkpoint=path, max_iter=2, random_state=np.random.RandomState(5)).fit(X, y)
    StructuredSVM(checkpoint=path, max_iter=3, random_state=np.random.RandomState(5), tol=1e-9, n_jobs=2).fit(X, y)
    for change in ({"random_state": 1}, {"C": 2.0}, {"solver": "dcd"}, {"pairwise": False}, {"loss": 2 - 2 * np.eye(3)},
                   {"solver_options": {"averaging": False}}, {"batch_size": 3}, {"oracle": Slow(0.0)}):  # fmt: skip
        with pytest.raises(SettingsError, match="other data or settings"):
            StructuredSVM(**{"checkpoint": path, "random_state": np.random.RandomState(5), **change}).fit(X, y)
    with pytest.raises(SettingsError, match="other data or settings"):
        StructuredSVM(checkpoint=path, random_state=np.random.RandomState(5)).fit(X[:-1], y[:-1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_numbers_too_large_to_train_on_are_an_error(solver):
    X, y = words(6)
    huge = [x * 1e150 / max(abs(x).max() for x in X) for x in X]
    try:
        model = StructuredSVM(solver=solver, C=1e200, max_iter=5, tol=0.0).fit(huge, y)
    except SolverError as error:
        assert "finite" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(model.weights_).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scale", [1e-150, 1e6, 1e100])
@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_no_bound_is_claimed_that_rounding_has_spoilt(scale, C):
    X, y = words(6)
    for solver in SOLVERS:
        with suppress(SolverError):
            model = StructuredSVM(solver=solver, C=C, max_iter=20, tol=1e-6).fit([x * scale for x in X], y)
            assert np.isfinite(model.weights_).all()
            if model.dual_ is not None:
                assert model.dual_ <= model.primal_ + 1e-6 * max(1.0, abs(model.primal_))


def test_the_log_tells_what_happens(caplog, capsys):
    X, y = words()
    StructuredSVM(max_iter=3, tol=0.0).fit(X, y)
    assert capsys.readouterr().out == ""
    with caplog.at_level(logging.INFO, "fginfer"):
        StructuredSVM(max_iter=3, tol=0.0, verbose=2, random_state=7, eval_every=1).fit(X, y)
    text = caplog.text
    assert "bcfw" in text
    assert "seed 7" in text
    assert "30 examples" in text
    assert "iteration limit · 3 passes" in text
    assert [line.split()[0] for line in caplog.messages if re.match(r" +\d", line)] == ["1", "2", "3"]


def test_verbose_is_seen_without_any_setting_up(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    StructuredSVM(model="multiclass", verbose=1, max_iter=2).fit(np.eye(4), [0, 1, 0, 1])
    out = capsys.readouterr().out
    assert "primal" in out
    assert "passes" in out
    assert not logging.getLogger("fginfer").isEnabledFor(logging.INFO)
    StructuredSVM(model="multiclass", max_iter=2).fit(np.eye(4), [0, 1, 0, 1])
    assert capsys.readouterr().out == ""


def test_points_are_the_same_for_every_solver():
    X, y = words()
    for solver in SOLVERS:
        seen = StructuredSVM(solver=solver, max_iter=3, tol=0.0, callback=lambda p: None).fit(X, y).trace_
        assert (seen[0].infeasibility is None) == (solver in ("gdmm", "soft-bcfw"))
        points = StructuredSVM(solver=solver, max_iter=3, tol=0.0, eval_every=1).fit(X, y).trace_
        assert [p.passes for p in points] == [1, 2, 3]
        for p in points:
            assert json.loads(json.dumps(p)) == list(p)  # plain numbers and None
            assert p.oracle_calls > 0
            assert p.entries_touched > 0
            assert p.seconds > 0
            assert (p.gap is None) == (p.primal is None or p.dual is None)
        assert (points[-1].primal is None) == (solver in ("perceptron", "mira"))
        assert (points[-1].dual is None) == (solver in ("perceptron", "mira", "ssg"))
        assert (points[-1].infeasibility > 0) == (solver in ("gdmm", "soft-bcfw"))


@pytest.mark.parametrize("name", RUNS)
def test_the_number_of_threads_changes_nothing(name):
    X, y = problem(name)
    fits = [StructuredSVM(**{**settings_of(name), "batch_size": 8, "n_jobs": n}).fit(X, y) for n in (1, 2, 4)]
    for other in fits[1:]:
        same(fits[0], other)
