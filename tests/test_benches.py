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


def test_problems_of_the_competition_are_scored_as_their_organisers_did(bench, tmp_path: Path) -> None:
    """The base of pedigree1 is -54.5 and its record -45.6; with this evidence the best value is log10 of 1e-50."""
    (tmp_path / "pedigree1.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 1e-50 1e-60 1e-70\n")
    (tmp_path / "pedigree1.uai.evid").write_text("1 1 1\n")
    (tmp_path / "unknown.uai").write_text("MARKOV\n1\n2\n0\n")
    done = bench("uai2022", str(tmp_path), "--seconds", "5")
    assert done.returncode == 0, done.stderr
    row, last = done.stdout.splitlines()[1:]
    assert row.split()[:6] == ["pedigree1", "-50.000", "-45.6", "-45.6", f"{100 * 4.5 / 8.9:.2f}", "below"]
    assert last.startswith("1 of 103 problems · mean score 50.56 · 0 at, 0 above, 1 below")
    assert "1 proven" in last


def test_a_folder_without_problems_of_the_competition_is_refused(bench, tmp_path: Path) -> None:
    done = bench("uai2022", str(tmp_path))
    assert done.returncode == 2
    assert "pedigree1.uai" in done.stderr
