"""The atom oracle against brute force, its bounds, its seeds and threads, and what it refuses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core.latent import AtomProblem
from fginfer.errors import DataError, ModelError, SettingsError
from fginfer.latent.atom import METHODS, atom_graph, find_atom, relax, relaxation_bound


def brute_force(F: np.ndarray, scale: np.ndarray | None = None) -> float:
    n = len(F)
    Z = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    values = ((Z @ F) ** 2).sum(1)
    return float((values if scale is None else values * scale[Z.sum(1)]).max())


def matrix(seed: int, n: int, r: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, r)) * 10.0 ** rng.integers(-3, 4)


@given(st.integers(0, 10**6), st.integers(1, 16), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_atoms_of_small_problems_are_optimal_and_bounds_hold(seed, n, r):
    F = matrix(seed, n, r)
    best = brute_force(F)
    atom = find_atom(F, seed=seed)
    assert atom.value == pytest.approx(best, rel=1e-9)
    assert atom.value == pytest.approx(((F.T @ atom.z) ** 2).sum(), rel=1e-12)
    assert atom.bound >= best * (1 - 1e-12)
    assert atom.ratio >= 0.6


@given(st.integers(0, 10**6), st.integers(2, 16), st.integers(1, 5))
@settings(max_examples=15, deadline=None)
def test_every_method_is_below_the_optimum_and_its_bound_above(seed, n, r):
    F = matrix(seed, n, r)
    best = brute_force(F)
    for method in METHODS:
        atom = find_atom(F, method, seed=seed)
        assert 0.6 * best <= atom.value <= best * (1 + 1e-9), method
        assert atom.bound >= best * (1 - 1e-9), method


def test_the_engine_proves_what_the_relaxation_leaves_open():
    F = matrix(3, 14, 5)
    plain, proven = find_atom(F), find_atom(F, "engine")
    assert plain.ratio < 0.999
    assert proven.proven
    assert proven.value == pytest.approx(brute_force(F), rel=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 4), st.floats(0.1, 1.0))
@settings(max_examples=20, deadline=None)
def test_scaled_search_finds_the_best_of_small_problems(seed, n, r, power):
    F = matrix(seed, n, r)
    scale = np.r_[0.0, np.arange(1, n + 1) ** -power]
    starts = np.random.default_rng(seed).integers(0, 2, (64, n), dtype=np.uint8)
    values = AtomProblem(F, scale).search(starts, tabu_steps=50, seed=1)
    assert values.max() == pytest.approx(brute_force(F, scale), rel=1e-9)
    ones = starts.sum(1)
    assert np.allclose(values, ((starts @ F) ** 2).sum(1) * scale[ones], rtol=1e-9)


def test_the_relaxation_never_falls_and_meets_its_bound():
    F = matrix(1, 60, 4)
    problem = AtomProblem(F)
    problem.mix_start(0, 5)
    values = [problem.mix_run(1) for _ in range(60)]
    assert all(b >= a * (1 - 1e-12) for a, b in pairwise(values))
    bound = relaxation_bound(F, problem.mix_dual())
    assert values[-1] <= bound <= values[-1] * 1.01


def test_sparse_and_dense_factors_are_the_same_problem():
    rng = np.random.default_rng(2)
    F = rng.standard_normal((80, 30)) * (rng.random((80, 30)) < 0.2)
    F[7] = 0
    dense, sparse = find_atom(F, seed=4), find_atom(sp.csr_matrix(F), seed=4)
    assert dense.value == pytest.approx(sparse.value, rel=1e-12)
    assert dense.bound == pytest.approx(sparse.bound, rel=1e-6)


@pytest.mark.parametrize("method", ["relax", "search", "both"])
def test_seeds_reproduce_and_threads_change_nothing(method):
    F = matrix(5, 150, 12)
    one, same, other = (find_atom(F, method, seed=9, threads=t) for t in (1, 1, 3))
    for atom in (same, other):
        assert (atom.z == one.z).all()
        assert (atom.value, atom.bound, atom.relaxation) == (one.value, one.bound, one.relaxation)


def test_tabu_never_loses_what_flips_found():
    F = matrix(8, 200, 6)
    starts = np.random.default_rng(0).integers(0, 2, (10, 200), dtype=np.uint8)
    copy = starts.copy()
    problem = AtomProblem(F)
    flips = problem.search(starts)
    assert (problem.search(copy, tabu_steps=300, candidates=50, seed=3) >= flips * (1 - 1e-12)).all()
    again = starts.copy()
    assert np.allclose(problem.search(again), flips, rtol=1e-12)
    assert (again == starts).all()  # no flip is left that improves


def test_the_graph_scores_as_the_atom_does():
    F = matrix(4, 9, 3)
    z = np.random.default_rng(1).integers(0, 2, 9)
    assert atom_graph(F).score(z) == pytest.approx(((F.T @ z) ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize("F", [np.zeros((5, 2)), np.zeros((1, 1)), sp.csr_matrix((4, 3))])
def test_nothing_to_find(F):
    atom = find_atom(F)
    assert (atom.value, atom.bound, atom.ratio) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("unit", [2.0**-500, 2.0**-200, 2.0**400])
def test_units_do_not_matter(unit):
    F = matrix(7, 12, 3)
    plain, other = find_atom(F), find_atom(unit * F)
    assert (plain.z == other.z).all()
    assert other.ratio == plain.ratio
    assert other.value == plain.value * unit * unit


def test_large_sparse_factors_have_a_bound_without_dense_matrices(monkeypatch):
    rng = np.random.default_rng(3)
    F = sp.csr_matrix(rng.standard_normal((14, 20)) * (rng.random((14, 20)) < 0.15))
    tight = find_atom(F)
    monkeypatch.setattr("fginfer.latent.atom.DENSE_LIMIT", 5)
    loose = find_atom(F)
    best = brute_force(F.toarray())
    assert best * (1 - 1e-12) <= tight.bound <= loose.bound * (1 + 1e-9) <= 10 * best
    assert loose.value == tight.value


def test_any_rank_of_the_relaxation_gives_a_bound(monkeypatch):
    F = matrix(11, 16, 4)
    best = brute_force(F)
    for rank in (1, 2, 5):
        assert find_atom(F, mixing_rank=rank).bound >= best * (1 - 1e-12)
    monkeypatch.setattr("fginfer.latent.atom.MOST_ENTRIES", 1)  # as for very many rows
    assert find_atom(F).bound >= best * (1 - 1e-12)


def test_one_column_is_solved_by_its_signs():
    f = np.array([[1.0], [2.0], [-4.0], [0.5]])
    atom = find_atom(f)
    assert atom.z.tolist() == [0, 0, 1, 0]
    assert atom.value == 16.0


@pytest.mark.parametrize(
    ("F", "options", "error"),
    [
        ([[1.0, np.nan]], {}, DataError),
        ([[np.inf]], {}, DataError),
        ([1.0, 2.0], {}, DataError),
        (np.zeros((0, 3)), {}, DataError),
        ([[1e200]], {}, ModelError),
        ([[1.0]], {"method": "guess"}, SettingsError),
        ([[1.0]], {"n_starts": 0}, SettingsError),
        ([[1.0]], {"threads": 0}, SettingsError),
        ([[1.0]], {"seed": -1}, SettingsError),
        ([[1.0]], {"seed": 2**63}, SettingsError),
        ([[1.0]], {"bound": "no"}, SettingsError),
        ([[1.0]], {"tabu_steps": -1}, SettingsError),
        ([[1.0]], {"tol": np.nan}, SettingsError),
        ([[1j]], {}, DataError),
        ([["a"]], {}, DataError),
        (np.ones((301, 1)), {"method": "engine"}, SettingsError),
    ],
)
def test_bad_input_gets_a_clear_error(F, options, error):
    with pytest.raises(error):
        find_atom(F, **options)


def test_the_core_checks_what_it_is_given():
    problem = AtomProblem(np.ones((3, 1)))
    with pytest.raises(SettingsError, match="not been started"):
        problem.mix_run(1)
    with pytest.raises(DataError):
        problem.search(np.full((1, 3), 2, np.uint8))
    with pytest.raises(DataError):
        problem.search(np.zeros((1, 2), np.uint8))
    with pytest.raises(DataError):
        problem.value([0, 1, 2])
    with pytest.raises(DataError):
        AtomProblem(np.ones((3, 1)), np.ones(3))
    with pytest.raises(SettingsError):
        AtomProblem(np.ones((3, 1)), -np.ones(4))


def test_relax_stops_when_nothing_is_gained():
    problem = AtomProblem(np.zeros((4, 2)))
    assert relax(problem, 0, 0, 1e-5) == 0.0
