"""The C core loads and evaluates."""

import numpy as np

from fginfer.core.arrays import ModelArrays
from fginfer.graph import FactorGraph


def test_score_of_a_tiny_model() -> None:
    arrays = ModelArrays(
        cards=np.array([2, 3], np.int32),
        unary=np.array([0.0, 1.0, 0.0, 0.0, 0.5]),
        table_arity=np.array([2], np.int32),
        dims=np.array([2, 3], np.int32),
        values=np.arange(6.0),
        factor_table=np.array([0], np.int32),
        vars=np.array([0, 1], np.int32),
    )
    graph = FactorGraph.from_model_arrays(arrays)
    assert graph.score([1, 2]) == 6.5
    assert graph.score([0, 1]) == 1.0
