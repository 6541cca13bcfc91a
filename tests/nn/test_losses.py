"""Losses and maps of layers, against enumeration of all labelings, finite differences and a general QP solver."""

from __future__ import annotations

import copy
import pickle
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from fginfer import ModelError, Potts, SettingsError, SolverError, nn
from fginfer.marginals import marginals as exact_marginals
from fginfer.nn.maps import graph_of
from fginfer.nn.scores import check_scores

STRUCTURES = {
    "chain": ([3, 2, 3], [(0, 1), (1, 2)]),
    "cycle": ([2, 3, 2], [(0, 1), (1, 2), (2, 0)]),
    "triple": ([2, 2, 2, 2], [(0, 1, 2), (3, 1)]),
    "free": ([3, 2, 2], [(2, 0)]),
    "alone": ([3, 2], []),
}


def problem(name: str, seed: int, batch: int = 2):
    cards, scopes = STRUCTURES[name]
    s, rng = nn.Structure(cards, scopes), np.random.default_rng(seed)
    truth = np.stack([rng.integers(0, cards) for _ in range(batch)])
    return s, rng.normal(size=(batch, s.n_labels)), rng.normal(size=(batch, s.n_values)), truth


def everything(s: nn.Structure, unaries, tables):
    """All labelings of one item, and their scores, by definition."""
    labelings = np.array(list(product(*(range(c) for c in s.cards))))
    scores = np.zeros(len(labelings))
    for k, y in enumerate(labelings):
        scores[k] = sum(unaries[s.label_begin[v] + a] for v, a in enumerate(y))
        for scope, t in zip(s.scopes, s.table_ids, strict=True):
            table = tables[s.table_begin[t] : s.table_begin[t + 1]].reshape(s.table_shapes[t])
            scores[k] += table[tuple(y[list(scope)])]
    return labelings, scores


def slope(f, x, direction, h=1e-6):
    return (f(x + h * direction) - f(x - h * direction)) / (2 * h)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(STRUCTURES)), st.integers(0, 10**6), st.sampled_from([None, "auto", "bnb"]))
def test_best_labels_hinge_and_crf_are_what_enumeration_finds(name: str, seed: int, method: str | None):
    s, unaries, tables, truth = problem(name, seed)
    layer = nn.Layer(s, method=method)
    best, crf = layer.labels(unaries, tables), layer.crf_loss(truth, unaries, tables).values
    hinge, perceptron = (f(truth, unaries, tables).values for f in (layer.hinge, layer.perceptron))
    probable = layer.marginals(unaries, tables).reshape(2, -1)
    for b in range(2):
        labelings, scores = everything(s, unaries[b], tables[b])
        true = scores[(labelings == truth[b]).all(1)][0]
        wrong = (labelings != truth[b]).sum(1)
        assert (labelings[scores.argmax()] == best[b]).all()
        assert hinge[b] == pytest.approx((scores + wrong).max() - true)
        assert perceptron[b] == pytest.approx(scores.max() - true)
        assert crf[b] == pytest.approx(logsumexp(scores) - true)
        p = np.exp(scores - logsumexp(scores))
        by_hand = [p[labelings[:, v] == a].sum() for v, c in enumerate(s.cards) for a in range(c)]
        np.testing.assert_allclose(probable[b], by_hand, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(STRUCTURES)),
    st.integers(0, 10**6),
    st.sampled_from(["hinge", "perceptron", "perturbed_loss", "sparse_loss", "crf_loss"]),
)
def test_gradients_of_losses_are_finite_differences(name: str, seed: int, loss: str):
    s, unaries, tables, truth = problem(name, seed)
    layer, rng = nn.Layer(s, tolerance=1e-10), np.random.default_rng(seed)
    more = {"seed": 3, "samples": 4} if loss == "perturbed_loss" else {}
    found = getattr(layer, loss)(truth, unaries, tables, **more).gradients
    du, dt = rng.normal(size=unaries.shape), rng.normal(size=tables.shape)
    both = slope(
        lambda h: getattr(layer, loss)(truth, unaries + h * du, tables + h * dt, **more).values.sum(), 0.0, 1.0
    )
    assert (found.unaries * du).sum() + (found.tables * dt).sum() == pytest.approx(both, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(STRUCTURES)), st.integers(0, 10**6))
def test_sparsemap_is_the_optimum_of_the_quadratic_program_and_its_gradient_is_right(name: str, seed: int):
    s, unaries, tables, _ = problem(name, seed, batch=1)
    layer, rng = nn.Layer(s), np.random.default_rng(seed)
    answer = layer.sparsemap(unaries, tables)
    mu = answer.marginals.reshape(-1)
    value = layer.work.sparsemap  # the same call, for its states
    states = value(check_scores(s, unaries, tables)[0], [None]).states[0]
    ours = unaries[0] @ mu + tables[0][s.state_value] @ states - mu @ mu / 2
    assert ours == pytest.approx(reference(s, unaries[0], tables[0][s.state_value]), abs=2e-6)
    gradient, du, dt = (rng.normal(size=n) for n in (s.n_labels, s.n_labels, s.n_values))
    back = answer.backward(gradient.reshape(answer.marginals.shape))

    def at(h: float) -> float:
        moved = layer.sparsemap(unaries + h * du, tables + h * dt)
        return float(gradient @ moved.marginals.reshape(-1))

    left, right = (at(1e-7) - at(0.0)) / 1e-7, (at(0.0) - at(-1e-7)) / 1e-7
    exact = back.unaries[0] @ du + back.tables[0] @ dt
    if abs(left - right) < 1e-4:  # no support changes here
        assert exact == pytest.approx((left + right) / 2, abs=1e-4)


def reference(s: nn.Structure, unary, theta) -> float:
    """The objective at the optimum by scipy, over the states and the labels."""
    n, m = s.n_labels, len(theta)
    rows, right = [], []
    for v in range(s.n_variables):
        rows.append(np.bincount(np.arange(s.label_begin[v], s.label_begin[v + 1]), minlength=n + m))
        right.append(1.0)
    for f, scope in enumerate(s.scopes):
        shape = s.table_shapes[s.table_ids[f]]
        where = np.arange(s.state_begin[f], s.state_begin[f + 1]).reshape(shape)
        for q, v in enumerate(scope):
            for a in range(shape[q]):
                row = np.zeros(n + m)
                row[n + np.take(where, a, q).reshape(-1)] = 1
                row[s.label_begin[v] + a] = -1
                rows.append(row)
                right.append(0.0)
    a, b = np.array(rows, float), np.array(right)
    start = np.concatenate([np.repeat(1 / s.cards, s.cards), np.ones(m)])
    for f in range(s.n_factors):
        start[n + s.state_begin[f] : n + s.state_begin[f + 1]] = 1 / (s.state_begin[f + 1] - s.state_begin[f])
    linear = np.concatenate([unary, theta])
    quadratic = np.concatenate([np.ones(n), np.zeros(m)])
    keep = independent(a)
    found = minimize(
        lambda x: quadratic @ (x * x) / 2 - linear @ x,
        start,
        jac=lambda x: quadratic * x - linear,
        bounds=[(0, 1)] * (n + m),
        constraints={"type": "eq", "fun": lambda x: a[keep] @ x - b[keep], "jac": lambda x: a[keep]},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert np.abs(a @ found.x - b).max() < 1e-7
    return -float(found.fun)


def independent(a) -> list[int]:
    kept: list[int] = []
    for k in range(len(a)):
        if np.linalg.matrix_rank(a[[*kept, k]]) > len(kept):
            kept.append(k)
    return kept


def test_sparsemap_of_a_single_variable_is_the_projection_onto_the_simplex():
    layer = nn.Layer(nn.Structure([3]))
    np.testing.assert_allclose(layer.sparsemap([[1.0, 0.5, -2.0]]).marginals, [[0.75, 0.25, 0.0]])


def test_weights_of_known_tables_agree_with_tables_written_out():
    rng, shape = np.random.default_rng(1), (3, 3)
    known, free = nn.Structure.grid(shape, 3, tables=[Potts(0, -1)]), nn.Structure.grid(shape, 3, shared=False)
    unaries, weights, truth = rng.normal(size=(2, 9, 3)), rng.normal(size=(2, 12)), rng.integers(0, 3, (2, 9))
    tables = weights[..., None, None] * (np.eye(3) - 1)
    one, other = nn.Layer(known), nn.Layer(free)
    for loss in ("hinge", "sparse_loss", "crf_loss"):
        a = getattr(one, loss)(truth, unaries, weights=weights)
        b = getattr(other, loss)(truth, unaries, tables)
        np.testing.assert_allclose(a.values, b.values, atol=1e-9)
        np.testing.assert_allclose(a.gradients.weights, (b.gradients.tables * (np.eye(3) - 1)).sum((-1, -2)), atol=1e-6)
    assert nn.Layer(known, method="auto").hinge(truth, unaries, weights=weights).values == pytest.approx(
        one.hinge(truth, unaries, weights=weights).values
    )


def test_tables_for_all_items_have_the_sum_of_the_gradients():
    s, unaries, tables, truth = problem("cycle", 5)
    layer = nn.Layer(s)
    shared = layer.crf_loss(truth, unaries, tables[0]).gradients.tables
    each = [layer.crf_loss(truth[b], unaries[b], tables[0]).gradients.tables for b in range(2)]
    np.testing.assert_allclose(shared, sum(each))


def test_blackbox_and_perturbed_gradients_are_differences_of_solves():
    s, unaries, tables, _ = problem("chain", 7)
    layer, g = nn.Layer(s), np.random.default_rng(0).normal(size=(2, s.n_labels))
    answer = layer.blackbox(unaries, tables, strength=2.0)
    after = layer.blackbox(unaries - 2.0 * g, tables).marginals
    np.testing.assert_allclose(answer.backward(g).unaries, (answer.marginals - after) / 2.0)
    noisy = layer.perturbed(unaries, tables, samples=50, sigma=0.5, noise="normal", strength=2.0, seed=1)
    np.testing.assert_allclose(noisy.marginals[0, :3].sum(), 1.0)
    moved = layer.perturbed(unaries - 2.0 * g, tables, samples=50, sigma=0.5, noise="normal", seed=1).marginals
    np.testing.assert_allclose(noisy.backward(g).unaries, (noisy.marginals - moved) / 2.0, atol=1e-12)


def test_sums_agree_with_the_elimination_of_the_core():
    rng = np.random.default_rng(3)
    s = nn.Structure.grid((3, 4), 3)
    unaries, table = rng.normal(size=(1, 12, 3)), rng.normal(size=(3, 3))
    unaries[0, 4, 1] = table[0, 2] = -np.inf
    layer = nn.Layer(s)
    core = exact_marginals(graph_of(check_scores(s, unaries, table)[0], 0))
    assert layer.log_partition(unaries, table).values[0] == pytest.approx(core.log_z)
    np.testing.assert_allclose(layer.marginals(unaries, table)[0], np.array(core.variables), atol=1e-12)


def test_warm_starts_and_threads_change_nothing_but_the_work():
    rng = np.random.default_rng(4)
    s = nn.Structure.grid((6, 6), 3)
    unaries, table, truth = rng.normal(size=(4, 36, 3)), 0.5 * rng.normal(size=(3, 3)), rng.integers(0, 3, (4, 36))
    cold, warm = nn.Layer(s), nn.Layer(s, threads=2)
    first = warm.sparse_loss(truth, unaries, table, keys=range(4))
    np.testing.assert_array_equal(first.values, cold.sparse_loss(truth, unaries, table).values)
    begun = cold.report.iterations
    near = unaries + 1e-3 * rng.normal(size=unaries.shape)
    again = warm.sparse_loss(truth, near, table, keys=[0, 1, 2, 3])
    assert (warm.report.warm, warm.report.proven) == (4, 4)
    assert warm.report.iterations < begun
    np.testing.assert_allclose(again.values, cold.sparse_loss(truth, near, table).values, atol=1e-8)
    warm.forget()
    assert warm.sparse_loss(truth, near, table, keys=range(4)).values == pytest.approx(again.values, abs=1e-8)
    assert warm.report.warm == 0


def test_a_method_begins_with_what_its_key_had():
    rng = np.random.default_rng(4)
    layer = nn.Layer(nn.Structure.grid((4, 4), 2), method="auto", threads=2)
    unaries, table = rng.normal(size=(3, 16, 2)), rng.normal(size=(2, 2))
    first = layer.labels(unaries, table, keys=[7, 8, 9])
    assert layer.report.warm == 0
    np.testing.assert_array_equal(layer.labels(unaries, table, keys=[7, 8, 9]), first)
    assert (layer.report.warm, layer.report.proven) == (3, 3)


def test_copies_and_pickles_work_alike():
    s, unaries, tables, truth = problem("cycle", 5)
    layer = nn.Layer(s, threads=2, gap=0.0)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.work.settings == {"gap": 0.0}
        np.testing.assert_array_equal(
            other.hinge(truth, unaries, tables).values, layer.hinge(truth, unaries, tables).values
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda u, t, y: (u[:, :2], t, y), "another structure"),
        (lambda u, t, y: (u, t[..., :2], y), "tables must have the shape"),
        (lambda u, t, y: (u, t[None].repeat(3, 0), y), "for a batch of"),
        (lambda u, t, y: (np.where(u == u[1, 2, 0], np.nan, u), t, y), r"unaries\[1, 2, 0\] is nan"),
        (lambda u, t, y: (u, t + np.inf, y), "is inf"),
        (lambda u, t, y: (u, None, y), "missing: tables"),
        (lambda u, t, y: (u, t, y[:, :2]), "labels must have the shape"),
        (lambda u, t, y: (u, t, y + 3), "variable 0 has 3 labels"),
        (lambda u, t, y: (u, t, y + 0.5), "whole numbers"),
        (lambda u, t, y: (np.full_like(u, -np.inf), t, y), "every label of variable 0"),
        (lambda u, t, y: (u, np.where(t == t[0, 0], -np.inf, t), y), "forbid the true labels"),
        (lambda u, t, y: ([["a"]], t, y), "array of numbers"),
    ],
)
def test_bad_input_says_what_is_wrong_and_the_layer_goes_on(change, words: str):
    rng = np.random.default_rng(0)
    layer = nn.Layer(nn.Structure.chain(3, 3))
    unaries, table, truth = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 3)), np.zeros((2, 3), int)
    before = layer.hinge(truth, unaries, table).values
    u, t, y = change(unaries, table, truth)
    with pytest.raises(ModelError, match=words):
        layer.hinge(y, u, t)
    np.testing.assert_array_equal(layer.hinge(truth, unaries, table).values, before)


def test_what_cannot_be_says_so():
    with pytest.raises(ModelError, match="has a variable twice"):
        nn.Structure([2, 2], [(0, 0)])
    with pytest.raises(ModelError, match="needs a table of shape"):
        nn.Structure([2, 3, 2], [(0, 1), (1, 2)], table_ids=[0, 0])
    with pytest.raises(ModelError, match="refers to the variables"):
        nn.Structure([2, 2], [(0, 5)])
    with pytest.raises(ModelError, match="must be finite"):
        nn.Structure([2, 2], [(0, 1)], tables=[[[0, 1], [-np.inf, 0]]])
    layer = nn.Layer(nn.Structure.chain(2, 2))
    with pytest.raises(ModelError, match="no labeling is allowed"):
        layer.labels(np.zeros((2, 2)), np.full((2, 2), -np.inf))
    with pytest.raises(SettingsError, match="keys"):
        layer.labels(np.zeros((3, 2, 2)), np.zeros((2, 2)), keys=[1, 2])
    with pytest.raises(SettingsError, match="noise"):
        layer.perturbed(np.zeros((2, 2)), np.zeros((2, 2)), noise="cauchy")
    with pytest.raises(ModelError, match="no state that is allowed"):
        layer.sparsemap(np.zeros((2, 2)), np.full((2, 2), -np.inf))
    with pytest.raises(SolverError, match="too large"):
        nn.Layer(nn.Structure.grid((30, 30), 4)).marginals(np.zeros((900, 4)), np.zeros((4, 4)))
    with pytest.raises(ModelError, match="gradient"):
        layer.sparsemap(np.zeros((2, 2)), np.zeros((2, 2))).backward(np.zeros(3))


def test_a_program_without_a_solution_warns():
    layer = nn.Layer(nn.Structure([2, 2, 2], [(0, 1), (1, 2), (2, 0)]), max_iterations=200)
    same = np.where(np.eye(2) == 1, 0.0, -np.inf)
    tables = np.stack([same, same, np.where(np.eye(2) == 1, -np.inf, 0.0)])
    unaries = np.zeros((3, 2))
    unaries[0, 1] = -np.inf
    with pytest.warns(RuntimeWarning, match="residual"):
        layer.sparsemap(unaries, tables)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert layer.sparsemap(np.zeros((3, 2)), np.zeros((3, 2, 2))).marginals == pytest.approx(0.5)
