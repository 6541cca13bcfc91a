"""Sum-product and the losses that stand on it, against enumeration and finite differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from fginfer.core.learn import Edges
from fginfer.core.optimise import METHODS, Optimiser
from fginfer.errors import DataError, ModelError, SettingsError, SolverError
from fginfer.learn.data.encode import encode
from tests.learn.crf.fields import curvature, differences, enumerate_all, make_loss, pseudo_loss, random_data

shapes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "model": st.sampled_from(["chain", "graph"]),
        "candidates": st.booleans(),
        "types": st.sampled_from([0, 0, 2]),
        "features": st.just(0),
    }
) | st.fixed_dictionaries(
    {"seed": st.integers(0, 10**6), "model": st.sampled_from(["chain", "graph"]), "features": st.just(2)}
)


@settings(max_examples=60, deadline=None)
@given(shape=shapes, scale=st.sampled_from([0.0, 1.0, 30.0, 900.0]), memory=st.sampled_from([1 << 30, 200]))
def test_values_and_marginals_are_those_of_enumeration(shape, scale, memory):
    """Also with scores of e^900, and with memory for one block at a time."""
    data = random_data(**shape)
    loss = make_loss(data, memory=memory)
    w = scale * np.random.default_rng(shape["seed"]).standard_normal(loss.dimension)
    expected, cells, pairs = enumerate_all(data, w)
    assert loss.value(w) == pytest.approx(expected, rel=1e-10, abs=1e-10 * max(1.0, scale))
    log_z, truth, found, both = loss.marginals(w, edges=len(pairs))
    assert (log_z - truth).sum() == pytest.approx(expected, rel=1e-10, abs=1e-10 * max(1.0, scale))
    np.testing.assert_allclose(found, cells, atol=1e-9)
    if len(pairs):
        np.testing.assert_allclose(both, pairs, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(shape=shapes, memory=st.sampled_from([1 << 30, 200]), pseudo=st.booleans())
def test_gradients_are_those_of_finite_differences_on_any_set(shape, memory, pseudo):
    data = random_data(**shape)
    rng = np.random.default_rng(shape["seed"])
    weight = rng.random(data.n_examples)
    loss = make_loss(data, memory=memory, weight=weight, pseudo=pseudo)
    w = rng.standard_normal(loss.dimension) * (rng.random(loss.dimension) < 0.5)
    expected = differences(loss.value, w)
    loss.value(w)
    gradient = loss.gradient(w)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    where = np.flatnonzero(rng.random(loss.dimension) < 0.4)
    np.testing.assert_allclose(loss.gradient(w, where), gradient[where], atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), candidates=st.booleans(), types=st.sampled_from([0, 2]))
def test_the_pseudo_likelihood_is_its_definition(seed, candidates, types):
    data = random_data(seed, "graph", candidates=candidates, types=types, cycles=True)
    loss = make_loss(data, pseudo=True)
    w = np.random.default_rng(seed).standard_normal(loss.dimension)
    assert loss.value(w) == pytest.approx(pseudo_loss(data, w), rel=1e-12)


def test_a_taxonomy_sums_over_paths():
    """Nodes: 0 is the root, 1 and 2 hang on it, then five leaves, one of them at the root and one alone."""
    parent = np.array([-1, 0, 0, 1, 1, 2, 0, -1], np.int32)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((7, 3)), rng.integers(0, 5, 7)
    data = encode("multiclass", X, y, classes=np.arange(5), intercept=False)[0]
    paths = np.zeros((8, 5))
    for label in range(5):
        node = 3 + label
        while node >= 0:
            paths[node, label] = 1
            node = parent[node]
    for memory in (1 << 30, 64):
        loss = make_loss(data, parent=parent, memory=memory)
        w = rng.standard_normal(loss.dimension)
        scores = X @ w.reshape(3, 8) @ paths
        expected = logsumexp(scores, axis=1) - scores[np.arange(7), y]
        assert loss.value(w) == pytest.approx(expected.sum(), rel=1e-12)
        gradient = loss.gradient(w)
        np.testing.assert_allclose(gradient, differences(loss.value, w), atol=1e-6)
        cells = loss.marginals(w)[2].reshape(7, 8)[:, 3:]
        np.testing.assert_allclose(cells, np.exp(scores - logsumexp(scores, axis=1)[:, None]), atol=1e-12)


def test_curvatures_are_second_derivatives_of_tokens_alone():
    data = random_data(1, n=8)
    data.edges = Edges.NONE
    loss = make_loss(data)
    w = np.random.default_rng(1).standard_normal(loss.dimension)
    q = Optimiser(loss.dimension, 0.0, curvature=True, start=w)
    for _ in range(2):
        loss.serve(q)
    assert q.ask().curvature
    where = q.ask().where
    out = curvature(loss, w, where)

    def slope(x):
        loss.value(x)
        return loss.gradient(x)

    expected = [(slope(w + 1e-5 * e) - slope(w - 1e-5 * e))[k] / 2e-5 for k, e in enumerate(np.eye(loss.dimension))]
    np.testing.assert_allclose(out, np.array(expected)[where], atol=1e-5)


def test_curvatures_of_certain_labels_are_not_negative():
    """Marginals may be rounded to a little more than 1."""
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, 40) for _ in range(50)]
    X = [sp.csr_matrix(np.eye(3)[labels]) for labels in y]
    loss = make_loss(encode("chain", X, y, intercept=False)[0])
    w = np.zeros(loss.dimension)
    w[[0, 4, 8]] = 38.0
    o = Optimiser(loss.dimension, 0.0, curvature=True, start=w, tol=1e-3)
    while loss.serve(o):
        assert o.info.iterations < 1000
    assert o.info.status in ("converged", "stalled")


@pytest.mark.slow
def test_long_and_wide_chains_stay_in_range():
    """10,000 tokens, and 700 labels; scores far from zero."""
    rng = np.random.default_rng(0)
    for tokens, labels, scale in ((10_000, 3, 5.0), (10_000, 3, 400.0), (30, 700, 20.0)):
        X = sp.csr_matrix(np.ones((tokens, 1)))
        data = encode("chain", [X], [rng.integers(0, labels, tokens)], classes=np.arange(labels), intercept=False)[0]
        loss = make_loss(data)
        w = scale * rng.standard_normal(loss.dimension)
        value = loss.value(w)
        table, own = w[labels:].reshape(labels, labels), w[:labels]
        alpha = own.copy()
        for _ in range(tokens - 1):
            alpha = logsumexp(alpha[:, None] + table, axis=0) + own
        truth = own[data.truth].sum() + table[data.truth[:-1], data.truth[1:]].sum()
        assert value == pytest.approx(logsumexp(alpha) - truth, rel=1e-9)
        gradient = loss.gradient(w)
        assert np.isfinite(gradient).all()
        assert gradient[:labels].sum() == pytest.approx(0, abs=1e-6 * tokens)


@pytest.mark.slow
def test_long_chains_of_thousands_of_labels():
    """4424 labels: all of them on a short chain, and candidates on one of 10,000 tokens."""
    from fginfer.learn import Example

    rng = np.random.default_rng(1)
    labels, tokens = 4424, 10_000
    own, table = 20 * rng.standard_normal(labels), np.outer(rng.standard_normal(labels), rng.standard_normal(labels))
    w = np.concatenate([own, table.ravel()])
    lists = rng.integers(0, labels, (tokens, 4))
    for n, candidates in ((2, None), (tokens, [tuple(row) for row in np.sort(lists, 1).tolist()])):
        truth = lists[:n, 0]
        X = Example(np.ones((n, 1)), candidates=candidates and [tuple(sorted(set(c))) for c in candidates])
        data = encode("chain", [X], [truth], classes=np.arange(labels), intercept=False)[0]
        loss = make_loss(data)
        value = loss.value(w)
        allowed = [np.arange(labels) if candidates is None else np.unique(lists[t]) for t in range(n)]
        alpha, total = own[allowed[0]], 0.0
        for before, now in pairwise(allowed):
            alpha = np.logaddexp.reduce(alpha[:, None] + table[np.ix_(before, now)], axis=0) + own[now]
            total, alpha = total + alpha.max(), alpha - alpha.max()
        score = own[truth].sum() + table[truth[:-1], truth[1:]].sum()
        assert value == pytest.approx(total + np.logaddexp.reduce(alpha) - score, rel=1e-11)
        gradient = loss.gradient(w, np.arange(labels))
        assert np.isfinite(gradient).all()
        assert gradient.sum() == pytest.approx(0, abs=1e-8 * n)


def test_a_star_with_many_leaves_stays_in_range():
    from fginfer.learn import Example

    rng = np.random.default_rng(0)
    edges = np.array([(0, t) if t % 2 else (t, 0) for t in range(1, 400)])
    y = rng.integers(0, 3, 400)
    data = encode("graph", [Example(np.ones((400, 1)), edges=edges)], [y], classes=np.arange(3), intercept=False)[0]
    loss = make_loss(data)
    w = 8 * rng.standard_normal(loss.dimension)
    own, table = w[:3], w[3:].reshape(3, 3)
    root = own.copy()
    for u, _ in edges:
        root += logsumexp((table if u == 0 else table.T) + own, axis=1)
    truth = own[y].sum() + table[y[edges[:, 0]], y[edges[:, 1]]].sum()
    assert loss.value(w) == pytest.approx(logsumexp(root) - truth, rel=1e-10)
    assert np.isfinite(loss.gradient(w)).all()


@pytest.mark.parametrize("candidates", [False, True])
def test_threads_change_no_bit(candidates):
    data = random_data(3, n=4000, candidates=candidates, labels=6)
    results = []
    for threads in (1, 2, 3):
        loss = make_loss(data, threads=threads, memory=100_000)
        w = np.random.default_rng(0).standard_normal(loss.dimension)
        value = loss.value(w)
        results.append((value, loss.gradient(w).tobytes(), loss.marginals(w)[2].tobytes()))
    assert results[0] == results[1] == results[2]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), model=st.sampled_from(["chain", "graph"]), memory=st.sampled_from([1 << 30, 4000]),
    size=st.sampled_from([0.5, 4.0, 40.0]),
)  # fmt: skip
def test_tables_of_few_weights_are_summed_as_others_are(seed, model, memory, size):
    """70 labels; what is zero in one model is 1e-300 in the other, which is then summed entry by entry."""
    data = random_data(seed, model, labels=70, n=6)
    few, other = make_loss(data, memory=memory), make_loss(data)
    rng = np.random.default_rng(seed)
    w = size * rng.standard_normal(few.dimension)
    table = w[-4900:].reshape(70, 70)
    table[rng.random((70, 70)) < 0.96] = 0.0
    table[rng.integers(0, 70)] = -size * (np.arange(70) < 69)  # almost all of a row is unlikely: cancellation
    full = np.where(w == 0.0, 1e-300, w)
    np.testing.assert_allclose(few.value(w), other.value(full), rtol=1e-12)
    where = np.sort(rng.choice(few.dimension, 90, replace=False))
    for part in (where, where[::3], None, where):  # the second question at a point may be about other pairs
        expected = other.gradient(full, part)
        np.testing.assert_allclose(few.gradient(w, part), expected, rtol=1e-9, atol=1e-11)
    cells = few.marginals(w)[2], other.marginals(full)[2]
    np.testing.assert_allclose(*cells, atol=1e-12)


@pytest.mark.parametrize("model", ["chain", "graph"])
def test_all_methods_meet_one_objective(model):
    data = random_data(7, model, n=60)
    found = []
    for method in METHODS:
        for second in (False, True) if method == "proxqn" else (False,):
            loss = make_loss(data)
            o = Optimiser(loss.dimension, 1.0, method=method, tol=1e-7, samples=60, curvature=second)
            while loss.serve(o):
                pass
            assert o.info.status == "converged"
            found.append(o.info.objective)
    assert max(found) - min(found) <= 1e-9 * found[0]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), model=st.sampled_from(["chain", "graph"]), mass=st.sampled_from([1e-6, 1e-3, 0.3]),
    memory=st.sampled_from([1 << 30, 2000]),
)  # fmt: skip
def test_pruning_loses_no_more_than_it_says(seed, model, mass, memory):
    data = random_data(seed, model, labels=7, n=10)
    whole, cut = make_loss(data), make_loss(data, prune=mass, memory=memory)
    w = 2 * np.random.default_rng(seed).standard_normal(whole.dimension)
    value, less = whole.value(w), cut.value(w)
    info = cut.info
    assert 0 <= info.lost <= mass
    assert -1e-10 * value <= value - less <= info.slack + 1e-10 * value
    gradient = cut.gradient(w)
    np.testing.assert_allclose(gradient, whole.gradient(w), atol=4 * 10 * mass * np.abs(data.rows).max() + 1e-9)
    log_z, _, cells, _ = whole.marginals(w)
    low, _, found, _ = cut.marginals(w)
    assert (low <= log_z + 1e-10).all()
    assert (log_z - low <= -np.log1p(-mass)).all()
    np.testing.assert_allclose(found, cells, atol=mass / (1 - mass))


def test_pruning_saves_sums_of_large_label_sets():
    rng = np.random.default_rng(0)
    labels, tokens = 500, 12
    data = encode(
        "chain", [sp.csr_matrix(np.eye(tokens))], [np.arange(tokens)], classes=np.arange(labels), intercept=False
    )[0]
    cut = make_loss(data, prune=1e-9)
    w = np.zeros(cut.dimension)
    w[: tokens * labels] = 3 * rng.standard_normal(tokens * labels)
    w[[t * labels + y for t in range(tokens) for y in (t, t + 50)]] = 40.0
    w[tokens * labels :][rng.random(labels**2) < 0.01] = 1.0
    value = cut.value(w)
    assert cut.info.summed < 0.1 * tokens * labels
    assert cut.info.lost <= 1e-9
    assert make_loss(data).value(w) == pytest.approx(value, rel=1e-8)


def test_what_cannot_be_is_refused():
    data = random_data(0, "graph", cycles=True, n=10)
    with pytest.raises(SolverError, match="cycle"):
        make_loss(data)
    data = random_data(0)
    with pytest.raises(SettingsError):
        make_loss(data, threads=0)
    with pytest.raises(SettingsError):
        make_loss(data, weight=np.full(data.n_examples, np.nan))
    for mass in (-1e-3, 1.0, np.nan):
        with pytest.raises(SettingsError, match="prune"):
            make_loss(data, prune=mass)
    for more in ({"candidates": True}, {"types": 2}):
        with pytest.raises(SolverError, match="pruning"):
            make_loss(random_data(0, **more), prune=1e-3)
    with pytest.raises(DataError):
        make_loss(data, weight=np.ones(3))
    with pytest.raises(DataError):
        make_loss(data).value(np.zeros(1))
    with pytest.raises(SolverError):
        make_loss(data, parent=np.full(4, -1, np.int32))
    flat = encode("multiclass", np.ones((2, 1)), [0, 1], intercept=False)[0]
    for parent in ([1, -1, 0, 0], [-1, -1, 5, 0], [0, -1, 0, 0]):
        with pytest.raises(ModelError, match="taxonomy"):
            make_loss(flat, parent=np.array(parent, np.int32))
