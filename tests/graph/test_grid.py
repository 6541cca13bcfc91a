"""FactorGraph.grid: the neighbours, the weights and the errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fginfer import AbsDiff, FactorGraph, ModelError, Potts


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 2)])
def test_scores_are_those_of_a_plain_sum(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    unary, table = rng.normal(size=(*shape, 3)), rng.normal(size=(3, 3))
    weights = [rng.uniform(0.5, 2, tuple(n - (k == axis) for k, n in enumerate(shape))) for axis in range(len(shape))]
    graph = FactorGraph.grid(shape, unary, table, weights)
    x = rng.integers(0, 3, shape)
    expected = sum(unary[i][x[i]] for i in np.ndindex(*shape))
    for i, axis in itertools.product(np.ndindex(*shape), range(len(shape))):
        if i[axis] + 1 < shape[axis]:
            j = tuple(n + (k == axis) for k, n in enumerate(i))
            expected += weights[axis][i] * table[x[i], x[j]]
    assert graph.score(x.reshape(-1)) == pytest.approx(expected)


def test_one_pixel_one_row_and_numbers_as_weights() -> None:
    assert FactorGraph.grid((1, 1), np.zeros((1, 1, 2)), Potts(0, -1)).n_variables == 1
    row = FactorGraph.grid((1, 5), np.zeros((1, 5, 4)), AbsDiff(1.0, 2), weights=[1.0, 3.0])
    assert row.score([0, 1, 2, 3, 0]) == -3.0 * (1 + 1 + 1 + 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0, 2), np.zeros((0, 2, 2)), Potts(0, 1)), "positive"),
        (((2, 2), np.zeros((2, 3, 2)), Potts(0, 1)), "unary must have the shape"),
        (((2, 2), np.zeros((2, 2, 2)), Potts(0, 1), [1.0]), "one array per axis"),
        (((2, 2), np.zeros((2, 2, 2)), Potts(0, 1), [np.ones((2, 2)), 1.0]), "weights of axis 0"),
        (((2, 2), np.zeros((2, 2, 2)), np.zeros((3, 3))), "table 0"),
    ],
)
def test_errors_say_what_is_wrong(arguments: tuple, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        FactorGraph.grid(*arguments)
