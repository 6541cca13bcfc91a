"""sample_weight and class_weight: the same as repeated examples, as weights of tokens; bad ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.errors import DataError, SettingsError
from fginfer.learn import Choices, Example, StructuredSVM

COUNTS = np.array([2, 0, 1, 3, 1, 2, 0, 1, 1, 3])


def problem(model, seed=0):
    """Noisy labels, so that every example has a hinge loss at the optimum."""
    rng = np.random.default_rng(seed)
    n = len(COUNTS)
    if model in ("multiclass", "multilabel"):
        X = rng.normal(size=(n, 3))
        return X, rng.integers(0, 3, n) if model == "multiclass" else rng.integers(0, 2, (n, 3))
    sizes = rng.integers(2, 5, n)
    if model == "choices":
        return [Choices(rng.normal(size=(2 * m, 3)), [2] * m) for m in sizes], [rng.integers(0, 2, m) for m in sizes]
    X = [rng.normal(size=(m, 3)) for m in sizes]
    y = [rng.integers(0, 3, m) for m in sizes]
    if model == "graph":  # paths and one edge feature each: exact
        X = [
            Example(x, edges=[(t, t + 1) for t in range(len(x) - 1)], edge_features=rng.normal(size=(len(x) - 1, 2)))
            for x in X
        ]
    return X, y


def chosen(values, counts):
    order = np.repeat(np.arange(len(counts)), counts)
    return values[order] if isinstance(values, np.ndarray) else [values[i] for i in order]


@pytest.mark.parametrize(
    ("model", "solver"),
    [
        ("chain", "bcfw"), ("chain", "gdmm"), ("chain", "dcd"), ("chain", "cutting-plane"), ("graph", "bcfw"),
        ("multiclass", "bcfw"), ("multiclass", "dcd"), ("multilabel", "bcfw"), ("choices", "bcfw"),
    ],
)  # fmt: skip
def test_a_weight_is_a_number_of_copies(model, solver):
    X, y = problem(model)
    # every class is seen, also among the copies
    svm = StructuredSVM(model, solver, tol=1e-5, max_iter=20000, random_state=0, pairwise=model != "multilabel")
    svm.fit(X, y, sample_weight=COUNTS)
    weighed, weights = svm.primal_, svm.weights_
    svm.fit(chosen(X, COUNTS), chosen(y, COUNTS))
    assert svm.primal_ == pytest.approx(weighed, rel=3e-5)
    # strong convexity: |w - w*|^2 / 2 <= primal gap, of both
    assert np.linalg.norm(svm.weights_ - weights) <= 2 * np.sqrt(2 * 1e-5 * weighed) + 1e-9
    svm.fit(X, y)
    assert svm.primal_ != pytest.approx(weighed, rel=1e-2)  # it made a difference


def test_class_weight_of_chains_weighs_the_loss_of_tokens():
    X, y = problem("chain")
    factors = np.array([3.0, 0.5, 1.0])
    settings = {"tol": 1e-5, "max_iter": 5000, "random_state": 0}
    svm = StructuredSVM(class_weight={0: 3.0, 1: 0.5}, **settings).fit(X, y)
    given = StructuredSVM(**settings).fit([Example(x, weight=factors[z]) for x, z in zip(X, y, strict=True)], y)
    np.testing.assert_array_equal(svm.weights_, given.weights_)
    counts = np.bincount(np.concatenate(y))
    balanced = StructuredSVM(class_weight="balanced", **settings).fit(X, y)
    same = StructuredSVM(class_weight=dict(enumerate(counts.sum() / (3 * counts))), **settings).fit(X, y)
    np.testing.assert_array_equal(balanced.weights_, same.weights_)


def test_class_weight_of_multiclass_weighs_examples(tmp_path):
    X, y = problem("multiclass")
    y = np.array(["a", "b", "c"])[y]
    svm = StructuredSVM("multiclass", class_weight={"a": 4.0}, random_state=0).fit(X, y, sample_weight=COUNTS)
    same = StructuredSVM("multiclass", random_state=0).fit(X, y, sample_weight=COUNTS * np.where(y == "a", 4.0, 1.0))
    np.testing.assert_array_equal(svm.weights_, same.weights_)
    svm.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(StructuredSVM.load(tmp_path / "m.npz").predict(X), svm.predict(X))


def test_scikit_learn_passes_weights_on():
    from sklearn.model_selection import cross_val_score

    X = problem("multiclass")[0]
    svm = StructuredSVM("multiclass", random_state=0)
    assert len(cross_val_score(svm, X, np.arange(10) % 2, cv=2, params={"sample_weight": np.ones(10)})) == 2


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (np.ones(9), "10 examples"), (np.ones((10, 1)), "10 examples"), (1.0, "10 examples"),
        (np.r_[1, -1, np.ones(8)], "example 1 is -1"), (np.r_[np.ones(9), np.nan], "example 9 is nan"),
        (np.r_[np.inf, np.ones(9)], "example 0 is inf"), (["x"] * 10, "numbers"), (np.zeros(10), "nothing to learn"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", ["chain", "multiclass"])
def test_bad_sample_weights(model, weight, said):
    X, y = problem(model)
    svm = StructuredSVM(model, callback=lambda _: pytest.fail("it trained"))
    with pytest.raises(DataError, match=said):
        svm.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("weight", "error", "said"),
    [
        ("even", SettingsError, "balanced"), ([1, 2], SettingsError, "a dict"), ({0: -1}, SettingsError, "of 0 is -1"),
        ({0: np.nan}, SettingsError, "nan"), ({0: "1"}, SettingsError, "not negative"), ({7: 1}, DataError, "names 7"),
        ({0: 0, 1: 0, 2: 0}, DataError, "nothing to learn"),
    ],
)  # fmt: skip
def test_bad_class_weights(weight, error, said):
    X, y = problem("chain")
    with pytest.raises(error, match=said):
        StructuredSVM(class_weight=weight, callback=lambda _: pytest.fail("it trained")).fit(X, y)


def test_weights_that_a_model_cannot_have():
    X, y = problem("multilabel")
    with pytest.raises(SettingsError, match="pairwise=False"):
        StructuredSVM("multilabel").fit(X, y, sample_weight=COUNTS)
    with pytest.raises(SettingsError, match="class_weight belongs to"):
        StructuredSVM("multilabel", class_weight="balanced").fit(X, y)
