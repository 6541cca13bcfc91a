"""Where sorted oracles have to work: gdmm with sorted access, gdmm with dense access and trws, side by side.

    python -m bench sorted_oracles [--facebook DIR] [--pinyin DIR] [--part 'flow;complete'] [--seconds 20]

For every model: CPU seconds, set-up of the solver included (sorting, slicing; not the building of the model), to close
90 % of the way from D(0), the bound of every part by itself, to the best bound that any of the runs reaches, and the
ratio to `sorted` (above 1: sorted is faster). `bare` runs have neither sweeps nor search (labelings by rounding only)
and stand beside the full ones; `itself` is gdmm with its default settings. Then the final bounds and scores, what ran,
what found the labeling, and the table entries read for each call of an oracle. The last lines are the cases beside the
targets, `itself` over the better of dense gdmm and trws: from 1000 labels on a tenth of that time (random complete
models: told only), and below never more than 1.5 times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import inf, isnan, nan
from pathlib import Path

import numpy as np

import fginfer
from bench.map import gdmm_models as models

RUNS = {
    "sorted": ("gdmm", {"access": "sorted"}),
    "sorted, bare": ("gdmm", {"access": "sorted", "sweep": "off", "search": "off"}),
    "dense": ("gdmm", {"access": "dense"}),
    "dense, bare": ("gdmm", {"access": "dense", "sweep": "off", "search": "off"}),
    "trws": ("trws", {}),
    "itself": ("gdmm", {}),
}
LARGE = 1000  # labels: where the target is a tenth
REPEATS = ((0.1, 8), (3.0, 2))  # what takes less than so many CPU seconds is run so many times more
Make = Callable[[], fginfer.FactorGraph]


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int, Make]]:
    if options.facebook:
        for share in (0.05, 0.1, 0.2, 0.3):
            make = partial(models.rewired_matching, options.facebook, "107", "85", share)
            yield f"matching, {100 * share:.0f} % rewired", 1034, make
    if options.pinyin:
        for skip in (False, True):
            yield f"pinyin{', skip edges' * skip}", 4424, partial(models.pinyin_decoding, options.pinyin, skip)
    for k in (50, 100, 200, 400, 1000, 2000):
        yield f"flow K = {k}", k, partial(models.flow, k)
    for k in (50, 100, 200, 400, 1000):
        yield f"complete K = {k}", k, partial(models.complete, k)


class Timed:
    """A run with a limit in CPU seconds, and its trace in them: walls of clocks on a busy machine mean nothing."""

    def __init__(self, make: Make, method: str, settings: dict[str, str], limit: float, enough: float = -inf) -> None:
        graph = make()  # afresh: nothing is sorted yet
        assert graph.model is not None  # built: that is the same for all
        begun, bound = time.process_time(), inf
        with fginfer.Solver(graph, method, **settings) as solver:
            wall, cpu = [0.0], [time.process_time() - begun]
            while cpu[-1] < limit and solver.status == "running" and bound > enough:
                solver.run(seconds=0.05, iterations=1)
                now = solver.progress()
                bound = inf if now.bound is None else now.bound
                wall.append(now.seconds)
                cpu.append(time.process_time() - begun)
            self.result = solver.result(dual=False)
        points = [p for p in self.result.trace if p.bound is not None]
        self.bounds = np.array([p.bound for p in points])
        self.seconds = np.interp([p.seconds for p in points], wall, cpu)

    @property
    def bound(self) -> float:
        return inf if self.result.bound is None else self.result.bound

    def until(self, bound: float) -> float:
        reached = np.flatnonzero(self.bounds <= bound)
        return float(self.seconds[reached[0]]) if len(reached) else inf


def measure(first: Timed, make: Make, method: str, settings: dict[str, str], bound: float) -> float:
    """CPU seconds until the bound: of a run that takes less than some seconds and a few more, the quickest."""
    taken = first.until(bound)
    again = next((times for below, times in REPEATS if taken < below), 0)
    for _ in range(again):
        taken = min(taken, Timed(make, method, settings, 2 * taken, bound).until(bound))
    return taken


def describe(name: str, run: Timed, seconds: float, ratio: float) -> str:
    r, s = run.result, run.result.statistics
    calls = s.get("oracle_calls", 0.0)
    each = (s["entries_touched"] - s["sweep_entries"]) / calls if calls else 0.0
    score = "none" if r.score is None else f"{r.score:.4f}"
    by = f", {each:.0f} entries a call, {int(s['sweeps'])} sweeps, by {r.found_by}" if r.access else ""
    return (
        f"  {name:<13}{seconds:9.4f} s {ratio:8.2f}x   bound {run.bound:12.4f}  score {score:>12}"
        f"  {r.status}, {r.iterations} iterations{by}"
    )


def compare(name: str, make: Make, limit: float) -> float:
    """Prints one model; returns the time of what gdmm chooses over that of the better of dense gdmm and trws."""
    graph = make()
    start = models.bound_at_zero(graph)
    chosen = fginfer.solve(graph, "gdmm", max_iterations=0, dual=False).access
    del graph
    runs = {run: Timed(make, method, settings, limit) for run, (method, settings) in RUNS.items()}
    best = min(run.bound for run in runs.values())
    target = start - 0.9 * (start - best)
    times = {run: measure(r, make, *RUNS[run], target) for run, r in runs.items()}
    print(f"{name}: D(0) {start:.4f}, best {best:.4f}")
    for run, r in runs.items():
        ratio = times[run] / times["sorted"] if times["sorted"] < inf else 0.0
        print(describe(run, r, times[run], ratio), flush=True)
    other = min(times["dense"], times["trws"])
    against = ", ".join(f"{times['itself'] / times[run]:.3f} of {run}" for run in ("dense", "trws"))
    print(f"  left to itself: {chosen}, {against}", flush=True)
    return times["itself"] / other if other < inf else nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facebook", type=Path)
    parser.add_argument("--pinyin", type=Path)
    parser.add_argument("--part", default="", help="beginnings of case names, separated by semicolons")
    parser.add_argument("--seconds", type=float, default=20.0, help="of CPU time, for each run")
    options = parser.parse_args()
    wanted = tuple(options.part.split(";")) if options.part else ("",)
    ratios = {
        (name, k): compare(name, make, options.seconds) for name, k, make in cases(options) if name.startswith(wanted)
    }
    for (name, k), ratio in ratios.items():
        target = 0.1 if k >= LARGE else 1.5
        verdict = "told only" if name.startswith("complete") and k >= LARGE else "met" if ratio <= target else "missed"
        verdict = "nobody got there" if isnan(ratio) else verdict
        print(f"{name:<28}{ratio:9.3f}   target {target:g}: {verdict}")


if __name__ == "__main__":
    main()
