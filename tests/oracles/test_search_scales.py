"""Exact search where inner products underflow or overflow: it is the dense scan at every scale that numbers have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.errors import ModelError
from fginfer.oracles import InnerProducts, SearchIndex

SINGLE = st.integers(-46, 38)  # powers of ten: below the least number of single precision, up to its largest
DOUBLE = st.integers(-320, 300)


def numbers(rng: np.random.Generator, shape: tuple[int, int], power: int, kind: int) -> np.ndarray:
    """Rows of about one size, of several, or of whole multiples (ties), some of them zero."""
    given = rng.integers(-2, 3, shape).astype(np.float64) if kind == 1 else rng.standard_normal(shape)
    if kind == 2:
        given *= 10.0 ** rng.integers(-12, 1, (shape[0], 1))
    given[rng.random(shape[0]) < 0.1] = 0
    return given * 10.0**power


def single(given: np.ndarray) -> np.ndarray:
    most = float(np.finfo(np.float32).max)
    return np.clip(given, -most, most).astype(np.float32)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**32), SINGLE, SINGLE, DOUBLE, st.sampled_from([0, 1, 2]), st.sampled_from([1, 20, 90]))
def test_exact_search_is_the_dense_scan_at_every_scale(
    seed: int, power: int, x_power: int, message_power: int, kind: int, clusters: int
) -> None:
    """By bytes (one cluster) and by the bounds of clusters; messages of any size, exclusions, updates of another."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(100, 500)), int(rng.integers(1, 40))
    rows = single(numbers(rng, (n, d), power, kind))
    index = SearchIndex(rows, clusters=clusters, rounds=2, threads=1 + seed % 2)
    for step in range(3):
        x = single(numbers(rng, (20, d), x_power, kind))
        size = 10.0 ** (power + x_power if step else message_power)
        asked: dict[str, Any] = {
            "messages": [{int(a): size * float(rng.standard_normal()) for a in rng.permutation(n)[:3]} for _ in x],
            "excluded": [rng.permutation(n)[: int(rng.integers(0, n // 2))].tolist() for _ in x],
        }
        k = int(rng.integers(1, 4))
        scanned, found = index.scan(x, k, **asked), index.search(x, k, **asked)
        some = index.search(x, k, probes=3, **asked)
        assert found.proven.all()
        np.testing.assert_array_equal(found.labels, scanned.labels)
        np.testing.assert_array_equal(found.values, scanned.values)
        np.testing.assert_array_equal(some.labels[some.proven], scanned.labels[some.proven])
        labels = rng.permutation(n)[:9]
        rows[labels] = single(numbers(rng, (9, d), power + int(rng.integers(-9, 10)), kind))
        index.refresh(labels, rows)


@pytest.mark.parametrize(("power", "x_power"), [(-12, -30), (-30, -5), (5, -23), (30, 30), (-5, 25)])
@pytest.mark.parametrize("clusters", [1, 60])
def test_scales_at_which_bounds_have_failed(power: int, x_power: int, clusters: int) -> None:
    """Squares of queries, products, or both leave single precision."""
    rng = np.random.default_rng(7)
    rows, x = (single(rng.standard_normal((n, 12)) * 10.0**p) for n, p in ((2000, power), (200, x_power)))
    index = SearchIndex(rows, clusters=clusters)
    found, scanned = index.search(x, 5), index.scan(x, 5)
    np.testing.assert_array_equal(found.labels, scanned.labels)
    np.testing.assert_array_equal(found.values, scanned.values)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(-320, 150), st.integers(-320, 150), st.sampled_from([0, 1, 2]))
def test_an_index_under_a_source_of_any_scale(seed: int, power: int, x_power: int, kind: int) -> None:
    """The source computes in double precision, its index in single: what that cannot tell apart is scanned."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1700, 2000)), int(rng.integers(1, 12))
    weights = numbers(rng, (n, d), power, kind)
    source = InnerProducts(weights)
    x = numbers(rng, (5, d), x_power, kind)
    if np.abs(weights).max() > np.finfo(np.float32).max:
        with pytest.raises(ModelError, match="finite"):
            source.index()
        return
    source.index(clusters=20)
    found, scanned = (source.ask(x, n_best=3, path=path) for path in ("search", "scan"))
    np.testing.assert_array_equal(found.states, scanned.states)
    np.testing.assert_array_equal(found.values, scanned.values)
