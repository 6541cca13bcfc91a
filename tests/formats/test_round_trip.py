"""What is written is what is read: every format, any model it can hold, every score bit for bit."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import AbsDiff, FactorGraph, FormatError, Potts, SqDiff
from fginfer.formats.assembly import Factors

FINITE = st.floats(-1e300, 1e300, allow_subnormal=True)
POTENTIALS = st.one_of(st.floats(-700, 700), st.floats(-3, 3), st.floats(-1e-12, 1e-12)).map(
    lambda s: s if abs(s) > 1e-30 else 0.0
)
LOGS = st.floats(1e-300, 1e300).map(math.log)
WHOLE = st.integers(-(10**9), 0).map(float)
DECIMAL = st.one_of(st.floats(-1e6, 1e6), st.decimals(-100, 100, places=3).map(float))

# format: extension, scores it can hold, weights that keep them so
HOLDS = {
    "npz": (".npz", FINITE, st.floats(1e-3, 1e3)),
    "lg": (".LG", FINITE, st.floats(1e-3, 1e3)),
    "uai": (".uai", st.one_of(POTENTIALS, LOGS), st.floats(0.5, 1)),
    "opengm": (".h5", FINITE, st.floats(1e-3, 1e3)),
    "wcsp": (".wcsp", WHOLE, st.integers(1, 5).map(float)),
    "cfn": (".cfn", DECIMAL, st.floats(1e-3, 1e3)),
    "qubo": (".qubo", st.one_of(DECIMAL, FINITE), st.just(1.0)),
}
COMPRESSED = ["", ".gz", ".xz", ".bz2"]


def quadratic(draw: st.DrawFn, values: st.SearchStrategy[float]) -> FactorGraph:
    """Scores of single variables that are 1, and of pairs that both are: all that a binary quadratic model has."""
    n = draw(st.integers(0, 5))
    some = values.filter(bool)
    graph = FactorGraph(np.full(n, 2))
    for i in range(n):
        graph.add_factor([i], [0.0, draw(st.one_of(st.just(0.0), some))])
        for j in range(i + 1, n):
            if draw(st.booleans()):
                graph.add_factor([i, j], [[0.0, 0.0], [0.0, draw(some)]])
    return graph


@st.composite
def graphs(draw: st.DrawFn, name: str) -> FactorGraph:
    _, finite, weights = HOLDS[name]
    if name == "qubo":
        return quadratic(draw, finite)
    score = st.one_of(finite, finite, finite, st.just(-math.inf))
    positive = finite.map(abs)
    cards = draw(st.lists(st.integers(1, 4), max_size=4))
    graph = FactorGraph(np.array(cards, int))
    for _ in range(draw(st.integers(0, 6))):
        scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(0, 3))]
        shape = tuple(cards[v] for v in scope)
        if len(scope) < 2:
            graph.add_factor(
                scope,
                np.array(draw(score)) if not scope else draw(st.lists(score, min_size=shape[0], max_size=shape[0])),
            )
            continue
        weight = draw(st.one_of(st.just(1.0), weights))
        flipped = len(scope) == 2 and draw(st.booleans())
        if len(scope) == 2 and draw(st.booleans()):
            kind = draw(st.sampled_from([Potts, AbsDiff, SqDiff]))
            if kind is Potts:
                table: object = Potts(draw(score), draw(score))
            else:
                whole = name == "wcsp"
                truncation = draw(
                    st.one_of(st.just(math.inf), st.integers(1, 5).map(float) if whole else st.floats(0.1, 20))
                )
                unit = draw(positive)
                table = kind(unit if whole or name == "cfn" else min(unit, 10.0), truncation)
        else:
            shape = shape[::-1] if flipped else shape
            entries = draw(st.lists(score, min_size=math.prod(shape), max_size=math.prod(shape)))
            table = np.array(entries).reshape(shape)
        try:
            graph.add_factor(scope, table, weight=weight, transposed=flipped)
        except fginfer.ModelError:  # the weight makes a score overflow
            continue
    return graph


def contents(graph: FactorGraph) -> tuple[object, ...]:
    """Everything that a file must preserve, with the variables of each factor in ascending order."""
    factors = Factors(graph)
    listed = []
    for variables, key in factors:
        order = sorted(range(len(variables)), key=variables.__getitem__)
        scores = factors.scores(key).transpose(order) + 0.0
        listed.append((tuple(variables[k] for k in order), scores.shape, scores.tobytes()))
    unary = factors.arrays.unary
    assert unary is not None
    return graph.cards.tolist(), graph.constant + 0.0, (unary + 0.0).tobytes(), listed


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLDS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    extension = HOLDS[name][0]
    counter = itertools.count()

    @settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(graphs(name), st.sampled_from(COMPRESSED))
    def check(graph: FactorGraph, suffix: str) -> None:
        path = tmp_path / f"m{next(counter)}{extension}{suffix}"
        refusal = ""
        try:
            fginfer.write(graph, path)
        except FormatError as error:  # sums or weights pushed a score out of what the format holds
            refusal = str(error)
        if refusal:  # or no method could take the model, whatever it is written to
            assert "scores underflow" in refusal or (name in ("uai", "wcsp") and "write ." in refusal)
            assert not path.exists()
            return
        again = fginfer.read(path)
        assert contents(again) == contents(graph)
        most = max(graph.to_arrays().n_tables, len(graph.factors()))
        assert again.to_arrays().n_tables <= (max(most, 2) if name == "qubo" else most)  # one table and its negative
        twice = path.with_name(f"again{extension}{suffix}")
        fginfer.write(again, twice)
        assert contents(fginfer.read(twice)) == contents(graph)

    check()


@pytest.mark.parametrize("name", ["npz", "opengm", "wcsp", "cfn", "uai", "lg"])
def test_shared_tables_stay_shared(name: str, tmp_path: Path) -> None:
    table = -np.arange(12.0).reshape(3, 4)
    graph = FactorGraph([3, 4] * 30)
    for i in range(0, 58, 2):
        graph.add_factor([i, i + 1], table)
        graph.add_factor([i + 2, i + 1], table)
    path = tmp_path / f"shared{HOLDS[name][0]}"
    fginfer.write(graph, path)
    again = fginfer.read(path)
    assert again.to_arrays().n_tables == 1
    assert len(again.to_arrays().values) == 12
    assert again.n_factors == 58
    assert contents(again) == contents(graph)
    if name in ("npz", "opengm", "wcsp", "cfn"):
        single = tmp_path / f"single{HOLDS[name][0]}"
        one = FactorGraph([3, 4] * 30)
        one.add_factor([0, 1], table)
        fginfer.write(one, single)
        assert path.stat().st_size < single.stat().st_size + 58 * 60 + 1000


@pytest.mark.parametrize("name", ["npz", "opengm"])
def test_implicit_tables_stay_implicit(name: str, tmp_path: Path) -> None:
    graph = FactorGraph([1000] * 6)
    tables = [Potts(0, -1.5), AbsDiff(2.0, 3.0), SqDiff(0.5), Potts(1.0, -math.inf), AbsDiff(0.25)]
    for k, table in enumerate(tables):
        graph.add_factor([k, k + 1], table, weight=2.0)
    path = tmp_path / f"implicit{HOLDS[name][0]}"
    fginfer.write(graph, path)
    again = fginfer.read(path)
    assert len(again.to_arrays().values) == 0
    assert contents(again) == contents(graph)
    assert path.stat().st_size < 200_000


def test_ordinary_numbers_come_back_as_they_were_written(tmp_path: Path) -> None:
    text = "MARKOV\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n0.3 0.7\n\n6\n0.1 0.25 1e-10\n1 0 12345.678\n"
    (tmp_path / "a.uai").write_text(text)
    fginfer.write(fginfer.read(tmp_path / "a.uai"), tmp_path / "b.uai")
    assert (tmp_path / "b.uai").read_text() == text


def test_scores_near_zero_are_exact_in_uai(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 3000
    scores = np.concatenate(
        [rng.normal(size=n), rng.normal(size=n) * 10.0 ** rng.uniform(-30, 0, n), rng.uniform(-700, 700, n)]
    )
    graph = FactorGraph([1, len(scores)])
    graph.add_factor([0, 1], scores[None, :])
    fginfer.write(graph, tmp_path / "m.uai")
    assert np.array_equal(fginfer.read(tmp_path / "m.uai").to_arrays().values, scores)
    tokens = (tmp_path / "m.uai").read_text().split()[-len(scores) :]
    plain = np.array([math.log(float(t)) for t in tokens])  # what any other reader sees
    assert np.abs(plain - scores).max() <= 1e-15 * np.maximum(1, np.abs(scores)).max()
    assert (np.abs(plain - scores) <= 1e-15 * np.maximum(1, np.abs(scores))).all()


@pytest.mark.parametrize(("score", "size"), [(-800.0, "small"), (800.0, "large"), (-744.2, "small")])
def test_potentials_out_of_range_are_refused(tmp_path: Path, score: float, size: str) -> None:
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([1, 2], [[0.0, 1.0], [score, 2.0]])
    with pytest.raises(FormatError, match=rf"variables 1 2, entry 2 .* too {size} .* \.LG or \.npz"):
        fginfer.write(graph, tmp_path / "m.uai")
    assert list(tmp_path.iterdir()) == []
    fginfer.write(graph, tmp_path / "m.LG")
    assert contents(fginfer.read(tmp_path / "m.LG")) == contents(graph)


def test_bayesian_networks(tmp_path: Path) -> None:
    graph = FactorGraph([2, 2, 1])
    graph.add_factor([0], np.log([0.25, 0.75]))
    with np.errstate(divide="ignore"):
        graph.add_factor([0, 1], np.log([[0.5, 0.5], [0.0, 1.0]]))
    fginfer.write(graph, tmp_path / "m.uai", format="bayes")
    assert (tmp_path / "m.uai").read_text().startswith("BAYES\n3\n2 2 1\n3\n1 0\n2 0 1\n1 2\n")
    again = fginfer.read(tmp_path / "m.uai")
    assert contents(again) == contents(graph)
    graph.add_factor([1, 0], np.log([[0.5, 0.5], [0.5, 0.5]]))
    with pytest.raises(FormatError, match="unary scores"):
        fginfer.write(graph, tmp_path / "n.uai", format="bayes")
    other = FactorGraph([2])
    other.add_factor([0], [1.0, 2.0])
    with pytest.raises(FormatError, match="do not sum to 1"):
        fginfer.write(other, tmp_path / "n.uai", format="bayes")


@pytest.mark.parametrize("score", [-0.5, 1.0, -(2.0**63)])
def test_wcsp_refuses_what_it_cannot_hold(tmp_path: Path, score: float) -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[0.0, score], [0.0, 0.0]])
    with pytest.raises(FormatError, match=r"entry 1 .* write \.cfn"):
        fginfer.write(graph, tmp_path / "m.wcsp")


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    good, bad = FactorGraph([2]), FactorGraph([2])
    good.add_factor([0], [1.0, 2.0])
    bad.add_factor([0], [1.0, 2000.0])
    fginfer.write(good, tmp_path / "m.uai")
    before = (tmp_path / "m.uai").read_bytes()
    with pytest.raises(FormatError):
        fginfer.write(bad, tmp_path / "m.uai")
    assert (tmp_path / "m.uai").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.uai"]
    with pytest.raises(FormatError, match="cannot be written"):
        fginfer.write(good, tmp_path / "none" / "m.uai")
    with pytest.raises(FormatError, match=r"unknown extension '\.txt'"):
        fginfer.write(good, tmp_path / "m.txt")
    with pytest.raises(FormatError, match="no format 'foo'"):
        fginfer.read(tmp_path / "m.uai", format="foo")
    fginfer.write(good, tmp_path / "m.txt", format="uai")
    assert (tmp_path / "m.txt").read_bytes() == before


def test_evidence_reduces_the_model(tmp_path: Path) -> None:
    graph = FactorGraph([2, 3, 2])
    rng = np.random.default_rng(0)
    for pair in ([0, 1], [1, 2], [0, 2]):
        graph.add_factor(pair, rng.normal(size=[int(graph.cards[v]) for v in pair]))
    fginfer.write(graph, tmp_path / "m.uai")
    (tmp_path / "m.evid").write_text("1\n1 1 2")
    reduced = fginfer.read(tmp_path / "m.uai", evidence=tmp_path / "m.evid")
    assert reduced.n_variables == 2
    for a in range(2):
        for b in range(2):
            assert reduced.score([a, b]) == pytest.approx(graph.score([a, 2, b]), abs=1e-14)
