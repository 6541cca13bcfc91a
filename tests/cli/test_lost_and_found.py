"""fginfer solve: no answer is lost to a stream, a file, a locale or a failure; exit code 20 means a proof alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import grid, run, strict_json

import fginfer.commands.solve as commands
from fginfer.commands.stops import stop_signals
from fginfer.engine import NativeEngine
from fginfer.solver import Solver

linux = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = command.replace("fginfer ", f"{sys.executable} -P -m fginfer ", 1)
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    grid(tmp_path / "g.uai")
    return tmp_path / "g.uai"


def test_closed_streams(model: Path) -> None:
    closed_out = shell(f"fginfer solve {model} --quiet >&-")
    assert closed_out.returncode == 0
    assert "status  optimal" in closed_out.stderr
    closed_err = shell(f"fginfer solve {model} 2>&-")
    assert closed_err.returncode == 0
    assert "status  optimal" in closed_err.stdout
    both = shell(f"fginfer solve {model} --out {model}.MPE >&- 2>&-")
    assert both.returncode == 0
    assert Path(f"{model}.MPE").read_text().startswith("MPE\n36 ")
    assert shell(f"fginfer solve {model}.missing >&- 2>&-").returncode == 3


@linux
def test_full_streams(model: Path) -> None:
    full_out = shell(f"fginfer solve {model} --quiet --json >/dev/full")
    assert full_out.returncode == 4
    assert strict_json(full_out.stderr.splitlines()[0])["status"] == "optimal"
    full_err = shell(f"fginfer solve {model} 2>/dev/full")
    assert full_err.returncode == 0
    assert "status  optimal" in full_err.stdout


def test_readers_that_leave(model: Path) -> None:
    left = shell(f"fginfer solve {model} --quiet | true; echo ${{PIPESTATUS[0]}}")
    assert left.stdout.strip() in ("0", "2")  # 0: it was written before the reader left
    assert left.stderr == ""
    log = shell(f"fginfer solve {model} 2> >(true)")
    assert log.returncode == 0
    assert "status  optimal" in log.stdout


@pytest.mark.parametrize("out", ["missing/x.MPE", "."])
def test_an_unwritable_file_is_noticed_before_the_work(model: Path, out: str, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("fginfer.commands.solve.load", lambda args: pytest.fail("it began"))
    code, printed, complaint = run(capsys, "solve", model, "--out", model.parent / out)
    assert (code, printed) == (3, "")
    assert "cannot be written" in complaint


@linux
def test_a_file_that_fills_up_is_answered_on_stdout(model: Path, capsys: Any) -> None:
    code, printed, complaint = run(capsys, "solve", model, "--out", "/dev/full", "--quiet")
    assert code == 4
    assert "cannot be written" in complaint
    labels = next(line for line in printed.splitlines() if line.startswith("labels"))
    assert len(labels.split()) == 37  # all of them


def test_an_existing_file_stays_until_there_is_something_better(model: Path, capsys: Any) -> None:
    out = model.parent / "x.MPE"
    out.write_text("precious")
    code, _, _ = run(capsys, "solve", model, "--out", out, "--option", "nonsense=1")
    assert code == 3
    assert out.read_text() == "precious"
    assert sorted(p.name for p in model.parent.iterdir()) == ["g.uai", "x.MPE"]


def test_an_ascii_locale(tmp_path: Path) -> None:
    path = tmp_path / "größe.uai"
    grid(path)
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    for command in (f"solve '{path}' --out '{path}.MPE'", f"info '{path}'", f"check '{path}' '{path}.MPE'"):
        done = shell(f"fginfer {command}", **environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout


@pytest.mark.parametrize("error", [MemoryError("none left"), RuntimeError("a bug"), OverflowError("1025")])
def test_a_failure_prints_what_was_found(
    model: Path, error: Exception, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = NativeEngine.run

    def fails(self: NativeEngine, seconds: float, iterations: int) -> str:
        if self.info.iterations >= 2:
            raise error
        return native(self, seconds, 1)

    monkeypatch.setattr(NativeEngine, "run", fails)
    code, out, err = run(capsys, "solve", model, "--method", "icm", "--json", "--out", f"{model}.MPE")
    data = strict_json(out)
    assert (code, data["status"]) == (4, "failed")
    assert len(data["labels"]) == 36
    assert Path(f"{model}.MPE").exists()
    assert str(error) in err


def test_an_unforeseen_error_is_not_a_proof(model: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fginfer.commands.solve.load", lambda args: 1 // 0)
    code, _, err = run(capsys, "solve", model)
    assert code == 4
    assert "ZeroDivisionError" in err


def test_only_a_proof_is_one(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "none.uai"
    path.write_text("MARKOV\n2\n2 2\n2\n2 0 1\n2 0 1\n4 1 0 0 1\n4 0 1 1 0\n")
    code, out, _ = run(capsys, "solve", path, "--json")
    assert (code, strict_json(out)["status"]) == (20, "infeasible")


@pytest.mark.parametrize("when", ["Solver.result", "write_solution", "summary"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_answer_is_written(
    model: Path, when: str, number: int, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"fginfer.commands.solve.{when}"
    wrapped = Solver.result if when == "Solver.result" else getattr(commands, when)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        os.kill(os.getpid(), number)
        return wrapped(*args, **kwargs)

    monkeypatch.setattr(name, interrupted)
    before = signal.getsignal(number)
    code, out, err = run(capsys, "solve", model, "--out", f"{model}.MPE", "--quiet")
    assert (code, err) == (0, "")
    assert "status  optimal" in out
    assert Path(f"{model}.MPE").read_text().startswith("MPE\n36 ")
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_answer_does_not_change_the_exit_code(model: Path, number: int) -> None:
    program = f"""if True:
        import atexit, os, sys
        sys.argv = sys.orig_argv = ["fginfer"]
        from fginfer.cli import main
        atexit.register(lambda: os.kill(os.getpid(), {int(number)}))
        sys.exit(main(["solve", {str(model)!r}, "--quiet"]))"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "status  optimal" in done.stdout


@pytest.mark.parametrize("finished", [False, True])
def test_the_third_signal_ends_everything(finished: bool) -> None:
    with stop_signals() as stops:
        stops.answering = finished  # the method was done before somebody pressed Ctrl-C twice
        if finished:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert stops.answering
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("name", ["fginfer", "my_program.py"])
def test_an_interrupt_during_start_up_is_quiet_in_our_command_only(name: str) -> None:
    code = (
        "import os, signal, sys; sys.argv = sys.orig_argv = [sys.argv[1]]; import fginfer; "
        "os.kill(os.getpid(), signal.SIGINT)"
    )
    done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=False)
    if name == "fginfer":
        assert (done.returncode, done.stderr) == (2, "fginfer: interrupted\n")
    else:
        assert done.stderr.rstrip().endswith("KeyboardInterrupt")
