"""Viterbi that skips rows of large transition tables: the same answers and weights as with whole tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core.learn import Edges
from fginfer.learn.learner import Learner
from fginfer.learn.solvers.registry import make_solver

from . import problems as P

LABELS = 100  # enough for rows to be skipped


def best_score(data, w, i):
    """Max-sum of one chain with loss, in numpy."""
    first, last, k = data.token_begin[i], data.token_begin[i + 1], data.n_labels
    d = data.rows.shape[1]
    unary = data.rows[first:last] @ w[: d * k].reshape(d, k) + 1.0
    unary[np.arange(last - first), data.truth[first:last]] -= 1.0
    message = unary[0]
    for row in unary[1:]:
        message = row + (message[:, None] + w[d * k :].reshape(k, k)).max(axis=0)
    return message.max()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    filled=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
    whole=st.booleans(),
)
def test_pruned_messages_are_exact(seed, filled, scale, whole):
    rng = np.random.default_rng(seed)
    data = P.random_labels(rng, labels=LABELS, edges=1 + seed % 2)
    learner = Learner(data)
    w = rng.normal(size=learner.dimension)
    table = w[-LABELS * LABELS :]
    table *= scale * (rng.random(table.size) < filled)
    if whole:
        w[:] = np.round(w)  # many ties
    found = learner.decode(w, 1.0)
    for i, (answer, value) in enumerate(zip(found.split(), found.value, strict=True)):
        score, loss = learner.score(w, i, answer)
        assert value == pytest.approx(score + loss, abs=1e-9)
        if data.edges == Edges.CHAIN:
            assert value == pytest.approx(best_score(data, w, i), abs=1e-9)


@pytest.mark.parametrize("solver", ["bcfw", "dcd", "perceptron", "ssg", "mira"])
def test_training_does_not_depend_on_pruning(solver):
    data = P.random_labels(np.random.default_rng(3), n=20, labels=LABELS, features=5, most=6)
    weights, touched = [], []
    for brute_force in (False, True):
        learner = Learner(data)
        run = make_solver(solver, learner, None, 0.3, 0, {"brute_force": brute_force})
        for _ in range(4):
            run.advance(np.inf)
        weights.append(learner.weights.copy())
        touched.append(learner.state.entries_touched)
    assert np.array_equal(*weights)
    assert touched[0] < touched[1] / 2


def test_entries_read_grow_slower_than_the_table():
    """Trained weights: few rows matter, however many labels there are."""
    per_message = []
    for labels in (100, 800):
        data = P.random_labels(np.random.default_rng(0), n=30, labels=labels, features=20, most=8)
        learner = Learner(data)
        run = make_solver("bcfw", learner, None, 1.0, 0, {})
        for _ in range(3):
            run.advance(np.inf)
        before = learner.state.entries_touched
        learner.decode(learner.weights)
        messages = data.token_begin[-1] - data.n_examples
        per_message.append((learner.state.entries_touched - before) / messages)
    assert per_message[1] / per_message[0] < 8**1.5
