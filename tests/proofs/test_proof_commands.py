"""Proofs from the command line and from a Solver; disks that are full."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fginfer import FactorGraph, SettingsError, Solver, SolverError, solve, solve_many, write
from fginfer.checker import main as checker_main
from fginfer.checker import verify
from tests.cli.cli_support import grid, run


def test_solve_and_verify(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model, proof, trimmed = tmp_path / "grid.uai", tmp_path / "grid.proof", tmp_path / "trimmed.proof"
    grid(model, side=5)
    code, _, log = run(capsys, "solve", model, "--proof", proof, "--gap", 0)
    assert code == 0
    assert "proof: complete" in log
    code, out, _ = run(capsys, "verify", model, proof, "--trim", trimmed)
    assert code == 0
    assert out.startswith("verified: optimal (score ")
    assert run(capsys, "verify", model, trimmed)[1].startswith("verified: optimal")
    assert checker_main([str(model), str(trimmed)]) == 0
    capsys.readouterr()


def test_what_is_not_verified_ends_with_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model, proof = tmp_path / "grid.npz", tmp_path / "grid.proof"
    grid(model, side=4)
    run(capsys, "solve", model, "--proof", proof)
    proof.write_bytes(proof.read_bytes()[:-9])
    code, out, _ = run(capsys, "verify", model, proof)
    assert code == 1
    assert out.startswith("not verified: step ")
    assert len(out.splitlines()) == 1
    assert run(capsys, "verify", model, tmp_path / "none.proof")[0] == 3
    assert checker_main([str(model), str(proof)]) == 1
    assert checker_main([]) == 3
    capsys.readouterr()


def test_other_formats_and_constraints_are_trusted_and_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    costs, proof = tmp_path / "grid.cfn", tmp_path / "run.proof"
    grid(costs, side=3)
    run(capsys, "solve", costs, "--proof", proof)
    code, out, err = run(capsys, "verify", costs, proof)
    assert (code, out.startswith("verified: optimal")) == (0, True)
    assert "trusts" in err
    graph = FactorGraph([2] * 6)
    for i in range(6):
        graph.add_factor([i], [0.0, 1.0 + i])
    graph.add_at_most(2, [(i, 1) for i in range(6)])
    graph_file = tmp_path / "rules.npz"
    write(graph, graph_file)
    assert solve(graph, proof=proof).proof == "complete"
    code, out, err = run(capsys, "verify", graph_file, proof)
    assert (code, out.startswith("verified: optimal (score 11.0")) == (0, True)
    assert "lowered" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_a_full_disk_ends_the_proof_and_not_the_run(tmp_path: Path) -> None:
    graph = grid(tmp_path / "grid.npz", side=5)
    result = solve(graph, "bnb", proof="/dev/full", gap=0.0)
    assert result.status == "optimal"
    assert result.proof is not None
    assert result.proof.startswith("without proof: it was broken off")


def test_a_run_that_is_stopped_proves_the_bound_it_has(tmp_path: Path) -> None:
    graph = grid(tmp_path / "grid.npz", side=12, labels=5)
    result = solve(graph, "bnb", proof=tmp_path / "run.proof", max_iterations=3)
    assert (result.status, result.proof) == ("iteration_limit", "complete")
    verdict = verify(str(tmp_path / "grid.npz"), str(tmp_path / "run.proof"))
    assert verdict.kind == "bound"
    assert float(verdict.bound or 0) == pytest.approx(result.bound, rel=1e-9)
    assert float(verdict.score or 0) == pytest.approx(result.score, rel=1e-12)


def test_steps_are_written_while_the_solver_works(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    graph = FactorGraph([4] * 14)
    for i in range(14):
        for j in range(i):
            graph.add_factor([i, j], rng.normal(size=(4, 4)))
    proof = tmp_path / "run.proof"
    with Solver(graph, "bnb", proof=proof, gap=0.0) as solver:
        solver.run(iterations=600)
        solver._prover.file._file.flush()  # type: ignore[union-attr]
        assert proof.stat().st_size > 100
        assert solver.result().proof is None
        solver.run(iterations=600)
        assert solver.prove() == solver.result().proof
        with pytest.raises(SolverError, match="closed"):
            solver.run(iterations=1)


def test_what_has_no_proof_is_refused(tmp_path: Path) -> None:
    graph = grid(tmp_path / "grid.npz", side=3)
    with pytest.raises(SettingsError, match="condition"):
        solve(graph, evidence={0: 1}, proof=tmp_path / "p")
    with pytest.raises(SettingsError, match="one file"):
        solve_many([graph], proof=tmp_path / "p")
    with pytest.raises(SolverError, match="without a file"):
        Solver(graph).prove()
    with pytest.raises(SolverError, match="numbers"):
        Solver(graph, "trws", proof=tmp_path / "p").update()


def test_constraints_too_large_for_tables_are_solved_without_proof(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph([2] * 800)
    for i in range(799):
        graph.add_factor([i, i + 1], rng.normal(size=(2, 2)))
    graph.add_linear([(i, 1) for i in range(800)], rng.integers(1, 10**6, 800).tolist(), high=10**8)
    result = solve(graph, proof=tmp_path / "p", max_iterations=3)
    assert result.labels is not None
    assert result.proof is not None
    assert result.proof.startswith("without proof: linear: its sum has more totals than tables can hold")
