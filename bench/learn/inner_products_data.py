"""Data of inner_products.py: rows to search, faces, and the folders debian/ and zh_pinyin/ as rows."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class Data(NamedTuple):
    X: Any
    y: Any
    X_test: Any
    y_test: Any


def clustered(rng: np.random.Generator, k: int, d: int) -> np.ndarray:
    """Fifty rows around each centre."""
    centres = rng.standard_normal((max(10, k // 50), d), dtype=np.float32)
    return centres[rng.integers(0, len(centres), k)] + 0.3 * rng.standard_normal((k, d), dtype=np.float32)


def faces(k: int, d: int = 128, each: int = 20, some: int | None = None, alike: float = 1.0, seed: int = 0) -> Data:
    """Identities in families of twenty, `each` images around every identity, of unit length: to train on, one of every
    identity and a random part of the others (`some` in all), and a test image of each of at most 4000 identities.
    alike: how far families lie apart; 0 leaves identities without families."""
    rng = np.random.default_rng(seed)
    family = np.float32(alike) * rng.standard_normal((max(4, k // 20), d), dtype=np.float32)
    points = family[rng.integers(0, len(family), k)] + 0.7 * rng.standard_normal((k, d), dtype=np.float32)
    first, chosen = np.arange(k) * (each - 1), np.arange(k * (each - 1))
    if some is not None and some < len(chosen):
        others = np.setdiff1d(chosen, first, assume_unique=True)
        chosen = np.sort(np.concatenate([first, rng.choice(others, max(0, some - k), replace=False)]))
    y, y_test = chosen // (each - 1), rng.permutation(k)[:4000]

    def images(which: np.ndarray) -> np.ndarray:
        X = points[which] + 0.6 * rng.standard_normal((len(which), d), dtype=np.float32)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X

    return Data(images(y), y, images(y_test), y_test)


def pinyin(folder: Path, most: int = 200_000) -> Data:
    """A character from the syllables around it, by a truncated singular value decomposition of their indicators."""
    from sklearn.decomposition import TruncatedSVD

    def tokens(name: str, most: int) -> tuple[list[list[str]], list[str]]:
        windows, characters = [], []
        with gzip.open(folder / "zh_pinyin" / name, "rt", encoding="utf-8") as file:
            for line in file:
                left, right = line.rstrip("\n").split("\t")
                syllables = left.split()
                for i, character in enumerate(right):
                    around = range(max(0, i - 2), min(len(syllables), i + 3))
                    windows.append([f"{j - i}:{syllables[j]}" for j in around])
                    characters.append(character)
                if len(characters) >= most:
                    break
        return windows, characters

    train_windows, y = tokens("train.tsv.gz", most)
    test_windows, y2 = tokens("test.tsv.gz", 5_000)
    number: dict[str, int] = {}
    for window in train_windows:
        for feature in window:
            number.setdefault(feature, len(number))

    def matrix(windows: list[list[str]]) -> sp.csr_matrix:
        pairs = [(i, number[f]) for i, window in enumerate(windows) for f in window if f in number]
        i, j = np.array(pairs).T
        return sp.csr_matrix((np.ones(len(i), np.float32), (i, j)), shape=(len(windows), len(number)))

    svd = TruncatedSVD(128, n_iter=2, random_state=0).fit(matrix(train_windows[:50_000]))
    X, X2 = (svd.transform(matrix(w)).astype(np.float32) for w in (train_windows, test_windows))
    known = np.isin(y2, np.unique(y))
    return Data(X, np.array(y), X2[known], np.array(y2)[known])


def debian(folder: Path, name: str) -> Data:
    """tags or depends: sparse rows and label lists."""
    from extreme_data import load

    return Data(*load(folder, name, "train"), *load(folder, name, "test"))


def descriptions(folder: Path, lines: int) -> list[str]:
    with gzip.open(folder / "debian" / "descriptions.txt.gz", "rt") as file:
        return file.read().splitlines()[:lines]
