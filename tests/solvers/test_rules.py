"""The table of numbers that auto decides by: complete, checked, and carried by each run."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, SettingsError, solve
from fginfer.portfolio.rules import Rules, rows

PORTFOLIO = Path(fginfer.__file__).parent / "portfolio"


def grid(n: int) -> FactorGraph:
    rng = np.random.default_rng(0)
    return FactorGraph.grid((n, n), rng.normal(size=(n, n, 3)), rng.normal(size=(3, 3)))


def test_every_row_has_a_unit_a_sentence_and_a_value_in_its_range() -> None:
    for row in rows():
        assert row.unit
        assert row.sentence.endswith(".")
        assert not row.sentence.endswith("...")
        assert row.low <= row.value <= row.high


def test_every_row_is_read_somewhere() -> None:
    read = {
        node.attr
        for path in PORTFOLIO.rglob("*.py")
        if path.name != "rules.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    assert {row.name for row in rows()} <= read


# What is no rule: roundings (2^-52, 2^-51), a cap of an exponent (64), the default of the option `memory` (2^30), the
# entries of a binary table (4), and the longest that a thread waits before it looks again (60 s).
HARMLESS = {0, 1, 2, -1, 51, 52, 64, 30, 4, 60.0}


def test_no_number_steers_outside_the_table() -> None:
    for path in PORTFOLIO.rglob("*.py"):
        if path.name != "rules.py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    assert node.value in HARMLESS, f"{path.name}, line {node.lineno}: {node.value}"


def test_a_changed_rule_is_one_of_this_run_alone() -> None:
    graph = grid(6)
    plain, tried = solve(graph), solve(graph, rules={"tiny_states": 0, "quick_work": 0, "quick_passes": 0})
    assert plain.score == tried.score
    assert plain.statistics != tried.statistics
    again = solve(graph).statistics
    assert {k: v for k, v in again.items() if "seconds" not in k} == {
        k: v for k, v in plain.statistics.items() if "seconds" not in k
    }
    assert Rules() == replace(Rules())


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"tiny_state": 0}, "tiny_states"),
        ({"tiny_states": "many"}, "must be a number"),
        ({"tiny_states": -1}, "from 0 to inf"),
        ({"looks": float("nan")}, "must be a number"),
        (3, "a dict of names and numbers"),
    ],
)
def test_rules_that_do_not_fit(rules: object, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        solve(grid(2), rules=rules)  # type: ignore[arg-type]
