"""The page of checks says what has run: its table is made from the ledger that the testers write."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture
def ledger() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ledger_of_truth", HERE / "truth" / "ledger.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_ledger_says(ledger: ModuleType) -> None:
    page = ledger.PAGE.read_text()
    lines = ledger.lines_of(ledger.RAN.read_text())
    assert lines
    assert page == ledger.page_with(page, ledger.table(lines)), "python tests/truth/ledger.py writes the page anew"


def test_counts_add_up(ledger: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ran.csv"
    ledger.note("a.py", "solves", 5, 0)  # no ledger is wanted
    assert not file.exists()
    monkeypatch.setenv("TRUTH_LEDGER", str(file))
    for build, count, wrong in (("one", 5, 0), ("one", 1000, 2), ("two", 7, 0)):
        monkeypatch.setenv("TRUTH_BUILD", build)
        ledger.note("a.py", "solves", count, wrong)
    call = [sys.executable, str(HERE / "truth" / "ledger.py"), "note", "fuzz.sh", "inputs", "30", "0"]
    subprocess.run(call, check=True)
    lines = ledger.lines_of(file.read_text())
    assert [line[1:] for line in lines] == [
        ("one", "a.py", "solves", 1005, 2),
        ("two", "a.py", "solves", 7, 0),
        ("two", "fuzz.sh", "inputs", 30, 0),
    ]
    made = ledger.table(lines)
    assert "| `a.py` | 1,012 solves | 2 | 2 | two, " in made
    assert made.splitlines()[2].endswith("| 7 |")


def test_a_tester_writes_what_it_has_tried(ledger: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ran.csv"
    monkeypatch.setenv("TRUTH_LEDGER", str(file))
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)  # testers import their neighbours
    call = [sys.executable, str(HERE / "truth" / "differential_changes.py"), "--stories", "2"]
    subprocess.run(call, check=True)
    (line,) = ledger.lines_of(file.read_text())
    assert line.tester == "differential_changes.py"
    assert line.count > 0
    assert line.wrong == 0
