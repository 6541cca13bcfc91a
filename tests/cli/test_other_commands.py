"""fginfer info, convert, check, --version, and the pieces under them."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from cli_support import grid, run, strict_json

import fginfer
from fginfer import FactorGraph, Progress, available_methods, read, solve
from fginfer.cli import make_parser
from fginfer.formats import FORMATS, write, write_solution
from fginfer.log import LogColumns, RunLog, heading, logger, row
from fginfer.terminal import Terminal


def test_version_names_compiler_and_cpu_path():
    out = subprocess.run(
        [sys.executable, "-P", "-m", "fginfer", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert out.startswith(f"fginfer {fginfer.__version__} (")
    assert out.rstrip().endswith(("avx2)", "scalar)", "avx512)", "neon)"))


def test_help_of_every_command(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for command in ("solve", "info", "check", "convert"):
        assert command in out
        code, text, _ = run(capsys, command, "--help")
        assert code == 0
        assert "example" in text


def test_help_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    commands = next(action.choices for action in make_parser()._actions if isinstance(action.choices, dict))
    for parser in commands.values():
        lines = parser.format_help().splitlines()
        assert [line for line in lines if len(line) > 80 and not line.startswith("  ")] == []  # but examples


def test_info(tmp_path, capsys):
    graph = grid(tmp_path / "g.uai")
    code, out, _ = run(capsys, "info", tmp_path / "g.uai")
    assert code == 0
    assert "variables        36" in out
    assert "2: 60   (arity: factors)" in out
    code, out, _ = run(capsys, "info", tmp_path / "g.uai", "--json")
    assert strict_json(out)["labels"] == {"3": 36}
    assert strict_json(out)["components"] == graph.describe().components


@pytest.mark.parametrize("target", ["h.npz", "h.uai", "h.LG.gz", "h.cfn"])
def test_convert_keeps_scores(tmp_path, capsys, target):
    graph = grid(tmp_path / "g.npz")
    assert run(capsys, "convert", tmp_path / "g.npz", tmp_path / target)[0] == 0
    again = read(tmp_path / target)
    x = np.arange(36) % 3
    assert again.score(x) == pytest.approx(graph.score(x), rel=1e-9)


@pytest.mark.parametrize("command", ["solve", "info", "check", "convert"])
def test_every_command_that_reads_a_model_takes_max_memory(tmp_path, capsys, command):
    grid(tmp_path / "g.uai")
    (tmp_path / "x").write_text("MPE\n36 " + "0 " * 36)
    second = [tmp_path / "x"] if command == "check" else [tmp_path / "h.npz"] if command == "convert" else []
    code, _, err = run(capsys, command, tmp_path / "g.uai", *second, "--max-memory", "1kB")
    assert code == 3
    assert "GB, more than the 1e-06 GB allowed" in err
    assert "--max-memory" in err
    assert run(capsys, command, tmp_path / "g.uai", *second, "--max-memory", "0.5 MiB")[0] == 0


def test_convert_with_evidence_writes_the_reduced_model(tmp_path, capsys):
    graph = grid(tmp_path / "g.uai")
    (tmp_path / "g.evid").write_text("1 3 1")
    assert run(capsys, "convert", tmp_path / "g.uai", tmp_path / "h.uai", "--evidence", tmp_path / "g.evid")[0] == 0
    given = graph.condition({3: 1})
    x = np.arange(35) % 3
    assert read(tmp_path / "h.uai").score(x) == pytest.approx(given.graph.score(x), rel=1e-9)


def test_check_scores_and_lists_violations(tmp_path, capsys):
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0], [-np.inf, 0.25])
    graph.add_factor([0, 1], [[-np.inf, 1.0], [0.5, 0.0]])
    graph.add_factor([0, 1, 2], np.arange(8.0))
    write(graph, tmp_path / "m.npz")
    write_solution([1, 0, 1], tmp_path / "good.MPE")
    write_solution([0, 0, 1], tmp_path / "bad.MPE")
    code, out, _ = run(capsys, "check", tmp_path / "m.npz", tmp_path / "good.MPE")
    assert code == 0
    assert "score   5.75" in out
    code, out, _ = run(capsys, "check", tmp_path / "m.npz", tmp_path / "bad.MPE")
    assert code == 20
    assert "variable 0: label 0 is forbidden" in out
    assert "variables 0, 1: labels 0, 0 are forbidden together" in out
    code, out, _ = run(capsys, "check", tmp_path / "m.npz", tmp_path / "bad.MPE", "--json")
    data = strict_json(out)
    assert (data["score"], data["feasible"], len(data["violations"])) == (None, False, 2)
    (tmp_path / "e.evid").write_text("1 2 0")
    code, out, _ = run(capsys, "check", tmp_path / "m.npz", tmp_path / "good.MPE", "--evidence", tmp_path / "e.evid")
    assert code == 20
    assert "evidence: variable 2 has label 1, not 0" in out


def test_output_to_a_closed_pipe_is_quiet(tmp_path):
    grid(tmp_path / "g.uai")
    command = f"{sys.executable} -P -m fginfer info {tmp_path}/g.uai | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_shows_a_moving_line_and_takes_it_away(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)  # as if rich were not installed
    stream = FakeTerminal()
    logger.setLevel(logging.INFO)
    with Terminal(stream) as terminal:
        terminal.show(Progress(0.5, 10, 1.0, 2.0))
        logger.info("a line")
        terminal.show(Progress(0.6, 11, None, None))
    logger.setLevel(logging.NOTSET)
    text = stream.getvalue()
    assert "\x1b[K" in text
    assert "a line\n" in text
    assert text.endswith("\r\x1b[K")


def test_terminal_with_rich():
    stream = FakeTerminal()
    with Terminal(stream) as terminal:
        terminal.show(Progress(0.5, 10, 1.0, 2.0))
        terminal.show(Progress(0.6, 10, 1.0, 2.0))


def test_rows_line_up():
    points = [Progress(1.0, 5, None, None), Progress(123.4, 10**6, -1e5, 1e12, 1e-3, 2.5)]
    columns = LogColumns().with_those_of(points[1])
    assert len({len(heading(columns)), *(len(row(p, columns)) for p in points)}) == 1
    assert len(heading(LogColumns())) == len(row(points[0]))


def test_the_log_has_rows_where_something_changed_and_a_heartbeat(caplog):
    caplog.set_level("INFO", "fginfer")
    log = RunLog()
    for k in range(400):  # twenty seconds in which the bound moves twice
        log(Progress(k / 20, k, 1.0, 5.0 if k < 30 else 4.0 if k < 100 else 3.0))
    seconds = [float(line.split()[-1][:-1]) for line in caplog.messages[1:]]
    assert seconds == [0.0, 1.5, 5.0, 15.0]
    log(Progress(20.0, 400, 1.0, 3.0, 1e-3))  # nothing to say yet about the new column
    log(Progress(30.0, 600, 1.0, 2.0, 1e-3))
    assert "infeas" in caplog.messages[-2]
    assert caplog.messages[-1].split()[4] == "1.0e-03"


def test_the_library_logs_when_asked(caplog):
    graph = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.5, 0.0]], [[0, 1]], tables=[np.eye(2)])
    solve(graph, "icm", max_iterations=3)
    assert not caplog.records
    with caplog.at_level(logging.INFO, logger="fginfer"):
        solve(graph, "icm", max_iterations=3)
    assert "2 variables, 3 factors" in caplog.text
    assert "iteration limit · 3 iterations" in caplog.text


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("con", {"convert"}),
        ("solve --meth", {"--method"}),
        ("solve --method ", set(available_methods())),
        ("solve x.uai --method trw", {"trws"}),
        ("solve --time-limit ", set()),
        ("solve --format ", set(FORMATS)),
        ("convert a.uai b --to q", {"qubo"}),
        ("compare a.uai --methods highs,trws,h", set()),
        ("compare a.uai --methods trws,toul", {"trws,toulbar2"}),
        ("train a --model crf --solver ow", {"owlqn"}),
        ("train a --solver cut", {"cutting-plane"}),
    ],
)
def test_shells_can_ask_for_completions(tmp_path, typed, offered):
    answers, line = tmp_path / "answers", f"fginfer {typed}"
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answers),
    }
    run = [sys.executable, "-P", "-m", "fginfer"]
    subprocess.run(run, env={**os.environ, **variables}, timeout=60, check=False, capture_output=True, cwd=tmp_path)
    assert {word.strip() for word in answers.read_text().split("\n")} - {""} == offered
