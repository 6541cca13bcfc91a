"""Benches are found by their names, each with a line of its own, and answer --help."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_every_file_with_a_main_is_listed_with_a_line(bench) -> None:
    """Parts of a bench have no `main`; a bench without its usage line would be found by nobody."""
    listed = dict(line.split(maxsplit=1) for line in bench("--list").stdout.splitlines() if line.startswith("  "))
    runnable = {
        path.stem
        for path in (ROOT / "bench").rglob("*.py")
        if not path.name.startswith("_") and "\ndef main(" in path.read_text(encoding="utf-8")
    }
    assert runnable == set(listed)
    assert all(line.strip() for line in listed.values())


@pytest.mark.parametrize("name", ["overhead", "unseen", "building"])
def test_a_bench_says_how_it_is_used(bench, name: str) -> None:
    done = bench(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


def test_a_name_that_is_not_known_is_refused_with_the_nearest(bench) -> None:
    done = bench("overhaed")
    assert done.returncode == 2
    assert "did you mean overhead?" in done.stderr
