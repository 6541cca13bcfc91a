"""Models of CRFsuite, read and written; the commands on random fields."""

from __future__ import annotations

import json

import numpy as np
import pycrfsuite
import pytest
from sklearn.exceptions import NotFittedError

from fginfer.cli import main
from fginfer.errors import DataError, FormatError
from fginfer.learn import ChainCRF
from fginfer.learn.crf import read_crfsuite, write_crfsuite
from tests.learn.crf.test_estimators import sentences


@pytest.fixture(scope="module")
def crfsuite(tmp_path_factory):
    """A tagger trained by CRFsuite, its dump, and the data."""
    folder = tmp_path_factory.mktemp("crfsuite")
    X, y = sentences(5, n=40)
    X[0][0]["odd --> D: 1"] = 1.0
    trainer = pycrfsuite.Trainer(verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.select("lbfgs")
    trainer.set_params(
        {"c1": 0.3, "c2": 0.0, "feature.possible_states": 1, "feature.possible_transitions": 1, "epsilon": 1e-8,
         "delta": 1e-10, "max_iterations": 2000}
    )  # fmt: skip
    trainer.train(str(folder / "m.crfsuite"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "m.crfsuite"))
    tagger.dump(str(folder / "m.txt"))
    return tagger, folder / "m.txt", X, y


def test_a_dumped_model_predicts_as_crfsuite_does(crfsuite):
    tagger, path, X, _ = crfsuite
    crf = read_crfsuite(path)
    for x in X:
        assert list(crf.predict([x])[0]) == tagger.tag(x)
        proba = crf.predict_proba([x])[0]
        for t in range(len(x)):
            for k, label in enumerate(crf.classes_):
                assert proba[t, k] == pytest.approx(tagger.marginal(str(label), t), abs=1e-4)


def test_the_objective_is_that_of_crfsuite(crfsuite):
    _, path, X, y = crfsuite
    theirs = read_crfsuite(path)
    ours = ChainCRF(l1=0.3, fit_intercept=False, tol=1e-7).fit(X, y)
    objective = 0.3 * np.abs(theirs.weights_).sum() - theirs.log_likelihood(X, y).sum()
    assert ours.primal_ == pytest.approx(objective, rel=1e-3)
    assert ours.primal_ <= objective + 1e-4


def test_written_and_read_is_the_same(tmp_path):
    X, y = sentences(6)
    for intercept in (False, True):
        crf = ChainCRF(l1=0.1, fit_intercept=intercept).fit(X, y)
        write_crfsuite(crf, tmp_path / "out.txt")
        again = read_crfsuite(tmp_path / "out.txt")
        more = [[{**token, "__BIAS__": 1.0} for token in x] for x in X] if intercept else X
        np.testing.assert_allclose(np.concatenate(again.predict_proba(more)), np.concatenate(crf.predict_proba(X)))


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["a --> B", ": 1", "}", "LABELS = {", "x:y", " ", "\t", "\u2028z", "(1) q", "a\x85b"], ["B", "C"]),
        (["x --> A", "y", "z", "--> A"], ["B", "A --> B"]),
        (["x", ""], ["", "B"]),
    ],
)
def test_odd_names_come_back(tmp_path, names, labels):
    """One token a sequence, so that nothing but its name explains its label."""
    X = [[[name]] for name in names] * 3
    y = [[labels[k % 2]] for k in range(len(names))] * 3
    crf = ChainCRF(l1=0.1, fit_intercept=False).fit(X, y)
    assert np.count_nonzero(crf.coef_.toarray().any(0)) == len(names)
    write_crfsuite(crf, tmp_path / "odd.txt")
    again = read_crfsuite(tmp_path / "odd.txt")
    assert again.feature_names_.tolist() == sorted(names)
    assert again.classes_.tolist() == sorted(labels)
    np.testing.assert_array_equal(again.weights_, crf.weights_)


def test_a_model_of_transitions_alone(tmp_path):
    text = "LABELS = {\n  0: A\n  1: B\n}\nATTRIBUTES = {\n}\n"
    text += "TRANSITIONS = {\n  (1) A --> B: 2.5\n}\nSTATE_FEATURES = {\n}\n"
    (tmp_path / "m.txt").write_bytes(text.replace("\n", "\r\n").encode())
    crf = read_crfsuite(tmp_path / "m.txt")
    X = [[{"word": "in"}, {"word": "out"}]]
    assert crf.predict(X)[0].tolist() == ["A", "B"]
    total = 3 + np.exp(2.5)
    np.testing.assert_allclose(crf.predict_proba(X)[0][0], [(1 + np.exp(2.5)) / total, 2 / total])
    write_crfsuite(crf, tmp_path / "again.txt")
    np.testing.assert_array_equal(read_crfsuite(tmp_path / "again.txt").weights_, crf.weights_)


def test_what_a_dump_cannot_hold_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        write_crfsuite(ChainCRF(), tmp_path / "m.txt")
    X, y = sentences(6)
    crf = ChainCRF(l1=0.1).fit([[{**token, "__BIAS__": 1.0} for token in x] for x in X], y)
    with pytest.raises(DataError, match="__BIAS__"):
        write_crfsuite(crf, tmp_path / "m.txt")
    crf = ChainCRF(l1=0.1).fit([[{**token, "line\nbreak": 1.0} for token in x] for x in X], y)
    with pytest.raises(DataError, match="line break"):
        write_crfsuite(crf, tmp_path / "m.txt")
    crf = ChainCRF(l1=0.1, fit_intercept=False).fit([[["x --> A"]], [["x"]]] * 3, [["B"], ["A --> B"]] * 3)
    with pytest.raises(DataError, match="two ways"):
        write_crfsuite(crf, tmp_path / "m.txt")


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", "LABELS = {\n  x\n}\n", "LABELS = {\n 0: A\n 1: B\n}\nTRANSITIONS = {\n (1) A --> C: 1\n}\n"],
)
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(FormatError):
        read_crfsuite(tmp_path / "bad.txt")
    with pytest.raises(FormatError):
        read_crfsuite(tmp_path / "nothing.txt")


def test_the_commands(tmp_path, capsys):
    X, y = sentences(7, n=40)
    lines = [
        "".join(f"{token['word']} {label}\n" for token, label in zip(x, z, strict=True))
        for x, z in zip(X, y, strict=True)
    ]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    model = str(tmp_path / "m.npz")
    data = str(tmp_path / "train.txt")
    assert main(["train", data, "-o", model, "--model", "crf", "--l1", "0.2", "--quiet", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "converged"
    assert 0 < said["nonzeros"] < said["weights"]
    assert main(["predict", model, data, "--probabilities", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["labels"] == ["D", "N", "V"]
    assert np.allclose([sum(row) for table in said["probabilities"] for row in table], 1, atol=1e-5)
    assert main(["predict", model, data, "--probabilities"]) == 0
    first = capsys.readouterr().out.split("\n")[0].split()
    assert first[:2] == [X[0][0]["word"], "D"]
    assert 0.5 < float(first[-1]) <= 1
    assert main(["evaluate", model, data, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["accuracy"] > 0.9
    assert said["log_likelihood"] < 0
    assert main(["train", data, "-o", model, "--model", "crf", "--C", "1"]) == 3
    assert main(["train", data, "-o", model, "--l1", "1"]) == 3
    assert main(["train", data, "-o", model, "--model", "crf", "--l1", "-1"]) == 3
    assert main(["train", data, "-o", model, "--quiet", "--max-iter", "3"]) == 0
    assert main(["predict", model, data, "--probabilities"]) == 3
