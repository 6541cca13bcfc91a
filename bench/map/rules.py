"""The rules of `auto`, each halved and doubled: the work of a proof, and the score at a fixed work.

    python -m bench rules [--only NAME ...] [--family NAME ...] [--seeds 1] [--most 3e7] [--seconds S]

Work is what the ledger counts, so the figures are the same on every machine and on a busy one. The models are small
ones of unseen_models.py. A run ends with its proof or at the first pause after --most work: then its score is compared.
Prints a line a rule and direction: on how many models anything changed, the geometric mean and the extremes of the
work against the table as it is, where both runs have a proof, proofs won and lost, and better and worse scores. Rules
that changed nothing on any model are named at the end: they need larger models, or they may go. With --seconds it
begins no further rule after so long, and says which were left out.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

from bench.map.unseen_models import unseen_case
from fginfer import FactorGraph, Solver
from fginfer.engine import Settings
from fginfer.errors import SettingsError
from fginfer.portfolio.auto import AutoEngine
from fginfer.portfolio.rules import Row, rows

PROVEN = ("optimal", "infeasible")
FAMILIES = (
    "ising_wrapped", "ternary", "quaternary", "quadratic_assignment", "warehouses", "radio_links", "matching",
    "scheduling", "noisy_or", "circuit", "relational", "multicut", "haplotypes", "determinism", "alignment",
    "loose_grid", "queens", "open_shop", "max_sat", "max_csp", "max_cut", "spins_3d", "auction", "side_chains",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    work: float
    score: float
    bound: float
    proven: bool


def outcome(graph: FactorGraph, changed: dict[str, float], most: float) -> Outcome:
    """A run with some rules changed, to its proof or to the first pause after so much work."""
    with Solver(graph, gap=0.0, **{"rules": changed}) as solver:
        settings: Settings = solver.settings
        engine = AutoEngine(graph, settings)
    policy = engine.policy
    while policy.status == "running" and work_of(engine) < most:
        policy.step()
    known = engine.now()
    work, proven = work_of(engine), policy.status in PROVEN
    engine.close()
    return Outcome(work, known.score, known.bound, proven)


def work_of(engine: AutoEngine) -> float:
    """The work of all members so far."""
    return sum(n for name, n in engine.policy.ledger.statistics().items() if name.endswith(".work"))


def moved(row: Row, times: float) -> float | None:
    """The rule's value times so much, inside its range; None where that is the same value."""
    value = min(max(row.value * times, row.low), row.high)
    value = round(value) if isinstance(row.value, int) else value
    return None if value == row.value else value


def line(row: Row, value: float, before: list[Outcome], after: list[Outcome]) -> tuple[str, bool]:
    """What a change has done, and whether it has done anything."""
    pairs = list(zip(before, after, strict=True))
    changed = sum(a != b for a, b in pairs)
    ratios = [b.work / a.work for a, b in pairs if a.proven and b.proven and a.work > 0]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    lost = sum(a.proven and not b.proven for a, b in pairs)
    won = sum(b.proven and not a.proven for a, b in pairs)
    better = sum(b.score > a.score for a, b in pairs if not a.proven)
    worse = sum(b.score < a.score for a, b in pairs if not a.proven)
    text = (
        f"{row.name:22}{row.value:>9.3g} to {value:<9.3g}{changed:4d} changed  work {mean:5.3f} "
        f"({min(ratios, default=math.nan):.2f} to {max(ratios, default=math.nan):.2f})  "
        f"proofs +{won} -{lost}  scores +{better} -{worse}"
    )
    return text, changed > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names of rules")
    parser.add_argument("--family", nargs="+", default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most", type=float, default=3e7, help="work")
    parser.add_argument("--seconds", type=float, default=math.inf)
    given = parser.parse_args()
    graphs = [unseen_case(name, seed).graph() for name in given.family for seed in range(1, given.seeds + 1)]
    end = time.perf_counter() + given.seconds
    before = [outcome(graph, {}, given.most) for graph in graphs]
    proofs = sum(b.proven for b in before)
    print(f"{len(graphs)} models, {proofs} proven, work {sum(b.work for b in before):.3g} in all", flush=True)
    idle, left_out = [], []
    for row in rows():
        if given.only and row.name not in given.only:
            continue
        if time.perf_counter() > end:
            left_out.append(row.name)
            continue
        any_change = False
        for times in (0.5, 2.0):
            value = moved(row, times)
            if value is None:
                continue
            try:
                after = [outcome(graph, {row.name: value}, given.most) for graph in graphs]
            except SettingsError as error:
                print(f"{row.name:22} {error}")
                continue
            text, changed = line(row, value, before, after)
            any_change |= changed
            if changed:
                print(text, flush=True)
        if not any_change:
            idle.append(row.name)
    print(f"{len(idle)} rules changed nothing here: {', '.join(idle) or 'none'}")
    if left_out:
        print(f"not tried: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
