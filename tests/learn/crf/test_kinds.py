"""Edges with the same two candidate lists (csrc/learn/crf/kinds.c), against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.learn import ChainCRF, Example
from fginfer.learn.data.encode import encode
from tests.learn.crf.fields import curvature, enumerate_all, make_loss

LABELS = 80  # more than CRF_NARROW


def recurring(seed, model="chain", n=40, lists=4, longest=4, apart=False):
    """Examples of one to four tokens; each token has one of a few lists. `apart`: no label is in two of them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, lists)
    ends = np.cumsum(sizes)
    known = [
        list(range(e - s, e)) if apart else sorted(rng.choice(LABELS, s, replace=False).tolist())
        for s, e in zip(sizes, ends, strict=True)
    ]
    X, Y = [], []
    for _ in range(n):
        tokens = int(rng.integers(1, 5))
        own = [known[k] for k in rng.integers(0, lists, tokens)]
        more = {}
        if model == "graph":
            pairs = [(int(rng.integers(0, t)), t) for t in range(1, tokens) if rng.random() < 0.8]
            pairs = [p if rng.random() < 0.5 else p[::-1] for p in pairs]
            more["edges"] = np.array(pairs, int).reshape(-1, 2)
        rows = sp.csr_matrix(rng.integers(0, 2, (tokens, 3)) * rng.standard_normal((tokens, 3)))
        X.append(Example(rows, candidates=own, **more))
        Y.append(np.array([rng.choice(labels) for labels in own]))
    return encode(model, X, Y, classes=np.arange(LABELS), intercept=False)[0]


def some_weights(data, seed, scale, density):
    """Half of the density among labels that occur, so that edges have entries."""
    rng = np.random.default_rng(seed)
    width = data.rows.shape[1]
    w = scale * rng.standard_normal((width + LABELS) * LABELS) * (rng.random((width + LABELS) * LABELS) < density)
    table, seen = w[width * LABELS :].reshape(LABELS, LABELS), np.unique(data.choice)
    more = rng.random((len(seen), len(seen))) < density
    table[np.ix_(seen, seen)] = scale * rng.standard_normal(more.shape) * more
    return w


def true_gradient(data, w):
    """From the marginals of cells and of pairs, by enumeration."""
    _, cells, pairs = enumerate_all(data, w)
    tokens, k = len(data.truth), LABELS
    p = np.zeros((tokens, k))
    p[np.repeat(np.arange(tokens), np.diff(data.choice_begin)), data.choice] = cells
    p[np.arange(tokens), data.truth] -= 1
    table = pairs.sum(0)
    for i in range(data.n_examples):
        first, last = data.token_begin[i], data.token_begin[i + 1]
        if data.edge_begin is None:
            ends = [(t, t + 1) for t in range(first, last - 1)]
        else:
            edges = range(data.edge_begin[i], data.edge_begin[i + 1])
            ends = [(first + data.edge_u[e], first + data.edge_v[e]) for e in edges]
        for u, v in ends:
            table[data.truth[u], data.truth[v]] -= 1
    return np.concatenate([(data.rows.T @ p).ravel(), table.ravel()])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), model=st.sampled_from(["chain", "graph"]), scale=st.sampled_from([1.0, 30.0, 900.0]),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]), memory=st.sampled_from([1 << 30, 400]), apart=st.booleans(),
)  # fmt: skip
def test_values_and_gradients_are_those_of_enumeration(seed, model, scale, density, memory, apart):
    """Also with scores of e^900, which are summed in logs, with dense weights, and with a little memory."""
    data = recurring(seed, model, apart=apart)
    loss = make_loss(data, memory=memory)
    w = some_weights(data, seed, scale, density)
    where = np.flatnonzero(w)
    expected = true_gradient(data, w)
    value = enumerate_all(data, w)[0]
    for support in (None, where):
        assert loss.value(w, support) == pytest.approx(value, rel=1e-10, abs=1e-10 * scale)
        rng = np.random.default_rng(seed)
        other = np.sort(rng.choice(loss.dimension, 500, replace=False))
        for part in (where, other, None, other):  # the second question at a point may be about other pairs
            found = loss.gradient(w, part)
            np.testing.assert_allclose(found, expected if part is None else expected[part], atol=1e-9)


def test_an_edge_costs_the_entries_that_are_not_zero():
    """Lists of up to 30 labels, a pair in a hundred has a weight: the way down goes over those."""
    data = recurring(1, n=300, lists=3, longest=31, apart=True)
    loss = make_loss(data)
    w = some_weights(data, 1, 1.0, 0.01)
    costs = []
    for v in (w, np.where(w == 0.0, 1e-300, w)):
        loss.value(v)
        before = loss.info.touched
        found = loss.gradient(v, np.flatnonzero(w))
        costs.append(loss.info.touched - before)
        np.testing.assert_allclose(found, loss.gradient(w)[np.flatnonzero(w)], rtol=1e-9, atol=1e-11)
    assert costs[0] < 0.1 * costs[1]


def test_no_digits_are_lost_where_nearly_all_pairs_are_unlikely():
    """A row of weights of -40: what is left after the zeros have been taken away again is 1e-17 of them."""
    data = recurring(2, n=60, lists=2, longest=8, apart=True)
    loss = make_loss(data)
    w = np.zeros(loss.dimension)
    table = w[-LABELS * LABELS :].reshape(LABELS, LABELS)
    seen = np.unique(data.choice)
    table[np.ix_(seen[:2], seen)] = -40.0
    table[np.ix_(seen, seen[:2])] = -40.0
    value = enumerate_all(data, w)[0]
    assert loss.value(w, np.flatnonzero(w)) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(loss.gradient(w), true_gradient(data, w), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_change_no_bit(weighted):
    data = recurring(3, n=3000, lists=5, longest=9)
    weight = np.random.default_rng(0).random(data.n_examples) if weighted else None
    results = []
    for threads in (1, 2, 3):
        loss = make_loss(data, threads=threads, weight=weight)
        w = some_weights(data, 3, 1.0, 0.1)
        where = np.flatnonzero(w)
        value = loss.value(w, where)
        results.append((value, loss.gradient(w, where).tobytes(), loss.gradient(w).tobytes()))
    assert results[0] == results[1] == results[2]


def test_curvatures_are_expected_numbers_of_pairs():
    data = recurring(4)
    loss = make_loss(data)
    w = some_weights(data, 4, 1.0, 0.1)
    loss.value(w)
    loss.gradient(w)
    first = LABELS * data.rows.shape[1]
    where = np.arange(first, loss.dimension)
    expected = enumerate_all(data, w)[2].sum(0).ravel()
    np.testing.assert_allclose(curvature(loss, w, where), expected, atol=1e-9)


def test_an_answer_does_not_depend_on_the_questions_before():
    """A run that goes on from a checkpoint has not asked them."""
    data = recurring(6, n=6000, lists=5, longest=12)
    w = some_weights(data, 6, 1.0, 0.1)
    where = np.flatnonzero(w)
    found = []
    for before in (False, True):
        loss = make_loss(data)
        loss.value(w, where if before else None)
        if before:
            loss.gradient(w)
        found.append((loss.gradient(w, where).tobytes(), curvature(loss, w, where).tobytes()))
    assert found[0] == found[1]


def test_training_meets_the_optimum_of_another_solver():
    data = recurring(5, n=80, lists=3, longest=5, apart=True)
    lists = [tuple(labels.tolist()) for labels in np.split(data.choice, data.choice_begin[1:-1])]
    found = []
    for solver in ("proxqn", "owlqn"):
        crf = ChainCRF(l1=0.5, tol=1e-7, solver=solver, fit_intercept=False, max_iter=5000)
        crf.fit(Example(data.rows, candidates=lists), data.truth, data.token_begin)
        found.append(crf.primal_)
    assert found[0] == pytest.approx(found[1], rel=1e-7)
