"""Oracles outside the core: the MAP engine on graphs with cycles, matchings, a user's own; and parses."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from fginfer import FactorGraph
from fginfer.errors import DataError
from fginfer.learn import Choices, Example, MapOracle, MatchingOracle, StructuredSVM
from fginfer.learn.learner import Learner
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.solvers.registry import make_solver

from . import problems as P
from .test_gdmm import cyclic
from .test_solvers import optimum


def test_graphs_with_cycles_train_through_the_map_engine():
    data, C = cyclic(np.random.default_rng(5), n=5), 0.5
    best = optimum(data, C, squared=False)
    for name in ("bcfw", "cutting-plane"):
        solver = make_solver(name, Learner(data), MapOracle(), C, 0, {})
        _, trace = drive(solver, Limits(1e-3, 200))
        assert trace[-1].gap <= 1e-3, name
        assert trace[-1].primal == pytest.approx(best, rel=2e-3)


def cyclic_with(rng, types):
    data = cyclic(rng, n=3, tokens=4)
    rows = (
        rng.normal(size=(18, 2)) if not types else np.eye(2)[rng.integers(0, 2, 18)] * rng.choice([-1.0, 2.0], (18, 1))
    )
    data.n_edge_features, data.edge_rows = 2, sp.csr_matrix(rows)
    return data


MAPPED = {
    "cyclic": lambda rng: cyclic(rng, n=3, tokens=4),
    "types": lambda rng: cyclic_with(rng, True),
    "features": lambda rng: cyclic_with(rng, False),
    "chain": lambda rng: P.random_labels(rng, n=3, edge_features=2, candidates=True, labels=4),
    "tokens": lambda rng: P.random_labels(rng, n=3, edges=0),
    "sets": lambda rng: P.random_sets(rng, n=3, labels=5, pairwise=True),
    "plain_sets": lambda rng: P.random_sets(rng, n=3, labels=4),
}


@pytest.mark.parametrize("case", MAPPED)
def test_the_map_oracle_agrees_with_enumeration(case):
    rng = np.random.default_rng(0)
    data = MAPPED[case](rng)
    learner = Learner(data)
    oracle = pickle.loads(pickle.dumps(MapOracle()))
    for _ in range(3):
        w = rng.normal(size=learner.dimension)
        for i, loss in itertools.product(range(3), (0.0, 1.0)):
            answer = oracle.answer(learner, w, i, loss)
            score, wrong = learner.score(w, i, answer)
            best = max(w @ P.joint_features(data, i, y) + loss * P.loss_of(data, i, y) for y in P.answers(data, i))
            assert score + loss * wrong == pytest.approx(best)
            assert oracle.slack <= 1e-6 * max(1, abs(best))


def test_label_sets_with_interactions_get_a_gap_through_the_map_engine():
    data, C = P.random_sets(np.random.default_rng(1), n=8, labels=4, pairwise=True), 0.3
    best = optimum(data, C, squared=False)
    for name in ("bcfw", "cutting-plane"):
        _, trace = drive(make_solver(name, Learner(data), MapOracle(), C, 0, {}), Limits(1e-3, 300))
        assert trace[-1].gap <= 1e-3
        assert trace[-1].primal == pytest.approx(best, rel=2e-3)
    with pytest.raises(DataError, match="not choices"):
        StructuredSVM(model="choices", oracle=MapOracle()).fit([Choices(np.ones((2, 2)), [2])], [[0]])


def test_the_estimator_takes_loopy_graphs_and_candidates():
    rng = np.random.default_rng(1)
    edges = [(0, 1), (1, 2), (2, 0)]
    X = [Example(rng.normal(size=(3, 2)), edges=edges, candidates=[[0, 1], [0, 1, 2], [1, 2]]) for _ in range(12)]
    y = [np.array([rng.integers(0, 2), rng.integers(0, 3), rng.integers(1, 3)]) for _ in range(12)]
    for solver in ("bcfw", "gdmm"):
        model = StructuredSVM(model="graph", solver=solver, C=0.3, tol=0.01, max_iter=300).fit(X, y)
        assert model.gap_ <= 0.01
        for answer in model.predict(X):
            assert answer[0] in (0, 1)
            assert answer[2] in (1, 2)


def matching(rng, n=12, tokens=3, alternatives=4, features=3):
    teacher = rng.normal(size=features)
    X = [Choices(rng.normal(size=(tokens * alternatives, features)), [alternatives] * tokens) for _ in range(n)]
    y = []
    for x in X:
        scores = (x.rows @ teacher).reshape(tokens, alternatives)
        best = max(itertools.permutations(range(alternatives), tokens), key=lambda p: sum(scores[np.arange(tokens), p]))
        y.append(np.array(best))
    return X, y


def test_matchings_are_learned():
    X, y = matching(np.random.default_rng(2))
    model = StructuredSVM(model="matching", C=10.0, max_iter=300).fit(X, y)
    assert model.score(X, y) > 0.95
    assert all(len(set(answer.tolist())) == 3 for answer in model.predict(X))
    assert [len(s) for s in model.decision_function(X)] == [12] * len(X)
    free = StructuredSVM(model="choices", C=10.0, max_iter=300).fit(X, y)
    assert free.score(X, y) <= model.score(X, y)
    aligned = StructuredSVM(model="matching", C=1.0, oracle=MatchingOracle(null=True)).fit(
        X, [np.zeros(3, int)] * len(X)
    )
    assert aligned.weights_.shape == (3,)


def test_matchings_agree_with_enumeration():
    rng = np.random.default_rng(3)
    X, y = matching(rng, n=2)
    model = StructuredSVM(model="matching", max_iter=1).fit(X, y)
    model.weights_ = rng.normal(size=3)
    for null in (False, True):
        model.oracle = MatchingOracle(null)
        for x, answer in zip(X, model.predict(X), strict=True):
            scores = (x.rows @ model.weights_).reshape(3, 4)
            every = itertools.product(range(4), repeat=3) if null else itertools.permutations(range(4), 3)
            legal = [p for p in every if len({c for c in p if c or not null}) == sum(1 for c in p if c or not null)]
            best = max(sum(scores[np.arange(3), list(p)]) for p in legal)
            assert scores[np.arange(3), answer].sum() == pytest.approx(best)


def test_parses_through_the_estimator(tmp_path):
    rng = np.random.default_rng(4)
    teacher = rng.normal(size=5)
    X, y = [], []
    for n in rng.integers(1, 5, 20):
        x = Choices(rng.normal(size=(n * (n + 1), 5)), [n + 1] * int(n))
        scores = (x.rows @ teacher).reshape(n, n + 1)
        X.append(x)
        y.append(max(P.trees(int(n)), key=lambda heads, s=scores: s[np.arange(len(heads)), heads].sum()))
    model = StructuredSVM(model="parse", C=10.0, max_iter=200).fit(X, y)
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "parser.npz")
    again = StructuredSVM.load(tmp_path / "parser.npz")
    assert all(np.array_equal(a, b) for a, b in zip(again.predict(X), model.predict(X), strict=True))


class Cautious:
    """A user's oracle: all labels zero, or the truth; whichever scores more."""

    def __init__(self):
        self.calls = 0

    def answer(self, learner, weights, example, loss):
        self.calls += 1
        begin, end = learner.data.token_begin[example : example + 2]
        options = [np.zeros(end - begin, np.int32), learner.data.truth[begin:end]]

        def value(answer):
            score, wrong = learner.score(weights, example, answer)
            return score + loss * wrong

        return max(options, key=value)


def test_a_users_own_oracle_drives_every_structured_solver():
    data = P.random_labels(np.random.default_rng(6), n=6)
    for name in ("bcfw", "dcd", "perceptron", "mira", "ssg", "fw", "cutting-plane"):
        oracle = Cautious()
        solver = make_solver(name, Learner(data), oracle, 0.3, 0, {})
        drive(solver, Limits(1e-3, 5))
        assert oracle.calls >= 6, name
        assert np.isfinite(solver.weights()).all()


class Independent:
    """The one of the documentation."""

    def answer(self, learner, weights, example, loss):
        return learner.token_scores(weights, example, loss).argmax(axis=1)


def test_the_oracle_of_the_documentation_is_a_model_without_transitions():
    rng = np.random.default_rng(7)
    X = [rng.normal(size=(3, 2)) for _ in range(8)]
    y = [rng.integers(0, 3, 3) for _ in X]
    own = StructuredSVM(oracle=Independent(), pairwise=False, C=0.5, max_iter=200, tol=1e-5).fit(X, y)
    core = StructuredSVM(pairwise=False, C=0.5, max_iter=200, tol=1e-5).fit(X, y)
    assert own.primal_ == pytest.approx(core.primal_, rel=2e-5)
    assert own.score(X, y) == core.score(X, y)


def test_bad_choices_are_refused():
    fit = StructuredSVM(model="choices").fit
    rows = np.ones((4, 2))
    for X, y, message in (
        ([np.ones((2, 2))], [[0]], "list of Choices"),
        ([Choices(rows, [2, 1])], [[0, 0]], "rows of features"),
        ([Choices(rows, [4, 0])], [[0, 0]], "at least one alternative"),
        ([Choices(rows, [2, 2])], [[0, 2]], "alternatives chosen"),
        ([Choices(rows, [2, 2])], [[0]], "tokens"),
    ):
        with pytest.raises(DataError, match=message):
            fit(X, y)
    with pytest.raises(DataError, match="different alternatives"):
        StructuredSVM(model="matching").fit([Choices(np.ones((2, 2)), [1, 1])], [[0, 0]])


@pytest.mark.parametrize("method", ["gdmm", "trws"])
@pytest.mark.parametrize("features", [0, 2])
def test_the_map_oracle_keeps_its_graphs(method, features, monkeypatch):
    """One graph an example, whatever the number of calls, and the answers of graphs made anew."""
    data = P.random_labels(np.random.default_rng(4), n=4, edges=2, most=4, edge_features=features)
    learner, made, rng = Learner(data), [], np.random.default_rng(0)
    build = FactorGraph.from_arrays.__func__
    monkeypatch.setattr(
        FactorGraph, "from_arrays", classmethod(lambda cls, *a, **k: made.append(1) or build(cls, *a, **k))
    )
    oracle, forgetful = MapOracle(method), MapOracle(method, keep_bytes=0)
    for call in range(3):
        w = rng.normal(size=learner.dimension)
        for i in range(data.n_examples):
            kept, fresh = (o.answer(learner, w, i, 1.0) for o in (oracle, forgetful))
            assert learner.score(w, i, kept) == pytest.approx(learner.score(w, i, fresh))
        assert len(made) == data.n_examples * (call + 2)
    copy = MapOracle(method)
    copy.restore(oracle.export())
    w = rng.normal(size=learner.dimension)
    assert [copy.answer(learner, w, i, 1.0).tolist() for i in range(4)] == [
        oracle.answer(learner, w, i, 1.0).tolist() for i in range(4)
    ]


@pytest.mark.parametrize("method", ["gdmm", "trws"])
def test_the_map_oracle_keeps_one_graph_of_label_sets(method, monkeypatch):
    """One graph for all examples, rebuilt only when a pair gets its first weight; the answers of graphs made anew; a
    checkpoint goes on as if nothing had happened."""
    data = P.random_sets(np.random.default_rng(4), n=5, labels=6, pairwise=True)
    learner, made, rng = Learner(data), [], np.random.default_rng(0)
    build = FactorGraph.from_arrays.__func__
    monkeypatch.setattr(
        FactorGraph, "from_arrays", classmethod(lambda cls, *a, **k: made.append(1) or build(cls, *a, **k))
    )
    oracle, k = MapOracle(method), data.n_labels
    pairs = learner.dimension - k * k

    def weights(share: float) -> np.ndarray:
        w = rng.normal(size=learner.dimension)
        table = np.triu(rng.normal(size=(k, k)) * (rng.random((k, k)) < share), 1)
        w[pairs:] = (table + table.T).ravel()
        return w

    for share, most in ((0.3, 1), (0.0, 1), (1.0, 2), (1.0, 2), (0.5, 2)):
        w = weights(share)
        for i in range(data.n_examples):
            fresh = MapOracle(method).answer(learner, w, i, 1.0)
            made.pop()  # that one
            kept = oracle.answer(learner, w, i, 1.0)
            assert learner.score(w, i, kept) == pytest.approx(learner.score(w, i, fresh))
        assert len(made) <= most
    copy = MapOracle(method)
    copy.restore(oracle.export())
    w = weights(0.7)
    answers = [[o.answer(learner, w, i, 1.0).tolist() for i in range(data.n_examples)] for o in (copy, oracle)]
    assert answers[0] == answers[1]
    broken = MapOracle(method)
    broken.restore({**oracle.export(), "pairs": np.array([0, 99])})
    with pytest.raises(DataError, match="pairs of labels that are none"):
        broken.answer(learner, w, 0, 1.0)
