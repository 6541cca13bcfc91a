"""dimod's quadratic models to graphs and back. Energies are minimised there: the score is minus the energy."""

from __future__ import annotations

from typing import Any

import dimod
import numpy as np

from fginfer.errors import ModelError, SettingsError
from fginfer.formats.quadratic import as_quadratic, quadratic_graph
from fginfer.graph import FactorGraph
from fginfer.interop.labelled import give_names, names_of
from fginfer.tables import Potts


def from_dimod(model: Any) -> FactorGraph:
    """A binary or discrete quadratic model of dimod; label 1 of a spin is +1, label 0 is -1.

    Variables keep their names where these are more than numbers from 0.
    """
    if isinstance(model, dimod.DiscreteQuadraticModel):
        return _discrete(model)
    if not isinstance(model, dimod.BinaryQuadraticModel):
        kind = type(model).__name__
        raise ModelError(f"from_dimod takes a BinaryQuadraticModel or a DiscreteQuadraticModel, not {kind}")
    order = list(model.variables)
    given = model.to_numpy_vectors(variable_order=order)
    linear = 0.0 - np.asarray(given.linear_biases, np.float64)
    rows, cols = (np.asarray(some, np.int64) for some in given.quadratic[:2])
    pairs, constant = 0.0 - np.asarray(given.quadratic[2], np.float64), 0.0 - float(given.offset)
    if not (np.isfinite(linear).all() and np.isfinite(pairs).all() and np.isfinite(constant)):
        raise ModelError("the model has a bias or an offset that is not finite")
    if model.vartype is dimod.SPIN:
        graph = FactorGraph.from_arrays(
            np.full(len(order), 2, np.int32),
            np.stack([0.0 - linear, linear], axis=1) if order else None,
            np.stack([rows, cols], axis=1) if len(rows) else None,
            tables=[Potts(1.0, -1.0)] if len(rows) else None,
            weights=pairs if len(rows) else None,
            constant=constant,
        )
    else:
        every = np.arange(len(order))
        ends = np.concatenate([every, rows]), np.concatenate([every, cols])
        graph = quadratic_graph(len(order), *ends, np.concatenate([linear, pairs]), constant)
    give_names(graph, order)
    return graph


def _discrete(model: Any) -> FactorGraph:
    order = list(model.variables)
    number = {v: i for i, v in enumerate(order)}
    graph = FactorGraph([model.num_cases(v) for v in order])
    for i, v in enumerate(order):
        graph.set_unary(i, 0.0 - np.asarray(model.get_linear(v), np.float64))
    for i, v in enumerate(order):
        for u in model.adj[v]:
            if number[u] > i:
                graph.add_factor([i, number[u]], 0.0 - model.get_quadratic(v, u, array=True))
    if model.offset:
        graph.add_factor([], 0.0 - float(model.offset))
    give_names(graph, order)
    return graph


def to_dimod(graph: FactorGraph, vartype: str = "BINARY") -> Any:
    """The BinaryQuadraticModel whose energy is minus the score; biases are sums, rounded as floats are.

    ModelError where the graph is more than quadratic: a variable without two labels, a factor over three variables, a
    forbidden state, a constraint, a cutoff.
    """
    if not isinstance(graph, FactorGraph):
        raise ModelError(f"to_dimod takes a FactorGraph, not {type(graph).__name__}")
    if vartype not in ("BINARY", "SPIN"):
        raise SettingsError(f"vartype must be 'BINARY' or 'SPIN', not {vartype!r}")
    if graph.cutoff > -np.inf:
        raise ModelError("a quadratic model has no place for the cutoff")
    constant, linear, quadratic = as_quadratic(graph)
    called = names_of(graph)
    out = dimod.BinaryQuadraticModel("BINARY")
    out.add_linear_from(dict(zip(called, (0.0 - linear).tolist(), strict=True)))
    out.add_quadratic_from({(called[i], called[j]): 0.0 - v for (i, j), v in quadratic.items()})
    out.offset = 0.0 - constant
    return out.change_vartype(dimod.Vartype[vartype], inplace=True)
