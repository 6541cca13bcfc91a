"""Solvers in forked children, in threads when the interpreter ends, and where the system grants no threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, get_ident

import numpy as np
import pytest

from fginfer import FactorGraph, Solver, available_methods, solve, solve_many
from fginfer.crew import Crew

ROOT = Path(__file__).parents[2]
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
NATIVE = sorted(set(available_methods()) - {"assignment", "auto"})


def chain(n: int, labels: int = 3) -> FactorGraph:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], 1)
    return FactorGraph.from_arrays(
        [labels] * n, rng.normal(size=(n, labels)), edges, tables=rng.normal(size=(n - 1, labels, labels))
    )


def loopy(n: int = 400, labels: int = 3) -> FactorGraph:
    rng = np.random.default_rng(1)
    i = np.arange(n)
    edges = np.concatenate([np.stack([i, (i + step) % n], 1) for step in (1, 20)])
    return FactorGraph.from_arrays(
        [labels] * n, rng.normal(size=(n, labels)), edges, tables=rng.normal(size=(len(edges), labels, labels))
    )


def in_child(job: Callable[[], bool], seconds: int = 20) -> bool:
    """Runs the job in a forked child; False if it fails or hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)  # ends a child that hangs
        code = 1
        try:
            code = 0 if job() else 2
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@fork
@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which takes pairs alone
def test_a_forked_child_may_use_an_inherited_solver(method: str) -> None:
    solver = Solver(loopy(), method, threads=3, max_iterations=12, gap=0.0)
    solver.run(iterations=3)

    def goes_on() -> bool:
        solver.run()
        child = solver.result()
        solver.close()
        return child.score == twin.score and np.array_equal(child.labels, twin.labels)

    other = Solver(loopy(), method, threads=1, max_iterations=12, gap=0.0)
    other.run(iterations=3)
    other.run()
    twin = other.result()
    assert in_child(goes_on)
    solver.run()  # and the parent is not disturbed
    assert solver.result().score == twin.score


@fork
@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which takes pairs alone
def test_a_forked_child_may_drop_an_inherited_solver(method: str) -> None:
    solver: list[Solver] = [Solver(loopy(), method, threads=3)]
    solver[0].run(iterations=2)

    def drops() -> bool:
        solver.clear()
        return True

    assert in_child(drops)


def _score(n: int) -> float | None:
    return solve(chain(n), threads=2).score


@fork
def test_multiprocessing_with_fork() -> None:
    inherited = Solver(loopy(), "trws", threads=2)
    inherited.run(iterations=2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        scores = pool.map_async(_score, [20, 30, 40]).get(60)
    assert scores == [_score(n) for n in (20, 30, 40)]


# The programs run the installed package; what they share with the tests comes last on their path.
EXIT = f"""
import sys; sys.path.append({str(ROOT)!r})
import threading
from tests.solvers.test_processes import loopy
from fginfer import solve
def work():
    result = solve(loopy(2500, 4), time_limit=1.0, threads=2, gap=0.0)
    print(result.status, result.score is not None, flush=True)
threading.Thread(target=work, daemon={{daemon}}).start()
{{pause}}
"""


@pytest.mark.parametrize("daemon", [False, True])
def test_auto_in_a_thread_at_interpreter_exit(daemon: bool) -> None:
    program = EXIT.format(daemon=daemon, pause="import time; time.sleep(0.3)" if daemon else "")
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    if not daemon:
        assert done.stdout.split()[1] == "True"


NO_THREADS = f"""
import sys; sys.path.append({str(ROOT)!r})
import threading
import fginfer, fginfer.crew
from tests.solvers.test_processes import loopy
expected = fginfer.solve(loopy(), max_iterations=4, gap=0.0)
class Refused(threading.Thread):
    def start(self): raise RuntimeError("can't start new thread")
fginfer.crew.Thread = Refused
import resource
now = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (now + (64 << 20), -1))  # no room for the stacks of many threads
for threads in (2, 500):
    result = fginfer.solve(loopy(), threads=threads, max_iterations=4, gap=0.0)
    assert result.score == expected.score, threads
    assert fginfer.solve(loopy(), "trws", threads=threads, max_iterations=9).score is not None
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_where_no_thread_can_be_made_there_are_fewer() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", NO_THREADS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_crew_does_what_it_is_given() -> None:
    crew = Crew(2)
    tasks = [crew.submit(lambda k=k: k * k) for k in range(50)]  # type: ignore[misc]
    assert [task.result() for task in tasks] == [k * k for k in range(50)]
    failed = crew.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.result()
    crew.close()
    assert crew.submit(lambda: 7).result() == 7


def test_who_waits_helps() -> None:
    """What no thread has begun is done by the one who would wait for it."""
    crew, begun, gate = Crew(1), Event(), Event()
    busy = crew.submit(lambda: begun.set() or gate.wait())
    assert begun.wait(60)
    waiting = [crew.submit(get_ident) for _ in range(3)]
    crew.help()
    assert [task.result() for task in waiting] == 3 * [get_ident()]
    gate.set()
    assert busy.result()
    crew.close()


def test_solve_many_ends_with_the_first_error() -> None:
    def callback(progress: object) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError):
        solve_many([loopy(2500, 4)] * 6, "trws", workers=2, callback=callback, gap=0.0)
