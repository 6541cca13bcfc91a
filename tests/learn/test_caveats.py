"""The start of a run says when no gap will close and names who closes it; gdmm tells what its oracles did."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

from fginfer.learn import StructuredSVM

RNG = np.random.default_rng(0)
CHAINS = [RNG.normal(size=(4, 3)) for _ in range(6)]
LABELS = [RNG.integers(0, 3, 4) for _ in range(6)]
ROWS, SETS = RNG.normal(size=(20, 4)), (RNG.random((20, 3)) < 0.4).astype(int)
WIDE = np.hstack([SETS, np.zeros((20, 255), int)])  # too many labels for search trees to measure an objective


class Careless:
    exact = False

    def answer(self, learner, weights, example, loss):
        return learner.token_scores(weights, example, loss).argmax(axis=1)


@pytest.mark.parametrize(
    ("settings", "data", "said"),
    [
        ({"solver": "soft-bcfw"}, (CHAINS, LABELS), "gdmm, or bcfw on chains and trees, converges"),
        ({"solver": "gdmm", "solver_options": {"eta": 0.0}}, (CHAINS, LABELS), "gdmm without multipliers"),
        ({"solver": "bcfw", "model": "multilabel"}, (ROWS, WIDE), "solver='gdmm' or 'auto'"),
        ({"solver": "cutting-plane", "model": "multilabel"}, (ROWS, WIDE), "no objective and no gap"),
        ({"solver": "bcfw", "oracle": Careless()}, (CHAINS, LABELS), "does not promise best answers"),
    ],
)
def test_runs_that_cannot_converge_say_so_first(settings, data, said, caplog):
    with caplog.at_level(logging.INFO, "fginfer"), pytest.warns(UserWarning, match="gap") as caught:
        StructuredSVM(max_iter=3, **settings).fit(*data)
    assert any(said in str(w.message) for w in caught)
    texts = [record.getMessage() for record in caplog.records]
    place = next(k for k, text in enumerate(texts) if said in text)
    assert place < next(k for k, text in enumerate(texts) if text.lstrip().startswith("pass "))


@pytest.mark.parametrize("solver", ["auto", "bcfw", "gdmm", "fw", "dcd", "perceptron", "mira", "ssg"])
def test_no_warning_where_nothing_is_wrong(solver, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, "fginfer"):
        warnings.simplefilter("error")
        StructuredSVM(solver=solver, max_iter=3).fit(CHAINS, LABELS)
        StructuredSVM(model="multilabel", max_iter=3).fit(ROWS, SETS)
    assert ("has a gap to close" in caplog.text) == (solver in ("perceptron", "mira", "ssg"))


def test_the_work_of_unigram_oracles_is_shown(caplog):
    with caplog.at_level(logging.INFO, "fginfer"):
        svm = StructuredSVM(solver="gdmm", max_iter=2, tol=0.0, fit_intercept=False).fit(CHAINS, LABELS)
    labels, tokens, features = 3, 24, 3
    assert svm.trace_[-1].products == 2 * tokens * labels * features  # K x nnz, both passes
    assert (
        f"{2 * tokens} calls, {2 * tokens * labels} labels scored, {2 * tokens * labels * features} mult" in caplog.text
    )
    assert StructuredSVM(max_iter=2).fit(CHAINS, LABELS).trace_[-1].products == 0


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane", "dcd", "fw"])
def test_label_sets_that_local_search_decodes_are_measured(solver):
    """The objective is that of all label sets, tried one by one."""
    rng = np.random.default_rng(1)
    X, C = rng.normal(size=(25, 4)), 0.3
    Y = (X @ rng.normal(size=(4, 5)) + X[:, :1] * X[:, 1:2] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svm = StructuredSVM("multilabel", solver=solver, C=C, max_iter=400, tol=1e-2, fit_intercept=False).fit(X, Y)
    last = svm.trace_[-1]
    assert svm.status_ == "converged"
    assert last.gap <= 1e-2
    all_sets = (np.arange(32)[:, None] >> np.arange(5)) & 1
    w = svm.weights_
    pairs = np.triu(w[20:].reshape(5, 5), 1)
    inner = np.einsum("sa,ab,sb->s", all_sets, pairs, all_sets)
    loss = 0.0
    for x, y in zip(X, Y, strict=True):
        scores = all_sets @ (x @ w[:20].reshape(4, 5)) + inner
        true = int((all_sets == y).all(1).argmax())
        hinge = (scores - scores[true] + (all_sets != y).sum(1)).max()
        loss += hinge**2 if solver == "dcd" else hinge
    assert 0.5 * w @ w + C * loss == pytest.approx(last.primal, rel=1e-9)
