"""Models, evidence and solutions through pipes; `-` for standard input and output; whole costs by --scale."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError, SettingsError, read, read_evidence, read_solution, solve, write
from fginfer.formats.scaling import whole_costs

MODELS = Path(__file__).parent.parent.parent / "models"


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "fginfer", *arguments], input=given, capture_output=True, check=False)


def through_a_pipe(path: Path, content: bytes) -> threading.Thread:
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    return writer


def test_evidence_and_solutions_from_pipes(tmp_path: Path) -> None:
    graph = FactorGraph([3, 3, 2])
    for name, text in {"a": b"2 0 1 2 1\n", "b": b"1 2 0 1 2 1\n"}.items():
        writer = through_a_pipe(tmp_path / name, text)
        assert read_evidence(tmp_path / name, graph) == {0: 1, 2: 1}
        writer.join()
    for name, text in {"c": b"MPE\n3 2 0 1\n", "d": b"MPE\n2\n3 0 0 0\n3 2 0 1\n", "e": b"2 0 1\n"}.items():
        writer = through_a_pipe(tmp_path / name, text)
        assert read_solution(tmp_path / name, graph).tolist() == [2, 0, 1]
        writer.join()


@pytest.mark.parametrize("name", ["grid.uai", "matching.npz", "stereo.h5", "protein.cfn"])
def test_models_from_pipes(tmp_path: Path, name: str) -> None:
    writer = through_a_pipe(tmp_path / name, (MODELS / name).read_bytes())
    piped, known = read(tmp_path / name), read(MODELS / name)
    writer.join()
    labels = np.zeros(known.n_variables, np.int32)
    assert piped.score(labels) == known.score(labels)
    assert piped.n_factors == known.n_factors


@pytest.mark.slow
def test_a_dash_is_standard_input_and_output(tmp_path: Path) -> None:
    uai = (MODELS / "grid.uai").read_bytes()
    for target in ("cfn", "npz", "opengm"):
        there = run("convert", "-", "-", "--format", "uai", "--to", target, given=uai)
        assert there.returncode == 0
        back = run("convert", "-", "-", "--format", target, "--to", "uai", given=there.stdout)
        (tmp_path / "back.uai").write_bytes(back.stdout)
        labels = solve(MODELS / "grid.uai").labels
        assert labels is not None
        assert read(tmp_path / "back.uai").score(labels) == pytest.approx(read(MODELS / "grid.uai").score(labels))
    solved = run("solve", "-", "--format", "uai", "--quiet", "--out", "-", given=uai)
    assert solved.returncode == 0
    assert solved.stdout.split()[:2] == [b"MPE", b"144"]
    assert len(solved.stdout.split()) == 146
    assert b"optimal" in solved.stderr
    unnamed = run("solve", "-", given=uai)
    assert (unnamed.returncode, b"name a format" in unnamed.stderr) == (3, True)
    both = run("solve", "-", "--format", "uai", "--json", "--out", "-", given=uai)
    assert (both.returncode, b"both want standard output" in both.stderr) == (3, True)


def test_scaled_costs_are_whole_and_say_what_they_lose(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graph = FactorGraph([3, 2, 4])
    graph.add_factor([0], rng.normal(size=3))
    graph.add_factor([0, 2], np.where(rng.random((3, 4)) < 0.2, -np.inf, rng.normal(size=(3, 4))))
    graph.add_factor([2, 1, 0], rng.normal(size=(4, 2, 3)), weight=-2.0)
    whole, offset, error = whole_costs(graph, 50)
    write(whole, tmp_path / "m.wcsp")
    back = read(tmp_path / "m.wcsp")
    assert 0.0 < error <= 3 * 0.5 / 50
    for x in np.ndindex(3, 2, 4):
        cost = -back.score(list(x))
        if np.isinf(graph.score(list(x))):
            assert cost == np.inf
        else:
            assert cost == round(cost)
            assert abs(offset - cost / 50 - graph.score(list(x))) <= error + 1e-12
    graph.cutoff = graph.score(solve(graph).labels) - 0.1
    assert solve(whole_costs(graph, 50).graph).score is not None
    with pytest.raises(SettingsError, match="a scale is a number above 0"):
        whole_costs(graph, -1)
    with pytest.raises(fginfer.ModelError, match="a smaller scale"):
        whole_costs(graph, 1e300)
    write(FactorGraph.grid((2, 2), rng.normal(size=(2, 2, 3)), np.eye(3)), tmp_path / "m.uai")
    refused = run("convert", str(tmp_path / "m.uai"), str(tmp_path / "n.wcsp"))
    assert (refused.returncode, b"convert --scale" in refused.stderr) == (3, True)
    done = run("convert", str(tmp_path / "m.uai"), str(tmp_path / "n.wcsp"), "--scale", "1000")
    assert (done.returncode, b"score = " in done.stderr) == (0, True)


def test_evidence_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.evid").write_text("0 " * 1_100_000)
    with pytest.raises(FormatError, match="more than 1000008 tokens"):
        read_evidence(tmp_path / "m.evid", FactorGraph([2, 2]))
