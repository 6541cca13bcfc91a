"""fginfer solve: JSON schema, exit codes, evidence, output files, interrupts."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cli_support import grid, run, strict_json

from fginfer import FactorGraph
from fginfer.formats import read_solution, write

MANUAL = (Path(__file__).parents[2] / "docs" / "start" / "command_line.md").read_text()


def test_json_has_every_field(tmp_path, capsys):
    graph = grid(tmp_path / "g.uai.gz")
    code, out, _ = run(
        capsys, "solve", tmp_path / "g.uai.gz", "--method", "icm", "--max-iterations", 5, "--json", "--trace"
    )
    data = strict_json(out)
    table = MANUAL[MANUAL.index("## JSON of `solve`") :].split("\n\n")[2]
    assert set(data) == {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert (code, data["status"], data["iterations"]) == (2, "iteration_limit", 5)
    assert data["model"] == {"variables": 36, "factors": 96, "max_labels": 3, "table_entries": 36 * 3 + 60 * 9}
    assert data["score"] == pytest.approx(graph.score(data["labels"]), rel=1e-12)
    assert data["energy"] == -data["score"]
    assert data["gap"] == pytest.approx((data["bound"] - data["score"]) / max(1, abs(data["score"])))
    assert all(len(point) == 3 for point in data["trace"])
    assert data["trace"][-1][1] == data["score"]
    assert data["seconds"] >= data["trace"][-1][0] >= 0


def test_defaults_and_quiet(tmp_path, capsys):
    path = tmp_path / "free.uai"
    write(FactorGraph.from_arrays([2, 3], [[0.0, 1.0], [0.0, 0.5, 2.0]]), path)
    code, out, err = run(capsys, "solve", path, "--json", "--quiet")
    data = strict_json(out)
    assert (code, data["status"], data["labels"], data["seed"], data["threads"]) == (0, "optimal", [1, 2], 0, 1)
    assert "trace" not in data
    assert err == ""
    code, out, err = run(capsys, "solve", path)
    assert code == 0
    assert "status  optimal" in out
    assert "labels  1 2" in out
    assert "scores are maximised" in err
    assert "free.uai: 2 variables, 2 factors, up to 3 labels" in err


def test_the_level_of_the_log_is_given_back(tmp_path, capsys):
    grid(tmp_path / "g.uai")
    level = logging.getLogger("fginfer").level
    run(capsys, "solve", tmp_path / "g.uai")
    assert logging.getLogger("fginfer").level == level


def test_infeasible_is_twenty_and_null(tmp_path, capsys):
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], np.full((2, 2), -np.inf))
    write(graph, tmp_path / "no.uai")
    code, out, _ = run(capsys, "solve", tmp_path / "no.uai", "--json", "--trace")
    data = strict_json(out)
    assert (code, data["status"]) == (20, "infeasible")
    assert [data[k] for k in ("score", "energy", "bound", "gap", "labels")] == [None] * 5


def test_a_limit_of_no_time_leaves_a_labeling_and_a_bound(tmp_path, capsys):
    grid(tmp_path / "g.uai")
    code, out, _ = run(capsys, "solve", tmp_path / "g.uai", "--time-limit", 0, "--json", "--method", "icm")
    data = strict_json(out)
    assert (code, data["status"], data["iterations"]) == (2, "time_limit", 0)
    assert data["score"] <= data["bound"]
    assert data["gap"] >= 0


@pytest.mark.parametrize(("cutoff", "status"), [("-1e5", "optimal"), ("-.5e0", "optimal"), ("1e5", "infeasible")])
def test_a_cutoff_is_a_number_of_any_form(tmp_path, capsys, cutoff, status):
    grid(tmp_path / "g.uai")
    _, out, _ = run(capsys, "solve", tmp_path / "g.uai", "--cutoff", cutoff, "--json")
    assert strict_json(out)["status"] == status


def test_evidence_is_about_the_original_variables(tmp_path, capsys):
    graph = grid(tmp_path / "g.uai")
    (tmp_path / "g.evid").write_text("2 0 2 7 1\n")
    args = ["solve", tmp_path / "g.uai", "--evidence", tmp_path / "g.evid", "--method", "icm", "--max-iterations", 20]
    code, out, _ = run(capsys, *args, "--json", "-o", tmp_path / "g.MPE")
    data = strict_json(out)
    assert code == 2
    assert len(data["labels"]) == 36
    assert (data["labels"][0], data["labels"][7]) == (2, 1)
    assert data["score"] == pytest.approx(graph.score(data["labels"]), rel=1e-12)
    assert data["model"]["variables"] == 36
    assert read_solution(tmp_path / "g.MPE", graph).tolist() == data["labels"]
    code, out, _ = run(capsys, *args[:1], tmp_path / "g.uai", "--start", tmp_path / "g.MPE", *args[4:-1], 0, "--json")
    assert strict_json(out)["score"] == pytest.approx(data["score"], rel=1e-12)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["solve", "{tmp}/none.uai"], "none.uai"),
        (["solve", "{tmp}/bad.uai"], "bad.uai"),
        (["solve", "{tmp}/g.uai", "--method", "magic"], "no method 'magic'"),
        (["solve", "{tmp}/g.uai", "--threads", "0"], "threads"),
        (["solve", "{tmp}/g.uai", "--time-limit", "-1"], ">= 0"),
        (["solve", "{tmp}/g.uai", "--time-limit", "-1e-3"], "--time-limit must be a number of seconds >= 0"),
        (["solve", "{tmp}/g.uai", "--time-limit", "nan"], "--time-limit must be a number of seconds >= 0"),
        (["compare", "{tmp}/g.uai", "--time-limit", "nan"], "--time-limit must be > 0"),
        (["solve", "{tmp}/g.uai", "--gap", "nan"], "gap"),
        (["solve", "{tmp}/g.uai", "--gap", "abc"], "invalid float"),
        (["solve", "{tmp}/g.uai", "--option", "rho"], "NAME=VALUE"),
        (["solve", "{tmp}/g.uai", "--method", "icm", "--option", "speed=3"], "unknown option 'speed'"),
        (["solve", "{tmp}/g.uai", "--evidence", "{tmp}/far.evid"], "99"),
        (["solve", "{tmp}/g.uai", "--out", "{tmp}/no/such/dir", "--method", "icm", "--max-iterations", "1"], "no/such"),
        (["solve", "{tmp}/g.uai", "--time-limt", "3"], "did you mean --time-limit?"),
        (["solve", "{tmp}/g.uai", "--max-memory", "lots"], "write 500MB, 4GB or a number of bytes"),
        (["solve", "{tmp}/g.uai", "--max-memory", "-1GB"], "no amount of memory"),
        (["solve", "{tmp}/g.uai", "--max-memory=0"], "no amount of memory"),
        (["solve"], "required"),
        (["fly"], "no command 'fly'; did you mean fginfer --help?"),
        (["slove", "{tmp}/g.uai"], "did you mean fginfer solve?"),
        (["{tmp}/g.uai"], "did you mean fginfer solve "),
        ([], "usage"),
    ],
)
def test_bad_input_and_usage_are_three(tmp_path, capsys, args, message):
    grid(tmp_path / "g.uai")
    (tmp_path / "bad.uai").write_bytes(b"\x00\xffMARKOV nonsense")
    (tmp_path / "far.evid").write_text("1 99 0\n")
    code, out, err = run(capsys, *[a.format(tmp=tmp_path) for a in args])
    assert code == 3
    assert message in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_prints_the_incumbent(tmp_path, how):
    grid(tmp_path / "g.npz", side=120, labels=4)
    command = [sys.executable, "-P", "-m", "fginfer", "solve", str(tmp_path / "g.npz"), "--method", "icm", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:  # the first row of progress: it is at work
            if line.rstrip().endswith("s") and line.split()[0].isdigit():
                break
        time.sleep(0.1)
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    data = strict_json(out)
    assert (process.returncode, data["status"]) == (2, "interrupted")
    assert data["score"] is not None
    assert "interrupted" in err
    assert "Traceback" not in err
