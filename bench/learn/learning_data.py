"""Loads the learning data sets of a folder (ocr, conll2000, zh_pinyin, ud_en_ewt, multilabel) for learning.py."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fginfer.core.learn import Edges, Kind
from fginfer.learn.data.encode import encode
from fginfer.learn.data.examples import Encoded, add_intercept
from fginfer.learn.data.features import CHUNKING, WindowFeatures
from fginfer.learn.data.readers import read_conll, read_conllu, read_svmlight


@dataclass
class Task:
    train: Encoded
    test: Encoded
    classes: Any
    extra: Any = None


def subset(data: Encoded, examples: Any) -> Encoded:
    """Some examples of chains."""
    examples = np.asarray(examples)
    parts = [np.arange(data.token_begin[i], data.token_begin[i + 1]) for i in examples]
    index = np.concatenate(parts)
    begin = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
    out = Encoded(Kind.LABELS, data.edges, begin, data.rows[index], data.n_labels, data.truth[index])
    if data.choice_begin is not None:
        lists = [data.choice[data.choice_begin[t] : data.choice_begin[t + 1]] for t in index]
        set_candidates(out, lists)
    return out


def set_candidates(data: Encoded, lists: list[Any]) -> None:
    data.choice_begin = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
    data.choice = np.concatenate(lists).astype(np.int32)


def ocr(folder: Path) -> Task:
    """Fold 0 to train, the others to test; pixels and a bias."""
    file = np.load(folder / "ocr" / "ocr.npz")
    rows = add_intercept(sp.csr_matrix(file["X"].astype(float)))
    data = Encoded(Kind.LABELS, Edges.CHAIN, file["offsets"].astype(np.int64), rows, 26, file["y"].astype(np.int32))
    small, rest = np.flatnonzero(file["folds"] == 0), np.flatnonzero(file["folds"] != 0)
    return Task(subset(data, small), subset(data, rest), np.arange(26))


def conll(folder: Path) -> Task:
    sentences = [read_conll(folder / "conll2000" / f"{part}.txt.gz") for part in ("train", "test")]
    features = WindowFeatures(CHUNKING).fit([[t[:2] for t in s] for s in sentences[0]])
    labels = [np.array([t[2] for s in part for t in s]) for part in sentences]
    X, offsets = features.transform(sentences[0])
    train, classes = encode("chain", X, labels[0], offsets=offsets, intercept=False)
    X, offsets = features.transform(sentences[1])
    test, _ = encode("chain", X, None, offsets=offsets, classes=classes, intercept=False)
    return Task(train, test, classes, (sentences, np.split(labels[1], offsets[1:-1])))


def read_pinyin(path: Path) -> list[tuple[list[str], str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [(line.split("\t")[0].split(), line.rstrip("\n").split("\t")[1]) for line in file]


def pinyin(folder: Path) -> Task:
    """Features: the syllable, the ones before and after. extra: syllables, candidates of each; of the test, too."""
    train, test = (read_pinyin(folder / "zh_pinyin" / f"{part}.tsv.gz") for part in ("train", "test"))
    characters = {c: k for k, c in enumerate(sorted({c for _, text in train for c in text}))}
    syllables = {s: k for k, s in enumerate(sorted({s for row, _ in train for s in row}))}

    def encoded(data: list[tuple[list[str], str]]) -> tuple[Encoded, Any, Any]:
        begin = np.concatenate([[0], np.cumsum([len(row) for row, _ in data])]).astype(np.int64)
        ids = np.array([syllables.get(s, -1) for row, _ in data for s in row])
        n, width = len(ids), len(syllables) + 1
        before, after = np.roll(ids, 1), np.roll(ids, -1)
        before[begin[:-1]], after[begin[1:] - 1] = width - 1, width - 1
        row, column = [], []
        for k, x in enumerate((ids, before, after)):
            known = x >= 0
            row.append(np.flatnonzero(known))
            column.append(x[known] + k * width)
        entries = (np.concatenate(row), np.concatenate(column))
        rows = sp.csr_matrix((np.ones(len(entries[0])), entries), shape=(n, 3 * width))
        truth = np.array([characters.get(c, -1) for _, text in data for c in text])
        return (
            Encoded(Kind.LABELS, Edges.CHAIN, begin, rows, len(characters), np.maximum(truth, 0).astype(np.int32)),
            ids,
            truth,
        )

    a, ids, truth = encoded(train)
    seen: list[set[int]] = [set() for _ in range(len(syllables) + 1)]
    for s, c in zip(ids, truth, strict=True):
        seen[s].add(int(c))
    candidates = [np.array(sorted(x) or [0], np.int32) for x in seen]
    b, test_ids, test_truth = encoded(test)
    return Task(a, b, np.array(list(characters)), (ids, candidates, test_ids, test_truth))


def multilabel(folder: Path, name: str) -> tuple[Any, Any, Any, Any]:
    """(X, Y, X of the test, Y of the test); Y as indicator matrices."""
    where = folder / "multilabel"
    if name == "rcv1sub1":
        X, y = read_svmlight(where / "rcv1sub1.svm.gz")
        parts = (X[:5000], y[:5000], X[5000:], y[5000:])
    else:
        X, y = read_svmlight(where / f"{name}-train.svm.gz")
        parts = (X, y, *read_svmlight(where / f"{name}-test.svm.gz", n_features=X.shape[1]))
    labels = 1 + max(int(label) for rows in (parts[1], parts[3]) for row in rows for label in row)

    def unit(X: Any) -> Any:
        return sp.csr_matrix(sp.diags(1 / np.sqrt(np.maximum(X.multiply(X).sum(axis=1).A1, 1e-12))) @ X)

    def matrix(rows: list[list[str]]) -> Any:
        out = np.zeros((len(rows), labels), int)
        for r, row in enumerate(rows):
            out[r, [int(label) for label in row]] = 1
        return out

    return unit(parts[0]), matrix(parts[1]), unit(parts[2]), matrix(parts[3])


def treebank(folder: Path, part: str) -> list[tuple[list[str], list[str], Any]]:
    sentences = read_conllu(folder / "ud_en_ewt" / f"{part}.conllu.gz")
    return [([t[1] for t in s], [t[4] for t in s], np.array([int(t[6]) for t in s])) for s in sentences]
