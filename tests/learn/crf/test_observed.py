"""Fields over the weights that the examples use; sums over few pairs; passes that end at a deadline; refused sizes."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core import clock
from fginfer.core.optimise import Optimiser
from fginfer.errors import DataError, SettingsError
from fginfer.learn import ChainCRF, GraphCRF
from fginfer.learn.crf import base, size
from fginfer.learn.crf.observed import ObservedLoss, observed_weights
from fginfer.learn.crf.solver import CrfSolver
from fginfer.learn.run.interrupts import OutOfTime
from tests.learn.crf.fields import make_loss, random_data


def by_hand(data) -> set[int]:
    """Places of weights that score a true labeling, one token and one edge after the other."""
    k, rows = data.n_labels, data.rows.tocsr()
    found = {int(f) * k + int(data.truth[t]) for t in range(rows.shape[0]) for f in rows[t].indices}
    unary = rows.shape[1] * k
    for i in range(data.n_examples):
        begin, end = int(data.token_begin[i]), int(data.token_begin[i + 1])
        ends = [(t, t + 1) for t in range(begin, end - 1)]
        if data.edge_begin is not None:
            e = slice(int(data.edge_begin[i]), int(data.edge_begin[i + 1]))
            ends = [(begin + u, begin + v) for u, v in zip(data.edge_u[e], data.edge_v[e], strict=True)]
        found |= {unary + int(data.truth[u]) * k + int(data.truth[v]) for u, v in ends}
    return found


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), model=st.sampled_from(["chain", "graph"]))
def test_the_weights_are_those_of_the_definition_and_the_loss_is_the_whole_one(seed: int, model: str):
    data = random_data(seed, model)
    loss = make_loss(data)
    places = observed_weights(data, None, loss.dimension)
    assert set(places.tolist()) == by_hand(data)
    assert (np.diff(places) > 0).all()
    some, rng = ObservedLoss(loss, places), np.random.default_rng(seed)
    for _ in range(3):
        w = rng.standard_normal(len(places)) * (rng.random(len(places)) < 0.6)
        whole = np.zeros(loss.dimension)
        whole[places] = w
        other = make_loss(data)
        assert some.value(w) == pytest.approx(other.value(whole), rel=1e-12)
        where = np.flatnonzero(rng.random(len(places)) < 0.5)
        np.testing.assert_allclose(some.gradient(w, where), other.gradient(whole)[places[where]], atol=1e-12)
        assert np.array_equal(some.spread(w), whole)


def many_labels(seed: int, k: int = 90, examples: int = 12, features: int = 30):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(examples):
        n = int(rng.integers(1, 9))
        X.append((rng.random((n, features)) < 0.2).astype(float))
        y.append(rng.integers(0, k, n))
    y[0][:1], y[1][:1] = 0, k - 1
    return X, y


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1.0, 900.0]), threads=st.sampled_from([1, 2]))
def test_sums_over_few_pairs_are_those_over_all(seed: int, scale: float, threads: int):
    """Many labels, and few of their pairs wanted: also where the sums are logarithms."""
    X, y = many_labels(seed)
    data, loss = ChainCRF(n_jobs=threads)._prepare(X, y, None)
    rng = np.random.default_rng(seed)
    w = scale * rng.standard_normal(loss.dimension) * (rng.random(loss.dimension) < 0.02)
    loss.value(w)
    whole = loss.gradient(w)
    k = data.n_labels
    pairs = np.sort(rng.choice(k * k, 40, replace=False)) + loss.dimension - k * k
    where = np.concatenate([np.flatnonzero(rng.random(loss.dimension - k * k) < 0.1), pairs])
    for _ in range(2):
        loss.value(w)
        np.testing.assert_allclose(loss.gradient(w, where), whole[where], atol=1e-9)
    np.testing.assert_allclose(loss.gradient(w), whole, atol=1e-9)


@pytest.mark.parametrize("solver", ["proxqn", "owlqn", "proxgrad", "bcd"])
def test_all_solvers_meet_one_optimum_and_the_rest_is_zero(solver: str):
    X, y = many_labels(3, k=12, examples=30, features=8)
    crf = ChainCRF(0.3, 0.1, solver=solver, features="observed", tol=1e-6, max_iter=5000).fit(X, y)
    other = ChainCRF(0.3, 0.1, solver="owlqn", features="observed", tol=1e-8, max_iter=5000).fit(X, y)
    assert crf.primal_ == pytest.approx(other.primal_, rel=1e-5)
    data, loss = ChainCRF()._prepare(X, y, None)
    outside = np.ones(loss.dimension, bool)
    outside[observed_weights(data, None, loss.dimension)] = False
    assert outside.any()
    assert not crf.weights_[outside].any()
    assert crf.primal_ >= ChainCRF(0.3, 0.1, tol=1e-6, max_iter=5000).fit(X, y).primal_ - 1e-6


def test_graphs_and_their_files_have_the_option(tmp_path):
    import fginfer
    from fginfer.learn import Example

    X = [Example(np.eye(3), edges=[(0, 1), (1, 2)]), Example(np.eye(3)[:2], edges=[(0, 1)])]
    y = [[0, 1, 2], [0, 1]]
    crf = GraphCRF(0.01, features="observed").fit(X, y)
    assert [list(labels) for labels in crf.predict(X)] == y
    crf.save(tmp_path / "field.fgl")
    assert fginfer.load(tmp_path / "field.fgl").features == "observed"


def test_a_pass_that_is_too_late_can_be_asked_for_again():
    X, y = many_labels(5, k=30, examples=40)
    results = []
    for late in (False, True):
        data, loss = ChainCRF()._prepare(X, y, None)
        solver = CrfSolver("proxqn", loss, data, 0.5, 0.0, 1e-4, 0, {})
        for step in range(40):
            if late and step % 3 == 0:
                solver.deadline = clock.now() - 1
                with pytest.raises(OutOfTime):
                    solver.advance(inf)
                solver.deadline = inf
            solver.advance(inf)
        results.append((solver.optimiser.info.objective, solver.weights()))
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1], results[1][1])


def test_a_late_answer_is_not_given():
    X, y = many_labels(6)
    _, loss = ChainCRF()._prepare(X, y, None)
    optimiser = Optimiser(loss.dimension, 1.0)
    loss.set_deadline(clock.now() - 1)
    assert not loss.serve(optimiser)
    assert loss.late
    loss.set_deadline(inf)
    assert not loss.late
    assert loss.serve(optimiser)
    assert optimiser.info.values == 1


def test_a_limit_that_ends_before_the_first_pass_is_a_status():
    X, y = many_labels(7)
    crf = ChainCRF(time_limit=1e-9).fit(X, y)
    assert crf.status_ == "time_limit"
    assert not crf.weights_.any()


def test_sizes_are_told_before_they_are_taken(monkeypatch: pytest.MonkeyPatch):
    X, y = many_labels(8)
    needed = size.predicted_bytes("proxqn", 10860, 10860, 60, 90, 1, 1 << 30)
    monkeypatch.setattr(size, "memory_of_machine", lambda: needed // 4)
    monkeypatch.setattr(base, "CrfLoss", None)  # nothing may be made
    with pytest.raises(DataError, match=r"weights over .* labels take some .* features='observed'"):
        ChainCRF().fit(X, y)
    monkeypatch.undo()
    monkeypatch.setattr(size, "memory_of_machine", lambda: int(1.5 * needed))
    with pytest.warns(UserWarning, match="GB to train of the"):
        ChainCRF(max_iter=1).fit(X, y)
    monkeypatch.setattr(size, "memory_of_machine", lambda: None)
    ChainCRF(max_iter=1).fit(X, y)


def test_wrong_settings_are_told():
    X, y = many_labels(9)
    with pytest.raises(SettingsError, match="features must be all or observed, not 'some'"):
        ChainCRF(features="some").fit(X, y)
    with pytest.raises(SettingsError, match="sgd steps on all features"):
        ChainCRF(solver="sgd", features="observed").fit(X, y)
