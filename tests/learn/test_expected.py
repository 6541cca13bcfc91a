"""What users of scikit-learn expect: partial_fit, a path of C, callable losses, margins, tools on lists of chains."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fginfer.errors import DataError, SettingsError
from fginfer.learn import ChainCRF, Example, PerToken, StructuredSVM, as_sequences, path, token_accuracy
from fginfer.learn.row_weights import RowWeights


def chains(seed=0, n=30, labels=3, features=4, noise=0.7):
    rng = np.random.default_rng(seed)
    y = [rng.integers(0, labels, rng.integers(2, 6)) for _ in range(n)]
    X = [np.eye(features)[t] + noise * rng.normal(size=(len(t), features)) for t in y]
    return X, y


# ---- partial_fit


@pytest.mark.parametrize("solver", ["perceptron", "mira"])
def test_partial_fit_learns_batch_by_batch(solver):
    X, y = chains(n=200)
    model = StructuredSVM(solver=solver, C=0.1)
    for start in range(0, 150, 25):
        model.partial_fit(X[start : start + 25], y[start : start + 25], classes=[0, 1, 2])
    whole = StructuredSVM(solver=solver, C=0.1, max_iter=1).fit(X[:150], y[:150])
    assert (model.n_iter_, model.status_) == (6, "partial")
    assert model.score(X[150:], y[150:]) > whole.score(X[150:], y[150:]) - 0.05


def test_partial_fit_is_one_pass_of_the_same_averages():
    """One example at a time is the textbook's loop; the average is over all iterates."""
    X, y = chains(n=12)
    model = StructuredSVM(solver="perceptron", fit_intercept=False)
    w, total = np.zeros(4 * 3 + 9), np.zeros(4 * 3 + 9)

    def phi(x, labels):
        out = np.zeros_like(w)
        for t, label in enumerate(labels):
            out[np.arange(4) * 3 + label] += x[t]
        for a, b in itertools.pairwise(labels):
            out[12 + 3 * a + b] += 1
        return out

    for x, truth in zip(X, y, strict=True):
        model.partial_fit([x], [truth], classes=[0, 1, 2])
        best = max(itertools.product(range(3), repeat=len(truth)), key=lambda labels: w @ phi(x, labels))
        w = w + phi(x, truth) - phi(x, best)
        total += w
    np.testing.assert_allclose(model.weights_, total / len(X), atol=1e-9)


def test_partial_fit_with_rows_goes_on_after_fit_and_files(tmp_path):
    X, y = chains(n=40)
    both = []
    for sparse in (False, True):
        model = StructuredSVM(solver="mira", solver_options={"sparse": sparse})
        model.partial_fit(X[:20], y[:20], classes=[0, 1, 2]).partial_fit(X[20:], y[20:])
        both.append(np.asarray(model.weights_))
    assert isinstance(model.weights_, RowWeights)
    np.testing.assert_array_equal(both[0], both[1])
    model.save(tmp_path / "m")
    loaded = StructuredSVM.load(tmp_path / "m").partial_fit(X[:5], y[:5])
    assert loaded.score(X, y) > 0.6
    fitted = StructuredSVM(solver="perceptron", max_iter=3).fit(X, y)
    assert fitted.partial_fit(X[:5], y[:5]).score(X, y) > 0.6


def test_partial_fit_refuses():
    X, y = chains(n=6)
    assert not hasattr(StructuredSVM(), "partial_fit")
    with pytest.raises(AttributeError) as refused:
        StructuredSVM().partial_fit(X, y, classes=[0, 1, 2])
    assert "solver='perceptron' or solver='mira'" in str(refused.value.__cause__ or refused.value)
    model = StructuredSVM(solver="mira")
    with pytest.raises(DataError, match="classes"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(DataError, match="classes"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(DataError, match="features"):
        model.partial_fit([np.zeros((2, 7))], [[0, 1]])
    with pytest.raises(DataError):
        model.partial_fit(X[:1], [["other"] * len(y[0])])
    with pytest.raises(SettingsError, match="hash_features"):
        StructuredSVM(solver="mira").partial_fit([[{"a": 1}]], [["x"]], classes=["x", "y"])
    with pytest.raises(SettingsError, match="balance"):
        StructuredSVM(solver="mira", class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])
    named = StructuredSVM(solver="mira", hash_features=32)
    named.partial_fit([[{"a": 1}, "b"]], [["x", "y"]], classes=["x", "y"]).partial_fit([[{"c": 1}]], [["y"]])
    assert list(named.predict([[{"a": 1}, "b"]])[0]) == ["x", "y"]


# ---- a path of C


@pytest.mark.parametrize("solver", ["bcfw", "dcd", "perceptron", "gdmm", "ssg"])
def test_a_path_ends_where_single_runs_do(solver):
    X, y = chains(noise=1.0)
    settings = {"solver": solver, "tol": 1e-3, "max_iter": 300}
    found = path(StructuredSVM(**settings), X, y, Cs=[1.0, 0.01, 0.1])
    assert found.C == (0.01, 0.1, 1.0)
    for C, model in zip(found.C, found.models, strict=True):
        alone = StructuredSVM(C=C, **settings).fit(X, y)
        assert (model.C, model.warm_start) == (C, False)
        if alone.status_ == "converged":
            assert model.gap_ <= 1e-3
            assert model.primal_ == pytest.approx(alone.primal_, rel=2e-3)
            assert model.dual_ <= alone.primal_ * (1 + 1e-9)


def test_a_warm_start_at_another_C_saves_passes():
    X, y = chains(seed=3, n=120, noise=1.0)
    cold = StructuredSVM(C=1.0, tol=1e-4, max_iter=1000).fit(X, y)
    warm = StructuredSVM(C=0.8, tol=1e-4, max_iter=1000, warm_start=True).fit(X, y)
    warm.set_params(C=1.0).fit(X, y)
    assert warm.gap_ <= 1e-4
    assert warm.n_iter_ < cold.n_iter_


def test_path_refuses():
    X, y = chains(n=4)
    for Cs in ([], [0.0, 1.0], [np.nan], ["a"]):
        with pytest.raises(SettingsError, match="Cs"):
            path(StructuredSVM(), X, y, Cs=Cs)
    with pytest.raises(SettingsError, match="crf_path"):
        path(ChainCRF(), X, y)


# ---- losses


def test_callable_losses(tmp_path):
    X, y = chains(noise=1.5)
    matrix = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    by_matrix = StructuredSVM(loss=matrix).fit(X, y)
    by_function = StructuredSVM(loss=lambda truth, answer: abs(truth - answer)).fit(X, y)
    np.testing.assert_array_equal(by_function.weights_, by_matrix.weights_)
    by_function.save(tmp_path / "m")
    np.testing.assert_array_equal(StructuredSVM.load(tmp_path / "m").loss, matrix)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 4)), rng.integers(0, 2, (20, 3))
    pairs = StructuredSVM(model="multilabel", pairwise=False, loss=[(1.0, 2.0)] * 3).fit(X, y)
    called = StructuredSVM(model="multilabel", pairwise=False, loss=lambda label: (1.0, 2.0)).fit(X, y)
    np.testing.assert_array_equal(called.weights_, pairs.weights_)
    for bad in (lambda a, b: -1.0, lambda a, b: np.nan, lambda a, b: "x"):
        with pytest.raises(DataError):
            StructuredSVM(loss=bad).fit(*chains(n=4))


# ---- margins


def all_scores(model, x, edges, tables=None):
    """{labeling: score} by hand."""
    unary = x @ model.coef_.T + model.intercept_
    tables = tables or [model.pairwise_[0]] * len(edges)
    out = {}
    for labels in itertools.product(range(len(model.classes_)), repeat=len(x)):
        pairs = sum(t[labels[u], labels[v]] for (u, v), t in zip(edges, tables, strict=True))
        out[labels] = unary[np.arange(len(x)), list(labels)].sum() + pairs
    return out


def check_max_marginals(model, x, edges, found, tables=None):
    scores = all_scores(model, x, edges, tables)
    for t, k in itertools.product(range(len(x)), range(len(model.classes_))):
        assert found[t, k] == pytest.approx(max(s for labels, s in scores.items() if labels[t] == k), abs=1e-9)
    assert found.max(axis=1) == pytest.approx(np.full(len(x), max(scores.values())))


def test_decision_function_of_chains_is_max_marginals():
    X, y = chains(n=12, noise=1.2)
    model = StructuredSVM().fit(X, y)
    for x, found, answer in zip(X, model.decision_function(X), model.predict(X), strict=True):
        check_max_marginals(model, x, [(t, t + 1) for t in range(len(x) - 1)], found)
        np.testing.assert_array_equal(found.argmax(axis=1), answer)


def test_decision_function_of_forests_and_edge_features():
    rng = np.random.default_rng(2)
    edges = [(1, 0), (1, 2), (4, 3)]
    X = [Example(rng.normal(size=(5, 3)), edges=edges, edge_features=rng.normal(size=(3, 2))) for _ in range(6)]
    y = [rng.integers(0, 3, 5) for _ in X]
    model = StructuredSVM(model="graph", max_iter=20).fit(X, y)
    for x, found in zip(X, model.decision_function(X), strict=True):
        tables = [np.tensordot(row, model.pairwise_, 1) for row in x.edge_features]
        check_max_marginals(model, x.features, edges, found, tables)


def test_decision_function_of_cycles_and_candidates():
    rng = np.random.default_rng(3)
    ring = [(0, 1), (1, 2), (0, 2)]
    X = [Example(rng.normal(size=(3, 3)), edges=ring) for _ in range(5)]
    model = StructuredSVM(model="graph", max_iter=10).fit(X, [rng.integers(0, 2, 3) for _ in X])
    for x, found, answer in zip(X, model.decision_function(X), model.predict(X), strict=True):
        scores = all_scores(model, x.features, ring)
        for t, k in itertools.product(range(3), range(2)):
            other = [k if s == t else answer[s] for s in range(3)]
            assert found[t, k] == pytest.approx(scores[tuple(other)], abs=1e-9)
    X, y = chains(n=5)
    few = [Example(x, candidates=[[label, (label + 1) % 3] for label in t]) for x, t in zip(X, y, strict=True)]
    model = StructuredSVM().fit(few, y)
    for found, truth, answer in zip(model.decision_function(few), y, model.predict(few), strict=True):
        assert np.isneginf(found[np.arange(len(truth)), (truth + 2) % 3]).all()
        np.testing.assert_array_equal(found.argmax(axis=1), answer)


# ---- scikit-learn's tools


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
def test_tools_on_lists_of_chains(named):
    """Folds, predictions and all measures of labels, token by token."""
    X, y = map(as_sequences, chains(n=24))
    if named:
        X = as_sequences([[{"kind": str(k), "b": 1.0} for k in x.argmax(axis=1)] for x in X])
        y = as_sequences([["abc"[k] for k in labels] for labels in y])
    cv = KFold(3)
    answers = cross_val_predict(StructuredSVM(), X, y, cv=3)
    assert answers.shape == (24,)
    assert [len(a) for a in answers] == [len(t) for t in y]
    scores = cross_val_score(StructuredSVM(), X, y, cv=3, scoring="accuracy", error_score="raise")
    np.testing.assert_array_equal(scores, cross_val_score(StructuredSVM(), X, y, cv=cv, scoring=token_accuracy))
    right = np.mean(np.concatenate(list(answers)) == np.concatenate(list(y)))
    assert right == pytest.approx(np.average(scores, weights=[sum(map(len, y[b])) for _, b in cv.split(X)]))
    assert accuracy_score(y, answers) == pytest.approx(right)
    flat = [np.concatenate([np.asarray(part) for part in parts]) for parts in (y, answers)]
    assert f1_score(y, answers, average="macro") == f1_score(*flat, average="macro")
    search = GridSearchCV(StructuredSVM(), {"C": [0.1, 1.0]}, cv=3, scoring="accuracy", error_score="raise").fit(X, y)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() > 0.6


def test_plain_lists_are_cut_into_folds():
    """Also lists of lists, which scikit-learn takes for outdated label sets where it stratifies."""
    X, y = chains(n=24)
    named = [["abc"[k] for k in labels] for labels in y]
    expected = cross_val_score(StructuredSVM(), X, y, cv=KFold(3))
    np.testing.assert_array_equal(cross_val_score(StructuredSVM(), X, named, cv=3), expected)
    np.testing.assert_array_equal(
        cross_val_score(ChainCRF(), X, named, cv=3), cross_val_score(ChainCRF(), X, y, cv=KFold(3))
    )


def test_scalers_in_pipelines():
    X, y = map(as_sequences, chains(n=24))
    pipeline = make_pipeline(PerToken(StandardScaler()), StructuredSVM())
    search = GridSearchCV(pipeline, {"structuredsvm__C": [0.1, 1.0]}, cv=3, scoring="accuracy").fit(X, y)
    assert search.best_score_ > 0.6
    assert pipeline.fit(list(X), list(y)).score(list(X), list(y)) > 0.6
    with pytest.raises(DataError, match=r"PerToken\(StandardScaler\(\)\)"):
        make_pipeline(StandardScaler(), StructuredSVM()).fit(X, y)
    for labels in (y, list(y)):
        with pytest.raises(DataError, match="PerToken"):
            StructuredSVM().fit(np.concatenate(list(X)), labels)


def test_sequences():
    parts = as_sequences([np.array([1, 2]), np.array([3]), np.array([4, 5, 6])])
    assert isinstance(parts[1:], type(parts))
    assert (
        [p.tolist() for p in parts[[2, 0]]] == [p.tolist() for p in parts[np.array([2, 0]), ...]] == [[4, 5, 6], [1, 2]]
    )
    assert [p.tolist() for p in parts[np.array([True, False, True])]] == [[1, 2], [4, 5, 6]]
    assert parts[-1].tolist() == [4, 5, 6]
    assert np.asarray(parts).tolist() == [1, 2, 3, 4, 5, 6]
    assert np.asarray(parts, float).dtype == float
    assert np.concatenate([parts, parts[:1]]).shape == (4,)
    assert np.unique(parts).tolist() == [1, 2, 3, 4, 5, 6]
    assert np.asarray(as_sequences([])).shape == (0,)
    assert pickle.loads(pickle.dumps(parts))[1].tolist() == [3]
    with pytest.raises(IndexError):
        parts[0, 1]
    with pytest.raises(IndexError):
        parts[3]
    for tables in ([np.zeros((2, 3))], [[{"a": 1}, {"b": 1}], 5], [sp.eye(3)]):
        with pytest.raises(DataError, match="PerToken"):
            np.asarray(as_sequences(tables))


def test_scaled_per_token():
    X, _ = chains(n=7)
    scaled = PerToken(StandardScaler()).fit_transform(X)
    whole = StandardScaler().fit_transform(np.concatenate(X))
    np.testing.assert_allclose(np.concatenate(scaled), whole)
    assert [len(a) for a in scaled] == [len(a) for a in X]
    for bad in ([], [["a"]], [np.zeros(3)]):
        with pytest.raises(DataError):
            PerToken(StandardScaler()).fit(bad)
