"""A solve in a notebook: a bar in place of red text, and a Stop button that keeps what was found."""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph
from fginfer.notebook import bar_html
from fginfer.result import Progress


@pytest.fixture
def hard() -> FactorGraph:
    """A model that nobody proves in a moment."""
    rng = np.random.default_rng(0)
    graph = FactorGraph([6] * 40)
    for i in range(40):
        for j in range(i):
            graph.add_factor([i, j], rng.normal(size=(6, 6)))
    return graph


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook would show, by a stand-in for the two functions of IPython that are asked."""
    seen: list[str] = []

    class Handle:
        def update(self, picture: str) -> None:
            seen.append(picture)

    def display(picture: str, *, display_id: bool) -> Handle:
        assert display_id
        seen.append(picture)
        return Handle()

    shell = SimpleNamespace(kernel=object())
    module: Any = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(HTML=str, display=display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    return seen


@pytest.mark.parametrize("more", [{}, {"method": "bnb"}, {"parts": 2}, {"evidence": {0: 1}}])
def test_stop_keeps_what_was_found(hard: FactorGraph, more: dict[str, Any]) -> None:
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        seen.append(progress)
        if progress.score is not None:
            signal.raise_signal(signal.SIGINT)

    result = fginfer.solve(hard, callback=stop, on_interrupt="return", **more)
    assert result.status == "interrupted"
    assert result.score is not None
    assert result.score >= seen[-1].score
    assert result.bound >= result.score
    assert np.isclose(result.score, hard.score(result.labels))


def test_ctrl_c_raises_unless_asked_not_to(hard: FactorGraph) -> None:
    with pytest.raises(KeyboardInterrupt):
        fginfer.solve(hard, callback=lambda _: signal.raise_signal(signal.SIGINT))


def test_another_word_is_refused(hard: FactorGraph) -> None:
    with pytest.raises(fginfer.SettingsError, match='on_interrupt must be "raise" or "return", not \'keep\''):
        fginfer.solve(hard, on_interrupt="keep")


def test_a_bar_moves_and_the_log_is_not_red(
    hard: FactorGraph, pictures: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    result = fginfer.solve(hard, time_limit=0.7, verbose=True)
    assert len(pictures) >= 3
    assert "value='1'" in pictures[-1]
    assert "value='1'" not in pictures[0]
    assert f"{result.score:.4f}" in pictures[-1]
    said = capsys.readouterr()
    assert "scores are maximised" in said.out
    assert said.err == ""


def test_there_is_no_bar_without_a_wish_for_one(hard: FactorGraph, pictures: list[str]) -> None:
    fginfer.solve(hard, time_limit=0.1)
    assert pictures == []


def test_outside_of_notebooks_the_log_goes_to_stderr(hard: FactorGraph, capsys: pytest.CaptureFixture[str]) -> None:
    fginfer.solve(hard, time_limit=0.1, verbose=True)
    said = capsys.readouterr()
    assert "scores are maximised" in said.err
    assert said.out == ""


def test_a_bar_says_what_is_known() -> None:
    nothing = bar_html(Progress(0.5, 1, None, None), None, done=False)
    assert " value=" not in nothing
    assert "gap -" in nothing
    half = bar_html(Progress(0.5, 1, 2.0, 3.0, unit=1.0), 1.0, done=False)
    assert "value='0.500'" in half
    assert "score 2.0000, bound 3.0000, gap 5.0e-01" in half
