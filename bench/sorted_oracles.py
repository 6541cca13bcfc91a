"""Where sorted oracles have to work: gdmm with sorted access, gdmm with dense access and trws, side by side.

    python bench/sorted_oracles.py [--facebook DIR] [--pinyin DIR] [--only flow,complete] [--seconds 20]

For every model: CPU seconds to close 90 % of the way from D(0), the bound of every part by itself, to the best bound
that any of the runs reaches, and the ratio to `sorted` (above 1: sorted is faster). `bare` is the sorted run without
search (labelings by rounding only); sweeps never run with sorted access. `chosen` is gdmm left to itself, with what it
chose. Then the final bounds and scores, and the entries touched by sorted oracles for each call.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import gdmm_models as models

import fginfer

RUNS = {
    "sorted": ("gdmm", {"access": "sorted"}),
    "bare": ("gdmm", {"access": "sorted", "search": "off"}),
    "dense": ("gdmm", {"access": "dense"}),
    "trws": ("trws", {}),
    "chosen": ("gdmm", {}),
}


def cases(options: argparse.Namespace) -> Iterator[tuple[str, object]]:
    if options.facebook:
        for share in (0.05, 0.1, 0.3):
            make = partial(models.rewired_matching, options.facebook, "107", "85", share)
            yield f"matching, {100 * share:.0f} % rewired", make
    if options.pinyin:
        for skip in (False, True):
            yield f"pinyin{', skip edges' * skip}", partial(models.pinyin_decoding, options.pinyin, skip)
    for k in (50, 100, 200, 400, 1000, 2000):
        yield f"flow K = {k}", partial(models.flow, k)
    for k in (50, 100, 200, 400, 1000):
        yield f"complete K = {k}", partial(models.complete, k)


def seconds_to(result: fginfer.Result, bound: float) -> float:
    return next((p.seconds for p in result.trace if p.bound is not None and p.bound <= bound), float("inf"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facebook", type=Path)
    parser.add_argument("--pinyin", type=Path)
    parser.add_argument("--only", default="", help="beginnings of case names, separated by commas")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    for name, make in cases(options):
        if not name.startswith(wanted):
            continue
        graph = make()
        start = models.bound_at_zero(graph)
        found, speed = {}, {}
        for run, (method, settings) in RUNS.items():
            fresh, begun = make(), time.process_time()  # nothing is sorted yet
            found[run] = fginfer.solve(fresh, method, time_limit=options.seconds, dual=False, **settings)
            speed[run] = min(1.0, (time.process_time() - begun) / max(found[run].seconds, 1e-9))
        best = min(r.bound for r in found.values() if r.bound is not None)
        target = start - 0.9 * (start - best)
        times = {run: speed[run] * seconds_to(r, target) for run, r in found.items()}
        print(f"{name}: {graph.n_variables} variables, {graph.n_factors} factors; D(0) {start:.4f}, best {best:.4f}")
        for run, r in found.items():
            s, calls = r.statistics, max(1.0, r.statistics.get("oracle_calls", 0))
            ratio = times[run] / times["sorted"] if times["sorted"] < float("inf") else float("nan")
            each = f"{s['entries_touched'] / calls:9.1f} entries a call" if r.access == "sorted" else ""
            print(
                f"  {run:<7}{times[run]:9.3f} s {ratio:7.2f}x   bound {r.bound:12.4f}  score {r.score or 0:12.4f}"
                f"  {r.status}, {r.access or ''}, {int(s.get('sweeps', 0))} sweeps, {r.iterations} iterations"
                f", by {r.found_by}  {each}",
                flush=True,
            )


if __name__ == "__main__":
    main()
