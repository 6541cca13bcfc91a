"""What people have in pandas: tables and columns where arrays, lists and dicts may stand."""

import numpy as np
import pandas as pd
import pytest

import fginfer
from fginfer import FactorGraph, ModelError
from fginfer.errors import DataError
from fginfer.extreme import ExtremeClassifier
from fginfer.learn import ChainCRF, StructuredSVM

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(60, 4)), columns=list("abcd"), index=[f"row {i}" for i in range(60)])
NAMES = pd.Series(np.where(TABLE.a > 0, "yes", "no"), index=TABLE.index)
SETS = pd.Series([["x", "y"] if a > 0 else ["x"] for a in TABLE.a], index=TABLE.index)


def graph():
    edges = pd.DataFrame({"from": [0, 1], "to": [1, 2]})
    g = FactorGraph.from_arrays(pd.Series([4, 4, 4]), TABLE[:3], edges, tables=[pd.DataFrame(np.eye(4))])
    g.add_factor(pd.Series([0, 2]), pd.DataFrame(-np.eye(4)))
    g.set_unary(1, TABLE.loc["row 5"])
    return g


def test_models_take_tables_and_columns_as_arrays():
    plain = FactorGraph.from_arrays([4] * 3, TABLE.to_numpy()[:3], [[0, 1], [1, 2]], tables=[np.eye(4)])
    plain.add_factor([0, 2], -np.eye(4))
    plain.set_unary(1, TABLE.to_numpy()[5])
    x = pd.Series([3, 0, 1], index=list("pqr"))
    assert graph().score(x) == plain.score([3, 0, 1])
    assert fginfer.solve(graph()).score == fginfer.solve(plain).score


def test_evidence_is_a_series_whose_index_names_the_variables(tmp_path):
    known = pd.Series({2: 1, 0: 3})
    assert fginfer.solve(graph(), evidence=known).labels[[0, 2]].tolist() == [3, 1]
    assert graph().condition(known).evidence == {2: 1, 0: 3}
    fginfer.write_evidence(known, tmp_path / "a.evid")
    assert fginfer.read_evidence(tmp_path / "a.evid", graph()) == {2: 1, 0: 3}


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (pd.Series([1, 2], index=[0, 0]), "variable 0 two labels, 1 and 2"),
        (pd.Series({0: 1.0}), r"numbers or names, not 0: 1\.0"),
        (pd.Series({"a": 1}), "no variable 'a': the variables of this graph have no names"),
        (pd.DataFrame({"variable": [0], "label": [1]}), "must be a dict of variables and labels, not DataFrame"),
    ],
)
def test_evidence_that_is_none_says_why(evidence, message, tmp_path):
    with pytest.raises(ModelError, match=message):
        graph().condition(evidence)
    with pytest.raises(ModelError, match=message):
        fginfer.write_evidence(evidence, tmp_path / "a.evid")


@pytest.mark.parametrize("estimator", [StructuredSVM(model="chain", max_iter=5), ChainCRF(max_iter=5)])
def test_columns_of_sequences_are_lists_of_them(estimator):
    X = [TABLE[i : i + 6] for i in range(0, 60, 6)]
    y = [NAMES[i : i + 6] for i in range(0, 60, 6)]
    places = range(40, 50)  # not 0, 1, 2, ...: the index of a column is not looked at
    listed = estimator.fit(X, y).predict(X)
    column = pd.Series([x.to_numpy() for x in X], index=places)
    answers = estimator.fit(column, pd.Series([list(labels) for labels in y], index=places)).predict(column)
    assert [a.tolist() for a in answers] == [a.tolist() for a in listed]


def test_label_sets_in_a_column_or_a_table():
    ones = pd.DataFrame({"x": 1, "y": (TABLE.a > 0).astype(int)})
    svm = StructuredSVM(model="multilabel", max_iter=5)
    by_list = svm.fit(TABLE, SETS.to_list()).predict(TABLE)
    assert [a.tolist() for a in svm.fit(TABLE, SETS).predict(TABLE)] == [a.tolist() for a in by_list]
    assert svm.fit(TABLE, ones).predict(TABLE).tolist() == svm.fit(TABLE, ones.to_numpy()).predict(TABLE).tolist()
    extreme = ExtremeClassifier()
    lists = extreme.fit(TABLE, SETS.to_list()).predict(TABLE)
    assert extreme.fit(TABLE, SETS).predict(TABLE) == lists
    assert extreme.score(TABLE, SETS) == extreme.score(TABLE, SETS.to_list())
    table = extreme.fit(TABLE, ones.to_numpy()).predict(TABLE)
    assert (extreme.fit(TABLE, ones).predict(TABLE) == table).all()
    assert extreme.score(TABLE, ones) == extreme.score(TABLE, ones.to_numpy())


def test_texts_in_a_table_are_told_what_to_become():
    words = pd.DataFrame({"word": ["the", "dog"], "length": [3, 3]})
    with pytest.raises(DataError, match=r"one a token: table.to_dict\('records'\)"):
        ChainCRF().fit([words], [["D", "N"]])
    crf = ChainCRF(l1=0.01, fit_intercept=False).fit([words.to_dict("records")], [["D", "N"]])
    assert crf.predict([words.to_dict("records")])[0].tolist() == ["D", "N"]
