"""Where local bounds say nothing: `auto` on binary quadratic models and assignments, beside the best known values.

usage: python -m bench harder FOLDER [--seconds 60] [--peer]

FOLDER has files of BiqMac (with their BEST.tsv), QAPLIB (the optimum in line 1) and QPLIB, in folders of their own or
not. A row has the score, how far it and the bound are from the best known value, who proved it, and CPU seconds. --peer
runs toulbar2 (pytoulbar2) for as long on the same models, one after the other; its time is that of the wall.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import fginfer
from fginfer.compare.peers import PEERS

ENDINGS = (".sparse", ".dat", ".qplib", ".0", ".1", ".2", ".3", ".4", ".mc", ".rud")


def models(folder: Path) -> list[Path]:
    """The files that are models, by folder and name."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and (p.suffix in ENDINGS or "ising" in p.name))


def best_known(path: Path) -> float | None:
    """From the file itself, or from BEST.tsv beside it; None: not known. A score: assignments minimise."""
    if path.suffix == ".dat":
        words = path.read_text().split("\n", 1)[0].split()
        return -float(words[1]) if len(words) > 1 else None
    table = path.parent / "BEST.tsv"
    for line in table.read_text().splitlines() if table.exists() else []:
        words = line.split("\t")
        if words[0] in (path.name, path.stem) and len(words) > 1:
            try:
                return abs(float(words[1]))  # BiqMac minimises x'Qx; maximum cuts are above 0, too
            except ValueError:
                return None
    return None


def off(value: float | None, best: float | None) -> str:
    """How far above (+) or below (-) the best known value, in per cent of it."""
    if value is None or best is None:
        return "-"
    return f"{100 * (value - best) / max(abs(best), 1e-300):+.2f}%"


def main() -> None:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench harder", description=__doc__, formatter_class=shown)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--peer", action="store_true")
    asked = parser.parse_args()
    heads = f"{'score':>14} {'score off':>9} {'bound off':>9} {'status':>10} {'proved by':>12} {'CPU s':>7}"
    print(f"{'model':24} {'n':>4} {heads}")
    for path in models(asked.folder):
        graph, best = fginfer.read(path), best_known(path)
        began = time.process_time()
        result = fginfer.solve(graph, time_limit=asked.seconds, dual=False)
        seconds = time.process_time() - began
        print(
            f"{path.name:24} {graph.n_variables:4} {result.score!s:>14} {off(result.score, best):>9} "
            f"{off(result.bound, best):>9} {result.status:>10} {result.proved_by or '-':>12} {seconds:7.1f}",
            flush=True,
        )
        if asked.peer:
            answer = PEERS["toulbar2"].run(graph, asked.seconds)
            score = None if answer.labels is None else graph.score(answer.labels)
            told = f"{score!s:>14} {off(score, best):>9} {off(answer.bound, best):>9} {answer.status:>10}"
            print(f"{'  toulbar2':24} {'':4} {told} {'':12} {answer.seconds:7.1f}", flush=True)


if __name__ == "__main__":
    main()
