"""Weights kept by rows: the same numbers as dense ones, in memory proportional to what is not zero."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from fginfer.core.learn import PassSettings, Update
from fginfer.errors import DataError, SettingsError
from fginfer.learn import Example, StructuredSVM
from fginfer.learn import row_weights as rw
from fginfer.learn.learner import Learner
from tests.learn.problems import random_labels

BLOCK = ["bcfw", "dcd", "perceptron", "mira", "ssg"]


def chains(rng, n=20, labels=9, features=30):
    X = [sp.random(int(rng.integers(2, 6)), features, 0.15, "csr", random_state=rng) for _ in range(n)]
    return X, [rng.integers(0, labels, x.shape[0]) for x in X]


def fitted(X, y, sparse, **settings):
    options = {"sparse": sparse, **settings.pop("solver_options", {})}
    return StructuredSVM(max_iter=6, tol=1e-9, solver_options=options, **settings).fit(X, y)


@pytest.mark.parametrize("solver", BLOCK)
def test_the_same_numbers_as_dense(solver):
    X, y = chains(np.random.default_rng(1))
    dense, rows = fitted(X, y, False, solver=solver, C=0.3), fitted(X, y, True, solver=solver, C=0.3)
    assert isinstance(rows.weights_, rw.RowWeights)
    np.testing.assert_array_equal(np.asarray(rows.weights_), dense.weights_)
    # sums over |w|^2 run over other zeros: rounding alone may differ
    assert rows.primal_ == (pytest.approx(dense.primal_, rel=1e-12) if dense.primal_ is not None else None)
    assert rows.dual_ == (pytest.approx(dense.dual_, rel=1e-12) if dense.dual_ is not None else None)
    assert [list(a) for a in rows.predict(X)] == [list(a) for a in dense.predict(X)]
    for a, b in zip(rows.decision_function(X), dense.decision_function(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert rows.coef_.shape == dense.coef_.shape
    np.testing.assert_array_equal(rows.coef_.toarray(), dense.coef_)
    np.testing.assert_array_equal(rows.intercept_, dense.intercept_)
    np.testing.assert_array_equal(rows.pairwise_, dense.pairwise_)
    assert rows.top_features(3) == dense.top_features(3)


@pytest.mark.parametrize("variant", ["light", "cpd"])
def test_variants_and_batches(variant):
    X, y = chains(np.random.default_rng(2))
    both = [fitted(X, y, s, solver="dcd", solver_options={"variant": variant}) for s in (False, True)]
    np.testing.assert_array_equal(np.asarray(both[1].weights_), both[0].weights_)
    both = [fitted(X, y, s, solver="bcfw", batch_size=5, n_jobs=2) for s in (False, True)]
    np.testing.assert_array_equal(np.asarray(both[1].weights_), both[0].weights_)


def test_trees_candidates_edge_features_and_losses():
    rng = np.random.default_rng(3)
    for round_ in range(6):
        data = random_labels(rng, n=6, labels=5, features=7, edges=round_ % 3, candidates=round_ % 2 == 0,
                             edge_features=2 if round_ % 3 else 0, weighted=True)  # fmt: skip
        dense, rows = Learner(data), Learner(data, sparse=True)
        for learner in (dense, rows):
            settings = PassSettings(Update.BCFW, 0.7, True, 50, 1, 1e-3)
            for _ in range(3):
                learner.run_pass(settings, learner.everything, 0, np.inf)
            learner.refresh(0.7)
        w = dense.weights.copy()
        np.testing.assert_array_equal(np.asarray(rows.weights), w)
        np.testing.assert_array_equal(np.asarray(rows.averages), dense.averages)
        assert rows.state.squared_norm == pytest.approx(w @ w)
        for weights in (w, rows.weights):  # either learner takes either kind of weights
            for learner in (dense, rows):
                answers = learner.decode(weights, 1.0)
                np.testing.assert_array_equal(answers.labels, dense.decode(w, 1.0).labels)
                np.testing.assert_allclose(learner.hinges(weights, answers), dense.hinges(w, answers), atol=1e-12)
                if data.choice is None:
                    ours, theirs = learner.token_scores(weights, 1), dense.token_scores(w, 1)
                    np.testing.assert_allclose(ours, theirs, atol=1e-12)
                answer = answers.split()[1]
                assert learner.score(weights, 1, answer) == pytest.approx(dense.score(w, 1, answer))
        with pytest.raises(DataError):
            rows.decode(rw.RowWeights(rows.weights.begin, rows.weights.label, rows.weights.values[:-1], 5))


def test_saved_pickled_resumed(tmp_path):
    X, y = chains(np.random.default_rng(4))
    model = fitted(X, y, True, C=0.5)
    model.save(tmp_path / "model")
    loaded = StructuredSVM.load(tmp_path / "model")
    np.testing.assert_array_equal(np.asarray(loaded.weights_), np.asarray(model.weights_))
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(model)).weights_), np.asarray(model.weights_))
    whole = StructuredSVM(max_iter=6, tol=1e-9, C=0.5, solver_options={"sparse": True}).fit(X, y)
    half = StructuredSVM(max_iter=3, tol=1e-9, C=0.5, solver_options={"sparse": True}, checkpoint=tmp_path / "c")
    half.fit(X, y)
    half.set_params(max_iter=6).fit(X, y)
    np.testing.assert_array_equal(np.asarray(half.weights_), np.asarray(whole.weights_))


def test_files_of_mostly_zero_weights_are_short(tmp_path):
    rng = np.random.default_rng(5)
    X, y = sp.random(50, 20_000, 3e-4, "csr", random_state=rng), rng.integers(0, 40, 50)
    model = StructuredSVM(model="multiclass", max_iter=3).fit(X, y)
    model.save(tmp_path / "model")
    assert not isinstance(model.weights_, rw.RowWeights)
    assert (tmp_path / "model").stat().st_size < 20 * np.count_nonzero(model.weights_) + 20_000
    loaded = StructuredSVM.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.weights_, model.weights_)


def test_large_models_are_kept_by_rows_when_loaded(tmp_path, monkeypatch):
    X, y = chains(np.random.default_rng(6), labels=60)
    dense = fitted(X, y, False)
    dense.save(tmp_path / "model")
    monkeypatch.setattr(rw, "LARGE", 1)
    loaded = StructuredSVM.load(tmp_path / "model")
    assert isinstance(loaded.weights_, rw.RowWeights)
    np.testing.assert_array_equal(np.asarray(loaded.weights_), dense.weights_)
    assert (np.diff(loaded.weights_.begin) == len(dense.classes_)).any()  # the intercept's row is whole
    assert [list(a) for a in loaded.predict(X)] == [list(a) for a in dense.predict(X)]


def test_damaged_rows_are_refused():
    for where, values in [([0, 0], [1.0, 2.0]), ([5, 2], [1.0, 1.0]), ([-1], [1.0]), ([99], [1.0]), ([1], [1.0, 2.0])]:
        with pytest.raises(DataError):
            rw.from_nonzeros(np.array(where), np.array(values), 30, 5, 0)


def test_only_where_it_is_possible():
    X, y = chains(np.random.default_rng(7))
    with pytest.raises(SettingsError, match="sparse"):
        fitted(np.eye(4), np.eye(4, dtype=int), True, model="multilabel", pairwise=False)
    ring = [Example(x, edges=[(i, (i + 1) % 3) for i in range(3)]) for x in np.random.default_rng(0).random((4, 3, 5))]
    with pytest.raises(SettingsError, match="sparse"):
        fitted(ring, [[0, 1, 0]] * 4, True, model="graph")
    with pytest.raises(SettingsError, match="no option sparse"):
        fitted(X, y, True, solver="gdmm")


@pytest.mark.slow
def test_a_thousand_labels_and_half_a_million_features_fit_into_little_memory():
    """5e8 weights: a dense vector has 4 GB. The process may not hold more than a small part of one."""
    script = """
        import resource
        import numpy as np
        import scipy.sparse as sp
        from fginfer.learn import StructuredSVM
        rng = np.random.default_rng(0)
        tokens, labels, features = 3000, 1000, 500_000
        y = rng.integers(0, labels, tokens)
        columns = np.column_stack([rng.integers(0, features, (tokens, 9)), y * 400 + rng.integers(0, 400, tokens)])
        begin = np.arange(0, columns.size + 1, 10)
        rows = sp.csr_matrix((np.ones(columns.size), columns.ravel(), begin), shape=(tokens, features))
        offsets = np.arange(0, tokens + 1, 10)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model = StructuredSVM(max_iter=2, C=1.0).fit(rows, y, offsets=offsets)
        assert (model.predict(rows, offsets=offsets) == y).mean() > 0.9
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 400
