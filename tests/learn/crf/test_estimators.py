"""ChainCRF, GraphCRF, HierarchicalCRF and crf_path as a user sees them."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from fginfer.errors import DataError, FormatError, SettingsError, SolverError
from fginfer.learn import ChainCRF, Example, GraphCRF, HierarchicalCRF, crf_path
from fginfer.learn.crf.hierarchy import read_taxonomy
from fginfer.learn.crf.solver import SOLVERS

WORDS = {"D": ["the", "a"], "N": ["dog", "cat", "run"], "V": ["runs", "sees", "run"]}


def sentences(seed, n=30):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tags = [tag for _ in range(rng.integers(1, 3)) for tag in "DNV"]
        words = [rng.choice(WORDS[tag]) for tag in tags]
        X.append([{"word": str(w), "length": len(w), "first": t == 0} for t, w in enumerate(words)])
        y.append(tags)
    return X, y


def chains(seed=0, n=20, d=6, labels=3):
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((int(rng.integers(1, 6)), d)) for _ in range(n)]
    W = rng.standard_normal((d, labels))
    return X, [np.argmax(x @ W + 0.5 * rng.standard_normal((len(x), labels)), 1) for x in X]


# ---- chains


def test_token_dicts_names_and_probabilities():
    X, y = sentences(0)
    crf = ChainCRF(l1=0.1, fit_intercept=False).fit(X, y)
    assert crf.status_ == "converged"
    assert crf.score(X, y) == 1.0
    assert list(crf.classes_) == ["D", "N", "V"]
    assert "word:the" in crf.feature_names_
    assert "length" in crf.feature_names_
    top = crf.top_features(3)
    assert top["D"][0][0] in ("word:the", "word:a", "first")
    assert [abs(x) for _, x in top["N"]] == sorted((abs(x) for _, x in top["N"]), reverse=True)
    proba = crf.predict_proba(X[:2])
    assert [p.shape for p in proba] == [(len(x), 3) for x in X[:2]]
    np.testing.assert_allclose(proba[0].sum(1), 1)
    unseen = crf.predict([[{"word": "zebra"}]])
    assert unseen[0].shape == (1,)
    assert crf.log_likelihood(X, y).shape == (len(X),)
    assert (crf.log_likelihood(X, y) < 0).all()
    assert sp.issparse(crf.coef_)
    assert crf.coef_.nnz + np.count_nonzero(crf.pairwise_) == crf.n_nonzero_


def test_lists_of_names_and_dicts_of_dicts_are_tokens_too():
    X = [[["w=a", "cap"], ["w=b"]], [["w=b"], ["w=a"]]]
    crf = ChainCRF(l1=0.01, fit_intercept=False).fit(X, [["x", "y"], ["y", "x"]])
    assert list(crf.feature_names_) == ["cap", "w=a", "w=b"]
    nested = ChainCRF(l1=0.01).fit([[{"w": {"a": 2.0}, "tags": ["p", "q"]}, {"w": "c"}]], [["x", "y"]])
    assert list(nested.feature_names_) == ["tags:p", "tags:q", "w:a", "w:c"]


def test_the_objective_is_what_it_says():
    X, y = chains()
    crf = ChainCRF(l1=0.7, l2=0.3, tol=1e-6).fit(X, y)
    w = crf.weights_
    value = 0.7 * np.abs(w).sum() + 0.15 * (w @ w) - crf.log_likelihood(X, y).sum()
    assert value == pytest.approx(crf.primal_, rel=1e-10)
    assert crf.gap_ <= 1e-6
    steps = [p.objective for p in crf.history_]
    assert all(b <= a + 1e-12 * abs(a) for a, b in itertools.pairwise(steps))


def test_solvers_agree():
    X, y = chains(1)
    values = [ChainCRF(l1=1.0, solver=solver, tol=1e-7, max_iter=10_000).fit(X, y).primal_ for solver in SOLVERS]
    assert max(values) - min(values) <= 1e-8 * values[0]


def test_tokens_alone_are_multinomial_logistic_regression():
    X, y = chains(2, n=60)
    flat, labels = np.concatenate(X), np.concatenate(y)
    crf = ChainCRF(l1=0.0, l2=1.0, pairwise=False, fit_intercept=False, tol=1e-9).fit(X, y)
    other = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(flat, labels)
    np.testing.assert_allclose(crf.coef_.toarray(), other.coef_, atol=1e-4)
    np.testing.assert_allclose(np.concatenate(crf.predict_proba(X)), other.predict_proba(flat), atol=1e-4)


def test_n_best_are_the_best_of_all():
    X, y = chains(3)
    crf = ChainCRF(l1=0.3).fit(X, y)
    x = next(x for x in X if len(x) == 3)
    found = crf.predict_nbest([x], n=5)[0]
    everything = sorted(
        (float(np.exp(crf.log_likelihood([x], [list(a)])[0])) for a in itertools.product(range(3), repeat=3)),
        reverse=True,
    )
    np.testing.assert_allclose([p for _, p in found], everything[:5], rtol=1e-9)
    np.testing.assert_array_equal(found[0][0], crf.predict([x])[0])
    assert len(crf.predict_nbest([x], n=100)[0]) == 27
    assert sum(everything) == pytest.approx(1.0)


def test_n_best_with_kinds_and_values_of_edges():
    """Against all sequences: edges of several kinds, with values, without any; ties; more than there are."""
    from itertools import product

    from fginfer.core.crf import best_labelings

    rng = np.random.default_rng(3)
    for trial in range(30):
        tokens, k, kinds = (int(rng.integers(1, 5)), int(rng.integers(1, 4)), 2)
        scores = rng.integers(-2, 3, (tokens, k)).astype(float)  # whole numbers: there are ties
        scores[rng.random(scores.shape) < 0.2] = -np.inf
        tables = rng.integers(-2, 3, (kinds, k, k)).astype(float) if trial % 3 else None
        which = rng.integers(0, kinds, tokens - 1)
        every = []
        for y in product(range(k), repeat=tokens):
            pairs = (
                0.0 if tables is None else sum(tables[w, a, b] for w, a, b in zip(which, y[:-1], y[1:], strict=True))
            )
            every.append(pairs + sum(scores[t, a] for t, a in enumerate(y)))
        every = sorted((v for v in every if v > -np.inf), reverse=True)
        n = int(rng.integers(1, 100))
        labels, values = best_labelings(scores, tables, which, n)
        assert values.tolist() == every[:n]
        assert len({tuple(y) for y in labels.tolist()}) == len(labels)
        for y, v in zip(labels, values, strict=True):
            assert (0 if tables is None else tables[which, y[:-1], y[1:]].sum()) + scores[
                np.arange(tokens), y
            ].sum() == v


@pytest.mark.slow
def test_n_best_of_thousands_of_labels_takes_little_memory():
    """All pairs of labels at once would be 1.6 GB a token; what is kept is 4 bytes for each label, token and rank."""
    import resource

    from fginfer.core.crf import best_labelings

    rng = np.random.default_rng(0)
    scores, table = rng.standard_normal((3, 4424)), rng.standard_normal((1, 4424, 4424)).astype(np.float64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    labels, values = best_labelings(scores, table, np.zeros(2, np.int64), 10)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
    assert (np.diff(values) <= 0).all()
    first = scores[0][:, None] + table[0]
    best = ((first + scores[1]).max(0)[:, None] + table[0]).max(0) + scores[2]
    assert values[0] == pytest.approx(best.max(), rel=1e-12)
    y = labels[9]
    assert values[9] == pytest.approx(scores[np.arange(3), y].sum() + table[0][y[:-1], y[1:]].sum(), rel=1e-12)


def test_candidates_constrain_decoding_and_probabilities():
    X, y = chains(4)
    crf = ChainCRF(l1=0.3).fit(X, y)
    x = next(x for x in X if len(x) >= 3)
    allowed = [None] * len(x)
    allowed[1] = [2]
    fixed = Example(x, candidates=allowed)
    assert crf.predict([fixed])[0][1] == 2
    proba = crf.predict_proba([fixed])[0]
    np.testing.assert_allclose(proba[1], [0, 0, 1])
    np.testing.assert_allclose(proba.sum(1), 1)
    assert all(labels[1] == 2 for labels, _ in crf.predict_nbest([fixed], n=4)[0])


def test_marginals_of_pairs_fit_those_of_tokens():
    X, y = chains(5)
    crf = ChainCRF(l1=0.3).fit(X, y)
    unary, pairs = crf.predict_marginals(X, pairwise=True)
    for u, p in zip(unary, pairs, strict=True):
        assert p.shape == (len(u) - 1, 3, 3)
        np.testing.assert_allclose(p.sum(2), u[:-1], atol=1e-10)
        np.testing.assert_allclose(p.sum(1), u[1:], atol=1e-10)


def test_concatenated_input_is_the_same():
    X, y = chains(6)
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    a = ChainCRF(l1=0.5).fit(X, y)
    b = ChainCRF(l1=0.5, n_jobs=2).fit(sp.csr_matrix(np.concatenate(X)), np.concatenate(y), offsets)
    np.testing.assert_array_equal(a.weights_, b.weights_)
    np.testing.assert_allclose(np.concatenate(a.predict_proba(X)), b.predict_proba(np.concatenate(X), offsets))


def test_weights_of_examples_count_them():
    X, y = chains(7, n=6)
    twice = ChainCRF(l1=0.5, tol=1e-8).fit([*X, X[0]], [*y, y[0]])
    weighed = [Example(x, weight=np.full(len(x), 2.0 if i == 0 else 1.0)) for i, x in enumerate(X)]
    assert ChainCRF(l1=0.5, tol=1e-8).fit(weighed, y).primal_ == pytest.approx(twice.primal_, rel=1e-9)
    with pytest.raises(DataError, match="same weight"):
        ChainCRF().fit([Example(np.ones((2, 1)), weight=[1.0, 2.0])], [[0, 1]])


# ---- runs


@pytest.mark.parametrize("solver", SOLVERS)
def test_resumed_is_unbroken(tmp_path, solver):
    X, y = chains(8, n=40)
    settings = {"l1": 0.4, "solver": solver, "tol": 1e-6, "max_iter": 60}
    whole = ChainCRF(**settings).fit(X, y)
    path = tmp_path / "run.npz"
    for steps in (3, 7, 60):
        part = ChainCRF(**{**settings, "max_iter": steps}, checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(part.weights_, whole.weights_)
    with pytest.raises(SettingsError, match="other data or settings"):
        ChainCRF(**{**settings, "l1": 0.5}, checkpoint=path).fit(X, y)


def test_a_warm_start_goes_on_to_a_smaller_tol():
    X, y = chains(9, n=40)
    crf = ChainCRF(l1=0.4, tol=1e-2, warm_start=True).fit(X, y)
    rough = crf.primal_
    crf.set_params(tol=1e-8).fit(X, y)
    assert crf.primal_ < rough
    assert crf.primal_ == pytest.approx(ChainCRF(l1=0.4, tol=1e-8).fit(X, y).primal_, rel=1e-10)


def test_limits_and_callbacks_end_a_run_with_its_status():
    X, y = chains(10, n=40)
    assert ChainCRF(l1=0.1, max_iter=2, tol=1e-9).fit(X, y).status_ == "iteration_limit"
    seen = []
    crf = ChainCRF(l1=0.1, tol=1e-9, callback=lambda p: seen.append(p) or len(seen) >= 3).fit(X, y)
    assert crf.status_ == "stopped"
    assert len(seen) == 3
    assert ChainCRF(l1=0.1, tol=1e-12, time_limit=1e-6).fit(X, y).status_ == "time_limit"


def test_every_step_tells_its_objective():
    X, y = chains()
    seen = []
    crf = ChainCRF(l1=0.5, callback=seen.append).fit(X, y)
    values = [point.primal for point in seen]
    assert None not in values
    assert values[-1] == crf.primal_
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(values))


def test_files_and_pickles(tmp_path):
    X, y = sentences(1)
    crf = ChainCRF(l1=0.2).fit(X, y)
    crf.save(tmp_path / "m.npz")
    again = ChainCRF.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.weights_, crf.weights_)
    assert again.l1 == 0.2
    for other in (again, pickle.loads(pickle.dumps(crf))):
        np.testing.assert_allclose(np.concatenate(other.predict_proba(X)), np.concatenate(crf.predict_proba(X)))
    with pytest.raises(FormatError):
        GraphCRF.load(tmp_path / "m.npz")
    assert clone(crf).get_params()["l1"] == 0.2


def test_a_path_is_what_single_fits_are():
    X, y = chains(11, n=40)
    path = crf_path(ChainCRF(tol=1e-8), X, y, l1s=[0.5, 4.0, 1.5])
    assert path.l1 == (4.0, 1.5, 0.5)
    for l1, model in zip(path.l1, path.models, strict=True):
        alone = ChainCRF(l1=l1, tol=1e-8).fit(X, y)
        assert model.primal_ == pytest.approx(alone.primal_, rel=1e-8)
        assert model.l1 == l1
    assert sorted(path.nonzeros) == path.nonzeros
    default = crf_path(ChainCRF(), X, y, n=4, ratio=0.1)
    assert default.nonzeros[0] == 0
    assert default.nonzeros[-1] > 0


def test_pruned_training_is_within_its_slack():
    X, y = chains(13, n=40, labels=8)
    whole = ChainCRF(l1=0.5, tol=1e-6).fit(X, y)
    cut = ChainCRF(l1=0.5, tol=1e-6, prune=1e-8).fit(X, y)
    assert 0 < cut.lost_ <= 1e-8
    assert 0 < cut.slack_ <= 1.001e-8 * len(X)
    assert whole.slack_ == 0
    assert abs(cut.primal_ - whole.primal_) <= cut.slack_ + 1e-7 * whole.primal_
    np.testing.assert_allclose(cut.predict_proba(X)[0], whole.predict_proba(X)[0], atol=1e-3)
    fixed = [Example(X[0], candidates=[[k] for k in y[0]])]
    np.testing.assert_allclose(cut.predict_proba(fixed)[0].max(1), 1)
    with pytest.raises(DataError, match="prune"):
        ChainCRF(prune=1e-8).fit(fixed, y[:1])


# ---- graphs


def graphs(cycles, n=15):
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n):
        tokens = int(rng.integers(3, 6))
        edges = [(t, t + 1) for t in range(tokens - 1)] + ([(0, tokens - 1)] if cycles else [])
        x = rng.standard_normal((tokens, 4))
        X.append(Example(x, edges=edges))
        y.append(np.where(x[:, 0] + 0.3 * rng.standard_normal(tokens) > 0, "on", "off"))
    return X, y


def test_forests_are_exact_and_chains_among_them():
    X, y = graphs(cycles=False)
    graph = GraphCRF(l1=0.3, tol=1e-8).fit(X, y)
    chain = ChainCRF(l1=0.3, tol=1e-8).fit([x.features for x in X], y)
    assert graph.objective_ == "likelihood"
    assert graph.primal_ == pytest.approx(chain.primal_, rel=1e-9)
    np.testing.assert_allclose(graph.predict_proba(X)[0], chain.predict_proba([X[0].features])[0], atol=1e-5)


def test_cycles_take_the_pseudo_likelihood_and_say_so():
    X, y = graphs(cycles=True)
    crf = GraphCRF(l1=0.3).fit(X, y)
    assert crf.objective_ == "pseudo-likelihood"
    assert crf.score(X, y) > 0.8
    assert (crf.log_likelihood(X, y) < 0).all()
    with pytest.raises(SolverError, match="cycles"):
        crf.predict_proba(X)


# ---- taxonomies


def test_a_taxonomy_shares_what_siblings_share(tmp_path):
    rng = np.random.default_rng(0)
    tree = {"cat": "animal", "dog": "animal", "oak": "plant", "fir": "plant", "animal": "thing", "plant": "thing"}
    names = ["cat", "dog", "fir", "oak"]
    y = np.array(names)[rng.integers(0, 4, 200)]
    X = np.array([[label in ("cat", "dog"), label in ("cat", "fir"), 1] for label in y], float)
    X += 0.5 * rng.standard_normal(X.shape)
    crf = HierarchicalCRF(taxonomy=tree, l1=2.0, tol=1e-7).fit(X, y)
    flat = HierarchicalCRF(l1=2.0, tol=1e-7).fit(X, y)
    assert crf.nodes_[:3] == ["thing", "animal", "plant"]
    assert crf.primal_ <= flat.primal_ + 1e-6  # the inner nodes can only help
    proba = crf.predict_proba(X)
    np.testing.assert_allclose(proba.sum(1), 1)
    np.testing.assert_array_equal(crf.classes_[proba.argmax(1)], crf.predict(X))
    assert crf.score(X, y) > 0.6
    assert crf.coef_.shape == (7, 3)
    crf.save(tmp_path / "h.npz")
    np.testing.assert_array_equal(HierarchicalCRF.load(tmp_path / "h.npz").predict(X), crf.predict(X))


def test_parents_as_an_array():
    parent = [-1, 0, 0, 1, 1, 2, 2]
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), rng.integers(3, 7, 50)
    crf = HierarchicalCRF(taxonomy=parent, l1=0.5).fit(X, y)
    assert crf.classes_.tolist() == [3, 4, 5, 6]
    assert set(crf.predict(X)) <= {3, 4, 5, 6}


@pytest.mark.parametrize(
    ("taxonomy", "message"),
    [
        ({"a": "b", "b": "a"}, "cycle"),
        ([1, 0, 0], "cycle"),
        ([-1, 7], "parent of node 1"),
        ({"a": "r", "b": "r", "c": "r"}, "not in the taxonomy"),
        ({"a": "r", "x": "y", "y": "r"}, "inner node"),
        ("tree", "mapping"),
        ({1: "r", "x": "r"}, "of one kind"),
        ({"a": ["r"], "y": "r"}, "one parent"),
    ],
)
def test_bad_taxonomies(taxonomy, message):
    with pytest.raises(DataError, match=message):
        HierarchicalCRF(taxonomy=taxonomy).fit(np.ones((3, 1)), ["a", "y", "x"])


def test_parents_come_first():
    inner, leaves, _ = read_taxonomy({"d": "c", "c": "b", "b": "a", "x": "a"})
    assert inner == ["a", "b", "c"]
    assert leaves == ["d", "x"]


# ---- bad input


@pytest.mark.parametrize(
    "change",
    [{"l1": -1}, {"l1": np.nan}, {"l2": np.inf}, {"l1": "1"}, {"solver": "bcfw"}, {"tol": -1}, {"memory": -1},
     {"prune": 1.0}, {"prune": np.nan}, {"max_iter": 0}, {"solver_options": {"memory": 0}},
     {"solver_options": {"nothing": 1}}],
)  # fmt: skip
def test_bad_settings(change):
    X, y = chains()
    with pytest.raises(SettingsError):
        ChainCRF(**change).fit(X, y)


def test_bad_data():
    with pytest.raises(DataError, match="empty"):
        ChainCRF().fit([np.ones((0, 2)), np.ones((1, 2))], [[], [1]])
    with pytest.raises(DataError, match="empty"):
        ChainCRF().fit([[{"a": 1}], []], [["x"], []])
    with pytest.raises(DataError, match="tokens"):
        ChainCRF().fit([[{"a": 1}]], [["x", "y"]])
    with pytest.raises(DataError, match="not finite"):
        ChainCRF().fit([[{"a": np.nan}, {"b": 1}]], [["x", "y"]])
    with pytest.raises(DataError, match="one class"):
        ChainCRF().fit([[{"a": 1}]], [["x"]])
    with pytest.raises(DataError, match="of one kind"):
        ChainCRF().fit([[{"a": 1}, {"b": 1}]], [["x", None]])
    X, y = sentences(0)
    crf = ChainCRF().fit(X, y)
    for ask in (crf.predict, crf.predict_proba, crf.predict_nbest):
        with pytest.raises(DataError, match="example 0 is empty"):
            ask([[]])
    with pytest.raises(DataError):
        crf.score([[{"word": "the"}]], [["unseen"]])
    X, y = chains()
    with pytest.raises(DataError, match="names"):
        ChainCRF().fit(X, y).predict([[{"a": 1}]])


def test_a_table_is_graphs_of_one_token():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 3, 40)
    with pytest.warns(UserWarning, match="a graph of one token"):
        crf = GraphCRF(l1=0.1, tol=1e-8).fit(X, y)
    assert crf.objective_ == "likelihood"
    alone = HierarchicalCRF(l1=0.1, tol=1e-8).fit(X, y)
    assert crf.primal_ == pytest.approx(alone.primal_, rel=1e-9)
    np.testing.assert_allclose(crf.coef_.toarray(), alone.coef_.toarray(), atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X is one table without offsets")
@pytest.mark.parametrize("estimator", [HierarchicalCRF(), ChainCRF(), GraphCRF()])
def test_scikit_learn_checks(estimator):
    check_estimator(estimator)


def test_stochastic_steps_come_near_the_optimum(tmp_path):
    X, y = chains(12, n=60)
    best = ChainCRF(l1=0.5, tol=1e-7).fit(X, y).primal_
    sgd = ChainCRF(l1=0.5, solver="sgd", max_iter=60, solver_options={"rate": 0.3}).fit(X, y)
    assert best <= sgd.primal_ <= 1.02 * best
    path = tmp_path / "run.npz"
    for passes in (7, 60):
        part = ChainCRF(l1=0.5, solver="sgd", max_iter=passes, solver_options={"rate": 0.3}, checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(part.weights_, sgd.weights_)
    with pytest.raises(SettingsError, match="l2"):
        ChainCRF(l1=0.5, l2=1.0, solver="sgd").fit(X, y)
