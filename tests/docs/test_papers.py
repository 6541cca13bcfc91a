"""docs/papers.md: every algorithm, theorem, table and figure has a row, and what a row names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
VERDICTS = ("reproduced", "better", "replaced", "part", "not done")

# What the papers number, as their texts have it; their first theorems come again in appendices.
THINGS = {
    "Yan 2018": {
        "Algorithm": [str(k) for k in range(1, 14)],
        "Theorem": [str(k) for k in range(1, 20)],
        "Table": [*(f"2.{k}" for k in range(1, 8)), *(f"3.{k}" for k in range(1, 6)), "4.1", "4.2", "C.1"],
        "Figure": ["2.1", *(f"3.{k}" for k in range(1, 8)), *(f"4.{k}" for k in range(1, 8))],
    },
    "structured learning": {"Algorithm": list("1234"), "Theorem": list("12"), "Figure": list("123")},
    "BCFW": {
        "Algorithm": [*"234", "B.1", "C.1", "C.2"],
        "Theorem": [*"123", "C.1", "C.3", "C.4", "C.5"],
        "Table": ["1"],
        "Figure": list("12345"),
    },
    "DCD-SSVM": {"Table": ["1"], "Figure": list("123")},
    "Prox-QN": {"Algorithm": list("12"), "Table": list("12"), "Figure": list("12345678")},
}


def rows() -> list[tuple[str, list[str]]]:
    """The heading over each row of the papers, and the row's cells."""
    found, heading = [], ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("|") and not line.startswith(("|---", "| thesis |", "| paper |", "| column |")):
            found.append((heading, [cell.strip() for cell in line.strip("|").split("|")]))
    return [(h, cells) for h, cells in found if not h.startswith("Methods of")]


ROWS = rows()


@pytest.mark.parametrize("paper", THINGS)
def test_everything_numbered_has_a_row(paper: str) -> None:
    first = " ".join(cells[0] for heading, cells in ROWS if paper in heading)
    for kind, numbers in THINGS[paper].items():
        named = re.findall(kind + r" ([A-Z]?\.?\d+(?:\.\d+)?)", first)
        assert sorted(set(named)) == sorted(numbers), f"{paper}: {kind}"


def test_rows_are_whole() -> None:
    assert len(ROWS) > 60
    for _, cells in ROWS:
        assert len(cells) == 7, cells[0]
        what, code, test, command, _, _, verdict = cells
        assert all((code, test, command)), what
        assert verdict.startswith(VERDICTS), what
        if verdict.startswith("not done"):
            assert "because" in verdict, what


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_what_is_named_is_there() -> None:
    for _, cells in ROWS:
        for path in re.findall(r"`([^`]+)`", cells[1]):
            assert not path.count("/") or (ROOT / path).exists(), path
        for name in re.findall(r"`([^`]+)`", cells[2]):
            path, _, function = name.partition("::")
            assert (ROOT / path).exists(), name
            assert not function or function in functions(ROOT / path), name


def test_commands_are_known(bench) -> None:
    run = bench("papers")
    assert run.returncode == 0, run.stderr
    listed = dict(zip(*[iter(run.stdout.splitlines())] * 2, strict=True))
    known = {line.split()[0] for line in listed}
    benches = {path.stem for path in (ROOT / "bench").rglob("*.py")}
    for line in listed.values():
        assert line.split()[3] in benches, line
    used = {name for _, cells in ROWS for name in re.findall(r"`([^`]+)`", cells[3])}
    assert used <= known
    assert known - used == set(), "a command that no row names"


def test_a_command_without_its_folder_says_so(bench) -> None:
    run = bench("papers", "table3.2")
    assert run.returncode == 2
    assert "table3.2 needs a folder: INSTANCES" in run.stderr
