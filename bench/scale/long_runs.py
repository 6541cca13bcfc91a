"""Long runs: nothing that was found is lost, however long a run takes.

    python -m bench long_runs DIR [--seconds 600] [--instances 10] [--threads 1] [--only NAME]

Runs the command line on the instances of DIR/INDEX.tsv that a ten-second run does not solve (or on files of DIR, if it
has no index), ten minutes each by default, and checks what comes back: an exit code that fits the status, a labeling
whose score is what the model says, a bound that is not below it, a trace that only improves, and a run that ends
within a second of its limit. The last line counts what went wrong; the exit code is 1 if anything did.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.common.files import indexed
from fginfer.formats import read

ENDINGS = (".uai.gz", ".uai", ".wcsp.xz", ".wcsp.gz", ".wcsp", ".cfn.gz", ".cfn", ".LG.gz", ".LG")
Answer = dict[str, Any] | None
QUICK = 10.0
EXIT = {"optimal": 0, "gap_reached": 0, "infeasible": 1, "failed": 4}


def instances(folder: Path) -> list[tuple[Path, Path | None]]:
    """Model files and their evidence."""
    index = folder / "INDEX.tsv"
    if not index.exists():
        return [(p, None) for p in sorted(folder.rglob("*")) if p.name.endswith(ENDINGS)]
    return [(folder / r["file"], None if r["evidence"] == "-" else folder / r["evidence"]) for r in indexed(folder)]


def run(model: Path, evidence: Path | None, seconds: float, threads: int) -> tuple[int, Answer, str]:
    command = [sys.executable, "-m", "fginfer", "solve", str(model), "--json", "--trace", "--quiet"]
    command += ["--time-limit", str(seconds), "--threads", str(threads)]
    if evidence is not None:
        command += ["--evidence", str(evidence)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except ValueError:
        return done.returncode, None, done.stderr


def complaints(model: Path, code: int, data: Answer, seconds: float) -> list[str]:
    """What is wrong with the answer."""
    if data is None:
        return [f"no answer, exit code {code}"]
    wrong = []
    if code != EXIT.get(data["status"], 2):
        wrong.append(f"exit code {code} for {data['status']}")
    if data["status"] == "failed":
        wrong.append("it failed")
    if data["seconds"] > seconds + 1.0:
        wrong.append(f"it took {data['seconds']:.1f} s")
    if data["labels"] is not None:
        score = read(model).score(data["labels"])
        if abs(score - data["score"]) > 1e-9 * max(1.0, abs(score)):
            wrong.append(f"the score is {score}, not {data['score']}")
        if data["bound"] is not None and data["bound"] < data["score"] - 1e-9 * max(1.0, abs(score)):
            wrong.append("the bound is below the score")
    points = [p for p in data["trace"] if p[1] is not None]
    if any(after[1] < before[1] for before, after in itertools.pairwise(points)):
        wrong.append("the trace goes down")
    if points and points[-1][1] != data["score"]:
        wrong.append("the last score of the trace is another")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose path has this in it")
    args = parser.parse_args()
    failures = hard = 0
    print(f"{'instance':<44}{'status':<14}{'score':>16}{'gap':>10}{'rounds':>9}{'seconds':>9}")
    for model, evidence in instances(args.folder):
        if hard == args.instances or args.only not in str(model):
            continue
        code, data, _ = run(model, evidence, min(QUICK, args.seconds), args.threads)
        if code not in (1, 4) and (data is None or data["status"] != "time_limit"):
            continue  # solved, or not a model
        hard += 1
        code, data, errors = run(model, evidence, args.seconds, args.threads)
        wrong = complaints(model, code, data, args.seconds)
        failures += bool(wrong)
        if data is not None:
            score = float("nan") if data["score"] is None else data["score"]
            gap = float("nan") if data["gap"] is None else data["gap"]
            print(
                f"{str(model)[-42:]:<44}{data['status']:<14}{score:>16.6f}{gap:>10.1e}{data['iterations']:>9}"
                f"{data['seconds']:>9.1f}",
                flush=True,
            )
        for text in wrong:
            print(f"{str(model)[-42:]:<44}WRONG: {text} {errors.strip()[-200:]}", flush=True)
    print(f"{hard} hard instances, {failures} of them with something wrong")
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
