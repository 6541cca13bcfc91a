"""Peers: what they are told of cutoffs, how their answers are read, and that their time ends."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest

from fginfer import FactorGraph, read, solve
from fginfer.compare import compare, toulbar2
from fginfer.compare.peers import PEERS
from fginfer.compare.worker import answer_of

JOB = {"evidence": None, "seconds": 2.0, "seed": 0, "threads": 1, "gap": 1e-6, "max_memory": None}
INFEASIBLE = "ub 2 2 2 2\n2 2\n1 0 1 1\n1 2\n1 1 1 1\n1 2\n"

posix = pytest.mark.skipif(os.name != "posix", reason="a program here is a script")


def two(cutoff: float = -inf) -> FactorGraph:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[-1.0, -2.0], [-2.0, -3.0]])
    graph.cutoff = cutoff
    return graph


def program(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the name toulbar2 that does what the body says; $2 is -timer=N, $3 is -w=FILE."""
    path = folder / "toulbar2"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@posix
@pytest.mark.parametrize(
    ("body", "status", "labels"),
    [
        ("echo 'No solution in 0 backtracks'", "infeasible", None),
        ("echo '0 0' > ${3#-w=}; echo 'Optimum: 1 in 0 backtracks'", "optimal", [0, 0]),
        ("echo '1 0' > ${3#-w=}; echo 'Time limit expired'", "time_limit", [1, 0]),
        ("echo '1' > ${3#-w=}; exec sleep 600", "time_limit", None),  # half a solution
        ("echo '0 1' > ${3#-w=}; exec sleep 600", "time_limit", [0, 1]),
        ("echo '0 7' > ${3#-w=}; exec sleep 600", "time_limit", None),
        ("echo nonsense; exit 1", "failed", None),
    ],
)
def test_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, status: str, labels: list[int] | None
) -> None:
    program(tmp_path, body, monkeypatch)
    answer = PEERS["toulbar2"].run(two(), 0.3)
    assert answer.status == status
    assert (None if answer.labels is None else answer.labels.tolist()) == labels
    assert answer.bound == (-1.0 if status == "optimal" else None)


PACKAGE = """
import time
class Contradiction(Exception):
    pass
class CFN:
    def Read(self, path):
        {read}
    def Solve(self, timeLimit, writeSolution):
        {solve}
    def GetDDualBound(self):
        return {dual}
"""


@pytest.mark.parametrize(
    ("read_", "solve_", "dual", "status"),
    [
        ("pass", "return [0, 0], 5.0, 1", 5.0, "optimal"),
        ("pass", "return [0, 0], 5.0, 1", 4.0, "time_limit"),
        ("pass", "return None", 0.0, "infeasible"),
        ("raise Contradiction", "pass", 0.0, "infeasible"),
        ("raise ValueError", "pass", 0.0, "failed"),
        ("pass", "time.sleep(600)", 0.0, "time_limit"),
    ],
)
def test_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_: str, solve_: str, dual: float, status: str
) -> None:
    (tmp_path / "pytoulbar2.py").write_text(PACKAGE.format(read=read_, solve=solve_, dual=dual))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    answer = PEERS["toulbar2"].run(two(), 0.5)
    assert answer.status == status
    assert answer.bound == (-1.0 if status == "optimal" else None)


@pytest.mark.parametrize(("cutoff", "name"), [(-inf, "model.uai"), (-2.0, "model.wcsp")])
def test_toulbar2_is_told_the_cutoff(tmp_path: Path, cutoff: float, name: str) -> None:
    path = toulbar2.exact_file(two(cutoff), tmp_path)
    assert path.name == name
    told = read(path)
    for labels in product(range(2), repeat=2):
        score = two().score(labels)
        assert (told.score(labels) > told.cutoff) == (score > cutoff)
        assert told.score(labels) == (score if score > cutoff else -inf)


def test_a_cutoff_between_costs_that_are_not_whole(tmp_path: Path) -> None:
    graph = FactorGraph([2])
    graph.add_factor([0], [-1.5, -2.5])
    graph.cutoff = -1.25
    path = toulbar2.exact_file(graph, tmp_path)
    assert (path.name, solve(read(path)).status) == ("model.cfn", "infeasible")


def test_a_labeling_that_is_not_above_the_cutoff_is_none(tmp_path: Path) -> None:
    (tmp_path / "ub.wcsp").write_text(INFEASIBLE)
    job = JOB | {"path": str(tmp_path / "ub.wcsp")}
    for method in ("auto", "highs"):
        answer = answer_of(job | {"method": method})
        assert (answer["status"], answer["score"], answer["labels"]) == ("infeasible", None, None)


def test_an_infeasible_linear_program() -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], np.full((2, 2), -np.inf))
    assert PEERS["highs"].run(graph, 5.0).status == "infeasible"


def test_the_rows_of_highs_say_what_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fginfer.cli import main

    (tmp_path / "m.wcsp").write_text(INFEASIBLE.replace("2 2 2 2", "2 2 2 9", 1))
    assert main(["compare", str(tmp_path / "m.wcsp"), "--methods", "highs", "--out", str(tmp_path / "out")]) == 0
    assert "converged (rounded LP)" in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "converged (rounded LP)" in page
    assert "HiGHS in SciPy" in page
    assert "Machine: " in page
    assert "rounded LP" in (tmp_path / "out" / "results.csv").read_text()


def test_help_says_what_the_peers_are(capsys: pytest.CaptureFixture[str]) -> None:
    from fginfer.cli import main

    assert main(["compare", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    for peer in PEERS.values():
        assert f"{peer.name} {peer.what}" in words


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(
    tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fginfer.cli import main

    (tmp_path / "file").write_text("precious")
    (tmp_path / "m.wcsp").write_text(INFEASIBLE)
    monkeypatch.setattr("fginfer.compare.runs.compare_until_stopped", lambda *_, **__: pytest.fail("it began"))
    assert main(["compare", str(tmp_path / "m.wcsp"), "--out", str(tmp_path / out)]) == 3
    assert "folder for the report" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are any bytes there")
def test_names_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fginfer.cli import main

    path = tmp_path / os.fsdecode(b"a\xff\x1b[2J\n.wcsp")
    path.write_text(INFEASIBLE)
    assert main(["compare", str(path), "--methods", "icm", "--out", str(tmp_path / "out")]) == 0
    assert "a\\xff\\x1b[2J\\n.wcsp" in capsys.readouterr().out
    for name in ("results.csv", "results.json", "report.html"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "\x1b" not in text.replace("\x1b", "" if name == "results.csv" else "\x1b")  # a table of data is exact
    assert compare([path], ["icm"], time_limit=1.0).runs[0].status != "failed"
