"""toulbar2 as a peer: the program if it is there, else the Python package, in a process that ends with its time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.compare.answers import PeerAnswer
from fginfer.errors import FormatError
from fginfer.formats import write
from fginfer.graph import FactorGraph


def missing() -> str | None:
    """None if toulbar2 is here, else what to install."""
    if shutil.which("toulbar2") or find_spec("pytoulbar2"):
        return None
    return "toulbar2: neither the program (Debian package toulbar2) nor pytoulbar2 (pip) is installed"


def version_text() -> str:
    """Which toulbar2 would be run."""
    program = shutil.which("toulbar2")
    if program is None:
        try:
            return f"pytoulbar2 {version('pytoulbar2')}"
        except PackageNotFoundError:
            return "pytoulbar2"
    try:
        said = subprocess.run(
            [program, "--help"], capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    found = re.search(r"version\s*:\s*(\S+)", said)
    return f"toulbar2 {found[1]}" if found else "toulbar2"


def run(graph: FactorGraph, seconds: float) -> PeerAnswer:
    """Its bound is in scaled whole numbers, so it is told only where it meets the answer: at a proven optimum."""
    with tempfile.TemporaryDirectory() as folder:
        model = exact_file(graph, Path(folder))
        solution = model.with_suffix(".sol")
        whole = max(1, int(seconds))  # it takes whole seconds
        program = shutil.which("toulbar2")
        if program:
            text, spent, killed = _watched([program, str(model), f"-timer={whole}", f"-w={solution}"], seconds, False)
        else:
            child = str(Path(__file__).with_name("toulbar2_package.py"))
            command = [sys.executable, "-P", child, str(model), str(whole), str(solution)]
            text, spent, killed = _watched(command, seconds, True)
        labels = _labels(solution, graph)
    status = "time_limit" if killed else _status(text, labels is not None, spent >= whole)
    answer = PeerAnswer(labels, None, spent, status)
    return replace(answer, bound=graph.score(labels)) if status == "optimal" and labels is not None else answer


def exact_file(graph: FactorGraph, folder: Path) -> Path:
    """A file that toulbar2 reads exactly. It rounds .cfn and misses the hard constraints of .LG, so these come last;
    but a model with a cutoff must be in a file that has a place for it."""
    names = ("model.uai", "model.LG") if graph.cutoff == -inf else ("model.wcsp", "model.cfn")
    try:
        write(graph, folder / names[0])
    except FormatError:  # a potential that no double can hold, or costs that are not whole
        write(graph, folder / names[1])
        return folder / names[1]
    return folder / names[0]


def _watched(command: list[str], seconds: float, says_ready: bool) -> tuple[str, float, bool]:
    """What a process prints, the seconds it took, and whether it had to be killed: a little after its time is over, so
    that one that keeps the limit by itself can say what it found."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0) as process:
        start, said, killed = time.perf_counter(), b"", False
        try:
            if says_ready and process.stdout is not None:
                said = process.stdout.readline()  # unbuffered: a buffer would hide from `communicate` what it holds
                start = time.perf_counter()
            said += process.communicate(timeout=1.1 * seconds + 0.2)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            said += process.communicate()[0]
            killed = True
        except BaseException:
            process.kill()
            raise
        return said.decode("utf-8", "replace"), time.perf_counter() - start, killed


def _status(text: str, found: bool, late: bool) -> str:
    """How a run ended that ended by itself, from what the program or the package prints."""
    if "Optimum:" in text or "status optimal" in text:
        return "optimal"
    if "No solution in " in text or "status infeasible" in text:
        return "infeasible"
    return "time_limit" if found or late or "status time_limit" in text else "failed"


def _labels(solution: Path, graph: FactorGraph) -> NDArray[np.int32] | None:
    """The labels in a file that a killed process may have left half written; None if they are not all there."""
    try:
        labels = np.array([int(word.lstrip("v")) for word in solution.read_text().split()], np.int64)
    except (OSError, ValueError):
        return None
    if len(labels) != graph.n_variables or not len(labels) or ((labels < 0) | (labels >= graph.cards)).any():
        return None
    return labels.astype(np.int32)
