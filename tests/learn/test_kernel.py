"""KernelStructuredSVM: the optimum of independent solvers; what no linear model learns; kernels that are none."""

from __future__ import annotations

import pickle

import highspy
import numpy as np
import pytest
import scipy.sparse as sp

from fginfer.core.learn import Kind
from fginfer.errors import DataError, SettingsError
from fginfer.learn import Example, KernelStructuredSVM, StructuredSVM
from fginfer.learn.data.encode import encode
from fginfer.learn.kernel import factorise

from . import problems as P


def chains(rng, n=12, labels=3, features=4):
    lengths = rng.integers(1, 5, n)
    return [rng.normal(size=(t, features)) for t in lengths], [rng.integers(0, labels, t) for t in lengths]


def squares(a, b):
    return (1 + a @ b.T) ** 2


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("pairwise", [True, False])
@pytest.mark.parametrize("loss", [None, [[0, 1, 2], [1, 0, 1], [3, 1, 0]]])
def test_the_linear_kernel_equals_the_linear_model(intercept, pairwise, loss):
    X, y = chains(np.random.default_rng(0))
    settings = {"C": 0.3, "fit_intercept": intercept, "pairwise": pairwise, "loss": loss, "max_iter": 3000, "tol": 1e-6}
    linear = StructuredSVM(**settings).fit(X, y)
    kernel = KernelStructuredSVM(kernel="linear", **settings).fit(X, y)
    assert kernel.status_ == linear.status_ == "converged"
    assert kernel.primal_ == pytest.approx(linear.primal_, rel=2e-6)
    assert kernel.dual_ <= linear.primal_ * (1 + 1e-12)
    assert kernel.tokens_.shape == (4 + intercept, 4)  # so many tokens span all
    near = 2 * np.sqrt(2 * 1e-6 * linear.primal_)  # strong convexity: |w - w*|^2 <= 2 (P - P*)
    assert np.linalg.norm(kernel.dual_coef_.T @ kernel.tokens_ - linear.coef_) <= near
    assert np.linalg.norm(kernel.dual_coef_.sum(0) * intercept - linear.intercept_) <= near
    assert kernel.pairwise_.shape == linear.pairwise_.shape
    assert np.linalg.norm(kernel.pairwise_ - linear.pairwise_) <= near


def dual_optimum(data, gram, C):
    """max sum a loss - 1/2 |sum a psi|^2 over a >= 0 that add up to at most C in each example, every answer a variable,
    the inner products of psi taken by the kernel; by HiGHS."""
    k, n = data.n_labels, len(gram)
    identity = P.Encoded(Kind.LABELS, data.edges, data.token_begin, sp.identity(n, format="csr"), k, data.truth)
    psi = np.vstack([planes for planes, _ in P.planes(identity)])  # tokens x labels, then transitions
    loss = np.concatenate([losses for _, losses in P.planes(identity)])
    owner = np.repeat(np.arange(data.n_examples), [len(losses) for _, losses in P.planes(identity)])
    tokens = psi[:, : n * k].reshape(-1, n, k)
    H = np.einsum("ank,nm,bmk->ab", tokens, gram, tokens, optimize=True) + psi[:, n * k :] @ psi[:, n * k :].T
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    for value in loss:
        h.addCol(-float(value), 0.0, C, 0, [], [])
    for i in range(data.n_examples):
        columns = np.flatnonzero(owner == i)
        h.addRow(-np.inf, C, len(columns), columns, np.ones(len(columns)))
    lower = sp.csc_matrix(np.tril(H + 1e-10 * np.eye(len(H))))
    h.passHessian(
        len(H), lower.nnz, highspy.HessianFormat.kTriangular, lower.indptr[:-1].astype(np.int32),
        lower.indices.astype(np.int32), lower.data,
    )  # fmt: skip
    h.run()
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return -h.getInfo().objective_function_value


@pytest.mark.parametrize("kernel", ["rbf", squares])
@pytest.mark.parametrize("solver", ["bcfw", "gdmm", "cutting-plane"])
def test_the_optimum_is_that_of_a_quadratic_program(kernel, solver):
    rng = np.random.default_rng(1)
    X, y, C = *chains(rng, n=6, features=2), 0.7
    model = KernelStructuredSVM(kernel=kernel, gamma=0.8, solver=solver, C=C, tol=1e-5, max_iter=5000).fit(X, y)
    tokens = np.concatenate(X)
    distances = np.sum((tokens[:, None] - tokens[None]) ** 2, 2)
    gram = 1 + (np.exp(-0.8 * distances) if kernel == "rbf" else squares(tokens, tokens))
    best = dual_optimum(encode("chain", X, y)[0], gram, C)
    assert model.gap_ <= 1e-5
    assert model.primal_ == pytest.approx(best, rel=3e-5)
    assert model.dual_ == pytest.approx(best, rel=3e-5)
    _, hinges = model.loss_augmented_decode(X, y)  # the model itself has that objective
    values = np.exp(-0.8 * distances) if kernel == "rbf" else squares(tokens, tokens)
    basis = [int(np.argmin(np.abs(tokens - t).sum(1))) for t in model.tokens_.toarray()]
    coef = model.dual_coef_
    norm = np.sum(coef * ((1 + values[np.ix_(basis, basis)]) @ coef)) + np.sum(model.pairwise_**2)
    assert 0.5 * norm + C * hinges.sum() == pytest.approx(model.primal_, rel=1e-9)


@pytest.mark.parametrize("rank", [0, 3, 7])
def test_factors_of_full_and_of_low_rank(rank):
    root = np.random.default_rng(rank).normal(size=(7, rank))
    gram = root @ root.T
    factor, order = factorise(gram)
    assert factor.shape == (7, rank)
    assert factor @ factor.T == pytest.approx(gram, abs=1e-9)
    assert sorted(order) == list(range(7))
    assert np.array_equal(np.triu(factor[order[:rank]], 1), np.zeros((rank, rank)))


def test_rbf_learns_what_is_not_linear():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (240, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    settings = {"model": "multiclass", "C": 10.0, "max_iter": 50}
    assert StructuredSVM(**settings).fit(X[:160], y[:160]).score(X[160:], y[160:]) < 0.75
    model = KernelStructuredSVM(gamma=4.0, **settings).fit(X[:160], y[:160])
    assert model.score(X[160:], y[160:]) > 0.9
    assert set(model.predict(X[160:])) == {"same", "other"}


def test_every_form_of_input_gives_the_same_model():
    X, y = chains(np.random.default_rng(4))
    model = KernelStructuredSVM(C=5.0, max_iter=20).fit(X, y)
    offsets = np.cumsum([0, *map(len, X)])
    again = KernelStructuredSVM(C=5.0, max_iter=20).fit(np.concatenate(X), np.concatenate(y), offsets=offsets)
    sparse = KernelStructuredSVM(C=5.0, max_iter=20).fit([sp.csr_matrix(x) for x in X], y)
    assert np.array_equal(again.weights_, model.weights_)
    assert np.array_equal(sparse.weights_, model.weights_)
    parts = model.predict(X)
    assert [len(p) for p in parts] == [len(x) for x in X]
    assert np.array_equal(np.concatenate(parts), again.predict(np.concatenate(X), offsets=offsets))
    wide = [sp.csr_matrix(np.hstack([x, np.zeros((len(x), 60))])) for x in X]  # mostly zeros: stays sparse
    settings = {"C": 0.5, "gamma": 0.25, "tol": 1e-6, "max_iter": 2000}
    ends = [KernelStructuredSVM(**settings).fit(x, y).primal_ for x in (X, wide)]
    assert ends[0] == pytest.approx(ends[1], rel=2e-6)


def test_graphs_and_label_sets():
    rng = np.random.default_rng(5)
    X, y = chains(rng)
    edges = [[(t, t + 1) for t in range(len(x) - 1)] for x in X]
    as_graph = [Example(x, edges=e) for x, e in zip(X, edges, strict=True)]
    chain = KernelStructuredSVM(C=0.5, tol=1e-5, max_iter=2000).fit(X, y)
    graph = KernelStructuredSVM(model="graph", C=0.5, tol=1e-5, max_iter=2000).fit(as_graph, y)
    assert graph.primal_ == pytest.approx(chain.primal_, rel=3e-5)
    assert np.array_equal(np.concatenate(graph.predict(as_graph)), np.concatenate(chain.predict(X)))
    rows, sets = rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 4))
    model = KernelStructuredSVM(model="multilabel", pairwise=False, gamma=5.0, C=100.0, max_iter=1000).fit(rows, sets)
    assert np.array_equal(model.predict(rows), sets)


def test_many_rows_are_predicted_in_parts(monkeypatch):
    X, y = chains(np.random.default_rng(4))
    model = KernelStructuredSVM(C=5.0, max_iter=20).fit(X, y)
    whole = np.concatenate(model.decision_function(X))
    monkeypatch.setattr("fginfer.learn.kernel.ROWS", 3)
    assert np.concatenate(model.decision_function(X)) == pytest.approx(whole, rel=1e-12)


def test_files_of_models_with_a_function(tmp_path):
    X, y = chains(np.random.default_rng(7))
    model, path = KernelStructuredSVM(kernel=squares, max_iter=5).fit(X, y), tmp_path / "m.npz"
    model.save(path)
    with pytest.raises(SettingsError, match="needs the function"):
        KernelStructuredSVM.load(path)
    loaded = KernelStructuredSVM.load(path, kernel=squares)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert np.array_equal(np.concatenate(other.decision_function(X)), np.concatenate(model.decision_function(X)))
    KernelStructuredSVM(max_iter=5).fit(X, y).save(path)
    with pytest.raises(SettingsError, match="of its own"):
        KernelStructuredSVM.load(path, kernel=squares)


@pytest.mark.parametrize(
    "bad", [{"model": "parse"}, {"kernel": "cubic"}, {"kernel": None}, {"gamma": -1.0}, {"gamma": 0}]
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(SettingsError):
        KernelStructuredSVM(**bad).fit(*chains(np.random.default_rng(5)))


NO_KERNELS = {
    "shape": lambda a, b: np.zeros(3),
    "finite": lambda a, b: np.full((len(a), len(b)), np.nan),
    "numbers": lambda a, b: [["x"] * len(b)] * len(a),
    "symmetric": lambda a, b: a @ np.triu(np.ones((4, 4))) @ b.T,
    "semidefinite": lambda a, b: -(a @ b.T),
    "positive": lambda a, b: np.subtract.outer(a[:, 0], b[:, 0]) ** 2,  # a distance
}


@pytest.mark.parametrize("message", NO_KERNELS)
def test_what_is_no_kernel_is_refused_before_training(message):
    X, y = chains(np.random.default_rng(6))
    model = KernelStructuredSVM(
        kernel=NO_KERNELS[message], fit_intercept=False, callback=lambda p: pytest.fail("training started")
    )
    with pytest.raises(DataError, match=message):
        model.fit(X, y)


def test_too_many_tokens_are_refused_before_the_memory_is_full(monkeypatch):
    monkeypatch.setattr("fginfer.learn.kernel.os.sysconf", lambda name: 100)
    with pytest.raises(DataError, match="memory"):
        KernelStructuredSVM().fit(*chains(np.random.default_rng(6)))


def test_kernel_values_that_are_all_zero():
    X, y = [np.zeros((3, 2))] * 2, [[0, 1, 0], [0, 1, 0]]
    model = KernelStructuredSVM(kernel="linear", fit_intercept=False, C=10.0).fit(X, y)
    assert model.dual_coef_.shape == (0, 2)
    assert model.score(X, y) >= 2 / 3  # from the transitions alone
