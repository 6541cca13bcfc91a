"""Data of extreme.py: files of the multilabel, debian and zh_pinyin folders, and a synthetic set for scale."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# name: file (without -train/-test), features
SETS = {
    "bibtex": ("multilabel/bibtex", 1836),
    "yeast": ("multilabel/yeast", 103),
    "rcv1": ("multilabel/rcv1sub1", 47236),
    "rcv1+1": ("multilabel/rcv1sub1", 47236),  # with the labels of the test rows one higher
    "tags": ("debian/tags", 30768),
    "depends": ("debian/depends", 30768),
}


def load(folder: Path, name: str, part: str) -> tuple[sp.csr_matrix, list[list[int]]]:
    """(rows, label lists) of the training or test part."""
    from fginfer.extreme.reader import Reader

    if name == "pinyin":
        return pinyin(folder, part)
    stem, width = SETS[name]
    path = folder / (f"{stem}.svm.gz" if name.startswith("rcv1") else f"{stem}-{part}.svm.gz")
    blocks = list(Reader(path))
    rows = [b.lines(width, True) for b in blocks]
    X = sp.vstack([sp.csr_matrix((r.value, r.index, r.begin), shape=(r.n, width)) for r in rows]).tocsr()
    y = [sorted(int(k) for k in labels) for b in blocks for labels in b.labels]
    if name.startswith("rcv1"):  # one file: the first 5000 train, the last 1000 test
        if part == "train":
            return X[:5000], y[:5000]
        # The last rows number every label one lower than the first ones do: as they are, a model is right in 41 % of
        # its first answers, and in 76 % of them less one.
        return X[-1000:], [[k + 1 for k in row] for row in y[-1000:]] if name == "rcv1+1" else y[-1000:]
    return X, y


def pinyin(folder: Path, part: str, most: int | None = None) -> tuple[sp.csr_matrix, list[list[int]]]:
    """A character from the syllables around it: five places, and the pairs of the middle one with its neighbours."""
    names: dict[str, int] = {}
    characters: dict[str, int] = {}
    for now in ("train", part) if part != "train" else ("train",):
        index: list[int] = []
        labels: list[list[int]] = []
        begin = [0]
        with gzip.open(folder / "zh_pinyin" / f"{now}.tsv.gz", "rt", encoding="utf-8") as file:
            for line in file:
                left, right = line.rstrip("\n").split("\t")
                s = ["<<", "<", *left.split(), ">", ">>"]
                for i, character in enumerate(right, 2):
                    window = [f"{k} {s[i + k]}" for k in (-2, -1, 0, 1, 2)]
                    window += [f"{s[i - 1]} {s[i]} -", f"- {s[i]} {s[i + 1]}"]
                    if now == "train":
                        row = [names.setdefault(w, len(names)) for w in window]
                    else:
                        row = [names[w] for w in window if w in names]
                    index += sorted(row)
                    begin.append(len(index))
                    labels.append([characters.setdefault(character, len(characters))])
                if most is not None and len(labels) >= most:
                    break
    value = np.ones(len(index), np.float32)
    X = sp.csr_matrix((value, np.array(index, np.int32), begin), shape=(len(labels), len(names)))
    return X, labels


def synthetic(
    n: int = 490_000, d: int = 136_000, k: int = 670_000, per_row: int = 75, labels_per_row: float = 5.45, seed: int = 0
) -> tuple[Any, Any, tuple[int, int, int]]:
    """Rows and labels with the sizes of Amazon-670K: words and labels by Zipf's law, words that follow the labels."""
    rng = np.random.default_rng(seed)
    counts = 1 + rng.poisson(labels_per_row - 1, n)
    label = np.minimum((k * rng.random(counts.sum()) ** 1.6).astype(np.int64), k - 1)
    row = np.repeat(np.arange(n), counts)
    pairs = np.unique(row * k + label)
    row, label = pairs // k, (pairs % k).astype(np.int32)
    common = (d * rng.random((n, per_row - 15)) ** 3).astype(np.int64)
    own = np.empty((n, 15), np.int64)
    first = np.searchsorted(row, np.arange(n))
    many = np.diff(np.append(first, len(row)))
    for c in range(15):  # every label has 8 words of its own
        chosen = label[first + rng.integers(0, many)].astype(np.int64)
        own[:, c] = (chosen * 2654435761 + rng.integers(0, 8, n) * 40503) % d
    words = np.sort(np.concatenate([common, own], axis=1), axis=1)
    keep = np.ones(words.shape, bool)
    keep[:, 1:] = words[:, 1:] != words[:, :-1]
    begin = np.concatenate([[0], np.cumsum(keep.sum(1))])
    index = words[keep].astype(np.int32)
    idf = np.log(n / (1 + np.bincount(index, minlength=d))).clip(0.1).astype(np.float32)
    value = idf[index]
    norm = np.sqrt(np.add.reduceat(value.astype(float) ** 2, begin[:-1]))
    value = (value / np.repeat(norm, np.diff(begin))).astype(np.float32)
    label_begin = np.concatenate([[0], np.cumsum(many)])
    return (begin, index, value), (label_begin, label), (n, d, k)
