"""A slice of what tests/truth runs for hours, and that its testers notice what is false."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TRUTH = str(Path(__file__).resolve().parent / "truth")


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(TRUTH)
    import differential_changes

    yield differential_changes
    for name in [
        name for name, module in sys.modules.items() if (module.__dict__.get("__file__") or "").startswith(TRUTH)
    ]:
        del sys.modules[name]


def test_stories_of_changes_and_questions(changes: Any) -> None:
    asked: set[str] = set()
    for seed in range(60):
        _, names, found = changes.tell(seed, list(changes.QUESTIONS))
        assert found is None, found
        asked.update(names)
    assert asked == set(changes.QUESTIONS)


@pytest.mark.parametrize("question", ["solve", "condition", "file", "parts", "k_best", "max_marginals", "marginals"])
def test_a_story_that_is_told_wrongly_is_noticed(changes: Any, question: str) -> None:
    kept = changes.Kept(np.random.default_rng(3))
    kept.graph.set_unary(0, np.arange(2.0, 2.0 + kept.graph.cards[0]))
    asker = changes.Asker(np.random.default_rng(4), kept)
    asker.truth = kept.model.scores()
    with pytest.raises(changes.Falsehood):
        kept.compare()
    with pytest.raises(changes.Falsehood):
        changes.QUESTIONS[question](asker)
