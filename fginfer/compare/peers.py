"""Other solvers, if they are installed: toulbar2 (Python package or program) and HiGHS on the local-polytope LP.

A peer gets the same graph as our methods and returns labels (or None), a bound on the score (or None) and the seconds
it took. Its labeling is re-scored by the caller: toulbar2, for one, reports shifted and rounded costs.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import FormatError
from fginfer.formats import write
from fginfer.graph import FactorGraph

LP_ENTRIES = 3_000_000  # an LP with more columns is not tried: it would not be built within any usual limit


@dataclass(frozen=True)
class PeerAnswer:
    """What a peer found."""

    labels: NDArray[np.int32] | None
    bound: float | None
    seconds: float
    status: str


@dataclass(frozen=True)
class Peer:
    """A solver that is not ours: how to see whether it is there, and how to run it."""

    name: str
    missing: Callable[[], str | None]  # None if it can be run, else what to install
    run: Callable[[FactorGraph, float], PeerAnswer]


def _toulbar2_missing() -> str | None:
    if shutil.which("toulbar2") or find_spec("pytoulbar2"):
        return None
    return "toulbar2: neither the program (Debian package toulbar2) nor pytoulbar2 (pip) is installed"


def _toulbar2(graph: FactorGraph, seconds: float) -> PeerAnswer:
    """The program if it is there, else the Python package.

    Its bound is in scaled whole numbers, so it is told only where it meets the answer: at a proven optimum.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = _exact_file(graph, Path(folder))
        program = shutil.which("toulbar2")
        answer = _program(program, model, seconds) if program else _package(model, seconds)
    if answer.status == "optimal" and answer.labels is not None:
        return replace(answer, bound=graph.score(answer.labels))
    return answer


def _exact_file(graph: FactorGraph, folder: Path) -> Path:
    """A file that toulbar2 reads exactly: it rounds .cfn, and misses the hard constraints of .LG."""
    try:
        write(graph, folder / "model.uai")
    except FormatError:  # a potential that no double can hold
        write(graph, folder / "model.LG")
        return folder / "model.LG"
    return folder / "model.uai"


def _program(program: str, model: Path, seconds: float) -> PeerAnswer:
    solution = model.with_suffix(".sol")
    start = time.perf_counter()
    command = [program, str(model), f"-timer={max(1, round(seconds))}", f"-w={solution}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * seconds + 10, check=False)
        text = done.stdout
    except subprocess.TimeoutExpired as expired:
        text = expired.stdout.decode() if isinstance(expired.stdout, bytes) else expired.stdout or ""
    spent = time.perf_counter() - start
    labels = None
    if solution.exists() and (words := solution.read_text().split()):
        labels = np.array([int(word.lstrip("v")) for word in words], np.int32)
    status = "optimal" if "Optimum:" in text else "time_limit" if labels is not None or spent >= seconds else "failed"
    return PeerAnswer(labels, None, spent, status)


def _package(model: Path, seconds: float) -> PeerAnswer:
    import pytoulbar2

    start = time.perf_counter()
    problem = pytoulbar2.CFN()
    problem.Read(str(model))
    answer = problem.Solve(timeLimit=max(1, round(seconds)))
    spent = time.perf_counter() - start
    labels = None if answer is None else np.array(answer[0], np.int32)
    proven = answer is not None and problem.GetDDualBound() >= answer[1]
    status = "optimal" if proven else "time_limit"
    return PeerAnswer(labels, None, spent, status)


def _highs(graph: FactorGraph, seconds: float) -> PeerAnswer:
    """The relaxation by HiGHS (inside SciPy); its labeling is the rounded solution of the LP."""
    from fginfer.compare.lp import local_polytope

    start = time.perf_counter()
    problem = local_polytope(graph, LP_ENTRIES)
    if problem is None:
        return PeerAnswer(None, None, time.perf_counter() - start, "too_large")
    answer = problem.solve(max(0.0, seconds - (time.perf_counter() - start)))
    spent = time.perf_counter() - start
    if answer is None:
        return PeerAnswer(None, None, spent, "time_limit")
    labels, bound = answer
    return PeerAnswer(labels, bound, spent, "converged")


PEERS = {
    "toulbar2": Peer("toulbar2", _toulbar2_missing, _toulbar2),
    "highs": Peer("highs", lambda: None, _highs),
}
