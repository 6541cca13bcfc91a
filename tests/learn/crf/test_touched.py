"""Sums over the nodes that a token touches (csrc/learn/crf/touched.c), against sums over all of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.learn.data.encode import encode
from tests.learn.crf.fields import curvature, make_loss

LABELS = 80


def random_taxonomy(rng, inner):
    """Parents of inner nodes and labels: some roots, some deep paths."""
    first = [int(rng.integers(-1, n)) for n in range(inner)]
    return np.array(first + [int(rng.integers(-1, inner)) for _ in range(LABELS)], np.int32)


def random_problem(seed, inner, bias, scale, density):
    rng = np.random.default_rng(seed)
    n, features = 12, 7
    X = sp.random(n, features, 0.4, random_state=seed, format="csr", data_rvs=rng.standard_normal)
    if bias:
        X = sp.csr_matrix(sp.hstack([X, np.full((n, 1), bias)]))
    data, _ = encode("multiclass", X, rng.integers(0, LABELS, n), classes=np.arange(LABELS), intercept=False)
    parent = random_taxonomy(rng, inner) if inner else None
    w = np.zeros((X.shape[1], inner + LABELS))
    some = rng.random(w.shape) < density
    w[some] = scale * rng.standard_normal(int(some.sum()))
    if bias:
        w[-1] = rng.standard_normal(inner + LABELS)
    return data, parent, w


def by_definition(data, parent, w, weight):
    """(loss, gradient): every label's score is the sum over its path."""
    inner = w.shape[1] - LABELS
    path = np.zeros((w.shape[1], LABELS))
    for y in range(LABELS):
        n = inner + y
        while n >= 0:
            path[n, y] = 1
            n = -1 if parent is None else parent[n]
    scores = data.rows @ w @ path
    top = scores.max(1, keepdims=True)
    p = np.exp(scores - top)
    log_z = top[:, 0] + np.log(p.sum(1))
    p /= p.sum(1, keepdims=True)
    rows = np.arange(len(p))
    loss = float((weight * (log_z - scores[rows, data.truth])).sum())
    p[rows, data.truth] -= 1
    return loss, np.asarray(data.rows.T @ (weight[:, None] * p) @ path.T)


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6), inner=st.sampled_from([0, 1, 9, 30]), bias=st.sampled_from([0.0, 1.0, -0.3]),
    scale=st.sampled_from([0.0, 1.0, 30.0, 900.0]), density=st.sampled_from([0.01, 0.05]),
    threads=st.sampled_from([1, 3]), weighted=st.booleans(),
)  # fmt: skip
def test_values_and_gradients_are_those_of_the_definition(seed, inner, bias, scale, density, threads, weighted):
    data, parent, w = random_problem(seed, inner, bias, scale, density)
    weight = np.random.default_rng(seed).random(12) if weighted else np.ones(12)
    loss = make_loss(data, parent=parent, threads=threads, weight=weight if weighted else None)
    value, gradient = by_definition(data, parent, w, weight)
    assert loss.value(w.ravel()) == pytest.approx(value, rel=1e-11, abs=1e-10)
    np.testing.assert_allclose(loss.gradient(w.ravel()), gradient.ravel(), rtol=1e-9, atol=1e-10)
    some = np.flatnonzero(np.random.default_rng(seed).random(w.size) < 0.3)
    np.testing.assert_allclose(loss.gradient(w.ravel(), some), gradient.ravel()[some], rtol=1e-9, atol=1e-10)
    # told where w is not zero, a value keeps the derivatives there; any others come after those, and again
    told = np.union1d(np.flatnonzero(w.ravel()), some[::2])
    assert loss.value(w.ravel(), told) == pytest.approx(value, rel=1e-11, abs=1e-10)
    for where in (told, told, some, told):
        np.testing.assert_allclose(loss.gradient(w.ravel(), where), gradient.ravel()[where], rtol=1e-9, atol=1e-10)


def test_few_nodes_are_visited_and_the_untouched_keep_their_share():
    data, parent, w = random_problem(3, 9, 1.0, 1.0, 0.01)
    loss = make_loss(data, parent=parent)
    loss.value(w.ravel())
    assert loss.info.touched < 12 * w.shape[1] / 4
    value, gradient = by_definition(data, parent, w, np.ones(12))
    assert loss.value(w.ravel()) == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(loss.gradient(w.ravel()), gradient.ravel(), atol=1e-13)


@pytest.mark.parametrize("push", [-20.0, -40.0, -200.0, -500.0, 40.0, 500.0])
def test_no_digits_are_lost_where_nearly_all_mass_is_moved(push):
    """The labels that have nearly all the mass are pushed down: what is left is a difference of nearly equal sums."""
    rng = np.random.default_rng(5)
    X = sp.csr_matrix(np.hstack([rng.integers(0, 2, (12, 3)), np.ones((12, 1))]).astype(float))
    data, _ = encode("multiclass", X, rng.integers(0, LABELS, 12), classes=np.arange(LABELS), intercept=False)
    w = np.zeros((4, LABELS))
    w[-1] = rng.standard_normal(LABELS) - 30
    w[-1, :3] = 10.0
    w[:3, :3] = push
    loss = make_loss(data)
    value, gradient = by_definition(data, None, w, np.ones(12))
    assert loss.value(w.ravel()) == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(loss.gradient(w.ravel()), gradient.ravel(), rtol=1e-8, atol=1e-10)


def test_threads_change_no_bit():
    data, parent, w = random_problem(11, 30, 1.0, 2.0, 0.02)
    results = []
    for threads in (1, 2, 5):
        loss = make_loss(data, parent=parent, threads=threads)
        told = np.flatnonzero(w.ravel())
        bits = [loss.value(w.ravel()), loss.gradient(w.ravel()).tobytes()]
        results.append([*bits, loss.value(w.ravel(), told), loss.gradient(w.ravel(), told).tobytes()])
    assert results[0] == results[1] == results[2]


def test_a_curvature_may_be_asked_for_between_gradients():
    data, parent, w = random_problem(4, 9, 1.0, 1.0, 0.02)
    loss, other = make_loss(data, parent=parent), make_loss(data, parent=parent, memory=8)
    other.value(w.ravel())  # sums over all nodes, for want of memory
    loss.value(w.ravel())
    first = loss.gradient(w.ravel())
    np.testing.assert_allclose(first, other.gradient(w.ravel()), atol=1e-12)
    where = np.arange(0, w.size, 3)
    expected = curvature(other, w.ravel(), where)
    np.testing.assert_allclose(curvature(loss, w.ravel(), where), expected, atol=1e-12)
    np.testing.assert_array_equal(loss.gradient(w.ravel()), first)
    np.testing.assert_allclose(curvature(loss, w.ravel(), where), expected, atol=1e-12)
