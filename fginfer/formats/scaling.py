"""Whole costs for formats that hold nothing else: scores times a scale, rounded, and shifted to be costs >= 0."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError, SettingsError
from fginfer.formats.assembly import Assembly, Factors, Function
from fginfer.graph import FactorGraph


class Scaled(NamedTuple):
    """score = offset - cost / scale for every labeling, to within `error`; forbidden stays forbidden."""

    graph: FactorGraph
    offset: float
    error: float


def whole_costs(graph: FactorGraph, scale: float) -> Scaled:
    """The graph with minus the costs as scores. A cutoff is kept generously: nothing that counts is cut off."""
    if not (isinstance(scale, int | float) and 0.0 < scale < math.inf):
        raise SettingsError(f"a scale is a number above 0, not {scale!r}")
    factors, assembly = Factors(graph), Assembly(np.asarray(graph.cards, np.int32))
    offsets, errors = [0.0], [0.0]

    def whole(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, float]:
        finite = np.isfinite(scores)
        best = float(scores[finite].max()) if finite.any() else 0.0
        exact = np.where(finite, (best - np.where(finite, scores, best)) * scale, np.inf)
        if exact[finite].max(initial=0.0) >= 2.0**53:
            raise ModelError(f"a cost times {scale:g} is above 2^53; a smaller scale will do")
        costs = np.rint(exact)
        error = np.abs(costs[finite] - exact[finite]).max(initial=0.0) / scale
        return 0.0 - costs, best, float(error)

    def add(variables: tuple[int, ...], function: Function, best: float, error: float) -> None:
        assembly.add(variables, function)
        offsets.append(best)
        errors.append(error)

    for constant in factors.constants():
        if math.isfinite(constant):
            offsets.append(constant)
        else:
            assembly.add((), np.array(constant))
    for variable, scores in factors.unaries():
        add((variable,), *whole(scores))
    known: dict[object, tuple[Function, float, float]] = {}
    for variables, key in factors:
        if key not in known:
            scores, best, error = whole(factors.scores(key))
            known[key] = assembly.function(scores), best, error
        add(variables, *known[key])
    out, offset, error = assembly.graph(), math.fsum(offsets), math.fsum(errors)
    if graph.cutoff > -math.inf:
        out.cutoff = -float(math.ceil((offset - graph.cutoff + error) * scale))
    return Scaled(out, offset, error)
