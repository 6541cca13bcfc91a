"""The walks through the code lead where they say, and from solve() to the core it is not far."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fginfer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how" / "walks.md").read_text(encoding="utf-8")


def test_every_path_exists() -> None:
    paths = set(re.findall(r"`((?:csrc|fginfer|tests|models)/[\w./]*)`", PAGE))
    assert len(paths) > 40
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_every_function_of_the_core_exists() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "csrc").rglob("*.[ch]"))
    names = set(re.findall(r"`(fgi_\w+)`", PAGE))
    assert len(names) > 5
    assert sorted(name for name in names if not re.search(rf"\b{name}\(", sources)) == []


def test_a_walk_has_about_ten_lines() -> None:
    for walk in PAGE.split("\n## ")[1:-1]:
        assert len(re.findall(r"^\d+\. ", walk, flags=re.MULTILINE)) == 10


def frames_to_the_core(call: Callable[[], object]) -> int:
    """The most Python frames from fginfer.solve to a call of fgi_solver_run, both ends counted."""
    deepest = 0

    def look(frame: FrameType, event: str, called: Any) -> None:
        nonlocal deepest
        if event != "c_call" or getattr(called, "__name__", "") != "fgi_solver_run":
            return
        frames, at = 1, frame
        while at.f_code is not fginfer.solve.__code__:
            assert at.f_back is not None
            frames, at = frames + 1, at.f_back
        deepest = max(deepest, frames)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return deepest


@pytest.mark.parametrize("limit", [None, 10.0])
def test_from_solve_to_a_method_of_the_core_are_at_most_eight_frames(limit: float | None) -> None:
    model = ROOT / "models" / "grid.uai"
    assert 1 < frames_to_the_core(lambda: fginfer.solve(model, "trws", max_iterations=3, time_limit=limit)) <= 8
