"""Small random learning problems and plain-Python references, shared by the tests of fginfer.learn."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp

from fginfer.core.learn import Edges, Kind
from fginfer.learn.data.examples import Encoded


def random_labels(rng, n=4, labels=3, features=3, edges=1, most=4, candidates=False, edge_features=0, weighted=False):
    """Chains (edges=1), random trees given as edge lists (edges=2) or single tokens (edges=0)."""
    lengths = rng.integers(1, most + 1, n)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = sp.csr_matrix(rng.integers(-2, 3, (begin[-1], features)).astype(float))
    data = Encoded(Kind.LABELS, edges, begin, rows, labels, rng.integers(0, labels, begin[-1]).astype(np.int32))
    if candidates:
        lists = [np.unique(np.append(rng.integers(0, labels, 2), data.truth[t])) for t in range(begin[-1])]
        data.choice_begin = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
        data.choice = np.concatenate(lists).astype(np.int32)
    count = int(begin[-1]) - n
    if edges == 2:
        pairs, ends = [], [0]
        for length in lengths:
            names = rng.permutation(length)
            for t in range(1, length):
                u, v = names[t], names[rng.integers(t)]
                pairs.append((u, v) if rng.random() < 0.5 else (v, u))
            ends.append(len(pairs))
        flat = np.array(pairs, np.int32).reshape(-1, 2)
        data.edge_begin = np.array(ends, np.int64)
        data.edge_u, data.edge_v = flat[:, 0].copy(), flat[:, 1].copy()
        count = len(flat)
    if edge_features:
        data.n_edge_features = edge_features
        data.edge_rows = sp.csr_matrix(rng.integers(-1, 3, (count, edge_features)).astype(float))
    if weighted:
        data.token_weight = rng.integers(0, 4, begin[-1]).astype(float)
        data.cost = rng.integers(0, 4, (labels, labels)).astype(float) * (1 - np.eye(labels))
    return data


def random_sets(rng, n=4, labels=3, features=3, pairwise=False, weighted=False):
    begin = np.arange(n + 1, dtype=np.int64)
    rows = sp.csr_matrix(rng.integers(-2, 3, (n, features)).astype(float))
    sets = [np.flatnonzero(rng.random(labels) < 0.4) for _ in range(n)]
    ends = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    data = Encoded(
        Kind.SETS,
        Edges.CHAIN if pairwise else Edges.NONE,
        begin,
        rows,
        labels,
        np.concatenate(sets).astype(np.int32),
        ends,
    )
    if weighted:
        data.token_weight = rng.integers(0, 4, n).astype(float)
        data.cost = rng.integers(0, 4, (labels, 2)).astype(float)
    return data


def random_parses(rng, n=3, features=4, most=4):
    """Sentences whose tokens choose a head; each (token, head) has its own features."""
    lengths = rng.integers(1, most + 1, n)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    choices = np.repeat(lengths + 1, lengths)
    choice_begin = np.concatenate([[0], np.cumsum(choices)]).astype(np.int64)
    rows = sp.csr_matrix(rng.integers(-2, 3, (choice_begin[-1], features)).astype(float))
    truth = np.concatenate([trees(length)[0] for length in lengths]).astype(np.int32)
    return Encoded(Kind.CHOICES, Edges.NONE, begin, rows, 0, truth, choice_begin=choice_begin, projective=True)


def trees(n):
    """All projective trees over n tokens with one root, as head arrays."""
    out = []
    for heads in itertools.product(range(n + 1), repeat=n):
        if heads.count(0) != 1:
            continue
        ok = True
        for token in range(1, n + 1):
            seen, at = set(), token
            while at != 0 and at not in seen:
                seen.add(at)
                at = heads[at - 1]
            ok &= at == 0
        arcs = [(min(h, t + 1), max(h, t + 1)) for t, h in enumerate(heads)]
        ok &= not any(a < c < b < d for a, b in arcs for c, d in arcs)
        if ok:
            out.append(np.array(heads, np.int32))
    return out


def answers(data, i):
    """Every answer to example i."""
    first, last = data.token_begin[i], data.token_begin[i + 1]
    if data.kind == Kind.SETS:
        return [
            np.array(s, np.int32)
            for r in range(data.n_labels + 1)
            for s in itertools.combinations(range(data.n_labels), r)
        ]
    if data.kind == Kind.CHOICES:
        return trees(int(last - first))
    allowed = [
        range(data.n_labels)
        if data.choice_begin is None
        else data.choice[data.choice_begin[t] : data.choice_begin[t + 1]]
        for t in range(first, last)
    ]
    return [np.array(y, np.int32) for y in itertools.product(*allowed)]


def joint_features(data, i, y):
    """phi_i(y) as a dense vector, written straight from the definition in fginfer_learn.h."""
    d, k, first = data.rows.shape[1], data.n_labels, data.token_begin[i]
    x = data.rows.toarray()
    if data.kind == Kind.CHOICES:
        return sum(x[data.choice_begin[first + t] + c] for t, c in enumerate(y))
    unary, tables = np.zeros((d, k)), np.zeros((data.n_edge_features if data.edges else 0, k, k))
    if data.kind == Kind.SETS:
        for a in y:
            unary[:, a] += x[i]
            for b in y:
                if data.edges and a < b:
                    tables[0, a, b] += 1
        return np.concatenate([unary.ravel(), tables.ravel()])
    for t, a in enumerate(y):
        unary[:, a] += x[first + t]
    if data.edges == Edges.CHAIN:
        pairs, base = [(t, t + 1) for t in range(len(y) - 1)], first - i
    elif data.edges == Edges.LIST:
        b, e = data.edge_begin[i], data.edge_begin[i + 1]
        pairs, base = list(zip(data.edge_u[b:e], data.edge_v[b:e], strict=True)), b
    else:
        pairs, base = [], 0
    for e, (u, v) in enumerate(pairs):
        row = np.ones(1) if data.edge_rows is None else data.edge_rows[base + e].toarray()[0]
        tables[:, y[u], y[v]] += row
    return np.concatenate([unary.ravel(), tables.ravel()])


def truth_of(data, i):
    if data.kind == Kind.SETS:
        return data.truth[data.truth_begin[i] : data.truth_begin[i + 1]]
    return data.truth[data.token_begin[i] : data.token_begin[i + 1]]


def loss_of(data, i, y):
    z = truth_of(data, i)
    if data.kind == Kind.SETS:
        cost = np.ones((data.n_labels, 2)) if data.cost is None else data.cost
        wrong = sum(cost[a, 0] for a in set(z.tolist()) - set(y.tolist())) + sum(
            cost[a, 1] for a in set(y.tolist()) - set(z.tolist())
        )
        return wrong * (1.0 if data.token_weight is None else data.token_weight[i])
    weight = np.ones(len(y)) if data.token_weight is None else data.token_weight[data.token_begin[i] :][: len(y)]
    cost = np.ones((max(data.n_labels, 1),) * 2) if data.cost is None else data.cost
    return sum(
        w * (cost[a, b] if data.kind == Kind.LABELS else 1.0) for w, a, b in zip(weight, z, y, strict=True) if a != b
    )


def planes(data):
    """For each example the matrix of all psi_i(y) and the vector of all losses."""
    out = []
    for i in range(data.n_examples):
        right = joint_features(data, i, truth_of(data, i))
        every = answers(data, i)
        out.append(
            (
                np.array([right - joint_features(data, i, y) for y in every]),
                np.array([loss_of(data, i, y) for y in every]),
            )
        )
    return out


def check_slices_and_checkpoints(make):
    """Ten passes at a stretch, and in slices with a new solver from a checkpoint now and then: the same bits."""
    whole, sliced = make(), make()
    for _ in range(10):
        whole.advance(np.inf)
    passes = calls = 0
    while passes < 10:
        passes += sliced.advance(0.0)
        calls += 1
        if calls % 7 == 0:
            saved = sliced.export()
            sliced = make()
            sliced.restore(saved)
    assert np.array_equal(whole.weights(), sliced.weights())
    assert whole.counters() == sliced.counters()
