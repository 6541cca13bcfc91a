"""A sorted search gives up once a scan would be done sooner: counts of touched entries, on messages that block what the
lists begin with. Answers are compared with the definition; times are bench/papers/adversarial.py's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from fginfer import AbsDiff, FactorGraph
from fginfer.oracles import Argmax, GraphOracle, Ranking, UpdatableTable
from tests.oracles.test_sources import sorted_states

Array = NDArray[np.float64]
Messages = list[dict[int, float]]
Ask = Callable[..., list[Argmax]]
PART = 0.15  # a search that gives up touches no more than this part of a scan, its messages aside


def blocking(table: Array, rng: np.random.Generator) -> dict[str, Messages]:
    """Messages that make the beginnings of sorted lists useless, and a few as a solver has them."""
    axes = range(table.ndim)
    best = [table.max(tuple(k for k in axes if k != axis)) if table.ndim > 1 else table for axis in axes]
    top = [np.argsort(-b, kind="stable")[: len(b) // 2].tolist() for b in best]
    return {
        "block": [dict.fromkeys(t, 100.0) for t in top],
        "level": [{a: float(b[a] - b.min() + 0.01 * rng.normal()) for a in t} for b, t in zip(best, top, strict=True)],
        "flatten": [{a: float(b[a] / 2) for a in range(len(b))} for b in best],
        "few": [{int(a): float(rng.normal(0.3, 0.3)) for a in rng.choice(len(b), 3, replace=False)} for b in best],
    }


def pairs(k: int, rng: np.random.Generator) -> dict[str, Array]:
    table = np.add.outer(rng.normal(size=k), rng.normal(size=k))
    hard = table.copy()
    hard[rng.random((k, k)) < 0.1] = -np.inf
    return {
        "additive": table,
        "forbidden": hard,
        "noise": rng.normal(size=(k, k)),
        "ties": np.add.outer(rng.integers(0, 4, k), rng.integers(0, 4, k)).astype(float),
        "cube": np.add.outer(np.add.outer(*rng.normal(size=(2, 12))), rng.normal(size=k)),
    }


def graph_oracle(table: Array) -> GraphOracle:
    graph = FactorGraph(table.shape)
    graph.add_factor(list(range(table.ndim)), table)
    return GraphOracle(graph)


def check(source: GraphOracle | UpdatableTable | Ranking, ask: Ask, messages: Messages, expected: list[Argmax]) -> None:
    """No more than a scan and a part of it; and exactly what the search costs where it comes to its end."""
    touched, scans = {}, {}
    for path in ("search", "scan", "auto"):
        ask(path=path)  # makes the lists that it wants
        before, scanned = source.touched, source.work["scans"]
        assert ask(path=path) == expected, path
        touched[path], scans[path] = source.touched - before, source.work["scans"] - scanned
    listed = sum(map(len, messages))
    if scans["auto"]:
        assert touched["auto"] <= (1 + PART) * touched["scan"] + 2 * listed + 20
    else:
        assert touched["auto"] == touched["search"]


@pytest.mark.parametrize("k", [48, 150, 400])
def test_static_tables(k: int) -> None:
    rng = np.random.default_rng(k)
    for table in pairs(k, rng).values():
        oracle = graph_oracle(table)
        for messages in blocking(np.maximum(table, -50.0), rng).values():
            expected = sorted_states(table, messages, [], 1)
            check(oracle, partial(oracle.best, 0, 1, messages), messages, expected)


def test_what_is_given_up_would_have_cost_much_more() -> None:
    """The draws are as bad as they are meant to be: the search alone touches much of the table, at ten times the cost
    of an entry of a scan; and the search of few messages is not given up."""
    rng = np.random.default_rng(0)
    table = pairs(400, rng)["additive"]
    oracle, messages = graph_oracle(table), blocking(table, rng)
    for kind in ("block", "level"):
        before = oracle.touched
        oracle.best(0, 1, messages[kind], path="search")
        assert oracle.touched - before > table.size / 5
    oracle.best(0, 1, messages["few"], path="search")
    scans, before = oracle.work["scans"], oracle.touched
    oracle.best(0, 1, messages["few"])
    assert oracle.work["scans"] == scans
    assert oracle.touched - before < 100


def test_several_best_share_one_allowance() -> None:
    """Found by the search or by the scan that goes on from there: the same answers in the same order."""
    rng = np.random.default_rng(5)
    for table in pairs(60, rng).values():
        oracle = graph_oracle(table)
        for messages in blocking(np.maximum(table, -50.0), rng).values():
            for n in (2, 7):
                expected = sorted_states(table, messages, [(0,) * table.ndim], n)
                ask = partial(oracle.best, 0, n, messages, excluded=(0,) * table.ndim)
                check(oracle, ask, messages, expected)


def test_differences() -> None:
    rng = np.random.default_rng(2)
    k = 200
    table = -np.minimum(0.01 * np.abs(np.subtract.outer(np.arange(k), np.arange(k))), 1.0)
    graph = FactorGraph([k, k])
    graph.add_factor([0, 1], AbsDiff(0.01, 1.0))
    oracle = GraphOracle(graph)
    spread = rng.random(k)
    draws = blocking(np.add.outer(spread, spread), rng)
    draws["steps"] = [{int(a): 0.01 * int(a) for a in range(0, k, 2)} for _ in range(2)]
    for messages in draws.values():
        expected = sorted_states(table, messages, [], 1)
        found = [oracle.best(0, 1, messages, path=path)[0] for path in ("auto", "search", "scan")]
        assert all(f.state == expected[0].state for f in found)
        before = oracle.touched
        oracle.best(0, 1, messages)
        assert oracle.touched - before <= 8 * k, "labels, not states"


@pytest.mark.parametrize("k", [90, 300])
def test_updatable_tables(k: int) -> None:
    """Their scan goes through entries and labels, not through states."""
    rng = np.random.default_rng(k)
    held = rng.random((k, k)) < 0.05
    positive = np.where(held, np.add.outer(rng.random(k), rng.random(k)), 0.0)
    for table in (positive, positive - 2 * positive * (rng.random((k, k)) < 0.5), np.zeros((k, k))):
        source = UpdatableTable((k, k), table, path="search")
        for messages in blocking(table, rng).values():
            expected = sorted_states(table, messages, [], 1)
            check(source, partial(source.best, 1, messages), messages, expected)
            before = source.touched
            source.best(1, messages, path="scan")
            assert source.touched - before <= 2 * (np.count_nonzero(table) + 4 * k)


def test_rankings() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(size=3000).round(1)
    ranking = Ranking(values)
    for messages in blocking(values, rng).values():
        expected = sorted_states(values, messages, [], 1)
        check(ranking, partial(ranking.best, 1, messages[0]), messages, expected)
