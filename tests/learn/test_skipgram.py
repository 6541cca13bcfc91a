"""SkipGram: counts by hand, the objective by its definition, every method, runs that go on, word2vec's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fginfer.errors import DataError, FormatError, SettingsError
from fginfer.learn import SkipGram
from fginfer.learn.embedding.descent import SkipGramDescent
from fginfer.learn.embedding.text import meetings, read_text


def sentences(n: int = 400, seed: int = 0) -> list[str]:
    """Two topics of twelve words each, and words that go with both."""
    rng = np.random.default_rng(seed)
    text = []
    for _ in range(n):
        topic = "ab"[rng.integers(0, 2)]
        words = [f"{topic}{rng.integers(0, 12)}" if rng.random() < 0.8 else f"c{rng.integers(0, 6)}" for _ in range(9)]
        text.append(" ".join(words))
    return text


def test_pairs_are_counted_within_sentences_and_windows() -> None:
    text = read_text(["x y z x", ["y", "rare", "x"]], 2, 0.0, 0)
    assert text.vocabulary == ["x", "y"]
    assert text.counts.tolist() == [3, 2]
    assert meetings(text, 1).toarray().tolist() == [[0, 3], [3, 0]]  # x y x, and y x
    assert meetings(text, 2).toarray()[0, 0] == 2


def test_frequent_words_are_dropped() -> None:
    text = read_text(["the " * 5000 + "a b " * 20], 5, 1e-3, 0)
    the = int((text.words == text.vocabulary.index("the")).sum())
    frequency = 5000 / 5040
    assert the == pytest.approx(5000 * np.sqrt(1e-3 / frequency), rel=0.25)


def test_the_objective_is_the_one_of_the_collapsed_form() -> None:
    text = read_text(sentences(60), 1, 0.0, 0)
    solver = SkipGramDescent(text, 5, 3, 2, 0.05, 1.0, 0, {"method": "exact"})
    while not solver.advance(0.0):
        pass
    z = solver.input.astype(float) @ solver.output.T.astype(float)
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    counts = meetings(text, 3).toarray()
    assert solver.measure().primal == pytest.approx(-(counts / counts.sum() * log_p).sum(), rel=1e-5)


@pytest.mark.parametrize("method", ["exact", "search", "decomposed"])
def test_every_method_descends_and_separates_topics(method: str) -> None:
    model = SkipGram(
        size=12, window=4, subsample=0.0, method=method, queries=20, blocks=3, max_iter=8, eval_every=1, step0=0.05
    ).fit(sentences())
    values = [p.primal for p in model.trace_]
    assert values[-1] < values[0]
    assert values[-1] == pytest.approx(min(v for v in values if v is not None), rel=1e-2)
    assert model.objective_ == values[-1]
    near = [word for word, _ in model.most_similar("a3", 8)]
    assert sum(word.startswith("a") for word in near) >= 7
    assert "a3" not in near
    assert model.transform(["a1 a2 nothing", "unknown"]).shape == (2, 12)
    assert "a1" in model
    assert "unknown" not in model


def test_searches_that_find_everything_give_the_exact_steps() -> None:
    text = sentences(120)
    rows = [
        SkipGram(size=6, window=3, method=m, queries=28, keep=28, probes=None, blocks=2, max_iter=3, subsample=0)
        .fit(text)
        .embedding_
        for m in ("exact", "search", "decomposed")
    ]
    assert len(read_text(text, 5, 0.0, 0).vocabulary) >= 28
    assert np.allclose(rows[0], rows[1], atol=0.05)
    assert np.allclose(rows[0], rows[2], atol=0.05)


def test_runs_stop_and_go_on(tmp_path: Path) -> None:
    text = sentences(150)
    options: dict[str, Any] = {"size": 8, "window": 3, "method": "exact", "subsample": 0.0}
    whole = SkipGram(**options, max_iter=4).fit(text)
    path = tmp_path / "run.npz"
    SkipGram(**options, max_iter=2, checkpoint=path).fit(text)
    rest = SkipGram(**options, max_iter=4, checkpoint=path).fit(text)
    assert (rest.embedding_ == whole.embedding_).all()
    with pytest.raises(SettingsError, match="other data or settings"):
        SkipGram(**{**options, "eta": 0.5}, checkpoint=path).fit(text)
    assert SkipGram(**options, max_iter=10**6, time_limit=0.3).fit(text).status_ == "time_limit"


def test_files_in_word2vecs_format(tmp_path: Path) -> None:
    model = SkipGram(size=5, window=3, method="exact", max_iter=2, subsample=0).fit(sentences(100))
    path = tmp_path / "words.txt"
    model.save(path)
    assert path.read_text().splitlines()[0] == f"{len(model.vocabulary_)} 5"
    again = SkipGram.load(path)
    assert again.vocabulary_ == model.vocabulary_
    assert (again.embedding_ == model.embedding_).all()
    assert again.most_similar("a1", 3) == model.most_similar("a1", 3)
    for text, line in (
        ("1 x\n", 1),
        ("1 2\nw 1\n", 2),
        ("1 2\nw 1 b\n", 2),
        ("1 2\nw 1 nan\n", 2),
        ("2 1\nw 1\n", None),
    ):
        path.write_text(text)
        with pytest.raises(FormatError) as caught:
            SkipGram.load(path)
        assert caught.value.line == line
    with pytest.raises(FormatError):
        SkipGram.load(tmp_path / "absent.txt")


def test_bad_input() -> None:
    for wrong in (
        {"size": 0}, {"size": 2000}, {"window": 0}, {"method": "guess"}, {"eta": 0.0}, {"probes": 0}, {"queries": 1000},
        {"blocks": 9, "size": 8}, {"time_limit": -1},
    ):  # fmt: skip
        with pytest.raises(SettingsError):
            SkipGram(**{"size": 8, **wrong}).fit(sentences(50))
    with pytest.raises(DataError, match="min_count"):
        SkipGram().fit(["a b c"])
    with pytest.raises(DataError, match="one string"):
        SkipGram().fit("a b c")
    with pytest.raises(DataError, match="sentence 1"):
        SkipGram().fit(["a b", [1, 2]])
    model = SkipGram(size=4, method="exact", max_iter=1).fit(sentences(60))
    with pytest.raises(DataError, match="vocabulary"):
        model.most_similar("nobody")
    with pytest.raises(DataError, match="4 numbers"):
        model.most_similar(np.zeros(3))
    with pytest.raises(DataError, match="finite"):
        model.most_similar(np.full(4, np.nan))
