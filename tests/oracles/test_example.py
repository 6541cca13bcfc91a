"""The learner of docs/oracles.md, as it is printed there, learns on graphs with cycles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import fginfer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "oracles.md"


def printed() -> tuple[Any, int]:
    code = re.search(r"forty lines.*?```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code.group(1), names)
    return names["GraphPerceptron"], len([line for line in code.group(1).splitlines() if line.strip()])


def grid(rng: np.random.Generator, k: int, side: int) -> tuple[Any, Any, Any]:
    """Labels that grow by one to the right and downwards (mod k), seen through noisy features."""
    row, col = np.divmod(np.arange(side * side), side)
    truth = (rng.integers(0, k) + col + row) % k
    seen = np.where(rng.random(len(truth)) < 0.4, rng.integers(0, k, len(truth)), truth)
    at = np.arange(side * side).reshape(side, side)
    right = np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()])
    edges = np.concatenate([right, np.column_stack([at[:-1].ravel(), at[1:].ravel()])])
    return np.eye(k)[seen] + rng.normal(0, 0.1, (side * side, k)), truth, edges


def accuracy(model: Any, data: list[tuple[Any, Any, Any]]) -> float:
    right = []
    for X, truth, edges in data:
        graph = fginfer.FactorGraph.from_arrays(
            [model.k] * len(X), X @ model.w, edges, tables=[model.bigrams.to_array()]
        )
        labels = fginfer.solve(graph, "trws", max_iterations=20).labels
        assert labels is not None
        right.append(float(np.mean(labels == truth)))
    return float(np.mean(right))


def test_the_example_learns() -> None:
    learner, lines = printed()
    assert lines < 48
    rng = np.random.default_rng(0)
    train, test = ([grid(rng, 6, 6) for _ in range(n)] for n in (30, 10))
    model = learner(6, 6, threads=2)
    wrong = [np.mean([model.update(*g, rate=0.1, decay=0.999) for g in train]) for _ in range(8)]
    assert wrong[-1] < wrong[0]
    alone = float(np.mean([np.mean(X.argmax(1) == truth) for X, truth, _ in test]))
    assert accuracy(model, test) > alone + 0.1
    assert model.bigrams.work["calls"] == 8 * sum(len(edges) for _, _, edges in train)
