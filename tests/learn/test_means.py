"""Averages of the iterates against their definitions, and predefined steps."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.errors import SettingsError
from fginfer.learn.learner import Learner
from fginfer.learn.solvers.registry import make_solver

from .problems import random_labels

C = 0.3


def chain_data(seed: int):
    return random_labels(np.random.default_rng(seed), n=7)


def iterates(solver, passes: int) -> list[np.ndarray]:
    """The weights after every step, as the solver means them."""
    learner, found = solver.learner, []
    n = learner.data.n_examples
    rng = np.random.default_rng(5)
    for _ in range(passes):
        for i in rng.permutation(n):
            learner.run_pass(solver._settings, np.array([i], np.int32), 0, np.inf)
            w = np.array(learner.weights)
            found.append(w * (n * C / learner.state.steps) if solver.name == "ssg" else w)
    return found


def mean(found: list[np.ndarray], kind: str, weighted: bool) -> np.ndarray:
    k = len(found)
    if kind == "usual" and weighted:
        return np.average(found, axis=0, weights=np.arange(1, k + 1))
    first = 2 ** int(np.log2(k)) if kind == "suffix" else 1  # the first iterate that counts, from 1
    return np.mean(found[first - 1 :], axis=0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["usual", "uniform", "suffix"])
@pytest.mark.parametrize("name", ["bcfw", "ssg", "perceptron", "mira"])
def test_average_is_the_mean_of_the_iterates(name, kind, sparse):
    data = chain_data(seed=3)
    for passes in (1, 3, 10):
        solver = make_solver(name, Learner(data, sparse=sparse), None, C, 0, {"mean": kind})
        found = iterates(solver, passes)
        wanted = mean(found, kind, name in ("bcfw", "ssg"))
        np.testing.assert_allclose(np.array(solver.averaged()), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


def test_predefined_steps_are_those_of_the_paper():
    """w after every step from the definition: block i moves by 2n / (k + 2n) towards its answer."""
    data = chain_data(seed=4)
    solver = make_solver("bcfw", Learner(data), None, C, 0, {"step": "predefined", "averaging": False})
    learner, n = solver.learner, data.n_examples
    blocks, w = np.zeros((n, learner.dimension)), np.zeros(learner.dimension)
    rng = np.random.default_rng(1)
    for k in range(5 * n):
        i = np.array([rng.integers(n)], np.int32)
        plane = np.zeros(learner.dimension)
        learner.add_psi(learner.decode(w, 1.0, i), 1.0, plane, i)
        change = 2 * n / (k + 2 * n) * (C * plane - blocks[i[0]])
        blocks[i[0]] += change
        w = w + change
        learner.run_pass(solver._settings, i, 0, np.inf)
        np.testing.assert_allclose(learner.weights, w, rtol=0, atol=1e-10)
    learner.refresh(C)
    assert solver._dual() <= 1e-9 + make_solver_primal(data)


def make_solver_primal(data) -> float:
    """The optimum, nearly."""
    solver = make_solver("bcfw", Learner(data), None, C, 0, {})
    for _ in range(60):
        solver.advance(np.inf)
    return float(solver.measure().primal)


def test_predefined_steps_of_batch_frank_wolfe():
    data = chain_data(seed=6)
    solver = make_solver("fw", Learner(data), None, C, 0, {"step": "predefined"})
    w = np.zeros(solver.learner.dimension)
    for k in range(6):
        plane = np.zeros_like(w)
        solver.learner.add_psi(solver.learner.decode(w, 1.0), 1.0, plane)
        w = w + 2 / (k + 2) * (C * plane - w)
        solver.advance(np.inf)
        np.testing.assert_allclose(solver._w, w, rtol=0, atol=1e-10)
    for _ in range(300):
        solver.advance(np.inf)
    best, found = make_solver_primal(data), solver.measure()
    assert found.dual <= best * (1 + 1e-9)
    assert found.primal <= 1.05 * best


@pytest.mark.parametrize(
    ("name", "options"),
    [("bcfw", {"mean": "half"}), ("bcfw", {"step": "fixed"}), ("bcfw", {"step": "predefined", "cached_passes": 2}),
     ("fw", {"step": "fixed"}), ("fw", {"mean": "suffix"}), ("cutting-plane", {"step": "search"})],
)  # fmt: skip
def test_bad_options(name, options):
    with pytest.raises(SettingsError):
        make_solver(name, Learner(chain_data(seed=0)), None, C, 0, options)
