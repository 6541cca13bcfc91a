"""Small random fields, and everything about them by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp

from fginfer.core.crf import CrfLoss
from fginfer.core.learn import Edges
from fginfer.learn import Example
from fginfer.learn.data.encode import encode
from fginfer.learn.learner import fields_of


def random_data(seed, model="chain", labels=3, n=5, candidates=False, types=0, features=0, cycles=False):
    """Encoded examples of one to four tokens."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        tokens = int(rng.integers(1, 5))
        rows = sp.csr_matrix(rng.integers(0, 2, (tokens, 4)) * rng.standard_normal((tokens, 4)))
        y = rng.integers(0, labels, tokens)
        more, edges = {}, tokens - 1
        if model == "graph":
            pairs = [(int(rng.integers(0, t)), t) for t in range(1, tokens) if rng.random() < 0.8]
            if cycles and tokens > 2:
                pairs = [(t, (t + 1) % tokens) for t in range(tokens)]
            pairs = [p if rng.random() < 0.5 else p[::-1] for p in pairs]
            more["edges"], edges = np.array(pairs, int).reshape(-1, 2), len(pairs)
        if types:
            more["edge_types"] = rng.integers(0, types, edges)
        if features:
            more["edge_features"] = rng.standard_normal((edges, features))
        if candidates:
            more["candidates"] = [sorted({int(k) for k in rng.integers(0, labels, 2)} | {int(z)}) for z in y]
        X.append(Example(rows, **more))
        Y.append(y)
    return encode(model, X, Y, classes=np.arange(labels), intercept=False)[0]


def make_loss(data, **settings):
    return CrfLoss(fields_of(data), **settings)


def curvature(loss, w, where):
    """The gradient of the loss at the w of its last value."""
    from fginfer.core.door import check, lib, new_error, pointer

    out, error = np.zeros(len(where)), new_error()
    where = np.ascontiguousarray(where)
    check(lib.fgi_crf_curvature(loss._handle, pointer(w), pointer(where), len(out), pointer(out), error), error)
    return out


def parts(data, w, i):
    """(unary scores, [(u, v, table)], allowed labels) of example i."""
    k, width = data.n_labels, data.rows.shape[1]
    unary, tables = w[: width * k].reshape(width, k), w[width * k :].reshape(-1, k, k)
    b, e = data.token_begin[i], data.token_begin[i + 1]
    pairs, first = [], 0
    if data.edges == Edges.CHAIN:
        pairs, first = [(t, t + 1) for t in range(e - b - 1)], b - i
    elif data.edges == Edges.LIST:
        first = data.edge_begin[i]
        pairs = [(data.edge_u[j], data.edge_v[j]) for j in range(first, data.edge_begin[i + 1])]
    edges = []
    for j, (u, v) in enumerate(pairs):
        table = tables[0] if data.edge_rows is None else np.tensordot(data.edge_rows[first + j].toarray()[0], tables, 1)
        edges.append((u, v, table))
    if data.choice_begin is None:
        allowed = [range(k)] * (e - b)
    else:
        allowed = [data.choice[data.choice_begin[t] : data.choice_begin[t + 1]] for t in range(b, e)]
    return data.rows[b:e] @ unary, edges, allowed


def enumerate_all(data, w):
    """(loss, marginals of the cells, marginals of the pairs on the edges), by going through all answers."""
    k, loss, cells, pairs = data.n_labels, 0.0, [], []
    for i in range(data.n_examples):
        scores, edges, allowed = parts(data, w, i)
        answers = np.array(list(itertools.product(*allowed)))
        tokens = np.arange(answers.shape[1])
        value = scores[tokens, answers].sum(1) + sum(t[answers[:, u], answers[:, v]] for u, v, t in edges)
        log_z = np.logaddexp.reduce(value)
        truth = data.truth[data.token_begin[i] : data.token_begin[i + 1]]
        loss += log_z - value[np.flatnonzero((answers == truth).all(1))[0]]
        p = np.exp(value - log_z)
        cells += [p[answers[:, t] == y].sum() for t in tokens for y in allowed[t]]
        for u, v, _ in edges:
            table = np.zeros((k, k))
            np.add.at(table, (answers[:, u], answers[:, v]), p)
            pairs.append(table)
    return loss, np.array(cells), np.array(pairs).reshape(-1, k, k)


def pseudo_loss(data, w):
    """- sum over tokens of log P(label | true labels of the neighbours)."""
    total = 0.0
    for i in range(data.n_examples):
        scores, edges, allowed = parts(data, w, i)
        truth = data.truth[data.token_begin[i] : data.token_begin[i + 1]]
        scores = scores.copy()
        for u, v, t in edges:
            scores[u] += t[:, truth[v]]
            scores[v] += t[truth[u]]
        for t, z in enumerate(truth):
            total += np.logaddexp.reduce(scores[t, list(allowed[t])]) - scores[t, z]
    return total


def differences(f, w, step=1e-5):
    """Numerical gradient."""
    return np.array([(f(w + step * e) - f(w - step * e)) / (2 * step) for e in np.eye(len(w))])
