"""Dense models of many labels answer by a search index: what they say must not tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core.extreme import Lines, Scorer
from fginfer.errors import ModelError
from fginfer.extreme.dense import DENSE, LABELS, ROWS
from fginfer.extreme.model import SparseModel


def lines(table):
    kept = [np.flatnonzero(row) for row in table]
    begin = np.concatenate([[0], np.cumsum([len(k) for k in kept])]).astype(np.int64)
    index = np.concatenate([np.zeros(0, np.int32), *kept]).astype(np.int32)
    value = np.concatenate([np.zeros(0, np.float32), *(r[k] for r, k in zip(table, kept, strict=True))])
    return Lines(begin, index, value.astype(np.float32), table.shape[1])


def model_of(weights, bias):
    return SparseModel(lines(weights.T), bias.astype(np.float32), np.arange(len(weights)), {})


def same_as_by_features(model, rows, k, threads=1):
    labels, scores = model.topk(rows, k, threads)
    plain = Scorer(model.weights, model.bias, model.order).topk(rows, k)
    np.testing.assert_array_equal(labels, plain[0])
    np.testing.assert_array_equal(scores, plain[1])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 12), st.sampled_from([0, 1, 2]), st.integers(1, 2))
def test_answers_are_those_by_features_bit_for_bit(seed, d, k, kind, threads):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((LABELS + 3, d)).astype(np.float32)
    weights[rng.random(weights.shape) < 0.3] = 0
    if kind == 1:  # ties, and labels that differ by a rounding
        weights = weights[rng.integers(0, 40, len(weights))]
        weights[::3] *= np.float32(1 + 2.0**-22)
    if kind == 2:
        weights = np.round(weights)
        weights[:, 0] = 1
    bias = np.round(rng.standard_normal(len(weights)), int(rng.integers(0, 5)))
    x = rng.standard_normal((ROWS, d + 2)).astype(np.float32)  # two features that the model does not know
    x[rng.random(x.shape) < 0.2] = 0
    model = model_of(weights, bias)
    same_as_by_features(model, lines(x), k, threads)
    assert model._dense is not None


def test_the_index_is_asked_and_most_rows_are_sure():
    rng = np.random.default_rng(0)
    model = model_of(rng.standard_normal((2000, 24)).astype(np.float32), rng.standard_normal(2000))
    rows = lines(rng.standard_normal((300, 24)).astype(np.float32))
    same_as_by_features(model, rows, 5)
    _, _, left = model._dense.topk(rows, 5)
    assert len(left) < 3
    same_as_by_features(model, lines(rng.standard_normal((1, 24)).astype(np.float32)), 5)  # few rows, once it is there


@pytest.mark.parametrize("what", ["few labels", "sparse weights", "sparse rows", "few rows", "large k"])
def test_others_go_by_features(what):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((LABELS - 1 if what == "few labels" else LABELS, 20)).astype(np.float32)
    x = rng.standard_normal((ROWS - 1 if what == "few rows" else ROWS, 20)).astype(np.float32)
    if what == "sparse weights":
        weights[rng.random(weights.shape) < 1 - DENSE / 2] = 0
    if what == "sparse rows":
        x[rng.random(x.shape) < 1 - DENSE / 2] = 0
    model = model_of(weights, rng.standard_normal(len(weights)))
    same_as_by_features(model, lines(x), 500 if what == "large k" else 3)
    assert model._dense is None


def test_damaged_weights_are_told():
    model = model_of(np.ones((LABELS, 4), np.float32), np.zeros(LABELS))
    model.weights.index[7] = LABELS + 5
    with pytest.raises(ModelError, match="does not exist"):
        model.topk(lines(np.ones((ROWS, 4), np.float32)), 3)
