"""The README's table: methods and peers on a folder of instances, in one run, as ratios.

    python -m bench map --instances DIR [--methods auto,trws,gdmm,toulbar2] [--time-limit 10] [--threads 1] [--repeat 1]
                        [--only grids,segmentation] [--out REPORT]

DIR holds models, in subfolders that count as families; with an INDEX.tsv (columns file, evidence, best_score_ln) its
files are taken, and a score above or below the best known one is marked. Of several repeats the worst counts. For each
family and each method: how often the best score of the run was reached, how often it was reached first (ties within a
factor of two or 20 ms count for all), how often optimality was proved, and the geometric means of its time to that
score and to a gap of 1e-5, relative to the first method where both got there.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from math import exp, inf, isfinite, log
from pathlib import Path

from bench.common.files import indexed
from fginfer.compare import Comparison, Run, compare, expand_methods

READABLE = (".uai", ".LG", ".wcsp", ".cfn", ".h5", ".npz")
FLOOR = 0.02  # seconds: faster than this is a tie
GAP = 1e-5


def instances(folder: Path, only: list[str]) -> dict[str, float | None]:
    """Files below the folder, with their best known score where an index has it."""
    index = folder / "INDEX.tsv"
    if index.exists():
        rows = indexed(folder)
        found = {r["file"]: None if r["best_score_ln"] == "-" else float(r["best_score_ln"]) for r in rows}
    else:
        paths = sorted(p for p in folder.rglob("*") if p.is_file())
        found = {
            str(p.relative_to(folder)): None for p in paths if any(p.name.split(".gz")[0].endswith(e) for e in READABLE)
        }
    return {f: best for f, best in found.items() if not only or any(word in f for word in only)}


def seconds_to_gap(run: Run) -> float:
    for seconds, score, bound in run.trace:
        if score is not None and bound is not None and (bound - score) / max(1.0, abs(score)) <= GAP:
            return seconds
    return run.seconds if run.status == "optimal" and run.seconds is not None else inf


def ratio(mine: list[float], base: list[float]) -> str:
    """Geometric mean of mine / base over the pairs that both have."""
    pairs = [(max(a, FLOOR), max(b, FLOOR)) for a, b in zip(mine, base, strict=True) if isfinite(a) and isfinite(b)]
    return f"{exp(sum(log(a / b) for a, b in pairs) / len(pairs)):8.2f}x" if pairs else f"{'-':>9s}"


def summary(data: Comparison, families: dict[str, list[str]]) -> None:
    first = data.methods[0]
    print(f"\ntimes relative to {first} (floor {FLOOR * 1000:.0f} ms); n = instances")
    print(f"{'family':22s} {'method':10s}   n  best  first  proved   to best    to gap")
    for family, files in {**families, "all": data.files}.items():
        to_best: dict[str, list[float]] = {}
        to_gap: dict[str, list[float]] = {}
        for method in data.methods:
            runs = [data.worst(f, method) for f in files]
            to_best[method] = [r.seconds_to(data.best_score(r.file) or 0.0) for r in runs]
            to_gap[method] = [seconds_to_gap(r) for r in runs]
        fastest = [min(to_best[m][k] for m in data.methods) for k in range(len(files))]
        for method in data.methods:
            reached = sum(isfinite(t) for t in to_best[method])
            wins = sum(isfinite(t) and t <= max(2 * f, FLOOR) for t, f in zip(to_best[method], fastest, strict=True))
            proved = sum(data.worst(f, method).status in ("optimal", "gap_reached") for f in files)
            print(
                f"{family[:22]:22s} {method:10s} {len(files):3d} {reached:5d} {wins:6d} {proved:7d} "
                f"{ratio(to_best[method], to_best[first])} {ratio(to_gap[method], to_gap[first])}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=Path, required=True)
    parser.add_argument("--methods", default="auto,trws,gdmm,toulbar2")
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default="", help="words, separated by commas; a file is taken if it contains one")
    parser.add_argument("--out", type=Path, help="folder for report.html")
    args = parser.parse_args()
    methods, missing = expand_methods(args.methods)
    for reason in missing.values():
        print(f"missing, not run: {reason}")
    known = instances(args.instances, [word for word in args.only.split(",") if word])
    files = [str(args.instances / f) for f in known]
    best_known = {str(args.instances / f): best for f, best in known.items()}

    def report(run: Run) -> None:
        best = best_known[run.file]
        mark = ""
        if best is not None and run.score is not None:
            distance = (run.score - best) / max(1.0, abs(best))
            mark = (
                f"{'above' if distance > 0 else 'below'} best known by {abs(distance):.1e}"
                if abs(distance) > 1e-6
                else ""
            )
        score = "-" if run.score is None else f"{run.score:.6f}"
        gap = "-" if run.gap is None else f"{run.gap:.1e}"
        to_best = run.seconds_to(run.score) if run.score is not None else inf
        print(
            f"{run.file[-40:]:40s} {run.method:10s} {score:>16s} gap {gap:>8s} best at {to_best:8.3f} s "
            f"{run.message or run.status:12s} {run.peak_mb or 0:6.0f} MB  {mark}",
            flush=True,
        )

    data = compare(
        files,
        methods,
        time_limit=args.time_limit,
        threads=args.threads,
        repeat=args.repeat,
        missing=missing,
        report=report,
    )
    families: dict[str, list[str]] = defaultdict(list)
    for file in files:
        families[Path(file).parent.name].append(file)
    summary(data, families)
    if args.out is not None:
        from fginfer.compare.page import page

        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "report.html").write_text(page(data), encoding="utf-8")


if __name__ == "__main__":
    main()
