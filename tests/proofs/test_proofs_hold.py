"""Proofs of random small models are verified, and say what exact brute force finds."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, proving, read, solve
from fginfer.checker import Check, NotVerified, Verdict, verify
from fginfer.core.arrays import ModelArrays
from fginfer.trimming import trim
from tests.exact.models import proof_graph
from tests.proofs.proof_support import check, exact_optimum, steps_of

MODELS = Path(__file__).parents[2] / "models"


def agrees(graph: FactorGraph, verdict: Verdict | str) -> None:
    best = exact_optimum(graph)
    assert isinstance(verdict, Verdict), verdict
    if best is None:
        assert verdict.kind == "infeasible"
        return
    assert verdict.bound is not None
    assert verdict.score is not None
    assert verdict.bound >= best >= verdict.score
    assert verdict.kind != "optimal" or best - verdict.score <= verdict.budget


@pytest.mark.parametrize("method", ["bnb", "auto", "edac"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_optimal_and_infeasible_are_verified(method: str, seed: int) -> None:
    graph = proof_graph(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        result = solve(graph, method, gap=0.0, proof=folder / "run.proof")
        verdict = check(graph, folder)
        agrees(graph, verdict)
        assert result.status in ("optimal", "infeasible")
        assert result.proof == "complete"
        assert isinstance(verdict, Verdict)
        assert verdict.kind == result.status


@pytest.mark.parametrize("method", ["bnb", "auto"])
@given(seed=st.integers(0, 10**6), above=st.sampled_from([0.0, 0.5, 7.0]))
@settings(max_examples=30, deadline=None)
def test_nothing_above_a_cutoff_is_a_bound(method: str, seed: int, above: float) -> None:
    graph = proof_graph(seed)
    best = exact_optimum(graph)
    cutoff = float(best or 0) + above
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(proving, "LITTLE_WORK", -1.0)  # by a tree, and no elimination
        folder = Path(name)
        result = solve(graph, method, gap=0.0, cutoff=cutoff, proof=folder / "run.proof")
        if result.status != "infeasible":  # rounding hides whether the best score is above the cutoff
            assert above == 0.0
            return
        verdict = check(graph, folder)
        assert result.proof == "complete"
        assert isinstance(verdict, Verdict), verdict
        if verdict.bound is not None and best is not None:
            assert best <= verdict.bound <= Fraction(cutoff) + verdict.budget


@pytest.mark.parametrize("method", ["trws", "gdmm", "mplp", "ad3", "icm", "psdd"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_bounds_of_messages_are_verified(method: str, seed: int) -> None:
    graph = proof_graph(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        result = solve(graph, method, gap=0.0, max_iterations=30, proof=folder / "run.proof")
        verdict = check(graph, folder)
        if result.proof == "complete":
            agrees(graph, verdict)
            if result.status == "optimal":
                assert isinstance(verdict, Verdict)
                assert verdict.kind == "optimal"
        else:
            assert result.proof is not None
            assert result.proof.startswith("without proof")
            if isinstance(verdict, Verdict):
                agrees(graph, verdict)


@given(seed=st.integers(0, 10**6), k=st.sampled_from([-900, -60, 40, 700]))
@settings(max_examples=30, deadline=None)
def test_the_scale_of_scores_changes_nothing(seed: int, k: int) -> None:
    graph = proof_graph(seed)
    arrays = graph.table_arrays()
    times = 2.0**k

    def scaled(a: np.ndarray | None) -> np.ndarray:
        assert a is not None
        return a * times

    parameters = None
    if arrays.params is not None:
        parameters, kind = arrays.params.copy(), arrays.table_kind
        assert kind is not None
        for t in range(arrays.n_tables):
            parameters[2 * t] *= times
            if kind[t] == 1:
                parameters[2 * t + 1] *= times
    fields = {name: getattr(arrays, name) for name in ModelArrays.__dataclass_fields__}
    changed = {"unary": scaled(arrays.unary), "values": scaled(arrays.values), "params": parameters,
               "leftover": scaled(arrays.leftover)}  # fmt: skip
    big = FactorGraph.from_model_arrays(ModelArrays(**{**fields, **changed, "constant": arrays.constant * times}))
    with TemporaryDirectory() as name:
        folder = Path(name)
        result = solve(big, "bnb", gap=0.0, proof=folder / "run.proof")
        verdict = check(big, folder)
        agrees(big, verdict)
        assert isinstance(verdict, Verdict)
        assert verdict.kind == result.status


def test_scores_that_were_rounded_when_they_were_added_up_have_a_proof(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph([3] * 8)
    for i in range(8):
        for j in range(i):
            graph.add_factor([j, i], rng.normal(size=(3, 3)))
    graph = graph.condition({0: 1, 3: 2}).graph
    assert len(graph.table_arrays().leftover_var) > 0
    for method in ("auto", "bnb"):
        result = solve(graph, method, gap=0.0, proof=tmp_path / "run.proof")
        verdict = check(graph, tmp_path)
        agrees(graph, verdict)
        assert result.proof == "complete"
        assert isinstance(verdict, Verdict)
        assert verdict.kind == result.status == "optimal"


def test_scores_that_differ_by_what_was_rounded_alone_have_a_proof(tmp_path: Path) -> None:
    graph = FactorGraph([2])
    for score in (0.1, 0.2, -2.9, 1e-3):
        graph.add_factor([0], [score, -np.inf])
    assert len(graph.table_arrays().leftover_var) > 0
    for method in ("auto", "bnb", "trws"):
        result = solve(graph, method, gap=0.0, proof=tmp_path / "run.proof")
        verdict = check(graph, tmp_path)
        agrees(graph, verdict)
        assert (result.status, result.proof) == ("optimal", "complete")


def test_strong_fields_on_a_dense_model_have_a_proof(tmp_path: Path) -> None:
    """What all tables say about one label together does not fit into the numbers of a checker."""
    rng = np.random.default_rng(1)
    graph = FactorGraph([2] * 120)
    for i in range(120):
        graph.add_factor([i], [0.0, 40.0 * rng.normal()])
        for j in range(i):
            graph.add_factor([j, i], [[0.0, 0.0], [0.0, rng.normal()]])
    result = solve(graph, "trws", max_iterations=20, proof=tmp_path / "run.proof")
    assert result.proof == "complete"
    assert isinstance(check(graph, tmp_path), Verdict)


def test_whole_scores_have_no_error_budget(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    graph = FactorGraph([3] * 9)
    for i in range(9):
        graph.add_factor([i], rng.integers(-5, 6, 3).astype(float))
        graph.add_factor([i, (i + 2) % 9], rng.integers(-9, 10, (3, 3)).astype(float))
        graph.add_factor([i, (i + 1) % 9], rng.integers(-9, 10, (3, 3)).astype(float))
    result = solve(graph, "bnb", gap=0.0, proof=tmp_path / "run.proof")
    verdict = check(graph, tmp_path)
    assert isinstance(verdict, Verdict), verdict
    assert (verdict.kind, verdict.budget) == ("optimal", 0)
    assert verdict.bound == verdict.score == Fraction(result.score or 0)


def test_penalties_far_above_the_costs_leave_the_budget_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graph = FactorGraph([3] * 8)
    for i in range(7):
        graph.add_factor([i, i + 1], np.where(rng.random((3, 3)) < 0.3, -1e12, rng.normal(size=(3, 3))))
    result = solve(graph, proof=tmp_path / "run.proof")
    verdict = check(graph, tmp_path)
    assert isinstance(verdict, Verdict), verdict
    assert verdict.kind == result.status == "optimal"
    assert verdict.budget < 1e-8


def test_a_model_file_is_read_by_the_checker_itself(tmp_path: Path) -> None:
    for name in ("tree.uai", "grid.uai", "higher_order.uai"):
        result = solve(MODELS / name, proof=tmp_path / "run.proof", gap=0.0)
        verdict = verify(str(MODELS / name), str(tmp_path / "run.proof"))
        assert (result.proof, verdict.kind) == ("complete", "optimal"), name
        assert float(verdict.score or 0) == pytest.approx(result.score, rel=1e-12)


def test_all_models_of_the_repository_are_verified(tmp_path: Path) -> None:
    for path in sorted(MODELS.iterdir()):
        if path.suffix not in (".npz", ".wcsp", ".cfn", ".LG", ".uai"):
            continue
        graph = read(path)
        graph = graph.lowered().graph if graph.rules else graph
        result = solve(graph, proof=tmp_path / "run.proof", gap=0.0)
        verdict = check(graph, tmp_path)
        assert isinstance(verdict, Verdict), f"{path.name}: {verdict}"
        assert (verdict.kind, result.proof) == ("optimal", "complete"), path.name


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_a_trimmed_proof_is_no_longer_and_proves_the_same(seed: int) -> None:
    graph = proof_graph(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        solve(graph, "bnb", gap=0.0, proof=folder / "run.proof")
        whole = check(graph, folder)
        assert isinstance(whole, Verdict)
        model, trimmed = str(folder / "model.npz"), str(folder / "trimmed.proof")
        trim(model, str(folder / "run.proof"), trimmed)
        again = verify(model, trimmed)
        assert (again.kind, again.bound, again.score) == (whole.kind, whole.bound, whole.score)
        assert len(steps_of(folder / "trimmed.proof")) <= len(steps_of(folder / "run.proof"))


def test_a_proof_of_one_model_is_none_of_another(tmp_path: Path) -> None:
    one, other = proof_graph(5), proof_graph(21)
    solve(one, "bnb", proof=tmp_path / "run.proof")
    assert isinstance(check(one, tmp_path), Verdict)
    said = check(other, tmp_path)
    assert isinstance(said, str)
    assert "another model" in said
    with pytest.raises(NotVerified, match="not verified: step"):
        verify(str(tmp_path / "model.npz"), str(tmp_path / "run.proof"))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_a_model_that_was_made_smaller_is_proven_part_by_part(seed: int) -> None:
    graph = proof_graph(seed)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setattr(proving, "LITTLE_WORK", -1.0)  # no elimination of all of it
        patch.setattr(proving, "LITTLE_TREE", 0.0)
        patch.setattr(proving, "ELIMINATION_WORK", -1.0)
        result = solve(graph, "auto", gap=0.0, proof=folder / "run.proof")
        verdict = check(graph, folder)
        agrees(graph, verdict)
        assert result.proof == "complete"
        assert isinstance(verdict, Verdict)
        assert verdict.kind == result.status


def test_labels_go_by_the_bound_of_messages_and_by_dominance_before_a_part_is_proven(tmp_path: Path) -> None:
    said: list[bytes] = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([5] * 9)
        for i in range(9):
            graph.add_factor([i], 3 * rng.normal(size=5))
            for j in range(i):
                graph.add_factor([j, i], rng.normal(size=(5, 5)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(proving, "LITTLE_WORK", -1.0)
            patch.setattr(proving, "LITTLE_TREE", 0.0)
            patch.setattr(proving, "ELIMINATION_WORK", -1.0)
            patch.setattr(Check, "step", lambda self, rule, step=Check.step: (said.append(rule), step(self, rule)))
            result = solve(graph, proof=tmp_path / "run.proof", gap=0.0)
            verdict = check(graph, tmp_path)
        assert isinstance(verdict, Verdict), verdict
        assert (verdict.kind, result.proof) == ("optimal", "complete")
        assert float(verdict.score or 0) == pytest.approx(result.score, rel=1e-12)
    assert {b"L", b"D", b"X", b"T"} <= set(said)


def test_less_than_a_cutoff_needs_is_said_with_the_bound_that_is_proven(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph([5] * 9)
    for i in range(9):
        for j in range(i):
            graph.add_factor([j, i], rng.normal(size=(5, 5)))
    cutoff = 1.0 + (solve(graph, gap=0.0).score or 0.0)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LITTLE_WORK", "LITTLE_TREE", "ELIMINATION_WORK"):
            patch.setattr(proving, name, 0.0)
        result = solve(graph, gap=0.0, cutoff=cutoff, proof=tmp_path / "run.proof")
    assert (result.status, result.labels) == ("infeasible", None)
    assert result.proof is not None
    verdict = check(graph, tmp_path)
    assert isinstance(verdict, Verdict), verdict
    assert float(result.proof.split("bound ")[1]) == pytest.approx(float(verdict.bound or 0), rel=1e-8)
    assert float(verdict.bound or 0) > cutoff


def test_the_parts_of_a_sparse_model_are_proven_one_by_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    graph = FactorGraph([3] * 60)
    for part in range(3):
        for i in range(20):
            for j in rng.choice(20, 2, replace=False).tolist():
                if i != j:
                    graph.add_factor([20 * part + i, 20 * part + j], rng.normal(size=(3, 3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proving, "LITTLE_WORK", -1.0)
        patch.setattr(proving, "LITTLE_TREE", 0.0)
        result = solve(graph, proof=tmp_path / "run.proof", gap=0.0)
    verdict = check(graph, tmp_path)
    assert isinstance(verdict, Verdict), verdict
    assert (verdict.kind, result.proof) == ("optimal", "complete")
    assert float(verdict.score or 0) == pytest.approx(result.score, rel=1e-12)
