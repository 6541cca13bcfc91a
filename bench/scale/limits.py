#!/usr/bin/env python3
"""By how much limits are missed on models whose set-up takes long.

usage: python -m bench limits [--limits 0.01,0.1,1] [--cases random,potts] [--methods trws,bnb,...] [--factor 1.0]
                              [--dual]

Cases, of which the sizes are times --factor:
  random    1 M binary variables, 3 M edges             potts     1 M variables of 3 labels, 8 M edges
  grid      2000 x 2000, 8 labels                       hub       one variable with a million neighbours, 4 labels
  table     two variables, one table of 10^8 entries    arity     10^5 binary variables in factors of eight
  labels    two variables of 20000 labels, distances    isolated  3 M variables without factors
  chain     10^6 variables of 4 labels

`pass` is what one look at all factors takes just before: the score of a labeling, which a limit that is over at once
costs. What is printed is the end of solve(), the freeing of the solver included; --dual: with messages and marginals.
A method that refuses the model says how long that takes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bench.scale.scale import grid, random_graph
from fginfer import AbsDiff, FactorGraph, Potts, SolverError, solve
from fginfer.core.solver import native_methods


def potts(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(1e6 * factor)
    edges = rng.integers(0, n, (8 * n, 2)).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    return FactorGraph.from_arrays(np.full(n, 3), rng.normal(size=(n, 3)), edges, tables=[Potts(0.0, -0.5)])


def hub(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(1e6 * factor) + 1
    edges = np.stack([np.zeros(n - 1, np.int32), np.arange(1, n, dtype=np.int32)], 1)
    tables = rng.normal(size=(50, 4, 4))
    return FactorGraph.from_arrays(
        np.full(n, 4), rng.normal(size=(n, 4)), edges, rng.integers(0, 50, n - 1).astype(np.int32), tables
    )


def table(rng: np.random.Generator, factor: float) -> FactorGraph:
    labels = int(1e4 * factor**0.5)
    scores = rng.random((1, labels, labels))
    return FactorGraph.from_arrays(np.full(2, labels), rng.normal(size=(2, labels)), [[0, 1]], tables=scores)


def arity(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(1e5 * factor)
    graph = FactorGraph([2] * n)
    kinds = [graph.add_table(rng.normal(size=(2,) * 8)) for _ in range(20)]
    for k in range(n // 4):  # each variable in two
        graph.add_factor((8 * k + 7 * np.arange(8) * (1 + k % 5)) % n, kinds[k % 20])
    return graph


def distances(rng: np.random.Generator, factor: float) -> FactorGraph:
    labels = int(20000 * factor)
    return FactorGraph.from_arrays(np.full(2, labels), rng.normal(size=(2, labels)), [[0, 1]], tables=[AbsDiff(0.01)])


def isolated(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(3e6 * factor)
    return FactorGraph.from_arrays(np.full(n, 3), rng.normal(size=(n, 3)), np.zeros((0, 2), np.int32), tables=[])


def chain(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(1e6 * factor)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], 1).astype(np.int32)
    return FactorGraph.from_arrays(np.full(n, 4), rng.normal(size=(n, 4)), edges, tables=[Potts(0.0, -0.5)])


CASES = dict(
    random=random_graph,
    potts=potts,
    grid=grid,
    hub=hub,
    table=table,
    arity=arity,
    labels=distances,
    isolated=isolated,
    chain=chain,
)


def missed(graph: FactorGraph, method: str, limit: float, dual: bool) -> str:
    begin = time.perf_counter()
    try:
        result = solve(graph, method, time_limit=limit, dual=dual)
    except SolverError:
        return f"{1e3 * (time.perf_counter() - begin):.0f} (refused)"
    assert result.labels is not None
    assert result.bound is not None
    took = time.perf_counter() - begin
    return f"{1e3 * (took - limit):.0f}" if took > limit or result.status == "time_limit" else "done"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", default="0.01,0.1,1")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--methods", default=",".join(["auto", *native_methods()]))
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--dual", action="store_true")
    a = parser.parse_args()
    limits = [float(x) for x in a.limits.split(",")]
    print(f"{'ms over':10}{'method':10}{'pass':>8}" + "".join(f"{limit:>14g} s" for limit in limits))
    for case in a.cases.split(","):
        graph = CASES[case](np.random.default_rng(0), a.factor)
        graph.snapshot()
        labels = np.zeros(graph.n_variables, np.int32)
        for method in a.methods.split(","):
            begin = time.perf_counter()
            graph.score(labels)
            one_pass = 1e3 * (time.perf_counter() - begin)
            row = "".join(f"{missed(graph, method, limit, a.dual):>16}" for limit in limits)
            print(f"{case:10}{method:10}{one_pass:8.0f}{row}", flush=True)


if __name__ == "__main__":
    main()
