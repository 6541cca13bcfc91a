"""Primal search on a folder of instances, over several seeds: the worst and the best score, and the time to reach them.

    python -m bench search DIR [--seconds 10] [--seeds 5] [--only PATTERN]

DIR holds INDEX.tsv (file, evidence, ..., best_score_ln) and the instances it names. CPU seconds, one thread.
"""

from __future__ import annotations

import argparse
import time
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from bench.common.files import indexed, load
from fginfer.core.door import check, ffi, lib, new_error
from fginfer.core.model import Model


def run(model: Model, seed: int, seconds: float, method: int) -> tuple[float, float, int]:
    """Best score, the time at which it was found and the iterations done."""
    settings = ffi.new("fgi_settings *", lib.fgi_settings_default())
    settings.method, settings.seed, settings.gap = method, seed, 0.0
    error, out, info = new_error(), ffi.new("fgi_solver **"), ffi.new("fgi_info *")
    check(lib.fgi_solver_create(model.handle, settings, out, error), error)
    solver = ffi.gc(out[0], lib.fgi_solver_free)
    found, score, start = 0.0, -np.inf, time.process_time()
    while (now := time.process_time() - start) < seconds:
        check(lib.fgi_solver_run(solver, min(0.02, seconds - now), -1, info), error)
        if info.score > score:
            found, score = time.process_time() - start, info.score
        if info.status != lib.FGI_RUNNING:
            break
    return score, found, info.iterations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="*")
    parser.add_argument("--method", default="SEARCH")
    args = parser.parse_args()
    method = getattr(lib, f"FGI_{args.method.upper()}")
    print("file\tknown\tworst\tat\tbest\tat\tmoves")
    for row in indexed(args.folder):
        if not fnmatch(row["file"], args.only):
            continue
        graph = load(args.folder, row["file"], row["evidence"])
        runs = sorted(run(graph.snapshot(), seed, args.seconds, method) for seed in range(args.seeds))
        (low, low_at, moves), (high, high_at, _) = runs[0], runs[-1]
        print(
            f"{row['file']}\t{row['best_score_ln']}\t{low:.6f}\t{low_at:.2f}\t{high:.6f}\t{high_at:.2f}\t{moves}",
            flush=True,
        )


if __name__ == "__main__":
    main()
