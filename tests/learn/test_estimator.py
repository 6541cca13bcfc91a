"""StructuredSVM as a scikit-learn estimator: its checks, copies, files, resumed runs, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from fginfer.errors import DataError, FginferError, FormatError, SettingsError
from fginfer.learn import Example, StructuredSVM

# Checks of scikit-learn that StructuredSVM does not take, with the reason.
EXCLUDED: dict[str, str] = {}


def words(n=30, seed=0, labels=("noun", "verb", "det")):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 6), 4)) for _ in range(n)]
    W = np.random.default_rng(99).normal(size=(4, len(labels)))
    return X, [np.array(labels)[np.argmax(x @ W, axis=1)] for x in X]


def test_scikit_learn_checks():
    check_estimator(StructuredSVM(model="multiclass", max_iter=200), expected_failed_checks=EXCLUDED)


def test_chain_learns_and_predicts_in_the_form_it_was_given():
    X, y = words()
    model = StructuredSVM(C=1.0, max_iter=300).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.gap_ <= 1e-3
    assert model.dual_ <= model.primal_
    predicted = model.predict(X)
    assert [len(p) for p in predicted] == [len(x) for x in X]
    assert set(np.concatenate(predicted)) <= {"noun", "verb", "det"}
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    flat = StructuredSVM(C=1.0, max_iter=300).fit(np.vstack(X), np.concatenate(y), offsets=offsets)
    assert np.array_equal(flat.weights_, model.weights_)
    assert np.array_equal(flat.predict(np.vstack(X), offsets=offsets), np.concatenate(predicted))
    sparse = StructuredSVM(C=1.0, max_iter=300).fit([sp.csr_matrix(x) for x in X], y)
    assert np.array_equal(sparse.weights_, model.weights_)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.pairwise_.shape == (1, 3, 3)


def test_multilabel_takes_matrices_and_lists():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    matrix = (X @ rng.normal(size=(5, 4)) > 0.5).astype(int)
    model = StructuredSVM(model="multilabel", pairwise=False, C=10.0).fit(X, matrix)
    assert model.predict(X).shape == matrix.shape
    assert np.mean(model.predict(X) == matrix) > 0.97
    names = np.array(["a", "b", "c", "d"])
    listed = StructuredSVM(model="multilabel", pairwise=False, C=10.0).fit(X, [list(names[row > 0]) for row in matrix])
    assert np.array_equal(listed.weights_, model.weights_)
    assert set(listed.predict(X)[0]) == set(names[model.predict(X)[0] > 0])
    assert listed.score(X, [list(names[row > 0]) for row in matrix]) == model.score(X, matrix)


def test_graphs_with_edge_types_and_candidates():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(20):
        edges = [(1, 0), (1, 2), (2, 3)]
        X.append(Example(rng.normal(size=(4, 3)), edges=edges, edge_types=[0, 1, 0]))
        y.append(rng.integers(0, 3, 4))
    model = StructuredSVM(model="graph", C=1.0).fit(X, y)
    assert model.pairwise_.shape == (2, 3, 3)
    restricted = [
        Example(e.features, e.edges, e.edge_types, candidates=[[int(t)] for t in z]) for e, z in zip(X, y, strict=True)
    ]
    assert model.score(restricted, y) == 1.0
    with pytest.raises(DataError, match="beyond the 2"):
        model.predict([Example(np.zeros((2, 3)), edges=[(0, 1)], edge_types=[5])])


def test_user_weighted_losses_change_the_objective():
    X, y = words()
    costs = np.array([[0, 1, 5], [1, 0, 5], [1, 1, 0]])
    model = StructuredSVM(C=0.1, loss=costs, tol=1e-5).fit(X, y)
    answers, hinges = model.loss_augmented_decode(X, y)
    assert len(answers) == len(X)
    primal = 0.5 * model.weights_ @ model.weights_ + 0.1 * hinges.sum()
    assert primal == pytest.approx(model.primal_)
    with pytest.raises(DataError, match="diagonal"):
        StructuredSVM(loss=np.ones((3, 3))).fit(X, y)


def test_copies_files_and_cross_validation(tmp_path):
    X, y = words()
    model = StructuredSVM(C=0.5, solver="bcfw", random_state=3).fit(X, y)
    again = clone(model).fit(X, y)
    assert np.array_equal(again.weights_, model.weights_)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).weights_, model.weights_)
    model.save(tmp_path / "m.npz")
    loaded = StructuredSVM.load(tmp_path / "m.npz")
    assert loaded.get_params()["C"] == 0.5
    assert all(np.array_equal(a, b) for a, b in zip(loaded.predict(X), model.predict(X), strict=True))
    assert loaded.gap_ == model.gap_
    scores = [cross_val_score(StructuredSVM(C=1.0, max_iter=20), X, y, cv=3, n_jobs=jobs) for jobs in (1, 2)]
    assert np.array_equal(*scores)


def test_model_files_never_run_code(tmp_path):
    path = tmp_path / "bad.npz"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FormatError):
        StructuredSVM.load(path)
    np.savez(path, header=np.array([{"x": 1}], object))
    with pytest.raises(FormatError):
        StructuredSVM.load(path)
    with pytest.raises(FormatError):
        StructuredSVM.load(tmp_path / "absent.npz")


@pytest.mark.parametrize("solver", ["bcfw", "dcd", "perceptron", "mira", "ssg", "fw", "cutting-plane"])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path, solver):
    X, y = words()
    whole = StructuredSVM(solver=solver, C=0.2, tol=0.0, max_iter=8).fit(X, y)
    path = tmp_path / "check.npz"
    StructuredSVM(solver=solver, C=0.2, tol=0.0, max_iter=3, checkpoint=path).fit(X, y)
    resumed = StructuredSVM(solver=solver, C=0.2, tol=0.0, max_iter=8, checkpoint=path).fit(X, y)
    assert np.array_equal(resumed.weights_, whole.weights_)
    assert resumed.n_iter_ == whole.n_iter_ == 8
    warm = StructuredSVM(solver=solver, C=0.2, tol=0.0, max_iter=4, warm_start=True).fit(X, y).fit(X, y)
    assert np.array_equal(warm.weights_, whole.weights_)
    with pytest.raises(SettingsError, match="other data or settings"):
        StructuredSVM(solver=solver, C=0.3, checkpoint=path).fit(X, y)


def test_a_killed_run_leaves_a_good_checkpoint(tmp_path):
    X, y = words()
    path = tmp_path / "check.npz"

    def stop(point):
        if point.passes == 4:
            raise KeyboardInterrupt

    model = StructuredSVM(C=0.2, tol=0.0, max_iter=8, checkpoint=path, checkpoint_interval=0.0, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    resumed = StructuredSVM(C=0.2, tol=0.0, max_iter=8, checkpoint=path).fit(X, y)
    assert np.array_equal(resumed.weights_, StructuredSVM(C=0.2, tol=0.0, max_iter=8).fit(X, y).weights_)


def test_limits_callbacks_and_trace():
    X, y = words()
    seen = []
    model = StructuredSVM(C=5.0, tol=0.0, max_iter=7, eval_every=2, callback=seen.append).fit(X, y)
    assert [p.passes for p in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [p.primal is not None for p in seen] == [False, True, False, True, False, True, True]
    assert model.status_ == "iteration_limit"
    assert seen[-1].oracle_calls == 7 * len(X)
    assert StructuredSVM(callback=lambda p: p.passes == 2).fit(X, y).status_ == "stopped"
    assert StructuredSVM(C=50.0, solver="ssg", max_iter=10**9, time_limit=0.05).fit(X, y).status_ == "time_limit"


BAD = {
    "NaN": (lambda X, y: ([np.full((2, 4), np.nan), *X[1:]], [y[0][:0].tolist() + ["noun"] * 2, *y[1:]]), "NaN"),
    "ragged": (lambda X, y: ([[[1, 2, 3, 4], [1, 2]], *X[1:]], y), "rectangular"),
    "empty": (lambda X, y: ([np.zeros((0, 4)), *X[1:]], [np.array([]), *y[1:]]), "empty"),
    "length": (lambda X, y: (X, [[*y[0], "noun"], *y[1:]]), "tokens"),
    "count": (lambda X, y: (X, y[:-1]), "examples"),
    "width": (lambda X, y: ([np.zeros((len(X[0]), 5)), *X[1:]], y), "features"),
    "one_class": (lambda X, y: (X, [["noun"] * len(z) for z in y]), "one class"),
    "nothing": (lambda X, y: ([], []), "empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_training_data_is_refused_before_training(case):
    X, y = words()
    damage, message = BAD[case]
    X, y = damage(X, y)
    with pytest.raises(FginferError, match=message):
        StructuredSVM(callback=lambda p: pytest.fail("training started")).fit(X, y)


def test_bad_input_to_a_trained_model():
    X, y = words()
    model = StructuredSVM(max_iter=3).fit(X, y)
    with pytest.raises(DataError, match="trained with 4"):
        model.predict([np.zeros((2, 3))])
    with pytest.raises(DataError, match="not seen in training"):
        model.score(X, [["pronoun"] * len(z) for z in y])
    with pytest.raises(DataError, match="not seen in training"):
        model.predict([Example(np.zeros((1, 4)), candidates=[["pronoun"]])])


@pytest.mark.parametrize(
    "settings",
    [{"C": 0}, {"C": -1}, {"tol": -1}, {"max_iter": 0}, {"model": "lattice"}, {"solver": "newton"}, {"time_limit": 0},
     {"solver_options": {"x": 1}}, {"batch_size": 0}],
)  # fmt: skip
def test_bad_settings_are_refused(settings):
    X, y = words(3)
    with pytest.raises(SettingsError):
        StructuredSVM(**settings).fit(X, y)
