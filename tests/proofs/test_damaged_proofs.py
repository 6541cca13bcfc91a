"""Damaged proofs, and proofs of damaged models, are refused in one sentence, unless what they say is still true."""

from __future__ import annotations

import ast
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, checker, solve
from fginfer.checker import MAGIC, NotVerified, Verdict, verify
from tests.exact.models import proof_graph
from tests.proofs.proof_support import check, counted, exact_optimum, head, steps_of


def still_true(graph: FactorGraph, verdict: Verdict | str) -> None:
    """Whatever is accepted is so."""
    if isinstance(verdict, str):
        assert verdict.startswith("not verified: step ")
        assert "\n" not in verdict
        return
    best = exact_optimum(graph)
    if verdict.kind == "infeasible":
        assert best is None
    elif best is not None:
        assert verdict.bound is not None
        assert verdict.bound >= best
        if verdict.kind == "optimal":
            assert verdict.score is not None
            assert best - verdict.score <= verdict.budget


@given(seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=250, deadline=None)
def test_a_changed_byte_or_a_missing_stretch_proves_nothing_false(seed: int, data: st.DataObject) -> None:
    graph = proof_graph(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        solve(graph, "bnb", gap=0.0, proof=folder / "run.proof")
        steps = bytearray(steps_of(folder / "run.proof"))
        begin = 8 + struct.unpack("<q", steps[:8])[0]
        at = data.draw(st.integers(begin, len(steps) - 1))
        how = data.draw(st.sampled_from(["byte", "gone", "twice", "cut"]))
        size = data.draw(st.integers(1, 40))
        if how == "byte":
            steps[at] = data.draw(st.integers(0, 255))
        elif how == "gone":
            del steps[at : at + size]
        elif how == "twice":
            steps[at:at] = steps[at : at + size]
        else:
            del steps[at:]
        still_true(graph, check(graph, folder, bytes(steps)))


@given(seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=150, deadline=None)
def test_of_a_damaged_model_nothing_false_is_proven(seed: int, data: st.DataObject) -> None:
    graph = proof_graph(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        solve(graph, data.draw(st.sampled_from(["bnb", "auto"])), gap=0.0, proof=folder / "run.proof")
        v = data.draw(st.integers(0, graph.n_variables - 1))
        scores = graph.unary(v)
        a = data.draw(st.integers(0, len(scores) - 1))
        change = np.zeros(len(scores))
        change[a] = data.draw(st.sampled_from([1.0, -1.0, 3.7, 1e-3, 50.0]))
        graph.add_factor([v], change)
        still_true(graph, check(graph, folder))


def small() -> FactorGraph:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[0.0, 1.0], [3.0, 2.0]])
    return graph


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (b"X" + counted([0, 1]) + b"S" + struct.pack("<ii", 1, 0) + b"QO" + struct.pack("<d", 3.0), "optimal"),
        (b"X" + counted([0, 1]) + b"S" + struct.pack("<ii", 1, 0) + b"QO" + struct.pack("<d", 2.0), "claims the score"),
        (b"X" + counted([0, 1]) + b"S" + struct.pack("<ii", 1, 1) + b"QO" + struct.pack("<d", 2.0), "claims optimal"),
        (b"X" + counted([0, 1]) + b"QI" + struct.pack("<d", 0.0), "claims infeasible"),
        (b"X" + counted([0, 1]) + b"QI" + struct.pack("<d", 1e9), "claims infeasible"),
        (b"X" + counted([0, 1]) + b"QI" + struct.pack("<d", np.inf), "does not say what it proves"),
        (b"X" + counted([0, 0]), "no variable 0"),
        (b"X" + counted([7]), "no variable 7"),
        (b"S" + struct.pack("<ii", 1, 2), "label that is not there"),
        (b"Z", "no rule b'Z'"),
        (b"E", "no rule b'E'"),
        (b"X" + struct.pack("<q", 1 << 60), "announces"),
        (b"X" + struct.pack("<q", -1), "announces"),
        (b"T" + counted([0]) + counted([]) + counted([]), "leaves out a variable"),
        (b"T" + counted([0, 0]) + counted([]) + counted([]), "twice"),
        (b"T" + counted([0, 1]) + counted([2]) + struct.pack("<2i", 0, 2) + counted([]), "it does not list"),
        (b"T" + counted([0, 1]) + counted([2]) + struct.pack("<2i", 0, 1) + counted([0, 0]), "does not lead"),
        (b"T" + counted([0, 1]) + counted([]) + counted([]) + b"E", "a node is left"),
        (b"T" + counted([0, 1]) + struct.pack("<q", 1 << 20), "announces"),
        (b"T" + counted([0, 1]) + counted([]) + struct.pack("<q", 1 << 20), "announces"),
        (b"T" + counted([0, 1]) + counted([]) + counted([]) + b"K" + struct.pack("<d2i", 2.5, -1, -1) + b"E", "a node"),
        (b"T" + counted([0, 1]) + counted([]) + counted([]) + b"K" + struct.pack("<d2i", np.inf, -1, -1), "not finite"),
        (
            b"T"
            + counted([0, 1])
            + counted([])
            + counted([])
            + b"K"
            + struct.pack("<d2i", 3.5, -1, -1)
            + b"EQU"
            + struct.pack("<d", np.inf),
            "bound 3.0",
        ),
        (b"D" + struct.pack("<3i", 0, 0, 1) + b"X" + counted([0, 1]) + b"QU" + struct.pack("<d", 3.0), "bound 3.0"),
        (b"D" + struct.pack("<3i", 0, 1, 0), "not always as good"),
        (b"D" + struct.pack("<3i", 0, 1, 1), "no such labels"),
        (b"", "ends too early"),
    ],
)
def test_each_rule_is_checked(tmp_path: Path, steps: bytes, said: str) -> None:
    assert said in str(check(small(), tmp_path, head(small()) + steps))


@pytest.mark.parametrize(
    ("floor", "steps", "said"),
    [
        (2.5, b"R" + struct.pack("<qBB", 1, 1, 0) + b"L", "verified: bound 3.0"),
        (2.5, b"R" + struct.pack("<qBB", 1, 1, 1) + b"L", "may be in a labeling above"),
        (2.4, b"R" + struct.pack("<qBB", 1, 1, 0) + b"L", "above the floor"),
        (None, b"R" + struct.pack("<qBB", 1, 1, 0) + b"L", "above the floor"),
        (2.5, b"B" + struct.pack("<i", 0) + b"L", "below its root"),
    ],
)
def test_a_tree_is_left_with_fewer_labels(tmp_path: Path, floor: float | None, steps: bytes, said: str) -> None:
    graph = small()
    tree = b"T" + counted([0, 1]) + counted([2]) + struct.pack("<2i", 0, 1) + counted([])
    # The other label of variable 0 is number 0 afterwards, and its elimination takes the two labels of variable 1.
    steps = tree + b"K" + struct.pack("<d2i", 2.5, -1, -1) + steps + b"X" + counted([0, 1]) + b"QU"
    assert said in str(check(graph, tmp_path, head(graph, floor) + steps + struct.pack("<d", np.inf)))


def test_messages_of_a_table_that_has_given_its_maxima_change_nothing(tmp_path: Path) -> None:
    graph = small()
    tree = b"T" + counted([0, 1]) + counted([2]) + struct.pack("<2i", 0, 1) + counted([])
    best = b"K" + struct.pack("<d2i", 0.0, 1, 0)
    # The link to variable 1 has places 2 and 3: in the child, variable 0 has its first label.
    message = b"M" + struct.pack("<hqBBqBb", 3, 1, 1, 3, 1, 1, 5)
    end = b"S" + struct.pack("<ii", 1, 0) + b"QO" + struct.pack("<d", 3.0)
    steps = tree + best + b"B" + struct.pack("<i", 0) + message + b"EE" + end
    assert str(check(graph, tmp_path, head(graph) + steps)).startswith("verified: optimal")


@pytest.mark.parametrize(
    "start",
    [
        b"",
        struct.pack("<q", 1 << 40),
        struct.pack("<q", 3) + b"[[[",
        struct.pack("<q", 2000) + b"[" * 2000,
        struct.pack("<q", 40) + b'{"variables": ' + b"9" * 26,
        struct.pack("<q", 54) + b'{"variables":2,"labels":4,"factors":1,"floor":"0x1p9"}'[:54],
    ],
)
def test_a_bad_head_is_one_sentence(tmp_path: Path, start: bytes) -> None:
    said = check(small(), tmp_path, start)
    assert isinstance(said, str)
    assert "\n" not in said


def test_what_is_no_proof_at_all(tmp_path: Path) -> None:
    assert "begin with FGPROOF2" in str(_about(tmp_path, b"hello"))
    assert "cannot be unpacked" in str(_about(tmp_path, MAGIC + b"hello world"))
    assert "ends too early" in str(_about(tmp_path, MAGIC))


def test_a_model_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    check(small(), tmp_path, b"")
    for text, said in (
        ("MARKOV 1 2000000000 0", "more than"),
        ("MARKOV 1 " + "9" * 10**6 + " 0", "whole number was expected"),
        ("MARKOV 1 3 1 1 0 3 1 1 0." + "1" * 10**6, "the head of the proof"),
    ):
        (tmp_path / "model.uai").write_text(text)
        (tmp_path / "run.proof").write_bytes(MAGIC + zlib.compress(struct.pack("<q", 1) + b"x"))
        tracemalloc.start()
        try:
            with pytest.raises(NotVerified, match=said) as refused:
                verify(str(tmp_path / "model.uai"), str(tmp_path / "run.proof"))
            assert len(str(refused.value)) < 500
            assert tracemalloc.get_traced_memory()[1] < 50_000_000
        finally:
            tracemalloc.stop()


def _about(folder: Path, data: bytes) -> Verdict | str:
    check(small(), folder, b"")
    (folder / "run.proof").write_bytes(data)
    try:
        return verify(str(folder / "model.npz"), str(folder / "run.proof"))
    except NotVerified as error:
        return str(error)


def test_a_proof_that_unpacks_to_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    bomb = head(small()) + b"X" + struct.pack("<q", 2) + bytes(200_000_000)
    check(small(), tmp_path, bomb)
    del bomb
    tracemalloc.start()
    try:
        with pytest.raises(NotVerified):
            verify(str(tmp_path / "model.npz"), str(tmp_path / "run.proof"))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_the_checker_imports_nothing_of_fginfer() -> None:
    source = Path(checker.__file__).read_text()
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert not {name for name in imported if "fginfer" in name}
    assert imported - {"numpy"} <= set(sys.stdlib_module_names)
