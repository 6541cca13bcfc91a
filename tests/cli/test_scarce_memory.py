"""Commands where memory ends: what was found is printed, and the exit code is that of a failure, never of a proof."""

from __future__ import annotations

import os
import subprocess
import sys
from errno import ENOMEM
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cli_support import grid, run, strict_json

from fginfer import FactorGraph, read, startup, write
from fginfer.commands.reserve import Reserve
from fginfer.k_best import KBest

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are kept there")


def limited(kilobytes: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = " ".join([sys.executable, "-P", "-m", "fginfer", *map(str, arguments)])
    return subprocess.run(
        ["bash", "-c", f"ulimit -c 0 -v {kilobytes}; exec {command}"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def needed() -> int:
    """Kilobytes of addresses that a process with fginfer in it has."""
    code = "import fginfer.cli; print(next(l for l in open('/proc/self/status') if l.startswith('VmPeak')).split()[1])"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment).stdout)


@linux
def test_what_was_found_is_printed(tmp_path: Path) -> None:
    n, rng = 60, np.random.default_rng(0)
    graph = FactorGraph([8] * (n * n))
    for i in range(n * n):
        graph.add_factor([i], rng.normal(size=8))
        for j in ([i + 1] if (i + 1) % n else []) + ([i + n] if i + n < n * n else []):
            graph.add_factor([i, j], rng.normal(size=(8, 8)))
    write(graph, tmp_path / "g.npz")
    base, ends = needed(), set()
    for megabytes in (0, 40, 48, 56, 72, 600):
        done = limited(base + 1024 * megabytes, "solve", tmp_path / "g.npz", "--json", "--time-limit", "0.5")
        ends.add(done.returncode)
        assert done.returncode in (2, 4), done.stderr
        if done.returncode == 2 or "this is what it had found" in done.stderr:
            answer = strict_json(done.stdout)
            assert (answer["status"] == "failed") == (done.returncode == 4)
            assert answer["score"] == pytest.approx(read(tmp_path / "g.npz").score(answer["labels"]))
        else:
            assert "out of memory" in done.stderr
    assert ends == {2, 4}


@linux
@pytest.mark.parametrize("megabytes", [60, 120, 150])
def test_too_little_to_start(tmp_path: Path, megabytes: int) -> None:
    grid(tmp_path / "g.uai")
    done = limited(1024 * megabytes, "solve", tmp_path / "g.uai", "--quiet")
    assert done.returncode in (0, 1, 4, 127)  # 1 is what Python and OpenBLAS end with by themselves
    assert (done.returncode == 0) == bool(done.stdout)


@pytest.mark.parametrize(
    "error", [MemoryError(), ImportError("libx.so: failed to map segment"), OSError(12, "Cannot allocate memory")]
)
def test_no_memory_while_starting(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    fake = SimpleNamespace(write=lambda _, text: said.append(text), _exit=said.append)
    monkeypatch.setattr(startup, "os", fake)
    monkeypatch.setattr(sys, "__excepthook__", lambda *_: None)
    startup._say(type(error), error, None)
    assert said == [b"fginfer: out of memory while it was starting\n", 4]
    said.clear()
    startup._say(ValueError, ValueError("something else"), None)
    assert said == []


def test_several_labelings(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grid(tmp_path / "g.uai")
    advance = KBest._advance

    def fails(self: KBest) -> bool:
        if len(self.found) == 2:
            raise MemoryError("none left")
        return advance(self)

    monkeypatch.setattr(KBest, "_advance", fails)
    code, out, err = run(capsys, "solve", tmp_path / "g.uai", "--k-best", 5, "--json")
    data = strict_json(out)
    assert (code, data["status"], len(data["results"])) == (4, "failed", 2)
    assert "none left" in err


def test_no_memory_is_no_bad_input(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(args: object) -> None:
        raise MemoryError

    monkeypatch.setattr("fginfer.commands.solve.load", fails)
    assert run(capsys, "solve", tmp_path / "g.uai", "--quiet") == (4, "", "fginfer: out of memory\n")


def test_a_system_without_memory(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write(FactorGraph([2]), tmp_path / "g.npz")

    def fails(*_: object) -> None:
        raise OSError(ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("fginfer.formats.npz._load", fails)
    code, _, err = run(capsys, "info", tmp_path / "g.npz")
    assert code == 4
    assert err.endswith("g.npz: cannot be read (Cannot allocate memory)\n")


def test_a_reserve_that_cannot_be_had_is_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def scarce(_: int, size: int) -> SimpleNamespace:
        asked.append(size)
        if size > 1 << 24:
            raise OverflowError
        return SimpleNamespace(close=lambda: asked.append(0))

    monkeypatch.setattr("mmap.mmap", scarce)
    Reserve(1 << 60).release()
    assert asked[-2] > 1 << 23
    assert asked[-1] == 0
