"""The score of a labeling that tables and rules share."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.model import Model
from fginfer.folding import leftovers_at
from fginfer.rules.rule import Rule


def rule_scores(rules: Sequence[Rule], labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """One score per rule for labels of all variables, which are in range."""
    whole = labels.tolist()
    return np.array([rule.score([whole[v] for v in rule.variables]) for rule in rules])


def score_with_rules(model: Model, rules: Sequence[Rule], labels: NDArray[np.int32]) -> float:
    """The score of tables and rules: their terms are added up without rounding, and the sum is rounded once."""
    said = model.score(labels)  # checks the labels, too
    if said == -inf:
        return said
    terms = rule_scores(rules, labels)
    if not terms.any():
        return said
    if (terms == -inf).any():
        return -inf
    arrays = ModelArrays.of_model(model)
    assert arrays.unary is not None
    unary = arrays.unary[begins(arrays.cards)[:-1] + labels]
    tables = [arrays.constant, *unary.tolist(), *model.factor_scores(labels).tolist()]
    return fsum([*tables, *leftovers_at(arrays, labels), *terms.tolist()])
