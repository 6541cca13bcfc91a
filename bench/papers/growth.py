"""How the work of GDMM grows with the number of labels K, on several generators, the unfavourable ones included.

    python -m bench growth [--most 4096] [--iterations 100] [--seeds 1] [--part matching,flow]

matching   graph matching on a random geometric graph with K nodes: the variables are 85 nodes of a connected subgraph
           (fewer if K is smaller), the labels all nodes, the unary scores inner products of noisy feature rows, and
           every induced edge carries the same table: 1 / shortest-path distance, 0 if unreachable, -inf on its diagonal
alignment  a hexagonal template of 19 points is to be found among K points in a square of area K, where it is, displaced
           a little; score of a pair -min(| |a-b| - d_ij |, t), one table for each of the template's distances; the
           unary score is minus the difference of two noisy descriptors.

crowded    a template in a *fixed* unit square: the more labels, the more of them fit nearly as well, so active sets and
           walks grow with K: what limits it is the number of near ties, not the sorted access
flow       gdmm_models.py's displacement field on a grid, two shared tables: near ties between neighbouring moves
complete   random scores on every pair of six variables, tables of their own: the relaxation is loose, active sets and
           messages grow with the iterations, and no order of the entries tells much about the best state

Algorithm 8 with sparse messages is asked for (left to itself, gdmm reads small tables whole). For every K: entries
touched per oracle call (walks, bounds, sorts and the certificate's calls all counted) and CPU seconds per iteration,
set-up apart; and below, the exponents e of the fits to c * K^e by least squares in the logarithms.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree

import fginfer
from bench.map.gdmm_models import complete, flow

DEGREE = 12  # mean number of neighbours in the geometric graph: connected, or nearly so, for all K here
FEATURES = 100  # a node
NOISE = 0.1  # the probability that one of a variable's features is wrong
DIMENSIONS = 8  # a descriptor of a point


def matching(k: int, seed: int = 0, variables: int = 85) -> fginfer.FactorGraph:
    """The recipe of matching.py (Yan 2018, section 3.2.3) on a random geometric graph."""
    rng = np.random.default_rng([seed, k])
    at = rng.random((k, 2))
    pairs = cKDTree(at).query_pairs(np.sqrt(DEGREE / (np.pi * k)), output_type="ndarray")
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(k, k))
    hops = shortest_path(links, directed=False, unweighted=True)
    nodes = np.argsort(hops[np.linalg.norm(at - 0.5, axis=1).argmin()], kind="stable")[: min(variables, k)]
    with np.errstate(divide="ignore"):
        table = 1.0 / hops
    np.fill_diagonal(table, -np.inf)
    # A feature belongs to the nodes around some place, with exceptions, like schools in a social network.
    places, radius = rng.random((FEATURES, 2)), 0.1 + 0.2 * rng.random(FEATURES)
    near = np.linalg.norm(at[:, None] - places[None], axis=2) < radius
    has = np.where(near, rng.random((k, FEATURES)) < 0.5, rng.random((k, FEATURES)) < 0.02).astype(float)
    seen = np.where(rng.random((len(nodes), FEATURES)) < NOISE, 1 - has[nodes], has[nodes])
    order = np.full(k, -1)
    order[nodes] = np.arange(len(nodes))
    edges = order[pairs]
    return fginfer.FactorGraph.from_arrays(
        [k] * len(nodes), seen @ has.T, edges[(edges >= 0).all(axis=1)], tables=[table]
    )


def alignment(k: int, seed: int = 0, noise: float = 0.1) -> fginfer.FactorGraph:
    """A template with few distinct distances, so that the tables fit in memory for large K."""
    rng = np.random.default_rng([seed, k])
    side, width = 2.0, np.sqrt(k)  # one point per unit of area
    axial = [(q, r) for q in range(-2, 3) for r in range(-2, 3) if abs(q + r) <= 2]
    template = side * np.array([(q + r / 2, r * np.sqrt(0.75)) for q, r in axial])
    labels = width * rng.random((k, 2))
    places = rng.choice(k, len(template), replace=False)
    labels[places] = template + width / 2 + rng.normal(0, 0.02 * side, template.shape)
    between = np.linalg.norm(labels[:, None] - labels[None], axis=2)
    apart = np.linalg.norm(template[:, None] - template[None], axis=2)
    lengths = side * np.array([1.0, np.sqrt(3.0)])
    edges, ids = [], []
    for t, length in enumerate(lengths):
        found = np.argwhere(np.triu(np.abs(apart - length) < 1e-9))
        edges.append(found)
        ids.append(np.full(len(found), t))
    descriptor = rng.random((k, DIMENSIONS))
    wanted = descriptor[places] + rng.normal(0, noise, (len(template), DIMENSIONS))
    unary = -np.linalg.norm(wanted[:, None] - descriptor[None], axis=2)
    tables = [-np.minimum(np.abs(between - length), side / 2) for length in lengths]
    every, table_ids = np.concatenate(edges), np.concatenate(ids)
    return fginfer.FactorGraph.from_arrays([k] * len(template), unary, every, table_ids, tables)


def crowded(k: int, seed: int = 0) -> fginfer.FactorGraph:
    """alignment in a unit square, whatever the number of labels."""
    rng = np.random.default_rng([seed, k])
    template = rng.random((12, 2)) / 2
    labels = rng.random((k, 2))
    places = rng.choice(k, len(template), replace=False)
    labels[places] = template + 0.25 + rng.normal(0, 0.005, template.shape)
    between = np.linalg.norm(labels[:, None] - labels[None], axis=2)
    apart = np.linalg.norm(template[:, None] - template[None], axis=2)
    edges = np.array([(i, (i + step) % 12) for i in range(12) for step in (1, 2)])
    lengths = apart[edges[:, 0], edges[:, 1]]
    ids = np.searchsorted(np.quantile(lengths, [0.33, 0.67]), lengths)
    tables = [-np.minimum(np.abs(between - lengths[ids == t].mean()), 0.1) for t in range(3)]
    unary = -0.1 * rng.random((12, k))
    return fginfer.FactorGraph.from_arrays([k] * 12, unary, edges, ids, tables)


GENERATORS = (matching, alignment, crowded, flow, complete)


def measure(graph: fginfer.FactorGraph, iterations: int) -> dict[str, float]:
    """One run. The first iteration carries the set-up and the first labelings, so it is timed apart."""
    with fginfer.Solver(graph, "gdmm", gap=1e-6, access="sorted", sweep="off", search="off") as solver:
        start = time.process_time()
        solver.run(iterations=1)
        setup = time.process_time() - start
        start = time.process_time()
        solver.run(iterations=iterations - 1)
        rest = time.process_time() - start
        r = solver.result(trace=False, dual=False)
    calls = max(1.0, r.statistics["oracle_calls"])
    return {
        "touched": r.statistics["entries_touched"] / calls,
        "seconds": rest / max(1, r.iterations - 1),
        "setup": setup,
        "gap": r.gap if r.gap is not None else np.inf,
        "active": r.statistics["active_per_factor"],
        "iterations": r.iterations,
    }


def exponent(sizes: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--least", type=int, default=64)
    parser.add_argument("--most", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--part", default="", help="names of generators, separated by commas")
    options = parser.parse_args()
    wanted = options.part.split(",") if options.part else [make.__name__ for make in GENERATORS]
    sizes = [options.least << s for s in range(20) if options.least << s <= options.most]
    for make in (make for make in GENERATORS if make.__name__ in wanted):
        columns = "entries   touched/call   CPU s/iteration   set-up s   active/factor       gap  iter"
        print(f"{make.__name__:>12}: K    {columns}")
        touched, seconds = [], []
        for k in (k for k in sizes if make is not complete or k <= 1024):  # 15 tables of their own
            runs = [measure(make(k, seed=seed), options.iterations) for seed in range(options.seeds)]
            r = {name: float(np.mean([x[name] for x in runs])) for name in runs[0]}
            touched.append(r["touched"])
            seconds.append(r["seconds"])
            print(
                f"{k:>14} {k * k:>10} {r['touched']:>14.1f} {r['seconds']:>17.6f} {r['setup']:>10.3f}"
                f" {r['active']:>15.2f} {r['gap']:>9.1e} {r['iterations']:>6.0f}",
                flush=True,
            )
        if len(touched) > 1:
            done = sizes[: len(touched)]
            e, f = exponent(done, touched), exponent(done, seconds)
            print(f"{'exponents':>14}: touched/call K^{e:.2f}, time K^{f:.2f}\n")


if __name__ == "__main__":
    main()
