"""Features as words of bits (csrc/learn/crf/bits.c), against lists of tokens: those of the same data with values 2."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.learn.data.encode import encode
from tests.learn.crf.fields import make_loss


def random_words(seed, labels, tokens, x=1.0):
    """Chains of one to nine tokens; most of 12 features are frequent, the last is in every hundredth token."""
    rng = np.random.default_rng(seed)
    share = np.append(rng.choice([0.05, 0.2, 0.7, 1.0], 11), 0.01)
    X = sp.csr_matrix((rng.random((tokens, 12)) < share) * x)
    begin = np.unique(np.append(np.cumsum(rng.integers(1, 10, tokens)), [0, tokens]))
    begin = begin[begin <= tokens]
    y = rng.integers(0, labels, tokens)
    pieces = [(X[b:e], y[b:e]) for b, e in pairwise(begin)]
    return encode("chain", *map(list, zip(*pieces, strict=True)), classes=np.arange(labels), intercept=False)[0]


def few_weights(seed, n):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.1, rng.standard_normal(n), 0.0)


# 900 tokens of 40 labels are two blocks
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6), labels=st.sampled_from([2, 5, 40]), tokens=st.sampled_from([1, 63, 64, 65, 130, 900]),
    threads=st.sampled_from([1, 3]),
)  # fmt: skip
def test_words_and_lists_agree(seed, labels, tokens, threads):
    words = make_loss(random_words(seed, labels, tokens), threads=threads)
    lists = make_loss(random_words(seed, labels, tokens, 2.0))
    unary = 12 * labels
    for turn in range(3):  # other features come into use
        w = few_weights(seed + turn, words.dimension)
        half = np.append(w[:unary] / 2, w[unary:])
        where = np.union1d(np.flatnonzero(w), np.arange(turn, len(w), 7))
        assert words.value(w, where) == pytest.approx(lists.value(half), rel=1e-12, abs=1e-12)
        expected = lists.gradient(half)
        expected[:unary] /= 2
        np.testing.assert_allclose(words.gradient(w, where), expected[where], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(words.gradient(w), expected, rtol=1e-10, atol=1e-10)


def test_a_feature_that_a_token_has_twice_counts_twice():
    X = sp.csr_matrix((np.ones(5), [0, 0, 1, 0, 1], [0, 2, 3, 5]), shape=(3, 2))  # not summed
    losses = []
    for rows in (X, sp.csr_matrix(X.toarray())):
        data, _ = encode("chain", [rows], [np.array([0, 1, 1])], classes=np.arange(2), intercept=False)
        losses.append(make_loss(data))
    w = np.array([0.5, -1.0, 2.0, 0.25, 0, 0, 0, 0])
    where = np.arange(8)
    assert losses[0].value(w, where) == pytest.approx(losses[1].value(w, where), rel=1e-14)
    np.testing.assert_allclose(losses[0].gradient(w, where), losses[1].gradient(w, where), atol=1e-14)


def test_threads_change_no_bit():
    data = random_words(5, 40, 900)
    results = []
    for threads in (1, 2, 5):
        loss = make_loss(data, threads=threads)
        w = few_weights(1, loss.dimension)
        results.append((loss.value(w, np.flatnonzero(w)), loss.gradient(w, np.flatnonzero(w)).tobytes()))
    assert results[0] == results[1] == results[2]
