"""Joint features, losses and decoders of the core against enumeration; gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fginfer.core.learn import Edges, Mean, PassSettings, Update
from fginfer.errors import FginferError
from fginfer.learn.learner import Decoded, Learner

from . import problems as P

KINDS = {
    "tokens": lambda rng: P.random_labels(rng, edges=0),
    "chain": lambda rng: P.random_labels(rng),
    "wide": lambda rng: P.random_labels(rng, n=2, labels=11, most=3),
    "tree": lambda rng: P.random_labels(rng, edges=2, most=5),
    "candidates": lambda rng: P.random_labels(rng, labels=5, candidates=True),
    "tree_candidates": lambda rng: P.random_labels(rng, labels=4, edges=2, candidates=True),
    "edge_features": lambda rng: P.random_labels(rng, edge_features=2),
    "tree_features_weighted": lambda rng: P.random_labels(rng, edges=2, edge_features=3, weighted=True),
    "weighted": lambda rng: P.random_labels(rng, weighted=True),
    "sets": lambda rng: P.random_sets(rng, labels=4),
    "sets_weighted": lambda rng: P.random_sets(rng, labels=4, weighted=True),
    "parses": P.random_parses,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_decoding_finds_the_best_of_all_answers(kind, seed):
    rng = np.random.default_rng(seed)
    data = KINDS[kind](rng)
    learner = Learner(data, threads=1 + seed % 2)
    w = rng.normal(size=learner.dimension)
    for factor in (0.0, 1.0):
        found = learner.decode(w, factor)
        for i, (answer, value) in enumerate(zip(found.split(), found.value, strict=True)):
            scores = [w @ P.joint_features(data, i, y) + factor * P.loss_of(data, i, y) for y in P.answers(data, i)]
            assert value == pytest.approx(max(scores))
            score, loss = learner.score(w, i, answer)
            assert score + factor * loss == pytest.approx(max(scores))
            assert score == pytest.approx(w @ P.joint_features(data, i, answer))


@pytest.mark.parametrize("kind", [*KINDS, "pairs"])
def test_psi_is_the_gradient_of_the_hinge(kind):
    rng = np.random.default_rng(5)
    data = P.random_sets(rng, labels=4, pairwise=True) if kind == "pairs" else KINDS[kind](rng)
    learner = Learner(data)
    w = rng.normal(size=learner.dimension)
    every = [P.answers(data, i) for i in range(data.n_examples)]
    picked = [y[rng.integers(len(y))] for y in every]

    answers = Decoded(
        np.concatenate(picked).astype(np.int32), np.cumsum([len(p) for p in picked]), np.zeros(len(picked))
    )
    plane = np.zeros(learner.dimension)
    loss = learner.add_psi(answers, 2.0, plane)
    assert loss == pytest.approx(2 * sum(P.loss_of(data, i, y) for i, y in enumerate(picked)))
    step = 1e-5
    for k in rng.permutation(learner.dimension)[:20]:
        up, down = w.copy(), w.copy()
        up[k] += step
        down[k] -= step
        slope = (learner.hinges(up, answers).sum() - learner.hinges(down, answers).sum()) / (2 * step)
        assert -plane[k] / 2 == pytest.approx(slope, abs=1e-8)


def test_threads_do_not_change_answers():
    rng = np.random.default_rng(1)
    data = P.random_labels(rng, n=60, labels=7, most=9)
    w = rng.normal(size=Learner(data).dimension)
    one, three = Learner(data).decode(w, 1.0), Learner(data, 3).decode(w, 1.0)
    assert np.array_equal(one.labels, three.labels)
    assert np.array_equal(one.value, three.value)


def test_a_cycle_is_not_decoded_in_the_core():
    data = P.random_labels(np.random.default_rng(0), n=1, most=3, edges=0)
    data.token_begin = np.array([0, 3], np.int64)
    data.rows, data.truth = sp.csr_matrix(np.ones((3, 2))), np.zeros(3, np.int32)
    data.edges, data.edge_begin = Edges.LIST, np.array([0, 3], np.int64)
    data.edge_u, data.edge_v = np.array([0, 1, 2], np.int32), np.array([1, 2, 0], np.int32)
    learner = Learner(data)
    assert not learner.decodes
    with pytest.raises(FginferError, match="cycles"):
        learner.decode(np.zeros(learner.dimension))


def break_label(data):
    data.truth = data.truth.copy()
    data.truth[-1] = data.n_labels


def break_feature(data):
    data.rows = data.rows.copy()
    data.rows.indices[0] = 99


def break_value(data):
    data.rows = data.rows.copy()
    data.rows.data[0] = np.nan


def break_empty(data):
    data.token_begin = np.insert(data.token_begin, 1, data.token_begin[1])


@pytest.mark.parametrize(
    ("damage", "message"),
    [(break_label, "has label 3"), (break_feature, "index 99"), (break_value, "not finite"), (break_empty, "empty")],
)
def test_the_core_refuses_bad_data(damage, message):
    data = P.random_labels(np.random.default_rng(0))
    damage(data)
    with pytest.raises(FginferError, match=message):
        Learner(data)


def test_the_core_refuses_bad_answers():
    learner = Learner(P.random_labels(np.random.default_rng(0)))
    settings = PassSettings(Update.BCFW, C=1.0, averaging=Mean.NONE, max_answers=10, batch=1, threshold=0.0)
    length = int(learner.data.token_begin[1])
    for answer in (np.zeros(length + 1), np.full(length, 9), np.full(length, -1)):
        with pytest.raises(FginferError):
            learner.offer(settings, 0, answer.astype(np.int32))
    with pytest.raises(FginferError):
        learner.offer(settings, 99, np.zeros(length, np.int32))
