"""Maximum inner-product search: the index against a plain sort of all scores, updates between queries, bad input."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.errors import ModelError, SettingsError
from fginfer.oracles import BackendIndex, InnerProducts, SearchIndex


def plain(rows: np.ndarray, x: np.ndarray, k: int, message: dict[int, float], excluded: list[int]) -> list[int]:
    """The answer from all scores: stable sort, so ties go to the lowest label."""
    scores = (rows @ x).astype(np.float64)
    for label, value in message.items():
        scores[label] -= value
    scores[list(excluded)] = -np.inf
    order = [int(a) for a in np.argsort(-scores, kind="stable")[:k]]
    return [a if scores[a] > -np.inf else -1 for a in order]


@st.composite
def problems(draw: Any) -> tuple[np.random.Generator, np.ndarray, int]:
    """Rows of small integers: their products are exact in single precision, and full of ties."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = draw(st.integers(1, 70)), draw(st.integers(1, 20))
    span = draw(st.sampled_from([1, 2, 40]))
    rows = rng.integers(-span, span + 1, (n, d)).astype(np.float32)
    if draw(st.booleans()):
        rows[rng.random(n) < 0.3] = 0
    return rng, rows, draw(st.integers(0, n))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(problems(), st.data())
def test_exact_search_is_the_dense_scan(problem: Any, data: Any) -> None:
    rng, rows, clusters = problem
    n, d = rows.shape
    index = SearchIndex(rows, clusters=clusters, rounds=2, threads=data.draw(st.integers(1, 2)))
    for _ in range(3):
        x = rng.integers(-3, 4, (5, d)).astype(np.float32)
        k = int(rng.integers(1, n + 1))
        size = int(rng.integers(0, n + 1))
        messages = [{int(a): float(rng.integers(-9, 10)) for a in rng.permutation(n)[:size]} for _ in x]
        excluded = [rng.permutation(n)[: int(rng.integers(0, n + 1))].tolist() for _ in x]
        found = index.search(x, k, messages=messages, excluded=excluded)
        scanned = index.scan(x, k, messages=messages, excluded=excluded)
        assert found.proven.all()
        assert (found.labels == scanned.labels).all()
        assert (found.values == scanned.values).all()
        for i in range(len(x)):
            assert found.labels[i].tolist() == plain(rows, x[i], k, messages[i], excluded[i])
        some = index.search(x, k, probes=1, messages=messages, excluded=excluded)
        for i in np.flatnonzero(some.proven):
            assert some.labels[i].tolist() == found.labels[i].tolist()
        update(rng, rows, index)
        if rng.random() < 0.2:
            index.rebuild()


def update(rng: np.random.Generator, rows: np.ndarray, index: SearchIndex) -> None:
    """Rows, and single entries, change; some listed twice."""
    n, d = rows.shape
    labels = rng.integers(0, n, 6)
    new = rng.integers(-3, 4, (6, d)).astype(np.float32)
    index.set_rows(labels, new)
    for label, row in zip(labels, new, strict=True):
        rows[label] = row
    labels, columns, values = rng.integers(0, n, 4), rng.integers(0, d, 4), rng.integers(-3, 4, 4)
    index.set_entries(labels, columns, values)
    for label, column, value in zip(labels, columns, values, strict=True):
        rows[label, column] = value
    labels = rng.permutation(n)[:3]
    rows[labels] += 1
    index.refresh(labels, rows)
    assert (index.rows() == rows).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(64, 700), st.integers(1, 70), st.sampled_from([1.0, 1e-25, 1e25]))
def test_exact_search_by_bytes_is_the_dense_scan(seed: int, n: int, d: int, scale: float) -> None:
    """Few labels of many rows, without clusters: ties, messages, exclusions, updates, rows of all sizes, an offset."""
    rng = np.random.default_rng(seed)
    whole = seed % 2 == 0
    rows = (rng.integers(-2, 3, (n, d)) if whole else rng.standard_normal((n, d))).astype(np.float32)
    if seed % 3 == 0:
        rows[rng.random(n) < 0.2] *= np.float32(50)
    if seed % 5 == 0:
        rows += np.float32(7)
    rows *= np.float32(scale)
    index = SearchIndex(rows, clusters=1, threads=1 + seed % 2)
    for _ in range(3):
        x = (rng.integers(-2, 3, (20, d)) if whole else rng.standard_normal((20, d))).astype(np.float32)
        asked: dict[str, Any] = {
            "messages": [{int(a): scale * float(rng.integers(-9, 10)) for a in rng.permutation(n)[:4]} for _ in x],
            "excluded": [rng.permutation(n)[: int(rng.integers(0, n))].tolist() for _ in x],
        }
        k = int(rng.integers(1, n // 64 + 1))
        before = index.counts.rows_touched
        found = index.search(x, k, **asked)
        touched = index.counts.rows_touched - before
        scanned = index.scan(x, k, **asked)
        assert found.proven.all()
        assert (found.labels == scanned.labels).all()
        assert (found.values == scanned.values).all()
        assert touched <= 2 * 20 * n
        labels = rng.permutation(n)[:9]
        rows[labels] = rows[rng.permutation(n)[:9]] * np.float32(rng.choice([0.0, 1.0, 3.0]))
        index.refresh(labels, rows)


def test_bytes_leave_few_rows_to_compute_and_are_given_up_where_they_do_not() -> None:
    rows, x = gaussian(20000, 48), gaussian(50, 48, 1)
    index = SearchIndex(rows, clusters=1)
    found, scanned = index.search(x, 10), index.scan(x, 10)
    assert (found.labels == scanned.labels).all()
    before = index.counts.rows_touched
    index.search(x, 10)
    assert index.counts.rows_touched - before < 0.02 * 50 * len(rows)
    rows[:, 0] = np.where(np.arange(20000) % 2, 1e6, -1e6)  # what bytes leave out is larger than all differences
    x[:, 0] = 0
    index = SearchIndex(rows, clusters=1)
    found, scanned = index.search(x, 10), index.scan(x, 10)
    assert (found.labels == scanned.labels).all()
    assert (found.values == scanned.values).all()


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(problems(), st.data())
def test_all_rows_as_candidates_are_the_dense_scan(problem: Any, data: Any) -> None:
    rng, rows, _ = problem
    n, d = rows.shape
    one, two = (SearchIndex(rows, clusters=1, threads=j) for j in (1, 2))
    for _ in range(3):
        x = rng.integers(-3, 4, (6, d)).astype(np.float32)
        k = int(rng.integers(1, n + 1))
        asked: dict[str, Any] = {
            "messages": [{int(a): float(rng.integers(-9, 10)) for a in rng.permutation(n)[:3]} for _ in x],
            "excluded": [rng.permutation(n)[: int(rng.integers(0, n + 1))].tolist() for _ in x],
        }
        scanned, found = one.scan(x, k, **asked), one.search(x, k, candidates=n, **asked)
        assert found.proven.all()
        assert (found.labels == scanned.labels).all()
        assert (found.values == scanned.values).all()
        some = int(rng.integers(1, n + 1))
        few, again = (index.search(x, k, candidates=some, **asked) for index in (one, two))
        assert (few.labels == again.labels).all()
        for i in range(len(x)):  # not always the best ones, but scored as they are, and none that is excluded
            kept = few.labels[i][few.labels[i] >= 0]
            assert not set(kept.tolist()) & set(asked["excluded"][i])
            minus = np.array([asked["messages"][i].get(int(a), 0.0) for a in kept])
            assert np.array_equal(few.values[i][: len(kept)], rows[kept] @ x[i] - minus)
            assert len(kept) == min(k, n - len(asked["excluded"][i]))
        update(rng, rows, one)
        two.set_rows(np.arange(n), rows)
        one.rebuild(), two.rebuild()  # codes of the same mean again


def gaussian(n: int, d: int, seed: int = 0, groups: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    if groups:
        rows = rng.standard_normal((groups, d))[rng.integers(0, groups, n)] + 0.2 * rows
    return rows.astype(np.float32)


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e15])
@pytest.mark.parametrize("groups", [0, 40])
def test_real_rows_of_any_size(scale: float, groups: int) -> None:
    rows = gaussian(3000, 24, groups=groups) * np.float32(scale)
    x = rows[::100] + np.float32(0.1 * scale) * gaussian(30, 24, 1)
    index = SearchIndex(rows)
    for k in (1, 7, 100):
        found, scanned = index.search(x, k), index.scan(x, k)
        assert (found.labels == scanned.labels).all()
        assert (found.values == scanned.values).all()
        assert np.allclose(found.values, np.sort(x.astype(float) @ rows.T.astype(float))[:, ::-1][:, :k], rtol=1e-4)


@pytest.mark.slow
def test_few_rows_are_touched_where_they_are_clustered() -> None:
    rows = gaussian(20000, 16, groups=400)
    index = SearchIndex(rows)
    found = index.search(rows[:200], 10)
    counts = index.counts
    assert found.proven.all()
    assert counts.scanned < 50  # by bytes, where bounds of clusters leave more than a tenth of the rows
    assert counts.rows_touched < 0.05 * 200 * len(rows)


@pytest.mark.parametrize(("d", "scale"), [(128, 1.0), (100, 1e-30), (37, 1e30), (300, 1.0)])
def test_candidates_by_codes(d: int, scale: float) -> None:
    """One bit a column finds rows that clusters do not help to find; and follows rows that change and grow."""
    rows = gaussian(5000, d) * np.float32(scale) + np.float32(3 * scale)
    x = gaussian(40, d, 1)
    index = SearchIndex(rows, clusters=1)
    assert index.recall(x, 10, candidates=index.tune(x, 10, recall=0.9, by="candidates")) >= 0.9
    assert index.recall(x, 10, candidates=800) > 0.9
    assert index.recall(x, 10, candidates=10) < index.recall(x, 10, candidates=200)
    labels = np.arange(0, 5000, 7)
    index.set_rows(labels, 5 * rows[labels] - np.float32(12 * scale))
    assert index.recall(x, 10, candidates=800) > 0.9
    before = index.counts.rows_touched
    index.search(x, 10, candidates=50)
    assert index.counts.rows_touched - before == 40 * (10 + 2 + 4)  # the best of the candidates, ranked again by bytes


def test_isotropic_rows_end_as_a_scan() -> None:
    rows = gaussian(4000, 64)
    index = SearchIndex(rows)
    index.search(gaussian(300, 64, 1), 5)
    assert index.counts.scanned > 250  # and later queries do not even try, but for a few
    before = index.counts.rows_touched
    index.search(gaussian(320, 64, 2), 5)
    assert index.counts.rows_touched - before < 1.2 * 320 * len(rows)


def test_answers_do_not_depend_on_threads() -> None:
    rows, x = gaussian(5000, 20, groups=50), gaussian(77, 20, 3)
    one, four = SearchIndex(rows, seed=5), SearchIndex(rows, seed=5, threads=4)
    for probes in (None, 1, 8):
        a, b = one.search(x, 40, probes=probes), four.search(x, 40, probes=probes)
        assert (a.labels == b.labels).all()
        assert (a.values == b.values).all()
        assert (a.proven == b.proven).all()


def test_recall_grows_with_probes_and_can_be_asked_for() -> None:
    rows = gaussian(8000, 32, groups=200)
    index, x = SearchIndex(rows), rows[:100] + 0.2 * gaussian(100, 32, 4)
    recalls = [index.recall(x, 10, probes=p) for p in (1, 4, 1000)]
    assert recalls[0] <= recalls[1] <= recalls[2] == 1.0
    probes = index.tune(x, 10, recall=0.9)
    assert index.recall(x, 10, probes=probes) >= 0.9
    assert probes < index.clusters / 4


@pytest.mark.slow
def test_updates_that_drift_keep_recall() -> None:
    """Every row becomes another one in small steps; the clusters follow."""
    rows, goal = gaussian(4000, 24, groups=80), gaussian(4000, 24, 9, groups=80)
    index = SearchIndex(rows)
    for step in range(10):
        now = (rows + (goal - rows) * np.float32((step + 1) / 10)).astype(np.float32)
        index.refresh(np.arange(4000), now)
    fresh = SearchIndex(goal)
    x = goal[:100]
    assert index.counts.rows_moved > 1000
    assert index.recall(x, 10, probes=8) > fresh.recall(x, 10, probes=8) - 0.15
    index.rebuild()
    assert (index.search(x, 3).labels == fresh.search(x, 3).labels).all()


def test_bad_input_is_told_before_any_work() -> None:
    rows = gaussian(20, 4)
    index = SearchIndex(rows)
    bad = rows.copy()
    bad[3, 1] = np.nan
    for wrong in (bad, rows[:0], np.zeros((3, 0)), rows[0], [["a"]]):
        with pytest.raises(ModelError):
            SearchIndex(wrong)
    for clusters in (-1, 21):
        with pytest.raises(SettingsError, match="clusters"):
            SearchIndex(rows, clusters=clusters)
    with pytest.raises(SettingsError, match="threads"):
        SearchIndex(rows, threads=0)
    with pytest.raises(ModelError, match="21 labels are wanted of 20 rows"):
        index.search(rows[0], 21)
    with pytest.raises(ModelError, match="0 labels"):
        index.search(rows[0], 0)
    with pytest.raises(ModelError, match="4 columns"):
        index.search(np.zeros(5))
    with pytest.raises(ModelError, match="NaN"):
        index.search([np.inf, 0, 0, 0])
    for bad in ({"candidates": 0}, {"candidates": 2.5}, {"candidates": 3, "probes": 1}):
        with pytest.raises(SettingsError, match="candidates"):
            index.search(np.zeros(index.shape[1]), **bad)
    with pytest.raises(SettingsError, match="by must be"):
        index.tune(np.zeros((1, index.shape[1])), by="rows")
    with pytest.raises(SettingsError, match="probes"):
        index.search(rows[0], probes=0)
    with pytest.raises(ModelError, match=r"0 \.\. 19"):
        index.search(rows[0], excluded=[20])
    with pytest.raises(ModelError, match="one finite value"):
        index.search(rows[0], messages={3: np.nan})
    with pytest.raises(ModelError, match="one finite value"):
        index.search(rows[0], messages=([3, 3], [1.0, 2.0]))
    with pytest.raises(ModelError, match="2 messages"):
        index.search(rows[:2], messages=[None])
    with pytest.raises(ModelError, match="NaN"):
        index.set_rows([1], [[np.nan, 0, 0, 0]])
    with pytest.raises(ModelError, match=r"0 \.\. 19"):
        index.set_rows([-1], rows[:1])
    with pytest.raises(ModelError, match="columns"):
        index.set_rows([1], np.zeros((1, 3)))
    with pytest.raises(ModelError):
        index.set_entries([1], [4], [0.0])
    with pytest.raises(ModelError):
        index.set_entries([1], [1], [np.inf])
    assert (index.rows() == rows).all()


def test_input_of_the_wrong_kind() -> None:
    rows = gaussian(20, 4)
    for wrong in (rows * 1j, [[1e39, 0.0]]):
        with pytest.raises(ModelError):
            SearchIndex(wrong)
    for setting in ({"clusters": "a"}, {"seed": -1}, {"seed": 0.5}, {"threads": 1.5}):
        with pytest.raises(SettingsError, match=next(iter(setting))):
            SearchIndex(rows, **setting)
    for index in (SearchIndex(rows), BackendIndex(rows, FakeBackend)):
        for k in (2.5, "a"):
            with pytest.raises(SettingsError, match="k must be a whole number"):
                index.search(rows[0], k)
        for probes in (0, -5, "a"):
            with pytest.raises(SettingsError, match="probes"):
                index.search(rows[0], probes=probes)
        with pytest.raises(ModelError, match="excluded"):
            index.search(rows[0], excluded=3)
        for messages in ({0: "a"}, 3, (1, 2, 3)):
            with pytest.raises(ModelError, match="message"):
                index.search(rows[0], messages=messages)
        with pytest.raises(ModelError, match="one or more"):
            index.recall(rows[:0])
        with pytest.raises(ModelError, match="21 labels"):
            index.recall(rows, 21)
        assert index.recall(rows[0], 3) == 1.0
        assert index.search(rows[0], 2, excluded={1, 2}).labels.tolist() == plain(rows, rows[0], 2, {}, [1, 2])


def test_no_queries_and_all_excluded() -> None:
    rows = gaussian(20, 4)
    index = SearchIndex(rows)
    assert index.search(np.zeros((0, 4)), 3).labels.shape == (0, 3)
    found = index.search(rows[0], 2, excluded=list(range(1, 20)))
    assert found.labels.tolist() == [0, -1]
    assert found.values[1] == -np.inf
    assert index.memory > rows.nbytes


class FakeBackend:
    """A library that knows all rows and answers by sorting them, from the worst end when asked to be careless."""

    def __init__(self, rows: np.ndarray, threads: int, seed: int) -> None:
        self.rows = np.zeros_like(rows)
        self.set_rows(np.arange(len(rows)), rows)

    def set_rows(self, labels: np.ndarray, rows: np.ndarray) -> None:
        self.rows[labels] = rows

    def query(self, x: np.ndarray, k: int, probes: int | None) -> np.ndarray:
        order = np.argsort(-(x @ self.rows.T), axis=1, kind="stable")
        return order[:, -k:] if probes == 1 else order[:, :k]


@settings(max_examples=60, deadline=None)
@given(problems())
def test_back_ends_take_messages_exclusions_and_updates(problem: Any) -> None:
    rng, rows, _ = problem
    n, d = rows.shape
    index = BackendIndex(rows, FakeBackend)
    labels, new = rng.integers(0, n, 3), rng.integers(-3, 4, (3, d)).astype(np.float32)
    index.set_rows(labels, new)
    for label, row in zip(labels, new, strict=True):
        rows[label] = row
    columns = rng.integers(0, d, 3)
    index.set_entries(labels, columns, [1.0, 2.0, 3.0])
    for label, column, value in zip(labels, columns, (1.0, 2.0, 3.0), strict=True):
        rows[label, column] = value
    assert (index.rows() == rows).all()
    assert (index.rows([0]) == rows[:1]).all()
    x = rng.integers(-3, 4, (4, d)).astype(np.float32)
    k = int(rng.integers(1, n + 1))
    messages = [{int(a): float(rng.integers(-9, 10)) for a in rng.permutation(n)[:5]} for _ in x]
    excluded = [rng.permutation(n)[:4].tolist() for _ in x]
    found = index.search(x, k, messages=messages, excluded=excluded)
    assert not found.proven.any()
    for i in range(len(x)):
        assert found.labels[i].tolist() == plain(rows, x[i], k, messages[i], excluded[i])
    assert index.recall(x, k) == 1.0


def test_back_ends_tell_their_recall_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = gaussian(50, 6)
    assert BackendIndex(rows, FakeBackend).recall(rows, 5, probes=1) == 0.0
    with pytest.raises(SettingsError, match="hnswlib, faiss"):
        BackendIndex(rows, "annoy")
    for name, module in (("hnswlib", "hnswlib"), ("faiss", "faiss")):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(SettingsError, match=f"{module} is not installed"):
            BackendIndex(rows, name)


@pytest.mark.parametrize("name", [name for name in ("hnswlib", "faiss") if find_spec(name)])
def test_installed_libraries_behind_the_same_questions(name: str) -> None:
    rows = gaussian(2000, 16, groups=40)
    index, x = BackendIndex(rows, name), rows[:50] + 0.1 * gaussian(50, 16, 6)
    assert index.recall(x, 10, probes=200) > 0.9
    truth = [plain(rows, q, 1, {}, [])[0] for q in x]
    found = index.search(x, 3, probes=200, excluded=[[t] for t in truth], messages=[{5: -1000.0}] * len(x))
    for i, labels in enumerate(found.labels.tolist()):
        assert labels[0] == 5 or truth[i] == 5
        assert truth[i] not in labels
    index.set_rows([7], 100 * rows[:1])
    assert index.search(rows[0], probes=200).labels.tolist() == [7]


@pytest.mark.parametrize("by_feature", [False, True])
def test_an_index_under_the_inner_product_source(by_feature: bool) -> None:
    """The one oracle call, by search: the answers of its scan bit for bit, from few labels."""
    rows = gaussian(6000, 12, groups=150).astype(np.float64)
    weights = np.ascontiguousarray(rows.T) if by_feature else rows
    source = InnerProducts(weights, by_feature=by_feature, threads=2)
    source.scale(0.5)
    source.index()
    x = rows[::200] + 0.1 * gaussian(30, 12, 5)
    scanned = source.ask(x, n_best=3, path="scan")
    before = source.work
    found = source.ask(x, n_best=3, path="search")
    assert (found.states == scanned.states).all()
    assert (found.values == scanned.values).all()
    assert source.work["scans"] == before["scans"]
    assert source.argmax(x[0], {int(found.states[0, 0]): 100.0}).state == (int(found.states[0, 1]),)
    weights[...] = weights[..., ::-1].copy()
    source.index(probes=2)
    again = source.ask(x, n_best=3, path="search")  # not proven, so scanned
    assert (again.states == source.ask(x, n_best=3, path="scan").states).all()
    with pytest.raises(SettingsError):
        source.index(clusters=-1)
    with pytest.raises(SettingsError):
        source.index(probes=-1)


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_parts_find_what_is_best_in_any_of_them(parts: int) -> None:
    """One pass over the codes of all parts: the rows that lead some part are nearly all there, with their scores in
    every part; all rows when so many are asked for; updates and threads make no difference."""
    rng = np.random.default_rng(parts)
    rows = rng.standard_normal((3000, 96)).astype(np.float32)
    one, two = (SearchIndex(rows, clusters=1, parts=parts, threads=j) for j in (1, 2))
    x = rng.standard_normal((30, 96)).astype(np.float32)
    rows[::7] = rng.standard_normal((len(rows[::7]), 96))
    one.handle.run_parts(x, 5, None)  # codes are made before the rows change
    cuts = [96 * j // parts for j in range(parts + 1)]
    for index in (one, two):
        index.refresh(np.arange(0, 3000, 7), rows)
    labels, values = one.handle.run_parts(x, 400, None)
    again = SearchIndex(one.rows(), clusters=1, parts=parts, threads=2).handle.run_parts(x, 400, None)
    same = two.handle.run_parts(x, 400, None)
    assert labels.shape == (30, min(3000, 400 * parts))
    np.testing.assert_array_equal(again[0], same[0])  # codes of the rows as they are now, both
    np.testing.assert_array_equal(again[1], same[1])
    found = 0
    for i, row in enumerate(labels):
        which = row[row >= 0]
        assert len(np.unique(which)) == len(which) >= 400
        for part, (a, b) in enumerate(pairwise(cuts)):
            scores = rows[:, a:b] @ x[i, a:b]
            np.testing.assert_allclose(values[i, : len(which), part], scores[which], atol=2.5)
            found += len(np.intersect1d(np.argsort(-scores)[:5], which))
    assert found > 0.9 * 5 * parts * len(x)
    everything = one.handle.run_parts(x, 3000, None)[0]
    assert (np.sort(everything, axis=1) == np.arange(3000)).all()
    banned = (np.arange(31, dtype=np.int64), everything[:, 0].copy())
    assert not (one.handle.run_parts(x, 50, banned)[0] == everything[:, :1]).any()


def test_parts_must_fit() -> None:
    rows = np.ones((5, 3), np.float32)
    for bad in (0, 4, 9, -1):
        with pytest.raises(SettingsError, match="parts must lie in 1"):
            SearchIndex(rows, parts=bad)
    with pytest.raises(SettingsError):
        SearchIndex(rows, parts=1.5)  # type: ignore[arg-type]


ROWS = np.random.default_rng(2).standard_normal((20, 4)).astype(np.float32)


@pytest.mark.parametrize(
    "wrong",
    [{"clusters": 2**40}, {"clusters": 1.5}, {"rounds": -1}, {"rounds": 2**40}, {"threads": 0}, {"threads": 10**6},
     {"threads": "a"}, {"seed": 2**70}, {"seed": "a"}, {"parts": 2**40}],
)  # fmt: skip
def test_settings_that_no_index_has(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        SearchIndex(ROWS, **wrong)


def test_questions_that_make_no_sense() -> None:
    index = SearchIndex(ROWS)
    for way in ({"probes": 2**40}, {"probes": True}, {"candidates": 1.5}, {"probes": 1, "candidates": 1}):
        with pytest.raises(SettingsError):
            index.search(ROWS[0], **way)
    for k in ("a", 1.5, None, 2**40):
        with pytest.raises(SettingsError):
            index.scan(ROWS[0], k)
    for x, k, recall in ((ROWS, "a", 0.9), (ROWS, 1, "a"), (ROWS, 1, 2.0)):
        with pytest.raises(SettingsError):
            index.tune(x, k, recall=recall)
    with pytest.raises(ModelError):
        index.tune(ROWS, 99)
    for values in (["a"], [np.nan], [1e300], [1.0, 2.0]):
        with pytest.raises(ModelError):
            index.set_entries([0], [0], values)
    with pytest.raises(ModelError, match="float32"):
        index.refresh([0], ROWS.tolist())
    with pytest.raises(ModelError, match="numbers"):
        SearchIndex(np.zeros((3, 2), "M8[s]"))
    for backend in (None, 3, "annoy"):
        with pytest.raises(SettingsError, match="backend"):
            BackendIndex(ROWS, backend)
    assert (index.rows() == ROWS).all()
