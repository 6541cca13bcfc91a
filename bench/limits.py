#!/usr/bin/env python3
"""By how much limits are missed on models whose set-up takes long.

usage: limits.py [--limits 0.01,0.1,1] [--cases random,potts] [--methods trws,bnb,...] [--factor 1.0]

random is 1 M binary variables and 3 M edges, potts 1 M variables of 3 labels and 8 M edges, both times --factor. `pass`
is what one look at all factors takes just before: the score of a labeling, which a limit that is over at once costs.
A method that refuses the model says how long that takes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scale import random_graph

from fginfer import FactorGraph, Potts, SolverError, solve
from fginfer.core.solver import native_methods


def potts(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(1e6 * factor)
    edges = rng.integers(0, n, (8 * n, 2)).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    return FactorGraph.from_arrays(np.full(n, 3), rng.normal(size=(n, 3)), edges, tables=[Potts(0.0, -0.5)])


CASES = dict(random=random_graph, potts=potts)


def missed(graph: FactorGraph, method: str, limit: float) -> str:
    begin = time.perf_counter()
    try:
        result = solve(graph, method, time_limit=limit, dual=False)
    except SolverError:
        return f"{1e3 * (time.perf_counter() - begin):.0f} (refused)"
    assert result.labels is not None
    assert result.bound is not None
    return f"{1e3 * (time.perf_counter() - begin - limit):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", default="0.01,0.1,1")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--methods", default=",".join(["auto", *native_methods()]))
    parser.add_argument("--factor", type=float, default=1.0)
    a = parser.parse_args()
    limits = [float(x) for x in a.limits.split(",")]
    print(f"{'ms over':10}{'method':10}{'pass':>8}" + "".join(f"{limit:>14g} s" for limit in limits))
    for case in a.cases.split(","):
        graph = CASES[case](np.random.default_rng(0), a.factor)
        labels = np.zeros(graph.n_variables, np.int32)
        for method in a.methods.split(","):
            begin = time.perf_counter()
            graph.score(labels)
            one_pass = 1e3 * (time.perf_counter() - begin)
            row = "".join(f"{missed(graph, method, limit):>16}" for limit in limits)
            print(f"{case:10}{method:10}{one_pass:8.0f}{row}", flush=True)


if __name__ == "__main__":
    main()
