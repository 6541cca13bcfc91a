"""gdmm against bcfw at C = .01 to 100: the time to bcfw's primal (within 1 %), on OCR small and CoNLL-2000.

usage: python -m bench learning_against_bcfw DATASETS_DIR [--only ocr,conll] [--C .01,.1,1,10,100] [--limit 20]

bcfw runs until its gap is 1 % (or for --limit CPU seconds of training); gdmm then until its exact primal is at most 1 %
above what bcfw reached, for three times that time and at least a second more. Measuring is not counted. Also yeast with
pairs at C = 10: the gap and micro-F1 of gdmm by passes (--only yeast).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.learn import learning_data as sets
from fginfer.core.learn import Edges
from fginfer.learn.data.encode import encode
from fginfer.learn.learner import Learner
from fginfer.learn.metrics import micro_f1
from fginfer.learn.solvers.registry import make_solver


def reach(name: str, data: Any, C: float, wanted: float | None, limit: float) -> tuple[float, float, float, int]:
    """(seconds, primal, gap, passes) at the first look with a primal of at most `wanted` (None: a gap of 1 %)."""
    solver, spent, passes, look = make_solver(name, Learner(data), None, C, 0, {}), 0.0, 0, 1
    while True:
        start = time.process_time()
        solver.advance(np.inf)
        spent += time.process_time() - start
        passes += 1
        if passes < look and spent < limit:
            continue
        look = max(passes + 1, int(1.15 * passes))
        if wanted is None or spent >= limit:
            m = solver.measure()
            primal, gap = float(m.primal), float(m.gap)
        else:  # the last weights, or their average: what measuring would choose from
            tried = (solver.averaged(), solver.learner.weights.copy())
            primal, gap = min(solver._primal(w, np.inf) for w in tried), float("nan")
        if spent >= limit or (gap <= 1e-2 if wanted is None else primal <= wanted):
            return spent, primal, gap, passes


def against(title: str, data: Any, costs: list[float], limit: float) -> None:
    print(f"\n{title}: seconds (primal, gap, passes)")
    for C in costs:
        t, primal, gap, passes = reach("bcfw", data, C, None, limit)
        print(f"  C = {C:<6g} bcfw {t:7.2f} ({primal:.6g}, {gap:.1e}, {passes})", end="", flush=True)
        u, other, gap, passes = reach("gdmm", data, C, 1.01 * primal, 3 * t + 1)
        verdict = f"{u / t:.2f} x" if other <= 1.01 * primal else f"not in {u / t:.1f} x"
        print(f"   gdmm {u:7.2f} ({other:.6g}, {gap:.1e}, {passes})   {verdict}", flush=True)


def yeast(folder: Path) -> None:
    X, Y, test, truth = sets.multilabel(folder, "yeast")
    data, _ = encode("multilabel", X, Y)
    judge, _ = encode("multilabel", test, truth)
    assert data.edges == Edges.CHAIN
    learner = Learner(judge)
    solver = make_solver("gdmm", Learner(data), None, 10.0, 0, {})
    print("\nyeast with pairs, C = 10: passes, primal, dual, gap, micro-F1, exact match")
    for done in range(1, 201):
        solver.advance(np.inf)
        if done in (5, 10, 20, 50, 100, 200):
            m = solver.measure()
            found = np.zeros(truth.shape, bool)
            for row, labels in enumerate(learner.decode(solver.weights()).split()):
                found[row, labels] = True
            exact = float(np.mean((found == truth.astype(bool)).all(axis=1)))
            print(
                f"  {done:>4} {m.primal:.6g} {m.dual:.6g} {m.gap:.1e} {100 * micro_f1(truth.astype(bool), found):.1f}"
                f" {100 * exact:.1f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="ocr,conll,yeast")
    parser.add_argument("--C", default=".01,.1,1,10,100")
    parser.add_argument("--limit", type=float, default=20.0)
    args = parser.parse_args()
    costs = [float(x) for x in args.C.split(",")]
    if "ocr" in args.only:
        against("OCR small", sets.ocr(args.folder).train, costs, args.limit)
    if "yeast" in args.only:
        yeast(args.folder)
    if "conll" in args.only:
        against("CoNLL-2000", sets.conll(args.folder).train, costs, args.limit)


if __name__ == "__main__":
    main()
