#!/usr/bin/env python3
"""Models of a size that decides what a method can do at all: score, bound, first labeling and memory.

usage: python -m bench scale [--seconds 10] [--factor 1.0] [--cases grid,random,...] [--methods auto,trws] [--threads 1]
                             [--at 1,2,5]

Cases, each made at random with a fixed seed and scaled by --factor:
  grid      2000 x 2000, 8 labels, Potts                    random    1 M binary variables, 3 M edges
  labels    100 variables of 20000 labels, one dense table  pairs     10 M binary factors, all pairs of 4473 variables
  complete  300 variables of 50 labels, all pairs           pigeons   11 pigeons, 10 holes: infeasible
  dense     3000 variables of 24 labels, 60 neighbours      spins     8000 binary variables, 100 neighbours, no unaries
  stereo    300 x 400, 16 labels, truncated differences     denoise   180 x 120, 256 labels, truncated squares
  multicut  100 vertices, half of all edges, signed, a label for every vertex
  pixels    1000 x 1000, 256 labels, Potts (2 GB of unaries, twice while it is made; only when it is named)

Every run is a process of its own. Memory is what solving adds to the process after the model is built. --at adds the
gap at these moments of the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time

import numpy as np

from bench.common.clock import again, peak_mb
from bench.common.edges import noisy_blocks
from fginfer import FactorGraph, Potts, Result, solve
from fginfer.result import relative_gap

METHODS = "auto,trws"


def grid(rng: np.random.Generator, factor: float) -> FactorGraph:
    side = int(2000 * factor)
    return FactorGraph.grid((side, side), noisy_blocks(rng, side, labels=8, block=40, signal=1.0), Potts(0.0, -0.75))


def signed(rng: np.random.Generator, n: int, edges: np.ndarray, unary: np.ndarray, spread: float) -> FactorGraph:
    """Binary variables; an edge rewards or punishes two ones."""
    weights = rng.normal(0.0, spread, len(edges))
    scores = np.stack([np.zeros(n), unary], 1)
    tables = np.array([[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, -1.0]]])
    kinds = (weights < 0).astype(np.int32)
    return FactorGraph.from_arrays(
        np.full(n, 2), scores, edges, table_ids=kinds, tables=tables, weights=np.abs(weights)
    )


def random_graph(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(1e6 * factor)
    edges = rng.integers(0, n, (3 * n, 2)).astype(np.int32)
    return signed(rng, n, edges[edges[:, 0] != edges[:, 1]], rng.normal(size=n), 0.5)


def pairs(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(4473 * factor)
    edges = np.stack(np.triu_indices(n, 1), 1).astype(np.int32)
    return signed(rng, n, edges, rng.normal(-1.0, 2.0, n), 0.03)


def labels(rng: np.random.Generator, factor: float) -> FactorGraph:
    n, count = 100, int(20000 * factor)
    edges = np.stack(np.triu_indices(n, 1), 1)
    edges = edges[rng.random(len(edges)) < 0.06].astype(np.int32)
    unary = rng.normal(size=(n, count))
    return FactorGraph.from_arrays(np.full(n, count), unary, edges, tables=[rng.random((count, count))])


def complete(rng: np.random.Generator, factor: float) -> FactorGraph:
    n, count = int(300 * factor), 50
    edges = np.stack(np.triu_indices(n, 1), 1).astype(np.int32)
    tables = rng.normal(size=(len(edges), count, count))
    return FactorGraph.from_arrays(np.full(n, count), rng.normal(size=(n, count)), edges, tables=tables)


def dense(rng: np.random.Generator, factor: float) -> FactorGraph:
    n, count = int(3000 * factor), 24
    edges = np.unique(np.sort(rng.integers(0, n, (30 * n, 2)), axis=1), axis=0).astype(np.int32)
    edges = edges[edges[:, 0] < edges[:, 1]]
    tables = rng.normal(size=(len(edges), count, count))
    return FactorGraph.from_arrays(np.full(n, count), rng.normal(size=(n, count)), edges, tables=tables)


def spins(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(8000 * factor)
    edges = np.stack([np.repeat(np.arange(n), 50), rng.integers(0, n, 50 * n)], 1).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    tables = rng.normal(size=(len(edges), 1, 1)) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return FactorGraph.from_arrays(np.full(n, 2), np.zeros((n, 2)), edges, tables=tables)


def steps(rng: np.random.Generator, shape: tuple[int, int], labels: int) -> np.ndarray:
    """A picture of boxes, some with a slope, in values below `labels`."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    picture = np.zeros(shape)
    for _ in range(40):
        top, left = rng.integers(0, shape[0]), rng.integers(0, shape[1])
        inside = (abs(y - top) < rng.integers(5, 60)) & (abs(x - left) < rng.integers(5, 60))
        slope = rng.normal(0, labels / 400)
        picture[inside] = rng.uniform(0, labels) + slope * (x - left)[inside]
    return np.clip(picture, 0, labels - 1)


def stereo(rng: np.random.Generator, factor: float) -> FactorGraph:
    """Differences of noisy rows of two pictures; a dense table, as files have it, and weights by contrast."""
    height, width, count = int(300 * factor), int(400 * factor), 16
    shift = steps(rng, (height, width), count).round().astype(int)
    right = rng.integers(0, 256, (height, width + count)).astype(float)
    left = np.take_along_axis(right, np.arange(width) + shift, 1)
    costs = [abs(left + rng.normal(0, 25, left.shape) - right[:, d : d + width]) for d in range(count)]
    unary = -np.minimum(np.round(np.stack(costs, -1)), 60)
    apart = np.minimum(abs(np.subtract.outer(np.arange(count), np.arange(count))), 2)
    return FactorGraph.grid((height, width), unary, -20.0 * apart)


def denoise(rng: np.random.Generator, factor: float) -> FactorGraph:
    height, width, count = int(180 * factor), int(120 * factor), 256
    noisy = steps(rng, (height, width), count) + rng.normal(0, 25, (height, width))
    unary = -((noisy[..., None] - np.arange(count)) ** 2).round()
    apart = np.subtract.outer(np.arange(count), np.arange(count)) ** 2.0
    return FactorGraph.grid((height, width), unary, -25.0 * np.minimum(apart, 200))


def pixels(rng: np.random.Generator, factor: float) -> FactorGraph:
    side, count = int(1000 * factor), 256
    return FactorGraph.grid((side, side), rng.random((side, side, count)), Potts(0.0, -0.2))


def multicut(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = int(100 * factor)
    i, j = np.triu_indices(n, 1)
    kept = rng.random(len(i)) < 0.5
    edges = np.stack([i[kept], j[kept]], 1).astype(np.int32)
    weights = rng.normal(size=len(edges))
    tables = [Potts(0.0, -1.0), Potts(0.0, 1.0)]
    sign = (weights < 0).astype(np.int32)
    return FactorGraph.from_arrays(
        np.full(n, n), np.zeros((n, n)), edges, table_ids=sign, tables=tables, weights=np.abs(weights)
    )


def pigeons(rng: np.random.Generator, factor: float) -> FactorGraph:
    n = max(4, int(11 * factor))
    edges = np.stack(np.triu_indices(n, 1), 1).astype(np.int32)
    unary = rng.normal(size=(n, n - 1))
    return FactorGraph.from_arrays(np.full(n, n - 1), unary, edges, tables=[Potts(-np.inf, 0.0)])


CASES = dict(
    grid=grid,
    random=random_graph,
    labels=labels,
    pairs=pairs,
    complete=complete,
    dense=dense,
    spins=spins,
    stereo=stereo,
    denoise=denoise,
    pigeons=pigeons,
    multicut=multicut,
    pixels=pixels,
)
OWN_CALL = ("pixels",)  # so large that a call has to ask for them


def gap_at(result: Result, moment: float) -> float | None:
    """What was known then: None before there were both a labeling and a bound."""
    known = [p for p in result.trace or () if p.seconds <= moment]
    if not known:
        return None
    return relative_gap(known[-1].score, known[-1].bound, result.unit)


def run(case: str, method: str, seconds: float, threads: int, factor: float, moments: list[float]) -> dict[str, object]:
    graph = CASES[case](np.random.default_rng(0), factor)
    graph.snapshot()
    built, cpu, wall = peak_mb(), time.process_time(), time.perf_counter()
    result = solve(graph, method, time_limit=seconds, threads=threads, dual=False)
    first = next((p.seconds for p in result.trace or () if p.score is not None), None)
    return dict(
        wall=time.perf_counter() - wall,
        cpu=time.process_time() - cpu,
        model_mb=graph.model.memory / 2**20,
        added_mb=peak_mb() - built,
        first=first,
        score=result.score,
        bound=result.bound,
        gap=result.gap,
        status=str(result.status),
        **{f"gap@{moment:g}s": gap_at(result, moment) for moment in moments},
    )


def text(value: object) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--cases", default=",".join(c for c in CASES if c not in OWN_CALL))
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--at", default="", help="seconds, with commas between")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # in the child
    a = parser.parse_args()
    moments = [float(m) for m in a.at.split(",") if m]
    if a.one:
        print(json.dumps(run(a.one[0], a.one[1], a.seconds, a.threads, a.factor, moments)))
        return
    columns = ["status", "wall", "cpu", "first", "score", "bound", "gap", "model_mb", "added_mb"]
    columns += [f"gap@{m:g}s" for m in moments]
    print(f"{'case':10}{'method':8}" + "".join(f"{c:>13}" for c in columns))
    for case in a.cases.split(","):
        for method in a.methods.split(","):
            options = [f"--seconds={a.seconds}", f"--factor={a.factor}", f"--threads={a.threads}", f"--at={a.at}"]
            command = again("scale", *options, "--one", case, method)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{case:10}{method:8} failed: {done.stderr.strip()[-200:]}")
                continue
            row = json.loads(done.stdout)
            print(f"{case:10}{method:8}" + "".join(f"{text(row[c]):>13}" for c in columns), flush=True)


if __name__ == "__main__":
    main()
