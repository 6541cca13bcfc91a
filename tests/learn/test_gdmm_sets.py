"""gdmm on label sets with interactions: optimum of the relaxed problem, certificates, joint oracle against the scan."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from fginfer.errors import SettingsError
from fginfer.learn import StructuredSVM
from fginfer.learn.learner import Learner
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.solvers.registry import make_solver

from . import problems as P
from .test_solvers import optimum


def relaxed_loss(data, w, i):
    """LP-relaxed loss of one example, by HiGHS: x_l, y_lm with y <= x_l, y <= x_m, x_l + x_m - 1 <= y."""
    d, k = data.rows.shape[1], data.n_labels
    truth = np.isin(np.arange(k), P.truth_of(data, i))
    unary = data.rows[i].toarray()[0] @ w[: d * k].reshape(d, k)
    table = w[d * k :].reshape(k, k)
    pairs = list(itertools.combinations(range(k), 2))
    weight = 1.0 if data.token_weight is None else data.token_weight[i]
    missed, spurious = weight * (np.ones((k, 2)) if data.cost is None else data.cost).T
    objective = np.concatenate([unary + np.where(truth, -missed, spurious), [table[a, b] for a, b in pairs]])
    rows, right = [], []
    for f, (a, b) in enumerate(pairs):
        for left, limit in (({k + f: 1, a: -1}, 0.0), ({k + f: 1, b: -1}, 0.0), ({a: 1, b: 1, k + f: -1}, 1.0)):
            row = np.zeros(len(objective))
            for at, x in left.items():
                row[at] = x
            rows.append(row)
            right.append(limit)
    result = scipy.optimize.linprog(-objective, A_ub=np.array(rows), b_ub=right, bounds=(0, 1))
    on = np.flatnonzero(truth)
    score = unary[on].sum() + sum(table[a, b] for a, b in itertools.combinations(on, 2))
    return -result.fun + missed[on].sum() - score


@pytest.mark.parametrize("weighted", [False, True])
def test_without_interactions_it_is_the_exact_optimum(weighted):
    data = P.random_sets(np.random.default_rng(0), n=10, weighted=weighted)
    _, trace = drive(make_solver("gdmm", Learner(data), None, 0.3, 0, {}), Limits(1e-6, 2000))
    assert trace[-1].primal == pytest.approx(optimum(data, 0.3, squared=False), rel=1e-5)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [{}, {"brute_force": True}, {"joint": "sorted"}, {"partitions": 2}], ids=str)
def test_with_interactions_it_meets_the_relaxed_optimum(seed, options):
    data, C = P.random_sets(np.random.default_rng(seed), n=8, labels=4, pairwise=True, weighted=seed == 1), 0.3
    learner = Learner(data)
    solver = make_solver("gdmm", learner, None, C, 0, options)
    status, trace = drive(solver, Limits(1e-5, 5000))
    assert status == "converged", trace[-1]
    w = learner.weights.copy()
    relaxed = 0.5 * w @ w + C * sum(relaxed_loss(data, w, i) for i in range(data.n_examples))
    exact = 0.5 * w @ w + C * sum(max(v - g @ w) for g, v in P.planes(data))
    assert trace[-1].dual - 1e-9 <= relaxed <= trace[-1].primal + 1e-9
    assert exact <= relaxed + 1e-9
    assert optimum(data, C, squared=False) <= trace[-1].primal * (1 + 1e-6)


def test_a_visit_looks_at_one_of_the_partitions():
    data = P.random_sets(np.random.default_rng(4), n=40, labels=30, pairwise=True)
    touched = []
    for partitions in (1, 3):
        solver = make_solver("gdmm", Learner(data), None, 0.3, 0, {"partitions": partitions})
        solver.advance(np.inf)
        touched.append(solver.info.unary_touched)
    assert touched[1] < 0.6 * touched[0]


def test_certificates_hold_on_the_way():
    data, C = P.random_sets(np.random.default_rng(9), n=8, labels=4, pairwise=True), 1.0
    learner = Learner(data)
    solver = make_solver("gdmm", learner, None, C, 0, {"greedy": 1})
    duals, primals = [], []
    for _ in range(30):
        solver.advance(np.inf)
        upper, lower, _ = solver.certificate()
        w = learner.weights.copy()
        assert upper >= 0.5 * w @ w + C * sum(relaxed_loss(data, w, i) for i in range(data.n_examples)) - 1e-9
        duals.append(lower)
        primals.append(upper)
    assert max(duals) <= min(primals) + 1e-9


def test_the_joint_oracle_is_sublinear_and_changes_nothing_else():
    rng = np.random.default_rng(3)
    data = P.random_sets(rng, n=30, labels=60, features=8, pairwise=True)
    fast = make_solver("gdmm", Learner(data), None, 0.5, 0, {"joint": "sorted"})
    slow = make_solver("gdmm", Learner(data), None, 0.5, 0, {"brute_force": True})
    for _ in range(5):
        fast.advance(np.inf)
        slow.advance(np.inf)
    assert fast.certificate()[1] == pytest.approx(slow.certificate()[1], rel=0.01)
    assert fast.info.pair_calls == slow.info.pair_calls == 5 * 30
    assert fast.info.pair_touched < 0.7 * slow.info.pair_touched  # a search that goes far is given up for a scan


def sparse_sets(labels, n=50):
    """Sets of three labels that come together, among many: what label sets are like."""
    rng = np.random.default_rng(3)
    groups = [np.unique(g) for g in rng.integers(0, labels, (labels // 4, 3))]
    sets = [groups[rng.integers(len(groups))] for _ in range(n)]
    rows = np.zeros((n, labels))
    for row, on in zip(rows, sets, strict=True):
        row[on] = 1.0
        row[rng.integers(0, labels, 2)] += 0.5
    data = P.random_sets(rng, n=n, labels=labels, features=labels, pairwise=True)
    data.rows, data.truth = sp.csr_matrix(rows), np.concatenate(sets).astype(np.int32)
    data.truth_begin = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    return data


@pytest.mark.parametrize("options", [{}, {"joint": "sorted"}], ids=["by default", "sorted"])
def test_the_joint_oracle_works_little_where_few_labels_matter(options):
    """Twice the labels are four times the pairs. Either way reads far fewer, and not twice as many."""
    touched = {}
    for labels in (200, 400):
        runs = []
        for way in (options, {"brute_force": True}):
            solver = make_solver("gdmm", Learner(sparse_sets(labels)), None, 0.5, 0, way)
            for _ in range(3):
                solver.advance(np.inf)
            runs.append(solver)
        assert runs[0].certificate()[1] == pytest.approx(runs[1].certificate()[1], rel=0.01)
        assert runs[0].info.pair_calls == runs[1].info.pair_calls
        touched[labels] = [solver.info.pair_touched for solver in runs]
    assert touched[200][0] < 0.15 * touched[200][1]
    assert touched[400][0] < 0.05 * touched[400][1]
    assert touched[400][0] < 2.0 * touched[200][0]
    assert touched[400][1] > 3.5 * touched[200][1]


def test_partitions_of_the_labels_reach_the_same_optimum():
    """One third of the labels at a time: a third of the products, the same end."""
    data, C = P.random_sets(np.random.default_rng(3), n=10, labels=9, pairwise=True), 0.3
    whole = make_solver("gdmm", Learner(data), None, C, 0, {})
    parts = make_solver("gdmm", Learner(data), None, C, 0, {"partitions": 3})
    parts.advance(np.inf)
    whole.advance(np.inf)
    assert parts.info.unary_products < 0.8 * whole.info.unary_products  # the listed labels are scored, too
    _, trace = drive(whole, Limits(1e-5, 3000))
    status, sampled = drive(parts, Limits(1e-5, 6000))
    assert status == "converged"
    assert sampled[-1].primal == pytest.approx(trace[-1].primal, rel=1e-4)


def test_slices_and_checkpoints_change_nothing():
    data = P.random_sets(np.random.default_rng(7), n=9, labels=5, pairwise=True)
    whole = make_solver("gdmm", Learner(data), None, 0.5, 7, {})
    for _ in range(8):
        whole.advance(np.inf)
    sliced = make_solver("gdmm", Learner(data), None, 0.5, 7, {})
    passes = calls = 0
    while passes < 8:
        passes += sliced.advance(0.0)
        calls += 1
        if calls % 5 == 0:
            saved = sliced.export()
            sliced = make_solver("gdmm", Learner(data), None, 0.5, 7, {})
            sliced.restore(saved)
    assert np.array_equal(whole.weights(), sliced.weights())
    assert whole.certificate() == sliced.certificate()


def test_structured_solvers_claim_only_what_is_measured_beside_their_local_search():
    rng = np.random.default_rng(1)
    data = P.random_sets(rng, n=8, labels=4, pairwise=True)
    best = optimum(data, 0.3, squared=False)
    for name in ("bcfw", "cutting-plane", "fw"):
        _, trace = drive(make_solver(name, Learner(data), None, 0.3, 0, {}), Limits(1e-3, 50))
        assert trace[-1].dual <= best * (1 + 1e-6)
        assert best * (1 - 1e-6) <= trace[-1].primal
        wide = make_solver(name, Learner(P.random_sets(rng, n=4, labels=300, pairwise=True)), None, 0.3, 0, {})
        _, trace = drive(wide, Limits(1e-3, 1))
        assert trace[-1].primal is None
        assert trace[-1].gap is None


def test_interactions_are_learned_and_decoded():
    """Label 2 goes with 0 and 1 together, which no unary weight can say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, (X > 0).all(axis=1)]).astype(int)
    plain = StructuredSVM(model="multilabel", solver="gdmm", pairwise=False, C=1.0).fit(X, y)
    joint = StructuredSVM(model="multilabel", solver="gdmm", C=1.0).fit(X, y)
    assert np.abs(joint.pairwise_).max() > 0.1
    assert joint.score(X, y) > plain.score(X, y)
    small = P.random_sets(rng, n=6, labels=5, pairwise=True)
    learner = Learner(small)
    w = rng.normal(size=learner.dimension)
    best = [max(w @ P.joint_features(small, i, a) for a in P.answers(small, i)) for i in range(6)]
    found = learner.decode(w)
    for i, answer in enumerate(found.split()):
        assert found.value[i] == pytest.approx(w @ P.joint_features(small, i, answer))
        assert found.value[i] <= best[i] + 1e-9
    assert np.sum(found.value >= np.array(best) - 1e-9) >= 4


def test_the_joint_oracle_gives_one_answer_three_ways():
    """By bounds of the labels, on the sorted table, by looking at all pairs: the same runs."""
    data = P.random_sets(np.random.default_rng(8), n=40, labels=30, features=6, pairwise=True)
    runs, touched = {}, {}
    for name, options in (("bounds", {}), ("sorted", {"joint": "sorted"}), ("scan", {"brute_force": True})):
        solver = make_solver("gdmm", Learner(data), None, 0.3, 0, options)
        for _ in range(8):
            while not solver.advance(np.inf):
                pass
        runs[name], touched[name] = (solver.weights(), solver.certificate()[1]), solver.info.pair_touched
    np.testing.assert_array_equal(runs["bounds"][0], runs["scan"][0])
    assert runs["sorted"][1] == pytest.approx(runs["scan"][1], rel=0.01)  # it breaks ties in another way
    assert touched["bounds"] < touched["scan"]
    with pytest.raises(SettingsError, match="joint"):
        make_solver("gdmm", Learner(data), None, 0.3, 0, {"joint": "magic"})
