"""Tokens with named features in StructuredSVM: dicts, strings, hashing, unseen names, names in model files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction import DictVectorizer

from fginfer.errors import DataError, SettingsError
from fginfer.learn import Choices, Example, StructuredSVM
from fginfer.learn.files.describe import describe

SENTENCES = [
    [{"word": "the", "bias": 1}, {"word": "dog", "len": 3.0}, {"word": "barks"}],
    [{"word": "a"}, {"word": "cat", "len": 3.0}, {"word": "sleeps", "end": True}],
    [{"word": "the"}, {"word": "cat"}, {"word": "barks", "end": True}],
]
TAGS = [["D", "N", "V"]] * 3


def test_dicts_are_as_a_dict_vectorizer_has_them():
    model = StructuredSVM(C=1.0).fit(SENTENCES, TAGS)
    flat = [
        {(k if not isinstance(v, str) else f"{k}:{v}"): (1.0 if isinstance(v, str) else float(v)) for k, v in t.items()}
        for s in SENTENCES
        for t in s
    ]
    table = DictVectorizer()
    rows = table.fit_transform(flat)
    same = StructuredSVM(C=1.0).fit(rows, np.concatenate(TAGS), offsets=[0, 3, 6, 9])
    assert list(model.feature_names_) == list(table.get_feature_names_out())
    np.testing.assert_array_equal(model.weights_, same.weights_)
    assert [list(s) for s in model.predict(SENTENCES)] == TAGS
    assert model.score(SENTENCES, TAGS) == 1.0
    assert [s.shape for s in model.decision_function(SENTENCES)] == [(3, 3)] * 3
    assert "word:the" in [name for name, _ in model.top_features(3)["D"]]
    assert clone(model).fit(SENTENCES, TAGS).feature_names_ is not None


def test_strings_and_lists_of_strings():
    words = [[token["word"] for token in s] for s in SENTENCES]
    by_word = StructuredSVM().fit(words, TAGS)
    by_list = StructuredSVM().fit([[[w] for w in s] for s in words], TAGS)
    assert list(by_word.feature_names_) == sorted({w for s in words for w in s})
    np.testing.assert_array_equal(by_word.weights_, by_list.weights_)
    assert [list(s) for s in by_word.predict(words)] == TAGS
    flat = StructuredSVM(model="multiclass").fit([w for s in words for w in s], np.concatenate(TAGS))
    assert list(flat.predict(["the", "dog"])) == ["D", "N"]
    sets = StructuredSVM(model="multilabel").fit([{"a": 1}, {"b": 1}, {"a": 1, "b": 1}], [["x"], ["y"], ["x", "y"]])
    assert [list(s) for s in sets.predict([{"a": 1}, {"b": 1}])] == [["x"], ["y"]]


def test_graphs_and_choices():
    graphs = [(s, [(0, 1), (1, 2)]) for s in SENTENCES]
    a = StructuredSVM(model="graph").fit(graphs, TAGS)
    b = StructuredSVM(model="graph").fit([Example(s, edges=[(0, 1), (1, 2)]) for s in SENTENCES], TAGS)
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert [list(s) for s in a.predict(graphs)] == TAGS
    X = [Choices([{"good": 1}, {"bad": 1}], [2]), Choices([{"bad": 1}, {"good": 1}], [2])]
    model = StructuredSVM(model="choices").fit(X, [[0], [1]])
    assert [list(c) for c in model.predict(X)] == [[0], [1]]
    assert model.top_features(2)["choice"][0][0] in ("good", "bad")


def test_hashed_names(tmp_path):
    model = StructuredSVM(hash_features=64).fit(SENTENCES, TAGS)
    assert (model.n_features_in_, model.feature_names_) == (64, None)
    assert [list(s) for s in model.predict(SENTENCES)] == TAGS
    model.save(tmp_path / "m")
    again = StructuredSVM.load(tmp_path / "m")
    new = [[{"never": 1}, {"word": "dog"}], [{"word": "the"}]]
    assert [list(s) for s in again.predict(new)] == [list(s) for s in model.predict(new)]
    np.testing.assert_array_equal(again.decision_function(new)[0], model.decision_function(new)[0])


@pytest.mark.parametrize("way", ["save", "pickle"])
def test_names_are_kept(way, tmp_path):
    model = StructuredSVM(unseen="error").fit(SENTENCES, TAGS)
    model.save(tmp_path / "m")
    again = StructuredSVM.load(tmp_path / "m") if way == "save" else pickle.loads(pickle.dumps(model))
    assert list(again.feature_names_) == list(model.feature_names_)
    assert [list(s) for s in again.predict(SENTENCES)] == TAGS
    assert again.top_features(2) == model.top_features(2)
    with pytest.raises(DataError, match="never seen"):
        again.predict([[{"word": "unicorn"}]])
    assert describe(tmp_path / "m")["feature_names"] is True


def test_unseen_names():
    new = [[{"word": "the"}, {"word": "unicorn", "horn": 1.0}]]
    model = StructuredSVM().fit(SENTENCES, TAGS)
    assert len(model.predict(new)[0]) == 2
    with pytest.warns(UserWarning, match="2 features were never seen in training: 'horn', 'word:unicorn'"):
        model.set_params(unseen="warn").predict(new)
    with pytest.raises(DataError, match="never seen"):
        model.set_params(unseen="error").predict(new)


def test_what_is_refused():
    model = StructuredSVM()
    for settings in ({"unseen": "drop"}, {"hash_features": 0}, {"hash_features": 2.5}):
        with pytest.raises(SettingsError):
            StructuredSVM(**settings).fit(SENTENCES, TAGS)
    with pytest.raises(DataError, match="example 1"):
        model.fit([SENTENCES[0], [[1.0, 2.0]]], TAGS[:2])
    with pytest.raises(DataError, match="token 1"):
        model.fit([[{"a": 1}, 7]], [["x", "y"]])
    with pytest.raises(DataError, match="not finite"):
        model.fit([[{"a": float("nan")}, {"b": 1}]], [["x", "y"]])
    with pytest.raises(DataError, match="no token has a feature"):
        model.fit([[{}, {}]], [["x", "y"]])
    table = StructuredSVM().fit([np.eye(3)], [["x", "y", "x"]])
    with pytest.raises(DataError, match="tables of features"):
        table.predict(SENTENCES)
