"""Many binary factors: gdmm's binary formulation against trws on generated models with every pair of n variables.

    python -m bench binary [--variables 500,1000,2000,4000] [--seconds 20]

u ~ N(-4,1), but N(2,1) for 20 of the variables; t = +|N(0,1)| for a share of the pairs (0.05 to 5 %), -|N(0,s)| for the
rest, s = 0.01, 0.03 or 0.1. For each: the bounds after the same CPU time, and how far above the best score;
`pure` is the formulation without sweeps (Algorithm 9 as published); factors touched after the linear set-up pass, and
what took part. With --variables 3884 --share 0.0005 --strength 0.03 it is the model with 7,540,786 factors.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from math import inf

import numpy as np

import fginfer
from bench.common.clock import peak_mb


def build(n: int, share: float = 0.0005, strength: float = 0.03, seed: int = 0) -> fginfer.FactorGraph:
    rng = np.random.default_rng(seed)
    u = rng.normal(-4.0, 1.0, n)
    strong = rng.choice(n, min(20, n), replace=False)
    u[strong] = rng.normal(2.0, 1.0, len(strong))
    i, j = np.triu_indices(n, 1)
    edges = np.empty((len(i), 2), np.int32)
    edges[:, 0], edges[:, 1] = i, j
    del i, j
    t = -np.abs(rng.normal(0.0, strength, len(edges)))
    up = rng.random(len(edges)) < share
    t[up] = np.abs(rng.normal(0.0, 1.0, int(up.sum())))
    unary = np.zeros((n, 2))
    unary[:, 1] = u
    # one table for each sign, shared by all factors, and a weight per factor
    tables = np.array([[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, -1.0]]])
    negative = (t < 0).astype(np.int32)
    return fginfer.FactorGraph.from_arrays([2] * n, unary, edges, negative, tables, np.abs(t))


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def limited(
    graph: fginfer.FactorGraph, method: str, seconds: float, **settings: object
) -> tuple[fginfer.Result, float]:
    """A run with a limit in CPU seconds, and those it took: comparable on a busy machine."""
    begun = time.process_time()
    with fginfer.Solver(graph, method, **settings) as solver:
        solver.run(callback=lambda _: time.process_time() - begun > seconds)
        return solver.result(dual=False), time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variables", type=numbers, default=[500, 1000, 2000, 4000])
    parser.add_argument("--share", type=numbers, default=[0.0005, 0.002, 0.01, 0.05])
    parser.add_argument("--strength", type=numbers, default=[0.01, 0.03, 0.1])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--gap", type=float, default=1e-4)
    options = parser.parse_args()
    runs = {
        "binary": ("gdmm", {"formulation": "binary"}),
        "pure": ("gdmm", {"formulation": "binary", "sweep": "off"}),
        "trws": ("trws", {}),
        "auto": ("auto", {}),
    }
    worse = auto_worse = 0
    for n, share, strength in product(options.variables, options.share, options.strength):
        graph, m = build(int(n), share, strength), int(n) * (int(n) - 1) // 2
        print(f"{int(n)} variables, {m} factors, {100 * share:g} % positive, negatives {strength:g}")
        assert graph.model is not None  # built, before the clock starts
        found, spent = {}, {}
        for name, (method, more) in runs.items():
            found[name], spent[name] = limited(graph, method, options.seconds, gap=options.gap, **more)
        score = max(r.score for r in found.values() if r.score is not None)
        bounds = {name: inf if r.bound is None else r.bound for name, r in found.items()}
        for name, r in found.items():
            own = -inf if r.score is None else r.score
            touched = r.statistics.get("entries_touched", 0.0)
            touched -= r.statistics.get("sweep_entries", 0.0)
            part = f"{100 * touched / m:.3f} % of the factors" if name in ("binary", "pure") else ""
            print(
                f"  {name:<7}{spent[name]:8.3f} s  bound {bounds[name]:12.5f}"
                f"  over the best score {bounds[name] - score:10.5f}  score {own:12.5f}"
                f"  {r.status}, {int(r.statistics.get('sweeps', 0))} sweeps  {part}",
                flush=True,
            )
        slack = options.gap * max(1.0, abs(score))  # all stop at this gap
        worse += bounds["binary"] > bounds["trws"] + slack
        auto_worse += bounds["auto"] > min(bounds["binary"], bounds["trws"]) + slack
    memory = peak_mb()
    print(f"binary worse than trws: {worse}; auto worse than the better of them: {auto_worse}")
    print(f"peak memory {memory:.0f} MB (the process: Python, the generator, the model)")


if __name__ == "__main__":
    main()
