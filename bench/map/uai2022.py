"""The MPE problems of the UAI-2022 competition, scored as its organisers did, beside the values of all entries.

usage: python -m bench uai2022 FOLDER [--seconds 20] [--method auto] [--threads 1]

FOLDER, searched with its folders, has the competition's models under their published names (pedigree1.uai, also .gz,
.xz or .bz2), each with its evidence beside it (pedigree1.uai.evid) if it has any. The published values are facts of the
competition's final leader board (github.com/uaicompetition/uci-2022): base-10 logarithms with one decimal. A problem's
points are 100 (value - base) / (record - base), where base is the organisers' own solver and record the best of all
entries after an hour; no labeling is no points. At the record means: the same when rounded to one decimal. Seconds are
those of the wall, reading included.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from dataclasses import dataclass
from pathlib import Path

import fginfer

TABLE = Path(__file__).parents[1] / "common" / "uai2022_mpe.tsv"
ENDINGS = (".uai", ".uai.gz", ".uai.xz", ".uai.bz2")


@dataclass(frozen=True)
class Published:
    """What the leader board says of a problem, as base-10 logarithms."""

    base: float
    after_20_seconds: float
    after_an_hour: float

    def points(self, value: float) -> float:
        """100 at the record, 0 at the organisers' solver; more and less are possible."""
        if value == -math.inf:
            return 0.0
        if self.after_an_hour == self.base:
            return 100.0 if round(value, 1) >= self.base else 0.0
        return 100 * (value - self.base) / (self.after_an_hour - self.base)

    def beside_record(self, value: float) -> str:
        """Whether a value is above, at or below the record, to the one decimal that was published."""
        difference = round(value, 1) - self.after_an_hour if value > -math.inf else -math.inf
        return "at" if abs(difference) < 0.05 else "above" if difference > 0 else "below"


def published() -> dict[str, Published]:
    """The leader board by problem."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t")
    return {r["problem"]: Published(float(r["base"]), float(r["best20"]), float(r["best3600"])) for r in rows}


def found(folder: Path, known: dict[str, Published]) -> list[tuple[str, Path]]:
    """The problems of the leader board whose model is there, by name; of several copies the first path counts."""
    models: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        ending = next((e for e in ENDINGS if path.name.endswith(e)), None)
        if ending is not None and (name := path.name.removesuffix(ending)) in known:
            models.setdefault(name, path)
    return sorted(models.items())


def evidence_of(name: str, path: Path) -> Path | None:
    """The file of evidence beside a model."""
    beside = path.parent / f"{name}.uai.evid"
    return beside if beside.exists() else None


def main() -> None:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench uai2022", description=__doc__, formatter_class=shown)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each problem, reading included (default 20)")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    known = published()
    problems = found(asked.folder, known)
    if not problems:
        parser.error(f"{asked.folder} has no model named as a problem of the competition, such as pedigree1.uai")
    heads = f"{'best 20 s':>10} {'best 1 h':>10} {'points':>7} {'record':>6} {'status':>12} {'s':>6}"
    print(f"{'problem':28} {'value':>10} {heads}")
    points, places, proofs = 0.0, {"at": 0, "above": 0, "below": 0}, 0
    for name, path in problems:
        began = time.perf_counter()
        graph = fginfer.read(path)
        left = max(0.0, asked.seconds - (time.perf_counter() - began))
        result = fginfer.solve(
            graph, asked.method, evidence=evidence_of(name, path), time_limit=left, threads=asked.threads, dual=False
        )
        seconds = time.perf_counter() - began
        value = -math.inf if result.score is None else result.score / math.log(10)
        board = known[name]
        points += board.points(value)
        places[board.beside_record(value)] += 1
        proofs += result.is_optimal
        place = board.beside_record(value)
        line = f"{board.after_20_seconds:10.1f} {board.after_an_hour:10.1f} {board.points(value):7.2f} {place:>6}"
        print(f"{name:28} {value:10.3f} {line} {result.status:>12} {seconds:6.2f}", flush=True)
    beside = f"{places['at']} at, {places['above']} above, {places['below']} below the one-hour record"
    mean = points / len(problems)
    print(f"{len(problems)} of {len(known)} problems · mean score {mean:.2f} · {beside} · {proofs} proven")


if __name__ == "__main__":
    main()
