"""Many binary factors: Algorithm 9 on a generated model with every pair of 3884 binary variables (7,540,786 factors).

    python bench/binary.py [--variables 3884] [--formulation auto] [--seconds 60]

u ~ N(-4,1), but N(2,1) for 20 of the variables; t = +|N(0,1)| for 0.05 % of the pairs, -|N(0,0.03)| for the rest. Its
relaxation is tight. Printed: time, gap, how many factors were touched after the linear set-up pass, and the peak memory
of the process.
"""

from __future__ import annotations

import argparse
import resource

import numpy as np

import fginfer


def build(n: int, seed: int = 0) -> fginfer.FactorGraph:
    rng = np.random.default_rng(seed)
    u = rng.normal(-4.0, 1.0, n)
    strong = rng.choice(n, min(20, n), replace=False)
    u[strong] = rng.normal(2.0, 1.0, len(strong))
    i, j = np.triu_indices(n, 1)
    edges = np.empty((len(i), 2), np.int32)
    edges[:, 0], edges[:, 1] = i, j
    del i, j
    t = -np.abs(rng.normal(0.0, 0.03, len(edges)))
    up = rng.random(len(edges)) < 0.0005
    t[up] = np.abs(rng.normal(0.0, 1.0, int(up.sum())))
    unary = np.zeros((n, 2))
    unary[:, 1] = u
    # one table for each sign, shared by all factors, and a weight per factor
    tables = np.array([[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, -1.0]]])
    negative = (t < 0).astype(np.int32)
    return fginfer.FactorGraph.from_arrays([2] * n, unary, edges, negative, tables, np.abs(t))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variables", type=int, default=3884)
    parser.add_argument("--formulation", default="auto")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gap", type=float, default=1e-4)
    options = parser.parse_args()
    graph = build(options.variables)
    limits = {"time_limit": options.seconds, "gap": options.gap, "threads": options.threads}
    r = fginfer.solve(graph, "gdmm", formulation=options.formulation, dual=False, **limits)
    touched, m = r.statistics["entries_touched"], options.variables * (options.variables - 1) // 2
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.variables} variables, {m} factors")
    print(f"{r.status}: score {r.score:.6f}, bound {r.bound:.6f}, gap {r.gap:.1e}")
    print(f"{r.iterations} iterations, {r.seconds:.3f} s, of which set-up {r.setup_seconds:.3f} s")
    print(f"factors touched after set-up: {touched:.0f} ({100 * touched / m:.4f} %)")
    print(f"peak memory {memory:.0f} MB (the process: Python, the generator, the model)")


if __name__ == "__main__":
    main()
