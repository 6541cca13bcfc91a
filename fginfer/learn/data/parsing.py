"""Arc features for first-order dependency parsing: every (token, head) pair becomes a row of hashed binary features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.errors import DataError, SettingsError
from fginfer.learn.data.examples import Choices
from fginfer.learn.data.strings import string_array

_ROOT, _NONE, _RARE = 0, 1, 2  # codes beside those of known strings, which begin at 3
Codes = NDArray[np.int64]


class ArcFeatures:
    """Words, tags, distance, neighbours of both ends, and the tags in between, hashed into 2**bits features.

    Words seen less than `min_count` times in training share one code. A sentence is (words, tags).

    >>> sentence = (["dogs", "bark"], ["N", "V"])
    >>> ArcFeatures(bits=12).fit([sentence]).transform([sentence])[0].counts.tolist()
    [3, 3]
    """

    def __init__(self, bits: int = 20, min_count: int = 2) -> None:
        if not 8 <= bits <= 30:
            raise SettingsError("bits must be between 8 and 30")
        self.bits, self.min_count = bits, min_count
        self.words: dict[str, int] = {}
        self.tags: dict[str, int] = {}

    def fit(self, sentences: Sequence[tuple[Sequence[str], Sequence[str]]]) -> ArcFeatures:
        """Counts words and tags of the sentences."""
        counts = Counter(word.lower() for words, _ in sentences for word in words)
        known = sorted(word for word, n in counts.items() if n >= self.min_count)
        self.words = {word: k + 3 for k, word in enumerate(known)}
        self.tags = {tag: k + 3 for k, tag in enumerate(sorted({t for _, tags in sentences for t in tags}))}
        return self

    def transform(self, sentences: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[Choices]:
        """The alternatives of every token: its possible heads."""
        if not self.tags:
            raise SettingsError("fit the features first")
        return [self._sentence(words, tags) for words, tags in sentences]

    def export(self) -> tuple[dict[str, int], dict[str, NDArray[Any]]]:
        """Settings and strings, for model files."""
        known = {
            "arc_words": string_array(list(self.words), "words"),
            "arc_tags": string_array(list(self.tags), "tags"),
        }
        return {"bits": self.bits, "min_count": self.min_count}, known

    @classmethod
    def restore(cls, settings: dict[str, int], arrays: dict[str, NDArray[Any]]) -> ArcFeatures:
        """The reverse of :meth:`export`."""
        out = cls(int(settings["bits"]), int(settings["min_count"]))
        words, tags = arrays["arc_words"], arrays["arc_tags"]
        if words.dtype.kind != "U" or tags.dtype.kind != "U" or words.ndim != 1 or tags.ndim != 1 or not len(tags):
            raise DataError("words and tags are lists of strings")
        out.words = {str(word): k + 3 for k, word in enumerate(words)}
        out.tags = {str(tag): k + 3 for k, tag in enumerate(tags)}
        return out

    def _sentence(self, words: Sequence[str], tags: Sequence[str]) -> Choices:
        n = len(words)
        if n == 0 or len(tags) != n:
            raise DataError(f"a sentence has {n} words and {len(tags)} tags")
        # position 0 is the root; one more at the end stands for what is outside
        w = np.array([_ROOT, *(self.words.get(word.lower(), _RARE) for word in words), _NONE])
        p = np.array([_ROOT, *(self.tags.get(tag, _RARE) for tag in tags), _NONE])
        m, h = (x.ravel() for x in np.meshgrid(np.arange(1, n + 1), np.arange(n + 1), indexing="ij"))
        gap = m - h
        span = np.abs(gap)
        distance = np.where(gap > 0, 0, 8) + np.minimum(span, 4) + (span > 5) + (span > 10) + (span > 20)
        hw, hp, mw, mp = w[h], p[h], w[m], p[m]
        h_next, h_before = p[np.minimum(h + 1, n + 1)], p[h - 1]  # h = 0 looks at the end, which is outside
        m_next, m_before = p[m + 1], p[m - 1]
        parts = [
            (hw, hp, distance), (mw, mp, distance), (hp, mp, distance), (hw, mw, distance), (hw, mp, distance),
            (hp, mw, distance), (hp, mp, h_next, m_before, distance), (hp, mp, h_before, m_before, distance),
            (hp, mp, h_next, m_next, distance), (hp, mp, h_before, m_next, distance), (hp, mp, hw, mw), (hp, mp),
            (mw, distance), (hw, distance),
        ]  # fmt: skip
        columns = [self._hash(k, part) for k, part in enumerate(parts)]
        rows = [np.arange(len(m))] * len(columns)
        low, high = np.minimum(m, h), np.maximum(m, h)
        for tag in np.unique(p[1 : n + 1]):  # does the tag occur strictly between the two?
            seen = begins(p == tag)
            at = np.flatnonzero(seen[high] - seen[low + 1] > 0)
            columns.append(self._hash(len(parts), (hp[at], mp[at], np.full(len(at), tag), gap[at] > 0)))
            rows.append(at)
        row, column = np.concatenate(rows), np.concatenate(columns)
        matrix = sp.csr_matrix((np.ones(len(row)), (row, column)), shape=(len(m), 2**self.bits))
        return Choices(matrix, np.full(n, n + 1))

    def _hash(self, kind: int, parts: tuple[Any, ...]) -> Codes:
        key = np.full(len(parts[0]), kind + 1, np.uint64)
        for part in parts:
            key = (key ^ np.asarray(part, np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        return (key >> np.uint64(64 - self.bits)).astype(np.int64)


def is_projective(heads: Sequence[int] | NDArray[Any]) -> bool:
    """Whether heads (of the tokens 1, 2, ...; 0 is the root) are a tree in which no two arcs cross and exactly one
    token hangs on the root: what the parser can say."""
    head = np.asarray(heads)
    n = len(head)
    if np.count_nonzero(head == 0) != 1 or (head < 0).any() or (head > n).any():
        return False
    up = np.concatenate([[0], head])
    for _ in range(n.bit_length()):  # twice as far towards the root each time
        up = up[up]
    low, high = np.minimum(head, np.arange(1, n + 1)), np.maximum(head, np.arange(1, n + 1))
    crossing = (low[:, None] < low) & (low < high[:, None]) & (high[:, None] < high)
    return not bool(up.any() or crossing.any())
