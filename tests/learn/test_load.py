"""fginfer.load: every model that a command or an estimator saves predicts as it did, and as the command does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fginfer
from fginfer import FactorGraph, FormatError, SettingsError, solve, write
from fginfer.cli import main
from fginfer.errors import DataError, MissingFileError
from fginfer.extreme import ExtremeClassifier
from fginfer.learn import (
    ChainCRF,
    EmbeddingClassifier,
    GraphCRF,
    HierarchicalCRF,
    KernelStructuredSVM,
    SkipGram,
    StructuredSVM,
    read_conll,
    read_conllu,
    read_svmlight,
)  # fmt: skip

CHUNKS = "the DT B\ndog NN I\nbarks VB O\n\na DT B\nbig JJ I\ncat NN I\nsleeps VB O\n\nrain NN B\nfalls VB O\n"
TREES = "".join(
    "".join(f"{k}\t{w}\t_\t{t}\t{t}\t_\t{h}\tdep\t_\t_\n" for k, (w, t, h) in enumerate(tokens, 1)) + "\n"
    for tokens in (
        [("the", "D", 2), ("dog", "N", 3), ("barks", "V", 0)],
        [("a", "D", 2), ("cat", "N", 3), ("sees", "V", 0), ("the", "D", 5), ("dog", "N", 3)],
    )
)
SETS = "1,2 1:1 2:1\n2 2:1\n3 3:1\n1 1:1\n3,1 1:1 3:1\n"
CLASSES = "red 1:1\nblue 2:1\nred 1:.9 3:.1\nblue 2:.8\n"


def trained(folder: Path, capsys: Any, text: str, name: str, *options: str) -> tuple[Path, Path, list[Any]]:
    """(model, data, answers of `fginfer predict`) of a file with this text."""
    data, model = folder / name, folder / f"{name}.model"
    data.write_text(text)
    assert main(["train", str(data), "--output", str(model), "--quiet", *options]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(data), "--json"]) == 0
    return model, data, json.loads(capsys.readouterr().out)["answers"]


@pytest.mark.parametrize("options", [(), ("--model", "crf")], ids=["svm", "crf"])
def test_a_tagger_takes_sentences(tmp_path: Path, capsys: Any, options: tuple[str, ...]) -> None:
    path, data, wanted = trained(tmp_path, capsys, CHUNKS, "chunks.txt", *options)
    sentences, model = read_conll(data), fginfer.load(path)
    for given in (
        sentences,  # all columns of a line
        [[token[:2] for token in sentence] for sentence in sentences],  # those of the features
        [[tuple(token) for token in sentence] for sentence in sentences],
        np.array([[token[:2] for token in sentences[0]]]).tolist() + sentences[1:],
    ):
        assert [labels.tolist() for labels in model.predict(given)] == wanted
    assert [len(labels) for labels in model.predict([[], sentences[0], []])] == [0, 3, 0]
    assert model.predict([]) == []
    assert set(model.classes_) == {"B", "I", "O"}


def test_a_tagger_of_one_column_takes_words(tmp_path: Path, capsys: Any) -> None:
    path, data, wanted = trained(tmp_path, capsys, TREES, "trees.conllu")
    model = fginfer.load(path)
    words = [[token[1] for token in sentence] for sentence in read_conllu(data)]
    assert [labels.tolist() for labels in model.predict(words)] == wanted
    assert [labels.tolist() for labels in model.predict(read_conllu(data))] == wanted


def test_a_parser_takes_words_with_tags(tmp_path: Path, capsys: Any) -> None:
    path, data, wanted = trained(tmp_path, capsys, TREES, "trees.conllu", "--task", "parse")
    model, sentences = fginfer.load(path), read_conllu(data)
    pairs = [[(token[1], token[4]) for token in sentence] for sentence in sentences]
    for given in (pairs, sentences):
        assert [list(map(str, heads)) for heads in model.predict(given)] == wanted
    assert [heads.tolist() for heads in model.predict([[]])] == [[]]


@pytest.mark.parametrize("text", [SETS, CLASSES], ids=["sets", "classes"])
def test_a_classifier_takes_rows(tmp_path: Path, capsys: Any, text: str) -> None:
    path, data, wanted = trained(tmp_path, capsys, text, "rows.svm")
    X, _ = read_svmlight(data)
    for rows in (X, X.toarray()):
        answers = fginfer.load(path).predict(rows)
        assert [[str(a)] if np.ndim(a) == 0 else list(map(str, a)) for a in answers] == wanted


def test_a_model_of_very_many_labels_takes_rows(tmp_path: Path, capsys: Any) -> None:
    data, path = tmp_path / "rows.svm", tmp_path / "rows.fgx"
    data.write_text(SETS)
    assert main(["train", str(data), "--output", str(path), "--quiet", "--model", "extreme"]) == 0
    model = fginfer.load(path)
    assert isinstance(model, ExtremeClassifier)
    X = sp.csr_matrix(read_svmlight(data)[0])
    assert list(map(list, model.predict(X))) == list(map(list, ExtremeClassifier.load(path).predict(X)))


CHAINS = [np.eye(3), np.eye(3)[:2], np.eye(3)[::-1]], [[0, 1, 2], [0, 1], [2, 1, 0]]
GRAPHS = [(np.eye(3), np.array([[0, 1], [1, 2]]))] * 2, [[0, 1, 1]] * 2
DENSE = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32), [0, 1, 2, 3] * 5
ESTIMATORS: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "svm": (lambda: StructuredSVM(max_iter=5), *CHAINS),
    "kernel": (lambda: KernelStructuredSVM(kernel="rbf", max_iter=3), *CHAINS),
    "chain": (lambda: ChainCRF(max_iter=5), *CHAINS),
    "graph": (lambda: GraphCRF(max_iter=5), *GRAPHS),
    "hierarchy": (lambda: HierarchicalCRF({"cat": "animal", "dog": "animal"}, max_iter=5), np.eye(2), ["cat", "dog"]),
    "embedding": (lambda: EmbeddingClassifier(max_iter=2), *DENSE),
    "extreme": (lambda: ExtremeClassifier(lam=0.01), *DENSE),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_come_back(name: str, tmp_path: Path) -> None:
    make, X, y = ESTIMATORS[name]
    model = make().fit(X, y)
    model.save(tmp_path / "m")
    again = fginfer.load(tmp_path / "m")
    assert type(again) is type(model)
    for a, b in zip(again.predict(X), model.predict(X), strict=True):
        assert np.array_equal(a, b)


def test_word_vectors_come_back(tmp_path: Path) -> None:
    model = SkipGram(size=4, min_count=1, max_iter=1).fit([["a", "b", "a", "c"]] * 5)
    model.save(tmp_path / "vectors.txt")
    assert fginfer.load(tmp_path / "vectors.txt").most_similar("a", 1) == model.most_similar("a", 1)


def test_kernels_that_are_functions_must_be_given(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    KernelStructuredSVM(kernel=lambda a, b: a @ b.T, max_iter=2).fit(*CHAINS).save(path)
    with pytest.raises(SettingsError, match=r"load\(path, kernel\)"):
        fginfer.load(path)


def test_what_is_no_model(tmp_path: Path) -> None:
    graph, path = FactorGraph([2, 2]), tmp_path / "file.npz"
    with pytest.raises(MissingFileError):
        fginfer.load(path)
    write(graph, path)
    with pytest.raises(FormatError, match=r"it is a factor graph, for fginfer\.read"):
        fginfer.load(path)
    solve(graph, "icm").save(path)
    with pytest.raises(FormatError, match=r"it is a saved result, for Result\.load"):
        fginfer.load(path)
    path.unlink()
    StructuredSVM(max_iter=2, tol=1e-12, checkpoint=path).fit(*CHAINS)
    with pytest.raises(FormatError, match="a checkpoint of a training"):
        fginfer.load(path)
    for text in (b"", b"text", b"PK\3\4", b"12 x\n"):
        path.write_bytes(text)
        with pytest.raises(FormatError):
            fginfer.load(path)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("the dog barks", "sentences must be a list of lists of tokens"),
        (["the dog barks"], "sentence 0 must be a list of tokens, not str"),
        (7, "sentences must be a list"),
        ([["the"]], "sentence 0, token 0: the model learned from 2 columns"),
        ([[["a", "DT"], ["b"]]], "token 1 has 1 columns, not the 2 of the features or all 3"),
        ([[["a", 3]]], "a column is not text"),
        ([[{"word": "a"}]], "must be text or a list of columns, not dict"),
        ([[3]], "must be text or a list of columns, not int"),
    ],
)
def test_what_are_no_sentences(given: Any, says: str, tmp_path: Path, capsys: Any) -> None:
    model = fginfer.load(trained(tmp_path, capsys, CHUNKS, "chunks.txt")[0])
    with pytest.raises(DataError, match=says):
        model.predict(given)
