"""top_features and top_transitions: the largest weights, with names."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.errors import DataError, SettingsError
from fginfer.learn import ChainCRF, Choices, Example, StructuredSVM
from fginfer.learn.crf import HierarchicalCRF

LABELS = np.array(["D", "N", "V"])


def chains(seed=0, n=20):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 6), 4)) for _ in range(n)]
    return X, [LABELS[np.argmax(x[:, :3], axis=1)] for x in X]


@pytest.mark.parametrize("estimator", [StructuredSVM(), ChainCRF(l1=0.1)])
def test_the_largest_weights_come_first(estimator):
    X, y = chains()
    model = estimator.fit(X, y)
    coef = model.coef_ if isinstance(estimator, StructuredSVM) else model.coef_.toarray()
    top = model.top_features(2)
    assert list(top) == ["D", "N", "V"]
    for k, label in enumerate(LABELS):
        places = np.argsort(-np.abs(coef[k]), kind="stable")[:2]
        assert top[label] == [(j, coef[k, j]) for j in places if coef[k, j]]
        assert top[label][0][0] == k  # what the labels were made of
    named = model.top_features(1, feature_names=["size", "shape", "sound", "noise"])
    assert [named[label][0][0] for label in LABELS] == ["size", "shape", "sound"]
    table = model.pairwise_[0]
    pairs = model.top_transitions(4)
    best = np.sort(np.abs(table[table != 0]))[::-1][:4]
    assert [abs(x) for *_, x in pairs] == best.tolist()
    for a, b, x in pairs:
        assert x == table[LABELS.tolist().index(a), LABELS.tolist().index(b)]
    assert len(model.top_transitions(100)) == np.count_nonzero(table)


def test_edge_types_label_sets_and_choices():
    X, y = chains()
    typed = [Example(x, edge_types=np.arange(len(x) - 1) % 2) for x in X]
    svm = StructuredSVM().fit(typed, y)
    a, b, x = svm.top_transitions(1, edge_feature=1)[0]
    assert x == svm.pairwise_[1][LABELS.tolist().index(a), LABELS.tolist().index(b)]
    with pytest.raises(SettingsError, match="from 0 to 1"):
        svm.top_transitions(1, edge_feature=2)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 60)
    sets = np.column_stack([first, first, rng.integers(0, 2, 60)])  # labels 0 and 1 go together
    together = StructuredSVM("multilabel").fit(rng.normal(size=(60, 2)), sets).top_transitions()
    assert together[0][:2] == (0, 1)
    assert together[0][2] > 0
    assert all(a < b for a, b, _ in together)
    rows = [rng.normal(size=(4, 3)) for _ in range(20)]
    best = [r[:, 1].reshape(2, 2).argmax(1) for r in rows]
    choices = StructuredSVM("choices").fit([Choices(r, [2, 2]) for r in rows], best)
    assert choices.top_features(1)["choice"][0][0] == 1
    with pytest.raises(SettingsError, match="no weights on pairs"):
        choices.top_transitions()


def test_nodes_of_a_taxonomy_have_their_own_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = LABELS[np.argmax(X, axis=1)]
    model = HierarchicalCRF({"D": "top", "N": "inner", "V": "inner", "inner": "top"}).fit(X, y)
    top = model.top_features(1)
    assert list(top) == list(model.nodes_)
    assert top["D"][0] == (int(np.abs(model.coef_.toarray()[list(top).index("D")]).argmax()), top["D"][0][1])


def test_bad_questions():
    X, y = chains()
    svm = StructuredSVM(pairwise=False).fit(X, y)
    for n in (0, -1, 1.5, True, "3"):
        with pytest.raises(SettingsError, match="whole number"):
            svm.top_features(n)
    with pytest.raises(DataError, match="4 features and 2 names"):
        svm.top_features(feature_names=["a", "b"])
    with pytest.raises(SettingsError, match="no weights on pairs"):
        svm.top_transitions()
