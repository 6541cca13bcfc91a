"""compare: neither Ctrl-C nor a full disk costs the runs that have ended."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fginfer import FactorGraph, compare, write
from fginfer.cli import main
from fginfer.compare import runs

posix = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write(FactorGraph([2, 2]), tmp_path / "m.uai")
    return tmp_path / "m.uai"


def stop_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Ctrl-C when so many runs have ended."""
    original, ended = runs._run, []

    def stopping(*job: Any) -> runs.Run:
        if len(ended) == count:
            raise KeyboardInterrupt
        ended.append(job)
        return original(*job)

    monkeypatch.setattr(runs, "_run", stopping)


def test_a_report_of_what_has_run(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop_after(monkeypatch, 1)
    assert main(["compare", str(model), "--methods", "icm,trws", "--out", str(tmp_path / "out")]) == 2
    assert "icm" in capsys.readouterr().out
    with open(tmp_path / "out" / "results.csv", newline="") as stream:
        assert [row["status"] for row in csv.DictReader(stream)] == ["optimal", "interrupted"]
    assert "interrupted" in (tmp_path / "out" / "report.html").read_text()


def test_json_of_what_has_run(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stop_after(monkeypatch, 1)
    assert main(["compare", str(model), "--methods", "icm,trws", "--json"]) == 2
    assert [run["status"] for run in json.loads(capsys.readouterr().out)["runs"]] == ["optimal", "interrupted"]


def test_python_is_told(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_after(monkeypatch, 1)
    seen: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        compare.compare([model], ["icm", "trws"], time_limit=1.0, report=lambda run: seen.append(run.method))
    assert seen == ["icm"]


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal(model: Path, tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-P", "-m", "fginfer", "compare", model, "--methods", "icm", "--repeat", "1000"]
    with subprocess.Popen([*command, "--out", tmp_path / "out"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("file")
        assert "icm" in process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 2
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("options", [["--out", "out"], ["--json"], []])
def test_a_full_stdout(model: Path, tmp_path: Path, options: list[str]) -> None:
    command = [sys.executable, "-P", "-m", "fginfer", "compare", str(model), "--methods", "icm,trws", *options]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 4
    assert "trws" in done.stderr
    assert (tmp_path / "out" / "report.html").exists() == ("--out" in options)


def test_runs_that_all_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.uai").write_text("nonsense")
    assert main(["compare", str(tmp_path / "bad.uai"), "--methods", "icm"]) == 4
    assert "must start with MARKOV" in capsys.readouterr().out
