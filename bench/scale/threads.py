"""What a second thread is worth: wall time and CPU time of each thread, for 1, 2, ... threads side by side.

    python -m bench threads [--methods trws gdmm auto] [--threads 1 2] [--size 1.0] [--repeats 3] [--only grid]
                            [--iterations 1.0] [--warm 2] [--realtime] [--apart]

Every run does the same number of iterations and must end with the same score and bound, to the last bit. Wall time is
the best of the repeats, taken in turns; "later" is the part of it after the first --warm iterations, which have the
set-up in them. On a machine that others use, too, look at "by CPU": all CPU seconds of the run on one thread by those
of the busiest thread of this one, what the speed-up would be with a free core for every thread. --realtime (for root,
on Linux) keeps others off the cores while the clock runs, a second or two at a time. --apart adds what the machine
allows: as many processes of one thread at once, which wait for nothing but memory.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.common.edges import raster
from fginfer import FactorGraph, Potts, Result, Solver


def grid(side: int, labels: int, table: Callable[[np.random.Generator], object]) -> FactorGraph:
    rng = np.random.default_rng(0)
    edges = raster(side, side)
    weights = rng.uniform(0.5, 1, len(edges))
    return FactorGraph.from_arrays(
        np.full(side**2, labels), rng.normal(size=(side**2, labels)), edges, tables=[table(rng)], weights=weights
    )


def own_tables(n: int, labels: int, edges: np.ndarray) -> FactorGraph:
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(len(edges), labels, labels))
    return FactorGraph.from_arrays(np.full(n, labels), rng.normal(size=(n, labels)), edges, tables=tables)


def sparse(n: int) -> FactorGraph:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, n, (3 * n, 2)).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.normal(0, 0.5, len(edges))
    tables = np.array([[[0.0, 0], [0, 1]], [[0.0, 0], [0, -1]]])
    return FactorGraph.from_arrays(
        np.full(n, 2),
        rng.normal(size=(n, 2)),
        edges,
        table_ids=(weights < 0).astype(np.int32),
        tables=tables,
        weights=np.abs(weights),
    )


def cases(size: float) -> dict[str, tuple[Callable[[], FactorGraph], int]]:
    """Makers of models above a million entries, and iterations of trws to run."""
    side = int(500 * size**0.5)
    n = int(150 * size**0.5)
    return {
        f"grid {side}x{side}, 8 labels, Potts": (lambda: grid(side, 8, lambda _: Potts(0, -1.0)), 12),
        f"grid {side // 4}x{side // 4}, 40 labels": (lambda: grid(side // 4, 40, lambda r: r.normal(size=(40, 40))), 8),
        f"grid {side}x{side}, 2 labels, own tables": (lambda: own_tables(side**2, 2, raster(side, side)), 12),
        f"random, {int(2e5 * size)} binary": (lambda: sparse(int(2e5 * size)), 12),
        f"complete, {n} x 30 labels": (lambda: own_tables(n, 30, np.stack(np.triu_indices(n, 1), 1)), 8),
        "chain of 60 x 400 labels": (
            lambda: own_tables(60, 400, np.stack([np.arange(59), np.arange(1, 60)], 1)),
            8,
        ),
    }


def cpu_by_thread() -> dict[str, float]:
    """CPU seconds of every thread of this process so far (Linux)."""
    seconds = {}
    for path in Path("/proc/self/task").glob("*/schedstat"):
        try:
            seconds[path.parent.name] = int(path.read_text().split()[0]) / 1e9
        except OSError:  # it has ended meanwhile
            continue
    return seconds


@contextmanager
def alone(realtime: bool) -> Iterator[None]:
    """Threads started inside have the same priority."""
    if realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    try:
        yield
    finally:
        if realtime:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class Run(NamedTuple):
    """Seconds of a run, of its part after the first iterations, and of each thread."""

    wall: float
    later: float
    used: list[float]
    result: Result


def timed(graph: FactorGraph, method: str, threads: int, iterations: int, warm: int, realtime: bool) -> Run:
    with alone(realtime):
        before, began = cpu_by_thread(), time.perf_counter()
        with Solver(graph, method, threads=threads, gap=0.0) as solver:
            solver.run(iterations=min(warm, iterations))
            warmed = time.perf_counter()
            if iterations > warm:
                solver.run(iterations=iterations - warm)
            ended, after = time.perf_counter(), cpu_by_thread()
            used = sorted((after[t] - before.get(t, 0.0) for t in after), reverse=True)
            used = [sum(used)] if threads == 1 else used[:threads]  # auto's helper works while the other waits
            return Run(ended - began, ended - warmed, used, solver.result(trace=False, dual=False))


def apart(graph: FactorGraph, method: str, processes: int, iterations: int, repeats: int, realtime: bool) -> float:
    """Median seconds of runs of one thread in as many processes at once. They are forked: the model is there."""
    context = multiprocessing.get_context("fork")
    together, walls = context.Barrier(processes), context.Queue()

    def run() -> None:
        for _ in range(repeats):
            together.wait()
            walls.put(timed(graph, method, 1, iterations, iterations, realtime).wall)

    children = [context.Process(target=run) for _ in range(processes)]
    for child in children:
        child.start()
    found = [walls.get() for _ in range(repeats * processes)]
    for child in children:
        child.join()
    return float(np.median(found))


def ratio(one: float, many: float) -> str:
    return f"{one / many:.2f}x" if many > 0 else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["trws", "gdmm", "auto"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, os.cpu_count() or 1])
    parser.add_argument("--size", type=float, default=1.0, help="1.0: models of 10^6 to 10^7 entries")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--iterations", type=float, default=1.0, help="times as many")
    parser.add_argument("--warm", type=int, default=2, help="iterations that are not in the second figure")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--apart", action="store_true", help="as many processes of one thread, too")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    args = parser.parse_args()
    print(
        f"{'model':<38}{'method':<7}{'thr':>4}{'wall':>8}{'speed-up':>9}{'later':>8}{'speed-up':>9}{'by CPU':>8}"
        "   CPU of each"
    )
    for name, (make, iterations) in cases(args.size).items():
        if args.only not in name:
            continue
        graph = make()
        for method in args.methods:
            count = int(
                args.iterations * (iterations if method == "trws" else 30 if method == "auto" else 3 * iterations)
            )
            best: dict[int, Run] = {}
            for _ in range(args.repeats):  # in turns: a busy moment meets all of them
                for threads in args.threads:
                    run = timed(graph, method, threads, count, args.warm, args.realtime)
                    best[threads] = min(best.get(threads, run), run, key=lambda r: r.wall)
            first = best[args.threads[0]]
            for threads, run in best.items():
                assert (run.result.score, run.result.bound) == (first.result.score, first.result.bound), (
                    "another answer"
                )
                print(
                    f"{name:<38}{method:<7}{threads:>4}{run.wall:>7.2f}s{ratio(first.wall, run.wall):>9}"
                    f"{run.later:>7.2f}s{ratio(first.later, run.later):>9}{ratio(first.used[0], run.used[0]):>8}   "
                    f"{' '.join(f'{u:.2f}' for u in run.used)}",
                    flush=True,
                )
                if args.apart and threads > 1:
                    wall = apart(graph, method, threads, count, args.repeats, args.realtime)
                    print(
                        f"{name:<38}{method:<7}{'apart':>4}{wall:>6.2f}s{ratio(threads * first.wall, wall):>9}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
