"""One model in parts beside the same model in one process: gaps, memory, rounds a second, what travels.

    python -m bench parts [--side 600] [--labels 8] [--seconds 20] [--workers 2] [--only gap]

    bound    after convergence, the bound of the parts beside that of the undivided relaxation (a small grid)
    gap      score, bound and gap after so many seconds, by two threads of one process and by Dask workers of one
             thread; their seconds begin when the parts are on the workers, and the shipping is printed beside it
    speed    rounds a second on one worker and on all of them, beside the same number of processes that know nothing of
             each other; and the part of the time in which no part works
    travels  bytes a round between parts, counted, beside the plan of docs/how/scale.md, for 4, 16 and 64 parts
    turns    a binary grid of --large variables in one process, parts taking turns, with the most memory it held

Grids are drawn block by block, the same in one piece and in parts. Times are of the wall, so run it alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bench.common.clock import again, peak_mb
from fginfer import FactorGraph, Potts, Result, Sharded, solve
from fginfer.parts.plan import PartsPlan
from fginfer.parts.solver import PartsSolver

KINDS = ("bound", "gap", "speed", "travels", "turns")


class Noise:
    """Scores of a block of the grid, drawn row by row, so that they do not depend on how the grid is cut."""

    def __init__(self, labels: int) -> None:
        self.labels = labels

    def __call__(self, box: tuple[slice, ...]) -> np.ndarray:
        rows, columns = box
        out = np.empty((rows.stop - rows.start, columns.stop - columns.start, self.labels))
        for k, row in enumerate(range(rows.start, rows.stop)):
            skipped = np.random.PCG64(row).advance(columns.start * self.labels)
            out[k] = np.random.Generator(skipped).uniform(-2, 2, out.shape[1:])
        return out


def whole(side: int, labels: int) -> FactorGraph:
    return FactorGraph.grid((side, side), Noise(labels)((slice(0, side), slice(0, side))), Potts(0, -0.6))


def in_parts(side: int, labels: int, parts: int) -> Sharded:
    return Sharded.grid((side, side), parts, Noise(labels), Potts(0, -0.6))


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    local = tempfile.TemporaryDirectory()
    with (
        local as folder,
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, local_directory=folder) as made,
        Client(made) as client,
    ):
        client.wait_for_workers(workers)
        yield client


def line(name: str, result: Result, more: str = "") -> None:
    gap = "-" if result.gap is None else f"{result.gap:.2e}"
    print(f"  {name:32} score {result.score:.6g}  bound {result.bound:.6g}  gap {gap}  {more}", flush=True)


def bounds(args: argparse.Namespace) -> None:
    graph = whole(40, args.labels)
    alone = solve(graph, "trws", gap=0.0, max_iterations=3000)
    line("trws, undivided", alone, f"{alone.iterations} iterations")
    for parts in (2, 4, 9):
        divided = solve(graph, parts=parts, gap=0.0, max_iterations=3000)
        apart = (divided.bound - alone.bound) / abs(alone.bound)
        line(f"{parts} parts", divided, f"{divided.iterations} rounds, bound {apart:+.1e} of the undivided")


def resident(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        return next(int(row.split()[1]) / 1024 for row in status if row.startswith("VmHWM"))


def gaps(args: argparse.Namespace) -> None:
    import os

    graph = whole(args.side, args.labels)
    before = peak_mb()
    alone = solve(graph, "trws", threads=2, time_limit=args.seconds, gap=0.0)
    line("trws, two threads", alone, f"memory {peak_mb():.0f} MB, {before:.0f} of them before the solve")
    auto = solve(graph, threads=2, time_limit=args.seconds, gap=0.0)
    line("auto, two threads", auto)
    with cluster(args.workers) as client:
        began = time.perf_counter()
        model = in_parts(args.side, args.labels, 2 * args.workers)
        with PartsSolver(model, PartsPlan(client=client), gap=0.0, threads=1) as solver:
            solver.run(iterations=0)
            shipping = time.perf_counter() - began
            solver.run(args.seconds)
            found = solver.result()
            memory = [resident(pid) for pid in client.run(os.getpid).values()]
    line(
        f"{2 * args.workers} parts, {args.workers} workers",
        found,
        f"shipping {shipping:.1f} s, a worker {max(memory):.0f} MB",
    )


def rate(side: int, labels: int, parts: int, seconds: float, client: Any) -> tuple[float, dict[str, float]]:
    """Rounds a second after the first one, and what the result counts."""
    with PartsSolver(in_parts(side, labels, parts), PartsPlan(client=client), gap=0.0) as solver:
        solver.run(iterations=1)
        began = time.perf_counter()
        solver.run(seconds)
        result = solver.result()
    return (result.iterations - 1) / (time.perf_counter() - began), result.statistics


def speed(args: argparse.Namespace) -> None:
    parts, rates = 2 * args.workers, {}
    for workers in (1, args.workers):
        with cluster(workers) as client:
            rates[workers], counted = rate(args.side, args.labels, parts, args.seconds, client)
        idle = 1 - counted["part_seconds"] / workers / counted["wait_seconds"]
        print(
            f"  {workers} workers: {rates[workers]:.2f} rounds a second, {idle:.1%} of the time no part works",
            flush=True,
        )
    command = [
        *again("parts"),
        "--only",
        "one",
        "--side",
        args.side,
        "--labels",
        args.labels,
        "--seconds",
        args.seconds,
    ]
    words = [str(word) for word in [*command, "--workers", args.workers]]

    def together(n: int) -> float:
        running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(n)]
        return sum(float(process.communicate()[0]) for process in running)

    machine, ours = together(args.workers) / together(1), rates[args.workers] / rates[1]
    print(
        f"  {args.workers} processes apart {machine:.2f}x one of them, workers {ours:.2f}x: {ours / machine:.2f} of it"
    )


def one(args: argparse.Namespace) -> None:
    print(rate(args.side, args.labels, 2 * args.workers, args.seconds, None)[0])


def travels(args: argparse.Namespace) -> None:
    for parts in (4, 16, 64):
        result = solve(in_parts(args.side, args.labels, parts), max_iterations=3, gap=0.0)
        counted, pieces = result.statistics["border_bytes"] / 3, round(parts**0.5)
        # A block has the first layer of each neighbour behind it; both sides send and get a number a label.
        planned = 2 * (pieces - 1) * args.side * 2 * args.labels * 16
        print(f"  {parts:3} parts: {counted:.4g} bytes a round, planned {planned:.4g}, ratio {counted / planned:.2f}")


def turns(args: argparse.Namespace) -> None:
    side = round(args.large**0.5)
    began, cpu = time.perf_counter(), time.process_time()
    result = solve(in_parts(side, 2, 64), max_iterations=2, memory=args.memory)
    took = f"{time.perf_counter() - began:.0f} s, {time.process_time() - cpu:.0f} s of CPU, {peak_mb():.0f} MB at most"
    line(f"{side} x {side}, 64 parts in turns", result, took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=600)
    parser.add_argument("--labels", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--large", type=int, default=10**6, help="variables of the grid in turns")
    parser.add_argument("--memory", type=float, default=2e8, help="bytes for the parts that take turns")
    parser.add_argument("--only", choices=(*KINDS, "one"))
    args = parser.parse_args()
    if args.only == "one":
        return one(args)
    for kind, work in zip(KINDS, (bounds, gaps, speed, travels, turns), strict=True):
        if args.only in (None, kind):
            print(kind, flush=True)
            work(args)
    return None


if __name__ == "__main__":
    sys.exit(main())
