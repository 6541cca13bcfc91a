"""A text as skip-gram sees it: vocabulary, subsampled words, and how often words meet in a window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.errors import DataError


@dataclass
class Text:
    """Words as numbers (the most frequent is 0), the sentence each lies in, and what is known of the vocabulary."""

    vocabulary: list[str]
    counts: NDArray[np.int64]  # before subsampling
    words: NDArray[np.int32]  # after it
    sentences: NDArray[np.int32]


def sentences_of(text: Any) -> Iterable[Any]:
    if isinstance(text, (str, bytes)) or not isinstance(text, Iterable):
        raise DataError(f"X must be a list of sentences, not {'one string' if isinstance(text, str) else repr(text)}")
    return text


def words_of(sentence: Any, name: str) -> list[str]:
    """A string is split at white space; else it must be a list of words."""
    if isinstance(sentence, str):
        return sentence.split()
    listed: list[Any] = list(sentence) if isinstance(sentence, Iterable) else [None]
    if not all(isinstance(w, str) for w in listed):
        raise DataError(f"{name} is neither a string nor a list of words")
    return listed


def read_text(sentences: Iterable[Any], min_count: int, subsample: float, seed: int) -> Text:
    """Sentences are strings (split at white space) or lists of words. Rare words are left out, frequent ones dropped
    with probability max(0, 1 - sqrt(subsample / frequency)); windows then reach over the gaps, as in word2vec."""
    split = [words_of(sentence, f"sentence {i}") for i, sentence in enumerate(sentences_of(sentences))]
    found = Counter(w for listed in split for w in listed)
    kept = sorted((w for w, n in found.items() if n >= min_count), key=lambda w: (-found[w], w))
    if len(kept) < 2:
        raise DataError(f"fewer than two words occur {min_count} times or more: lower min_count, or give more text")
    number = {w: k for k, w in enumerate(kept)}
    lengths = np.zeros(len(split), np.int64)
    flat: list[int] = []
    for i, listed in enumerate(split):
        numbers = [number[w] for w in listed if w in number]
        lengths[i] = len(numbers)
        flat += numbers
    words, where = np.array(flat, np.int32), np.repeat(np.arange(len(split), dtype=np.int32), lengths)
    counts = np.array([found[w] for w in kept], np.int64)
    if subsample > 0:
        frequency = counts / counts.sum()
        stay = np.minimum(1.0, np.sqrt(subsample / frequency))
        use = np.random.default_rng(seed).random(len(words)) < stay[words]
        words, where = words[use], where[use]
    return Text(kept, counts, np.ascontiguousarray(words), np.ascontiguousarray(where))


def meetings(text: Text, window: int) -> sp.csr_matrix:
    """How often word y stands at most `window` words from word x, (words, words)."""
    k = len(text.vocabulary)
    longest = int(np.bincount(text.sentences).max(initial=0))
    total = sp.csr_matrix((k, k), dtype=np.float64)
    for gap in range(1, min(window + 1, longest)):
        a, b = text.words[:-gap], text.words[gap:]
        same = text.sentences[:-gap] == text.sentences[gap:]
        ones = np.ones(int(same.sum()))
        total = total + sp.coo_matrix((ones, (a[same], b[same])), shape=(k, k)).tocsr()
    return (total + total.T).tocsr()
